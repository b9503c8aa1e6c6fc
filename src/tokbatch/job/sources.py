"""What an input looks like from the job's side, whatever it is: a schema, units of rows, and batches of those.

A source is one file a format: `parquet_input.py`, `arrow_input.py`, `json_input.py`, `text_input.py` (with what the
last two share in `line_input.py`) and `dataset_input.py`. The plan asks for units, which takes as long as the format
needs (a footer, or all of a text file once); a worker opens the source again and reads some of the units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, Protocol, TypeAlias

import pyarrow as pa

from tokbatch.errors import EncodeError, InputError
from tokbatch.job.inputs import Input

OnBadRow: TypeAlias = Callable[[int, str], object] | None
"""Hears of a row of the file that holds no document, and why; None: such a row is an error."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest run of rows that can be read on its own: a row group, a piece of a text file.

    `text_bytes` is an estimate. `place` says where it is, in the terms of its source; `checksum` is that of its bytes,
    where the file itself has none. `by_rows`: a large one may be done in pieces, by reading past the rows before
    (see `reading.py`), which costs little beside encoding.
    """

    rows: int
    text_bytes: int
    place: tuple[Any, ...] = ()
    checksum: int = 0
    by_rows: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a source must know of the config: where the texts are, and for text formats which columns there shall be.

    `types` are those of columns of JSON, where the first lines do not tell.
    """

    text_column: str = "text"
    columns: Literal["all"] | tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """An opened input.

    `size` is in bytes; `digest` changes with the content, as far as can be told from what the plan reads of it.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    @property
    def size(self) -> int:
        """Bytes on the disk."""

    @property
    def digest(self) -> str:
        """SHA-256 of the file, or of what stands for its content."""

    def units(self) -> Sequence[Unit]:
        """Give the runs of rows, in order. Raises `InputError`."""

    def is_still(self, size: int, digest: str) -> bool:
        """Tell whether the input is the one that was planned, without reading all of it: `batches` checks the rest."""

    def batches(
        self,
        units: Sequence[Unit],
        columns: Sequence[str] | None,
        batch_bytes: int,
        first_row: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read some units (the first of which starts at `first_row`) in batches of at most `batch_bytes`.

        A single row may be larger. `columns` None reads all. Raises `InputError`, and `EncodeError` for a bad row.
        With `on_bad_row`, that row is there, with an empty text, and has been told of before its batch comes.
        """


class ScannedSource:
    """What the sources share whose content is read once for the plan, when that asks for units or the digest."""

    @cached_property
    def _scanned(self) -> tuple[list[Unit], str]:
        """Read all: the units, and the digest."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """See `Source`."""
        return self._scanned[1]

    def units(self) -> Sequence[Unit]:
        """See `Source`."""
        return self._scanned[0]


def open_source(source: Input, options: ReadOptions | None = None) -> Source:
    """Open an input. Raises `InputError` for what cannot be read."""
    options = options or ReadOptions()
    if source.kind == "dataset":
        from tokbatch.job.dataset_input import DatasetSource

        return DatasetSource(source, options)
    if source.kind == "arrow":
        from tokbatch.job.arrow_input import ArrowSource

        return ArrowSource(source, options)
    if source.kind == "jsonl":
        from tokbatch.job.json_input import JsonSource

        return JsonSource(source, options)
    if source.kind == "text":
        from tokbatch.job.text_input import TextSource

        return TextSource(source, options)
    if source.kind == "documents":
        from tokbatch.job.text_input import DocumentsSource

        return DocumentsSource(source, options)
    from tokbatch.job.parquet_input import ParquetSource

    return ParquetSource(source, options)


def open_source_again(source: Input, options: ReadOptions | None = None) -> Source:
    """Open an input of which shard after shard is read: a dataset of thousands of files takes long, so it stays open.

    A file is opened anew each time, and so is never read by a footer that is no longer its own.
    """
    if source.kind != "dataset":
        return open_source(source, options)
    return open_dataset_once(source, (options or ReadOptions()).text_column)


@lru_cache(maxsize=2)
def open_dataset_once(source: Input, text_column: str) -> Source:
    """Open a dataset, or give the one that is open."""
    return open_source(source, ReadOptions(text_column))


def bad_row(row: int, what: str, on_bad_row: OnBadRow, place: str = "row", hint: str | None = None) -> None:
    """Tell of a bad row, or raise. People count lines from 1 (`place` "line"), and rows from 0."""
    number = row + 1 if place == "line" else row
    if on_bad_row is None:
        raise EncodeError(what, row=row, where=f"{place} {number}", hint=hint)
    on_bad_row(row, f"{place} {number}: {what}")


def changed(name: str) -> InputError:
    """Give the error for an input that is no longer what the plan saw."""
    return InputError("the file has changed since the job was planned", where=name, code="input-changed")


def written_to(name: str) -> InputError:
    """Give the error for a file of which no more is known than that somebody has written to it."""
    return InputError(
        "the file has been written to since the job was planned",
        where=name,
        hint="nothing of it is kept; --resume reads all of it anew",
        code="input-written",
    )


class RowCursor:
    """The batches of some units, read from front to back; they have the rows `row` to `end`. One can stop anywhere."""

    def __init__(self, batches: Iterator[pa.RecordBatch], row: int, end: int):
        self.row, self.end = row, end
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def rows(self, first: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Give the rows `first` to `stop`, which begin at `row` or later.

        What comes after `stop` is not read, but for the rest of a batch; but where that is the end of the units, their
        source is asked for more until it has none, so that it can say what it only knows then: that the file has more
        rows than the plan, or has changed. Raises `InputError`.
        """
        while self.row < stop and first < stop:
            batch, self._rest = self._rest, None
            if batch is None and (batch := next(self._batches, None)) is None:
                return
            begin, last = max(first - self.row, 0), min(stop - self.row, batch.num_rows)
            self._rest = batch.slice(last) if last < batch.num_rows else None
            self.row += last
            if begin < last:
                yield batch.slice(begin, last - begin)
        if stop == self.end and first < stop:
            rest = [self._rest] if self._rest is not None else []
            more = sum(batch.num_rows for batch in (*rest, *self._batches))
            if more:
                raise InputError(f"{more} rows more than the plan says", where=f"row {stop}")


def rows_of(units: Sequence[Unit]) -> int:
    """Give the number of rows that some units have together."""
    return sum(unit.rows for unit in units)
