"""WordPiece: take the longest token that the pretoken begins with, then the longest inner one, and so on.

Inner tokens carry the prefix (`##`). Where the pieces do not go on, or where the pretoken has too many characters, all
of it becomes the unknown token.
"""

from __future__ import annotations

from tokbatch.engine.reference.models import Token
from tokbatch.engine.reference.models.vocabulary import VocabularyModel
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec


class WordPiece(VocabularyModel[spec.WordPiece]):
    """See `Model` for the methods."""

    def __init__(self, model: spec.WordPiece):
        super().__init__(model)
        self.prefix = model.continuing_subword_prefix
        # No candidate is longer than the longest token, so that a long pretoken takes linear time.
        self.longest_first = max(map(len, self.vocab), default=0)
        inner = (len(token) for token in self.vocab if token.startswith(self.prefix))
        self.longest_inner = max(inner, default=0) - len(self.prefix)

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the tokens of a pretoken. An inner token's value has the prefix, its place has not."""
        pieces = self._pieces(pretoken)
        if pieces is None:
            return [Token(self._unknown(pretoken), self.spec.unk_token, 0, len(pretoken.encode()))]
        tokens, place = [], 0
        for start, end, token_id in pieces:
            end_place = place + len(pretoken[start:end].encode())
            value = pretoken[start:end] if start == 0 else self.prefix + pretoken[start:end]
            tokens.append(Token(token_id, value, place, end_place))
            place = end_place
        return tokens

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the ids of a pretoken."""
        pieces = self._pieces(pretoken)
        return (self._unknown(pretoken),) if pieces is None else tuple([token_id for _, _, token_id in pieces])

    def _pieces(self, pretoken: str) -> list[tuple[int, int, int]] | None:
        """Give (start, end, id) of the pieces, in characters; None where there is no way through."""
        n = len(pretoken)
        if n > self.spec.max_input_chars_per_word:
            return None
        pieces = []
        start = 0
        prefix, longest = "", self.longest_first
        while start < n:
            end = min(n, start + longest)
            while end > start:
                token_id = self.vocab.get(prefix + pretoken[start:end])
                if token_id is not None:
                    break
                end -= 1
            else:
                return None
            pieces.append((start, end, token_id))
            start = end
            prefix, longest = self.prefix, self.longest_inner
        return pieces

    def _unknown(self, pretoken: str) -> int:
        if self.unk_token_id is None:
            raise EncodeError(
                f"the vocabulary has no way to spell {pretoken[:40]!r}, and no unknown token {self.spec.unk_token!r}",
                where="$.model.unk_token",
            )
        return self.unk_token_id
