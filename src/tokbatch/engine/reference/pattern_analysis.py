"""What can be said about a pattern without a text: where it surely matches, and how it can take long.

`patterns.py` asks this to choose between Python's `re` and the machine of `pattern_machine.py`, and to know whether the
matches of a pattern lie end to end. Every answer errs on the safe side.
"""

from __future__ import annotations

from tokbatch.spec.regex_tree import (
    Alternation,
    Anchor,
    Atomic,
    Keep,
    Look,
    Node,
    Repeat,
    Sequence,
    Set,
    children,
    maximum_length,
    minimum_length,
)
from tokbatch.spec.unicode import ALL, EMPTY, CodePointSet

EXPONENTIAL = 99
_LOOP_FROM = 16  # a count that can vary by more than this is a loop like + and *


def surely_matches(node: Node) -> CodePointSet:
    """Give characters such that the node matches wherever one of them comes next, whatever follows it."""
    match node:
        case Set(members):
            return members
        case Sequence(parts):
            if not parts:
                return ALL
            first, rest = parts[0], Sequence(parts[1:])
            sure = surely_matches(first) if cannot_fail(rest) else EMPTY
            return sure | surely_matches(rest) if cannot_fail(first) and not isinstance(first, Atomic) else sure
        case Alternation(branches):
            sure = EMPTY
            for branch in branches:
                sure |= surely_matches(branch)
            return sure
        case Repeat():
            if node.minimum == 0:
                return ALL
            return surely_matches(node.body) if node.minimum == 1 else EMPTY
        case Atomic():
            return surely_matches(node.body)
        case _:
            return EMPTY


def cannot_fail(node: Node) -> bool:
    """Say whether a node can always match the empty text."""
    match node:
        case Sequence(parts):
            return all(map(cannot_fail, parts))
        case Alternation(branches):
            return any(map(cannot_fail, branches))
        case Repeat():
            return node.minimum == 0 or cannot_fail(node.body)
        case Atomic():
            return cannot_fail(node.body)
        case Keep():
            return True
        case _:
            return False


def may_begin(node: Node) -> CodePointSet:
    """Give the characters that a match of the node can begin with; all of them where it can be empty."""
    match node:
        case Set(members):
            return members
        case Sequence(parts):
            begins = EMPTY
            for part in parts:
                begins |= may_begin(part)
                if minimum_length(part) > 0:
                    return begins
            return ALL
        case Alternation(branches):
            begins = EMPTY
            for branch in branches:
                begins |= may_begin(branch)
            return begins
        case Repeat():
            return (
                ALL if node.minimum == 0 and node.maximum != 0 and minimum_length(node.body) == 0 else _repeated(node)
            )
        case Atomic():
            return may_begin(node.body)
        case _:
            return EMPTY


def _repeated(node: Repeat) -> CodePointSet:
    return may_begin(node.body)


def degree(node: Node, can_fail_after: bool = False) -> int:
    """Bound the work of one attempt: proportional to the text's length to this power. `EXPONENTIAL`: no such bound.

    A loop counts where something after it can fail and send the matcher back into it.
    """
    match node:
        case Sequence(parts):
            total = 0
            for part in reversed(parts):
                total += degree(part, can_fail_after)
                can_fail_after = can_fail_after or not cannot_fail(part)
            return total
        case Alternation(branches):
            return max(degree(branch, can_fail_after) for branch in branches)
        case Repeat():
            if is_loop(node):
                return (1 if can_fail_after else 0) if _is_simple(node.body) else EXPONENTIAL
            return degree(node.body, can_fail_after or (node.maximum or 0) > 1) * max(1, node.maximum or 0)
        case Atomic() | Look():
            return degree(node.body)
        case _:
            return 0


def is_loop(node: Repeat) -> bool:
    """Say whether a repeat has so many possible counts that they matter."""
    return node.maximum is None or node.maximum - node.minimum > _LOOP_FROM


def _is_simple(node: Node) -> bool:
    """Say whether a node matches one way only: a set, or a fixed sequence of sets."""
    return isinstance(node, Set) or (
        isinstance(node, Sequence) and bool(node.parts) and all(map(_is_simple, node.parts))
    )


def attempts_in_vain(tree: Node) -> bool:
    """Say whether failing attempts, one a position, can each take time in proportion to the text."""
    uncovered = ALL - surely_matches(tree)
    branches = tree.branches if isinstance(tree, Alternation) else (tree,)
    return any(degree(branch) > 0 and (may_begin(branch) & uncovered) for branch in branches) or (
        minimum_length(tree) == 0 and degree(tree) > 0
    )


def fits_re(node: Node) -> bool:
    r"""Say whether Python's `re` gives what Oniguruma gives: no `\K`, no `\G`, no loops of the empty text, ..."""
    match node:
        case Keep():
            return False
        case Anchor():
            return node.kind != "search start"
        case Repeat() if minimum_length(node.body) == 0:
            return False
        case Look(body, behind=True):
            branches = body.branches if isinstance(body, Alternation) else (body,)
            if any(maximum_length(branch) != minimum_length(branch) for branch in branches):
                return False
    return all(map(fits_re, children(node)))
