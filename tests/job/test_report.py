import io
import itertools

import pytest

from reports import absorbed, output
from tokbatch.batch.stats import Stats
from tokbatch.job.html_report import render_html
from tokbatch.job.progress import PlainLines, duration, megabytes
from tokbatch.job.report import FILES_SHOWN
from tokbatch.job.text_table import render_table


def test_one_line_a_file_and_the_folder_said_once(tmp_path):
    files = [("data/en/a.parquet", absorbed(8, 4, (2, 33))), ("data/fr/b.parquet", Stats(documents=1234, tokens=5678))]
    report = output(tmp_path, files)
    assert "2 inputs in data\n" in report
    lines = report.splitlines()
    assert next(line.split()[:3] for line in lines if line.startswith("fr/b.parquet")) == [
        "fr/b.parquet",
        "1,234",
        "5,678",
    ]
    assert "en/a.parquet: 8 characters in 4 documents" in report
    assert "    first rows  2, 33" in lines
    assert [line.split() for line in lines if "U+000A" in line] == [["whitespace", "U+000A", "LINE", "FEED", "4", "8"]]
    assert "No whitespace was lost to rstrip." in lines


def test_unknown_tokens_are_said_to_be_why_documents_are_lossy(tmp_path):
    files = [
        ("a.parquet", Stats(documents=3, tokens=9, verified_documents=3, lossy_documents=2, unknown_tokens=1400)),
        ("b.parquet", Stats(documents=1, tokens=2, verified_documents=1, exact_documents=1)),
    ]
    said = (
        "2 documents lossy: 1,400 unknown tokens stand in the ids of 1 of 2 files, for text that the tokenizer has no"
    )
    assert said in output(tmp_path / "two", files)
    assert said in render_html(tmp_path / "two")
    assert "2 documents lossy: 1,400 unknown tokens stand in the ids, for text" in output(tmp_path / "one", files[:1])
    assert "unknown tokens stand" not in output(tmp_path / "none", files[1:])


def test_many_files_with_losses_show_the_worst(tmp_path):
    files = [(f"f{i:02}.parquet", absorbed(i + 1, 1)) for i in range(FILES_SHOWN + 5)]
    report = output(tmp_path, files)
    assert "all files: 120 characters in 15 documents" in report
    assert "f14.parquet: 15 characters in 1 document\n" in report
    assert "f04.parquet:" not in report
    assert "and 5 more files: see stats.json" in report


def test_what_went_wrong_is_at_the_end(tmp_path):
    stats = Stats(
        documents=30, lossy_documents=12, lossy_first_rows=tuple(range(10)), failed_documents=1, failed_first_rows=(7,)
    )
    report = output(
        tmp_path,
        [("a.parquet", stats)],
        skipped=[{"input": "b.parquet", "reason": "zero bytes"}],
        rows=[{"input": "a.parquet", "row": row, "reason": "not UTF-8"} for row in range(7, 21)],
        retries=[{"input": "a.parquet", "rows": "rows 0 to 9", "reason": "killed by SIGKILL"}],
    )
    assert "a.parquet: lossy at rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more" in report
    assert "a.parquet: failed at rows 7\n" in report
    assert "skipped b.parquet: zero bytes" in report
    assert "null for a.parquet, row 16: not UTF-8\n  and 4 more rows: see the quarantine in manifest.json" in report
    assert "done again: a.parquet, rows 0 to 9: killed by SIGKILL" in report


def test_a_table_is_aligned():
    rows = [["file", "n", "m"], ["a", "1", "22"], ["bbb", "333", "4"], ["total", "334", "26"]]
    lines = render_table(rows, groups=[("", 1), ("both", 2)])
    assert lines == [
        "            both",
        "file       n   m",
        "────────────────",
        "a          1  22",
        "bbb      333   4",
        "────────────────",
        "total    334  26",
    ]
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e6, "2.5 MB"), (7e9, "7.0 GB"), (3e15, "3,000.0 TB")],
)
def test_bytes_for_people(value, expected):
    assert megabytes(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.04, "0.0 s"), (59, "59.0 s"), (60, "1 min 00 s"), (3600 * 27 + 61, "27 h 01 min")]
)
def test_times_for_people(value, expected):
    assert duration(value) == expected


def test_plain_lines_come_now_and_then_and_know_the_time_left(monkeypatch):
    clock = itertools.count(0, 4)
    monkeypatch.setattr("tokbatch.job.progress.time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    lines = PlainLines(stream, every_seconds=10)
    lines.start(40_000_000, 10_000_000)
    for done in range(11_000_000, 22_000_000, 1_000_000):
        lines.update(done)
    lines.finish()
    said = stream.getvalue().splitlines()
    assert len(said) == 3
    # Ten of forty MB were there before: the rate counts what this attempt did.
    assert said[0] == " 32.5 %  13.0 MB of 40.0 MB  250.0 kB/s  1 min 48 s left"
