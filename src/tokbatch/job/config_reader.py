"""From a TOML table to a tree of frozen dataclasses, with every mistake found and named by its dotted key.

The dataclasses are the format: their fields are the keys, their annotations the types, their defaults the defaults,
`setting` adds help and limits. Known annotations: str, int, float, bool, Literal, tuple[X, ...], Mapping[str, X],
another dataclass, and unions of them. What the keys mean is not here: see `config.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

T = TypeVar("T")

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def setting(
    default: Any = dataclasses.MISSING, *, help: str, minimum: float | None = None, maximum: float | None = None
) -> Any:
    """Declare a key: its default (none: the key must be there), what it does, and its limits, both allowed.

    `dict` as a default stands for an empty table.
    """
    given: dict[str, Any] = {"default_factory": dict} if default is dict else {"default": default}
    return dataclasses.field(**given, metadata={"help": help, "minimum": minimum, "maximum": maximum})


class Problems:
    """Mistakes by dotted key, in the order in which they were found. A key has one mistake at a time."""

    def __init__(self) -> None:
        self.by_key: dict[str, str] = {}

    def add(self, key: str, message: str) -> None:
        """Note a mistake."""
        self.by_key.setdefault(key, message)

    def touch(self, *keys: str) -> bool:
        """Tell whether one of the keys, or a key below it, has a mistake already."""
        return any(bad == key or bad.startswith((f"{key}.", f"{key}[")) for bad in self.by_key for key in keys)

    def lines(self) -> list[str]:
        """Give one line a mistake."""
        return [f"{key}: {message}" for key, message in self.by_key.items()]


def read_table(cls: type[T], table: Mapping[str, Any], path: str, problems: Problems) -> T | None:
    """Build `cls` from a table. A key with a mistake gets its default, or None, so that all the others are read too.

    Returns None only where a value is missing that has no default: then `problems` says so.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    complete = True
    for key in table:
        if key not in fields:
            problems.add(_join(path, key), _unknown_key(key, list(fields)))
    for name, field in fields.items():
        dotted = _join(path, name)
        if name in table:
            before = len(problems.by_key)
            value = _read_value(hints[name], table[name], dotted, problems)
            if len(problems.by_key) == before:
                _check_limits(value, field.metadata, dotted, problems)
            if len(problems.by_key) == before or dataclasses.is_dataclass(value):
                values[name] = value
                continue
        elif dataclasses.is_dataclass(hints[name]):
            values[name] = read_table(hints[name], {}, dotted, problems)
            continue
        elif _is_required(field):
            problems.add(dotted, "missing")
        if _is_required(field):
            complete = False
    return cls(**values) if complete else None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _read_value(hint: Any, value: Any, dotted: str, problems: Problems) -> Any:
    """Check one value against an annotation; a mistake goes to `problems`, and the value is of no use then."""
    options = _options(hint)
    for option in options:
        origin = typing.get_origin(option)
        if dataclasses.is_dataclass(option) and isinstance(value, dict):
            return read_table(typing.cast(Any, option), value, dotted, problems)
        if origin is tuple and isinstance(value, list):
            entry = typing.get_args(option)[0]
            return tuple(_read_value(entry, each, f"{dotted}[{index}]", problems) for index, each in enumerate(value))
        if origin is Mapping and isinstance(value, dict):
            entry = typing.get_args(option)[1]
            return {key: _read_value(entry, each, _join(dotted, key), problems) for key, each in value.items()}
        if _fits(option, value):
            return _as_float(value) if option is float else value
    problems.add(dotted, _mismatch(options, value))
    return None


def _options(hint: Any) -> tuple[Any, ...]:
    """Give the members of a union; any other annotation is its only member."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _fits(option: Any, value: Any) -> bool:
    if typing.get_origin(option) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in typing.get_args(option))
    if option is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is option


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # TOML's integers have any size
        return math.inf if value > 0 else -math.inf


def _check_limits(value: Any, limits: Mapping[str, Any], dotted: str, problems: Problems) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if limits.get("minimum") is not None and not value >= limits["minimum"]:
        problems.add(dotted, f"{value} is too small, the least is {limits['minimum']}")
    if limits.get("maximum") is not None and not value <= limits["maximum"]:
        problems.add(dotted, f"{value} is too large, the most is {limits['maximum']}")


def _mismatch(options: tuple[Any, ...], value: Any) -> str:
    words = [word for option in options for word in _words(option)]
    expected = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    choices = [
        choice for option in options if typing.get_origin(option) is Literal for choice in typing.get_args(option)
    ]
    near = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
    is_list = any(typing.get_origin(option) is tuple for option in options)
    guess = (
        f' (did you mean "{near[0]}"?)'
        if near
        else f' (write ["{value}"])'
        if is_list and isinstance(value, str)
        else ""
    )
    return f"expected {expected}, got {_shown(value)}{guess}"


def _words(option: Any) -> list[str]:
    """Describe an annotation for people."""
    origin = typing.get_origin(option)
    if option is type(None):
        return []
    if origin is Literal:
        return [f'"{choice}"' for choice in typing.get_args(option)]
    if origin is tuple:
        entries = _options(typing.get_args(option)[0])
        return ["a list of strings" if entries == (str,) else "a list of strings or tables"]
    if origin is Mapping:
        return ["a table"]
    if dataclasses.is_dataclass(option):
        return [f"a table with {', '.join(field.name for field in dataclasses.fields(option))}"]
    return [_NAMES[option]]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else str(value)


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, 1, 0.5)
    return f'unknown key, did you mean "{near[0]}"?' if near else f"unknown key, known are {', '.join(known)}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
