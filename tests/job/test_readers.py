"""What a job writes is read by the libraries that people read it with."""

import random

import pyarrow as pa
import pytest

from tokbatch.job.config import OutputConfig
from tokbatch.job.packing import Packer, PackingConfig, packed_schema
from tokbatch.job.sinks import build_sink
from tokbatch.job.storage import Storage

RNG = random.Random(4)
IDS = [None if RNG.random() < 0.1 else [RNG.randrange(60_000) for _ in range(RNG.randrange(9))] for _ in range(200)]


def write(folder, form="parquet", id_type="int32", packed=False):
    sink = build_sink(OutputConfig("out", format=form, id_type=id_type), id_type)
    schema = sink.part_schema(pa.schema([("id", pa.string()), ("input_ids", pa.list_(pa.int32()))]))
    ids = pa.array(IDS, schema.field("input_ids").type)
    batches = [pa.record_batch([pa.array([str(i) for i in range(200)]), ids], schema=schema)]
    if packed:
        schema = packed_schema(schema, "input_ids", 16)
        packer = Packer(PackingConfig(16, "<pad>"), schema, 7)
        batches = [*packer.add(ids, 0), *packer.finish()]
    storage = Storage(folder / "out")
    storage.prepare()
    writer = sink.open_part([storage.open_partial(f"p{suffix}") for suffix in sink.suffixes], schema, {})
    for batch in batches:
        writer.write(batch)
    writer.close()
    path = storage.data / f"p{sink.suffixes[0]}"
    storage.commit_part(f"p{sink.suffixes[0]}", path.name)
    return path, pa.Table.from_batches(batches)["input_ids"].to_pylist()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("id_type", ["int32", "uint16"])
def test_datasets(tmp_path, id_type, packed):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    path, expected = write(tmp_path, id_type=id_type, packed=packed)
    loaded = datasets.load_dataset("parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"))["train"]
    assert loaded.features["input_ids"] == datasets.List(datasets.Value(id_type), length=16 if packed else -1)
    assert loaded["input_ids"][:] == expected


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("id_type", ["int32", "uint16"])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_polars(tmp_path, form, id_type, packed):
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install .[test-readers]")
    path, expected = write(tmp_path, form, id_type, packed)
    read = polars.read_parquet if form == "parquet" else polars.read_ipc
    table = read(str(path))
    assert table["input_ids"].to_list() == expected


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("id_type", ["int32", "uint16"])
def test_duckdb(tmp_path, id_type, packed):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install .[test-readers]")
    path, expected = write(tmp_path, id_type=id_type, packed=packed)
    rows = duckdb.sql(f"select input_ids from '{path.parent}/*.parquet'").fetchall()
    assert [None if ids is None else list(ids) for (ids,) in rows] == expected
