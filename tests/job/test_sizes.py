"""Batches are bounded by the texts that they hold, however Arrow or Parquet keep them."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokbatch.job.inputs import Input
from tokbatch.job.sizes import bounded, text_bytes
from tokbatch.job.sources import ReadOptions, open_source

LONG, LIMIT = 50_000, 400_000
TEXTS = [f"{number} " * (LONG // 2) for number in range(3)]
NAMES = [0, 1, None, 2] * 500  # 75 MB of texts


def dictionary(values=pa.large_string()):  # noqa: B008
    return pa.DictionaryArray.from_arrays(pa.array(NAMES, pa.int32()), pa.array(TEXTS, values))


def views():
    return pa.array([f"{name} {'x' * 3000}" for name in NAMES], pa.string_view())


def runs():
    ends = pa.array(range(100, 2001, 100), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array((TEXTS * 7)[:20]))


def nested():
    fields = [views(), pa.array(range(2000)), dictionary()]
    return pa.StructArray.from_arrays(fields, names=["v", "n", "d"])


def size_of(piece):
    column = piece.column(0)
    return sum(len(str(value)) for value in column.to_pylist())


@pytest.mark.parametrize("column", [dictionary(), dictionary(pa.string()), views(), runs(), nested()], ids=str)
def test_a_batch_holds_few_bytes_of_text_and_not_too_few(column):
    batch = pa.record_batch([pa.concat_arrays([column.slice(1999), column]).slice(1)], names=["text"])
    pieces = list(bounded(batch, LIMIT))
    assert sum(piece.num_rows for piece in pieces) == 2000
    assert [piece.column(0).to_pylist() for piece in pieces[:2]] == [
        batch.column(0).slice(0, pieces[0].num_rows).to_pylist(),
        batch.column(0).slice(pieces[0].num_rows, pieces[1].num_rows).to_pylist(),
    ]
    sizes = [size_of(piece) for piece in pieces]
    assert max(sizes) <= 1.2 * LIMIT
    # Two neighbours do not fit into one batch: nothing is cut to single rows for no reason.
    assert all(left + right > LIMIT / 3 for left, right in itertools.pairwise(sizes))


@settings(deadline=None)
@given(st.lists(st.none() | st.text(max_size=40), max_size=40), st.integers(0, 5))
def test_bytes_of_texts_are_counted_in_slices(texts, start):
    expected = sum(len(text.encode()) for text in texts[start:] if text is not None)
    present = sum(text is not None for text in texts[start:])
    assert text_bytes(pa.array(texts, pa.string_view()).slice(start)) == expected + 16 * present
    assert text_bytes(pa.array(texts, pa.string()).dictionary_encode().slice(start)) == expected


def read(path, kind, batch_bytes, columns=("text",)):
    source = open_source(Input(kind, "in", str(path)), ReadOptions())
    return list(source.batches(source.units(), columns, batch_bytes, 0))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_of_parquet_that_come_again_and_again(tmp_path, kind):
    texts = [None if name is None else TEXTS[name] for name in NAMES]
    table = pa.table({"text": pa.array(texts, kind), "n": range(len(texts))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < LIMIT
    batches = read(tmp_path / "a.parquet", "parquet", LIMIT, ["n", "text"])
    assert all(batch.schema.field("text").type == kind for batch in batches)
    assert [text for batch in batches for text in batch["text"].to_pylist()] == texts
    assert [n for batch in batches for n in batch["n"].to_pylist()] == list(range(2000))
    assert max(sum(len(text or "") for text in batch["text"].to_pylist()) for batch in batches) <= LIMIT
    assert len(batches) < 2 * sum(len(text or "") for text in texts) / LIMIT * 2


def test_row_groups_with_and_without_repeated_texts(tmp_path):
    texts = [TEXTS[0]] * 300 + [f"{number} of its own, and of some length" for number in range(300)] + ["ab"] * 300
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=300)
    batches = read(tmp_path / "a.parquet", "parquet", LIMIT)
    assert [text for batch in batches for text in batch["text"].to_pylist()] == texts
    assert {batch.schema.field("text").type for batch in batches} == {pa.string()}


def test_a_dictionary_of_arrow_is_planned_by_its_texts(tmp_path):
    batch = pa.record_batch([dictionary()], names=["text"])
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    (unit,) = open_source(Input("arrow", "in", str(tmp_path / "a.arrow")), ReadOptions()).units()
    assert unit.text_bytes == sum(len(TEXTS[name]) for name in NAMES if name is not None)
    batches = read(tmp_path / "a.arrow", "arrow", LIMIT)
    assert len(batches) >= unit.text_bytes / LIMIT


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_texts_within_structs_that_come_again_and_again(tmp_path, kind):
    texts = [None if name is None else TEXTS[name] for name in NAMES]
    inner = pa.StructArray.from_arrays([pa.array(texts, kind), pa.array(range(2000))], names=["body", "n"])
    outer = pa.StructArray.from_arrays([inner], names=["inner"])
    pq.write_table(pa.table({"text": outer}), tmp_path / "a.parquet")
    batches = read(tmp_path / "a.parquet", "parquet", LIMIT)
    assert pa.Table.from_batches(batches)["text"].to_pylist() == outer.to_pylist()
    assert {batch.schema.field("text").type for batch in batches} == {outer.type}
    assert max(batch.nbytes for batch in batches) <= 1.2 * LIMIT
