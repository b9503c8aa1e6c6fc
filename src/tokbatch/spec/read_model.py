"""The model of a tokenizer.json, read as the oracle reads it.

A `type` settles the class. Without one the oracle tries BPE, WordPiece, WordLevel and Unigram in this order, and takes
the first that can be built: a BPE whose merges are broken becomes a WordLevel model when it has an `unk_token`.
"""

from __future__ import annotations

import struct
from itertools import repeat
from typing import Any, cast

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec import models
from tokbatch.spec.bulk import Decoded
from tokbatch.spec.check import check_merges
from tokbatch.spec.fields import (
    REQUIRED,
    Fields,
    an_object,
    boolean,
    number,
    optional,
    show,
    take_fields,
    text,
    u32,
    usize,
    wrong,
)
from tokbatch.spec.json_text import Members, member
from tokbatch.spec.refusals import refuse


def read_model(value: Any, where: str, ignored: list[str]) -> models.Model:
    """Read the model. `ignored` takes the JSON paths of keys that the oracle ignores."""
    members = an_object(value, where)
    given = members.get("type")
    if "type" not in members:
        return _read_first_that_fits(members, where, ignored)
    if isinstance(members, Members) and "type" in members.repeated:
        raise SpecError("the field is there twice", where=f"{where}.type")
    if type(given) is not str or given not in _READERS:
        raise refuse(
            "unknown type",
            f"no model has the type {show(given)}",
            f"{where}.type",
            f"known are {', '.join(_READERS)}",
        )
    return cast(models.Model, _READERS[given](members, where, ignored))


def _read_first_that_fits(members: dict[str, Any], where: str, ignored: list[str]) -> models.Model:
    likeliest = "BPE" if "merges" in members else "WordPiece" if isinstance(members.get("vocab"), dict) else "Unigram"
    problem = None
    for name, read in _READERS.items():
        ignored_before = len(ignored)
        try:
            return cast(models.Model, read(members, where, ignored))
        except UnsupportedError:
            raise
        except SpecError as error:
            del ignored[ignored_before:]
            if name == likeliest:
                problem = error
    assert problem is not None
    raise problem


def _read_bpe(members: dict[str, Any], where: str, ignored: list[str]) -> models.BPE:
    fields: Fields = {
        "vocab": (_token_ids, REQUIRED),
        "merges": (_merges, REQUIRED),
        "dropout": (_dropout, None),
        "unk_token": (optional(text), None),
        "continuing_subword_prefix": (optional(text), None),
        "end_of_word_suffix": (optional(text), None),
        "fuse_unk": (_boolean_or_null, False),
        "byte_fallback": (_boolean_or_null, False),
        "ignore_merges": (_boolean_or_null, False),
    }
    model = models.BPE(**take_fields(members, fields, where, ignored, False))
    check_merges(model, where)
    return model


def _read_wordpiece(members: dict[str, Any], where: str, ignored: list[str]) -> models.WordPiece:
    fields: Fields = {
        "vocab": (_token_ids, REQUIRED),
        "unk_token": (text, REQUIRED),
        "continuing_subword_prefix": (text, REQUIRED),
        "max_input_chars_per_word": (usize, REQUIRED),
    }
    return models.WordPiece(**take_fields(members, fields, where, ignored, False))


def _read_wordlevel(members: dict[str, Any], where: str, ignored: list[str]) -> models.WordLevel:
    fields: Fields = {"vocab": (_token_ids, REQUIRED), "unk_token": (text, REQUIRED)}
    return models.WordLevel(**take_fields(members, fields, where, ignored, False))


def _read_unigram(members: dict[str, Any], where: str, ignored: list[str]) -> models.Unigram:
    fields: Fields = {
        "vocab": (_scored_tokens, REQUIRED),
        "unk_id": (optional(usize), None),
        "byte_fallback": (boolean, False),
    }
    model = models.Unigram(**take_fields(members, fields, where, ignored, False))
    if model.unk_id is not None and model.unk_id >= len(model.vocab):
        raise SpecError(
            f"{model.unk_id} is beyond the vocabulary, which has {len(model.vocab)} tokens", where=f"{where}.unk_id"
        )
    return model


_READERS = {"BPE": _read_bpe, "WordPiece": _read_wordpiece, "WordLevel": _read_wordlevel, "Unigram": _read_unigram}


def _boolean_or_null(value: Any, where: str) -> bool:
    return False if value is None else boolean(value, where)


def _dropout(value: Any, where: str) -> float | None:
    """Take a probability in single precision, which is what the oracle compares with 0 and 1."""
    if value is None:
        return None
    try:
        (probability,) = struct.unpack("f", struct.pack("f", number(value, where)))
    except OverflowError:
        probability = float("inf")
    if not 0.0 <= probability <= 1.0:
        raise SpecError(f"{show(value)} is no probability", where=where)
    return float(probability)


def _token_ids(value: Any, where: str) -> dict[str, int]:
    if isinstance(value, Decoded):
        if value.kind == "token ids":
            return cast(dict[str, int], value.value)
        raise SpecError("an array where an object of tokens and ids belongs", where=where)
    if not isinstance(value, dict):
        raise wrong(value, "an object of tokens and ids", where)
    return {token: u32(token_id, member(where, token)) for token, token_id in value.items()}


def _scored_tokens(value: Any, where: str) -> list[tuple[str, float]]:
    if isinstance(value, Decoded):
        if value.kind == "scored tokens":
            return cast(list[tuple[str, float]], value.value)
        raise SpecError("an object where an array of tokens with scores belongs", where=where)
    if not isinstance(value, list):
        raise wrong(value, "an array of tokens with scores", where)
    taken = []
    for position, entry in enumerate(value):
        place = f"{where}[{position}]"
        if not isinstance(entry, list) or len(entry) != 2:
            raise wrong(entry, "an array of a token and its score", place)
        taken.append((text(entry[0], f"{place}[0]"), number(entry[1], f"{place}[1]")))
    return taken


def _merges(value: Any, where: str) -> list[tuple[str, str]]:
    """Take merges as pairs or, in the older spelling, as lines; never mixed."""
    if isinstance(value, Decoded):
        return cast(list[tuple[str, str]], value.value) if value.kind == "merge pairs" else _split(value.value, where)
    if not isinstance(value, list):
        raise wrong(value, "an array of merges", where)
    if value and isinstance(value[0], str):
        return _split([text(line, f"{where}[{rank}]") for rank, line in enumerate(value)], where)
    taken = []
    for rank, merge in enumerate(value):
        place = f"{where}[{rank}]"
        if not isinstance(merge, list) or len(merge) != 2:
            raise wrong(merge, "an array of two tokens", place)
        taken.append((text(merge[0], f"{place}[0]"), text(merge[1], f"{place}[1]")))
    return taken


def _split(lines: list[str], where: str) -> list[tuple[str, str]]:
    """Split lines at their one blank; a line that starts with `#version` is none."""
    pairs = list(map(tuple, map(str.split, lines, repeat(" "))))
    if set(map(len, pairs)) <= {2} and not any(map(str.startswith, lines, repeat("#version"))):
        return cast(list[tuple[str, str]], pairs)
    pairs = []
    for position, line in enumerate(lines):
        if line.startswith("#version"):
            continue
        pairs.append(tuple(line.split(" ")))
        if len(pairs[-1]) != 2:
            raise SpecError(f"{show(line)} is not two tokens with one blank between", where=f"{where}[{position}]")
    return cast(list[tuple[str, str]], pairs)
