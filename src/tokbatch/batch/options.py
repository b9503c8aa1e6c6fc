"""What a transform is asked to do, and where that leads in batches of one schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from tokbatch.batch.affixes import Affixes, build_affixes
from tokbatch.batch.arrow import text_column
from tokbatch.batch.fields import FieldPath, field_of, find_field
from tokbatch.batch.round_trip import VERIFICATION_TYPE
from tokbatch.batch.token_source import TokenSource
from tokbatch.engine.protocol import Engine
from tokbatch.errors import WRONG_COLUMN, ConfigError, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class IdOptions:
    """What single texts and pairs have in common: which ids, of what type, and what becomes of a bad row."""

    id_column: str = "input_ids"
    id_type: Literal["int32", "uint16"] = "int32"
    add_special_tokens: bool = True
    on_bad_row: Literal["fail", "null"] = "fail"

    @property
    def id_list_type(self) -> pa.DataType:
        """The type of the column of ids, whatever a batch holds."""
        return pa.list_(pa.uint16() if self.id_type == "uint16" else pa.int32())


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformOptions(IdOptions):
    """What to do with each batch.

    `text_column` is a name or, inside of structs, a dotted path. `keep_columns` are names of whole columns, or "all"
    for every column but the text column (a struct that holds a nested text stays whole). `prepend` and `append` are put
    around what the tokenizer gives, and `template` maps a token of the tokenizer's template to the one that goes into
    its place. `sample_rate` is the share of documents for `round_trip = "sample"`, and `crosscheck` the share that a
    second engine encodes again. `round_trip_column` names a column for what was found in each document, after the ids:
    a struct of `VERIFICATION_TYPE`, null where the round trip was not checked.
    """

    text_column: str = "text"
    keep_columns: Literal["all"] | tuple[str, ...] = ()
    prepend: tuple[TokenSource, ...] = ()
    append: tuple[TokenSource, ...] = ()
    template: Mapping[str, TokenSource] = field(default_factory=dict)
    round_trip: Literal["all", "sample", "off"] = "all"
    sample_rate: float = 0.01
    crosscheck: float = 0.0
    round_trip_column: str | None = None

    @property
    def new_columns(self) -> pa.Schema:
        """The columns that come after the kept ones."""
        fields = [(self.id_column, self.id_list_type)]
        if self.round_trip_column is not None:
            fields.append((self.round_trip_column, VERIFICATION_TYPE))
        return pa.schema(fields)


def checked_affixes(options: TransformOptions, engine: Engine, has_second_engine: bool) -> Affixes:
    """Hold options against an engine, and give the tokens to put around its ids.

    Raises `ConfigError` with all problems.
    """
    problems: list[str] = []
    if options.round_trip_column is not None and options.round_trip == "off":
        problems.append('round_trip_column: there is nothing to put there with round_trip = "off"')
    problems += problems_of_choices(options)
    for name in ("sample_rate", "crosscheck"):
        if not 0 <= getattr(options, name) <= 1:
            problems.append(f"{name}: {getattr(options, name)} is no share, which is 0 to 1")
    if options.crosscheck > 0 and not has_second_engine:
        problems.append("crosscheck: there is no second tokenizer to encode again with")
    keep_columns: object = options.keep_columns
    if isinstance(keep_columns, str) and keep_columns != "all":
        problems.append(f'keep_columns: {keep_columns!r} is neither a list of names nor "all"')
    try:
        affixes = build_affixes(engine, options.add_special_tokens, options.prepend, options.append, options.template)
    except ConfigError as error:
        raise ConfigError(
            "; ".join(problems + error.problems), problems=problems + error.problems, hint=error.hint
        ) from None
    problems += problems_of_size(options, max(engine.max_id, affixes.largest_id))
    if problems:
        raise ConfigError("; ".join(problems), problems=problems)
    return affixes


def problems_of_choices(options: IdOptions) -> list[str]:
    """Say which options have values that are none of theirs."""
    choices = {
        "id_type": ("int32", "uint16"),
        "round_trip": ("all", "sample", "off"),
        "on_bad_row": ("fail", "null"),
    }
    return [
        f"{name}: {getattr(options, name)!r} is none of {', '.join(map(repr, allowed))}"
        for name, allowed in choices.items()
        if getattr(options, name, allowed[0]) not in allowed
    ]


def problems_of_size(options: IdOptions, largest: int) -> list[str]:
    """Say whether the largest id is too large for the type of the ids."""
    if options.id_type == "uint16" and largest > 0xFFFF:
        return [f"id_type: the largest id is {largest:,}, and uint16 holds {0xFFFF:,}"]
    return []


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in batches of one schema, and the schema of what comes out.

    `affixes` has, for each column that tokens come from, its name and place.
    """

    text: FieldPath
    kept: tuple[int, ...]
    affixes: tuple[tuple[str, FieldPath], ...]
    output: pa.Schema


def build_layout(schema: pa.Schema, options: TransformOptions, affixes: Affixes) -> Layout:
    """Find the columns in a schema.

    Raises `InputError` for a column that is missing or is no column of strings, and for kept columns of one name,
    which nobody could tell apart afterwards; `ConfigError` for an `id_column` that is already there.
    """
    text = find_field(schema, options.text_column, "text_column")
    affix_columns = tuple((name, find_field(schema, name, "tokens from a column")) for name in affixes.columns)
    called = [(options.text_column, text, "text_column")]
    called += [(name, path, "tokens from a column") for name, path in affix_columns]
    for name, path, option in called:
        try:
            text_column(pa.nulls(0, field_of(schema, path).type))
        except InputError as error:
            what = f"column {name!r}: {error.message}"
            raise InputError(what, where=option, hint=error.hint, code=WRONG_COLUMN) from None
    kept = _kept_columns(schema, options, text)
    fields = [schema.field(index) for index in kept]
    for name, count in Counter(schema.field(index).name for index in kept).items():
        if count > 1:
            raise InputError(
                f"there are {count} columns {name!r}", where="keep_columns", hint="rename one of them, or keep others"
            )
    whose = {"id_column": "the ids are", "round_trip_column": "what the round trip finds is"}
    for (option, what), new in zip(whose.items(), options.new_columns, strict=False):
        if new.name in {field.name for field in fields}:
            taken = "the ids" if new.name == options.id_column and option != "id_column" else "a kept column"
            raise ConfigError(
                f"{what} to be called {new.name!r}, which is the name of {taken}",
                where=option,
                hint="choose another name, or do not keep that column",
            )
        fields.append(new)
    return Layout(text, kept, affix_columns, pa.schema(fields, _lasting_metadata(schema)))


def _kept_columns(schema: pa.Schema, options: TransformOptions, text: FieldPath) -> tuple[int, ...]:
    if options.keep_columns == "all":
        return tuple(index for index in range(len(schema)) if (index,) != text)
    paths = [find_field(schema, name, "keep_columns") for name in options.keep_columns]
    for name, path in zip(options.keep_columns, paths, strict=True):
        if len(path) > 1:
            raise InputError(
                f"{name!r} is a field inside of a column",
                where="keep_columns",
                hint="only whole columns are kept",
                code=WRONG_COLUMN,
            )
    if len(set(paths)) < len(paths):
        raise ConfigError("a column is named twice", where="keep_columns")
    return tuple(path[0] for path in paths)


def _lasting_metadata(schema: pa.Schema) -> dict[bytes, bytes] | None:
    """Give what stays true of a schema with fewer columns.

    The features of `datasets` are looked up by column; what pandas writes names columns that may be gone.
    """
    features = (schema.metadata or {}).get(b"huggingface")
    return {b"huggingface": features} if features else None
