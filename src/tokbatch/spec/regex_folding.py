"""What `(?i)` makes of characters, strings and classes: sets, and here and there a choice between sequences.

Oniguruma folds with Unicode's full case folding. A string is taken from left to right, at each place the longest run of
at most three characters that some character folds to (`ss` becomes: one of `sSſ` twice, or one of `ßẞ`).
Inside a look-behind only single characters are folded.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from tokbatch.spec.regex_tree import Alternation, Node, Sequence, Set
from tokbatch.spec.unicode import CodePointSet, fold_peers, fold_sequences


@cache
def _unfoldings() -> dict[str, str]:
    """Give, for each sequence in every spelling that matches it, the characters that fold to it."""
    result: dict[str, str] = {}
    for code, sequence in fold_sequences().items():
        for spelling in product(*(fold_peers().get(ord(c), c) for c in sequence)):
            result["".join(spelling)] = result.get("".join(spelling), "") + chr(code)
    return result


def _peers(character: str) -> Node:
    return Set(CodePointSet.from_characters(fold_peers().get(ord(character), character)))


def _sequence(text: str) -> Node:
    return Sequence(tuple(map(_peers, text)))


def fold_text(text: str, in_look_behind: bool) -> list[Node]:
    """Give the nodes that match a string regardless of case."""
    nodes: list[Node] = []
    at = 0
    while at < len(text):
        for size in (3, 2) if not in_look_behind else ():
            run = text[at : at + size]
            if len(run) == size and run in _unfoldings():
                single = Set(CodePointSet.from_characters(_unfoldings()[run]))
                nodes.append(Alternation((_sequence(run), single)))
                at += size
                break
        else:
            sequence = fold_sequences().get(ord(text[at]))
            if sequence is None or in_look_behind:
                nodes.append(_peers(text[at]))
            else:
                nodes.append(Alternation((_peers(text[at]), _sequence(sequence))))
            at += 1
    return nodes


def fold_class(members: CodePointSet, negated: bool) -> Node:
    """Give what matches a class regardless of case; `negated` classes fold what is written in them, then negate."""
    folded = members | CodePointSet.from_characters(
        peer for code, peers in fold_peers().items() if code in members for peer in peers
    )
    if negated:
        return Set(~folded)
    sequences = sorted({sequence for code, sequence in fold_sequences().items() if code in folded}, key=_rank)
    return Alternation((Set(folded), *map(_sequence, sequences))) if sequences else Set(folded)


def _rank(sequence: str) -> tuple[int, str]:
    return len(sequence), sequence
