"""Arrow IPC as inputs: files and streams. A unit is a record batch.

A file is a stream between two magic words, with a footer after it; so both are read as streams, from any record batch
on: the schema and the dictionaries that come before are read first. A stream that lacks its end marker was cut short
(or its writer died): pyarrow reads it as complete, here it is an error.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.job.arrow_checks import check_offsets
from tokbatch.job.files import READ_ERRORS, open_file, unreadable
from tokbatch.job.inputs import Input
from tokbatch.job.sizes import bounded, text_bytes
from tokbatch.job.sources import OnBadRow, ReadOptions, ScannedSource, Unit, changed

MAGIC = b"ARROW1"
FILE_HEAD = 8  # the magic word and its padding
FILE_TAIL = 4 + len(MAGIC)  # the footer's length, and the magic word again
END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
BLOCK_BYTES = 1 << 20


class ArrowSource(ScannedSource):
    """An Arrow IPC file or stream. The plan reads it once; its digest is that of all its bytes."""

    def __init__(self, source: Input, options: ReadOptions):
        self.input = source
        self.options = options
        with open_file(source.path, source.name) as file:
            try:
                self.size = int(file.seek(0, 2))
                file.seek(0)
                self.is_file = bytes(file.read(FILE_HEAD))[: len(MAGIC)] == MAGIC
                file.seek(self._start)
                noted = _Noted(file, self.size, self._start)
                self.schema = pa.ipc.open_stream(pa.PythonFile(noted, mode="r")).schema
                self._schema_end = noted.position
            except READ_ERRORS as error:
                raise self._refusal(error) from None

    @property
    def _start(self) -> int:
        return FILE_HEAD if self.is_file else 0

    def is_still(self, size: int, digest: str) -> bool:
        """See `Source`: the units have checksums."""
        return self.size == size

    def batches(
        self,
        units: Sequence[Unit],
        columns: Sequence[str] | None,
        batch_bytes: int,
        first_row: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `Source`. One record batch of the file is in memory at a time, whatever its size."""
        if not units:
            return
        wanted = None
        if columns is not None:
            wanted = [index for index, name in enumerate(self.schema.names) if name in set(columns)]
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        with open_file(self.input.path, self.input.name) as file:
            pieces = _Pieces(file, [(self._start, self._schema_end), *units[0].place[2:]])
            try:
                reader = pa.ipc.open_stream(pa.PythonFile(pieces, mode="r"), options=options)
                for unit in units:
                    pieces.begin(*unit.place[:2])
                    batch = reader.read_next_batch()
                    if (pieces.checksum, batch.num_rows) != (unit.checksum, unit.rows):
                        raise changed(self.input.name)
                    check_offsets(batch)
                    yield from bounded(batch, batch_bytes)
            except (*READ_ERRORS, StopIteration) as error:
                raise self._refusal(error) from None

    @cached_property
    def _scanned(self) -> tuple[list[Unit], str]:
        """Walk through the whole file: where its record batches are, and whether its end is there."""
        units: list[Unit] = []
        try:
            with open_file(self.input.path, self.input.name) as file:
                dictionaries = self._dictionaries(file) if _has_dictionaries(self.schema) else []
                file.seek(0)
                noted = _Noted(file, self.size)
                noted.read(self._start)
                reader = pa.ipc.open_stream(pa.PythonFile(noted, mode="r"))
                start = noted.take()[1]
                while (batch := next(reader, None)) is not None:
                    check_offsets(batch)
                    checksum, stop = noted.take()
                    before = tuple(place for place in dictionaries if place[1] <= start)
                    text = self._text_bytes(batch)
                    units.append(Unit(batch.num_rows, text, (start, stop, *before), checksum))
                    start = stop
                self._check_end(noted, start, len(units))
                while noted.read(BLOCK_BYTES):
                    pass
        except READ_ERRORS as error:
            raise self._refusal(error) from None
        return units, noted.digest.hexdigest()

    def _check_end(self, noted: _Noted, stop: int, count: int) -> None:
        """Refuse what pyarrow takes for complete: no end marker, something after it, a footer that counts otherwise."""
        if noted.last != END or noted.position != stop + len(END):
            raise InputError(
                f"cut short after {count} record batches: the end marker of the stream is missing",
                where=self.input.name,
                hint="write it again; a writer must be closed",
            )
        if not self.is_file and noted.position != self.size:
            raise InputError(f"{self.size - noted.position} bytes after the end of the stream", where=self.input.name)
        if self.is_file:
            with open_file(self.input.path, self.input.name) as file:
                file.seek(self.size - FILE_TAIL)
                footer = int.from_bytes(file.read(4), "little")
                if noted.position + footer + FILE_TAIL != self.size:
                    raise InputError("its footer is not that of its record batches", where=self.input.name)
                counted = pa.ipc.open_file(pa.PythonFile(file, mode="r")).num_record_batches
            if counted != count:
                raise InputError(f"{count} record batches, the footer says {counted}", where=self.input.name)

    def _dictionaries(self, file: Any) -> list[tuple[int, int]]:
        """Find the places of the dictionaries: a batch in the middle is read after all that come before it."""
        file.seek(self._start)
        noted = _Noted(file, self.size, self._start)
        reader = pa.ipc.MessageReader.open_stream(pa.PythonFile(noted, mode="r"))
        places, start = [], self._start
        for message in reader:
            if message.type == "dictionary":
                places.append((start, noted.position))
            start = noted.position
        return places

    def _text_bytes(self, batch: pa.RecordBatch) -> int:
        names = (self.options.text_column, self.options.text_column.split(".")[0])
        return next((text_bytes(batch.column(name)) for name in names if name in batch.schema.names), 0)

    def _refusal(self, error: Exception) -> InputError:
        if isinstance(error, InputError):
            return error
        what = "an empty file" if not self.size else str(error).splitlines()[0] if str(error) else "it ends too early"
        cannot = unreadable(error, self.input.name)
        if isinstance(error, OSError) and error.errno:
            return cannot
        return InputError(f"not an Arrow file or stream, or cut short: {what}", where=self.input.name)


class _Noted(io.RawIOBase):
    """A file of `size` bytes that keeps account of what is read from it, front to back."""

    def __init__(self, file: Any, size: int, position: int = 0):
        self._file = file
        self._size = size
        self.digest = hashlib.sha256()
        self.position = position
        self.last = b""
        self._checksum = 0

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._file.read(_possible(size, self._size - self.position))
        self.digest.update(block)
        self._checksum = zlib.crc32(block, self._checksum)
        self.position += len(block)
        self.last = (self.last + block)[-len(END) :]
        return block

    def readable(self) -> bool:
        return True

    def take(self) -> tuple[int, int]:
        """Give the checksum of what was read since the last time, and the position."""
        checksum, self._checksum = self._checksum, 0
        return checksum, self.position


class _Pieces(io.RawIOBase):
    """Pieces of a file as one stream; the checksum is that of the piece that was begun last."""

    def __init__(self, file: Any, places: Sequence[tuple[int, int]]):
        self._file = file
        self._places = list(places)
        self._left = 0
        self.checksum = 0

    def begin(self, start: int, stop: int) -> None:
        """Put a piece after what is left to read."""
        self._places.append((start, stop))

    def read(self, size: int = -1) -> bytes:
        blocks: list[bytes] = []
        size = _possible(size, self._left + sum(stop - start for start, stop in self._places))
        while size and (self._left or self._places):
            if not self._left:
                start, stop = self._places.pop(0)
                self._file.seek(start)
                self._left, self.checksum = stop - start, 0
                continue
            block = self._file.read(min(size, self._left))
            if not block:
                break
            self.checksum = zlib.crc32(block, self.checksum)
            self._left -= len(block)
            size -= len(block)
            blocks.append(block)
        return b"".join(blocks)

    def readable(self) -> bool:
        return True


def _possible(size: int, left: int) -> int:
    """Give how much to read where `size` bytes are asked for: a damaged length asks for less than nothing, or too much.

    Python would reserve memory for all of it before it reads.
    """
    if size < 0:
        raise ValueError(f"its metadata says that {size} bytes come next")
    return max(0, min(size, left))


def _has_dictionaries(schema: pa.Schema) -> bool:
    def below(kind: pa.DataType) -> bool:
        if pa.types.is_dictionary(kind):
            return True
        return any(below(kind.field(index).type) for index in range(kind.num_fields))

    return any(below(field.type) for field in schema)
