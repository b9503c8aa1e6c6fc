"""Broken and odd tokenizer.json texts, made from small whole ones: a key gone, a value replaced, a key twice.

`mutations(document)` gives (name, text) pairs; the names say what was done and where, so that a failing test can be
read. Whether such a text is a tokenizer.json is for the oracle to say (`test_read_against_oracle.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class Literal(str):
    """JSON text that is written as it is."""


class Pairs(list[tuple[str, Any]]):
    """An object whose keys may repeat."""


REPLACEMENTS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    2**31,
    2**32 - 1,
    2**32,
    2**53 + 1,
    2**63,
    2**64 - 1,
    2**64,
    10**30,
    "",
    "a",
    "ab",
    "é",
    "𐐀",
    "#version",
    "a b",
    [],
    {},
    [[]],
    [None],
    ["a"],
    ["a", 0],
    ["a", "b"],
    {"a": 0},
    {"": None},
    {"String": "a"},
    {"Regex": "a+"},
    {"Regex": "("},
    {"String": ""},
    *map(
        Literal,
        [
            "0.0",
            "1.0",
            "-0",
            "-0.0",
            "0.5",
            "1e0",
            "1e2",
            "1E+2",
            "-1e-50",
            "1e-400",
            "1.00000001",
            "1.0000001",
            "1.7976931348623158e308",
            "1e308",
            "1e309",
            "-1e400",
            "0e999999999999",
            "1e-99999999999",
            "123456789012345678901234567890",
            "0.1234567890123456789012345678901234567890",
            "NaN",
            "Infinity",
            "-Infinity",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "0x10",
            "nul",
            "True",
            "'a'",
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            '"\\udc00\\ud800"',
            '"\\u0000"',
            '"\\x41"',
            '"\\u12"',
            '"tab\there"',
            '"\x7f"',
            "[1,]",
            '{"a":1,}',
            "[1 2]",
            "[" * 20 + "]" * 20,
            "",
        ],
    ),
]


def write(value: Any) -> str:
    """Write JSON, with `Literal`s and `Pairs` in it."""
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{write(item)}" for key, item in value) + "}"
    if isinstance(value, dict):
        return write(Pairs(value.items()))
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the path of each value in a document."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """Give the value at a path."""
    for step in path:
        value = value[step]
    return value


def changed(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    """Copy a document with `change(container, step)` applied to a copy of the container that holds a place."""
    if not path:
        return change(None, None)
    copy = value.copy()
    if len(path) == 1:
        return change(copy, path[0])
    copy[path[0]] = changed(value[path[0]], path[1:], change)
    return copy


def _without(container: Any, step: Any) -> Any:
    del container[step]
    return container


def _with(new: Any) -> Any:
    def change(container: Any, step: Any) -> Any:
        if container is None:
            return new
        container[step] = new
        return container

    return change


def _twice(first: Any, second: Any, last: bool) -> Any:
    def change(container: Any, step: Any) -> Any:
        pairs = Pairs()
        for key, item in container.items():
            if key == step:
                pairs += [(key, first)] if last else [(key, first), (key, second)]
            else:
                pairs.append((key, item))
        return Pairs([*pairs, (step, second)]) if last else pairs

    return change


def _with_member(key: str, new: Any, first: bool = False) -> Any:
    def change(container: Any, step: Any) -> Any:
        old = container[step]
        container[step] = {key: new, **old} if first else {**old, key: new}
        return container

    return change


def mutations(document: dict[str, Any], within: tuple[Any, ...] = ()) -> Iterator[tuple[str, str]]:
    """Give (name, text) for each mutation of a document at or below the path `within`."""
    yield "unchanged", write(document)
    for path in places(document):
        if path[: len(within)] != within:
            continue
        where = ".".join(map(str, path)) or "the whole"
        for new in REPLACEMENTS:
            yield f"{where} = {write(new)[:50]}", write(changed(document, path, _with(new)))
        if not path:
            continue
        yield f"{where} left out", write(changed(document, path, _without))
        if isinstance(path[-1], str):
            old = at(document, path)
            for name, first, second in (("same", old, old), ("null first", None, old), ("null last", old, None)):
                yield f"{where} twice, {name}", write(changed(document, path, _twice(first, second, False)))
            yield f"{where} twice, apart", write(changed(document, path, _twice(old, old, True)))
        if isinstance(at(document, path), dict):
            for key, new in (("extra", 1), ("extra", Literal("1e400")), ("type", "Nonsense"), ("type", None)):
                yield f"{where}.{key} = {write(new)}", write(changed(document, path, _with_member(key, new)))
            if "type" in at(document, path):
                enum = {at(document, path)["type"]: None}
                yield f"{where}.type as an object", write(changed(document, (*path, "type"), _with(enum)))
            yield f"{where} as an array", write(changed(document, path, _with(list(at(document, path).values()))))
