"""What a part is made of: one file a format, all behind the same two protocols.

A sink says which files a part has and what its columns look like, opens a writer for a new part, and reads a part back
for verification. It never names a file, and gives none its final name: see `parts.py` and `storage.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from tokbatch.job.config import OutputConfig
from tokbatch.job.storage import HashedFile


class PartWriter(Protocol):
    """Write one part, front to back. What it writes depends on the batches alone, not on the time or the machine."""

    @property
    def held_bytes(self) -> int:
        """Bytes of batches that are not in the files yet."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch that has the part's schema."""

    def close(self) -> None:
        """Write what is left and close the files: they are whole, and on the disk."""

    def abandon(self) -> None:
        """Close the files as they are: nobody will use them."""


class Sink(Protocol):
    """A format of parts. Plain data: it is sent to the workers."""

    @property
    def id_column(self) -> str:
        """The name of the column of ids."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The ends of the names of a part's files, each with its dot; the first is the one that is named by a part."""

    @property
    def keeps_nulls(self) -> bool:
        """Whether a null document can be told from an empty one in a part."""

    def part_schema(self, schema: pa.Schema) -> pa.Schema:
        """Give the schema of a part from that of the transform's batches. Raises `InputError` for what has no place."""

    def open_part(self, files: Sequence[HashedFile], schema: pa.Schema, metadata: Mapping[str, str]) -> PartWriter:
        """Begin a part in new files, as many as there are suffixes; `metadata` says what made it."""

    def read_part(self, paths: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read a part back in batches: these columns, or all that there are."""


def build_sink(output: OutputConfig, id_type: str) -> Sink:
    """Give the sink of a config; `id_type` is "int32" or "uint16", whatever the config leaves open."""
    compression = output.compression or "zstd"
    if output.format == "arrow":
        from tokbatch.job.sinks.arrow import ArrowSink

        return ArrowSink(output.id_column, id_type, compression)
    if output.format == "megatron":
        from tokbatch.job.sinks.megatron import MegatronSink

        return MegatronSink(output.id_column, id_type)
    if output.format == "bin":
        from tokbatch.job.sinks.flat import FlatSink

        return FlatSink(output.id_column, id_type)
    from tokbatch.job.sinks.parquet import ParquetSink

    return ParquetSink(output.id_column, id_type, compression)
