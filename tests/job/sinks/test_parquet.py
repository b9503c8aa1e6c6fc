import hashlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokbatch.job.sinks import parquet
from tokbatch.job.sinks.parquet import ParquetSink
from tokbatch.job.storage import Storage

KEPT = pa.schema(
    [
        ("id", pa.string()),
        ("meta", pa.struct([("tags", pa.list_(pa.string())), ("n", pa.int8())])),
        ("input_ids", pa.list_(pa.int32())),
    ]
)


def sink(id_type="int32", compression="zstd"):
    return ParquetSink("input_ids", id_type, compression)


def batch(rows, seed, id_type="int32"):
    rng = random.Random(seed)
    ids = [
        None if rng.random() < 0.1 else [rng.randrange(60_000) for _ in range(rng.randrange(9))] for _ in range(rows)
    ]
    meta = [None if rng.random() < 0.1 else {"tags": ["a", None], "n": rng.randrange(9)} for _ in range(rows)]
    schema = sink(id_type).part_schema(KEPT)
    columns = [[str(rng.random()) for _ in range(rows)], meta, ids]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def write(tmp_path, batches, compression="zstd", schema=None):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    file = storage.open_partial("p.parquet")
    schema = schema or batches[0].schema
    writer = sink(compression=compression).open_part([file], schema, {"tokbatch.version": "1"})
    for each in batches:
        writer.write(each)
    writer.close()
    assert file.closed
    path = storage.partial / "p.parquet"
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert file.size == path.stat().st_size
    return path


@pytest.mark.parametrize("id_type", ["int32", "uint16"])
@pytest.mark.parametrize("compression", ["zstd", "lz4", "snappy", "gzip", "brotli", "none"])
def test_what_is_written_is_read(tmp_path, id_type, compression):
    batches = [batch(50, 1, id_type), batch(0, 2, id_type), batch(7, 3, id_type)]
    path = write(tmp_path, batches, compression)
    assert pq.read_table(path).replace_schema_metadata(None).equals(pa.Table.from_batches(batches))
    metadata = pq.read_metadata(path)
    assert metadata.metadata[b"tokbatch.version"] == b"1"
    columns = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    (ids,) = [column for column in columns if column.path_in_schema == "input_ids.list.element"]
    assert "BYTE_STREAM_SPLIT" in ids.encodings
    assert not ids.is_stats_set
    for column in columns:
        if column is not ids and column.path_in_schema != "input_ids.list.element":
            assert "RLE_DICTIONARY" in column.encodings
            assert column.is_stats_set


def test_row_groups_are_cut_by_size(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 3000)
    batches = [batch(20, seed) for seed in range(12)]
    path = write(tmp_path, batches)
    assert 1 < pq.read_metadata(path).num_row_groups < 12
    assert pq.read_table(path).replace_schema_metadata(None).equals(pa.Table.from_batches(batches))


def test_a_part_without_rows(tmp_path):
    path = write(tmp_path, [], schema=sink().part_schema(KEPT))
    assert pq.read_table(path).num_rows == 0
    assert pq.read_schema(path).names == KEPT.names


def test_a_writer_that_is_abandoned_leaves_no_whole_file(tmp_path):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    file = storage.open_partial("p.parquet")
    writer = sink().open_part([file], batch(1, 1).schema, {})
    writer.write(batch(3, 1))
    writer.abandon()
    assert file.closed
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(storage.partial / "p.parquet")


def test_the_data_folder_loads_with_datasets(tmp_path):
    import datasets

    datasets.disable_progress_bars()
    path = write(tmp_path, [batch(50, 1)])
    loaded = datasets.load_dataset("parquet", data_dir=str(path.parent), cache_dir=str(tmp_path / "cache"))["train"]
    assert loaded.features["input_ids"] == datasets.List(datasets.Value("int32"))
    assert loaded["input_ids"] == batch(50, 1).column(2).to_pylist()
