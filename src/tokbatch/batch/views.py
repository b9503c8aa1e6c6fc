"""Views: the engine's flat columns seen as Arrow arrays, and choices of their rows.

Nothing in here looks at a text or at an id, and nothing copies one unless the function says so. Reading from and
writing to the arrays of users is `arrow.py`, which comes next.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.engine.columns import Buffer, IdColumn, TextColumn


def large_strings(column: TextColumn, nulls: pa.BooleanArray | None = None) -> pa.LargeStringArray:
    """See the engine's texts as an Arrow array, null where `nulls` is true; nothing is copied."""
    validity = None if nulls is None else pa.concat_arrays([pc.invert(nulls)]).buffers()[1]
    buffers = [validity, pa.py_buffer(column.list_offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.large_string(), column.rows, buffers)


def ids_of(column: IdColumn) -> pa.Int32Array:
    """See all ids of a column as one Arrow array; nothing is copied."""
    count = last(int64s(column.list_offsets, column.rows + 1))
    return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(column.ids)])


def int64s(buffer: Buffer, count: int) -> pa.Int64Array:
    """See a buffer of int64 as an Arrow array; nothing is copied."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(buffer)])


def list_lengths(ids: IdColumn) -> pa.Int64Array:
    """Give the number of ids of each row."""
    offsets = int64s(ids.list_offsets, ids.rows + 1)
    return pc.subtract(offsets.slice(1), offsets.slice(0, ids.rows))


def row_numbers(count: int, first: int = 0) -> pa.Int64Array:
    """Give `count` numbers from `first` on."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.cumulative_sum(ones, start=first - 1)


def without_empty_texts(texts: TextColumn, keep: pa.BooleanArray) -> TextColumn:
    """Give the texts where `keep` is true, when all the others are empty. The bytes are shared."""
    list_offsets = _without_empty(texts.list_offsets, texts.rows, keep)
    return replace(texts, list_offsets=buffer_of(list_offsets, 8), rows=len(list_offsets) - 1)


def without_empty_ids(ids: IdColumn, keep: pa.BooleanArray) -> IdColumn:
    """Give the lists where `keep` is true, when all the others are empty. The ids are shared; failures are gone."""
    list_offsets = _without_empty(ids.list_offsets, ids.rows, keep)
    return IdColumn(ids.ids, buffer_of(list_offsets, 8), len(list_offsets) - 1)


def with_empty_ids(ids: IdColumn, nulls: pa.BooleanArray) -> IdColumn:
    """Give a list a row of `nulls`: the given ones, in order, where it is false, and empty ones elsewhere."""
    return IdColumn(ids.ids, _with_empty(ids.list_offsets, ids.rows, nulls), len(nulls))


def with_empty_texts(texts: TextColumn, nulls: pa.BooleanArray) -> TextColumn:
    """Give a text a row of `nulls`: the given ones, in order, where it is false, and empty ones elsewhere."""
    return TextColumn(texts.data, _with_empty(texts.list_offsets, texts.rows, nulls), len(nulls))


def take_texts(texts: TextColumn, rows: pa.Array) -> TextColumn:
    """Give the texts of some rows: a copy of theirs, and none of the others."""
    return text_column_of(large_strings(texts).take(rows))


def take_ids(ids: IdColumn, rows: pa.Array) -> IdColumn:
    """Give the lists of some rows: a copy of theirs, and none of the others."""
    offsets = int64s(ids.list_offsets, ids.rows + 1)
    lists = pa.LargeListArray.from_arrays(offsets, ids_of(ids)).take(rows)
    offsets = offsets_from(pc.list_value_length(lists))
    return IdColumn(buffer_of(lists.flatten(), 4), buffer_of(offsets, 8), len(lists))


def _without_empty(list_offsets: Buffer, rows: int, keep: pa.BooleanArray) -> pa.Int64Array:
    offsets = int64s(list_offsets, rows + 1)
    return pa.concat_arrays([offsets.slice(0, rows).filter(keep), offsets.slice(rows)])


def _with_empty(list_offsets: Buffer, rows: int, nulls: pa.BooleanArray) -> Buffer:
    before = offsets_from(pc.invert(nulls).cast(pa.int64()))
    return buffer_of(int64s(list_offsets, rows + 1).take(before), 8)


def text_column_of(strings: pa.LargeStringArray) -> TextColumn:
    """Give an array of large strings as the engine's texts; a null gives what lies under it. Nothing is copied."""
    data = strings.buffers()[2]
    return TextColumn(memoryview(data) if data else b"", buffer_of(offsets_of(strings), 8), len(strings))


def offsets_of(strings: pa.LargeStringArray) -> pa.Int64Array:
    """See the list offsets of an array of large strings, which has none when it is empty."""
    buffer = strings.buffers()[1]
    if buffer is None or buffer.size == 0:
        return pa.array([0], pa.int64())
    return int64s(buffer, strings.offset + len(strings) + 1).slice(strings.offset)


def offsets_from(lengths: pa.Int64Array) -> pa.Int64Array:
    """Give the list offsets of lists of these lengths."""
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])


def last(offsets: pa.Int64Array) -> int:
    """Give the last of some list offsets: the number of ids, or of bytes."""
    last: int = offsets[-1].as_py()
    return last


def buffer_of(values: pa.Array, width: int) -> Buffer:
    """See the values of an array of integers of `width` bytes as a buffer; nothing is copied."""
    buffer = values.buffers()[1]
    if buffer is None:
        return b""
    return memoryview(buffer)[values.offset * width : (values.offset + len(values)) * width]
