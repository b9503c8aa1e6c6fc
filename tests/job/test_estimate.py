"""The estimate of `tokbatch plan`: a sample that is really encoded, scaled to the whole."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import write_config
from new_text import new_documents
from tokbatch.frontends.cli_text import render_plan
from tokbatch.job.config import load_config
from tokbatch.job.estimate import PLACES, _places, estimate_job, told_estimate
from tokbatch.job.prepare import prepare_job
from tokbatch.job.run import run_job

SIZE = 6_000_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimate")
    (texts,) = new_documents(5, SIZE)
    pq.write_table(pa.table({"text": texts}), folder / "a.parquet", row_group_size=100)
    (folder / "b.jsonl").write_text('{"text": "a line"}\n' * 20_000)
    return folder


def prepared(folder, *overrides, **settings):
    config = write_config(folder, input__files=["a.parquet", "b.jsonl"], input__keep_columns=[], **settings)
    return prepare_job(load_config(config, overrides))


@pytest.mark.parametrize("settings", [{}, {"output__format": "bin"}, {"output__id_type": "uint16"}])
def test_bytes_are_near_to_what_the_job_writes(corpus, settings):
    job = prepared(corpus, **settings)
    estimate = estimate_job(job)
    assert not (corpus / "out").exists()
    result = run_job(job.config, overwrite=True)
    written = sum(path.stat().st_size for path in (corpus / "out/data").iterdir())
    assert estimate.disk_bytes == pytest.approx(written, rel=0.2)
    assert estimate.text_bytes == pytest.approx(result.stats.bytes, rel=0.1)
    assert estimate.seconds > estimate.sample_seconds > 0
    assert 0 < estimate.sample_bytes < result.stats.bytes
    assert estimate.free_bytes > 0
    for path in sorted((corpus / "out").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (corpus / "out").rmdir()


def test_places_are_spread_over_the_corpus(corpus):
    places = list(_places(prepared(corpus)))
    assert sum(steps for *_, steps in places) == PLACES
    assert len(places) > PLACES // 2
    rows = [row for facts, _, row, _ in places if facts.input.name == "a.parquet"]
    assert rows == sorted(set(rows))
    units = [(facts.units.index(unit), row) for facts, unit, row, _ in places]
    assert all(row == 0 or index > 0 for index, row in units)
    pq.write_table(pq.read_table(corpus / "a.parquet"), corpus / "one.parquet")
    config = write_config(corpus, input__files=["one.parquet"], input__keep_columns=[])
    (place,) = _places(prepare_job(load_config(config)))
    assert place[2:] == (0, PLACES)


def test_packed_rows_are_estimated_with_their_padding(corpus):
    job = prepared(corpus, 'output.packing={length = 64, pad = "<pad>", split = false, too_long = "drop"}')
    assert estimate_job(job).disk_bytes > 0


def test_what_a_plan_says(corpus):
    job = prepared(corpus, run__workers=2)
    lines = render_plan(job, told_estimate(job)).splitlines()
    (first,) = [line for line in lines if line.startswith("estimate")]
    assert " of work, " in first
    assert " for 2 workers; " in first
    assert " on the disk, where " in first
    assert "measured now: " in lines[lines.index(first) + 1]
    assert not any(line.startswith("estimate") for line in render_plan(job).splitlines())


def test_an_empty_corpus_has_no_estimate_and_a_bad_row_says_why(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    config = write_config(tmp_path, input__files=["a.jsonl"], input__keep_columns=[])
    assert told_estimate(prepare_job(load_config(config))) is None
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n[]\n')
    job = prepare_job(load_config(config))
    assert told_estimate(job).startswith("line 2: not as the columns are")
    assert "estimate    none: line 2: not as" in render_plan(job, told_estimate(job))
    skipping = write_config(tmp_path, input__files=["a.jsonl"], input__keep_columns=[], run__on_bad_row="null")
    assert estimate_job(prepare_job(load_config(skipping))).text_bytes > 0


def test_one_odd_document_stands_for_its_own_place(tmp_path):
    """A long document that compresses to nothing is read whole, and must not count for more than it is."""
    (texts,) = new_documents(6, 4_000_000)
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=100)
    pq.write_table(pa.table({"text": ["a" * 3_000_000]}), tmp_path / "b.parquet")
    config = load_config(write_config(tmp_path, input__files=["a.parquet", "b.parquet"], input__keep_columns=[]))
    estimate = estimate_job(prepare_job(config))
    run_job(config)
    written = sum(path.stat().st_size for path in (tmp_path / "out/data").iterdir())
    assert estimate.disk_bytes == pytest.approx(written, rel=0.25)
