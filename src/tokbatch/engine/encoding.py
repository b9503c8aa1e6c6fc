"""The encoding of a text: its tokens with all that is known of each, and how encodings are cut, joined and padded.

Both engines give this value. What template, truncation and padding do with encodings stands in
`engine/reference/{post_processors,truncation,padding}.py`; where offsets come from in `engine/reference/pipeline.py`.
The rules are those of the oracle's `Encoding` (tokenizer/encoding.rs), the odd ones included.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tokbatch.errors import EncodeError
from tokbatch.spec.tokenizer_spec import Direction


@dataclass(slots=True)
class Encoding:
    """Lists of equal length, an entry a token.

    `offsets` are in characters of the text that the token comes from. `word_ids` is the index of the pretoken (added
    tokens in the text count as one), None for tokens of the template. `overflowing` has what truncation cut off,
    each piece as an encoding of its own. `sequence_ranges` says which tokens come from the text 0 and from the
    pair 1; where it is empty, all of them come from text 0.
    """

    ids: list[int] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    offsets: list[tuple[int, int]] = field(default_factory=list)
    type_ids: list[int] = field(default_factory=list)
    special_tokens_mask: list[int] = field(default_factory=list)
    attention_mask: list[int] = field(default_factory=list)
    word_ids: list[int | None] = field(default_factory=list)
    overflowing: list[Encoding] = field(default_factory=list)
    sequence_ranges: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of_text(
        cls,
        ids: list[int],
        tokens: list[str],
        offsets: list[tuple[int, int]],
        word_ids: list[int | None],
        type_id: int = 0,
    ) -> Encoding:
        """Build the encoding of one text, before any template."""
        n = len(ids)
        return cls(ids, tokens, offsets, [type_id] * n, [0] * n, [1] * n, word_ids)

    @classmethod
    def of_special_tokens(cls, ids: Iterable[int], tokens: Iterable[str], type_id: int) -> Encoding:
        """Build the encoding of tokens that a template adds: they have no place in the text."""
        ids, tokens = list(ids), list(tokens)
        n = len(ids)
        return cls(ids, tokens, [(0, 0)] * n, [type_id] * n, [1] * n, [1] * n, [None] * n)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sequence_ids(self) -> list[int | None]:
        """Give for each token the text it comes from: 0, 1 (the pair), or None for a token of the template."""
        sequence_ids: list[int | None] = [None] * len(self)
        for sequence_id in range(max(1, len(self.sequence_ranges))):
            start, end = self.sequence_ranges.get(sequence_id, (0, len(self)))
            sequence_ids[start:end] = [sequence_id] * (end - start)
        return sequence_ids

    def copy(self) -> Encoding:
        """Give an equal encoding that shares no list with this one."""
        copied = self.part(0, len(self))
        copied.overflowing = [piece.copy() for piece in self.overflowing]
        copied.sequence_ranges = dict(self.sequence_ranges)
        return copied

    def part(self, start: int, end: int) -> Encoding:
        """Give the tokens from `start` to `end`, without overflowing pieces and without sequence ranges."""
        return Encoding(
            self.ids[start:end],
            self.tokens[start:end],
            self.offsets[start:end],
            self.type_ids[start:end],
            self.special_tokens_mask[start:end],
            self.attention_mask[start:end],
            self.word_ids[start:end],
        )

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say that all tokens come from the text `sequence_id`."""
        self.sequence_ranges[sequence_id] = (0, len(self))

    def set_type_id(self, type_id: int) -> None:
        """Give all tokens the same type id."""
        self.type_ids = [type_id] * len(self)

    def truncated(self, max_length: int, stride: int, direction: Direction) -> Encoding:
        """Cut into pieces of `max_length` tokens that overlap by `stride`; all but the first are its overflowing ones.

        The direction is the side that is cut off, so "Left" keeps the end and lets the other pieces follow towards
        the beginning. Where nothing has to be cut, the encoding itself comes back, sequence ranges and all.
        """
        n = len(self)
        if max_length >= n:
            return self
        if max_length == 0:
            return Encoding(overflowing=[self])
        if stride >= max_length:
            raise EncodeError(
                f"cannot truncate to {max_length} tokens with a stride of {stride}",
                where="$.truncation.stride",
                hint="the stride must be smaller than `max_length` less the tokens that the template adds",
            )
        step = max_length - stride
        if direction == "Right":
            spans = [(start, min(start + max_length, n)) for start in range(0, n, step)]
            last = next(i for i, (_, end) in enumerate(spans) if end == n)
        else:
            spans = [(max(end - max_length, 0), end) for end in range(n, 0, -step)]
            last = next(i for i, (start, _) in enumerate(spans) if start == 0)
        pieces = [self.part(start, end) for start, end in spans[: last + 1]]
        pieces[0].overflowing = pieces[1:]
        return pieces[0]

    def append(self, other: Encoding) -> None:
        """Put the tokens of another encoding behind this one's.

        The overflowing pieces become all combinations of a piece of this one (or all of it) with a piece of the other
        one (or all of it), in the oracle's order; since each of them is joined by this same rule, they
        have overflowing pieces of their own where both sides overflow.
        """
        overflowing = []
        if self.overflowing or other.overflowing:
            for left in self.overflowing:
                overflowing += [_joined(left, right) for right in (other, *other.overflowing)]
            overflowing += [_joined(self, right) for right in other.overflowing]
        shift = len(self)
        for sequence_id, (start, end) in other.sequence_ranges.items():
            self.sequence_ranges[sequence_id] = (start + shift, end + shift)
        self.ids += other.ids
        self.tokens += other.tokens
        self.offsets += other.offsets
        self.type_ids += other.type_ids
        self.special_tokens_mask += other.special_tokens_mask
        self.attention_mask += other.attention_mask
        self.word_ids += other.word_ids
        self.overflowing = overflowing

    def pad(self, length: int, direction: Direction, pad_id: int, pad_type_id: int, pad_token: str) -> None:
        """Fill up to `length` tokens, the overflowing pieces too. A longer encoding stays as it is."""
        for piece in self.overflowing:
            piece.pad(length, direction, pad_id, pad_type_id, pad_token)
        n = length - len(self)
        if n <= 0:
            return
        padding = Encoding([pad_id] * n, [pad_token] * n, [(0, 0)] * n, [pad_type_id] * n, [1] * n, [0] * n, [None] * n)
        if direction == "Right":
            overflowing, self.overflowing = self.overflowing, []
            self.append(padding)
            self.overflowing = overflowing
        else:
            padding.append(self.part(0, len(self)))
            for name in ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask", "attention_mask", "word_ids"):
                setattr(self, name, getattr(padding, name))
            self.sequence_ranges = {i: (start + n, end + n) for i, (start, end) in self.sequence_ranges.items()}


def _joined(left: Encoding, right: Encoding) -> Encoding:
    joined = left.copy()
    joined.append(right)
    return joined


def merge_encodings(encodings: Iterable[Encoding]) -> Encoding:
    """Join encodings one after the other; none of them is changed."""
    merged = Encoding()
    for encoding in encodings:
        merged.append(encoding)
    return merged
