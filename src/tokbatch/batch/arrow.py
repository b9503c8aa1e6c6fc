"""The Arrow boundary: arrays of texts and of ids as the engine's flat columns, and back.

All that the project knows about Arrow's string and list types is here: 32-bit and 64-bit offsets, views, dictionaries,
slices, chunks, nulls and what lies under them. Buffers are shared wherever the layouts agree: an array of strings or
large strings goes in, and ids come out, without a copy of text or ids. What is not here: fields inside of records
(`fields.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.views import (
    buffer_of,
    ids_of,
    list_lengths,
    offsets_from,
    offsets_of,
    row_numbers,
    strings_of,
    text_column_of,
    wide_offsets,
    with_empty_texts,
)
from tokbatch.engine.columns import IdColumn, TextColumn, offsets_view
from tokbatch.errors import DecodeError, EncodeError, InputError, TokbatchError

Nulls: TypeAlias = "pa.BooleanArray | None"
"""A boolean a row, true where there is no value; None where all rows have one. What Arrow calls a mask."""

S = TypeVar("S", pa.StringArray, pa.LargeStringArray)

MAXIMUM_OFFSET = 2**31 - 1
"""The largest offset of Arrow's list and string types, and the largest id of an `IdColumn`."""
FEW = 256
"""Texts in a list that are laid out here: `pa.array` would first import pandas, where that is, for a quarter second."""


@dataclass(frozen=True, slots=True)
class TextRows:
    """What was read from an Arrow array of strings: a text a row, empty where `nulls` is true.

    `failures` has (row, error) for the rows whose bytes are not UTF-8, where the caller asked to go on past them;
    such rows count as null.
    """

    texts: TextColumn
    nulls: Nulls
    failures: list[tuple[int, TokbatchError]]


@dataclass(frozen=True, slots=True)
class IdRows:
    """What was read from an Arrow array of lists of ids: a list a row, empty where `nulls` is true."""

    ids: IdColumn
    nulls: Nulls


def as_array(texts: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Give a list of str (and None) as an Arrow array; an Arrow array stays what it is.

    A lone surrogate is an `EncodeError` with the row; what is neither, an `InputError`.
    """
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        return texts
    if isinstance(texts, (str, bytes)):
        raise InputError("a list of texts expected, found one text", hint="put it into a list")
    if isinstance(texts, (Mapping, Set)):
        raise InputError(f"a list of texts expected, found a {type(texts).__name__}")
    if isinstance(texts, Iterator):  # it is read twice where a text is none
        texts = list(texts)
    if isinstance(texts, list) and len(texts) <= FEW and all(type(text) is str for text in texts):
        return strings_of(TextColumn.from_texts(texts))
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        TextColumn.from_texts(text if isinstance(text, str) else "" for text in texts)  # knows the row
        raise  # pragma: no cover
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise InputError(f"a list of texts expected: {error}") from None


def text_column(
    values: pa.Array | pa.ChunkedArray, where: str = "texts", keep_going: bool = False, check_utf8: bool = True
) -> TextRows:
    """Give the texts of a column of strings, and which rows have none.

    Takes string, large_string, string_view, dictionaries and run-end encodings of these, extension types stored as
    these, and null. Another type is an `InputError`. Bytes that are not UTF-8 are an `EncodeError` with the row, or
    land in `failures` with `keep_going`. Whoever hands the texts to an engine that reads all of them can leave that to
    it (`check_utf8`): a look at all bytes is up to a tenth of the time of encoding.
    """
    strings = _as_strings(values, where)
    nulls = pc.is_null(strings) if strings.null_count else None
    failures: list[tuple[int, TokbatchError]] = []
    try:
        (strings if check_utf8 else _as_bytes(strings)).validate(full=True)
    except pa.ArrowInvalid as error:
        failures = _rows_not_utf8(_sound(strings, where)) if check_utf8 else []
        if not failures:
            raise InputError(f"a broken Arrow array: {error}", where=where) from None
        if not keep_going:
            raise failures[0][1] from None
        no_text = pc.is_in(row_numbers(len(strings)), pa.array([row for row, _ in failures], pa.int64()))
        nulls = no_text if nulls is None else pc.or_(nulls, no_text)
    if nulls is not None:
        # The layout allows any bytes under a null; with a null parent, or after failures, there are some.
        visible = pc.if_else(nulls, 0, pc.binary_length(strings))
        offsets = offsets_of(strings)
        if (pc.sum(visible).as_py() or 0) != offsets[-1] - offsets[0]:
            return TextRows(with_empty_texts(text_column_of(strings.filter(pc.invert(nulls))), nulls), nulls, failures)
    return TextRows(text_column_of(strings), nulls, failures)


def string_array(column: TextColumn, nulls: Nulls = None) -> pa.StringArray | pa.LargeStringArray:
    """Give texts as an Arrow array that shares their bytes: strings, or large strings where 32 bits do not do."""
    strings = strings_of(column, nulls)
    is_done = isinstance(strings, pa.StringArray) or offsets_of(strings)[-1] > MAXIMUM_OFFSET
    return strings if is_done else strings.cast(pa.string())


def id_array(
    column: IdColumn,
    nulls: Nulls = None,
    id_type: str | pa.DataType = "int32",
    list_type: pa.DataType | None = None,
) -> pa.ListArray | pa.LargeListArray:
    """Give lists of ids as an Arrow array, null where `nulls` is true; int32 ids share the column's buffer.

    `id_type` is "int32" or another integer type; an id that it does not hold is an `EncodeError`.
    `list_type` None means a list, or a large_list where 32-bit offsets do not do; a caller who needs the type to be
    the same for all batches names it, and gets an `EncodeError` where the batch is too large for it.
    """
    values = ids_of(column)
    count = len(values)
    if id_type not in ("int32", pa.int32()):
        try:
            values = values.cast(id_type)
        except pa.ArrowInvalid as error:
            raise EncodeError(f"an id does not fit into {id_type}: {error}", hint="use int32") from None
    if list_type is None:
        list_type = pa.list_(values.type) if count <= MAXIMUM_OFFSET else pa.large_list(values.type)
    if pa.types.is_large_list(list_type):
        return pa.LargeListArray.from_arrays(wide_offsets(column), values, type=list_type, mask=nulls)
    if count > MAXIMUM_OFFSET:
        raise EncodeError(
            f"{count:,} ids in {column.rows:,} rows, while a batch of {list_type} holds {MAXIMUM_OFFSET:,}",
            hint="give smaller batches",
        )
    offsets = offsets_view(column.list_offsets)
    if offsets.format == "i" and nulls is None:
        return pa.Array.from_buffers(list_type, column.rows, [None, pa.py_buffer(offsets)], children=[values])
    return pa.ListArray.from_arrays(wide_offsets(column).cast(pa.int32()), values, type=list_type, mask=nulls)


def as_id_array(ids: Sequence[Sequence[int] | None] | pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Give a list of lists of int (and None) as an Arrow array; an Arrow array stays what it is."""
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        return ids
    try:
        return pa.array(ids)  # of the type that is there: asked for integers, Arrow rounds fractions
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        raise InputError(f"a list of lists of ids expected: {error}") from None


def id_column(values: pa.Array | pa.ChunkedArray, where: str = "ids", check_ids: bool = True) -> IdRows:
    """Give lists of ids as the engine's column, and which rows have none.

    Takes lists of every kind and of every integer type, and null. A null among the ids, a negative id, or one beyond
    32 bits is a `DecodeError`, another type an `InputError`. Whoever hands the ids to an engine can leave the look for
    negative ones to it (`check_ids`), where ids of 32 bits lie as it takes them.
    """
    if isinstance(values, pa.ChunkedArray):
        return _joined_ids([id_column(chunk, where, check_ids) for chunk in values.chunks])
    if isinstance(values, pa.ExtensionArray):
        return id_column(values.storage, where, check_ids)
    kind = values.type
    if pa.types.is_null(kind):
        values = values.cast(pa.large_list(pa.int32()))
    elif not _is_list(kind) or not (pa.types.is_integer(kind.value_type) or pa.types.is_null(kind.value_type)):
        raise InputError(f"a column of lists of ids expected, found {kind}", where=where)
    _validate(values, where)
    offsets = _offsets_of_all(values)
    if offsets is not None:
        ids, are_checked = values.values, check_ids or not pa.types.is_int32(kind.value_type)
        ids = _checked_ids(ids, where) if are_checked else _without_nulls(ids, where)
        return IdRows(IdColumn(buffer_of(ids, 4), offsets, len(values), are_checked=are_checked), None)
    ids = values.flatten()  # without what lies under null rows and outside of a slice
    lengths = pc.fill_null(pc.list_value_length(values).cast(pa.int64()), 0)
    column = IdColumn(buffer_of(_checked_ids(ids, where), 4), buffer_of(offsets_from(lengths), 8), len(values))
    return IdRows(column, pc.is_null(values) if values.null_count else None)


def _as_strings(values: pa.Array | pa.ChunkedArray, where: str) -> pa.StringArray | pa.LargeStringArray:
    """Give a column of any string type as one array; the text itself is shared where it can be."""
    if isinstance(values, pa.ChunkedArray) and values.num_chunks == 1:
        values = values.chunk(0)
    return values if isinstance(values, pa.StringArray) else _as_large_strings(values, where)


def _as_large_strings(values: pa.Array | pa.ChunkedArray, where: str) -> pa.LargeStringArray:
    """Give a column of any string type as one array with 64-bit offsets; the text itself is shared where it can be."""
    if isinstance(values, pa.ChunkedArray):
        chunks = [_as_large_strings(chunk, where) for chunk in values.chunks or [pa.array([], values.type)]]
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays([_sound(chunk, where) for chunk in chunks])
    if isinstance(values, pa.ExtensionArray):
        return _as_large_strings(values.storage, where)
    if isinstance(values, pa.DictionaryArray):
        # First the dictionary: decoding knows no views, and overflows 32-bit offsets.
        dictionary = _sound(_as_large_strings(values.dictionary, where), where)
        _validate(values.indices, where)
        try:
            return pa.DictionaryArray.from_arrays(values.indices, dictionary, safe=False).dictionary_decode()
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise InputError(f"a broken Arrow array: {error}", where=where) from None
    kind = values.type
    if pa.types.is_run_end_encoded(kind):
        return _run_end_decoded(values, where)
    if pa.types.is_large_string(kind):
        return values
    if pa.types.is_string(kind) or pa.types.is_null(kind):
        return values.cast(pa.large_string())
    if kind == pa.string_view():
        return _views_as_large_strings(values, where)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    hint = "if its bytes are UTF-8, cast it to string" if is_bytes else None
    raise InputError(f"a column of texts expected, found {kind}", where=where, hint=hint)


def _run_end_decoded(values: pa.RunEndEncodedArray, where: str) -> pa.LargeStringArray:
    """Decode a run-end encoding, by way of its values' row numbers: decoding knows neither views nor dictionaries."""
    strings = _sound(_as_large_strings(values.values, where), where)
    try:
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, row_numbers(len(strings)))
    except pa.ArrowInvalid as error:
        raise InputError(f"a broken Arrow array: {error}", where=where) from None
    return strings.take(pc.run_end_decode(runs.slice(values.offset, len(values))))


def _views_as_large_strings(values: pa.StringViewArray, where: str) -> pa.LargeStringArray:
    """Copy the texts out of an array of views, once it is known that they lead nowhere else."""
    _validate(values.view(pa.binary_view()), where)
    return values.cast(pa.large_string())


def _validate(values: pa.Array, where: str) -> None:
    """Raise `InputError` for an array whose offsets or indices lead out of it."""
    try:
        values.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
        raise InputError(f"a broken Arrow array: {error}", where=where) from None


def _sound(strings: S, where: str) -> S:
    """Give an array back, or raise `InputError` where its offsets go backwards or out of its bytes.

    Arrow itself looks at that only in full validation, and aborts the process when it copies texts of such an array.
    """
    _validate(_as_bytes(strings), where)
    return strings


def _as_bytes(strings: pa.StringArray | pa.LargeStringArray) -> pa.BinaryArray | pa.LargeBinaryArray:
    """See texts as bytes: so Arrow validates all but the UTF-8."""
    return strings.view(pa.binary() if isinstance(strings, pa.StringArray) else pa.large_binary())


def _rows_not_utf8(strings: pa.StringArray | pa.LargeStringArray) -> list[tuple[int, TokbatchError]]:
    """Find the rows that are not UTF-8, one by one: only for an array that is known to have such."""
    column = text_column_of(strings)
    failures: list[tuple[int, TokbatchError]] = []
    for row in range(column.rows):
        if strings[row].is_valid:
            try:
                column.text(row)
            except EncodeError as error:
                failures.append((row, error))
    return failures


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    is_array = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_array or types.is_list_view(kind) or types.is_large_list_view(kind))


def _offsets_of_all(lists: pa.Array) -> memoryview | None:
    """Give the list offsets of an array as they are, where its rows have all of its values; else None."""
    is_plain = isinstance(lists, (pa.ListArray, pa.LargeListArray))
    if not is_plain or not len(lists) or lists.null_count:
        return None
    offsets = offsets_of(lists)
    return offsets if offsets[0] == 0 and offsets[-1] == len(lists.values) else None


def _without_nulls(ids: pa.Array, where: str) -> pa.Array:
    if ids.null_count:
        raise DecodeError("a null among the ids", where=where)
    return ids


def _checked_ids(ids: pa.Array, where: str) -> pa.Int32Array:
    ids = _without_nulls(ids, where)
    least = pc.min(ids).as_py() or 0
    if least < 0:
        raise DecodeError(f"{least} is no id: ids are not negative", where=where)
    if ids.type == pa.int32():
        return ids
    largest = pc.max(ids).as_py() or 0
    if largest >= 2**32:
        raise DecodeError(f"{largest} is no id: ids have 32 bits", where=where)
    if largest > MAXIMUM_OFFSET:
        # No encoding of a column holds such an id, and a negative one is no token's.
        ids = pc.if_else(pc.greater(ids, MAXIMUM_OFFSET), pa.scalar(-1, pa.int64()), ids.cast(pa.int64()))
    return ids.cast(pa.int32())


def _joined_ids(chunks: list[IdRows]) -> IdRows:
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return IdRows(IdColumn.from_lists([]), None)
    ids = pa.concat_arrays([ids_of(chunk.ids) for chunk in chunks])
    offsets = offsets_from(pa.concat_arrays([list_lengths(chunk.ids) for chunk in chunks]))
    nulls = None
    if any(chunk.nulls is not None for chunk in chunks):
        false = pa.scalar(False)
        nulls = pa.concat_arrays([pa.repeat(false, c.ids.rows) if c.nulls is None else c.nulls for c in chunks])
    are_checked = all(chunk.ids.are_checked for chunk in chunks)
    column = IdColumn(buffer_of(ids, 4), buffer_of(offsets, 8), len(offsets) - 1, are_checked=are_checked)
    return IdRows(column, nulls)
