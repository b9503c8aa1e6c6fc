"""The four normal forms of Unicode, over the oracle's tables (Unicode 9), with the oracle's account of the changes.

`NormalForm.changes` is the definition, character by character: what comes out, and how many characters it took.
`NormalForm.apply` gives the same text faster: it looks only at the places where something can change.

Source of the algorithm: Unicode Standard Annex 15; of the account of the changes: what the crate
unicode-normalization-alignments gives, which counts a composed character as one that dropped those after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property

from tokbatch.engine.reference.character_patterns import CharacterPattern, LazyTable
from tokbatch.spec import unicode
from tokbatch.spec.unicode import CodePointSet

Change = tuple[str, int]

# Hangul syllables compose and decompose by arithmetic (Unicode Standard, section 3.12).
_SYLLABLE, _LEADING, _VOWEL, _TRAILING = 0xAC00, 0x1100, 0x1161, 0x11A7
_LEADING_COUNT, _VOWEL_COUNT, _TRAILING_COUNT = 19, 21, 28
_SYLLABLES = CodePointSet.from_ranges([(_SYLLABLE, _SYLLABLE + _LEADING_COUNT * _VOWEL_COUNT * _TRAILING_COUNT - 1)])
_VOWELS = CodePointSet.from_ranges([(_VOWEL, _VOWEL + _VOWEL_COUNT - 1)])
_TRAILING_CONSONANTS = CodePointSet.from_ranges([(_TRAILING + 1, _TRAILING + _TRAILING_COUNT - 1)])


class NormalForm:
    """NFD, NFKD (`compatible`), NFC (`composed`) or NFKC (both)."""

    def __init__(self, compatible: bool, composed: bool):
        self.compatible = compatible
        self.composed = composed
        self._decomposition = unicode.decomposition(compatible)
        self._classes = unicode.combining_classes()
        self._pairs = unicode.composition()
        self._table = LazyTable(self.decompose)
        self._known: dict[str, str] = {}

    def changes(self, text: str) -> Iterator[Change]:
        """Give the normalized characters, each with its change (see `AlignedText.transform`)."""
        decomposed = self._decomposed(text)
        return self._recomposed(decomposed) if self.composed else decomposed

    def apply(self, text: str) -> str:
        """Give the normalized text."""
        if text.isascii() or not self._one.occurs_in(text):
            return text
        if self.composed:
            return self._runs.for_text(text).sub(lambda match: self._apply_to_run(match[0]), text)
        decomposed = text.translate(self._table)
        return self._marks.for_text(decomposed).sub(lambda match: self._sorted(match[0]), decomposed)

    def unstable_runs(self, text: str) -> list[tuple[int, int]]:
        """Give the (start, end) of the runs of characters that may change, alone or because of what stands beside.

        Normalizing each of them alone, and leaving what lies between as it is, normalizes the text.
        """
        return [] if text.isascii() else self._runs.spans(text)

    def decompose(self, character: str) -> str:
        """Give the full decomposition of one character."""
        code_point = ord(character)
        if code_point in _SYLLABLES:
            leading_and_vowel, trailing = divmod(code_point - _SYLLABLE, _TRAILING_COUNT)
            leading, vowel = divmod(leading_and_vowel, _VOWEL_COUNT)
            jamo = chr(_LEADING + leading) + chr(_VOWEL + vowel)
            return jamo + chr(_TRAILING + trailing) if trailing else jamo
        return self._decomposition.get(code_point, character)

    def compose(self, first: str, second: str) -> str | None:
        """Give the character that two characters compose to; None where they do not."""
        one, two = ord(first), ord(second)
        if 0 <= one - _LEADING < _LEADING_COUNT and two in _VOWELS:
            return chr(_SYLLABLE + ((one - _LEADING) * _VOWEL_COUNT + two - _VOWEL) * _TRAILING_COUNT)
        if one in _SYLLABLES and (one - _SYLLABLE) % _TRAILING_COUNT == 0 and two in _TRAILING_CONSONANTS:
            return chr(one + two - _TRAILING)
        return self._pairs.get(first + second)

    def _decomposed(self, text: str) -> Iterator[Change]:
        """Decompose, and sort each run of marks by combining class."""
        marks: list[tuple[int, Change]] = []
        for character in text:
            change = 0
            for part in self.decompose(character):
                combining_class = self._classes.get(ord(part), 0)
                if combining_class == 0:
                    yield from _in_order(marks)
                    marks = []
                    yield part, change
                else:
                    marks.append((combining_class, (part, change)))
                change = 1
        yield from _in_order(marks)

    def _recomposed(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Compose each starter with what follows it, unless a mark of the same or a higher class stands between."""
        starter: Change | None = None
        marks: list[Change] = []
        last_class = -1
        for part, change in changes:
            combining_class = self._classes.get(ord(part), 0)
            if starter is None:
                if combining_class == 0:
                    starter = part, change
                else:
                    yield part, change
                continue
            if last_class < combining_class:
                composed = self.compose(starter[0], part)
                if composed is not None:
                    starter = composed, starter[1] + change - 1
                    continue
            if combining_class == 0:
                yield starter
                yield from marks
                starter, marks, last_class = (part, change), [], -1
            else:
                marks.append((part, change))
                last_class = combining_class
        if starter is not None:
            yield starter
        yield from marks

    @cached_property
    def _unstable(self) -> CodePointSet:
        marks = CodePointSet.from_ranges((code_point, code_point) for code_point in self._classes)
        if not self.composed:
            changing = CodePointSet.from_ranges((code_point, code_point) for code_point in self._decomposition)
            return marks | changing | _SYLLABLES
        seconds = CodePointSet.from_characters(pair[1] for pair in self._pairs) | _VOWELS | _TRAILING_CONSONANTS
        joining = marks | seconds
        # A character that decomposes and composes to itself again is stable, unless its first part joins what stands
        # before it.
        changing = CodePointSet.from_ranges(
            (code_point, code_point)
            for code_point, parts in self._decomposition.items()
            if ord(parts[0]) in joining or [(chr(code_point), 0)] != list(self.changes(chr(code_point)))
        )
        return joining | changing

    @cached_property
    def _one(self) -> CharacterPattern:
        return CharacterPattern("[{unstable}]", unstable=self._unstable)

    @cached_property
    def _runs(self) -> CharacterPattern:
        # A stable character before a run may be the starter that its marks compose with.
        return CharacterPattern("[^{unstable}]?[{unstable}]+", unstable=self._unstable)

    @cached_property
    def _marks(self) -> CharacterPattern:
        marks = CodePointSet.from_ranges((code_point, code_point) for code_point in self._classes)
        return CharacterPattern("[{marks}]{2,}", marks=marks)

    def _sorted(self, marks: str) -> str:
        return "".join(sorted(marks, key=lambda mark: self._classes[ord(mark)]))

    def _apply_to_run(self, run: str) -> str:
        known = self._known.get(run)
        if known is None:
            known = "".join(part for part, _ in self.changes(run))
            if len(run) < 8 and len(self._known) < 1 << 16:
                self._known[run] = known
        return known


def _in_order(marks: list[tuple[int, Change]]) -> Iterator[Change]:
    marks.sort(key=lambda mark: mark[0])
    return (change for _, change in marks)


@cache
def normal_form(compatible: bool, composed: bool) -> NormalForm:
    """Give the one normal form of that kind; its tables are shared."""
    return NormalForm(compatible, composed)
