"""The tree of a pattern as a regular expression of Python's `re`, over the letters of its alphabet.

Only for trees that `pattern_analysis.fits_re` lets pass. Python 3.10 has no atomic groups in its `re`: there the module
`regex` takes the patterns that have some. The source holds explicit sets only, so that neither of the two ever uses a
Unicode table of its own.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.spec.regex_tree import (
    Alternation,
    Anchor,
    AnchorKind,
    Atomic,
    Look,
    Node,
    Repeat,
    Sequence,
    Set,
    children,
)

HAS_ATOMIC_GROUPS = sys.version_info >= (3, 11)

ANCHORS: dict[AnchorKind, str] = {
    "line start": r"(?:\A|(?<=\n)(?!\Z))",
    "line end": r"(?=\n|\Z)",
    "text start": r"\A",
    "text end": r"\Z",
    "last line end": r"(?=\n?\Z)",
}


def compile_source(tree: Node, alphabet: Alphabet) -> re.Pattern[str] | None:
    """Compile a tree for `re` or `regex`; None: it is too large for them."""
    module: Any = re if HAS_ATOMIC_GROUPS or not _has_atomic(tree) else importlib.import_module("regex")
    try:
        compiled: re.Pattern[str] = module.compile(python_source(tree, alphabet))
    except (module.error, OverflowError, RecursionError):
        return None
    return compiled


def python_source(node: Node, alphabet: Alphabet) -> str:
    """Write a tree in the syntax of `re`."""
    match node:
        case Set(members):
            return alphabet.source(members)
        case Sequence(parts):
            return "".join(python_source(part, alphabet) for part in parts)
        case Alternation(branches):
            return f"(?:{'|'.join(python_source(branch, alphabet) for branch in branches)})"
        case Repeat():
            return _repeat(node, alphabet)
        case Atomic():
            return f"(?>{python_source(node.body, alphabet)})"
        case Look():
            return _look(node, alphabet)
        case Anchor():
            return _anchor(node, alphabet)
        case _:
            raise AssertionError(f"{node} has no counterpart in re")


def _repeat(node: Repeat, alphabet: Alphabet) -> str:
    body = python_source(node.body, alphabet)
    if not isinstance(node.body, Set):
        body = f"(?:{body})"
    maximum = "" if node.maximum is None else node.maximum
    counted = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(
        (node.minimum, node.maximum), f"{{{node.minimum},{maximum}}}"
    )
    return f"{body}{counted}{'' if node.greedy else '?'}"


def _look(node: Look, alphabet: Alphabet) -> str:
    sign = ("<" if node.behind else "") + ("!" if node.negated else "=")
    if not node.behind or not isinstance(node.body, Alternation):
        return f"(?{sign}{python_source(node.body, alphabet)})"
    # `re` wants one width in a look-behind: one of them for each branch.
    looks = [f"(?{sign}{python_source(branch, alphabet)})" for branch in node.body.branches]
    return "".join(looks) if node.negated else f"(?:{'|'.join(looks)})"


def _anchor(node: Anchor, alphabet: Alphabet) -> str:
    if node.word is None:
        return ANCHORS[node.kind]
    word = alphabet.source(node.word)
    if node.kind == "word boundary":
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"


def _has_atomic(node: Node) -> bool:
    return isinstance(node, Atomic) or any(map(_has_atomic, children(node)))
