"""The native engine: thin over the extension module `tokbatch._native`, which native/ is built into.

Here is what Python has to say about it: the spec goes over as a message (`wire.py`), columns as buffers, and errors come
back as descriptions. Nothing is computed here, and nothing goes to the reference engine: what the native engine does
not do is refused, at build time where that is possible.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.encoding import Encoding
from tokbatch.engine.protocol import Stage, Verification
from tokbatch.engine.wire import WIRE_VERSION, to_wire
from tokbatch.errors import EngineUnavailableError, TokbatchError, UnsupportedError, from_dict
from tokbatch.spec import TokenizerSpec

try:
    from tokbatch import _native  # type: ignore[attr-defined]
except ImportError as error:
    _native = None
    _why_not: str | None = str(error)
else:
    _why_not = None if _native.WIRE_VERSION == WIRE_VERSION else "the extension module is of another version"

T = TypeVar("T")


def why_unavailable() -> str | None:
    """Say why there is no native engine; None: there is one."""
    return _why_not


class NativeEngine:
    """See `engine/protocol.py` for the methods."""

    name = "native"

    def __init__(self, spec: TokenizerSpec):
        if _why_not is not None:
            raise EngineUnavailableError(
                f"the native engine is not installed: {_why_not}",
                where="engine",
                hint='install tokbatch where cargo is, or use "reference"',
            )
        self.spec = spec
        self._engine = _checked(lambda: _native.Engine(to_wire(spec)))

    def encode_batch(self, texts: TextColumn, add_special_tokens: bool, keep_going: bool = False) -> IdColumn:
        """Give the ids of a column. A row that fails raises its error, or with `keep_going` lands in `failures`."""
        encoded = _checked(
            lambda: self._engine.encode_batch(
                memoryview(texts.data).cast("B"), _as_int64(texts.list_offsets), texts.rows, add_special_tokens
            )
        )
        failures = [(row, _error(described)) for row, described in encoded.failures()]
        if failures and not keep_going:
            raise failures[0][1]
        return IdColumn(encoded.ids(), encoded.list_offsets(), texts.rows, failures, encoded.truncated_rows())

    def count_batch(self, texts: TextColumn, add_special_tokens: bool) -> array.array[int]:
        """Give the number of ids of each row ("q")."""
        offsets = _as_int64(self.encode_batch(texts, add_special_tokens).list_offsets)
        return array.array("q", [end - start for start, end in zip(offsets, offsets[1:], strict=False)])

    def encode(self, text: str, pair: str | None, add_special_tokens: bool) -> Encoding:
        """Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks."""
        raise _not_yet("encode")

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """Give the text of ids. Ids that no token has are passed over, as in the oracle."""
        raise _not_yet("decode")

    def decode_batch(self, ids: IdColumn, skip_special_tokens: bool) -> TextColumn:
        """Give the texts of a column of ids."""
        raise _not_yet("decode_batch")

    def verify_batch(self, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
        """Hold the ids of a column against its texts. `add_special_tokens` says how the ids were made."""
        raise _not_yet("verify_batch")

    def trace(self, text: str, add_special_tokens: bool) -> list[Stage]:
        """Encode one text and keep what every stage made of it."""
        raise _not_yet("trace")


def _not_yet(method: str) -> UnsupportedError:
    return UnsupportedError(f"{method} in the native engine", code="native-unsupported", hint='use engine="reference"')


def _as_int64(offsets: Any) -> memoryview:
    view = memoryview(offsets)
    return view if view.format == "q" else view.cast("B").cast("q")


def _checked(call: Callable[[], T]) -> T:
    """Call into the extension module; its errors are raised as ours."""
    try:
        return call()
    except _native.NativeError as error:
        raise _error(error.args) from None


def _error(described: Sequence[Any]) -> TokbatchError:
    """Build the error that the extension module described: (class, code, message, where, hint, row)."""
    class_name, code, message, where, hint, row = described
    fields: dict[str, Any] = {"class": class_name, "message": message, "where": where or None, "hint": hint or None}
    if code:
        fields["code"] = code
    if class_name == "EncodeError":
        fields["row"] = row
    return from_dict(fields)
