"""From a pretoken to tokens: one module a model (`bpe.py`, `wordpiece.py`, `wordlevel.py`, `unigram.py`).

Here is what the models have in common: the token, the interface, and the way from the spec to the model. A model sees
one pretoken at a time and remembers nothing: whoever wants a cache of pretokens keeps it outside.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tokbatch.spec import models as spec


class Token(NamedTuple):
    """A token in a pretoken.

    `start` and `end` are in bytes of the pretoken's UTF-8, and they are what the oracle says, which is not always the
    place of the token: after characters that were dropped or that became bytes they may lie elsewhere, even
    beyond the end.
    """

    id: int
    value: str
    start: int
    end: int


class Model(Protocol):
    """A sub-word algorithm with its vocabulary."""

    vocab_size: int
    """Number of entries, those with the same id counted each."""

    unk_token_id: int | None
    """The id that stands for what the vocabulary cannot spell, where there is one."""

    byte_token_ids: frozenset[int]
    """The ids of `<0x00>` to `<0xFF>` where byte fallback is on."""

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the tokens of a pretoken. What the model cannot spell without an unknown token is an `EncodeError`."""

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the ids of `tokenize`, without the rest, which is faster."""

    def parts(self, pretoken: str) -> list[str]:
        """Cut a pretoken into parts whose ids, one after the other, are its ids; for a cache of long pretokens."""

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a vocabulary entry."""

    def id_to_token(self, token_id: int) -> str | None:
        """Give the vocabulary entry of an id."""


def build_model(model: spec.Model) -> Model:
    """Build the model that the spec describes."""
    from tokbatch.engine.reference.models.bpe import BPE
    from tokbatch.engine.reference.models.unigram import Unigram
    from tokbatch.engine.reference.models.wordlevel import WordLevel
    from tokbatch.engine.reference.models.wordpiece import WordPiece

    if isinstance(model, spec.BPE):
        return BPE(model)
    if isinstance(model, spec.WordPiece):
        return WordPiece(model)
    if isinstance(model, spec.WordLevel):
        return WordLevel(model)
    return Unigram(model)
