r"""Regular expressions and tables over explicit sets of code points, for components whose sets are not Oniguruma's.

Python's own `re` does the matching, but no class of its own: `\w`, `\s` and the like follow the interpreter's Unicode,
so a pattern here names its sets, and they are written out as ranges. Patterns of a tokenizer.json are another matter:
`patterns.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from tokbatch.spec.unicode import CodePointSet

_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


class CharacterPattern:
    r"""A pattern in the syntax of `re` in which `{name}` inside brackets stands for a set.

    >>> word = CharacterPattern("[{letter}]+", letter=CodePointSet.from_characters("abc"))
    >>> word.texts("a-bc"), word.spans("a-bc")
    (['a', 'bc'], [(0, 1), (2, 4)])
    """

    def __init__(self, template: str, **sets: CodePointSet):
        self._template = template
        self._sets = sets

    def texts(self, text: str) -> list[str]:
        """Give the matches, left to right."""
        return self.for_text(text).findall(text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Give the matches' (start, end)."""
        return [match.span() for match in self.for_text(text).finditer(text)]

    def occurs_in(self, text: str) -> bool:
        """Say whether there is a match."""
        return self.for_text(text).search(text) is not None

    def for_text(self, text: str) -> re.Pattern[str]:
        """Choose the smallest of the three compiled forms that is right for all characters of the text.

        `re` looks members of a set up in a bit map, but those above U+FFFF in a list of ranges, and it walks that list
        for every character that is no member.
        """
        if text.isascii():
            return self._ascii
        return self._all if _BEYOND_16_BITS.search(text) else self._two_bytes

    @cached_property
    def _ascii(self) -> re.Pattern[str]:
        return self._compiled(0x7F)

    @cached_property
    def _two_bytes(self) -> re.Pattern[str]:
        return self._compiled(0xFFFF)

    @cached_property
    def _all(self) -> re.Pattern[str]:
        return self._compiled(0x10FFFF)

    def _compiled(self, limit: int) -> re.Pattern[str]:
        members = {name: _members(points, limit) for name, points in self._sets.items()}
        return re.compile(re.sub(r"\{([a-z_]+)\}", lambda match: members[match[1]], self._template), re.DOTALL)


class LazyTable(dict[int, str]):
    """A table for `str.translate` that asks a function for each character once."""

    def __init__(self, function: Callable[[str], str]):
        super().__init__()
        self._function = function

    def __missing__(self, code_point: int) -> str:
        value = self[code_point] = self._function(chr(code_point))
        return value


def _members(points: CodePointSet, limit: int) -> str:
    """Write the code points up to `limit` as the inside of a bracket; an empty one would be no syntax."""
    ranges = ((first, min(last, limit)) for first, last in points.ranges() if first <= limit)
    # No text contains a surrogate.
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) or r"\ud800"
