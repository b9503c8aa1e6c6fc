import random

import pyarrow as pa
import pytest

from tokbatch.errors import InputError
from tokbatch.job.inputs import Input
from tokbatch.job.sources import ReadOptions, open_source


def batches(kind="plain", count=6):
    rng = random.Random(1)
    found = []
    for number in range(count):
        texts = [rng.choice(["a", "b <mask>", None, f"text {number}"]) for _ in range(20 + number)]
        column = pa.array(texts)
        found.append(
            pa.record_batch({"n": list(range(len(texts))), "text": column.dictionary_encode()})
            if kind == "dictionary"
            else pa.record_batch({"n": list(range(len(texts))), "text": column})
        )
    return found


def write(path, given, form, **options):
    new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with new(path, given[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in given:
            writer.write_batch(batch)
    return path


def opened(path):
    return open_source(Input("arrow", "in.arrow", str(path)), ReadOptions())


def read(source, units=None, columns=None):
    return pa.Table.from_batches(source.batches(units or source.units(), columns, 300, 0))


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_record_batches_can_be_read_from_any_of_them_on(tmp_path, form, compression):
    given = batches()
    source = opened(write(tmp_path / "a", given, form, compression=compression))
    assert [unit.rows for unit in source.units()] == [batch.num_rows for batch in given]
    for index in range(len(given)):
        assert read(source, source.units()[index:]).equals(pa.Table.from_batches(given[index:]))
        assert read(source, source.units()[index : index + 1], ["n"]).column_names == ["n"]
    assert all(batch.nbytes <= 300 or batch.num_rows == 1 for batch in source.batches(source.units(), None, 300, 0))


@pytest.mark.parametrize("deltas", [False, True])
def test_dictionaries_that_change_on_the_way(tmp_path, deltas):
    given = batches("dictionary")
    source = opened(write(tmp_path / "a", given, "stream", emit_dictionary_deltas=deltas))
    expected = [batch["text"].to_pylist() for batch in given]
    for index in range(len(given)):
        texts = [batch["text"].to_pylist() for batch in source.batches(source.units()[index:], None, 1 << 20, 0)]
        assert texts == expected[index:]


@pytest.mark.parametrize("form", ["file", "stream"])
def test_no_cut_is_taken_for_the_end(tmp_path, form):
    data = write(tmp_path / "a", batches(count=3), form).read_bytes()
    step = 1 if form == "stream" else 7
    for length in [*range(0, len(data), 97), *range(len(data) - 64, len(data), step)]:
        (tmp_path / "cut").write_bytes(data[:length])
        with pytest.raises(InputError, match=r"in\.arrow"):
            opened(tmp_path / "cut").units()
    (tmp_path / "cut").write_bytes(data + data)
    with pytest.raises(InputError):
        opened(tmp_path / "cut").units()


def test_an_end_marker_that_is_missing_is_named(tmp_path):
    data = write(tmp_path / "a", batches(), "stream").read_bytes()
    (tmp_path / "a").write_bytes(data[:-8])
    assert pa.ipc.open_stream(data[:-8]).read_all().num_rows  # what pyarrow makes of it
    with pytest.raises(InputError, match="cut short after 6 record batches: the end marker of the stream is missing"):
        opened(tmp_path / "a").units()


def test_a_file_that_changes_after_the_plan_is_noticed(tmp_path):
    path = write(tmp_path / "a", batches(), "file")
    planned = opened(path)
    units = planned.units()
    data = bytearray(path.read_bytes())
    data[data.index(b"text 3")] = ord("T")
    path.write_bytes(data)
    assert opened(path).is_still(planned.size, planned.digest)
    with pytest.raises(InputError, match="has changed since the job was planned"):
        read(opened(path), units)
    assert opened(path).digest != planned.digest


def test_without_rows_and_without_batches(tmp_path):
    schema = pa.schema([("text", pa.string())])
    empty = pa.record_batch([pa.array([], pa.string())], schema=schema)
    source = opened(write(tmp_path / "a", [empty], "stream"))
    assert [unit.rows for unit in source.units()] == [0]
    with pa.ipc.new_file(tmp_path / "b", schema):
        pass
    source = opened(tmp_path / "b")
    assert list(source.units()) == []
    assert list(source.batches([], None, 100, 0)) == []
