"""The flat formats and Arrow IPC, read back by readers of the tests' own and by ours."""

import importlib.util
import itertools
import json
import random
import struct
import sys
import types
from array import array

import pyarrow as pa
import pytest

from tokbatch.errors import InputError
from tokbatch.job.config import OutputConfig
from tokbatch.job.sinks import build_sink
from tokbatch.job.sinks.ids import flat_ids, id_list_type, without_nulls
from tokbatch.job.storage import Storage

FORMATS = ["bin", "megatron", "arrow"]


def lists(seed, rows, largest):
    rng = random.Random(seed)
    found = [[rng.randrange(largest + 1) for _ in range(rng.randrange(7))] for _ in range(rows)]
    return [None if rng.random() < 0.15 else ids for ids in found] + [[largest], [0]]


def write(folder, form, id_type, columns):
    sink = build_sink(OutputConfig("out", format=form, id_type=id_type), id_type)
    schema = sink.part_schema(pa.schema([("input_ids", pa.list_(pa.int32()))]))
    storage = Storage(folder)
    storage.prepare()
    names = [f"p{suffix}" for suffix in sink.suffixes]
    writer = sink.open_part([storage.open_partial(name) for name in names], schema, {"tokbatch.version": "1"})
    for column in columns:
        writer.write(pa.record_batch([column], schema=schema))
    writer.close()
    return sink, [storage.partial / name for name in names]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("id_type", "largest"), [("uint16", 65_535), ("int32", 2**31 - 1), ("int32", 200_000)])
def test_what_is_written_is_read(tmp_path, form, id_type, largest):
    given = [lists(seed, 30, largest) for seed in range(4)] + [[]]
    # Slices, with something beneath a null: neither may show.
    columns = [pa.array([[9], *ids], id_list_type(id_type)).slice(1) for ids in given]
    sink, paths = write(tmp_path, form, id_type, columns)
    read = [ids for batch in sink.read_part(paths) for ids in batch["input_ids"].to_pylist()]
    expected = [ids for own in given for ids in own]
    assert read == (expected if sink.keeps_nulls else [ids or [] for ids in expected])
    assert all(batch.schema.field("input_ids").type == id_list_type(id_type) for batch in sink.read_part(paths))


def read_megatron(path):
    """Read an indexed dataset as its format is described; gives the ids of each sequence, and the document indices."""
    index = path.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, documents = struct.unpack("<QBQQ", index[9:34])
    assert version == 1
    lengths = struct.unpack(f"<{sequences}i", index[34 : 34 + 4 * sequences])
    pointers = struct.unpack(f"<{sequences}q", index[34 + 4 * sequences : 34 + 12 * sequences])
    begins = struct.unpack(f"<{documents}q", index[34 + 12 * sequences :])
    letter, width = {4: ("i", 4), 8: ("H", 2)}[code]
    data = path.with_suffix(".bin").read_bytes()
    return [
        list(struct.unpack(f"<{length}{letter}", data[place : place + width * length]))
        for place, length in zip(pointers, lengths, strict=True)
    ], begins


@pytest.mark.parametrize("id_type", ["uint16", "int32"])
def test_an_independent_reader_of_megatron(tmp_path, id_type):
    given = [[1, 2], None, [65_535], [], [3]]
    _, paths = write(tmp_path, "megatron", id_type, [pa.array(given, id_list_type(id_type))])
    sequences, begins = read_megatron(paths[0])
    assert sequences == [[1, 2], [65_535], [3]]
    assert begins == (0, 1, 1, 2, 2, 3)
    documents = [sequences[start:stop] for start, stop in itertools.pairwise(begins)]
    assert documents == [[ids] if ids else [] for ids in given]


def megatron_reader():
    """Import the reader of megatron-core; skip where it, or torch, is not installed."""
    pytest.importorskip("torch", reason="megatron-core needs torch, which is not installed")
    pytest.importorskip("megatron", reason="megatron-core is not installed")
    name = "megatron.core.datasets.indexed_dataset"
    try:
        return importlib.import_module(name)
    except ImportError:
        # The package's own start asks for more of torch than the reader does. So the reader is imported without it.
        for module in [module for module in sys.modules if module.startswith("megatron.")]:
            del sys.modules[module]
        folders = importlib.util.find_spec("megatron").submodule_search_locations
        for package in ("core", "core/datasets"):
            module = types.ModuleType(f"megatron.{package.replace('/', '.')}")
            module.__path__ = [f"{folder}/{package}" for folder in folders]
            sys.modules[module.__name__] = module
    try:
        importlib.import_module("megatron.core.parallel_state")
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"the reader of megatron-core does not run here: {error}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("id_type", "largest"), [("uint16", 65_535), ("int32", 2**31 - 1)])
def test_the_reader_of_megatron_core(tmp_path, id_type, largest):
    reader = megatron_reader()
    given = lists(5, 100, largest)
    _, paths = write(tmp_path, "megatron", id_type, [pa.array(given, id_list_type(id_type))])
    dataset = reader.IndexedDataset(str(paths[0].with_suffix("")))
    sequences = [ids for ids in given if ids]
    assert len(dataset) == len(sequences)
    assert [dataset[index].tolist() for index in range(len(dataset))] == sequences
    assert [row.tolist() for row in dataset[:]] == sequences
    assert str(dataset[0].dtype) == id_type
    assert dataset.sequence_lengths.tolist() == [len(ids) for ids in sequences]
    assert dataset.get(3, offset=1, length=len(sequences[3]) - 1).tolist() == sequences[3][1:]
    bounds = itertools.pairwise(dataset.document_indices.tolist())
    assert [[dataset[i].tolist() for i in range(start, stop)] for start, stop in bounds] == [
        [ids] if ids else [] for ids in given
    ]


@pytest.mark.parametrize("id_type", ["uint16", "int32"])
def test_an_independent_reader_of_flat_ids(tmp_path, id_type):
    given = lists(6, 50, 65_535)
    _, (ids, offsets, header) = write(tmp_path, "bin", id_type, [pa.array(given, id_list_type(id_type))])
    described = json.loads(header.read_text())
    assert (described["documents"], described["tokens"]) == (len(given), sum(len(i or []) for i in given))
    assert (described["id_type"], described["byte_order"], described["tokbatch.version"]) == (id_type, "little", "1")
    flat = array("H" if id_type == "uint16" else "i", ids.read_bytes())
    places = struct.unpack(f"<{len(given) + 1}Q", offsets.read_bytes())
    assert [flat[start:stop].tolist() for start, stop in itertools.pairwise(places)] == [i or [] for i in given]


@pytest.mark.parametrize("form", FORMATS)
def test_a_part_without_rows(tmp_path, form):
    sink, paths = write(tmp_path, form, "int32", [])
    assert sum(batch.num_rows for batch in sink.read_part(paths)) == 0


@pytest.mark.parametrize(("form", "file"), [("bin", 0), ("bin", 1), ("megatron", 0), ("megatron", 1)])
def test_files_that_do_not_fit_each_other(tmp_path, form, file):
    sink, paths = write(tmp_path, form, "int32", [pa.array([[1, 2], [3]], id_list_type("int32"))])
    data = paths[file].read_bytes()
    for broken in (data[:-4], data + data[-8:], data[:-8] + b"\x07" * 8 if file else data[:4]):
        paths[file].write_bytes(broken)
        with pytest.raises(InputError):
            list(sink.read_part(paths))


def test_other_columns_have_no_place():
    schema = pa.schema([("n", pa.int64()), ("input_ids", pa.list_(pa.int32()))])
    for form in ("bin", "megatron"):
        with pytest.raises(InputError, match='no place for the column "n"'):
            build_sink(OutputConfig("out", format=form), "int32").part_schema(schema)


def test_dictionaries_in_arrow_are_written_out():
    sink = build_sink(OutputConfig("out", format="arrow"), "int32")
    ids = ("input_ids", pa.list_(pa.int32()))
    schema = sink.part_schema(pa.schema([("d", pa.dictionary(pa.int8(), pa.string())), ids]))
    assert schema.field("d").type == pa.string()
    nested = pa.struct([("d", pa.dictionary(pa.int8(), pa.string()))])
    with pytest.raises(InputError, match="has a dictionary inside"):
        sink.part_schema(pa.schema([("s", nested), ids]))


def test_flat_ids_of_a_slice_with_nulls():
    column = pa.array([[9], [1, 2], None, [], [3]], id_list_type("uint16")).slice(1)
    data, lengths = flat_ids(column)
    assert (bytes(data), lengths.to_pylist()) == (b"\x01\x00\x02\x00\x03\x00", [2, 0, 0, 1])
    assert without_nulls(column).to_pylist() == [[1, 2], [], [], [3]]
