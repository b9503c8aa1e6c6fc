"""BPE: begin with characters, and merge the adjacent pair of lowest rank until no pair has one.

Three steps: the symbols of the pretoken (characters with prefix and suffix, bytes, unknown tokens), the merges, and the
tokens of what is left. A symbol is an entry of the vocabulary, not a piece of text: the merges never look at the text
again. A merge's rank is its position in the file and has nothing to do with its id.

For the order of the merges there are two algorithms. `_merge_by_scan` is the naive one: look for the lowest rank, merge
the leftmost pair that has it, look again. It is the faster one for short pretokens. `_merge_by_heap` is the oracle's
(models/bpe/word.rs), n log n. They give the same for every vocabulary but an odd one: see `_is_odd`.

That every merge names entries of the vocabulary is the business of `spec/check.py`.
"""

from __future__ import annotations

import heapq
import struct
from functools import cached_property
from itertools import accumulate, pairwise

from tokbatch.engine.reference.models import Token
from tokbatch.engine.reference.models.vocabulary import VocabularyModel
from tokbatch.errors import EncodeError, UnsupportedError
from tokbatch.spec import models as spec

NO_RANK = 1 << 32  # above every rank
SCAN_LIMIT = 40  # symbols; measured: from about here on the heap is faster
WORD_MARK = "▁"  # what tokenizers without a pre-tokenizer write for a space: their pretoken is a whole document


class BPE(VocabularyModel[spec.BPE]):
    """See `Model` for the methods."""

    def __init__(self, model: spec.BPE):
        super().__init__(model)
        # The oracle keeps dropout as a 32-bit float, and draws numbers below 1 for each merge: at 1.0 none happens.
        dropout = struct.unpack("f", struct.pack("f", model.dropout or 0.0))[0]
        if dropout not in (0.0, 1.0):
            raise UnsupportedError(f"dropout {model.dropout} makes ids random", where="$.model.dropout")
        self.merges_happen = dropout == 0.0
        self.whole_pretokens = model.ignore_merges and self.merges_happen
        self.prefix = model.continuing_subword_prefix or ""
        self.suffix = model.end_of_word_suffix or ""
        # The last merge of a pair counts.
        self.ranks = {pair: rank for rank, pair in enumerate(model.merges)}
        self.merged: list[str] | None = None
        if self._is_odd():
            self._take_odd_merges()
        self.byte_tokens: list[str | None] = [None] * 256
        if model.byte_fallback:
            self.byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
            self.byte_tokens = [token if token in self.vocab else None for token in self.byte_tokens]
        self.byte_token_ids = frozenset(self.vocab[token] for token in self.byte_tokens if token is not None)

    def _is_odd(self) -> bool:
        """Say whether a merge may give anything else than a longer token that is both its sides put together.

        Else a pair that has changed since it went into the heap is never taken for the one that it was. The oracle
        compares no more than the ids that two pairs merge into: a changed pair that merges into the same id is merged
        at the rank of the old one.
        """
        shares_ids = len(self._tokens) < len(self.vocab)
        return bool(self.prefix) or shares_ids or not all(left and right for left, right in self.spec.merges)

    def _take_odd_merges(self) -> None:
        """Write the merges with one token for each id, and give `merged` the token that each rank leads to."""
        # The right side loses as many bytes as the prefix has, whether it begins with the prefix or not.
        cut = len(self.prefix.encode())
        canonical = {token: self._tokens[token_id] for token, token_id in self.vocab.items()}
        self.ranks = {(canonical[left], canonical[right]): rank for rank, (left, right) in enumerate(self.spec.merges)}
        self.merged = [canonical[left + right.encode()[cut:].decode()] for left, right in self.spec.merges]

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the tokens of a pretoken. Their places are the lengths of the symbols added up."""
        if self.whole_pretokens and pretoken in self.vocab:
            return [Token(self.vocab[pretoken], pretoken, 0, len(pretoken.encode()))]
        symbols, lengths = self._symbols(pretoken)
        firsts = self._merge(symbols)
        places = list(accumulate(lengths, initial=0))
        ends = [places[first] for first in [*firsts[1:], len(lengths)]] if firsts else []
        return [
            Token(self.vocab[symbol], symbol, places[first], end)
            for symbol, first, end in zip(symbols, firsts, ends, strict=True)
        ]

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the ids of a pretoken."""
        vocab = self.vocab
        if self.whole_pretokens and pretoken in vocab:
            return (vocab[pretoken],)
        if not self.prefix and not self.suffix and self.merged is None:
            symbols = list(pretoken)
            self._merge(symbols)
            try:
                return tuple([vocab[symbol] for symbol in symbols])
            except KeyError:
                pass  # a character that is not in the vocabulary, and so in no merge either
        symbols, _ = self._symbols(pretoken)
        self._merge(symbols)
        return tuple([vocab[symbol] for symbol in symbols])

    def parts(self, pretoken: str) -> list[str]:
        """Cut a pretoken at word marks that no merge can cross.

        A token that spans the cut would have the character before the mark and the mark side by side, and so would
        the merge that made it. Where no merge does, what happens on one side has no bearing on the other. Characters
        that are not in the vocabulary may fuse or overtake each other: there is no cut beside one.
        """
        if self.whole_pretokens or self.prefix or self.suffix or self.merged is not None:
            return [pretoken]
        first, *words = pretoken.split(WORD_MARK)
        parts: list[str] = []
        current = first
        for word in words:
            if current and current[-1] in self._before_cuts:
                parts.append(current)
                current = WORD_MARK + word
            else:
                current += WORD_MARK + word
        parts.append(current)
        return parts

    @cached_property
    def _before_cuts(self) -> frozenset[str]:
        """The characters after which a word mark can be cut off."""
        if WORD_MARK not in self.vocab:
            return frozenset()
        crossed = set()
        for left, right in self.spec.merges:
            token = left + right
            at = token.find(WORD_MARK, 1)
            while at > 0:
                crossed.add(token[at - 1])
                at = token.find(WORD_MARK, at + 1)
        return frozenset(token for token in self.vocab if len(token) == 1 and token not in crossed)

    def _symbols(self, pretoken: str) -> tuple[list[str], list[int]]:
        """Give the symbols and their lengths in bytes.

        An unknown token waits until the next character that is in the vocabulary, or the end. A character
        that falls back to bytes does not call for it: its bytes overtake it. Without an unknown token in the
        file the character is dropped, and what follows moves to its place.
        """
        symbols: list[str] = []
        lengths: list[int] = []
        waiting = 0  # the length in bytes of the unknown token that waits
        last = len(pretoken) - 1
        for i, character in enumerate(pretoken):
            symbol = (self.prefix if i else "") + character + (self.suffix if i == last else "")
            length = len(character.encode())
            is_known = symbol in self.vocab
            if not is_known:
                byte_tokens = [self.byte_tokens[byte] for byte in symbol.encode()]
                if None not in byte_tokens:
                    symbols += byte_tokens  # type: ignore[arg-type]
                    lengths += [1] * len(byte_tokens)
                    continue
                if self.spec.unk_token is None:
                    continue
            if waiting and (is_known or not self.spec.fuse_unk):
                symbols.append(self._unknown(character))
                lengths.append(waiting)
                waiting = 0
            if is_known:
                symbols.append(symbol)
                lengths.append(length)
            else:
                self._unknown(character)
                waiting += length
        if waiting:
            symbols.append(self._unknown(pretoken))
            lengths.append(waiting)
        if self.merged is not None:
            symbols = [self._tokens[self.vocab[symbol]] for symbol in symbols]
        return symbols, lengths

    def _unknown(self, spelled: str) -> str:
        if self.unk_token_id is None or self.spec.unk_token is None:
            raise EncodeError(
                f"the vocabulary has neither {spelled!r} nor the unknown token {self.spec.unk_token!r}",
                where="$.model.unk_token",
            )
        return self.spec.unk_token

    def _merge(self, symbols: list[str]) -> list[int]:
        """Merge in place. Give for each symbol that is left the index of the first of those that it was made of."""
        if not self.merges_happen:
            return list(range(len(symbols)))
        if len(symbols) <= SCAN_LIMIT and self.merged is None:
            return self._merge_by_scan(symbols)
        return self._merge_by_heap(symbols)

    def _merge_by_scan(self, symbols: list[str]) -> list[int]:
        rank_of = self.ranks.get
        firsts = list(range(len(symbols)))
        ranks = [rank_of(pair, NO_RANK) for pair in pairwise(symbols)]
        while ranks:
            lowest = min(ranks)
            if lowest == NO_RANK:
                break
            i = ranks.index(lowest)
            symbols[i] = merged = symbols[i] + symbols[i + 1]
            del symbols[i + 1], firsts[i + 1], ranks[i]
            if i:
                ranks[i - 1] = rank_of((symbols[i - 1], merged), NO_RANK)
            if i < len(ranks):
                ranks[i] = rank_of((merged, symbols[i + 1]), NO_RANK)
        return firsts

    def _merge_by_heap(self, symbols: list[str]) -> list[int]:
        rank_of, merged_tokens, n = self.ranks.get, self.merged, len(symbols)
        following, previous = list(range(1, n + 1)), list(range(-1, n - 1))
        is_gone = bytearray(n)
        # An entry is (rank, index of the left symbol) in one integer. It is not taken out when its pair changes.
        ranks = enumerate(rank_of(pair) for pair in pairwise(symbols))
        heap = [rank << 32 | i for i, rank in ranks if rank is not None]
        heapq.heapify(heap)
        while heap:
            entry = heapq.heappop(heap)
            rank, i = entry >> 32, entry & 0xFFFFFFFF
            right = following[i]
            if is_gone[i] or right == n:
                continue
            current = rank_of((symbols[i], symbols[right]))
            if current is None:
                continue
            if merged_tokens is None:
                if current != rank:
                    continue
                merged = symbols[i] + symbols[right]
            else:
                merged = merged_tokens[rank]
                if merged_tokens[current] != merged:
                    continue
            symbols[i] = merged
            is_gone[right] = True
            following[i] = after = following[right]
            if after < n:
                previous[after] = i
                rank_after = rank_of((merged, symbols[after]))
                if rank_after is not None:
                    heapq.heappush(heap, rank_after << 32 | i)
            before = previous[i]
            if before >= 0:
                rank_before = rank_of((symbols[before], merged))
                if rank_before is not None:
                    heapq.heappush(heap, rank_before << 32 | before)
        firsts = [i for i in range(n) if not is_gone[i]]
        symbols[:] = [symbols[i] for i in firsts]
        return firsts
