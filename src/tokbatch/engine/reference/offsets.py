"""From the bytes of a pretoken to the characters of the document: where the offsets of an encoding come from.

A model gives the offsets of its tokens in bytes of the pretoken. The oracle carries them through the alignment of the
normalized text to bytes of the document, and turns those into characters. It falls back to the number it had
wherever a step finds nothing, so that three odd kinds of offsets reach the user, and ours as well: those of empty
tokens (a place in the normalized text counted from the start of the pretoken), those of tokens that claim more than
the pretoken has, and those at the very end of the document (bytes, not characters).

Source: `into_encoding` and `BytesToCharOffsetConverter` in the oracle's `tokenizer/pre_tokenizer.rs`, `convert_offsets`
in its `tokenizer/normalizer.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tokbatch.engine.reference.aligned_text import AlignedText


class DocumentOffsets:
    """The characters and bytes of one document."""

    def __init__(self, document: str):
        self._document = document
        self._is_ascii = document.isascii()

    @cached_property
    def _byte_of_character(self) -> list[int]:
        """Byte offset of each character, and the length in bytes."""
        return _byte_starts(self._document)

    @cached_property
    def _character_of_byte(self) -> list[int]:
        return _character_of_byte(self._document)

    def _bytes_of(self, character: int) -> int:
        return character if self._is_ascii else self._byte_of_character[character]

    def from_bytes(self, start: int, end: int) -> tuple[int, int]:
        """Turn byte offsets into character offsets, by the oracle's rule for those that are none."""
        characters = range(len(self._document)) if self._is_ascii else self._character_of_byte
        length = len(characters)
        if not 0 <= start < length:
            return start, end
        if 0 <= end < length:
            return characters[start], characters[end]
        last = characters[end - 1] if 0 <= end - 1 < length else characters[start] + 1
        return characters[start], last + 1

    def of_pretoken(self, piece: AlignedText) -> PretokenOffsets:
        """Prepare the offsets of the tokens of one pretoken."""
        return PretokenOffsets(self, piece)

    def checked(self, start: int, end: int) -> tuple[int, int]:
        """Give character offsets, or byte offsets where they begin at the very end of the document."""
        if start < len(self._document):
            return start, end
        return self._bytes_of(start), self._bytes_of(end)

    def unaligned(self, piece: AlignedText, position: int) -> tuple[int, int]:
        """Give the offsets of an empty token: a byte position in the piece, counted from the piece's first byte."""
        place = self._bytes_of(piece.start) + position
        return self.from_bytes(place, place)


class PretokenOffsets:
    """The offsets of tokens in one pretoken."""

    def __init__(self, document: DocumentOffsets, piece: AlignedText):
        self._document = document
        self._piece = piece
        self._is_ascii = piece.text.isascii()
        self._length = len(piece.text) if self._is_ascii else len(piece.text.encode())

    @cached_property
    def _characters(self) -> Sequence[int]:
        return range(self._length) if self._is_ascii else _character_of_byte(self._piece.text)

    def of_token(self, start: int, end: int) -> tuple[int, int]:
        """Turn a token's offsets in bytes of the pretoken into characters of the document."""
        if start == end:
            return self._document.unaligned(self._piece, start)
        if start > end or end > self._length:
            return self._document.from_bytes(start, end)
        if end - start == self._length:
            first, last = 0, -1
        else:
            first, last = self._characters[start], self._characters[end - 1]
        return self._document.checked(self._piece.starts[first], self._piece.ends[last])


def _byte_starts(text: str) -> list[int]:
    position, starts = 0, []
    for character in text:
        starts.append(position)
        position += len(character.encode())
    starts.append(position)
    return starts


def _character_of_byte(text: str) -> list[int]:
    return [i for i, character in enumerate(text) for _ in character.encode()]
