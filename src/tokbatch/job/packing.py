"""Documents packed into rows of one length, as training wants them; what is lost to padding is counted.

    greedy, split         documents one after another, cut where a row ends: only the last row of a shard has padding
    greedy, no split      a document that does not fit into what is left of a row begins the next one
    best_fit, split       into the row where it leaves the least room; only what is longer than a row is cut
    best_fit, no split    likewise; what is longer than a row is up to `too_long`

A shard is packed by itself, in the order of its documents; so rows are the same for any number of workers. Best fit
looks among the `OPEN_ROWS` rows that were begun last and are not full: memory does not grow with the shard. A packed
row has the ids, the boundaries of the pieces in it, and for each piece the row of its document and the place in it
where the piece begins: the documents can be put together again from that.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from tokbatch.batch.stats import Stats
from tokbatch.errors import EncodeError
from tokbatch.job.config import PackingConfig
from tokbatch.job.sinks.ids import flat_ids

OPEN_ROWS = 1024
ROWS_A_BATCH = 256
BOUNDARIES, DOCUMENTS, STARTS = "boundaries", "documents", "starts"


@dataclass
class PackingCounts:
    """What became of a shard's documents: `tokens` are in rows, `padding` fills them up, `dropped_tokens` are gone."""

    documents: int = 0
    rows: int = 0
    tokens: int = 0
    padding: int = 0
    cut_documents: int = 0
    dropped_documents: int = 0
    dropped_tokens: int = 0

    def to_json(self) -> dict[str, int]:
        """Give the counts by name."""
        return asdict(self)

    def to_stats(self) -> Stats:
        """Give the counts as statistics of the documents."""
        return Stats(
            packed_rows=self.rows,
            packed_tokens=self.tokens,
            padding_tokens=self.padding,
            cut_documents=self.cut_documents,
            dropped_documents=self.dropped_documents,
            dropped_tokens=self.dropped_tokens,
        )


@dataclass
class _Row:
    """A row that is being filled."""

    ids: array[int]
    boundaries: list[int] = field(default_factory=lambda: [0])
    documents: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def packed_schema(schema: pa.Schema, id_column: str, length: int) -> pa.Schema:
    """Give the schema of packed rows from that of parts with one document a row."""
    ids = schema.field(id_column).type.value_field
    return pa.schema(
        [
            pa.field(id_column, pa.list_(ids, length)),
            pa.field(BOUNDARIES, pa.list_(pa.int32())),
            pa.field(DOCUMENTS, pa.list_(pa.int64())),
            pa.field(STARTS, pa.list_(pa.int32())),
        ]
    )


class Packer:
    """Pack the documents of one shard; `pad_id` fills what is left of a row."""

    def __init__(self, config: PackingConfig, schema: pa.Schema, pad_id: int):
        self._config = config
        self._schema = schema
        self._pad_id = pad_id
        self._code = "H" if schema.field(0).type.value_type == pa.uint16() else "i"
        self._width = array(self._code).itemsize
        self._open: list[tuple[int, int]] = []  # (room, number) of rows that are not full, sorted
        self._rows: dict[int, _Row] = {}  # the open ones by number; in the order in which they were begun
        self._full: list[_Row] = []
        self._begun = 0
        self.counts = PackingCounts()

    def add(self, lists: pa.ListArray, first_row: int) -> Iterator[pa.RecordBatch]:
        """Take the ids of some documents, the first of which is row `first_row` of the file; give what is full."""
        data, lengths = flat_ids(lists)
        place = 0
        for row, length in enumerate(lengths.to_pylist(), first_row):
            ids = data[place * self._width : (place + length) * self._width]
            place += length
            self.counts.documents += 1
            if length:
                self._put(ids, length, row)
            if len(self._full) >= ROWS_A_BATCH:
                yield self._batch()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Give all rows that are left, in the order in which they were begun."""
        for number in list(self._rows):
            self._end(number)
        while self._full:
            yield self._batch()

    def _put(self, ids: memoryview, length: int, row: int) -> None:
        config, limit = self._config, self._config.length
        if length > limit and not config.split:
            if config.too_long == "fail":
                raise EncodeError(
                    f"{length:,} tokens, and a row holds {limit:,}",
                    row=row,
                    where=f"row {row}",
                    hint='output.packing.split = true cuts it, too_long = "truncate" or "drop" shortens the corpus',
                )
            kept = limit if config.too_long == "truncate" else 0
            self.counts.dropped_tokens += length - kept
            self.counts.dropped_documents += not kept
            ids, length = ids[: kept * self._width], kept
        start, pieces = 0, 0
        while start < length:
            if config.strategy == "greedy":
                size = self._greedy(ids, start, length - start, row)
            else:
                size = self._best_fit(ids, start, length - start, row)
            start, pieces = start + size, pieces + 1
        self.counts.cut_documents += pieces > 1

    def _greedy(self, ids: memoryview, start: int, left: int, row: int) -> int:
        """Put a piece into the one open row, or into a new one; gives its size."""
        if self._open and not self._config.split and self._open[0][0] < left:
            self._end(self._open[0][1])
        room, number = self._open.pop() if self._open else self._begin()
        return self._place(number, room, ids, start, min(left, room), row)

    def _best_fit(self, ids: memoryview, start: int, left: int, row: int) -> int:
        """Put a piece into the open row that it fills best, the oldest of those; gives its size."""
        size = min(left, self._config.length)
        index = bisect.bisect_left(self._open, (size, -1))
        room, number = self._open.pop(index) if index < len(self._open) else self._begin()
        return self._place(number, room, ids, start, size, row)

    def _begin(self) -> tuple[int, int]:
        if len(self._open) >= OPEN_ROWS:
            self._end(next(iter(self._rows)))
        number = self._begun
        self._begun += 1
        self._rows[number] = _Row(array(self._code))
        return self._config.length, number

    def _place(self, number: int, room: int, ids: memoryview, start: int, size: int, row: int) -> int:
        target = self._rows[number]
        target.ids.frombytes(ids[start * self._width : (start + size) * self._width])
        target.boundaries.append(len(target.ids))
        target.documents.append(row)
        target.starts.append(start)
        if size == room:
            self._full.append(self._rows.pop(number))
        else:
            bisect.insort(self._open, (room - size, number))
        return size

    def _end(self, number: int) -> None:
        """Take a row for full that is not."""
        row = self._rows.pop(number)
        self._open.remove((self._config.length - len(row.ids), number))
        self._full.append(row)

    def _batch(self) -> pa.RecordBatch:
        rows, self._full = self._full[:ROWS_A_BATCH], self._full[ROWS_A_BATCH:]
        length = self._config.length
        values = array(self._code)
        for row in rows:
            values.extend(row.ids)
            values.extend([self._pad_id] * (length - len(row.ids)))
            self.counts.tokens += len(row.ids)
            self.counts.padding += length - len(row.ids)
        self.counts.rows += len(rows)
        kind = self._schema.field(0).type
        flat = pa.Array.from_buffers(kind.value_type, len(values), [None, pa.py_buffer(values.tobytes())])
        columns = [
            pa.FixedSizeListArray.from_arrays(flat, type=kind),
            pa.array([row.boundaries for row in rows], self._schema.field(BOUNDARIES).type),
            pa.array([row.documents for row in rows], self._schema.field(DOCUMENTS).type),
            pa.array([row.starts for row in rows], self._schema.field(STARTS).type),
        ]
        return pa.record_batch(columns, schema=self._schema)


def unpack(batches: Iterator[pa.RecordBatch], id_column: str) -> dict[int, list[int]]:
    """Put the documents of packed rows together again: row of the file -> ids. A document without ids is not there."""
    pieces: dict[int, list[tuple[int, list[int]]]] = {}
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in (id_column, BOUNDARIES, DOCUMENTS, STARTS)]
        for ids, boundaries, documents, starts in zip(*columns, strict=True):
            for index, (row, start) in enumerate(zip(documents, starts, strict=True)):
                pieces.setdefault(row, []).append((start, ids[boundaries[index] : boundaries[index + 1]]))
    return {row: [token for _, ids in sorted(own) for token in ids] for row, own in pieces.items()}
