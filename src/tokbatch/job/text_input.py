"""Plain text as inputs: a document a line, or a document a file. Bytes that are not UTF-8 make a bad row."""

from __future__ import annotations

import hashlib
import posixpath
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.job.files import READ_ERRORS, open_file, unreadable
from tokbatch.job.inputs import Input
from tokbatch.job.line_input import BYTE_ORDER_MARK, UNIT_BYTES, LineSource, read_whole
from tokbatch.job.sources import OnBadRow, ReadOptions, ScannedSource, Unit, bad_row, changed

PATH_COLUMN = "path"


class TextSource(LineSource):
    """A text file, a document a line; an empty line is an empty document."""

    def __init__(self, source: Input, options: ReadOptions):
        super().__init__(source, options)
        self.schema = pa.schema([(options.text_column, pa.large_string())])

    def _batch(self, lines: list[bytes], row: int, columns: Sequence[str], on_bad_row: OnBadRow) -> pa.RecordBatch:
        """See `LineSource`."""
        texts = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return pa.record_batch([text_array(texts, row, on_bad_row, "line")], schema=self.schema)


class DocumentsSource(ScannedSource):
    """Text files, each of them a document: what one entry of `input.files` stands for is one input of many rows.

    A unit is a run of files. The digest is of the paths and contents of all of them.

    The column "path" has the path of each, as the config names it.
    """

    def __init__(self, source: Input, options: ReadOptions):
        self.input = source
        self.schema = pa.schema([(options.text_column, pa.large_string()), (PATH_COLUMN, pa.string())])
        if options.text_column == PATH_COLUMN:
            raise InputError(f'the column "{PATH_COLUMN}" has the paths of the files', where="input.text_column")

    @property
    def size(self) -> int:
        """See `Source`."""
        return sum(unit.text_bytes for unit in self.units())

    def is_still(self, size: int, digest: str) -> bool:
        """See `Source`: the units have checksums."""
        return True

    def batches(
        self,
        units: Sequence[Unit],
        columns: Sequence[str] | None,
        batch_bytes: int,
        first_row: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `Source`."""
        row = first_row
        names = self.schema.names if columns is None else list(columns)
        for unit in units:
            checksum, held, size = 0, [], 0
            for name in unit.place:
                content = self._read(name)
                checksum = zlib.crc32(content, checksum)
                held.append((content.removeprefix(BYTE_ORDER_MARK), name))
                size += len(content)
                if size >= batch_bytes:
                    yield self._batch(held, row, names, on_bad_row)
                    row, held, size = row + len(held), [], 0
            if held:
                yield self._batch(held, row, names, on_bad_row)
                row += len(held)
            if checksum != unit.checksum:
                raise changed(self.input.name)

    def _batch(
        self, held: list[tuple[bytes, str]], row: int, columns: Sequence[str], on_bad_row: OnBadRow
    ) -> pa.RecordBatch:
        texts = text_array([content for content, _ in held], row, on_bad_row, "file", [name for _, name in held])
        batch = pa.record_batch([texts, pa.array([name for _, name in held], pa.string())], schema=self.schema)
        return batch.select(list(columns))

    def _read(self, name: str) -> bytes:
        folder = self.input.path
        path = posixpath.join(folder, name) if folder else name
        with open_file(path, f"{self.input.name}: {name}") as file:
            try:
                return read_whole(file, path)
            except READ_ERRORS as error:
                raise unreadable(error, f"{self.input.name}: {name}") from None

    @cached_property
    def _scanned(self) -> tuple[list[Unit], str]:
        digest = hashlib.sha256()
        units: list[Unit] = []
        names: list[str] = []
        size = checksum = 0
        for name in self.input.files:
            content = self._read(name)
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            names.append(name)
            size, checksum = size + len(content), zlib.crc32(content, checksum)
            if size >= UNIT_BYTES:
                units.append(Unit(len(names), size, tuple(names), checksum))
                names, size, checksum = [], 0, 0
        if names:
            units.append(Unit(len(names), size, tuple(names), checksum))
        return units, digest.hexdigest()


def text_array(
    texts: list[bytes], row: int, on_bad_row: OnBadRow, place: str, names: Sequence[str] = ()
) -> pa.LargeStringArray:
    """Give texts as an array; one that is not UTF-8 is a bad row (`names` name the places)."""
    try:
        b"\n".join(texts).decode()
    except UnicodeDecodeError:
        for index, text in enumerate(texts):
            try:
                text.decode()
            except UnicodeDecodeError as error:
                what = f"byte {error.start} (0x{text[error.start]:02X}) is not UTF-8"
                what = f"{names[index]}: {what}" if names else what
                bad_row(row + index, what, on_bad_row, "line" if place == "line" else "row")
                texts[index] = b""
    return pa.array(texts, pa.large_binary()).view(pa.large_string())
