"""The public `Tokenizer`: a spec, the engine built from it, and the Arrow boundary, in one object.

    >>> import tokbatch as tb
    >>> from tokbatch import sample
    >>> tok = tb.Tokenizer.from_file(sample.tokenizer_path())
    >>> tok.encode("a <mask> b").tokens
    ['<s>', 'a', ' <mask>', 'Ġb', '</s>']
    >>> tok.decode(tok.encode("a <mask> b").ids, skip_special_tokens=False)
    '<s>a<mask> b</s>'

The job (`job/`) and the front ends use this class and nothing below it.
"""

from __future__ import annotations

import operator
import os
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.arrow import MAXIMUM_OFFSET, as_array, as_id_array, id_array, id_column, string_array, text_column
from tokbatch.batch.round_trip import verification_array
from tokbatch.batch.views import with_empty_ids, without_empty_texts
from tokbatch.engine import choose_engine
from tokbatch.engine.encoding import Encoding
from tokbatch.engine.protocol import FEWEST_PRETOKENS, MOST_PRETOKENS, Engine
from tokbatch.errors import ConfigError, DecodeError, EncodeError, InputError
from tokbatch.hub import tokenizer_file
from tokbatch.spec import Padding, TokenizerSpec, Truncation
from tokbatch.spec.lazy import LazySpec, Source, content_name, content_name_of_file
from tokbatch.spec.read import as_bytes, load_text, read_spec

Texts: TypeAlias = Sequence[str | None] | pa.Array | pa.ChunkedArray
IdLists: TypeAlias = Sequence[Sequence[int] | None] | pa.Array | pa.ChunkedArray
_KEEP: Any = object()


class Tokenizer:
    """A tokenizer at work. It never changes, threads may share it, and it pickles to the same bytes every time.

    Build it with `from_file`, `from_json` or `from_pretrained`.
    """

    def __init__(self, spec: TokenizerSpec | LazySpec, engine: str = "auto", cached_pretokens: int | None = None):
        self._lazy_spec = LazySpec.of(spec)
        self.engine: Engine
        self.why_reference: str | None
        """Why "auto" did not take the native engine; None where it did, or where an engine was asked for by name."""
        self.engine, self.why_reference = choose_engine(self._lazy_spec, engine, cached_pretokens)
        self._asked_engine = engine
        self._cached_pretokens = cached_pretokens

    # -- where tokenizers come from -----------------------------------------------------------------------------------

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], engine: str = "auto", encode_special_tokens: bool = False
    ) -> Tokenizer:
        """Load a tokenizer.json, one packed as .json.gz, or the one in a folder.

        `engine` is "auto", "native" or "reference". "auto" is native; where that is not installed or refuses this file,
        it is the reference engine, with an `EngineWarning`. With `encode_special_tokens`, special tokens in a text are
        ordinary text. Raises `SpecError` for a broken file, and `UnsupportedError` for what is not reproduced exactly,
        with the JSON path.
        """
        encode_special_tokens = _flag(encode_special_tokens, "encode_special_tokens")
        is_plain = isinstance(path, (str, os.PathLike)) and not str(path).endswith(".gz")
        source = (_file_to_read(path) if is_plain else None) or _text_to_read(load_text(path))
        return cls(LazySpec(source, {"encode_special_tokens": encode_special_tokens}), engine)

    @classmethod
    def from_json(cls, data: str | bytes, engine: str = "auto", encode_special_tokens: bool = False) -> Tokenizer:
        """Load from the text of a tokenizer.json. See `from_file`."""
        encode_special_tokens = _flag(encode_special_tokens, "encode_special_tokens")
        source = _text_to_read(as_bytes(data))
        return cls(LazySpec(source, {"encode_special_tokens": encode_special_tokens}), engine)

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        revision: str | None = None,
        engine: str = "auto",
        encode_special_tokens: bool = False,
        *,
        token: str | bool | None = None,
    ) -> Tokenizer:
        """Load the tokenizer.json of a repository of the Hugging Face hub, from the local cache where it is there.

        `name` is "organisation/name", or a local folder; `token` an access token, where the one that is saved does not
        do. Cache, offline mode and endpoint are those of `huggingface_hub`. Raises `InputError` where it cannot be had.
        """
        if not isinstance(name, str) or not isinstance(revision, str | None):
            raise InputError("the name and the revision of a repository are str")
        if os.path.isdir(name):
            return cls.from_file(name, engine, encode_special_tokens)
        return cls.from_file(tokenizer_file(name, revision, token), engine, encode_special_tokens)

    @classmethod
    def from_transformers(cls, tokenizer: Any, engine: str = "auto", encode_special_tokens: bool = False) -> Tokenizer:
        """Take over a fast tokenizer of `transformers`, or a `tokenizers.Tokenizer`, as it is at this moment.

        It is read from what its backend says of itself, so truncation and padding are those that it was last used with.
        Raises `InputError` for a tokenizer without such a backend (a slow one), and as `from_json`.
        """
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not callable(getattr(backend, "to_str", None)):
            raise InputError(
                f"no fast tokenizer: {type(tokenizer).__name__}",
                hint="load it with AutoTokenizer.from_pretrained(..., use_fast=True)",
            )
        return cls.from_json(backend.to_str(), engine, encode_special_tokens)

    def with_options(
        self,
        *,
        truncation: Truncation | None = _KEEP,
        padding: Padding | None = _KEEP,
        encode_special_tokens: bool = _KEEP,
        engine: str | None = None,
        cached_pretokens: int | None = None,
    ) -> Tokenizer:
        """Give a tokenizer with other options than the file's. None takes truncation or padding out.

        `engine` set to the `engine_name` keeps the engine that "auto" has chosen, also after pickling. The native
        engine remembers the ids of `cached_pretokens` pretokens, about a million unless somebody says otherwise, some
        80 bytes each, once for each thread at work; ids do not depend on it. From 4,096 to 67,108,864, rounded up to
        a power of two.
        """
        changes = {"truncation": truncation, "padding": padding, "encode_special_tokens": encode_special_tokens}
        _check_options({key: value for key, value in changes.items() if value is not _KEEP})
        has = self._lazy_spec.outline
        changes = {key: value for key, value in changes.items() if value is not _KEEP and value != getattr(has, key)}
        pretokens = self._cached_pretokens if cached_pretokens is None else _checked_pretokens(cached_pretokens)
        is_same = not changes and pretokens == self._cached_pretokens
        if is_same and engine in (None, self._asked_engine):
            return self
        if is_same and engine == self.engine_name:
            kept = object.__new__(Tokenizer)
            kept.__dict__.update(self.__dict__, _asked_engine=engine)
            return kept
        return Tokenizer(self._lazy_spec.replace(**changes), engine or self._asked_engine, pretokens)

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def engine_name(self) -> str:
        """Give the name of the engine that does the work: "native" or "reference"."""
        return self.engine.name

    @property
    def vocab_size(self) -> int:
        """Number of distinct tokens, added ones included. Ids can be larger than this."""
        return self.engine.vocab_size

    @property
    def spec(self) -> TokenizerSpec:
        """The file as a value. A tokenizer whose tables were in the cache reads it now: that takes a moment."""
        return self._lazy_spec.spec

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides about ids, tokens and decoded text, in hexadecimal."""
        return self._lazy_spec.digest

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a token; None where there is none."""
        if not isinstance(token, str):
            raise InputError(f"a token is a str, not {type(token).__name__}")
        return self.engine.token_to_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Give the token of an id; None where there is none. Raises `DecodeError` for what is no id."""
        return self.engine.id_to_token(_checked_ids([token_id])[0])

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Give the id of every token of the vocabulary, and of the added tokens."""
        vocab = self.spec.model.vocab
        tokens = dict(vocab) if isinstance(vocab, dict) else {token: index for index, (token, _) in enumerate(vocab)}
        if with_added_tokens:
            for added in self.spec.added_tokens:
                token_id = self.engine.token_to_id(added.content)
                if token_id is not None:
                    tokens[added.content] = token_id
        return tokens

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Give the number of tokens; as `vocab_size` with the added ones."""
        return self.vocab_size if with_added_tokens else len(self.spec.model.vocab)

    def __repr__(self) -> str:
        model = type(self._lazy_spec.outline.model).__name__
        return f"<Tokenizer {model}, {self.vocab_size:,} tokens, {self.engine_name} engine>"

    def __reduce__(self) -> tuple[Any, ...]:
        rest = () if self._cached_pretokens is None else (self._cached_pretokens,)
        return _unpickle, (*self._pickled_spec, self._asked_engine, *rest)

    @cached_property
    def _pickled_spec(self) -> tuple[bytes, bytes, str, bytes]:
        source = self._lazy_spec.source
        packed = zlib.compress(source.packed_outline(), 1), zlib.compress(source.packed_entries(), 1)
        return *packed, source.content, msgspec.msgpack.encode(self._lazy_spec.changes)

    # -- encode -------------------------------------------------------------------------------------------------------

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
        """Encode one text, or a pair of texts.

        Gives an `Encoding` with `ids`, `tokens`, `offsets` (in characters), `type_ids`, `special_tokens_mask`,
        `attention_mask` and `overflowing`. Truncation and padding are the file's. Raises `EncodeError`.
        """
        for given in (text, *(() if pair is None else (pair,))):
            if not isinstance(given, str):
                raise EncodeError(f"a text is a str, not {type(given).__name__}", hint="columns go to encode_batch")
            _refuse_surrogates(given)
        return self.engine.encode(text, pair, _flag(add_special_tokens))

    def encode_batch(
        self, texts: Texts, add_special_tokens: bool = True, id_type: str = "int32"
    ) -> pa.ListArray | pa.LargeListArray:
        """Give the ids of a column of texts: a list array of int32 (or "uint16", where all ids fit) with as many rows.

        `texts` is a list of str, or an Arrow array or chunked array of string, large_string, string_view or
        a dictionary of these. A null text gives a null list. More than 2**31 - 1 ids give a `LargeListArray`. Raises
        `EncodeError` with the row.
        """
        add_special_tokens = _flag(add_special_tokens)
        if id_type not in ("int32", "uint16"):
            raise ConfigError(f"{id_type!r} is no type of ids", where="id_type", hint='"int32" or "uint16"')
        given = text_column(as_array(texts), check_utf8=False)  # the engine looks
        if given.nulls is None:
            return id_array(self.engine.encode_batch(given.texts, add_special_tokens), None, id_type)
        # Null rows are left out, so that they get no template and do not count for padding.
        present = pc.invert(given.nulls)
        try:
            ids = self.engine.encode_batch(without_empty_texts(given.texts, present), add_special_tokens)
        except EncodeError as error:
            error.move_to_row(pc.indices_nonzero(present)[error.row or 0].as_py())
            raise
        return id_array(with_empty_ids(ids, given.nulls), given.nulls, id_type)

    def count_batch(self, texts: Texts, add_special_tokens: bool = True) -> pa.Int64Array:
        """Give the number of ids of each text of a column; null for a null text."""
        given = text_column(as_array(texts), check_utf8=False)  # the engine looks
        counts = pa.array(self.engine.count_batch(given.texts, _flag(add_special_tokens)), pa.int64())
        return counts if given.nulls is None else pc.if_else(given.nulls, None, counts)

    # -- decode -------------------------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Give the text of ids. Ids that no token has are passed over. Raises `DecodeError` for what is no id."""
        return self.engine.decode(_checked_ids(ids), _flag(skip_special_tokens, "skip_special_tokens"))

    def decode_batch(self, ids: IdLists, skip_special_tokens: bool = True) -> pa.StringArray:
        """Give the texts of a column of ids; null for a null list."""
        skip_special_tokens = _flag(skip_special_tokens, "skip_special_tokens")
        values = as_id_array(ids)
        has_large_ids = self.engine.max_id > MAXIMUM_OFFSET
        column = id_column(values, check_ids=has_large_ids)  # else the engine looks
        if has_large_ids:  # not all of its ids fit the engine's columns of 32 bits with a sign
            rows = (None if row is None else self.engine.decode(row, skip_special_tokens) for row in values.to_pylist())
            return pa.array(rows, pa.string())
        return string_array(self.engine.decode_batch(column.ids, skip_special_tokens), column.nulls)

    # -- verify -------------------------------------------------------------------------------------------------------

    def verify_batch(self, texts: Texts, ids: IdLists, add_special_tokens: bool = True) -> pa.StructArray:
        """Hold a column of ids against the texts they were made from.

        Gives a struct array: `verdict` ("exact", "stripped", "normalized" or "lossy"), `lstrip_chars` and
        `rstrip_chars` (whitespace characters that added tokens absorbed), `unk_tokens`; null for a null text.
        `add_special_tokens` says how the ids were made. Raises `InputError` where the columns do not fit.
        """
        add_special_tokens = _flag(add_special_tokens)
        column, given = text_column(as_array(texts), check_utf8=False), id_column(as_id_array(ids), check_ids=False)
        if column.texts.rows != given.ids.rows:
            raise InputError(f"{column.texts.rows} texts, but {given.ids.rows} lists of ids")
        return verification_array(self.engine.verify_batch(column.texts, given.ids, add_special_tokens), column.nulls)


class _Changes(msgspec.Struct, omit_defaults=True):
    """The options that are not the file's."""

    truncation: Truncation | msgspec.UnsetType | None = msgspec.UNSET
    padding: Padding | msgspec.UnsetType | None = msgspec.UNSET
    encode_special_tokens: bool | msgspec.UnsetType = msgspec.UNSET


def _unpickle(
    outline: bytes, entries: bytes, content: str, changes: bytes, engine: str, cached_pretokens: int | None = None
) -> Tokenizer:
    source = Source.packed(zlib.decompress(outline), lambda: zlib.decompress(entries), content)
    changed = msgspec.structs.asdict(msgspec.msgpack.decode(changes, type=_Changes))
    return Tokenizer(
        LazySpec(source, {k: v for k, v in changed.items() if v is not msgspec.UNSET}), engine, cached_pretokens
    )


def _text_to_read(text: bytes) -> Source:
    return Source(lambda _: read_spec(text), content_name(text))


def _file_to_read(path: str | os.PathLike[str]) -> Source | None:
    def read(source: Source) -> TokenizerSpec:
        text = load_text(path)
        source.is_of(content_name(text))
        return read_spec(text)

    content = content_name_of_file(path)
    return None if content is None else Source(read, content)


def _flag(value: Any, name: str = "add_special_tokens") -> bool:
    """Give a bool back: what only looks like one (None, "no") is refused."""
    if not isinstance(value, bool):
        raise ConfigError(f"expected True or False, found {value!a:.40}", where=name)
    return value


def _checked_pretokens(count: Any) -> int:
    if type(count) is not int or not FEWEST_PRETOKENS <= count <= MOST_PRETOKENS:
        raise ConfigError(
            f"expected a whole number from {FEWEST_PRETOKENS:,} to {MOST_PRETOKENS:,}, found {count!a:.40}",
            where="cached_pretokens",
        )
    return count


def _check_options(options: dict[str, Any]) -> None:
    """Refuse options that no file could have."""
    for name, value in options.items():
        if name == "encode_special_tokens":
            _flag(value, name)
        elif value is not None:
            kind, fields = _OPTIONS[name]
            if not isinstance(value, kind):
                raise ConfigError(f"expected a {kind.__name__} or None, found {value!a:.40}", where=name)
            for field, is_allowed in fields.items():
                found = getattr(value, field)
                if not is_allowed(found):
                    raise ConfigError(f"{found!a:.40} is not possible", where=f"{name}.{field}")


def _whole(bits: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value < 1 << bits


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


_OPTIONS: dict[str, tuple[type, dict[str, Callable[[Any], bool]]]] = {
    "truncation": (
        Truncation,
        {
            "max_length": _whole(64),
            "stride": _whole(64),
            "strategy": _one_of("LongestFirst", "OnlyFirst", "OnlySecond"),
            "direction": _one_of("Left", "Right"),
        },
    ),
    "padding": (
        Padding,
        {
            "fixed_length": lambda value: value is None or _whole(64)(value),
            "direction": _one_of("Left", "Right"),
            "pad_to_multiple_of": lambda value: value is None or _whole(64)(value),
            "pad_id": _whole(32),
            "pad_type_id": _whole(32),
            "pad_token": _is_text,
        },
    ),
}


def _checked_ids(ids: Any) -> list[int]:
    """Give ids as a list of int, whatever kind of integers they are."""
    try:
        checked = [operator.index(token_id) for token_id in ids]
    except TypeError as error:
        raise DecodeError(f"ids are whole numbers in a list: {error}") from None
    for token_id in checked:
        if not 0 <= token_id < 1 << 32:
            raise DecodeError(f"{token_id} is no token id", hint="ids are whole numbers from 0 to 4294967295")
    return checked


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(
            f"a lone surrogate U+{ord(text[error.start]):04X} is no text", where=f"character {error.start}"
        ) from None
