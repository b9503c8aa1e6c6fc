"""What an engine is: the one interface behind `Tokenizer`, for the reference engine and for the native one.

An engine knows strings, byte buffers and ids. It knows neither Arrow nor files nor processes, and it is built from a
`TokenizerSpec` and nothing else.
"""

from __future__ import annotations

import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.encoding import Encoding
from tokbatch.spec import Padding, TokenizerSpec, Truncation

CACHED_PRETOKENS = 1 << 20
"""Pretokens that the native engine remembers with their ids, for each thread, unless somebody says otherwise."""
FEWEST_PRETOKENS, MOST_PRETOKENS = 1 << 12, 1 << 26
"""What somebody can say."""
VERDICTS = ("exact", "stripped", "normalized", "lossy")


@dataclass(frozen=True, slots=True)
class Absorbed:
    """Whitespace that added tokens took from their surroundings, in one column of texts.

    `counts` maps (side, token content, whitespace character) to a number of characters; `side` is "lstrip" or
    "rstrip". `documents` maps (side, token content) to the number of documents in which that token took any, and
    `documents_by_whitespace` (side, whitespace character) to the number of documents in which that character was
    taken.
    """

    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    documents: dict[tuple[str, str], int] = field(default_factory=dict)
    documents_by_whitespace: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verification:
    """The round trip of a column, an entry a row: `verdicts` are indices into `VERDICTS`."""

    verdicts: array.array[int]  # "b"
    lstrip_chars: array.array[int]  # "q", characters absorbed to the left of added tokens
    rstrip_chars: array.array[int]  # "q", ... and to the right
    unk_tokens: array.array[int]  # "q"
    absorbed: Absorbed


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of an encoding, for people and for `engine/compare.py`.

    `name` is "added tokens", "normalized", "pretokens", "model" or "post-processed". `pieces` are texts; `ids` has an
    entry for each piece that already has one.
    """

    name: str
    pieces: list[str]
    ids: list[int | None]


class Engine(Protocol):
    """A tokenizer at work. All methods are pure: the same arguments give the same answer, on any thread."""

    name: str

    @property
    def spec(self) -> TokenizerSpec:
        """What it is built from. It may be read only now: who wants options asks for these."""

    @property
    def truncation(self) -> Truncation | None:
        """How texts are cut."""

    @property
    def padding(self) -> Padding | None:
        """How encodings are filled up."""

    @property
    def vocab_size(self) -> int:
        """Number of distinct tokens, added ones included (as `get_vocab_size(with_added_tokens=True)`)."""

    @property
    def max_id(self) -> int:
        """The largest id that an encoding can contain; what decides whether 16 bits are enough."""

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the added tokens with `special = true`."""

    @property
    def unk_id(self) -> int | None:
        """The id that the model gives for what it does not know; None where it has no such token."""

    @property
    def byte_token_ids(self) -> frozenset[int]:
        """The ids of the tokens `<0x00>` to `<0xFF>` where the model falls back to bytes; else empty."""

    @property
    def single_template(self) -> tuple[int | None, ...]:
        """What the post-processor makes of a single text: ids, and None in the place of the text.

        ``(101, None, 102)`` for BERT; ``(None,)`` where there is no post-processor.
        """

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a token; None where there is none."""

    def id_to_token(self, token_id: int) -> str | None:
        """Give the token of an id; None where there is none."""

    def encode(self, text: str, pair: str | None, add_special_tokens: bool) -> Encoding:
        """Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks."""

    def encode_batch(self, texts: TextColumn, add_special_tokens: bool, keep_going: bool = False) -> IdColumn:
        """Give the ids of a column. A row that fails raises its error, or with `keep_going` lands in `failures`."""

    def count_batch(self, texts: TextColumn, add_special_tokens: bool) -> array.array[int]:
        """Give the number of ids of each row ("q")."""

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """Give the text of ids. Ids that no token has are passed over, as in the oracle."""

    def decode_batch(self, ids: IdColumn, skip_special_tokens: bool) -> TextColumn:
        """Give the texts of a column of ids."""

    def verify_batch(self, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
        """Hold the ids of a column against its texts. `add_special_tokens` says how the ids were made."""

    def trace(self, text: str, add_special_tokens: bool) -> list[Stage]:
        """Encode one text and keep what every stage made of it."""
