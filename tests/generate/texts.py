"""Random texts: glued from vocabulary entries, added tokens with their neighbours, whitespace, awkward characters."""

from __future__ import annotations

from collections.abc import Sequence

from component_strategies import CHARACTERS
from generate.source import Source

WHITESPACE = [
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "    ",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u0085",
    "\u2028",
    "\f",
    "\v",
    "\u1680",
    "\u200b",  # is none
    "\x1c",  # is none, though Python says so
]
# What decides about `single_word`: word characters of each kind, and what only looks like one.
NEIGHBOURS = ["", "a", "_", "1", "é", "\u0301", "Ⅷ", "²", "½", "\u200d", "-", "日", "𐐀", "😀", "ⓐ", ".", "\u203f"]
WORDS = [
    "hello",
    "world",
    "the",
    "a",
    "It's",
    "don't",
    "WE'LL",
    "x1",
    "2024",
    "3.14",
    "foo_bar",
    "naïve",
    "日本語",
    "…",
]


def random_text(source: Source, vocabulary: Sequence[str], added: Sequence[str], longest: int = 10) -> str:
    """Glue a text together. `vocabulary` is as it would stand in a text (no byte alphabet, no marks)."""

    def piece() -> str:
        kind = source.integer(0, 9)
        if kind <= 2 and vocabulary:
            return source.choose(vocabulary)
        if kind <= 4:
            return source.choose(WHITESPACE) * source.integer(1, 3 if source.chance(20) else 1)
        if kind <= 6 and added:
            content = source.choose(added)
            if source.chance(20):
                content = source.choose([content.lower(), content.upper(), content[:-1], content[1:]])
            around = WHITESPACE if source.chance(60) else NEIGHBOURS
            return source.choose(around) + content + source.choose(around)
        if kind == 7:
            return source.choose(WORDS)
        return source.choose(CHARACTERS)

    return "".join(source.several(piece, 0, longest))
