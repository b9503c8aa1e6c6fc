"""The native engine: thin over the extension module `tokbatch._native`, which native/ is built into.

Here is what Python has to say about it: the spec goes over as messages (`wire.py`), or is not read at all where the
tables of an earlier build are there (`table_cache.py`); columns go over as buffers, and errors come back as
descriptions. Nothing is computed here, and nothing goes to the reference engine: what the native engine does not do is
refused, at build time where that is possible.
"""

from __future__ import annotations

import array
import importlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tokbatch.engine import table_cache
from tokbatch.engine.columns import IdColumn, TextColumn, offsets_view
from tokbatch.engine.encoding import Encoding
from tokbatch.engine.protocol import Absorbed, Stage, Verification
from tokbatch.engine.wire_options import WIRE_VERSION, options_to_wire
from tokbatch.errors import EngineUnavailableError, TokbatchError, UnsupportedError, from_dict
from tokbatch.spec import Padding, TokenizerSpec, Truncation
from tokbatch.spec.lazy import LazySpec, unpack_outline

_native: Any
try:
    _native = importlib.import_module("tokbatch._native")
except ImportError as error:
    _native = None
    _why_not: str | None = str(error)
else:
    _why_not = None if _native.WIRE_VERSION == WIRE_VERSION else "the extension module is of another version"

T = TypeVar("T")
NO_ID = 2**32 - 1  # stands for no id in its BPE
# The documents in a file of tables, by number.
_COMPONENTS, _OUTLINE, _ENTRIES, _DIGEST = range(4)


def why_unavailable() -> str | None:
    """Say why there is no native engine; None: there is one."""
    return _why_not


class NativeEngine:
    """See `engine/protocol.py` for the methods."""

    name = "native"

    def __init__(self, spec: TokenizerSpec | LazySpec, cached_pretokens: int | None = None):
        if _why_not is not None:
            raise EngineUnavailableError(
                f"the native engine is not installed: {_why_not}",
                where="engine",
                hint='install tokbatch where cargo is, or use "reference"',
            )
        self._lazy_spec = LazySpec.of(spec)
        self._pretokens = cached_pretokens
        self._engine, self._is_shared = _from_tables(self._lazy_spec, self._pretokens), True
        if self._engine is None:
            self._engine, self._is_shared = _build(self._lazy_spec, self._pretokens, table_cache.folder())

    def share_tables(self, folder: Path) -> bool:
        """Put the tables in a folder, for other processes, where they are not in the cache.

        True: they are there now, and a process that calls `table_cache.use_folder` will find them.
        """
        return not self._is_shared and _build(self._lazy_spec, self._pretokens, folder)[1]

    @property
    def spec(self) -> TokenizerSpec:
        """What it is built from; read only now where it came from tables."""
        return self._lazy_spec.spec

    @property
    def truncation(self) -> Truncation | None:
        """How texts are cut."""
        return self._lazy_spec.outline.truncation

    @property
    def padding(self) -> Padding | None:
        """How encodings are filled up."""
        return self._lazy_spec.outline.padding

    def encode_batch(self, texts: TextColumn, add_special_tokens: bool, keep_going: bool = False) -> IdColumn:
        """Give the ids of a column. A row that fails raises its error, or with `keep_going` lands in `failures`."""
        encoded = _checked(
            lambda: self._engine.encode_batch(
                memoryview(texts.data).cast("B"),
                offsets_view(texts.list_offsets),
                texts.rows,
                add_special_tokens,
                keep_going,
            )
        )
        failures = [(row, _error(described)) for row, described in encoded.failures()]
        if failures and not keep_going:
            raise failures[0][1]
        list_offsets, kind = encoded.list_offsets()
        list_offsets = memoryview(list_offsets).cast(kind)
        return IdColumn(encoded.ids(), list_offsets, texts.rows, failures, encoded.truncated_rows())

    def count_batch(self, texts: TextColumn, add_special_tokens: bool) -> array.array[int]:
        """Give the number of ids of each row ("q")."""
        given = memoryview(texts.data).cast("B"), offsets_view(texts.list_offsets)
        return _array("q", _checked(lambda: self._engine.count_batch(*given, texts.rows, add_special_tokens)))

    def encode(self, text: str, pair: str | None, add_special_tokens: bool) -> Encoding:
        """Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks."""
        return _encoding(_checked(lambda: self._engine.encode(text, pair, add_special_tokens)))

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """Give the text of ids. Ids that no token has are passed over, as in the oracle."""
        given = [token_id for token_id in ids if 0 <= token_id < 1 << 32]
        return _checked(lambda: str(self._engine.decode(given, skip_special_tokens)))

    def decode_batch(self, ids: IdColumn, skip_special_tokens: bool) -> TextColumn:
        """Give the texts of a column of ids."""
        data, list_offsets = _checked(
            lambda: self._engine.decode_batch(*_id_buffers(ids), ids.rows, ids.are_checked, skip_special_tokens)
        )
        return TextColumn(data, list_offsets, ids.rows)

    def verify_batch(self, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
        """Hold the ids of a column against its texts. `add_special_tokens` says how the ids were made."""
        given = memoryview(texts.data).cast("B"), offsets_view(texts.list_offsets)
        blocks, absorbed = _checked(
            lambda: self._engine.verify_batch(given, _id_buffers(ids), texts.rows, ids.are_checked, add_special_tokens)
        )
        verdicts, lstrip_chars, rstrip_chars, unk_tokens = map(_array, "bqqq", blocks)
        return Verification(verdicts, lstrip_chars, rstrip_chars, unk_tokens, Absorbed(*absorbed))

    def trace(self, text: str, add_special_tokens: bool) -> list[Stage]:
        """Encode one text and keep what every stage made of it."""
        return [Stage(*stage) for stage in _checked(lambda: self._engine.trace(text, add_special_tokens))]

    # -- what does not depend on any text -----------------------------------------------------------------------------

    @cached_property
    def _facts(self) -> Any:
        return _checked(self._engine.facts)

    @property
    def vocab_size(self) -> int:
        """Number of distinct tokens, added ones included."""
        return int(self._facts[0])

    @property
    def max_id(self) -> int:
        """The largest id that an encoding can contain."""
        return int(self._facts[1])

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the added tokens with `special = true`."""
        return frozenset(self._facts[2])

    @property
    def unk_id(self) -> int | None:
        """The id that the model gives for what it does not know; None where it has no such token."""
        return None if self._facts[3] is None else int(self._facts[3])

    @property
    def byte_token_ids(self) -> frozenset[int]:
        """The ids of the tokens `<0x00>` to `<0xFF>` where the model falls back to bytes; else empty."""
        return frozenset(self._facts[4])

    @property
    def single_template(self) -> tuple[int | None, ...]:
        """What the post-processor makes of a single text: ids, and None in the place of the text."""
        return tuple(self._facts[5])

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a token; None where there is none."""
        try:
            token_id: int | None = self._engine.token_to_id(token)
        except UnicodeEncodeError:  # a lone surrogate is in no token
            return None
        return token_id

    def id_to_token(self, token_id: int) -> str | None:
        """Give the token of an id; None where there is none."""
        token: str | None = self._engine.id_to_token(token_id) if 0 <= token_id < 1 << 32 else None
        return token


def _from_tables(lazy: LazySpec, cached_pretokens: int | None) -> Any:
    """Build the engine of a spec from the tables of an earlier build; None where there are none that are sound."""
    folder = table_cache.folder()
    if folder is None or not table_cache.is_safe(folder):
        return None
    key = table_cache.key_of(lazy.source.content, _native.SOURCES)
    path = table_cache.path_of(folder, key)
    try:
        tables = _native.Tables(path, key)
        outline = unpack_outline(tables.document(_OUTLINE))
        digest = bytes(tables.document(_DIGEST)).decode()
        if not lazy.source.is_found(outline, lambda: tables.document(_ENTRIES), digest):
            table_cache.note("%s: the tables of another tokenizer", path)
            return None
        engine = tables.engine(bytes(tables.document(_COMPONENTS)), options_to_wire(lazy.outline, cached_pretokens))
    except _native.NativeError as error:
        _, code, message, *_ = error.args
        if code not in ("tables-absent", "tables-damaged"):
            raise _error(error.args) from None
        table_cache.note("%s: %s", path, message)
        return None
    table_cache.mark_used(path)
    return engine


def _build(lazy: LazySpec, cached_pretokens: int | None, folder: Path | None) -> tuple[Any, bool]:
    """Build the engine of a spec, and keep its tables in a folder, if there is one, where they are worth it.

    Gives the engine, and whether they were kept.
    """
    from tokbatch.engine.wire import components_to_wire

    spec, source = lazy.spec, lazy.source
    _check_ids(spec)
    messages = components_to_wire(spec), options_to_wire(spec, cached_pretokens), source.packed_entries()
    is_large = memoryview(messages[2]).nbytes >= table_cache.LEAST_BYTES
    if folder is None or not is_large or not table_cache.make(folder):
        engine = _checked(lambda: _native.Engine(*messages))
        return engine, False
    key = table_cache.key_of(source.content, _native.SOURCES)
    documents = [messages[0], source.packed_outline(), messages[2], source.digest.encode()]
    engine, tables = _checked(lambda: _native.Engine.with_tables(*messages, key, documents))
    return engine, table_cache.keep(table_cache.path_of(folder, key), tables)


def _check_ids(spec: TokenizerSpec) -> None:
    from tokbatch.spec.models import BPE

    if isinstance(spec.model, BPE) and NO_ID in spec.model.vocab.values():
        raise UnsupportedError(
            f"the native engine has no BPE with the id {NO_ID}",
            where="$.model.vocab",
            code="native-unsupported",
            hint='engine="reference" encodes the documents that do without it',
        )


def _encoding(fields: Any) -> Encoding:
    encoding = Encoding(*fields)
    encoding.overflowing = [_encoding(piece) for piece in fields[-2]]
    return encoding


def _array(type_code: str, block: Any) -> array.array[int]:
    numbers = array.array(type_code)
    numbers.frombytes(block)
    return numbers


def _id_buffers(ids: IdColumn) -> tuple[memoryview, memoryview]:
    # What is empty may lie anywhere, also where no integer can.
    view = memoryview(ids.ids)
    if not view.nbytes:
        view = memoryview(array.array("i", [0]))[:0]
    return view if view.format == "i" else view.cast("B").cast("i"), offsets_view(ids.list_offsets)


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
