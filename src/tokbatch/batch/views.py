"""Views: the engine's flat columns seen as Arrow arrays, and choices of their rows.

Nothing in here looks at a text or at an id, and nothing copies one unless the function says so. Reading from and
writing to the arrays of users is `arrow.py`, which comes next.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.engine.columns import Buffer, IdColumn, TextColumn, offsets_view


def strings_of(column: TextColumn, nulls: pa.BooleanArray | None = None) -> pa.StringArray | pa.LargeStringArray:
    """See the engine's texts as an Arrow array, null where `nulls` is true; nothing is copied.

    The array's offsets are those of the column: in 32 or in 64 bits.
    """
    offsets = offsets_view(column.list_offsets)
    validity = None if nulls is None else pa.concat_arrays([pc.invert(nulls)]).buffers()[1]
    kind = pa.string() if offsets.format == "i" else pa.large_string()
    return pa.Array.from_buffers(kind, column.rows, [validity, pa.py_buffer(offsets), pa.py_buffer(column.data)])


def ids_of(column: IdColumn) -> pa.Int32Array:
    """See all ids of a column as one Arrow array; nothing is copied."""
    count = offsets_view(column.list_offsets)[column.rows]
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(column.ids)])


def int64s(buffer: Buffer, count: int) -> pa.Int64Array:
    """See a buffer of int64 as an Arrow array; nothing is copied."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(buffer)])


def wide_offsets(column: IdColumn | TextColumn) -> pa.Int64Array:
    """Give the list offsets of a column in 64 bits: a copy where they have 32."""
    offsets = _offsets_as_they_are(column.list_offsets, column.rows)
    return offsets if pa.types.is_int64(offsets.type) else offsets.cast(pa.int64())


def list_lengths(ids: IdColumn) -> pa.Int64Array:
    """Give the number of ids of each row."""
    offsets = wide_offsets(ids)
    return pc.subtract(offsets.slice(1), offsets.slice(0, ids.rows))


def row_numbers(count: int, first: int = 0) -> pa.Int64Array:
    """Give `count` numbers from `first` on."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.cumulative_sum(ones, start=first - 1)


def without_empty_texts(texts: TextColumn, keep: pa.BooleanArray) -> TextColumn:
    """Give the texts where `keep` is true, when all the others are empty. The bytes are shared."""
    list_offsets = _without_empty(texts.list_offsets, texts.rows, keep)
    return replace(texts, list_offsets=list_offsets, rows=len(list_offsets) - 1)


def without_empty_ids(ids: IdColumn, keep: pa.BooleanArray) -> IdColumn:
    """Give the lists where `keep` is true, when all the others are empty. The ids are shared; failures are gone."""
    list_offsets = _without_empty(ids.list_offsets, ids.rows, keep)
    return IdColumn(ids.ids, list_offsets, len(list_offsets) - 1)


def with_empty_ids(ids: IdColumn, nulls: pa.BooleanArray) -> IdColumn:
    """Give a list a row of `nulls`: the given ones, in order, where it is false, and empty ones elsewhere."""
    return IdColumn(ids.ids, _with_empty(ids.list_offsets, ids.rows, nulls), len(nulls))


def with_empty_texts(texts: TextColumn, nulls: pa.BooleanArray) -> TextColumn:
    """Give a text a row of `nulls`: the given ones, in order, where it is false, and empty ones elsewhere."""
    return TextColumn(texts.data, _with_empty(texts.list_offsets, texts.rows, nulls), len(nulls))


def take_texts(texts: TextColumn, rows: pa.Array) -> TextColumn:
    """Give the texts of some rows: a copy of theirs, and none of the others."""
    return text_column_of(strings_of(texts).take(rows))


def take_ids(ids: IdColumn, rows: pa.Array) -> IdColumn:
    """Give the lists of some rows: a copy of theirs, and none of the others."""
    lists = pa.LargeListArray.from_arrays(wide_offsets(ids), ids_of(ids)).take(rows)
    offsets = offsets_from(pc.list_value_length(lists))
    return IdColumn(buffer_of(lists.flatten(), 4), buffer_of(offsets, 8), len(lists))


def _offsets_as_they_are(list_offsets: Buffer, rows: int) -> pa.Int32Array | pa.Int64Array:
    offsets = offsets_view(list_offsets)
    kind = pa.int32() if offsets.format == "i" else pa.int64()
    return pa.Array.from_buffers(kind, rows + 1, [None, pa.py_buffer(offsets)])


def _offsets_buffer(offsets: pa.Int32Array | pa.Int64Array) -> memoryview:
    if pa.types.is_int32(offsets.type):
        return memoryview(buffer_of(offsets, 4)).cast("B").cast("i")
    return memoryview(buffer_of(offsets, 8)).cast("B").cast("q")


def _without_empty(list_offsets: Buffer, rows: int, keep: pa.BooleanArray) -> memoryview:
    offsets = _offsets_as_they_are(list_offsets, rows)
    return _offsets_buffer(pa.concat_arrays([offsets.slice(0, rows).filter(keep), offsets.slice(rows)]))


def _with_empty(list_offsets: Buffer, rows: int, nulls: pa.BooleanArray) -> memoryview:
    before = offsets_from(pc.invert(nulls).cast(pa.int64()))
    return _offsets_buffer(_offsets_as_they_are(list_offsets, rows).take(before))


def text_column_of(strings: pa.StringArray | pa.LargeStringArray) -> TextColumn:
    """Give an array of strings as the engine's texts; a null gives what lies under it. Nothing is copied."""
    data = strings.buffers()[2]
    return TextColumn(memoryview(data) if data else b"", offsets_of(strings), len(strings))


def offsets_of(values: pa.Array) -> memoryview:
    """See the list offsets of an array of strings, bytes or lists, which has none when it is empty."""
    buffer = values.buffers()[1]
    if buffer is None or buffer.size == 0:
        return memoryview(array("q", [0]))
    first, end = values.offset, values.offset + len(values) + 1
    if isinstance(values, _WITH_WIDE_OFFSETS):
        return memoryview(buffer)[first * 8 : end * 8].cast("q")
    return memoryview(buffer)[first * 4 : end * 4].cast("i")


_WITH_WIDE_OFFSETS = (pa.LargeStringArray, pa.LargeBinaryArray, pa.LargeListArray)


def offsets_from(lengths: pa.Int64Array) -> pa.Int64Array:
    """Give the list offsets of lists of these lengths."""
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])


def buffer_of(values: pa.Array, width: int) -> Buffer:
    """See the values of an array of integers of `width` bytes as a buffer; nothing is copied."""
    buffer = values.buffers()[1]
    if buffer is None:
        return b""
    return memoryview(buffer)[values.offset * width : (values.offset + len(values)) * width]
