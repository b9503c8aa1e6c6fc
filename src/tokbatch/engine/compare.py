"""Where two encodings of a text part: the first stage at which they differ, and the place in it.

Final ids say that two engines, or two tokenizers, do not agree; they seldom say why. The traces of `Engine.trace`
do: a difference in the pretokens shows in every later stage, but it began there.

    >>> from tokbatch.engine.protocol import Stage
    >>> one = [Stage("pretokens", ["a", "b"], [None, None]), Stage("model", ["a", "b"], [1, 2])]
    >>> other = [Stage("pretokens", ["a", "b"], [None, None]), Stage("model", ["a", "b"], [1, 3])]
    >>> print(first_difference(one, other))
    model: entry 1 is 'b' with id 2 on one side, 'b' with id 3 on the other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tokbatch.engine.protocol import Stage

Entry = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place at which two traces part.

    `left` and `right` are (text, id or None) of entry `index` of the stage; None where that side has no such entry.
    """

    stage: str
    index: int
    left: Entry | None
    right: Entry | None

    def __str__(self) -> str:
        left, right = map(_described, (self.left, self.right))
        return f"{self.stage}: entry {self.index} is {left} on one side, {right} on the other"


def first_difference(left: Sequence[Stage], right: Sequence[Stage]) -> Difference | None:
    """Compare two traces stage by stage, in the order of the stages. None where they are equal."""
    if [stage.name for stage in left] != [stage.name for stage in right]:
        raise ValueError("traces with different stages cannot be compared")
    for ours, theirs in zip(left, right, strict=True):
        ours_entries, theirs_entries = _entries(ours), _entries(theirs)
        for index in range(max(len(ours_entries), len(theirs_entries))):
            entries = [side[index] if index < len(side) else None for side in (ours_entries, theirs_entries)]
            if entries[0] != entries[1]:
                return Difference(ours.name, index, entries[0], entries[1])
    return None


def _entries(stage: Stage) -> list[Entry]:
    return [(piece or "", token_id) for piece, token_id in zip_longest(stage.pieces, stage.ids)]


def _described(entry: Entry | None) -> str:
    if entry is None:
        return "missing"
    text, token_id = entry
    return repr(text) if token_id is None else f"{text!r} with id {token_id}"
