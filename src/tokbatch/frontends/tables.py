"""What the front ends for tables have in common: a transform from their options, and a table with its new columns.

`hf_datasets.py`, `ray_data.py` and `spark.py` adapt this to their libraries and add nothing to what happens to a batch.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pyarrow as pa

from tokbatch.batch.fields import find_field
from tokbatch.batch.pairs import PairOptions, PairTransform
from tokbatch.batch.stats import Stats
from tokbatch.batch.token_source import TokenSource
from tokbatch.batch.transform import Transform, TransformOptions
from tokbatch.errors import ConfigError, InputError
from tokbatch.spec import Truncation
from tokbatch.tokenizer import Tokenizer

MOST_JOINED = 1 << 30
"""Bytes of text that are copied into one chunk: far from what 32-bit offsets hold."""

AnyTokenizer = Tokenizer | str | os.PathLike[str]


class Options(TypedDict, total=False):
    """The options that all these front ends take; what they mean is said at `hf_datasets.tokenize`."""

    pair_column: str | None
    id_column: str
    id_type: Literal["int32", "uint16"]
    add_special_tokens: bool
    prepend: Sequence[TokenSource]
    append: Sequence[TokenSource]
    template: Mapping[str, TokenSource] | None
    max_length: int | None
    round_trip: Literal["all", "sample", "off"]
    round_trip_column: str | None
    on_bad_row: Literal["fail", "null"]


def build_transform(tokenizer: AnyTokenizer, column: str, options: Options) -> Transform | PairTransform:
    """Build the transform of single texts or of pairs. Raises `SpecError`, `ConfigError` and `InputError`."""
    known = Options.__annotations__
    for name in options:
        if name not in known:
            raise ConfigError(f"there is no option {name!r}", where="tokenize", hint=f"there are {', '.join(known)}")
    given: dict[str, Any] = {**options}
    pair_column, max_length = given.pop("pair_column", None), given.pop("max_length", None)
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.from_file(tokenizer)
    if max_length is not None:
        if type(max_length) is not int or max_length < 1:
            raise ConfigError(f"{max_length!r} is no number of tokens", where="max_length")
        file = tokenizer.engine.truncation or Truncation(max_length)
        tokenizer = tokenizer.with_options(truncation=msgspec.structs.replace(file, max_length=max_length))
    for name in ("prepend", "append"):
        if isinstance(given.get(name), str):
            raise ConfigError("expected a list of tokens, found one", where=name)
        given[name] = tuple(given.get(name, ()))
    given["template"] = dict(given.get("template") or {})
    if pair_column is None:
        return Transform(TransformOptions(text_column=column, **given), tokenizer)
    for name in ("prepend", "append", "template", "round_trip_column"):
        if given.pop(name, None):
            raise ConfigError("is for single texts, and there is a pair_column", where=name)
    given.pop("round_trip", None)
    return PairTransform(PairOptions(text_column=column, pair_column=pair_column, **given), tokenizer)


@dataclass(frozen=True)
class TableFunction:
    """Tables with texts in, the same tables with the new columns out, and without the columns `dropped`."""

    transform: Transform | PairTransform
    dropped: tuple[str, ...] = ()

    @property
    def new_columns(self) -> pa.Schema:
        """The columns that are new."""
        schema: pa.Schema = self.transform.options.new_columns
        return schema

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Give the schema of what comes out.

        Raises `InputError` for a column that is missing or has no texts, `ConfigError` for a new one that is there.
        """
        for name in self.dropped:
            if name not in schema.names:
                raise InputError(f"there is no column {name!r} to remove", where="remove_columns")
        self.check_names(schema.names)
        for name in self.transform.columns:
            find_field(schema, name, "column")
        return self(schema.empty_table())[0].schema

    def __call__(self, table: pa.Table, first_row: int = 0) -> tuple[pa.Table, Stats]:
        """Give a table with the new columns, and its statistics; `first_row` is the number of its first row."""
        self.check_names(table.column_names)
        stats, outputs = Stats(), []
        for batch in self._batches(table):
            output, counted = self.transform.transform(batch, first_row)
            outputs.append(output)
            stats = stats.merge(counted)
            first_row += batch.num_rows
        new = pa.Table.from_batches(outputs, self.new_columns)
        table = table.drop_columns([name for name in self.dropped if name in table.column_names])
        for field, column in zip(new.schema, new.columns, strict=True):
            table = table.append_column(field, column)
        return table, stats

    def check_names(self, names: Iterable[str]) -> None:
        """Refuse new columns that are there already and are not to be removed: they would overwrite them."""
        refuse_overwriting(self.transform, (name for name in names if name not in self.dropped))

    def _batches(self, table: pa.Table) -> list[pa.RecordBatch]:
        """Give the columns of texts in few batches: a choice of rows (`filter`, `shuffle`) comes with a chunk a row."""
        names = {name for column in self.transform.columns for name in (column, column.split(".")[0])}
        texts = table.select([index for index, name in enumerate(table.schema.names) if name in names])
        if texts.nbytes < MOST_JOINED:
            texts = texts.combine_chunks()
        return texts.to_batches() or [pa.RecordBatch.from_pylist([], texts.schema)]


def refuse_overwriting(
    transform: Transform | PairTransform, names: Iterable[str], way_out: str = "put it into remove_columns"
) -> None:
    """Refuse columns that are called as the new ones. Raises `ConfigError`."""
    options, there = transform.options, set(names)
    new: list[str] = options.new_columns.names
    for name in new:
        if name in there:
            where = "id_column" if name == options.id_column else "round_trip_column"
            if name == getattr(options, "type_id_column", None):
                where = "pair_column"
            other = f"another {where}" if where != "pair_column" else "another name for that column"
            raise ConfigError(
                f"there is a column {name!r} already, which would be overwritten",
                where=where,
                hint=f"choose {other}, or {way_out}",
            )
    for name in (name for name, times in Counter(new).items() if times > 1):
        raise ConfigError(f"two new columns would be called {name!r}", where="id_column", hint="choose another name")


def names_of(columns: Sequence[str] | str) -> tuple[str, ...]:
    """Give the names of some columns; one may come without a list."""
    return (columns,) if isinstance(columns, str) else tuple(columns)
