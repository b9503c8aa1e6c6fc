"""The statistics: defined once, merged exactly, identical after JSON and Arrow."""

import json
import pathlib
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokbatch.batch.stats import FIELDS, FIRST_ROWS, Stats, arrow_schema, to_table, whitespace_name
from tokbatch.errors import InputError

NUMBERS = st.integers(0, 2**62)
NAMES = st.sampled_from(["<mask>", "<pad>", "U+0020", "日", ""])
BY_KIND = {
    "number": NUMBERS,
    "counts": st.dictionaries(NAMES, NUMBERS),
    "counts of counts": st.dictionaries(NAMES, st.dictionaries(NAMES, NUMBERS)),
    "histogram": st.dictionaries(st.sampled_from([0, 1, 2, 4, 2**40]), NUMBERS),
    "rows": st.sets(st.integers(0, 40), max_size=FIRST_ROWS).map(sorted).map(tuple),
}
# One or two statistics of each kind and way of merging are as good as all of them, and quicker.
ONES = {(f.kind, f.merge): f for f in reversed(FIELDS)}.values()
STATS = st.builds(Stats, **{f.name: BY_KIND[f.kind] for f in ONES})


@settings(deadline=None, max_examples=40)
@given(STATS)
def test_json_gives_the_same_back(stats):
    assert Stats.from_json(json.loads(json.dumps(stats.to_json()))) == stats


@settings(deadline=None, max_examples=40)
@given(STATS, STATS, STATS)
def test_the_order_of_merging_does_not_matter(a, b, c):
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(Stats()) == a


@settings(deadline=None, max_examples=40)
@given(STATS, STATS)
def test_merged_json_is_the_same_text_in_any_order(a, b):
    assert json.dumps(a.merge(b).to_json()) == json.dumps(b.merge(a).to_json())


def test_each_way_of_merging():
    a = Stats(tokens=2, longest_document_tokens=7, lossy_first_rows=(1, 30), document_lengths={0: 1, 4: 2})
    b = Stats(tokens=3, longest_document_tokens=5, lossy_first_rows=tuple(range(2, 12)), document_lengths={4: 1, 8: 1})

    merged = a.merge(b)

    assert merged.tokens == 5
    assert merged.longest_document_tokens == 7
    assert merged.lossy_first_rows == (1, *range(2, 11))
    assert merged.document_lengths == {0: 1, 4: 3, 8: 1}
    nested = Stats(lstrip_chars_by_token_and_whitespace={"<mask>": {"U+0020": 1}})
    other = Stats(lstrip_chars_by_token_and_whitespace={"<mask>": {"U+0020": 2, "U+000A": 1}, "<s>": {"U+0009": 1}})
    assert nested.merge(other).lstrip_chars_by_token_and_whitespace == {
        "<mask>": {"U+000A": 1, "U+0020": 3},
        "<s>": {"U+0009": 1},
    }


def test_a_total_over_files_has_no_row_numbers():
    files = [
        Stats(documents=1, lossy_first_rows=(0,)),
        Stats(documents=2, lossy_first_rows=(1,), lstrip_first_rows=(1,)),
    ]

    total = Stats.total(files)

    assert total == Stats(documents=3)
    assert Stats.total([]) == Stats()


@pytest.mark.parametrize(
    "change", ["missing", "unknown", "float", "text", "bool", "wrong-shape", "row", "bound", "inner"]
)
def test_json_that_is_no_record_of_statistics(change):
    data = Stats(documents=1).to_json()
    if change == "missing":
        del data["tokens"]
    else:
        name, value = {
            "unknown": ("words", 1),
            "float": ("tokens", 1.0),
            "text": ("tokens", "1"),
            "bool": ("tokens", True),
            "wrong-shape": ("lstrip_chars_by_token", [1]),
            "row": ("lossy_first_rows", ["1"]),
            "bound": ("document_lengths", {"many": 1}),
            "inner": ("lstrip_chars_by_token_and_whitespace", {"<mask>": 1}),
        }[change]
        data[name] = value
    with pytest.raises(InputError):
        Stats.from_json(data)


def test_table(tmp_path):
    stats = [
        Stats(
            documents=1, document_lengths={8: 1, 0: 2}, lstrip_chars_by_token={"b": 1, "a": 2}, lossy_first_rows=(4,)
        ),
        Stats(rstrip_chars_by_token_and_whitespace={"<mask>": {"U+00A0": 3}}),
    ]

    table = to_table(["x.parquet", "y.parquet"], stats)

    assert table.schema.names == ["file", *arrow_schema().names]
    assert table["file"].to_pylist() == ["x.parquet", "y.parquet"]
    assert table["document_lengths"][0].as_py() == [{"from": 0, "count": 2}, {"from": 8, "count": 1}]
    assert table["lstrip_chars_by_token"][0].as_py() == [{"name": "a", "count": 2}, {"name": "b", "count": 1}]
    assert table["rstrip_chars_by_token_and_whitespace"][1].as_py() == [
        {"name": "<mask>", "counts": [{"name": "U+00A0", "count": 3}]}
    ]
    pq.write_table(table, tmp_path / "stats.parquet")
    again = pq.read_table(tmp_path / "stats.parquet")
    assert again.equals(table)
    assert again.schema.equals(table.schema)
    assert again.schema.field("lstrip_chars").metadata[b"unit"] == b"character"
    assert to_table([], []).num_rows == 0


def test_each_statistic_is_fully_defined():
    assert len({field.name for field in FIELDS}) == len(FIELDS)
    for field in FIELDS:
        assert field.unit in {"document", "byte", "character", "token", "row", "packed row"}
        assert len(field.meaning) > 10
        assert (field.kind == "rows") == (field.merge == "first") == (field.unit == "row")


def test_names_of_whitespace():
    assert [whitespace_name(c) for c in " \t\n\u00a0\u3000"] == ["U+0020", "U+0009", "U+000A", "U+00A0", "U+3000"]


def test_the_page_in_the_docs_is_up_to_date():
    script = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make_statistics_page.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
