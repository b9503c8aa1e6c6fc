"""Sets of code points: sorted disjoint ranges, with the operations of sets.

The universe is the 1,112,064 Unicode scalar values: surrogates are in no set, and not in a complement either.
Which sets the oracle uses stands in `__init__.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain


class CodePointSet:
    """An immutable set of Unicode scalar values.

    >>> letters = CodePointSet.from_ranges([(0x41, 0x5A), (0x61, 0x7A)])
    >>> 0x42 in letters, len(letters), list((letters & CodePointSet.from_characters("xyz!")).ranges())
    (True, 52, [(120, 122)])
    """

    __slots__ = ("bounds",)

    def __init__(self, bounds: tuple[int, ...]):
        """Take (start, end, start, end, ...), ascending, ends exclusive, as the operations of this class give them."""
        self.bounds = bounds

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[int, int]]) -> CodePointSet:
        """Take (first, last) ranges, both ends inclusive, in any order; they may overlap."""
        cut = (
            (max(first, low), min(last + 1, high))
            for first, last in ranges
            for low, high in ((0, 0xD800), (0xE000, 0x110000))
        )
        return cls.union(cls((start, end)) for start, end in cut if start < end)

    @classmethod
    def from_characters(cls, characters: Iterable[str]) -> CodePointSet:
        """Take single characters."""
        return cls.from_ranges((ord(character), ord(character)) for character in characters)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give the ranges as (first, last), both inclusive, ascending."""
        return zip(self.bounds[::2], (end - 1 for end in self.bounds[1::2]), strict=True)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(range(first, last + 1) for first, last in self.ranges())

    def __contains__(self, code_point: int) -> bool:
        return bisect_right(self.bounds, code_point) % 2 == 1

    def __len__(self) -> int:
        return sum(self.bounds[1::2]) - sum(self.bounds[::2])

    def __bool__(self) -> bool:
        return bool(self.bounds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodePointSet) and self.bounds == other.bounds

    def __hash__(self) -> int:
        return hash(self.bounds)

    def __repr__(self) -> str:
        shown = ", ".join(f"{first:04X}-{last:04X}" for first, last in list(self.ranges())[:8])
        return f"CodePointSet({len(self)} code points: {shown}{', ...' if len(self.bounds) > 16 else ''})"

    def __or__(self, other: CodePointSet) -> CodePointSet:
        return CodePointSet.union([self, other])

    def __and__(self, other: CodePointSet) -> CodePointSet:
        return ~(~self | ~other)

    def __sub__(self, other: CodePointSet) -> CodePointSet:
        return ~(~self | other)

    def __invert__(self) -> CodePointSet:
        # The bounds of what is in one of two sets but not in both are those that only one of them has.
        return CodePointSet(tuple(sorted(set(self.bounds).symmetric_difference(ALL.bounds))))

    @classmethod
    def union(cls, sets: Iterable[CodePointSet]) -> CodePointSet:
        """Give what is in any of the sets."""
        pairs = sorted(pair for one in sets for pair in zip(one.bounds[::2], one.bounds[1::2], strict=True))
        bounds: list[int] = []
        end_before = -1
        for start, end in pairs:
            if start > end_before:
                bounds += (start, end)
                end_before = end
            elif end > end_before:
                bounds[-1] = end_before = end
        return cls(tuple(bounds))


ALL = CodePointSet((0, 0xD800, 0xE000, 0x110000))
EMPTY = CodePointSet(())
