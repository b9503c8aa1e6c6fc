"""The syntax tree of a pattern: what `regex_syntax.py` gives and what the engines compile.

The tree has the meaning of the pattern and nothing of its spelling: options, case folding, character classes and
escapes are resolved into sets of code points, and groups that only group are gone. There are no captures, since no
component of a tokenizer asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tokbatch.spec.unicode import CodePointSet

AnchorKind = Literal[
    "line start",  # ^: at the start of the text and after \n, but not at the end of the text
    "line end",  # $: at the end of the text and before \n
    "text start",  # \A
    "text end",  # \z
    "last line end",  # \Z: at the end of the text and before a \n that ends it
    "search start",  # \G: where the search for this match began
    "word boundary",  # \b
    "no word boundary",  # \B
]


@dataclass(frozen=True, slots=True)
class Set:
    """One character out of a set."""

    members: CodePointSet


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other; the empty sequence matches the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """The first branch with which the whole pattern matches."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`minimum` to `maximum` times (None: without end), as often as possible if `greedy`, else as rarely.

    A round that matches the empty text is the last one.
    """

    body: Node
    minimum: int
    maximum: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Atomic:
    """The first match of the body, and never another one."""

    body: Node


@dataclass(frozen=True, slots=True)
class Look:
    """True where the body matches (or does not, if `negated`) from here on, or (`behind`) up to here."""

    body: Node
    behind: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """True at certain places. `word` is what counts as a word character, for the word boundaries."""

    kind: AnchorKind
    word: CodePointSet | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    r"""`\K`: the match begins here."""


Node = Set | Sequence | Alternation | Repeat | Atomic | Look | Anchor | Keep

EMPTY_SEQUENCE = Sequence(())


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes directly below a node."""
    match node:
        case Sequence(parts) | Alternation(parts):
            return parts
        case Repeat() | Atomic() | Look():
            return (node.body,)
        case _:
            return ()


def minimum_length(node: Node) -> int:
    """Give the number of characters that a match has at least."""
    match node:
        case Set():
            return 1
        case Sequence(parts):
            return sum(map(minimum_length, parts))
        case Alternation(branches):
            return min(map(minimum_length, branches))
        case Repeat():
            return node.minimum * minimum_length(node.body)
        case Atomic():
            return minimum_length(node.body)
        case _:
            return 0


def maximum_length(node: Node) -> int | None:
    """Give the number of characters that a match has at most; None where there is no limit."""
    match node:
        case Set():
            return 1
        case Sequence(parts) | Alternation(parts):
            lengths = [maximum_length(part) for part in parts]
            known = [length for length in lengths if length is not None]
            if len(known) < len(lengths):
                return None
            return sum(known) if isinstance(node, Sequence) else max(known, default=0)
        case Repeat():
            longest = maximum_length(node.body)
            if longest == 0 or node.maximum == 0:
                return 0
            return None if longest is None or node.maximum is None else longest * node.maximum
        case Atomic():
            return maximum_length(node.body)
        case _:
            return 0
