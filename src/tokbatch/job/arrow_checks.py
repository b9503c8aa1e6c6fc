"""Whether a record batch that came from a file can be trusted: pyarrow takes lengths and offsets as they stand there.

What does not fit is found before anything follows it to bytes that are not there. Values are not judged: a text that is
no UTF-8 is a bad row, and not a bad file.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as types


def check_offsets(batch: pa.RecordBatch) -> None:
    """Raise `pa.ArrowException` where a buffer is too short, or an offset, index or count leads out of a column.

    That takes about a nanosecond for each of them.
    """
    batch.validate()  # first, since the rest relies on it
    if not batch.num_rows:  # pyarrow finds fault with no rows of a view
        return
    plain = pa.schema([pa.field(field.name, plain_type(field.type)) for field in batch.schema])
    _, array = batch.__arrow_c_array__()
    pa.RecordBatch._import_from_c_capsule(plain.__arrow_c_schema__(), array).validate(full=True)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Give the type of the same buffers that every value fits: bytes for strings, integers for dates and times."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    for is_it, plain in _PLAIN:
        if is_it(kind):
            return plain
    if types.is_decimal(kind):
        return pa.binary(kind.byte_width)
    if types.is_map(kind):  # as a list: that its keys are no nulls is about values
        return pa.list_(_plain_field(pa.field("entries", pa.struct([kind.key_field, kind.item_field]), False)))
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    for is_it, make in _LISTS:
        if is_it(kind):
            return make(_plain_field(kind.value_field))
    if types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(index)) for index in range(kind.num_fields)])
    if types.is_union(kind):
        fields = [_plain_field(kind.field(index)) for index in range(kind.num_fields)]
        return pa.union(fields, kind.mode, kind.type_codes)
    if types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, plain_type(kind.value_type))
    return kind


_PLAIN = (
    (types.is_string, pa.binary()),
    (types.is_large_string, pa.large_binary()),
    (types.is_string_view, pa.binary_view()),
    (types.is_date32, pa.int32()),
    (types.is_date64, pa.int64()),
    (types.is_time32, pa.int32()),
    (types.is_time64, pa.int64()),
)
_LISTS = (
    (types.is_list, pa.list_),
    (types.is_large_list, pa.large_list),
    (types.is_list_view, pa.list_view),
    (types.is_large_list_view, pa.large_list_view),
)


def _plain_field(field: pa.Field) -> pa.Field:
    # Nullable, since a null where none may be is about values too.
    return pa.field(field.name, plain_type(field.type))
