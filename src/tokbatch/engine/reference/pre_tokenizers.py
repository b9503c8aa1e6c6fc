"""What each pre-tokenizer of tokenizer.json does to a list of pieces, on two roads.

`pre_tokenize` knows the texts alone; `pre_tokenize_aligned` knows where in the document they come from. Empty pieces
vanish after each step. Most pre-tokenizers only cut: for them one pattern serves both roads.

Cutting at the matches of a pattern, with its five behaviors, stands in `split_behaviors.py`; the patterns of a file are
compiled in `patterns.py`. Which sets of characters are meant stands in `spec/unicode/`. Next: `models/`.
"""

# What the methods do is said once, in the base class.
# ruff: noqa: D102

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter

from tokbatch.engine.reference.aligned_text import AlignedText
from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER, to_byte_alphabet
from tokbatch.engine.reference.character_patterns import CharacterPattern, LazyTable
from tokbatch.engine.reference.patterns import compile_pattern
from tokbatch.engine.reference.split_behaviors import CHARACTER_TEMPLATES, behavior_spans, pieces_are_matches
from tokbatch.errors import EncodeError
from tokbatch.spec import pre_tokenizers as specs
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.pre_tokenizers import GPT2_PATTERN
from tokbatch.spec.unicode import CodePointSet, rust_regex_class, script_ranges, set_named

Spans = list[tuple[int, int]]

_CACHED_PRETOKENS = 1 << 16
_CACHED_LENGTH = 32  # characters


class PreTokenizer:
    """A pre-tokenizer at work; this one, for a file that has none, changes nothing."""

    needs_alignment: bool = False
    """Whether the pieces depend on where in the document they stand, so that only the aligned road is right."""

    by_place: tuple[PreTokenizer, PreTokenizer] | None = None
    """Where `needs_alignment` holds only because the document's start is special: what serves the piece that begins at
    character 0 of the document, and what serves the others. Neither needs alignment. They take one piece at a time."""

    def pre_tokenize(self, pieces: list[str]) -> list[str]:
        """Cut the pieces further."""
        return pieces

    def pre_tokenize_aligned(self, pieces: list[AlignedText]) -> list[AlignedText]:
        """Cut the pieces further, with their alignments."""
        return pieces


class _Cutter(PreTokenizer):
    """Cuts, and changes nothing else."""

    def pre_tokenize(self, pieces: list[str]) -> list[str]:
        if len(pieces) == 1:
            return self.texts(pieces[0])
        return [text for piece in pieces for text in self.texts(piece)]

    def pre_tokenize_aligned(self, pieces: list[AlignedText]) -> list[AlignedText]:
        return [piece.slice(start, end) for piece in pieces for start, end in self.spans(piece.text)]

    def spans(self, text: str) -> Spans:
        """Give the pieces of a text as (start, end), the empty ones left out."""
        raise NotImplementedError

    def texts(self, text: str) -> list[str]:
        """Give the pieces themselves."""
        return [text[start:end] for start, end in self.spans(text)]


class _Keep(_Cutter):
    """Keep the matches of a pattern, which are never empty, and drop what lies between."""

    def __init__(self, template: str, **sets: CodePointSet):
        self._pattern = CharacterPattern(template, **sets)

    def spans(self, text: str) -> Spans:
        return self._pattern.spans(text)

    def texts(self, text: str) -> list[str]:
        return self._pattern.texts(text)


class Split(_Cutter):
    """Cut at the matches of a pattern."""

    def __init__(self, pattern: Pattern, behavior: specs.Behavior, invert: bool, where: str):
        self._pattern = compile_pattern(pattern, where)
        self._behavior = behavior
        self._invert = invert
        self._pieces_are_matches = self._pattern.covers and pieces_are_matches(behavior, invert)

    def spans(self, text: str) -> Spans:
        return behavior_spans(self._pattern.spans(text) if text else [], len(text), self._behavior, self._invert)

    def texts(self, text: str) -> list[str]:
        return self._pattern.findall(text) if self._pieces_are_matches else super().texts(text)


class ByteLevel(PreTokenizer):
    """Cut by GPT-2's pattern, then write the bytes of each piece in the byte alphabet."""

    def __init__(self, add_prefix_space: bool, use_regex: bool):
        self._add_prefix_space = add_prefix_space
        self._split = Split(Pattern(regex=GPT2_PATTERN), "Isolated", False, "GPT-2's pattern") if use_regex else None
        self._in_byte_alphabet = _ByteAlphabetCache()

    def pre_tokenize(self, pieces: list[str]) -> list[str]:
        if self._add_prefix_space:
            pieces = [f" {piece}" if piece and piece[0] != " " else piece for piece in pieces]
        if self._split is not None:
            pieces = self._split.pre_tokenize(pieces)
        return [self._in_byte_alphabet[piece] for piece in pieces if piece]

    def pre_tokenize_aligned(self, pieces: list[AlignedText]) -> list[AlignedText]:
        if self._add_prefix_space:
            pieces = [piece if piece.text.startswith(" ") else piece.prepend(" ") for piece in pieces]
        if self._split is not None:
            pieces = self._split.pre_tokenize_aligned(pieces)
        return [self._bytes_of(piece) for piece in pieces if piece.text]

    def _bytes_of(self, piece: AlignedText) -> AlignedText:
        if piece.text.isascii():
            return piece.with_text(to_byte_alphabet(piece.text))
        return piece.transform(
            (BYTE_TO_CHARACTER[byte], 1 if index else 0)
            for character in piece.text
            for index, byte in enumerate(character.encode())
        )


class _ByteAlphabetCache(dict[str, str]):
    """Short pieces in the byte alphabet; when it is full it begins anew."""

    def __missing__(self, piece: str) -> str:
        written = to_byte_alphabet(piece)
        if len(piece) <= _CACHED_LENGTH:
            if len(self) >= _CACHED_PRETOKENS:
                self.clear()
            self[piece] = written
        return written


class Metaspace(PreTokenizer):
    """Write spaces as the replacement, put one in front, and cut before each of them."""

    def __init__(self, replacement: str, prepend_scheme: specs.PrependScheme, split: bool):
        self._replacement = replacement
        self._scheme = prepend_scheme
        self._split = split
        if prepend_scheme == "first":
            self.needs_alignment = True
            self.by_place = Metaspace(replacement, "always", split), Metaspace(replacement, "never", split)

    def pre_tokenize(self, pieces: list[str]) -> list[str]:
        mark, result = self._replacement, []
        for piece in pieces:
            text = piece.replace(" ", mark)
            if text and text[0] != mark and self._scheme == "always":
                text = mark + text
            if self._split:
                before, *after = text.split(mark)
                if before:
                    result.append(before)
                result += [mark + part for part in after]
            elif text:
                result.append(text)
        return result

    def pre_tokenize_aligned(self, pieces: list[AlignedText]) -> list[AlignedText]:
        mark, result = self._replacement, []
        for old in pieces:
            piece = AlignedText(old.text.replace(" ", mark), old.starts, old.ends, old.start, old.end)
            if not piece.text.startswith(mark) and self._prepends_at(piece.start):
                piece = piece.prepend(mark)
            marks = [at for at, character in enumerate(piece.text) if character == mark] if self._split else []
            bounds = [0, *marks, len(piece.text)]
            result += [piece.slice(start, end) for start, end in pairwise(bounds) if start < end]
        return result

    def _prepends_at(self, start: int) -> bool:
        return self._scheme == "always" or (self._scheme == "first" and start == 0)


class UnicodeScripts(_Cutter):
    """Cut where the script changes. Characters without a script go with those before them.

    So those at the start of a piece have nowhere to go, and the oracle drops them, spaces and all.
    """

    _PATTERN = re.compile(r"([^\0])\1*(?:\0+\1*)*")

    def __init__(self) -> None:
        # Each script is written as a character of its own, no script as NUL.
        self._ranges = script_ranges()
        names = sorted({name for _, _, name in self._ranges})
        self._letters = {name: chr(0x100 + index) for index, name in enumerate(names)}
        self._table = LazyTable(self._script_letter)

    def spans(self, text: str) -> Spans:
        return [match.span() for match in self._PATTERN.finditer(text.translate(self._table))]

    def _script_letter(self, character: str) -> str:
        code_point = ord(character)
        at = bisect_right(self._ranges, code_point, key=itemgetter(0)) - 1
        if at < 0 or self._ranges[at][1] < code_point:
            return "\0"
        return self._letters[self._ranges[at][2]]


class FixedLength(_Cutter):
    """Cut into pieces of `length` characters; the last may be shorter."""

    def __init__(self, length: int):
        self._length = length

    def spans(self, text: str) -> Spans:
        count = len(text)
        if count and not self._length:
            raise EncodeError("pieces of 0 characters do not make up a text", hint="the oracle crashes here")
        return [(start, min(start + self._length, count)) for start in range(0, count, self._length)]


class Chain(PreTokenizer):
    """One after the other, each on the pieces of the one before."""

    def __init__(self, parts: list[PreTokenizer]):
        self._parts = parts
        self.needs_alignment = any(part.needs_alignment for part in parts)
        if parts and parts[0].by_place and not any(part.needs_alignment for part in parts[1:]):
            at_start, elsewhere = parts[0].by_place
            self.by_place = Chain([at_start, *parts[1:]]), Chain([elsewhere, *parts[1:]])

    def pre_tokenize(self, pieces: list[str]) -> list[str]:
        for part in self._parts:
            pieces = part.pre_tokenize(pieces)
        return pieces

    def pre_tokenize_aligned(self, pieces: list[AlignedText]) -> list[AlignedText]:
        for part in self._parts:
            pieces = part.pre_tokenize_aligned(pieces)
        return pieces


def build_pre_tokenizer(spec: specs.PreTokenizer | None, where: str = "pre_tokenizer") -> PreTokenizer:
    """Build the pre-tokenizer of a spec. `where` is its JSON path, for errors."""
    match spec:
        case None:
            return PreTokenizer()
        case specs.BertPreTokenizer():
            # Whitespace goes, then punctuation is set apart: no character is both, so one pattern does it.
            space, mark = set_named("whitespace"), set_named("punctuation")
            return _Keep("[{mark}]|[^{space}{mark}]+", space=space, mark=mark)
        case specs.ByteLevel():
            return ByteLevel(spec.add_prefix_space, spec.use_regex)
        case specs.CharDelimiterSplit(delimiter):
            return _Keep(CHARACTER_TEMPLATES["Removed"], points=CodePointSet.from_characters(delimiter))
        case specs.Metaspace(replacement, prepend_scheme, split):
            return Metaspace(replacement, prepend_scheme, split)
        case specs.Whitespace():
            return _Keep("[{word}]+|[^{word}{space}]+", word=rust_regex_class("w"), space=rust_regex_class("s"))
        case specs.WhitespaceSplit():
            return _Keep(CHARACTER_TEMPLATES["Removed"], points=set_named("whitespace"))
        case specs.Split(pattern, behavior, invert):
            return Split(pattern, behavior, invert, where)
        case specs.Punctuation(behavior):
            return _Keep(CHARACTER_TEMPLATES[behavior], points=set_named("punctuation"))
        case specs.Digits(individual_digits):
            template = CHARACTER_TEMPLATES["Isolated" if individual_digits else "Contiguous"]
            return _Keep(template, points=set_named("numeric"))
        case specs.UnicodeScripts():
            return UnicodeScripts()
        case specs.FixedLength(length):
            return FixedLength(length)
        case specs.Sequence(parts):
            return Chain(
                [build_pre_tokenizer(part, f"{where}.pretokenizers[{index}]") for index, part in enumerate(parts)]
            )
