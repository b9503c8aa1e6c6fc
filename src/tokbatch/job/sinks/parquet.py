"""Parts as Parquet files. The settings of the columns of ids were measured for speed and size together.

On 100 MB of English (gpt2, one core) the defaults of pyarrow take 0.88 s and 41.7 MB for the ids; lists of not
nullable elements, split by byte streams, without dictionary and statistics, zstd 1: 0.42 s and 35.6 MB. datasets,
polars and duckdb read that. All other columns keep pyarrow's own settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tokbatch.job.sinks.ids import id_list_type
from tokbatch.job.storage import HashedFile

ROW_GROUP_BYTES = 32 << 20
READ_ROWS = 8192


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Parquet: one file a part, all kept columns."""

    id_column: str
    id_type: str
    compression: str

    @property
    def suffixes(self) -> tuple[str, ...]:
        """See `Sink`."""
        return (".parquet",)

    @property
    def keeps_nulls(self) -> bool:
        """See `Sink`."""
        return True

    def part_schema(self, schema: pa.Schema) -> pa.Schema:
        """See `Sink`: the ids are never null within a list."""
        index = schema.get_field_index(self.id_column)
        return schema.set(index, pa.field(self.id_column, id_list_type(self.id_type)))

    def open_part(self, files: Sequence[HashedFile], schema: pa.Schema, metadata: Mapping[str, str]) -> ParquetWriter:
        """See `Sink`."""
        (file,) = files
        return ParquetWriter(file, schema, self.id_column, self.compression, metadata)

    def read_part(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """See `Sink`."""
        (path,) = paths
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(READ_ROWS, columns=columns, use_threads=False)


class ParquetWriter:
    """Write batches into one Parquet file.

    Row groups are cut by the size of what was written, at batches; so they are the same on every run.
    """

    def __init__(
        self, file: HashedFile, schema: pa.Schema, id_column: str, compression: str, metadata: Mapping[str, str]
    ):
        self._schema = schema
        self._metadata = dict(metadata)
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._file = file
        self._writer = pq.ParquetWriter(
            pa.PythonFile(file, mode="w"), schema, **_settings(schema, id_column, compression)
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch that has the part's schema."""
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._flush()

    @property
    def held_bytes(self) -> int:
        """See `PartWriter`."""
        return self._held_bytes

    def close(self) -> None:
        """See `PartWriter`."""
        self._flush()
        self._writer.add_key_value_metadata(self._metadata)
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        """See `PartWriter`."""
        self._file.abandon()
        self._writer.close()

    def _flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._held, self._held_bytes = [], 0


def _settings(schema: pa.Schema, id_column: str, compression: str) -> dict[str, Any]:
    leaves = _leaves(schema)
    ids = f"{id_column}.list.element"
    others = [leaf for leaf in leaves if leaf != ids]
    return {
        "compression": compression,
        "compression_level": {ids: 1} if compression == "zstd" else None,
        "use_dictionary": others,
        "write_statistics": others,
        "column_encoding": {ids: "BYTE_STREAM_SPLIT"},
    }


def _leaves(schema: pa.Schema) -> list[str]:
    """Ask pyarrow for the paths of the leaf columns: its rules for nested types are its own."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return [columns.column(i).path for i in range(len(columns.names))]
