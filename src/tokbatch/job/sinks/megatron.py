"""Parts as the indexed datasets of Megatron-LM: NAME.bin and NAME.idx, to be given to it as the prefix NAME.

The format is that of `megatron/core/datasets/indexed_dataset.py`, version 1. All numbers are little-endian:

    NAME.bin   all ids, one after another
    NAME.idx   b"MMIDIDX\\0\\0", uint64 version, uint8 code of the ids' type, uint64 sequences, uint64 document indices;
               int32 length of each sequence; int64 byte in NAME.bin where each begins; int64 document indices: the
               sequence that each document begins with, and one past the last

A document is one sequence. One that is null or has no ids is a document without a sequence: documents keep the numbers
of the rows, and training never meets an empty sequence.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.errors import InputError
from tokbatch.job.sinks.ids import flat_ids, int64s, lists_of, only_ids
from tokbatch.job.storage import HashedFile

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
CODES = {"int32": 4, "uint16": 8}
HEADER = struct.Struct("<9sQBQQ")
READ_ROWS = 8192


@dataclass(frozen=True, slots=True)
class MegatronSink:
    """Megatron-LM: two files a part, no kept columns."""

    id_column: str
    id_type: str

    @property
    def suffixes(self) -> tuple[str, ...]:
        """See `Sink`."""
        return (".bin", ".idx")

    @property
    def keeps_nulls(self) -> bool:
        """See `Sink`."""
        return False

    def part_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `Sink`."""
        return only_ids(schema, self.id_column, self.id_type, "files of Megatron")

    def open_part(self, files: Sequence[HashedFile], schema: pa.Schema, metadata: Mapping[str, str]) -> MegatronWriter:
        """See `Sink`: the format has no place for what made it; the manifest has it."""
        return MegatronWriter(files, self.id_type)

    def read_part(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `Sink`: a row is a document."""
        ids, index = (pa.memory_map(str(path)).read_buffer() for path in paths)
        kind = getattr(pa, self.id_type)()
        width = kind.bit_width // 8
        if index.size < HEADER.size:
            raise InputError("no index of Megatron, or cut short", where=str(paths[1]))
        magic, version, code, sequences, documents = HEADER.unpack_from(index)
        size = HEADER.size + sequences * (4 + 8) + documents * 8
        if (magic, version, code, index.size) != (MAGIC, VERSION, CODES[self.id_type], size):
            raise InputError("no index of Megatron with ids of this type, or cut short", where=str(paths[1]))
        pointers = int64s(index, sequences, HEADER.size + sequences * 4)
        begins = int64s(index, documents, HEADER.size + sequences * 12)
        steps = pc.subtract(begins.slice(1), begins.slice(0, max(0, documents - 1)))
        ends = (begins[0].as_py(), begins[-1].as_py()) if documents else None
        if ends != (0, sequences) or (pc.min(steps).as_py() or 0) < 0:
            raise InputError("its documents are not made of its sequences", where=str(paths[1]))
        starts = pa.concat_arrays([pc.divide(pointers, width), pa.array([ids.size // width], pa.int64())])
        lengths = array("i")
        lengths.frombytes(index.slice(HEADER.size, sequences * 4).to_pybytes())
        if pc.subtract(starts.slice(1), starts.slice(0, sequences)).to_pylist() != lengths.tolist():
            raise InputError("the lengths of its sequences are not those of the ids", where=str(paths[1]))
        places = starts.take(begins)
        values = pa.Array.from_buffers(kind, ids.size // width, [None, ids])
        for start in range(0, documents - 1, READ_ROWS):
            lists = lists_of(values, places.slice(start, READ_ROWS + 1), self.id_type)
            yield pa.record_batch([lists], names=[self.id_column])


class MegatronWriter:
    """Write batches into the two files; the index is held until the end, 20 bytes a document."""

    held_bytes = 0

    def __init__(self, files: Sequence[HashedFile], id_type: str):
        self._files = files
        self._code = CODES[id_type]
        self._width = 2 if id_type == "uint16" else 4
        self._lengths = array("i")
        self._documents = array("q", [0])

    def write(self, batch: pa.RecordBatch) -> None:
        """See `PartWriter`."""
        data, lengths = flat_ids(batch.column(0))
        self._files[0].write(data)
        for length in lengths.to_pylist():
            if length:
                self._lengths.append(length)
            self._documents.append(len(self._lengths))

    def close(self) -> None:
        """See `PartWriter`."""
        pointers, place = array("q"), 0
        for length in self._lengths:
            pointers.append(place)
            place += length * self._width
        index = self._files[1]
        index.write(HEADER.pack(MAGIC, VERSION, self._code, len(self._lengths), len(self._documents)))
        for numbers in (self._lengths, pointers, self._documents):
            index.write(numbers.tobytes())
        for file in self._files:
            file.close()

    def abandon(self) -> None:
        """See `PartWriter`."""
        for file in self._files:
            file.abandon()
