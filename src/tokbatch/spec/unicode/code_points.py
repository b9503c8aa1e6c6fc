"""Sets of code points: sorted disjoint ranges, with the operations of sets.

The universe is the 1,112,064 Unicode scalar values: surrogates are in no set, and not in a complement either.
Which sets the oracle uses stands in `__init__.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
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
        bounds: list[int] = []
        for first, last in sorted(ranges):
            if bounds and first <= bounds[-1]:
                bounds[-1] = max(bounds[-1], last + 1)
            else:
                bounds += (first, last + 1)
        return cls(tuple(bounds)) & ALL if bounds else EMPTY

    @classmethod
    def from_characters(cls, characters: Iterable[str]) -> CodePointSet:
        """Take single characters."""
        return cls.from_ranges((ord(character), ord(character)) for character in characters)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Give the ranges as (first, last), both inclusive, ascending."""
        return zip(self.bounds[::2], (end - 1 for end in self.bounds[1::2]))  # noqa: B905

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

    def __and__(self, other: CodePointSet) -> CodePointSet:
        return self._combined(other, lambda here, there: here and there)

    def __or__(self, other: CodePointSet) -> CodePointSet:
        return self._combined(other, lambda here, there: here or there)

    def __sub__(self, other: CodePointSet) -> CodePointSet:
        return self._combined(other, lambda here, there: here and not there)

    def __invert__(self) -> CodePointSet:
        return ALL - self

    def _combined(self, other: CodePointSet, keep: Callable[[bool, bool], bool]) -> CodePointSet:
        bounds: list[int] = []
        inside = False
        here = there = 0
        for bound in sorted({*self.bounds, *other.bounds}):
            while here < len(self.bounds) and self.bounds[here] <= bound:
                here += 1
            while there < len(other.bounds) and other.bounds[there] <= bound:
                there += 1
            if keep(here % 2 == 1, there % 2 == 1) != inside:
                inside = not inside
                bounds.append(bound)
        return CodePointSet(tuple(bounds))


ALL = CodePointSet((0, 0xD800, 0xE000, 0x110000))
EMPTY = CodePointSet(())
