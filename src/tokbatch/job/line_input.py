"""What the formats of one document a line share: reading line by line, plain or compressed, whole or from the middle.

The plan reads such a file once: it counts lines, takes the digest, and cuts a plain file into units at line ends. A
compressed file cannot be read from its middle and is one unit. Row n is line n + 1, always: a line ends with LF or
CR LF, and what follows the last of them is a line too, unless it is empty. A byte order mark before the first line is
no text.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.job.files import READ_ERRORS, open_file, unreadable
from tokbatch.job.inputs import Input
from tokbatch.job.sources import OnBadRow, ReadOptions, ScannedSource, Unit, changed

UNIT_BYTES = 4 << 20
BLOCK_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CODECS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


class LineSource(ScannedSource):
    """A file of lines. What a line holds is for the subclass: `schema` and `_batch`.

    The digest is that of the file as it is.
    """

    schema: pa.Schema

    def __init__(self, source: Input, options: ReadOptions):
        self.input = source
        self.options = options
        self.codec = next((codec for suffix, codec in CODECS.items() if source.path.endswith(suffix)), None)
        with open_file(source.path, source.name) as file:
            try:
                self.size = int(file.seek(0, 2))
            except (OSError, ValueError) as error:
                raise unreadable(error, source.name) from None
        if self.codec and not self.size:
            raise InputError("an empty file, which is no compressed one", where=source.name)

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
        """See `Source`."""
        wanted = self.schema.names if columns is None else columns
        row = first_row
        for unit in units:
            checksum, rows = 0, 0
            for lines, so_far in self._lines(unit, batch_bytes):
                checksum = so_far
                if not lines:
                    continue
                if not row and lines[0].startswith(BYTE_ORDER_MARK):
                    lines[0] = lines[0][len(BYTE_ORDER_MARK) :]
                yield self._batch(lines, row, wanted, on_bad_row)
                row, rows = row + len(lines), rows + len(lines)
            if (checksum, rows) != (unit.checksum, unit.rows):
                raise changed(self.input.name)

    def _batch(self, lines: list[bytes], row: int, columns: Sequence[str], on_bad_row: OnBadRow) -> pa.RecordBatch:
        """Make a batch of lines, the first of which is row `row`. Without their ends; a CR may be left."""
        raise NotImplementedError

    def head(self) -> Iterator[bytes]:
        """Give the lines from the first one on."""
        for lines, _ in self._lines(Unit(0, 0, (0, self.size)), BLOCK_BYTES // 4):
            yield from lines

    def _lines(self, unit: Unit, batch_bytes: int) -> Iterator[tuple[list[bytes], int]]:
        """Give the lines of a unit, some at a time, with the checksum of what has been read of the unit so far."""
        begun: list[bytes] = []  # of a line whose end has not come yet
        checksum = 0
        for block in self._blocks(unit, max(1, min(batch_bytes, BLOCK_BYTES))):
            checksum = zlib.crc32(block, checksum)
            if b"\n" in block:
                begun.append(block)
                lines = b"".join(begun).split(b"\n")
                begun = [lines.pop()]
                yield lines, checksum
            else:
                begun.append(block)
        rest = b"".join(begun)
        yield [rest] if rest else [], checksum

    def _blocks(self, unit: Unit, size: int) -> Iterator[bytes]:
        with open_file(self.input.path, self.input.name) as file:
            try:
                if self.codec:
                    yield from _all(_decompressed(file, self.codec), size)
                    return
                start, stop = unit.place
                file.seek(start)
                while start < stop and (block := file.read(min(size, stop - start))):
                    start += len(block)
                    yield block
            except READ_ERRORS as error:
                raise unreadable(error, self.input.name) from None

    @cached_property
    def _scanned(self) -> tuple[list[Unit], str]:
        """Read the whole file once: its units, and its digest."""
        with open_file(self.input.path, self.input.name) as file:
            hashed = _Hashed(file)
            cutter = _Cutter(None if self.codec else UNIT_BYTES)
            try:
                for block in _all(_decompressed(hashed, self.codec) if self.codec else hashed, BLOCK_BYTES):
                    cutter.add(block)
                while hashed.read(BLOCK_BYTES):  # what a decompressor leaves
                    pass
            except READ_ERRORS as error:
                raise unreadable(error, self.input.name) from None
        return cutter.finish(), hashed.digest.hexdigest()


class _Cutter:
    """Cut what comes block by block into units: at the first line end after `size` bytes, or nowhere."""

    def __init__(self, size: int | None):
        self._size = size
        self._units: list[Unit] = []
        self._start = self._stop = self._rows = self._checksum = 0
        self._last = b"\n"

    def add(self, block: bytes) -> None:
        while self._size is not None and self._stop + len(block) - self._start >= self._size:
            end = block.find(b"\n", max(0, self._start + self._size - self._stop - 1)) + 1
            if not end:
                break
            self._take(block[:end])
            self._close()
            block = block[end:]
        if block:
            self._take(block)

    def finish(self) -> list[Unit]:
        if self._last != b"\n":
            self._rows += 1
        if self._stop > self._start:
            self._close()
        return self._units

    def _take(self, piece: bytes) -> None:
        self._rows += piece.count(b"\n")
        self._checksum = zlib.crc32(piece, self._checksum)
        self._stop += len(piece)
        self._last = piece[-1:]

    def _close(self) -> None:
        self._units.append(Unit(self._rows, self._stop - self._start, (self._start, self._stop), self._checksum))
        self._start, self._rows, self._checksum = self._stop, 0, 0


class _Hashed:
    """A file that takes the digest of what is read from it."""

    def __init__(self, file: Any):
        self._file = file
        self.digest = hashlib.sha256()
        self.closed = False

    def read(self, size: int) -> bytes:
        block: bytes = self._file.read(size)
        self.digest.update(block)
        return block

    def close(self) -> None:
        self.closed = True


def _all(stream: Any, size: int) -> Iterator[bytes]:
    while block := stream.read(size):
        yield bytes(block)


def read_whole(file: Any, path: str) -> bytes:
    """Read a file to its end, decompressed where its name says that it is compressed."""
    codec = next((codec for suffix, codec in CODECS.items() if path.endswith(suffix)), None)
    if codec is None:
        return bytes(file.read())
    return b"".join(_all(_decompressed(file, codec), BLOCK_BYTES))


def _decompressed(file: Any, codec: str | None) -> Any:
    return _Gunzipped(file) if codec == "gzip" else pa.CompressedInputStream(pa.PythonFile(file, mode="r"), codec)


class _Gunzipped:
    """A gzip file of any number of members. Zeros behind them are padding, which Arrow refuses."""

    def __init__(self, file: Any):
        self._file = gzip.GzipFile(fileobj=file, mode="rb")

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from None
