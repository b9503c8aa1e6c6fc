"""How many bytes the rows of a batch have once their texts stand one after another: what bounds memory.

Arrow's `nbytes` says so for most columns. It counts a dictionary once, however often its texts come, and all the texts
that a slice of views could point to; so these are counted row by row.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.views import row_numbers


def text_bytes(array: pa.Array) -> int:
    """Give the bytes of all rows of a column."""
    rows = _row_bytes(array)
    return int(array.nbytes if rows is None else pc.sum(rows).as_py() or 0)


def bounded(batch: pa.RecordBatch, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch into halves until each has at most `batch_bytes`, or a single row. Nothing is copied."""
    counted, plain = [], []
    for index, column in enumerate(batch.columns):
        rows = _row_bytes(column)
        if rows is None:
            plain.append(index)
        else:
            counted.append(rows)
    yield from _halves(batch, plain, counted, batch_bytes)


def _halves(
    batch: pa.RecordBatch, plain: list[int], counted: list[pa.Int64Array], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    size = sum(pc.sum(rows).as_py() or 0 for rows in counted)
    size += batch.nbytes if not counted else sum(batch.column(index).nbytes for index in plain)
    if batch.num_rows <= 1 or size <= batch_bytes:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halves(batch.slice(0, half), plain, [rows.slice(0, half) for rows in counted], batch_bytes)
    yield from _halves(batch.slice(half), plain, [rows.slice(half) for rows in counted], batch_bytes)


def _row_bytes(array: pa.Array) -> pa.Int64Array | None:
    """Give the bytes of each row; None where `nbytes` of a slice is right, or nearly."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _row_bytes(array.storage)
    if kind in (pa.string_view(), pa.binary_view()):
        return _view_bytes(array)
    if pa.types.is_dictionary(kind):
        values = _value_bytes(array.dictionary)
        return None if values is None else pc.fill_null(values.take(array.indices), 0)
    if pa.types.is_run_end_encoded(kind):
        values = _value_bytes(array.values)
        if values is None:
            return None
        runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, values)
        return pc.run_end_decode(runs.slice(array.offset, len(array)))
    if pa.types.is_struct(kind):
        fields = [(field, _row_bytes(field)) for field in array.flatten()]
        if all(rows is None for _, rows in fields):
            return None
        total = pa.repeat(pa.scalar(0, pa.int64()), len(array))
        for field, rows in fields:
            if rows is None:  # an even share will do for the other fields
                rows = pa.repeat(pa.scalar(field.nbytes // max(1, len(array)), pa.int64()), len(array))
            total = pc.add(total, rows)
        return total
    return None


def _value_bytes(values: pa.Array) -> pa.Int64Array | None:
    """Give the bytes of each value of a dictionary or of runs; None where values are no texts."""
    kind = values.type
    if any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)):
        return pc.fill_null(pc.binary_length(values).cast(pa.int64()), 0)
    return _row_bytes(values)


def _view_bytes(array: pa.Array) -> pa.Int64Array:
    """Read the lengths of views: each begins with its own, in four of its sixteen bytes."""
    count = array.offset + len(array)
    words = pa.Array.from_buffers(pa.int32(), 4 * count, [None, array.buffers()[1]])
    lengths = words.take(pc.multiply(row_numbers(len(array), array.offset), 4)).cast(pa.int64())
    return pc.if_else(array.is_null(), 0, pc.add(lengths, 16))
