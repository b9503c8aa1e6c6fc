"""A worker that goes from one piece of a row group to the next: the same rows as ever, and nothing read twice."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import write_corpus
from tokbatch.job.inputs import Input
from tokbatch.job.parquet_input import ParquetSource
from tokbatch.job.plan import plan_shards
from tokbatch.job.reading import RowReader
from tokbatch.job.sources import ReadOptions, Unit
from tokbatch.job.worker import Task


class Counted:
    """A source of numbered rows that counts what is read from it."""

    def __init__(self, batch_rows):
        self.batch_rows = batch_rows
        self.begun = self.rows_read = 0

    def batches(self, units, columns, batch_bytes, first_row, on_bad_row=None):
        self.begun += 1
        row, stop = first_row, first_row + sum(unit.rows for unit in units)
        while row < stop:
            rows = min(self.batch_rows, stop - row)
            self.rows_read += rows
            yield pa.record_batch([pa.array(range(row, row + rows))], names=["n"])
            row += rows


def task_of(shard, units, rows=None, digest="d"):
    return Task(shard, Input("parquet", "a", "/a"), 1, digest, units[shard.start : shard.stop], "p", rows=rows)


def numbers(reader, source, task):
    return [n for batch in reader.rows(source, task, ["n"], 1 << 20) for n in batch["n"].to_pylist()]


@settings(deadline=None)
@given(st.data())
def test_rows_are_those_of_the_task_whatever_was_read_before(data):
    units = tuple(
        Unit(rows, 100 * rows, by_rows=True) for rows in data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=4))
    )
    shards = plan_shards([units], data.draw(st.integers(200, 6000)))
    source, reader = Counted(data.draw(st.integers(1, 20))), RowReader()
    for shard in data.draw(st.lists(st.sampled_from(shards), max_size=20)):
        first, stop = shard.file_rows
        probe = None
        if data.draw(st.booleans()):
            first, stop = sorted((data.draw(st.integers(first, stop)), data.draw(st.integers(first, stop))))
            probe = (first, stop)
        assert numbers(reader, source, task_of(shard, units, probe)) == list(range(first, stop))


def test_the_pieces_of_a_row_group_are_read_once():
    units = (Unit(1000, 100_000, by_rows=True),)
    shards = plan_shards([units], 12_500)
    assert len(shards) == 8
    source, reader = Counted(7), RowReader()
    for shard in shards:
        numbers(reader, source, task_of(shard, units))
    assert (source.begun, source.rows_read) == (1, 1000)
    # Two workers, each with every other piece: two times all rows.
    source, readers = Counted(7), itertools.cycle([RowReader(), RowReader()])
    for shard in shards:
        numbers(next(readers), source, task_of(shard, units))
    assert source.begun == 2
    assert source.rows_read <= 2000


def test_another_input_or_an_earlier_row_begins_anew():
    units = (Unit(100, 100_000, by_rows=True),)
    shards = plan_shards([units], 25_000)
    source, reader = Counted(10), RowReader()
    numbers(reader, source, task_of(shards[0], units))
    numbers(reader, source, task_of(shards[1], units, digest="another"))
    numbers(reader, source, task_of(shards[0], units, digest="another"))
    assert source.begun == 3


def test_what_failed_is_not_gone_on_with():
    units = (Unit(100, 100_000, by_rows=True),)
    shards = plan_shards([units], 25_000)
    source, reader = Counted(10), RowReader()
    next(reader.rows(source, task_of(shards[0], units), ["n"], 1 << 20))  # and then the transform fails
    assert numbers(reader, source, task_of(shards[0], units)) == list(range(25))
    assert source.begun == 2


@pytest.mark.parametrize("batch_bytes", [200, 1 << 20])
def test_batches_of_a_parquet_file_are_the_same_either_way(tmp_path, batch_bytes):
    path = write_corpus(tmp_path, "a.parquet", 500, row_group=500)
    source = ParquetSource(Input("parquet", "a", str(path)), ReadOptions())
    units = tuple(source.units())
    shards = plan_shards([units], units[0].text_bytes // 6)
    assert len(shards) == 6
    going_on = RowReader()
    for shard in shards:
        task = task_of(shard, units)
        together = list(going_on.rows(source, task, ["id", "text"], batch_bytes))
        alone = list(RowReader().rows(source, task, ["id", "text"], batch_bytes))
        assert together == alone
