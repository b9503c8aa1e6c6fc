"""JSON as the oracle's parser reads it: text to plain values, or a `SpecError` that says where.

The oracle reads with serde_json 1.0.151, whose habits differ from Python's in ways that a tokenizer.json can show:

- a fractional number is the digits as an integer, times or over a power of ten: two roundings, so that one score in
  eight differs in its last bit from the nearest double, and with it now and then the best segmentation;
- `-0` is a fraction; an integer beyond 64 bits is a fraction too; a number beyond the doubles is an error;
- 127 nested arrays and objects are allowed, the 128th is an error;
- a lone surrogate escape is an error; so are NaN, Infinity, a byte order mark and anything after the value;
- keys of an object may repeat: what follows from that differs from section to section, so they are kept (`Members`).

What the values must be is not here: see `fields.py`. Long tables go another way (`bulk.py`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from tokbatch.errors import SpecError
from tokbatch.spec.refusals import refuse

MAXIMUM_DEPTH = 127
# Below these, the oracle skips the values of keys that it does not know, and looks at nothing in them.
SKIPPED = ("$.truncation.", "$.padding.")
LARGEST_U64 = 2**64 - 1
SMALLEST_I64 = -(2**63)
POWERS_OF_TEN = tuple(float(f"1e{exponent}") for exponent in range(309))
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_NAME = re.compile(r"[A-Za-z_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Members(dict[str, Any]):
    """An object in which a key is repeated: the last value of each key, and all the pairs in the file's order."""

    pairs: list[tuple[str, Any]]

    @property
    def repeated(self) -> set[str]:
        """The keys that occur more than once."""
        seen: set[str] = set()
        return {key for key, _ in self.pairs if key in seen or seen.add(key)}  # type: ignore[func-returns-value]


class OutOfRange(float):
    """Stands for a number that no double holds, until the place where it stands is known."""

    text: str


def pairs_of(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Give the members of an object as the file has them, repeated ones included."""
    return value.pairs if isinstance(value, Members) else list(value.items())


def member(where: str, key: str) -> str:
    """Give the path of an object's member: `where.key`, or `where["key"]` for a key that is no plain name."""
    return f"{where}.{key}" if _NAME.fullmatch(key) else f"{where}[{json.dumps(key, ensure_ascii=False)}]"


def parse_float(text: str) -> float:
    """Read a JSON number as serde_json does without its feature `float_roundtrip`.

    >>> parse_float("0.1"), parse_float("-3.4650254249572754")
    (0.1, -3.465025424957275)
    """
    match = _NUMBER.fullmatch(text)
    assert match is not None, text
    sign, whole, fraction, written_exponent = match.groups()
    significand, exponent = _significand(whole, fraction or "")
    if written_exponent:
        exponent += max(-(2**31), min(2**31, int(written_exponent[:12])))
    value = float(significand)
    while value and exponent < -308:
        value /= 1e308
        exponent += 308
    if not value:
        return -0.0 if sign else 0.0
    if exponent < 0:
        value /= POWERS_OF_TEN[-exponent]
    else:
        value = value * POWERS_OF_TEN[exponent] if exponent <= 308 else float("inf")
    if value == float("inf"):
        out_of_range = OutOfRange("inf")
        out_of_range.text = text
        return out_of_range
    return -value if sign else value


def _significand(whole: str, fraction: str) -> tuple[int, int]:
    """Take digits while they fit 64 bits. Those of the whole part count as zeros from there on, a fraction's do not."""
    significand = int(whole[:19])
    for position in range(19, len(whole)):
        larger = significand * 10 + int(whole[position])
        if larger > LARGEST_U64:
            return _fraction(significand, fraction, len(whole) - position)
        significand = larger
    return _fraction(significand, fraction, 0)


def _fraction(significand: int, fraction: str, exponent: int) -> tuple[int, int]:
    for digit in fraction:
        larger = significand * 10 + int(digit)
        if larger > LARGEST_U64:
            break
        significand, exponent = larger, exponent - 1
    return significand, exponent


def _parse_int(text: str) -> int | float:
    if len(text) > 20 or text == "-0":
        return parse_float(text)
    value = int(text)
    return value if SMALLEST_I64 <= value <= LARGEST_U64 else parse_float(text)


def _no_constant(text: str) -> Any:
    raise SpecError(f"`{text}` is not JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    members = Members(value)
    members.pairs = pairs
    return members


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=parse_float, parse_int=_parse_int, parse_constant=_no_constant
)


def parse_json(text: str) -> Any:
    """Read a whole JSON text."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise SpecError(message, where=f"line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise SpecError(f"arrays and objects are nested more than {MAXIMUM_DEPTH} deep") from None
    _refuse_what_python_lets_pass(value, bool(_SURROGATE_ESCAPE.search(text)))
    return value


def _refuse_what_python_lets_pass(root: Any, look_for_surrogates: bool) -> None:
    """Look level by level for too deep a nesting, for lone surrogates and for numbers out of range."""
    level, depth = [("$", root)], 0
    while level:
        below = []
        for where, value in level:
            if isinstance(value, dict):
                for key, item in pairs_of(value):
                    kind = type(item)
                    if kind is dict or kind is list or kind is Members:
                        below.append((member(where, key), item))
                    elif kind is OutOfRange or look_for_surrogates:
                        _refuse_leaf(member(where, key), item)
                    if look_for_surrogates:
                        _refuse_leaf(where, key)
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    kind = type(item)
                    if kind is dict or kind is list or kind is Members:
                        below.append((f"{where}[{index}]", item))
                    elif kind is OutOfRange or look_for_surrogates:
                        _refuse_leaf(f"{where}[{index}]", item)
            else:
                _refuse_leaf(where, value)
        if level and any(isinstance(value, (dict, list)) for _, value in level):
            depth += 1
            if depth > MAXIMUM_DEPTH:
                problem = f"arrays and objects are nested more than {MAXIMUM_DEPTH} deep"
                if all(where.startswith(SKIPPED) for where, _ in level):
                    raise refuse("skipped value", problem, _shorten(level[0][0]))
                raise SpecError(problem, where=_shorten(level[0][0]))
        level = below


def _refuse_leaf(where: str, value: Any) -> None:
    problem = None
    if type(value) is OutOfRange:
        problem = f"the number {value.text[:40]} is out of range"
    if isinstance(value, str) and (found := _SURROGATE.search(value)):
        problem = f"the escape \\u{ord(found[0]):04x} is half of a surrogate pair"
    if problem is not None and where.startswith(SKIPPED):
        raise refuse("skipped value", problem, _shorten(where))
    if problem is not None:
        raise SpecError(problem, where=_shorten(where))


def _shorten(where: str) -> str:
    return where if len(where) <= 100 else f"{where[:60]}...{where[-30:]}"
