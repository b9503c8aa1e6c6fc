"""JSON lines as inputs: an object a line. A line that is none, or has no text, is a bad row.

Columns have types, and JSON lines have not: the type of a column is what the first lines show, unless `input.types`
says it. Numbers are int64 or double, true and false bool; an object, a list, or what has several types is kept as its
JSON text, as it stands in the file. A value of a later line that does not fit is a bad row, never a wrong value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.job.inputs import Input
from tokbatch.job.line_input import BYTE_ORDER_MARK, LineSource
from tokbatch.job.sources import OnBadRow, ReadOptions, bad_row

HEAD_BYTES = 1 << 20  # what is read of a file to see its columns, if it is not all null there

_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_INT_IN_DOUBLE = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]  # doubles hold these, and not all beyond
_TYPES: dict[str, tuple[Any, pa.DataType]] = {
    "null": (None, pa.null()),
    "bool": (bool | None, pa.bool_()),
    "int64": (_INT64 | None, pa.int64()),
    "double": (float | _INT_IN_DOUBLE | None, pa.float64()),
    "string": (str | None, pa.string()),
    "json": (msgspec.Raw, pa.string()),
}
_NULL = msgspec.Raw(b"null")
_SURROGATES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_HALF = rb"\uFdD0"  # stands for half a surrogate pair: no character either, and spelled as hardly anybody would
HINT = 'run.on_bad_row = "null" gives such a line null for ids'


class JsonSource(LineSource):
    """A file of JSON lines."""

    def __init__(self, source: Input, options: ReadOptions):
        super().__init__(source, options)
        self._kinds, self._path = self._look()
        fields = [pa.field(options.text_column, pa.large_string())]
        fields += [pa.field(name, _TYPES[kind][1]) for name, kind in self._kinds.items()]
        self.schema = pa.schema(fields)

    def _look(self) -> tuple[dict[str, str], list[str]]:
        """Find types of columns, and the keys that lead to the text."""
        options = self.options
        whole = options.text_column
        wanted = None if options.columns == "all" else [name for name in options.columns if name != whole]
        kinds: dict[str, str] = {}
        read, is_key, objects = 0, False, 0
        for number, line in enumerate(self.head()):
            record = _object(line.removeprefix(BYTE_ORDER_MARK) if not number else line)
            objects += record is not None
            for key, value in (record or {}).items():
                is_key |= key == whole
                if key != whole and (wanted is None or key in wanted):
                    kinds[key] = _both(kinds.get(key, "null"), _kind(value))
            read += len(line) + 1
            if read >= HEAD_BYTES and not any(kinds.get(name, "null") == "null" for name in wanted or ()):
                break
        path = [whole] if is_key or not objects else whole.split(".")
        if len(path) > 1:
            if path[0] in (wanted or ()):
                raise InputError(
                    f'the text is inside of "{path[0]}"', where="input.keep_columns", hint="leave that column out"
                )
            kinds.pop(path[0], None)
        missing = [name for name in wanted or () if name not in kinds and name not in options.types]
        if missing and objects:
            raise InputError(
                f'no line has "{missing[0]}"',
                where=self.input.name,
                hint="leave it out, or say its type in input.types",
            )
        chosen = wanted if wanted is not None else list(kinds)
        return {name: options.types.get(name, kinds.get(name, "null")) for name in chosen}, path

    @cached_property
    def _decode(self) -> Callable[[bytes], Any]:
        """Build the decoder of a line: it refuses whatever does not have the columns' types."""
        rename = {f"c{index}": name for index, name in enumerate(self._kinds)}
        # A field that is required comes first: the text is that.
        text: Any = str | None
        for key in reversed(self._path[1:]):
            text = msgspec.defstruct("Inner", [("text", text)], rename={"text": key}) | None
        fields: list[Any] = [("text", text)]
        for index, kind in enumerate(self._kinds.values()):
            fields.append((f"c{index}", _TYPES[kind][0], _NULL if kind == "json" else None))
        line = msgspec.defstruct(
            "Line",
            fields,
            rename={"text": self._path[0], **rename},
            forbid_unknown_fields=self.options.columns == "all",
            gc=False,
        )
        decode = msgspec.json.Decoder(line).decode
        # The decoder does not look at the bytes of what it only passes on or over: `str` does.
        return lambda text: decode(str(text, "utf-8"))

    @cached_property
    def _decode_kept(self) -> Callable[[bytes], Any]:
        """Build what reads of a bad line, if it is an object, its kept columns: each that has its type."""
        kinds = list(self._kinds.values())
        values = [msgspec.json.Decoder(_TYPES[kind][0]).decode for kind in kinds]
        fields: list[Any] = [(f"c{index}", msgspec.Raw, _NULL) for index in range(len(kinds))]
        rename = {f"c{index}": name for index, name in enumerate(self._kinds)}
        line = msgspec.defstruct("KeptLine", fields, bases=(_BadLine,), rename=rename, gc=False)
        decode = msgspec.json.Decoder(line).decode

        def kept(text: bytes) -> Any:
            found = decode(str(text, "utf-8"))
            for index, kind in enumerate(kinds):
                value = getattr(found, f"c{index}")
                if _HALF in bytes(value):
                    value = None
                elif kind != "json":
                    try:
                        value = values[index](value)
                    except (msgspec.MsgspecError, RecursionError):
                        value = None
                setattr(found, f"c{index}", value)
            return found

        return kept

    def _batch(self, lines: list[bytes], row: int, columns: Sequence[str], on_bad_row: OnBadRow) -> pa.RecordBatch:
        """See `LineSource`."""
        try:
            records = [self._decode(line) for line in lines]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            records = [self._one(line, row + index, on_bad_row) for index, line in enumerate(lines)]
        arrays = [pa.array([_text(record, len(self._path)) for record in records], pa.large_string())]
        for index, (name, kind) in enumerate(self._kinds.items()):
            if name in columns:
                values = [None if record is None else getattr(record, f"c{index}") for record in records]
                if kind == "json":
                    values = [None if value is None or bytes(value) == b"null" else bytes(value) for value in values]
                    arrays.append(pa.array(values, pa.binary()).view(pa.string()))
                else:
                    arrays.append(pa.array(values, _TYPES[kind][1]))
        names = [self.options.text_column, *(name for name in self._kinds if name in columns)]
        return pa.record_batch(arrays, names=names)

    def _one(self, line: bytes, row: int, on_bad_row: OnBadRow) -> Any:
        """Decode a line; of a bad one what is kept, or None where it is not an object of JSON."""
        try:
            return self._decode(line)
        except msgspec.ValidationError as error:
            hint = f"{HINT}; types of columns stand in input.types"
            bad_row(row, f"not as the columns are: {error}", on_bad_row, "line", hint)
        except UnicodeDecodeError as error:
            what = f"not JSON: byte {error.start} (0x{line[error.start]:02X}) is not UTF-8"
            bad_row(row, what, on_bad_row, "line", HINT)
        except msgspec.MsgspecError as error:
            line, halves = _without_halves(line)
            what = "an empty line" if not line.strip() else f"not JSON: {error}"
            if halves and _object(line) is not None:
                what = f"{halves[0]} is half a surrogate pair, and no character"
            bad_row(row, what, on_bad_row, "line", HINT)
        except RecursionError:
            bad_row(row, "JSON that is nested too deeply", on_bad_row, "line", HINT)
        try:
            return self._decode_kept(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None


class _BadLine(msgspec.Struct):
    """What is kept of a line whose text is missing, or of another type, or where a value does not fit its column."""


def _text(record: Any, depth: int) -> str | None:
    """Give the text of a line; a bad line has an empty one (see `Source.batches`)."""
    if record is None or isinstance(record, _BadLine):
        return ""
    for _ in range(depth):
        if record is None:
            return None
        record = record.text
    text: str | None = record
    return text


def _without_halves(line: bytes) -> tuple[bytes, list[str]]:
    """Put `_HALF` for each half of a surrogate pair that stands alone; gives these too."""
    halves = [f"\\{half.decode('ascii', 'replace')}" for half in _SURROGATES.findall(line) if half]
    return _SURROGATES.sub(lambda found: _HALF if found[1] else found[0], line), halves


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "json"
    return {float: "double", str: "string"}.get(type(value), "json")


def _both(left: str, right: str) -> str:
    """Give the type that holds values of both."""
    if left == right or "null" in (left, right):
        return right if left == "null" else left
    return "double" if {left, right} == {"int64", "double"} else "json"
