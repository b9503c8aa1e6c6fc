"""The two directions between token strings and ids, which BPE, WordPiece and WordLevel share."""

from __future__ import annotations

from typing import Generic, TypeVar

from tokbatch.spec.models import BPE, WordLevel, WordPiece

Spec = TypeVar("Spec", BPE, WordPiece, WordLevel)


class VocabularyModel(Generic[Spec]):
    """What a model with a vocabulary of (token, id) knows before it sees a pretoken.

    Where two tokens have one id, that id's token is the first of them in the file. The oracle takes one or the other,
    by the order of its hash table, which changes from process to process.
    """

    byte_token_ids: frozenset[int] = frozenset()

    def __init__(self, spec: Spec):
        self.spec: Spec = spec
        self.vocab: dict[str, int] = spec.vocab
        self.vocab_size = len(spec.vocab)
        self.unk_token_id = None if spec.unk_token is None else spec.vocab.get(spec.unk_token)
        self._tokens = {token_id: token for token, token_id in reversed(spec.vocab.items())}

    def parts(self, pretoken: str) -> list[str]:
        """Leave a pretoken whole."""
        return [pretoken]

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a vocabulary entry."""
        return self.vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Give the vocabulary entry of an id."""
        return self._tokens.get(token_id)
