"""Ids as they lie in flat files: little-endian, one after another, without lists, nulls or padding.

The type is that of the column, which holds every id by the largest one there is; nothing is cast here, so nothing
wraps.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.errors import InputError, OutputError


def id_list_type(id_type: str) -> pa.DataType:
    """Give the type of the column of ids: lists whose elements are never null."""
    return pa.list_(pa.field("element", getattr(pa, id_type)(), nullable=False))


def only_ids(schema: pa.Schema, id_column: str, id_type: str, what: str) -> pa.Schema:
    """Give the schema of parts that have ids and nothing else. Raises `InputError` for a kept column."""
    others = [name for name in schema.names if name != id_column]
    if others:
        raise InputError(
            f'{what} have no place for the column "{others[0]}"',
            where="input.keep_columns",
            hint='set it to [], or take output.format = "parquet" or "arrow"',
        )
    if sys.byteorder != "little":
        raise OutputError("flat files of ids are little-endian, and this machine is not", where="output.format")
    return pa.schema([pa.field(id_column, id_list_type(id_type))])


def flat_ids(lists: pa.ListArray) -> tuple[memoryview, pa.Int64Array]:
    """Give the bytes of all ids and the length of each list; a null is a list without ids."""
    values = lists.flatten()
    width = values.type.bit_width // 8
    data = values.buffers()[1]
    view = memoryview(data if data is not None else b"")[values.offset * width : (values.offset + len(values)) * width]
    return view, pc.fill_null(pc.list_value_length(lists).cast(pa.int64()), 0)


def without_nulls(lists: pa.ListArray) -> pa.ListArray:
    """Give the lists with an empty one in the place of each null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, lists.flatten(), type=lists.type)


def lists_of(values: pa.Array, offsets: pa.Int64Array, id_type: str) -> pa.ListArray:
    """Give lists of ids from all values and the places where lists begin and end."""
    first = offsets[0].as_py()
    own = values.slice(first, offsets[-1].as_py() - first)
    return pa.ListArray.from_arrays(pc.subtract(offsets, first).cast(pa.int32()), own, type=id_list_type(id_type))


def int64s(data: pa.Buffer, count: int, place: int = 0) -> pa.Int64Array:
    """Give numbers of 64 bits out of a buffer, whatever its alignment."""
    own = pa.py_buffer(data.slice(place, count * 8).to_pybytes())
    return pa.Array.from_buffers(pa.int64(), count, [None, own])
