"""Fields of a schema by name or dotted path, inside of structs too."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.errors import WRONG_COLUMN, InputError

FieldPath = tuple[int, ...]
"""Where a field is: the index of its column, then of the field in the struct, and so on."""


def find_field(schema: pa.Schema, name: str, where: str) -> FieldPath:
    """Give the place of a field: ``"text"``, or ``"message.body"`` for a field of a struct.

    A name is first taken whole, so that a column may be called "a.b". A field that is missing or there twice is an
    `InputError`.
    """
    path = _find(list(schema), name)
    if path is None:
        names = list(_names(schema))
        raise InputError(f"there is no column {name!r}", where=where, hint=_hint(name, names), code=WRONG_COLUMN)
    return path


def field_of(schema: pa.Schema, path: FieldPath) -> pa.Field:
    """Give the field at a place."""
    field = schema.field(path[0])
    for index in path[1:]:
        field = field.type.field(index)
    return field


def values_of(batch: pa.RecordBatch, path: FieldPath) -> pa.Array:
    """Give the values at a place of a batch; where a struct is null, so are its fields."""
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _find(fields: list[pa.Field], name: str) -> FieldPath | None:
    same = [index for index, field in enumerate(fields) if field.name == name]
    if len(same) > 1:
        raise InputError(f"there are {len(same)} columns {name!r}", hint="rename one of them")
    if same:
        return (same[0],)
    for dot in (i for i in range(len(name) - 1, 0, -1) if name[i] == "."):
        for index, field in enumerate(fields):
            if field.name == name[:dot] and pa.types.is_struct(field.type):
                rest = _find([field.type.field(i) for i in range(field.type.num_fields)], name[dot + 1 :])
                if rest is not None:
                    return (index, *rest)
    return None


def _names(fields: Iterable[pa.Field], prefix: str = "") -> Iterable[str]:
    for field in fields:
        yield prefix + field.name
        if pa.types.is_struct(field.type):
            yield from _names((field.type.field(i) for i in range(field.type.num_fields)), f"{prefix}{field.name}.")


def _hint(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are {', '.join(map(repr, names[:20]))}" if names else "there are no columns at all"
