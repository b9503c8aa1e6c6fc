"""One schema for all parts, so that the data folder reads as one table even where the inputs differ a little.

A column that only some inputs have is null in the others; `string` and `large_string` become `large_string`, narrow
integers the wider ones. Types that do not meet without a loss are an error: nobody wants to find that at read time.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as types

from tokbatch.errors import InputError


class SchemaUnion:
    """The schema that all parts get, made of that of one input after another."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, pa.DataType]] = {}

    def add(self, name: str, schema: pa.Schema) -> None:
        """Add the schema of an input's output.

        Raises `InputError` that names both inputs where a column's types do not meet; then nothing of it is added.
        """
        new: dict[str, tuple[str, pa.DataType]] = {}
        for field in schema:
            earlier, known = self._found.get(field.name, (name, field.type))
            both = common_type(known, field.type)
            if both is None:
                raise InputError(
                    f'the column "{field.name}" is {field.type} here, and {known} in {earlier}',
                    where=name,
                    hint="leave it out of input.keep_columns, or run the files as two jobs",
                )
            new[field.name] = (earlier, both)
        self._found |= new

    def schema(self, last: str) -> pa.Schema:
        """Give the union: columns in the order in which they first appear, `last` (the id column) at the end."""
        found = dict(self._found)
        ids = found.pop(last, None)
        fields = [pa.field(name, kind) for name, (_, kind) in found.items()]
        return pa.schema(fields + ([pa.field(last, ids[1])] if ids else []))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Give the type that holds the values of both without a loss; None where there is none."""
    if left.equals(right):
        return left
    if types.is_null(left) or types.is_null(right):
        return right if types.is_null(left) else left
    if _is_text(left) and _is_text(right):
        return pa.large_string() if _is_large(left) or _is_large(right) else pa.string()
    signed = types.is_signed_integer(left) and types.is_signed_integer(right)
    unsigned = types.is_unsigned_integer(left) and types.is_unsigned_integer(right)
    if signed or unsigned or (types.is_floating(left) and types.is_floating(right)):
        return left if left.bit_width >= right.bit_width else right
    return None


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch the common schema: columns in its order and types, missing ones null."""
    columns = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows, field.type) if index < 0 else batch.column(index)
        columns.append(column if column.type.equals(field.type) else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_text(kind: pa.DataType) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_large(kind: pa.DataType) -> bool:
    return bool(types.is_large_string(kind) or (types.is_dictionary(kind) and types.is_large_string(kind.value_type)))
