"""The models of tokenizer.json, as values: one class per `type`, fields named as in the file.

The older spellings are gone here: `merges` are pairs, a model that had no `type` has its class.
What each model does to a pretoken stands in `engine/reference/models/`.
"""

from __future__ import annotations

import msgspec


class BPE(msgspec.Struct, frozen=True, tag_field="type", tag="BPE"):
    """Byte-pair encoding. A merge's rank is its position in `merges`, and has nothing to do with its id."""

    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False


class WordPiece(msgspec.Struct, frozen=True, tag_field="type", tag="WordPiece"):
    """Greedy longest match, inner pieces with a prefix."""

    vocab: dict[str, int]
    unk_token: str
    continuing_subword_prefix: str
    max_input_chars_per_word: int


class WordLevel(msgspec.Struct, frozen=True, tag_field="type", tag="WordLevel"):
    """A pretoken is a token."""

    vocab: dict[str, int]
    unk_token: str


class Unigram(msgspec.Struct, frozen=True, tag_field="type", tag="Unigram"):
    """The segmentation with the highest sum of log probabilities. A token's id is its position in `vocab`."""

    vocab: list[tuple[str, float]]
    unk_id: int | None = None
    byte_fallback: bool = False


Model = BPE | WordPiece | WordLevel | Unigram
