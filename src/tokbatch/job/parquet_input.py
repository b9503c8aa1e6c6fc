"""Parquet files as inputs: the footer for the plan, row groups for the workers.

A footer has no checksum, and whatever it says may be damaged. What pyarrow does not look at is checked here: that the
counts in it agree with each other, that there are as many rows as it says, and what would end the process (see
`_checked_size`). Pages have checksums where their writer made them.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tokbatch.errors import InputError
from tokbatch.job.files import READ_ERRORS, open_file, unreadable
from tokbatch.job.inputs import Input
from tokbatch.job.sizes import bounded
from tokbatch.job.sources import OnBadRow, ReadOptions, Unit

MAGIC = b"PAR1"
READ_BUFFER = 1 << 20
# A batch is first read at a fraction of its limit: rows that are longer than the average of their row group then
# still fit, and only what is longer by more than this is cut after reading.
HEADROOM = 4
# Rows of fewer bytes than this, in pages that name values of a dictionary: they may be long texts that come again and
# again. Such a column is read as a dictionary, and its texts are written out only in batches that hold them.
REPEATED_ROW = 32


class ParquetSource:
    """A Parquet file, local or by URL. Its digest is that of its footer, which places and sizes every page."""

    def __init__(self, source: Input, options: ReadOptions):
        self.input = source
        self.options = options
        with open_file(source.path, source.name) as file:
            footer, self.size = _read_footer(file, source.name)
            self.digest = hashlib.sha256(footer).hexdigest()
            try:
                self.metadata = pq.read_metadata(pa.PythonFile(file, mode="r"))
                self.schema = pq.ParquetFile(pa.PythonFile(file, mode="r"), metadata=self.metadata).schema_arrow
                leaves = range(self.metadata.num_columns)
                # That a row group repeats the paths of its columns is not relied on: they may be damaged.
                self._paths = [self.metadata.schema.column(leaf).path for leaf in leaves]
                self._rows = [self.metadata.row_group(index).num_rows for index in range(self.metadata.num_row_groups)]
            except READ_ERRORS as error:
                raise unreadable(error, source.name) from None
        if sum(self._rows) != self.metadata.num_rows or min(self._rows, default=0) < 0:
            what = f"the footer says {self.metadata.num_rows} rows, and {sum(self._rows)} in its row groups"
            raise InputError(f"cannot be read: {what}", where=source.name)

    def units(self) -> list[Unit]:
        """Give the row groups; a text's size is that of the column's pages, uncompressed."""
        leaves = self._leaves(self.options.text_column)
        return [
            Unit(rows, self._checked_size(index, leaves, [self.options.text_column]), (index,), by_rows=True)
            for index, rows in enumerate(self._rows)
        ]

    def is_still(self, size: int, digest: str) -> bool:
        """See `Source`."""
        return self.digest == digest

    def batches(
        self,
        units: Sequence[Unit],
        columns: Sequence[str] | None,
        batch_bytes: int,
        first_row: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `Source.batches`. One page a column is decoded at a time, not a whole row group."""
        wanted = range(self.metadata.num_columns) if columns is None else [i for c in columns for i in self._leaves(c)]
        with open_file(self.input.path, self.input.name) as file:
            reader, repeated = self._opened(file), set[str]()
            for index in (unit.place[0] for unit in units):
                total = self._rows[index]
                size = self._checked_size(index, wanted, columns)
                if total == 0:
                    continue
                rows = max(1, min(total, batch_bytes * total // (HEADROOM * max(size, 1))))
                read = 0
                if repeated != (repeated := self._repeated(index, wanted)):
                    reader = self._opened(file, repeated)
                try:
                    for batch in reader.iter_batches(rows, [index], columns, use_threads=False):
                        read += batch.num_rows
                        yield from (_written_out(piece, repeated, self.schema) for piece in bounded(batch, batch_bytes))
                except READ_ERRORS as error:
                    raise unreadable(error, self._place(index)) from None
                if read != total:
                    raise InputError(f"{read} rows read, the footer says {total}", where=self._place(index))

    def _opened(self, file: Any, as_dictionaries: Iterable[str] = ()) -> pq.ParquetFile:
        return pq.ParquetFile(
            file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r"),
            metadata=self.metadata,
            pre_buffer=False,
            buffer_size=READ_BUFFER,
            page_checksum_verification=True,
            read_dictionary=list(as_dictionaries),
        )

    def _repeated(self, index: int, leaves: Iterable[int]) -> set[str]:
        """Give the columns of strings, also within structs, whose rows in a row group may name long texts."""
        group, found = self.metadata.row_group(index), set[str]()
        for leaf in leaves:
            column = group.column(leaf)
            name = self._paths[leaf]
            if (
                column.total_uncompressed_size < REPEATED_ROW * self._rows[index]
                and not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}.isdisjoint(column.encodings)
                and _is_text(self.schema, name)
            ):
                found.add(name)
        return found

    def _checked_size(self, index: int, leaves: Iterable[int], columns: Sequence[str] | None) -> int:
        """Give the bytes that some columns of a row group have, uncompressed, once what is said of them makes sense."""
        try:
            self._look_at(index, columns)
        except READ_ERRORS as error:
            raise unreadable(error, self._place(index)) from None
        group, size = self.metadata.row_group(index), 0
        for leaf in leaves:
            column = group.column(leaf)
            repeats = self.metadata.schema.column(leaf).max_repetition_level > 0
            values, rows = column.num_values, self._rows[index]
            if values < rows or (values > rows and (rows == 0 or not repeats)):
                what = f"the footer says {values} values of {self._paths[leaf]} in {rows} rows"
                raise InputError(f"cannot be read: {what}", where=self._place(index))
            if column.total_uncompressed_size < 0:
                what = f"the footer says {column.total_uncompressed_size} bytes of {self._paths[leaf]}"
                raise InputError(f"cannot be read: {what}", where=self._place(index))
            size += column.total_uncompressed_size
        return size

    def _look_at(self, index: int, columns: Sequence[str] | None) -> None:
        """Let a reader look at some columns of a row group, without reading them.

        Where a column's statistics of sizes are damaged, pyarrow ends the process as soon as it is asked for the
        column; but a reader of it says what is wrong, and does so before it reads. A file without a byte is the
        quickest to come to that; one that cannot be read tells what is said of it from what is said of reading it.
        """
        for probe in self._probes:
            try:
                next(probe.iter_batches(1, [index], columns, use_threads=False), None)
            except _NotReadError:
                return
            except READ_ERRORS:
                if probe is self._probes[-1]:
                    raise
            else:
                return

    @cached_property
    def _probes(self) -> list[pq.ParquetFile]:
        return [self._opened(file(self.size)) for file in (_NoBytes, _NoFile)]

    def _place(self, index: int) -> str:
        return f"{self.input.name}: row group {index}"

    def _leaves(self, column: str) -> list[int]:
        """Give the leaf columns of Parquet that belong to a column, or to a field of one."""
        return [i for i, path in enumerate(self._paths) if path == column or path.startswith(f"{column}.")]


class _NotReadError(OSError):
    """Somebody has tried to read a `_NoFile`."""


class _NoBytes(io.RawIOBase):
    """A file of some size that ends wherever it is read."""

    def __init__(self, size: int):
        self._size = size

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._size if whence == os.SEEK_END else offset

    def tell(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        return b""


class _NoFile(_NoBytes):
    """A file that cannot be read."""

    def read(self, size: int = -1) -> bytes:
        raise _NotReadError


def _written_out(batch: pa.RecordBatch, names: Iterable[str], schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch whose dictionaries `names` are strings, as the schema has them."""
    for name in {name if name in schema.names else name.split(".")[0] for name in names}:
        index, field = batch.schema.get_field_index(name), schema.field(name)
        column = batch.column(index)
        column = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        batch = batch.set_column(index, field, column.cast(field.type))
    return batch


def _is_text(schema: pa.Schema, path: str) -> bool:
    """Tell whether a leaf column is one of strings, by itself or within structs."""
    if path in schema.names:
        return schema.field(path).type in (pa.string(), pa.large_string(), pa.string_view())
    first, *names = path.split(".")
    kind = schema.field(first).type if schema.names.count(first) == 1 else pa.null()
    for name in names:
        index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        kind = kind.field(index).type if index >= 0 else pa.null()
    return kind in (pa.string(), pa.large_string())


def _read_footer(file: IO[bytes], name: str) -> tuple[bytes, int]:
    """Give the bytes of the footer, and the size of the file."""
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        tail = file.read(8)
        if size < 12 or tail[4:] != MAGIC:
            what = "an empty file" if size == 0 else f"the last four of its {size} bytes are not {MAGIC.decode()}"
            raise InputError(f"not a Parquet file, or cut short: {what}", where=name)
        length = int.from_bytes(tail[:4], "little")
        if length > size - 12:
            raise InputError(f"a footer of {length} bytes does not fit into {size}", where=name)
        file.seek(size - 8 - length)
        footer = file.read(length)
        file.seek(0)
        return footer, size
    except OSError as error:
        raise unreadable(error, name) from None
