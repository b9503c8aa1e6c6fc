"""What a worker reads: the rows of a shard, and after them those of the next shard of the same row group.

A row group cannot be read from its middle. So where a plan cuts one into pieces, a worker that did a piece stays where
it is in the row group; if a later piece of it comes next, nothing is read twice. Batches are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tokbatch.job.sources import OnBadRow, RowCursor, Source, Unit, rows_of

if TYPE_CHECKING:
    from tokbatch.job.worker import Task


class RowReader:
    """Read the rows of one task after another. What is open between two of them is at most one row group."""

    def __init__(self) -> None:
        self._open: tuple[Any, RowCursor] | None = None

    def rows(
        self,
        source: Source,
        task: Task,
        columns: Sequence[str],
        batch_bytes: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows of a task, in batches of at most `batch_bytes` unless a single row is larger."""
        shard = task.shard
        first, stop = task.rows or shard.file_rows
        begin = shard.first_row - shard.skip
        key = (task.input, task.input_digest, task.input_stamp, begin, task.units, tuple(columns), batch_bytes)
        cursor, self._open = self._taken(key, first), None
        if cursor is None:
            batches = source.batches(task.units, columns, batch_bytes, begin, on_bad_row)
            cursor = RowCursor(batches, begin, begin + rows_of(task.units))
        yield from cursor.rows(first, stop)
        if _may_go_on(task.units) and stop < cursor.end:
            self._open = key, cursor

    def _taken(self, key: Any, first: int) -> RowCursor | None:
        """Give what is open, where it leads to these rows."""
        if self._open is None or self._open[0] != key or self._open[1].row > first:
            return None
        return self._open[1]


def _may_go_on(units: Sequence[Unit]) -> bool:
    """Tell whether other shards may have rows of the same units: it is one that is read by rows."""
    return len(units) == 1 and units[0].by_rows
