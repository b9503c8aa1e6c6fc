"""Spark: a data frame of texts to one with ids, by `mapInArrow`, and the statistics of what the executors did.

    from tokbatch.frontends.spark import tokenize

    tokenized, stats = tokenize(frame, "tokenizer.json", column="text", remove_columns=["text"])
    tokenized.write.parquet("out")
    print(stats.so_far().tokens)

Nothing is done until an action asks for it. Each Python process of an executor builds its tokenizer once. Parts,
manifest and resuming are Spark's business here; a corpus that is to be verified as a whole is a job (`job/`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from tokbatch.batch.stats import Stats
from tokbatch.errors import ConfigError, EngineUnavailableError, InputError
from tokbatch.frontends.tables import AnyTokenizer, Options, TableFunction, build_transform, names_of


class Tokenized(NamedTuple):
    """What `tokenize` gives. `stats` is None where Spark has no accumulators (Spark Connect)."""

    frame: Any
    stats: SparkStats | None


def tokenize(
    frame: Any,
    tokenizer: AnyTokenizer,
    *,
    column: str = "text",
    remove_columns: Sequence[str] | str = (),
    **options: Any,
) -> Tokenized:
    """Give a data frame with a column of ids (an array of int) beside the others, and the statistics to come.

    `tokenizer` is a path on this machine, or a `Tokenizer`; it travels to the executors. The options are those of
    `tokbatch.frontends.hf_datasets.tokenize`; Spark has no unsigned integers, and so no `id_type="uint16"`.

    Raises `SpecError`, `ConfigError`, and `InputError` for a column that is missing or has no texts. What goes wrong in
    a document is raised by the action, as a `PythonException` of Spark with our message in it.
    """
    types = _spark_types()
    if options.get("id_type", "int32") != "int32":
        raise ConfigError("Spark has no unsigned integers", where="id_type", hint='use "int32"')
    transform = build_transform(tokenizer, column, Options(**options))  # type: ignore[typeddict-item]
    function = TableFunction(transform, names_of(remove_columns))
    _check(frame, function, types)
    accumulator = _accumulator(frame)
    work = _Work(pickle.dumps(function), accumulator)
    return Tokenized(
        frame.mapInArrow(work, _schema(frame, function, types)),
        None if accumulator is None else SparkStats(accumulator),
    )


class SparkStats:
    """The statistics of what was done so far.

    Each partition counts when all of it has gone by, and once, however often Spark does it again. Where several actions
    ran, the numbers are those of the one that went furthest. Row numbers mean nothing in a data frame: there are none.
    """

    def __init__(self, accumulator: Any):
        self._accumulator = accumulator

    def so_far(self) -> Stats:
        """Give the statistics; complete after an action that needs all rows, a write for one."""
        runs = [
            Stats.total(Stats.from_json(told) for told in partitions.values())
            for partitions in self._accumulator.value.values()
        ]
        return max(runs, key=lambda stats: stats.documents, default=Stats())


class _Work:
    """What an executor runs for each partition."""

    def __init__(self, pickled_function: bytes, accumulator: Any):
        self._pickled_function = pickled_function
        self._accumulator = accumulator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function, stats, row = _loaded(self._pickled_function), Stats(), 0
        for batch in batches:
            table, counted = function(pa.Table.from_batches([batch]), row)
            stats = stats.merge(counted)
            row += batch.num_rows
            yield from table.combine_chunks().to_batches()
        if self._accumulator is not None:
            from pyspark import TaskContext

            context: Any = TaskContext.get()
            self._accumulator.add({context.stageId(): {context.partitionId(): stats.to_json()}})


@lru_cache(maxsize=4)
def _loaded(pickled_function: bytes) -> TableFunction:
    function: TableFunction = pickle.loads(pickled_function)
    return function


def _accumulator(frame: Any) -> Any:
    from pyspark.accumulators import AccumulatorParam

    base: Any = AccumulatorParam

    class ByStageAndPartition(base):  # type: ignore[misc]
        """Statistics by stage and partition; the same partition again takes its own place."""

        def zero(self, value: Any) -> dict[int, Any]:
            return {}

        def addInPlace(self, left: dict[int, Any], right: dict[int, Any]) -> dict[int, Any]:
            for stage, partitions in right.items():
                left.setdefault(stage, {}).update(partitions)
            return left

    try:
        return frame.sparkSession.sparkContext.accumulator({}, ByStageAndPartition())
    except Exception:  # Spark Connect has no context, and says so in its own ways
        return None


def _check(frame: Any, function: TableFunction, types: Any) -> None:
    """Refuse columns that are missing, have no texts or would be overwritten, before there is an action."""
    names = {name.split(".")[0] for name in function.transform.columns}
    schema = []
    for field in frame.schema.fields:
        if field.name in names:
            schema.append(pa.field(field.name, types.to_arrow_type(field.dataType)))
    dropped = tuple(field.name for field in schema if field.name in function.dropped)
    TableFunction(function.transform, dropped).output_schema(pa.schema(schema))
    for name in function.dropped:
        if name not in frame.columns:
            raise InputError(f"there is no column {name!r} to remove", where="remove_columns")
    function.check_names(frame.columns)


def _schema(frame: Any, function: TableFunction, types: Any) -> Any:
    """Give Spark's schema of what comes out, in the order in which it comes."""
    from pyspark.sql.types import StructField, StructType

    kept = [field for field in frame.schema.fields if field.name not in function.dropped]
    return StructType(
        [*kept, *(StructField(field.name, types.from_arrow_type(field.type)) for field in function.new_columns)]
    )


def _spark_types() -> Any:
    try:
        from pyspark.sql.pandas import types
    except ImportError as error:
        raise EngineUnavailableError(
            f"pyspark is not installed: {error}", where="spark", hint='pip install "tokbatch[spark]"'
        ) from None
    return types
