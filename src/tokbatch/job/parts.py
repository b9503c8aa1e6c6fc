"""From a shard's batches to its parts: one, or several where `output.max_part_bytes` sets a limit.

Where one part ends and the next begins depends on the batches alone; so parts are the same on every run. Which bytes
go into them is the sink's business (`sinks/`), their final names are given in `run.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.job.packing import BOUNDARIES
from tokbatch.job.sinks import PartWriter, Sink
from tokbatch.job.sizes import bounded
from tokbatch.job.storage import HashedFile, Storage

# A part is closed a little before its limit: footers and lengths come on top of what the columns hold.
ROOM = 15 / 16
PIECES = 8  # a batch goes into a limited part in pieces of at most this fraction of the limit


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A whole file on the disk, still under its partial name."""

    partial: str
    suffix: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of a shard: its files, and the rows of the input that are in it."""

    files: tuple[WrittenFile, ...]
    first_row: int
    rows: int
    tokens: int


def tokens_of(batch: pa.RecordBatch, id_column: str) -> int:
    """Count the ids of a batch of a part, without what fills packed rows up."""
    ids = batch.column(id_column)
    if pa.types.is_fixed_size_list(ids.type):
        return sum(boundaries[-1] for boundaries in batch.column(BOUNDARIES).to_pylist())
    return int(pc.sum(pc.list_value_length(ids)).as_py() or 0)


class PartsWriter:
    """Write a shard: ``with PartsWriter(...) as writer: writer.write(batch)``; then `writer.parts` are whole.

    `partial` is what the names of the partial files begin with; `max_bytes` 0 is no limit.
    """

    def __init__(
        self,
        storage: Storage,
        sink: Sink,
        schema: pa.Schema,
        metadata: Mapping[str, str],
        partial: str,
        first_row: int,
        max_bytes: int = 0,
    ):
        self._storage, self._sink, self._schema, self._metadata = storage, sink, schema, metadata
        self._partial, self._limit = partial, int(max_bytes * ROOM)
        self._ids = schema.get_field_index(sink.id_column)
        self._writer: PartWriter | None = None
        self._files: list[tuple[str, HashedFile]] = []
        self._first_row, self._rows, self._tokens = first_row, 0, 0
        self.parts: list[WrittenPart] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch that has the parts' schema."""
        if not self._limit:
            self._append(batch)
            return
        for piece in bounded(batch, max(1, self._limit // PIECES)):
            if self._rows and self._size() + piece.nbytes > self._limit:
                self._close()
            self._append(piece)

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Append some batches."""
        for batch in batches:
            self.write(batch)

    def __enter__(self) -> PartsWriter:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._close()
        elif self._writer is not None:
            self._writer.abandon()

    def _open(self) -> PartWriter:
        names = [f"{self._partial}.{len(self.parts):03d}{suffix}" for suffix in self._sink.suffixes]
        self._files = [(name, self._storage.open_partial(name)) for name in names]
        self._writer = self._sink.open_part([file for _, file in self._files], self._schema, self._metadata)
        return self._writer

    def _append(self, batch: pa.RecordBatch) -> None:
        (self._writer or self._open()).write(batch)
        self._rows += batch.num_rows
        self._tokens += tokens_of(batch, batch.schema.names[self._ids])

    def _size(self) -> int:
        return sum(file.size for _, file in self._files) + (self._writer.held_bytes if self._writer else 0)

    def _close(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        files = [
            WrittenFile(name, suffix, file.size, file.sha256)
            for (name, file), suffix in zip(self._files, self._sink.suffixes, strict=True)
        ]
        self.parts.append(WrittenPart(tuple(files), self._first_row, self._rows, self._tokens))
        self._first_row, self._rows, self._tokens = self._first_row + self._rows, 0, 0
