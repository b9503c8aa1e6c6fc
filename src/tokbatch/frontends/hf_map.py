"""What `datasets` calls with each batch: the transform in the types of that library. `hf_datasets.py` builds it.

These objects pickle to the same bytes in every process, whatever they have done before, which is what the cache of
`datasets` goes by. In the pickle are the options, the tokenizer's spec, the engine as it was asked for, and the version
of tokbatch; so "auto" has one fingerprint, whichever engine it finds: the ids are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tokbatch._version import __version__
from tokbatch.batch.pairs import PairTransform
from tokbatch.batch.stats import Stats
from tokbatch.batch.transform import Transform
from tokbatch.errors import InputError
from tokbatch.frontends.tables import TableFunction, names_of, refuse_overwriting

STATS_COLUMN = "__tokbatch_stats__"
"""Where the statistics of each batch travel, in its first row, so that the cache of `datasets` keeps them too."""


class MapFunction:
    """Batches in, batches with a column of ids out (and the columns that the options name); null texts have null ids.

    In the Arrow format (`with_format("arrow")`) a table comes in and leaves with all its columns and the new ones;
    nothing is copied into Python objects. In the default format the ids come as arrays of numpy, which `datasets` adds
    to the batch. `dropped` are columns that a table leaves without: `remove_columns` of `map` does nothing to tables.
    """

    def __init__(self, transform: Transform | PairTransform, version: str = __version__, dropped: tuple[str, ...] = ()):
        self._transform = transform
        self._version = version
        self._dropped = dropped

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._transform, self._version, self._dropped)

    def __call__(self, batch: Any) -> Any:
        """Tokenize one batch of `datasets`."""
        return self._any(batch, 0)[0]

    def _any(self, batch: Any, first_row: int) -> tuple[Any, Stats]:
        if isinstance(batch, pa.Table):
            return self._table(batch, first_row)
        if not isinstance(batch, Mapping):
            raise InputError(
                f"a batch of the type {type(batch).__name__}",
                hint='use the default format of datasets, or with_format("arrow"), and batched=True',
            )
        refuse_overwriting(self._transform, set(batch) - set(self._dropped), "remove it from the dataset before")
        output, stats = self._transform.transform(_record_batch(batch, self._needed()), first_row)
        return {name: self._rows_of(column) for name, column in zip(output.schema.names, output, strict=True)}, stats

    def _rows_of(self, column: pa.Array) -> list[Any]:
        """Give the rows of a column in the type that `datasets` writes fastest."""
        return _numpy_rows(column) if pa.types.is_list(column.type) else column.to_pylist()

    def features(self, dataset: Any, remove_columns: Sequence[str] = ()) -> Any:
        """Give the features of the mapped dataset, for `map(features=...)` with the same `remove_columns`.

        Without it `datasets` guesses the type of the ids from the first rows, which goes wrong where those are null.
        """
        import datasets

        features = {name: f for name, f in dataset.features.items() if name not in names_of(remove_columns)}
        refuse_overwriting(self._transform, features, "remove it from the dataset before")
        return datasets.Features(
            {**features, **datasets.Features.from_arrow_schema(self._transform.options.new_columns)}
        )

    def checked_features(self, dataset: Any, remove_columns: Sequence[str]) -> Any:
        """Give `features`, once it is clear that all the columns are there and hold texts. Raises `InputError`."""
        TableFunction(self._transform, names_of(remove_columns)).output_schema(dataset.features.arrow_schema)
        return self.features(dataset, remove_columns)

    def _table(self, table: pa.Table, first_row: int) -> tuple[pa.Table, Stats]:
        return TableFunction(self._transform, self._dropped)(table, first_row)

    def _needed(self) -> set[str]:
        return {name for column in self._transform.columns for name in (column, column.split(".")[0])}


class CountingMapFunction(MapFunction):
    """For `map(with_indices=True)` of a `Dataset` in the Arrow format: the statistics of a batch ride in its rows."""

    def __call__(self, batch: Any, rows: Sequence[int] = (0,)) -> pa.Table:
        """Tokenize one table; `rows` are its row numbers, ascending by one."""
        table, stats = self._table(batch, rows[0] if len(rows) else 0)
        told = [json.dumps(stats.to_json(), ensure_ascii=False)] + [None] * (table.num_rows - 1)
        return table.append_column(STATS_COLUMN, pa.array(told[: table.num_rows], pa.string()))


class StreamingMapFunction(MapFunction):
    """For `map(with_indices=True)` of an `IterableDataset`: `running` has the statistics of what went by."""

    def __init__(self, transform: Transform | PairTransform, version: str = __version__, dropped: tuple[str, ...] = ()):
        super().__init__(transform, version, dropped)
        self.running = RunningStats()

    def __call__(self, batch: Any, rows: Sequence[int] = (0,)) -> Any:
        """Tokenize one batch; `rows` are its row numbers since the start of the stream, ascending by one."""
        first_row = rows[0] if len(rows) else 0
        output, stats = self._any(batch, first_row)
        self.running.add(stats, first_row)
        return output

    def _rows_of(self, column: pa.Array) -> list[Any]:
        """Give lists: what reads the stream gets the rows as they are here."""
        rows: list[Any] = column.to_pylist()
        return rows


class RunningStats:
    """The statistics of the part of a stream that went by in this process, since the iteration last began."""

    def __init__(self) -> None:
        self._stats = Stats()

    def add(self, stats: Stats, first_row: int) -> None:
        """Add a batch; one that starts with row 0 begins anew."""
        self._stats = stats if first_row == 0 else self._stats.merge(stats)

    def so_far(self) -> Stats:
        """Give the statistics up to now; `datasets` reads some rows ahead of what the caller has seen."""
        return self._stats


def collected_stats(chunks: Iterable[pa.Array]) -> Stats:
    """Merge the statistics that came along in the rows of a split."""
    stats = Stats()
    for chunk in chunks:
        for told in pc.drop_null(chunk).to_pylist():
            stats = stats.merge(Stats.from_json(json.loads(told)))
    return stats


def _record_batch(batch: Mapping[str, Any], needed: set[str]) -> pa.RecordBatch:
    """Make Arrow columns of lists; a column of texts that are all null is a column of strings too."""
    columns: dict[str, pa.Array] = {}
    for name in batch:
        if name in needed:
            values = batch[name]
            try:
                columns[name] = pa.array(values.tolist() if isinstance(values, np.ndarray) else values)
            except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
                raise InputError(f"no column of texts: {error}", where=f"column {name!r}") from None
    return pa.record_batch(columns)


def _numpy_rows(array: pa.ListArray) -> list[np.ndarray[Any, Any] | None]:
    """Give a numpy array a row, all of them views of one; None for a null."""
    values = array.values.to_numpy(zero_copy_only=False)
    starts = array.offsets.to_numpy(zero_copy_only=False)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return [values[starts[row] : starts[row + 1]] if valid[row] else None for row in range(len(array))]
