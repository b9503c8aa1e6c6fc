r"""Patterns at work: the spans of the matches of a Split's or Replace's pattern, as the oracle finds them.

The tree of `spec/regex_syntax.py` goes one of two ways. Most patterns, all real ones among them, become a regular
expression of Python's `re` over explicit sets (`pattern_source.py`), which never sees a class or a Unicode table of
Python's. The others, and the long texts on which a backtracking matcher would not come to an end, go to the machine of
`pattern_machine.py`, which takes time in proportion to the text. Both give the same spans.
"""

from __future__ import annotations

import re
import time
from functools import cached_property
from itertools import islice

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.engine.reference.pattern_analysis import (
    EXPONENTIAL,
    attempts_in_vain,
    degree,
    fits_re,
    longest_short_text,
    surely_matches,
    uses_what_it_scans,
)
from tokbatch.engine.reference.pattern_machine import Machine
from tokbatch.engine.reference.pattern_source import compile_source
from tokbatch.errors import TokbatchError
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.regex_syntax import parse
from tokbatch.spec.regex_tree import Node, minimum_length

Spans = list[tuple[int, int]]

_LONG_TEXT = 20_000
_BATCH = 256
_PATIENCE = 1.0, 5e-6  # seconds, and seconds a character, before the machine takes over


def compile_pattern(pattern: Pattern, where: str = "") -> CompiledPattern:
    r"""Compile a pattern; what cannot be reproduced is an `UnsupportedError`, which names `where`.

    >>> digits = compile_pattern(Pattern(regex=r"\d"))
    >>> digits.spans("a1 2"), digits.covers
    ([(1, 2), (3, 4)], False)
    >>> compile_pattern(Pattern(regex=r"\w+|\W")).findall("to be")
    ['to', ' ', 'be']
    """
    if pattern.regex is None:
        return LiteralPattern(pattern.string or "")
    tree = parse(pattern.regex, where)
    try:
        return TreePattern(tree)
    except TokbatchError as error:
        error.where = error.where or where or None
        raise


class CompiledPattern:
    """A pattern that can be searched for. `covers`: its matches, none of them empty, always lie end to end."""

    covers = False

    def spans(self, text: str) -> Spans:
        """Give (start, end) of each match, in characters, left to right.

        An empty match counts, but not right after another match. A text on which the oracle fails may raise an
        `EncodeError`.
        """
        raise NotImplementedError

    def findall(self, text: str) -> list[str]:
        """Give the matches; where the pattern `covers`, these joined are the text."""
        return [text[start:end] for start, end in self.spans(text)]


class LiteralPattern(CompiledPattern):
    """A string that is searched for as it is. The empty one is found before every character and at the end."""

    def __init__(self, string: str):
        self._string = string

    def spans(self, text: str) -> Spans:
        """As in `CompiledPattern`."""
        string, found, at = self._string, [], 0
        if not string:
            return [(at, at) for at in range(len(text) + 1)]
        while (at := text.find(string, at)) >= 0:
            found.append((at, at + len(string)))
            at += len(string)
        return found


class TreePattern(CompiledPattern):
    """A parsed regular expression."""

    def __init__(self, tree: Node):
        self._tree = tree
        self._alphabet = Alphabet(tree)
        self._can_be_empty = minimum_length(tree) == 0
        self.covers = not self._can_be_empty and surely_matches(tree, self._alphabet) == self._alphabet.classes
        self._degree = degree(tree)
        self._in_vain = attempts_in_vain(tree, self._alphabet)
        self._is_linear = self._degree <= 1 and not self._in_vain and uses_what_it_scans(tree, self._alphabet)
        self._short_text = longest_short_text(self._degree)
        self._python: re.Pattern[str] | None = None
        if fits_re(tree) and self._degree < EXPONENTIAL:
            self._python = compile_source(tree, self._alphabet)
        if self._python is None:
            self._machine  # noqa: B018 - a program that is too large is refused now

    @cached_property
    def _machine(self) -> Machine:
        return Machine(self._tree, self._alphabet)

    def spans(self, text: str) -> Spans:
        """As in `CompiledPattern`."""
        if self._python is None or not self._is_quick(text):
            return self._machine.spans(text)
        written = self._alphabet.written(text)
        if self._can_be_empty:
            return _spans_with_empty_ones(self._python, written)
        if len(text) > _LONG_TEXT and not self._is_linear:
            return self._spans_of_long(self._python, text, written)
        return [match.span() for match in self._python.finditer(written)]

    def findall(self, text: str) -> list[str]:
        """As in `CompiledPattern`."""
        if self._python is None or not (self.covers and self._is_linear):
            return super().findall(text)
        if text.isascii():
            return self._python.findall(text)
        pieces, at = [], 0
        for piece in self._python.findall(self._alphabet.written(text)):
            pieces.append(text[at : at + len(piece)])
            at += len(piece)
        return pieces

    def _is_quick(self, text: str) -> bool:
        return len(text) <= self._short_text or (self._degree <= 1 and not self._in_vain)

    def _spans_of_long(self, python: re.Pattern[str], text: str, written: str) -> Spans:
        """Search in a long text, and let the machine go on where `re` takes too long."""
        spans: Spans = []
        matches = python.finditer(written)
        start, (patience, patience_a_character) = time.perf_counter(), _PATIENCE
        while batch := [match.span() for match in islice(matches, _BATCH)]:
            spans += batch
            done = spans[-1][1]
            if time.perf_counter() - start > patience + patience_a_character * done:
                return spans + self._machine.spans(text, done)
        return spans


def _spans_with_empty_ones(python: re.Pattern[str], text: str) -> Spans:
    spans: Spans = []
    at, last_end = 0, -1
    while at <= len(text) and (match := python.search(text, at)):
        start, end = match.span()
        if start == end == last_end:
            at += 1
            continue
        spans.append((start, end))
        at = last_end = end
    return spans
