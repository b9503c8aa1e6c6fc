"""Parquet files as inputs: the footer for the plan, row groups for the workers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from tokbatch.errors import InputError
from tokbatch.job.files import open_file, unreadable
from tokbatch.job.inputs import Input
from tokbatch.job.sources import OnBadRow, ReadOptions, Unit, bounded

MAGIC = b"PAR1"
READ_BUFFER = 1 << 20
# A batch is first read at a fraction of its limit: rows that are longer than the average of their row group then
# still fit, and only what is longer by more than this is cut after reading.
HEADROOM = 4


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
            except (pa.ArrowException, OSError, ValueError) as error:
                raise unreadable(error, source.name) from None

    def units(self) -> list[Unit]:
        """Give the row groups; a text's size is that of the column's pages, uncompressed."""
        leaves = self._leaves(self.options.text_column)
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return [
            Unit(
                group.num_rows,
                sum(group.column(leaf).total_uncompressed_size for leaf in leaves),
                (index,),
                by_rows=True,
            )
            for index, group in enumerate(groups)
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
            reader = pq.ParquetFile(
                file if isinstance(file, pa.NativeFile) else pa.PythonFile(file, mode="r"),
                metadata=self.metadata,
                pre_buffer=False,
                buffer_size=READ_BUFFER,
                page_checksum_verification=True,
            )
            for index in (unit.place[0] for unit in units):
                group = self.metadata.row_group(index)
                if group.num_rows == 0:
                    continue
                size = sum(group.column(leaf).total_uncompressed_size for leaf in wanted)
                rows = max(1, min(group.num_rows, batch_bytes * group.num_rows // (HEADROOM * max(size, 1))))
                read = 0
                try:
                    for batch in reader.iter_batches(rows, [index], columns, use_threads=False):
                        read += batch.num_rows
                        yield from bounded(batch, batch_bytes)
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise unreadable(error, f"{self.input.name}: row group {index}") from None
                if read != group.num_rows:
                    raise InputError(
                        f"{read} rows read, the footer says {group.num_rows}",
                        where=f"{self.input.name}: row group {index}",
                    )

    def _leaves(self, column: str) -> list[int]:
        """Give the leaf columns of Parquet that belong to a column, or to a field of one."""
        paths = [self.metadata.schema.column(i).path for i in range(self.metadata.num_columns)]
        return [i for i, path in enumerate(paths) if path == column or path.startswith(f"{column}.")]


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
