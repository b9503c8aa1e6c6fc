"""Parts as flat files of ids, to be mapped into memory by any language: ids, document boundaries, and a header.

    NAME.bin       all ids, one after another, little-endian int32 or uint16
    NAME.offsets   uint64, one more than there are documents: where each begins in the ids, and where the last one ends
    NAME.json      what the other two are, and what made them

Document n is ids[offsets[n]:offsets[n + 1]]. A null document and one without ids look the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.errors import InputError
from tokbatch.job.sinks.ids import flat_ids, int64s, lists_of, only_ids
from tokbatch.job.storage import HashedFile

READ_ROWS = 8192


@dataclass(frozen=True, slots=True)
class FlatSink:
    """Flat files: three a part, no kept columns."""

    id_column: str
    id_type: str

    @property
    def suffixes(self) -> tuple[str, ...]:
        """See `Sink`."""
        return (".bin", ".offsets", ".json")

    @property
    def keeps_nulls(self) -> bool:
        """See `Sink`."""
        return False

    def part_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `Sink`."""
        return only_ids(schema, self.id_column, self.id_type, "flat files")

    def open_part(self, files: Sequence[HashedFile], schema: pa.Schema, metadata: Mapping[str, str]) -> FlatWriter:
        """See `Sink`."""
        return FlatWriter(files, self.id_type, metadata)

    def read_part(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `Sink`."""
        ids, offsets, header = (pa.memory_map(str(path)).read_buffer() for path in paths)
        described = json.loads(header.to_pybytes())
        kind = getattr(pa, self.id_type)()
        count, width = ids.size * 8 // kind.bit_width, kind.bit_width // 8
        places = int64s(offsets, offsets.size // 8)
        steps = pc.subtract(places.slice(1), places.slice(0, max(0, len(places) - 1)))
        ends = (places[0].as_py(), places[-1].as_py()) if len(places) else None
        if described.get("id_type") != self.id_type or ends != (0, count) or ids.size % width:
            raise InputError(f"{ids.size} bytes of ids do not fit to their offsets or header", where=str(paths[0]))
        if (pc.min(steps).as_py() or 0) < 0 or described.get("documents") != len(steps):
            raise InputError("its offsets go backwards, or are not as many as its header says", where=str(paths[1]))
        values = pa.Array.from_buffers(kind, count, [None, ids])
        for start in range(0, len(steps), READ_ROWS):
            lists = lists_of(values, places.slice(start, READ_ROWS + 1), self.id_type)
            yield pa.record_batch([lists], names=[self.id_column])


class FlatWriter:
    """Write batches into flat files; nothing is held back."""

    held_bytes = 0

    def __init__(self, files: Sequence[HashedFile], id_type: str, metadata: Mapping[str, str]):
        self._files = files
        self._id_type = id_type
        self._metadata = metadata
        self._documents = self._tokens = 0
        self._files[1].write((0).to_bytes(8, "little"))

    def write(self, batch: pa.RecordBatch) -> None:
        """See `PartWriter`."""
        data, lengths = flat_ids(batch.column(0))
        if not len(lengths):
            return
        ends = pc.add(pc.cumulative_sum(lengths), self._tokens)
        self._files[0].write(data)
        self._files[1].write(memoryview(ends.buffers()[1])[ends.offset * 8 : (ends.offset + len(ends)) * 8])
        self._documents += len(lengths)
        self._tokens = ends[-1].as_py()

    def close(self) -> None:
        """See `PartWriter`."""
        header = {
            "format": "tokbatch flat ids",
            "version": 1,
            "id_type": self._id_type,
            "offset_type": "uint64",
            "byte_order": "little",
            "documents": self._documents,
            "tokens": self._tokens,
            **self._metadata,
        }
        self._files[2].write((json.dumps(header, indent=1) + "\n").encode())
        for file in self._files:
            file.close()

    def abandon(self) -> None:
        """See `PartWriter`."""
        for file in self._files:
            file.abandon()
