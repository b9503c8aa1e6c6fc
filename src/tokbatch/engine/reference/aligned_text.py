"""A text that knows where each of its characters comes from: what the oracle calls a NormalizedString.

Normalizers and pre-tokenizers have two roads. The string road knows only the text; this is the other one, which
offsets need. The texts that come out are the same (a test holds them together).

Positions are in characters, where the oracle counts bytes. That loses nothing: all bytes of a character share their
alignment, and every change is made in whole characters. Positions in the original are absolute, counted from the
start of the document, so that a slice of a slice needs no shift.

The oracle's oddities that are kept here all come from characters with an empty alignment. They arise only at the very
start of a text, where something was inserted in front of it (a Replace whose pattern matches nothing at all there, a
Prepend of the empty text), and then
- `transform` does not see them: what it makes of the whole text, of themselves too, is put behind them and is aligned
  with what comes after them. Mostly that is too short, and the oracle crashes: here that is an `EncodeError`;
- a slice that covers nothing of the original keeps its old text behind the transformed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokbatch.errors import EncodeError


@dataclass(slots=True)
class AlignedText:
    """A piece of a document after some changes. A value: no method changes it (`frozen` costs twice the time).

    Character i of `text` comes from the characters `starts[i]` to `ends[i]` of the document. The piece as a whole
    covers `start` to `end` of it, which can be more than its characters do, where some were removed.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    start: int
    end: int

    @classmethod
    def from_text(cls, text: str, start: int = 0) -> AlignedText:
        """Begin with an unchanged text that stands at character `start` of its document."""
        end = start + len(text)
        return cls(text, range(start, end), range(start + 1, end + 1), start, end)

    @property
    def has_plain_start(self) -> bool:
        """Whether none of the oddities above applies, so that the whole text can be transformed as it stands."""
        return self.start < self.end and bool(self.text) and self.starts[0] < self.ends[0]

    def slice(self, first: int, last: int) -> AlignedText:
        """Cut out the characters `first` to `last` of the text, with the original that they cover.

        An empty slice covers nothing. Where it then stands has no meaning (the oracle takes the position in the text
        for one in the original), and nobody asks: empty pieces are dropped.
        """
        if first == last:
            return AlignedText("", (), (), self.start + first, self.start + first)
        starts, ends = self.starts[first:last], self.ends[first:last]
        return AlignedText(self.text[first:last], starts, ends, starts[0], ends[-1])

    def with_text(self, text: str) -> AlignedText:
        """Replace each character by another one."""
        if self.has_plain_start:
            return AlignedText(text, self.starts, self.ends, self.start, self.end)
        return self.transform((character, 0) for character in text)

    def transform(self, changes: Iterable[tuple[str, int]], initial_removed: int = 0) -> AlignedText:
        """Replace the text by (character, change) pairs, after dropping its first `initial_removed` characters.

        A change of 0 replaces the next character, 1 inserts one, which takes the alignment of the one before, and -n
        replaces the next character and drops the n that follow it.
        """
        if self.has_plain_start:
            return self._splice(0, len(self.text), changes, initial_removed)
        if self.start == self.end:
            return self._splice(0, 0, changes, initial_removed)
        if not self.text:
            return self
        # The oracle asks which part of the text comes from the whole original, and overlooks empty alignments.
        first = next((i for i, start in enumerate(self.starts) if start < self.ends[i]), len(self.text))
        return self._splice(first, len(self.text), changes, initial_removed)

    def prepend(self, prefix: str) -> AlignedText:
        """Put a text in front, which takes the alignment of the first character. An empty text stays empty."""
        if not self.text:
            return self
        if prefix:
            count = len(prefix)
            starts, ends = [self.starts[0]] * count, [self.ends[0]] * count
            return AlignedText(prefix + self.text, [*starts, *self.starts], [*ends, *self.ends], self.start, self.end)
        return self._splice(0, 1, [(self.text[0], 1)], 0)

    def replace(self, spans: Iterable[tuple[int, int]], content: str) -> AlignedText:
        """Replace each of the spans (in order, disjoint) by `content`.

        All of the content takes the alignment of the last character that it replaces; for an empty span, of the
        character before it.
        """
        change = _Change(self)
        for first, last in spans:
            change.copy(first)
            change.put(last, content)
        return change.finished()

    def transform_runs(self, runs: Iterable[tuple[int, int, Iterable[tuple[str, int]]]]) -> AlignedText:
        """Transform only the runs (first, last, changes), in order and disjoint; each accounts for all it replaces.

        The same as `transform` with a change of 0 for every character between the runs, but faster. The text must have
        a plain start.
        """
        change = _Change(self)
        for first, last, changes in runs:
            change.copy(first)
            change.apply(last, changes)
        return change.finished()

    def _splice(self, first: int, last: int, changes: Iterable[tuple[str, int]], initial_removed: int) -> AlignedText:
        """Apply changes to the characters `first` to `last`; those around them stay."""
        change = _Change(self)
        change.copy(first)
        change.apply(last, changes, initial_removed)
        return change.finished()


class _Change:
    """A changed text in the making, from left to right."""

    def __init__(self, old: AlignedText):
        self._old = old
        self._done = 0
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []

    def copy(self, last: int) -> None:
        """Keep the characters up to `last`."""
        if self._done < last:
            self._parts.append(self._old.text[self._done : last])
            self._starts += self._old.starts[self._done : last]
            self._ends += self._old.ends[self._done : last]
            self._done = last

    def apply(self, last: int, changes: Iterable[tuple[str, int]], initial_removed: int = 0) -> None:
        """Replace the characters up to `last` by what the changes say."""
        old_starts, old_ends = self._old.starts, self._old.ends
        parts, starts, ends = self._parts, self._starts, self._ends
        position = min(self._done + initial_removed, last)
        for character, change in changes:
            parts.append(character)
            if change > 0:
                starts.append(old_starts[position - 1] if position else self._old.start)
                ends.append(old_ends[position - 1] if position else self._old.start)
            else:
                if position >= len(old_starts):
                    raise EncodeError(
                        "text was put in front of everything, and a later step finds nothing to align it with",
                        hint="the oracle crashes here; look at a Replace whose pattern can match the empty text",
                    )
                starts.append(old_starts[position])
                ends.append(old_ends[position])
                if position < last:
                    position = min(position + 1 - change, last)
        self._done = last

    def put(self, last: int, content: str) -> None:
        """Replace the characters up to `last` by the content, aligned with the last character before `last`."""
        if content:
            self._parts.append(content)
            self._starts += [self._old.starts[last - 1] if last else self._old.start] * len(content)
            self._ends += [self._old.ends[last - 1] if last else self._old.start] * len(content)
        self._done = last

    def finished(self) -> AlignedText:
        """Keep the rest, and give the text."""
        self.copy(len(self._old.text))
        return AlignedText("".join(self._parts), self._starts, self._ends, self._old.start, self._old.end)
