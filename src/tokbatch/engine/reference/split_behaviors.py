"""The five behaviors of a Split: what becomes of the matches, and of what lies between them.

A text `ab-cd--e` cut at `-`:

    Removed             ab cd e
    Isolated            ab - cd - - e
    MergedWithPrevious  ab- cd- - e
    MergedWithNext      ab -cd - -e
    Contiguous          ab - cd -- e

With `invert` the matches count as what lies between, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokbatch.spec.pre_tokenizers import Behavior

CHARACTER_TEMPLATES: dict[Behavior, str] = {
    "Removed": "[^{points}]+",
    "Isolated": "[{points}]|[^{points}]+",
    "MergedWithPrevious": "[^{points}]+[{points}]?|[{points}]",
    "MergedWithNext": "[{points}]?[^{points}]+|[{points}]",
    "Contiguous": "[{points}]+|[^{points}]+",
}
"""The same for a Split at each character of a set: the pieces as matches of a `CharacterPattern`."""


def pieces_are_matches(behavior: Behavior, invert: bool) -> bool:
    """Say whether the pieces are the matches themselves, where matches without gaps make up the whole text."""
    return invert if behavior == "Removed" else behavior != "Contiguous"


def behavior_spans(
    matches: Sequence[tuple[int, int]], length: int, behavior: Behavior, invert: bool
) -> list[tuple[int, int]]:
    """Give the pieces of a text of `length` characters, the empty ones left out.

    Empty matches count as matches here, and can keep two neighbours from being merged.

    >>> behavior_spans([(2, 3), (5, 6), (6, 7)], 8, "MergedWithNext", False)
    [(0, 2), (2, 5), (5, 6), (6, 8)]
    """
    parts: list[tuple[int, int, bool]] = []
    done = 0
    for start, end in matches:
        if done != start:
            parts.append((done, start, invert))
        parts.append((start, end, not invert))
        done = end
    if done != length:
        parts.append((done, length, invert))
    return [(start, end) for start, end in _merged(parts, behavior) if start < end]


def _merged(parts: list[tuple[int, int, bool]], behavior: Behavior) -> list[tuple[int, int]]:
    if behavior == "Removed":
        return [(start, end) for start, end, is_match in parts if not is_match]
    if behavior == "Isolated":
        return [(start, end) for start, end, _ in parts]
    pieces: list[tuple[int, int]] = []
    was_match = False
    if behavior == "MergedWithNext":
        for start, end, is_match in reversed(parts):
            if is_match and not was_match and pieces:
                pieces[-1] = start, pieces[-1][1]
            else:
                pieces.append((start, end))
            was_match = is_match
        return pieces[::-1]
    for start, end, is_match in parts:
        merge = is_match == was_match if behavior == "Contiguous" else is_match and not was_match
        if merge and pieces:
            pieces[-1] = pieces[-1][0], end
        else:
            pieces.append((start, end))
        was_match = is_match
    return pieces
