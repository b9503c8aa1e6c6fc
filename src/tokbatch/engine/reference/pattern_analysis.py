"""What can be said about a pattern without a text: where it surely matches, and how it can take long.

`patterns.py` asks this to choose between Python's `re` and the machine of `pattern_machine.py`, and to know whether the
matches of a pattern lie end to end. Every answer errs on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb

from tokbatch.engine.reference.pattern_alphabet import Alphabet
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
from tokbatch.spec.unicode import CodePointSet

Classes = frozenset[int]  # of an alphabet
NONE: Classes = frozenset()

EXPONENTIAL = 99
_SHORT_TEXT, _SHORT_WORK = 400, 10_000_000  # characters; ways
_LOOP_FROM = 16  # a count that can vary by more than this is a loop like + and *


def surely_matches(node: Node, alphabet: Alphabet) -> Classes:
    """Give characters such that the node matches wherever one of them comes next, whatever follows it."""
    match node:
        case Set(members):
            return alphabet.classes_in(members)
        case Sequence(parts):
            if not parts:
                return alphabet.classes
            first, rest = parts[0], Sequence(parts[1:])
            sure = surely_matches(first, alphabet) if cannot_fail(rest) else NONE
            skips = cannot_fail(first) and not isinstance(first, Atomic)
            return sure | surely_matches(rest, alphabet) if skips else sure
        case Alternation(branches):
            return NONE.union(*(surely_matches(branch, alphabet) for branch in branches))
        case Repeat():
            if node.minimum == 0:
                return alphabet.classes
            return surely_matches(node.body, alphabet) if node.minimum == 1 else NONE
        case Atomic():
            return surely_matches(node.body, alphabet)
        case _:
            return NONE


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


def may_begin(node: Node, alphabet: Alphabet) -> Classes:
    """Give the characters that a match of the node can begin with; all of them where it can be empty."""
    if minimum_length(node) == 0:
        return alphabet.classes
    match node:
        case Set(members):
            return alphabet.classes_in(members)
        case Sequence(parts):
            begins = NONE
            for part in parts:
                begins |= _begins_with(part, alphabet)
                if minimum_length(part) > 0:
                    break
            return begins
        case Alternation(branches):
            return NONE.union(*(may_begin(branch, alphabet) for branch in branches))
        case Repeat() | Atomic():
            return may_begin(node.body, alphabet)
        case _:
            return NONE


def _begins_with(part: Node, alphabet: Alphabet) -> Classes:
    """Give the characters that a part which may be empty begins with where it is not."""
    if isinstance(part, Look | Anchor | Keep):
        return NONE
    if isinstance(part, Repeat) and minimum_length(part.body) > 0:
        return may_begin(part.body, alphabet)
    return may_begin(part, alphabet)


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
                if _is_simple(node.body):
                    return 1 if can_fail_after else 0
                # A round that fails leaves the loop, and nothing after it goes back into the rounds before.
                is_left_for_good = not can_fail_after and node.minimum <= 1 and minimum_length(node.body) > 0
                return 0 if is_left_for_good and degree(node.body) == 0 else EXPONENTIAL
            return degree(node.body, can_fail_after or (node.maximum or 0) > 1) * max(1, node.maximum or 0)
        case Atomic() | Look():
            return degree(node.body)
        case _:
            return 0


def longest_short_text(power: int) -> int:
    """Say up to how many characters a matcher may go back over all of a text from every position.

    Loops within each other, `power` of them (see `degree`), must not have too many ways to share the text.
    """
    fits = (n for n in range(_SHORT_TEXT, 0, -1) if comb(n + power, power + 1) <= _SHORT_WORK)
    return next(fits, 0)


def is_loop(node: Repeat) -> bool:
    """Say whether a repeat has so many possible counts that they matter."""
    return node.maximum is None or node.maximum - node.minimum > _LOOP_FROM


def _is_simple(node: Node) -> bool:
    """Say whether a node matches one way only: a set, or a fixed sequence of sets."""
    return isinstance(node, Set) or (
        isinstance(node, Sequence) and bool(node.parts) and all(map(_is_simple, node.parts))
    )


def attempts_in_vain(tree: Node, alphabet: Alphabet) -> bool:
    """Say whether failing attempts, one a position, can each take time in proportion to the text."""
    if minimum_length(tree) == 0:
        return degree(tree) > 0
    uncovered = alphabet.classes - surely_matches(tree, alphabet)
    return any(degree(branch) > 0 and may_begin(branch, alphabet) & uncovered for branch in _branches(tree))


def uses_what_it_scans(tree: Node, alphabet: Alphabet) -> bool:
    r"""Say whether successful attempts, too, take time in proportion to the text only when taken together.

    A branch that scans a run of characters and fails costs the length of the run. It does so once in a run if the
    branch that matches in its stead takes all of the run, as `\s+` does after `\s*[\r\n]+`. (Where the branch itself
    matches, but only part of the run, it took as much as it can: it will not match in the rest.)
    """
    branches = _branches(tree)
    for index, branch in enumerate(branches):
        if degree(branch) == 0:
            continue
        scan = _scan(branch)
        if scan is None or not _run_is_taken(scan, branch, branches[index + 1 :], alphabet):
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Scan:
    """A greedy loop over one set, what stands before it in its branch, and what follows it."""

    before: tuple[Node, ...]
    members: CodePointSet
    after: tuple[Node, ...]


def _scan(branch: Node) -> _Scan | None:
    """Find the first loop of a branch, if it is a plain one and the only one that can be gone back into."""
    parts = branch.parts if isinstance(branch, Sequence) else (branch,)
    for index, part in enumerate(parts):
        if isinstance(part, Repeat) and is_loop(part):
            plain = part.greedy and part.maximum is None and part.minimum <= 1 and isinstance(part.body, Set)
            if not plain or degree(Sequence(parts[index + 1 :])) > 0:
                return None
            assert isinstance(part.body, Set)
            return _Scan(parts[:index], part.body.members, parts[index + 1 :])
        if degree(part, True) > 0:
            return None
    return None


def _run_is_taken(scan: _Scan, branch: Node, later: Iterable[Node], alphabet: Alphabet) -> bool:
    """Say whether the branches after one that scanned a run take the run, if they match at all."""
    run = alphabet.classes_in(scan.members)
    for other in later:
        found = _scan(other)
        takes = found is not None and found.before == scan.before and run <= alphabet.classes_in(found.members)
        if takes and found is not None:
            if all(map(cannot_fail, found.after)):
                return True
            if not _gives_back_one(found, alphabet):
                return False
        elif may_begin(other, alphabet) & may_begin(branch, alphabet):
            return False
    return False


def _gives_back_one(scan: _Scan, alphabet: Alphabet) -> bool:
    r"""Say whether a loop is followed only by the demand that something else than what it takes does not follow.

    `\s+(?!\S)` gives back one character at most.
    """
    if len(scan.after) != 1 or not isinstance(scan.after[0], Look):
        return False
    look = scan.after[0]
    if look.behind or not look.negated or not isinstance(look.body, Set):
        return False
    return not alphabet.classes_in(look.body.members) & alphabet.classes_in(scan.members)


def _branches(tree: Node) -> tuple[Node, ...]:
    return tree.branches if isinstance(tree, Alternation) else (tree,)


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
