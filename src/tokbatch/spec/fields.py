"""Values of a tokenizer.json taken one by one, each checked against the type that the oracle has for it.

A taker is a function (value, where) -> value that raises `SpecError` with the JSON path. `null` counts as a missing
field only where the oracle has an `Option`. Which fields each component has stands in `read_components.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from tokbatch.errors import SpecError
from tokbatch.spec.json_text import Members, member
from tokbatch.spec.refusals import refuse

T = TypeVar("T")
Taker = Callable[[Any, str], T]
LARGEST_U32 = 2**32 - 1
LARGEST_U64 = 2**64 - 1


class OracleCrash(Exception):
    """The oracle panics here, so no other class is tried. Holds the error to raise."""

    def __init__(self, error: SpecError):
        super().__init__(str(error))
        self.error = error


def show(value: Any) -> str:
    """Write a value as it may stand in a message: as JSON, and cut short."""
    if isinstance(value, (dict, list)):
        return f"an {'object' if isinstance(value, dict) else 'array'} of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def wrong(value: Any, wanted: str, where: str) -> SpecError:
    """Build the error for a value of a wrong type."""
    return SpecError(f"{show(value)} where {wanted} belongs", where=where)


def boolean(value: Any, where: str) -> bool:
    """Take true or false."""
    if value is True or value is False:
        return bool(value)
    raise wrong(value, "true or false", where)


def text(value: Any, where: str) -> str:
    """Take a string."""
    if type(value) is str:
        return value
    raise wrong(value, "a string", where)


def character(value: Any, where: str) -> str:
    """Take a string of exactly one code point."""
    if type(value) is str and len(value) == 1:
        return value
    raise wrong(value, "a string of one character", where)


def u32(value: Any, where: str) -> int:
    """Take an integer from 0 to 4,294,967,295."""
    if type(value) is int and 0 <= value <= LARGEST_U32:
        return value
    raise wrong(value, f"an integer from 0 to {LARGEST_U32}", where)


def usize(value: Any, where: str) -> int:
    """Take an integer from 0 to 2**64 - 1."""
    if type(value) is int and 0 <= value <= LARGEST_U64:
        return value
    raise wrong(value, "an integer from 0 on", where)


def number(value: Any, where: str) -> float:
    """Take a number."""
    if type(value) is int or type(value) is float:
        return float(value)
    raise wrong(value, "a number", where)


def optional(taker: Taker[T]) -> Taker[T | None]:
    """Take null too."""

    def take(value: Any, where: str) -> T | None:
        return None if value is None else taker(value, where)

    return take


def one_of(*names: str) -> Taker[Any]:
    """Take one of a few names."""

    def take(value: Any, where: str) -> str:
        if type(value) is str and value in names:
            return value
        if isinstance(value, dict):
            raise refuse("object for name", f"{show(value)} where a name belongs", where)
        raise wrong(value, f"one of {', '.join(names)}", where)

    return take


def array(taker: Taker[T]) -> Taker[tuple[T, ...]]:
    """Take an array of equal items."""

    def take(value: Any, where: str) -> tuple[T, ...]:
        if type(value) is not list:
            raise wrong(value, "an array", where)
        return tuple(taker(item, f"{where}[{index}]") for index, item in enumerate(value))

    return take


def token_and_id(value: Any, where: str) -> tuple[str, int]:
    """Take `["token", id]`."""
    if type(value) is not list or len(value) != 2:
        raise wrong(value, "an array of a token and its id", where)
    return text(value[0], f"{where}[0]"), u32(value[1], f"{where}[1]")


def an_object(value: Any, where: str) -> dict[str, Any]:
    """Take an object. (The oracle also takes an array of the fields' values in their order: refused by name.)"""
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        raise refuse("array for object", f"{show(value)} where an object belongs", where)
    raise wrong(value, "an object", where)


class Required:
    """Stands for the default of a field that has none."""


REQUIRED = Required()
Fields = dict[str, tuple[Taker[Any], Any]]


def take_fields(
    value: dict[str, Any], fields: Fields, where: str, ignored: list[str], refuse_repeated: bool
) -> dict[str, Any]:
    """Take the fields of an object; other keys go to `ignored`. A field is (taker, default), or (taker, REQUIRED)."""
    if refuse_repeated and isinstance(value, Members):
        for key in sorted(value.repeated & fields.keys()):
            raise SpecError("the field is there twice", where=f"{where}.{key}")
    taken = {}
    for name, (taker, default) in fields.items():
        if name in value:
            taken[name] = taker(value[name], f"{where}.{name}")
        elif default is REQUIRED:
            raise SpecError(f"the field `{name}` is missing", where=where)
        else:
            taken[name] = default
    ignored.extend(member(where, key) for key in value if key not in fields and key != "type")
    return taken
