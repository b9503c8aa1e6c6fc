"""What the parser holds before the tree is done: strings, groups, classes under (?i), quantifiers on quantifiers.

Next: `regex_syntax.py`, which makes the tree of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from tokbatch.spec.regex_tree import Alternation, Anchor, Keep, Look, Node, Repeat, Sequence, children
from tokbatch.spec.unicode import CodePointSet

# What a quantifier directly on a quantified thing amounts to: {inner: {outer: result}}. "inner": the outer one goes;
# "both": they stay as they are; "+??" stands for an inner + under an outer ??.
NESTED = {
    "?": {"?": "inner", "*": "*", "+": "*", "??": "??", "*?": "*?", "+?": "both"},
    "*": {"?": "inner", "*": "inner", "+": "inner", "??": "+??", "*?": "+??", "+?": "inner"},
    "+": {"?": "*", "*": "*", "+": "inner", "??": "both", "*?": "+??", "+?": "inner"},
    "??": {"?": "inner", "*": "*?", "+": "*?", "??": "inner", "*?": "*?", "+?": "*?"},
    "*?": dict.fromkeys(["?", "*", "+", "??", "*?", "+?"], "inner"),
    "+?": {"?": "both", "*": "*", "+": "+", "??": "*?", "*?": "*?", "+?": "inner"},
}
BOUNDS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


@dataclass(frozen=True, slots=True)
class Text:
    """A string that is not resolved yet. `quantified_whole`: `(?:abc)`, of which a quantifier takes all."""

    text: str
    ignore_case: bool
    quantified_whole: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A group that is seen from outside as one thing: a capture, an option group, a comment on both."""

    body: Draft
    captures: bool


@dataclass(frozen=True, slots=True)
class Class:
    """A character class under (?i)."""

    members: CodePointSet
    negated: bool


# While parsing, the nodes of the tree may hold these three as well; `_resolve` takes them out.
Draft = Node | Text | Group | Class


def flat(draft: Draft) -> tuple[Draft, ...]:
    """Give the parts of a sequence, or the one thing that it is."""
    return draft.parts if isinstance(draft, Sequence) else (draft,)


def joined(parts: list[Draft]) -> list[Draft]:
    """Join neighbouring strings; what `(?i)` makes of `ss` depends on it."""
    result: list[Draft] = []
    for ignore_case, run in groupby(parts, lambda part: part.ignore_case if isinstance(part, Text) else None):
        texts = list(run)
        if ignore_case is None or len(texts) == 1:
            result.extend(texts)
        else:
            result.append(Text("".join(part.text for part in texts if isinstance(part, Text)), ignore_case))
    return result


def descendants(draft: Draft) -> list[Draft]:
    """Give a draft and all that is below it."""
    if isinstance(draft, Group):
        return [draft, *descendants(draft.body)]
    if isinstance(draft, Text | Class):
        return [draft]
    return [draft, *(found for child in children(draft) for found in descendants(child))]


def never_quantified(draft: Draft) -> bool:
    """Say whether a quantifier on this is an error."""
    match draft:
        case Anchor() | Look() | Keep():
            return True
        case Alternation(branches):
            return any(map(never_quantified, branches))
        case _:
            return False


def _sign(repeat: Repeat) -> str | None:
    """Give `?`, `*`, `+`, `??`, `*?` or `+?` where a repeat is one of them."""
    for sign, bounds in BOUNDS.items():
        if bounds == (repeat.minimum, repeat.maximum):
            return sign if repeat.greedy else sign + "?"
    return None


def nest(target: Draft, minimum: int, maximum: int | None, greedy: bool) -> Repeat:
    """Put a quantifier on something, and simplify it as Oniguruma does where that is a quantifier already."""
    outer = Repeat(target, minimum, maximum, greedy)  # type: ignore[arg-type]
    if not isinstance(target, Repeat):
        return outer
    inner_sign, outer_sign = _sign(target), _sign(outer)
    if inner_sign is None or outer_sign is None:
        if inner_sign in ("*", "+") and maximum is not None and maximum > 1 and greedy:
            return replace(outer, maximum=minimum or 1)
        if minimum == maximum and target.minimum == target.maximum:
            return Repeat(target.body, minimum * target.minimum, minimum * target.minimum, greedy)
        return outer
    result = NESTED[inner_sign][outer_sign]
    if result == "inner":
        return target
    if result == "both":
        return outer
    if result == "+??":
        return Repeat(Repeat(target.body, 1, None, True), 0, 1, False)
    return Repeat(target.body, *BOUNDS[result[0]], greedy=len(result) == 1)
