import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config, write_corpus
from tokbatch.job import load_config, read_manifest, run_job, verify_output
from tokbatch.job.parts import PartsWriter
from tokbatch.job.sinks.parquet import ParquetSink
from tokbatch.job.storage import Storage

SINK = ParquetSink("input_ids", "int32", "none")
SCHEMA = SINK.part_schema(pa.schema([("input_ids", pa.list_(pa.int32()))]))


def write(folder, batches, max_bytes):
    storage = Storage(folder)
    storage.prepare()
    with PartsWriter(storage, SINK, SCHEMA, {}, "000000-0", 40, max_bytes) as writer:
        for batch in batches:
            writer.write(batch)
    return storage, writer.parts


def batch(seed, rows=300):
    rng = random.Random(seed)
    ids = [[rng.randrange(60_000) for _ in range(rng.randrange(200))] for _ in range(rows)]
    return pa.record_batch([pa.array(ids, SCHEMA.field(0).type)], schema=SCHEMA)


def test_no_part_is_larger_than_its_limit_and_no_row_is_lost(tmp_path):
    batches = [batch(seed) for seed in range(8)]
    storage, parts = write(tmp_path, batches, 200_000)
    assert len(parts) > 3
    tables = [pq.read_table(storage.partial / part.files[0].partial) for part in parts]
    assert pa.concat_tables(tables).replace_schema_metadata(None).equals(pa.Table.from_batches(batches))
    row = 40
    for part, table in zip(parts, tables, strict=True):
        (file,) = part.files
        assert 100_000 < file.size <= 200_000 or part is parts[-1]
        assert file.size == (storage.partial / file.partial).stat().st_size
        assert (part.first_row, part.rows) == (row, table.num_rows)
        assert part.tokens == sum(map(len, table["input_ids"].to_pylist()))
        row += part.rows


def test_a_row_that_is_larger_than_the_limit_has_a_part_to_itself(tmp_path):
    long = pa.record_batch([pa.array([[1], [7] * 50_000, [2]], SCHEMA.field(0).type)], schema=SCHEMA)
    _, parts = write(tmp_path, [long], 65_536)
    assert [part.rows for part in parts] == [1, 1, 1]


def test_without_rows_there_is_one_part(tmp_path):
    _, (part,) = write(tmp_path, [batch(1, 0)], 65_536)
    assert (part.rows, part.tokens) == (0, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_with_a_limit(tmp_path, workers):
    write_corpus(tmp_path, "a.parquet", 2000, row_group=1000)
    config = write_config(tmp_path, output__max_part_bytes=8192, run__shard_bytes=10_000)
    run_job(load_config(config, [f"run.workers={workers}"]))
    manifest = read_manifest(tmp_path / "out")
    assert [part["units"] for part in manifest["parts"]].count([0, 1]) > 1
    assert all(part["bytes"] <= 8192 for part in manifest["parts"])
    assert manifest["parts"][0]["path"] == "data/00000-a-00000-000.parquet"
    found = verify_output(tmp_path / "out", 1.0)
    assert (found.problems, found.sampled_rows) == ([], 2000)
    before = files_below(tmp_path / "out")
    records = sorted((tmp_path / "out/.tokbatch/shards").iterdir())
    assert run_job(load_config(config), resume=True).already_done
    records[0].unlink()
    assert not run_job(load_config(config, ["run.workers=2"]), resume=True).already_done
    assert files_below(tmp_path / "out") == before
