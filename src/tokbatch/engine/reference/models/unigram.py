"""Unigram: the segmentation whose log probabilities have the highest sum, found from left to right (Viterbi).

A character that is no token by itself may be spelled as unknown, at a score below that of every token. Adjacent unknown
characters become one token; where all bytes of such a run have a byte token, it becomes those.

Sums are of 64-bit floats, added in the oracle's order, and the first of equal sums wins: the one whose last token
begins further left. The oracle's other road (models/unigram/lattice.rs) serves training and sampling, not encoding.
"""

from __future__ import annotations

from tokbatch.engine.reference.models import Token
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec

UNKNOWN_PENALTY = 10.0


class Unigram:
    """See `Model` for the methods."""

    def __init__(self, model: spec.Unigram):
        self.spec = model
        self.vocab_size = len(model.vocab)
        self.unk_token_id = model.unk_id
        # Of a token that is there twice, the last entry counts, but the first one's score may be the lowest of all.
        self.vocab = {token: token_id for token_id, (token, _) in enumerate(model.vocab)}
        self.scores = dict(model.vocab)
        self.unknown_score = min((score for _, score in model.vocab), default=float("inf")) - UNKNOWN_PENALTY
        self.lengths = _lengths_by_beginning(self.vocab)
        self.byte_ids: list[int | None] = [None] * 256
        if model.byte_fallback:
            self.byte_ids = [self.vocab.get(f"<0x{byte:02X}>") for byte in range(256)]
        self.byte_token_ids = frozenset(token_id for token_id in self.byte_ids if token_id is not None)

    def parts(self, pretoken: str) -> list[str]:
        """Leave a pretoken whole."""
        return [pretoken]

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a vocabulary entry; the last one where it is there twice."""
        return self.vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Give the vocabulary entry of an id."""
        return self.spec.vocab[token_id][0] if 0 <= token_id < self.vocab_size else None

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the tokens of a pretoken.

        An unknown token's value is the text that it stands for. The bytes of a run each cover all of the run.
        """
        tokens = []
        start = 0
        for piece in self._pieces(pretoken):
            end = start + len(piece.encode())
            ids = self._ids(piece)
            if piece in self.vocab or not self._is_bytes(piece):
                tokens.append(Token(ids[0], piece, start, end))
            else:
                values = [f"<0x{byte:02X}>" for byte in piece.encode()]
                tokens += [Token(token_id, value, start, end) for token_id, value in zip(ids, values, strict=True)]
            start = end
        return tokens

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the ids of a pretoken."""
        vocab = self.vocab
        ids: list[int] = []
        for piece in self._pieces(pretoken):
            token_id = vocab.get(piece)
            if token_id is None:
                ids += self._ids(piece)
            else:
                ids.append(token_id)
        return tuple(ids)

    def _is_bytes(self, piece: str) -> bool:
        return all(self.byte_ids[byte] is not None for byte in piece.encode())

    def _ids(self, piece: str) -> list[int]:
        """Give the id of a token, or of the bytes of an unknown run, or of the unknown token."""
        token_id = self.vocab.get(piece)
        if token_id is not None:
            return [token_id]
        byte_ids = [self.byte_ids[byte] for byte in piece.encode()]
        if None not in byte_ids:
            return byte_ids  # type: ignore[return-value]
        return [self._unknown(piece)]

    def _unknown(self, piece: str) -> int:
        if self.unk_token_id is None:
            raise EncodeError(
                f"the vocabulary has no way to spell {piece[:40]!r}, and the file names no unknown token",
                where="$.model.unk_id",
            )
        return self.unk_token_id

    def _pieces(self, text: str) -> list[str]:
        """Cut a text along its best path. Adjacent pieces that are the unknown token are one piece.

        The unknown token as text (`<unk>`) counts as such a piece too, and grows together with its neighbours.
        """
        begins = self._best_path(text)
        vocab, unknown = self.vocab, self.unk_token_id
        pieces: list[str] = []
        end = run_end = len(text)
        while end > 0:
            start = begins[end]
            # A piece that is not in the vocabulary is a character that was spelled as unknown.
            if vocab.get(text[start:end], unknown) != unknown or unknown is None:
                if end < run_end:
                    pieces.append(text[end:run_end])
                pieces.append(text[start:end])
                run_end = start
            end = start
        if run_end > 0:
            pieces.append(text[:run_end])
        pieces.reverse()
        return pieces

    def _best_path(self, text: str) -> list[int]:
        """Give for each end of a piece the beginning of the best last piece."""
        n = len(text)
        scores, lengths_of = self.scores.get, self.lengths.get
        best = [0.0] * (n + 1)
        begins = [-1] * (n + 1)
        for start in range(n):
            so_far = best[start]
            for length in lengths_of(text[start : start + 2], ()):
                end = start + length
                if end > n:
                    break
                score = scores(text[start:end])
                if score is not None and (begins[end] < 0 or score + so_far > best[end]):
                    best[end] = score + so_far
                    begins[end] = start
            end = start + 1
            score = scores(text[start])
            total = (self.unknown_score if score is None else score) + so_far
            if begins[end] < 0 or total > best[end]:
                best[end] = total
                begins[end] = start
                if score is None:
                    self._unknown(text[start])
        return begins


def _lengths_by_beginning(vocab: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Give for the first two characters of the longer tokens the lengths, ascending, that such tokens have."""
    lengths: dict[str, set[int]] = {}
    for token in vocab:
        if len(token) > 1:
            lengths.setdefault(token[:2], set()).add(len(token))
    return {beginning: tuple(sorted(found)) for beginning, found in lengths.items()}
