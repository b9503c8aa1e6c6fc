"""BPE: begin with characters, and merge the adjacent pair of lowest rank until no pair has one.

Three steps: the symbols of the pretoken (characters with prefix and suffix, bytes, unknown tokens), the merges over
their ids, and the tokens of what is left. The merges never look at the text again. A merge's rank is its position in
the file and has nothing to do with its id.

For the order of the merges there are two algorithms. `_merge_by_scan` is the naive one: look for the lowest rank, merge
the leftmost pair that has it, look again. It is the faster one for short pretokens. `_merge_by_heap` is the oracle's
(models/bpe/word.rs), n log n. They give the same for every vocabulary but an odd one: see `_pairs_grow`.
"""

from __future__ import annotations

import heapq
import struct
from itertools import accumulate, pairwise

from tokbatch.engine.reference.models import Token
from tokbatch.engine.reference.models.vocabulary import VocabularyModel
from tokbatch.errors import EncodeError, SpecError, UnsupportedError
from tokbatch.spec import models as spec

NO_MERGE = 1 << 64  # above every rank and id packed into one integer
LOW_32_BITS = (1 << 32) - 1
SCAN_LIMIT = 128  # symbols; measured: from about here on the heap is faster


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
        # A pair of ids is looked up as one integer; an odd factor spreads it well over the hash table.
        self.factor = (max(self.vocab.values(), default=0) + 1) | 1
        self.merges = self._packed_merges()
        self.scan_limit = SCAN_LIMIT if self._pairs_grow() else 0
        self.byte_ids: list[int | None] = [None] * 256
        if model.byte_fallback:
            self.byte_ids = [self.vocab.get(f"<0x{byte:02X}>") for byte in range(256)]
        self.byte_token_ids = frozenset(token_id for token_id in self.byte_ids if token_id is not None)

    def _packed_merges(self) -> dict[int, int]:
        """Give rank and new id (in the low 32 bits) for each pair of ids. The last merge of a pair counts."""
        vocab, factor, rank_step = self.vocab, self.factor, 1 << 32
        if not self.prefix:
            try:
                return {
                    vocab[left] * factor + vocab[right]: rank * rank_step + vocab[left + right]
                    for rank, (left, right) in enumerate(self.spec.merges)
                }
            except KeyError:
                pass  # the loop below says which
        # The right side loses as many bytes as the prefix has, whether it begins with the prefix or not.
        cut = len(self.prefix.encode())
        packed = {}
        for rank, (left, right) in enumerate(self.spec.merges):
            merged = (left.encode() + right.encode()[cut:]).decode(errors="replace")
            for token in (left, right, merged):
                if token not in vocab or len(right.encode()) < cut:
                    raise SpecError(
                        f"the merge of {left!r} and {right!r} needs {token!r}, which is not in the vocabulary",
                        where=f"$.model.merges[{rank}]",
                    )
            packed[vocab[left] * factor + vocab[right]] = rank * rank_step + vocab[merged]
        return packed

    def _pairs_grow(self) -> bool:
        """Say whether a merged token is always longer than its left side, and no two tokens share an id.

        Only then is a pair that has changed since it went into the heap never taken for the one that it was. The
        oracle compares no more than the ids that two pairs merge into, so that a changed pair which merges into the
        same id is merged at the rank of the old one.
        """
        cut = len(self.prefix.encode())
        return len(self._tokens) == len(self.vocab) and all(
            left and len(right) > cut for left, right in self.spec.merges
        )

    def tokenize(self, pretoken: str) -> list[Token]:
        """Give the tokens of a pretoken. Their places are the lengths of the symbols added up."""
        if self.whole_pretokens and pretoken in self.vocab:
            return [Token(self.vocab[pretoken], pretoken, 0, len(pretoken.encode()))]
        ids, lengths = self._symbols(pretoken)
        firsts = self._merge(ids)
        places = list(accumulate(lengths, initial=0))
        ends = [places[first] for first in [*firsts[1:], len(lengths)]] if firsts else []
        return [
            Token(token_id, self._tokens[token_id], places[first], end)
            for token_id, first, end in zip(ids, firsts, ends, strict=True)
        ]

    def token_ids(self, pretoken: str) -> tuple[int, ...]:
        """Give the ids of a pretoken."""
        if self.whole_pretokens:
            token_id = self.vocab.get(pretoken)
            if token_id is not None:
                return (token_id,)
        ids: list[int]
        if self.prefix or self.suffix:
            ids, _ = self._symbols(pretoken)
        else:
            ids = list(map(self.vocab.get, pretoken))  # type: ignore[arg-type]
            if None in ids:
                ids, _ = self._symbols(pretoken)
        self._merge(ids)
        return tuple(ids)

    def _symbols(self, pretoken: str) -> tuple[list[int], list[int]]:
        """Give the ids of the symbols and their lengths in bytes.

        An unknown token waits until the next character that is in the vocabulary, or the end. A character
        that falls back to bytes does not call for it: its bytes overtake it. Without an unknown token in the
        file the character is dropped, and what follows moves to its place.
        """
        ids: list[int] = []
        lengths: list[int] = []
        unknown: int | None = None
        unknown_length = 0
        last = len(pretoken) - 1
        for i, character in enumerate(pretoken):
            symbol = (self.prefix if i else "") + character + (self.suffix if i == last else "")
            length = len(character.encode())
            token_id = self.vocab.get(symbol)
            if token_id is None:
                byte_ids = [self.byte_ids[byte] for byte in symbol.encode()]
                if None not in byte_ids:
                    ids += byte_ids  # type: ignore[arg-type]
                    lengths += [1] * len(byte_ids)
                    continue
                if self.spec.unk_token is None:
                    continue
            if unknown is not None and (token_id is not None or not self.spec.fuse_unk):
                ids.append(unknown)
                lengths.append(unknown_length)
                unknown, unknown_length = None, 0
            if token_id is not None:
                ids.append(token_id)
                lengths.append(length)
            else:
                unknown = self._unknown(character)
                unknown_length += length
        if unknown is not None:
            ids.append(unknown)
            lengths.append(unknown_length)
        return ids, lengths

    def _unknown(self, character: str) -> int:
        if self.unk_token_id is None:
            raise EncodeError(
                f"the vocabulary has neither {character!r} nor the unknown token {self.spec.unk_token!r}",
                where="$.model.unk_token",
            )
        return self.unk_token_id

    def _merge(self, ids: list[int]) -> list[int]:
        """Merge in place. Give for each id that is left the index of the first symbol that it consists of."""
        if not self.merges_happen:
            return list(range(len(ids)))
        return self._merge_by_scan(ids) if len(ids) <= self.scan_limit else self._merge_by_heap(ids)

    def _merge_by_scan(self, ids: list[int]) -> list[int]:
        merges, factor = self.merges.get, self.factor
        firsts = list(range(len(ids)))
        pairs = [merges(left * factor + right, NO_MERGE) for left, right in pairwise(ids)]
        while pairs:
            lowest = min(pairs)
            if lowest == NO_MERGE:
                break
            i = pairs.index(lowest)
            ids[i] = merged = lowest & LOW_32_BITS
            del ids[i + 1], firsts[i + 1], pairs[i]
            if i:
                pairs[i - 1] = merges(ids[i - 1] * factor + merged, NO_MERGE)
            if i < len(pairs):
                pairs[i] = merges(merged * factor + ids[i + 1], NO_MERGE)
        return firsts

    def _merge_by_heap(self, ids: list[int]) -> list[int]:
        merges, factor, n = self.merges.get, self.factor, len(ids)
        following, previous = list(range(1, n + 1)), list(range(-1, n - 1))
        gone = bytearray(n)
        # An entry is (rank, merged id, position of the left symbol) in one integer. The rank decides the id, so the
        # order is that of rank and position. An entry is not taken out when its pair changes.
        heap = []
        for i in range(n - 1):
            found = merges(ids[i] * factor + ids[i + 1])
            if found is not None:
                heap.append(found << 32 | i)
        heapq.heapify(heap)
        while heap:
            entry = heapq.heappop(heap)
            i = entry & LOW_32_BITS
            right = following[i]
            if gone[i] or right == n:
                continue
            merged = entry >> 32 & LOW_32_BITS
            found = merges(ids[i] * factor + ids[right])
            if found is None or found & LOW_32_BITS != merged:
                continue
            ids[i] = merged
            gone[right] = 1
            following[i] = after = following[right]
            if after < n:
                previous[after] = i
                found = merges(merged * factor + ids[after])
                if found is not None:
                    heapq.heappush(heap, found << 32 | i)
            before = previous[i]
            if before >= 0:
                found = merges(ids[before] * factor + merged)
                if found is not None:
                    heapq.heappush(heap, found << 32 | before)
        firsts = [i for i in range(n) if not gone[i]]
        ids[:] = [ids[i] for i in firsts]
        return firsts
