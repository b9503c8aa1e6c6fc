"""The long tables of a tokenizer.json (`vocab`, `merges`), decoded by msgspec, three times as quick as `json`.

`split_bulk` takes the tables out of the text and decodes them by type. What is left is short, and is read exactly
(`json_text.py`). Where anything about a table is unusual it stays in the text: then it is read slowly, and refused
with its place. So this module decides about speed only, never about what is accepted.
"""

from __future__ import annotations

import operator
import re
from itertools import repeat
from typing import Annotated, Any, NamedTuple

import msgspec

from tokbatch.spec.fields import LARGEST_U32
from tokbatch.spec.json_text import LARGEST_U64, POWERS_OF_TEN, parse_float

LONG = 1 << 16
TokenId = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_U32)]
_NEGATIVE_ZERO = re.compile(rb":[ \t\n\r]*-0[ \t\n\r]*[,}]")


class Decoded(NamedTuple):
    """A decoded table; `kind` is "token ids", "scored tokens", "merge pairs" or "merge lines"."""

    kind: str
    value: Any


class _Model(msgspec.Struct):
    vocab: msgspec.Raw = msgspec.Raw()
    merges: msgspec.Raw = msgspec.Raw()


class _File(msgspec.Struct):
    model: _Model


_FILE = msgspec.json.Decoder(_File)
_TOKEN_IDS = msgspec.json.Decoder(dict[str, TokenId])
_SCORED_TOKENS = msgspec.json.Decoder(list[tuple[str, msgspec.Raw]])
_MERGE_PAIRS = msgspec.json.Decoder(list[tuple[str, str]])
_MERGE_LINES = msgspec.json.Decoder(list[str])


def split_bulk(data: bytes) -> tuple[bytes, dict[str, Decoded]]:
    """Give the text with `null` for each long table of the model, and the decoded tables by their keys."""
    try:
        model = _FILE.decode(data).model
    except (msgspec.MsgspecError, RecursionError):
        return data, {}
    places = []
    tables: dict[str, Decoded] = {}
    for key, raw, decode in (("vocab", model.vocab, _decode_vocab), ("merges", model.merges, _decode_merges)):
        table_text = memoryview(raw)
        if len(table_text) < LONG:
            continue
        beginning = bytes(table_text[:LONG])
        start = data.find(beginning)
        if data.find(beginning, start + 1) >= 0:
            continue  # Which of the two is the table? Not worth knowing.
        try:
            tables[key] = decode(data[start : start + len(table_text)])
        except (msgspec.MsgspecError, RecursionError, ValueError, IndexError):
            continue
        places.append((start, start + len(table_text)))
    rest, end = [], 0
    for start, stop in sorted(places):
        rest += [data[end:start], b"null"]
        end = stop
    return b"".join([*rest, data[end:]]), tables


def _decode_vocab(table_text: bytes) -> Decoded:
    if table_text[:1] == b"[":
        return Decoded("scored tokens", _decode_scores(table_text))
    if b"-0" in table_text and _NEGATIVE_ZERO.search(table_text):
        raise ValueError("-0 is a fraction, which msgspec does not know")
    return Decoded("token ids", _TOKEN_IDS.decode(table_text))


def _decode_merges(table_text: bytes) -> Decoded:
    if table_text[1:].lstrip()[:1] == b"[":
        return Decoded("merge pairs", _MERGE_PAIRS.decode(table_text))
    return Decoded("merge lines", _MERGE_LINES.decode(table_text))


def _decode_scores(table_text: bytes) -> list[tuple[str, float]]:
    """Decode (token, score) pairs, the scores with the oracle's rounding (see `json_text.parse_float`).

    That needs their digits. Nearly all scores are digits, a point and digits: those go through C loops in columns.
    """
    rows = _SCORED_TOKENS.decode(table_text)
    texts = b"\n".join([raw for _, raw in rows])
    if texts.translate(None, b"0123456789+-.eE\n"):
        raise ValueError("a score is no number")
    columns = texts.decode("ascii").split("\n")
    if b"e" in texts or b"E" in texts:
        scores = list(map(_parse_score, columns))
    else:
        points = list(map(str.find, columns, repeat(".")))
        significands = list(map(int, texts.replace(b".", b"").split(b"\n")))
        powers = map(operator.sub, map(len, columns), points)
        scores = [
            significand / POWERS_OF_TEN[power - 1]
            if point >= 0 and significand and -LARGEST_U64 <= significand <= LARGEST_U64
            else _parse_score(column)
            for significand, power, point, column in zip(significands, powers, points, columns, strict=True)
        ]
    return list(zip(map(operator.itemgetter(0), rows), scores, strict=True))


def _parse_score(score_text: str) -> float:
    score = parse_float(score_text)
    if score in (float("inf"), float("-inf")):
        raise ValueError("a score is out of range")
    return score
