"""Parts as Arrow IPC files: record batches that can be mapped into memory as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.job.sinks.ids import id_list_type
from tokbatch.job.storage import HashedFile

BATCH_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class ArrowSink:
    """Arrow IPC: one file a part, all kept columns. Dictionaries are written out: a file can have only one a column."""

    id_column: str
    id_type: str
    compression: str

    @property
    def suffixes(self) -> tuple[str, ...]:
        """See `Sink`."""
        return (".arrow",)

    @property
    def keeps_nulls(self) -> bool:
        """See `Sink`."""
        return True

    def part_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `Sink`."""
        fields = []
        for field in schema:
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            if _holds_dictionary(kind):
                raise InputError(
                    f'the column "{field.name}" has a dictionary inside, which parts in Arrow cannot have',
                    where="input.keep_columns",
                    hint='leave it out, or take output.format = "parquet"',
                )
            fields.append(field.with_type(kind))
        index = schema.get_field_index(self.id_column)
        fields[index] = pa.field(self.id_column, id_list_type(self.id_type))
        return pa.schema(fields, schema.metadata)

    def open_part(self, files: Sequence[HashedFile], schema: pa.Schema, metadata: Mapping[str, str]) -> ArrowWriter:
        """See `Sink`."""
        (file,) = files
        return ArrowWriter(file, schema.with_metadata({**(schema.metadata or {}), **metadata}), self.compression)

    def read_part(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `Sink`."""
        (path,) = paths
        with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                yield batch if columns is None else batch.select(list(columns))


class ArrowWriter:
    """Write batches into one Arrow IPC file; record batches are cut by the size of what was written."""

    def __init__(self, file: HashedFile, schema: pa.Schema, compression: str):
        self._file = file
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._writer = pa.ipc.new_file(pa.PythonFile(file, mode="w"), schema, options=options)

    @property
    def held_bytes(self) -> int:
        """See `PartWriter`."""
        return self._held_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        """See `PartWriter`."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """See `PartWriter`."""
        self._flush()
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        """See `PartWriter`."""
        self._file.abandon()
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held).cast(self._schema).combine_chunks()
            self._writer.write_table(table)
        self._held, self._held_bytes = [], 0


def _holds_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_holds_dictionary(kind.field(index).type) for index in range(kind.num_fields))
