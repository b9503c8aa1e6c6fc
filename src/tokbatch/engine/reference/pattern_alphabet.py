"""The characters that one pattern can tell apart: code points in classes, and texts written in one letter a class.

All sets of a pattern cut the code points into classes whose members the pattern never distinguishes. Text that is not
ASCII is written with one representative a class before it is matched, so the matcher's sets stay small and no Unicode
table but the pinned ones plays a part. Positions are the same in both spellings.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from operator import xor

from tokbatch.spec.regex_syntax import NEWLINE
from tokbatch.spec.regex_tree import Anchor, Node, Set, children
from tokbatch.spec.unicode import CodePointSet

_FIRST_REPRESENTATIVE = 0xE000  # in the private use area, so that the written text has two bytes a character
_TABLE_LIMIT = 100_000


class Alphabet:
    """The classes of a tree's sets."""

    def __init__(self, tree: Node):
        self._sets = [*dict.fromkeys(_sets_of(tree))]
        changes = dict.fromkeys((0, 0x80, 0xD800, 0xE000), 0)
        for bit, members in enumerate(self._sets):
            for bound in members.bounds:
                changes[bound] = changes.get(bound, 0) ^ 1 << bit
        changes.pop(0x110000, None)
        self._bounds = sorted(changes)
        signatures = list(accumulate((changes[bound] for bound in self._bounds), xor))
        signatures[self._bounds.index(0xD800)] = signatures[0]  # no character
        numbers: dict[int, int] = {}
        self._classes = [numbers.setdefault(signature, len(numbers)) for signature in signatures]
        self.classes = frozenset(numbers.values())
        self._members = {
            members: frozenset(number for signature, number in numbers.items() if signature >> bit & 1)
            for bit, members in enumerate(self._sets)
        }

    def class_of(self, code_point: int) -> int:
        """Give the number of a code point's class."""
        return self._classes[bisect_right(self._bounds, code_point) - 1]

    def classes_in(self, members: CodePointSet) -> frozenset[int]:
        """Give the classes that one of the tree's sets consists of."""
        return self._members[members]

    def members_of(self, classes: frozenset[int]) -> CodePointSet:
        """Give the characters of some classes."""
        ends = [*self._bounds[1:], 0x110000]
        spans = zip(self._bounds, ends, self._classes, strict=True)
        return CodePointSet.from_ranges((start, end - 1) for start, end, number in spans if number in classes)

    def written(self, text: str) -> str:
        """Write a text in ASCII and representatives."""
        if text.isascii():
            return text
        if len(self._representatives) > _TABLE_LIMIT:
            self._representatives.clear()
        return text.translate(self._representatives)

    def numbered(self, text: str) -> list[int]:
        """Write a text as the numbers of its classes."""
        table = self._numbers
        return [table[character] for character in text]

    def source(self, members: CodePointSet) -> str:
        """Write one of the tree's sets as a character class of `re`, for texts that are `written`."""
        ranges = [(first, min(last, 0x7F)) for first, last in members.ranges() if first < 0x80]
        ranges += [(_FIRST_REPRESENTATIVE + number,) * 2 for number in sorted(self.classes_in(members))]
        if not ranges:
            return r"[^\U00000000-\U0010ffff]"
        written = "".join(
            rf"\U{first:08x}" if first == last else rf"\U{first:08x}-\U{last:08x}" for first, last in ranges
        )
        return f"[{written}]"

    @cached_property
    def _representatives(self) -> _Representatives:
        return _Representatives(self)

    @cached_property
    def _numbers(self) -> _Numbers:
        return _Numbers(self)


class _Representatives(dict[int, int]):
    """For `str.translate`; filled as characters come."""

    def __init__(self, alphabet: Alphabet):
        super().__init__((code, code) for code in range(0x80))
        self._alphabet = alphabet

    def __missing__(self, code_point: int) -> int:
        value = self[code_point] = _FIRST_REPRESENTATIVE + self._alphabet.class_of(code_point)
        return value


class _Numbers(dict[str, int]):
    def __init__(self, alphabet: Alphabet):
        super().__init__()
        self._alphabet = alphabet

    def __missing__(self, character: str) -> int:
        value = self[character] = self._alphabet.class_of(ord(character))
        return value


def _sets_of(node: Node) -> list[CodePointSet]:
    found = [node.members] if isinstance(node, Set) else []
    if isinstance(node, Anchor):
        found = [NEWLINE if node.word is None else node.word]
    return [*found, *(members for child in children(node) for members in _sets_of(child))]
