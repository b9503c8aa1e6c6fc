"""WordLevel: a pretoken is a token, or it is the unknown token."""

from __future__ import annotations

from tokbatch.engine.reference.models import Token
from tokbatch.engine.reference.models.vocabulary import VocabularyModel
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec


class WordLevel(VocabularyModel[spec.WordLevel]):
    """See `Model` for the methods."""

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the one token of a pretoken."""
        token_id = self.vocab.get(pretoken)
        if token_id is not None:
            return [Token(token_id, pretoken, 0, len(pretoken.encode()))]
        return [Token(self._unknown(pretoken), self.spec.unk_token, 0, len(pretoken.encode()))]

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the one id of a pretoken."""
        token_id = self.vocab.get(pretoken)
        return (self._unknown(pretoken) if token_id is None else token_id,)

    def _unknown(self, pretoken: str) -> int:
        if self.unk_token_id is None:
            raise EncodeError(
                f"the vocabulary has neither {pretoken[:40]!r} nor the unknown token {self.spec.unk_token!r}",
                where="$.model.unk_token",
            )
        return self.unk_token_id
