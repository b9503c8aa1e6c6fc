"""What an input looks like from the job's side, whatever it is: a schema, runs of rows, and batches of those.

`parquet_input.py` and `dataset_input.py` give it; other formats join here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from tokbatch.job.inputs import Input


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest run of rows that can be read on its own: a row group. `text_bytes` is an estimate."""

    rows: int
    text_bytes: int


class Source(Protocol):
    """An opened input.

    `size` is in bytes; `digest` changes with the content as far as can be told without reading all of it.
    """

    schema: pa.Schema
    size: int
    digest: str

    def units(self, text_column: str) -> list[Unit]:
        """Give the runs of rows, in order."""

    def batches(
        self, units: range, columns: Sequence[str] | None, batch_bytes: int, first_row: int
    ) -> Iterator[pa.RecordBatch]:
        """Read some units (the first of which starts at `first_row`) in batches of at most `batch_bytes`.

        A single row may be larger. `columns` None reads all. Raises `InputError`.
        """


def open_source(source: Input) -> Source:
    """Open an input. Raises `InputError` for what cannot be read."""
    if source.kind == "dataset":
        from tokbatch.job.dataset_input import DatasetSource

        return DatasetSource(source)
    from tokbatch.job.parquet_input import ParquetSource

    return ParquetSource(source)


def open_source_again(source: Input) -> Source:
    """Open an input of which shard after shard is read: a dataset of thousands of files takes long, so it stays open.

    A file is opened anew each time, and so is never read by a footer that is no longer its own.
    """
    return open_dataset_once(source) if source.kind == "dataset" else open_source(source)


open_dataset_once = lru_cache(maxsize=2)(open_source)


def bounded(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch into halves until each has at most `batch_bytes`, or a single row. Nothing is copied."""
    if batch.num_rows <= 1 or batch.nbytes <= batch_bytes:
        yield batch
        return
    half = batch.num_rows // 2
    yield from bounded(batch.slice(0, half), batch_bytes)
    yield from bounded(batch.slice(half), batch_bytes)
