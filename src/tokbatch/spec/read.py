"""The one reader of tokenizer.json: text to a checked `TokenizerSpec`, accepting what the oracle accepts.

Reading order: here (the file and its sections), `read_components.py`, `read_model.py`, `fields.py` (values),
`json_text.py` (JSON), `bulk.py` (speed), `check.py` (what is refused by name).
Each error names the JSON path and the value.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

from tokbatch.collector import without_collecting
from tokbatch.errors import NOT_THERE, InputError, SpecError
from tokbatch.spec.bulk import split_bulk
from tokbatch.spec.check import check_spec
from tokbatch.spec.fields import (
    REQUIRED,
    Fields,
    OracleCrash,
    an_object,
    boolean,
    one_of,
    optional,
    show,
    take_fields,
    text,
    u32,
    usize,
    wrong,
)
from tokbatch.spec.json_text import Members, member, pairs_of, parse_json
from tokbatch.spec.read_components import (
    DECODERS,
    NORMALIZERS,
    POST_PROCESSORS,
    PRE_TOKENIZERS,
    ComponentReader,
)
from tokbatch.spec.read_model import read_model
from tokbatch.spec.tokenizer_spec import AddedToken, Padding, TokenizerSpec, Truncation

_COMPONENTS = {
    "normalizer": NORMALIZERS,
    "pre_tokenizer": PRE_TOKENIZERS,
    "post_processor": POST_PROCESSORS,
    "decoder": DECODERS,
}


def load_spec(path: str | os.PathLike[str], encode_special_tokens: bool = False) -> TokenizerSpec:
    """Read a tokenizer.json, one that gzip has packed (`.gz`), or the one in a folder."""
    return read_spec(load_text(path), encode_special_tokens)


def load_text(path: str | os.PathLike[str]) -> bytes:
    """Give the text of a tokenizer.json, of one that gzip has packed (`.gz`), or of the one in a folder."""
    try:
        file = Path(path)
    except TypeError:
        raise InputError(f"a path is a str or a path object, not {type(path).__name__}") from None
    try:
        if file.is_dir():
            file = file / "tokenizer.json"
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error) as error:  # ValueError: a path with a null character
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read the tokenizer: {reason}", where=str(file), code=NOT_THERE) from None
    return data


def read_spec(data: bytes | str, encode_special_tokens: bool = False) -> TokenizerSpec:
    """Read the text of a tokenizer.json."""
    raw = as_bytes(data)
    with without_collecting():  # not half a million merges again and again
        try:
            return _read_file(raw, encode_special_tokens)
        except OracleCrash as crash:
            raise crash.error from None


def as_bytes(data: bytes | str) -> bytes:
    """Give the text of a tokenizer.json as bytes."""
    if not isinstance(data, (str, bytes, bytearray, memoryview)):
        raise InputError(f"the text of a tokenizer.json is str or bytes, not {type(data).__name__}")
    try:
        return data.encode() if isinstance(data, str) else bytes(data)
    except UnicodeEncodeError as error:
        raise SpecError(f"a lone surrogate at character {error.start} is no text") from None


def _read_file(raw: bytes, encode_special_tokens: bool) -> TokenizerSpec:
    rest, tables = split_bulk(raw)
    members = _parse(rest)
    if tables and not _put_back(members, tables):
        members = _parse(raw)
    if not isinstance(members, dict):
        raise wrong(members, "an object", "$")
    components = ComponentReader()
    sections: dict[str, Any] = {}
    for key, value in pairs_of(members):
        where = member("$", key)
        if key == "version":
            if text(value, where) != "1.0":
                raise SpecError(f"unknown version {show(value)}", where=where, hint='only "1.0" is known')
        elif key == "model":
            sections[key] = read_model(value, where, components.ignored)
        elif key == "added_tokens":
            sections[key] = _added_tokens(value, where, components.ignored)
        elif key == "truncation":
            sections[key] = None if value is None else _truncation(value, where, components.ignored)
        elif key == "padding":
            sections[key] = None if value is None else _padding(value, where, components.ignored)
        elif key in _COMPONENTS:
            sections[key] = None if value is None else components.read(_COMPONENTS[key], value, where)
        else:
            raise SpecError(f"unknown key {show(key)}", where=where, hint="the format has no such section")
    if "model" not in sections:
        raise SpecError("there is no model", where="$.model")
    spec = TokenizerSpec(
        **sections, encode_special_tokens=encode_special_tokens, ignored_keys=tuple(components.ignored)
    )
    check_spec(spec)
    return spec


def _parse(raw: bytes) -> Any:
    try:
        return parse_json(raw.decode())
    except UnicodeDecodeError as error:
        raise SpecError(f"byte {error.start} (0x{raw[error.start]:02X}) is not UTF-8") from None


def _put_back(members: Any, tables: dict[str, Any]) -> bool:
    """Put decoded tables where `split_bulk` left nulls. False: they were not where they belong, so read slowly."""
    if not isinstance(members, dict) or isinstance(members, Members):
        return False
    model = members.get("model")
    if not isinstance(model, dict) or isinstance(model, Members):
        return False
    if any(model.get(key, "") is not None for key in tables):
        return False
    model.update(tables)
    return True


_flags: Fields = {
    "id": (u32, REQUIRED),
    "content": (text, REQUIRED),
    "single_word": (boolean, REQUIRED),
    "lstrip": (boolean, REQUIRED),
    "rstrip": (boolean, REQUIRED),
    "normalized": (boolean, REQUIRED),
    "special": (boolean, REQUIRED),
}


def _added_tokens(value: Any, where: str, ignored: list[str]) -> tuple[AddedToken, ...]:
    if not isinstance(value, list):
        raise wrong(value, "an array of added tokens", where)
    taken = []
    for position, entry in enumerate(value):
        place = f"{where}[{position}]"
        if not isinstance(entry, dict):
            raise wrong(entry, "an object", place)
        taken.append(AddedToken(**take_fields(entry, _flags, place, ignored, True)))
        if "type" in entry:
            ignored.append(f"{place}.type")
    return tuple(taken)


def _truncation(value: Any, where: str, ignored: list[str]) -> Truncation:
    fields: Fields = {
        "direction": (one_of("Left", "Right"), "Right"),
        "max_length": (usize, REQUIRED),
        "strategy": (one_of("LongestFirst", "OnlyFirst", "OnlySecond"), REQUIRED),
        "stride": (usize, REQUIRED),
    }
    return Truncation(**take_fields(an_object(value, where), fields, where, ignored, True))


def _padding(value: Any, where: str, ignored: list[str]) -> Padding:
    fields: Fields = {
        "strategy": (_padding_strategy, REQUIRED),
        "direction": (one_of("Left", "Right"), REQUIRED),
        "pad_to_multiple_of": (optional(usize), None),
        "pad_id": (u32, REQUIRED),
        "pad_type_id": (u32, REQUIRED),
        "pad_token": (text, REQUIRED),
    }
    taken = take_fields(an_object(value, where), fields, where, ignored, True)
    return Padding(fixed_length=taken.pop("strategy"), **taken)


def _padding_strategy(value: Any, where: str) -> int | None:
    """Take "BatchLongest" (None) or `{"Fixed": length}`."""
    if isinstance(value, dict) and len(pairs_of(value)) == 1 and "Fixed" in value:
        return usize(value["Fixed"], f"{where}.Fixed")
    if value == "BatchLongest":
        return None
    raise wrong(value, '"BatchLongest" or {"Fixed": length}', where)
