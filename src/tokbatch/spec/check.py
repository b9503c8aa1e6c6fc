"""What only the whole of a section, or of the file, can show: merges, and what is refused by name.

Each refusal stands in `REFUSALS` with its reason; `docs/equivalence.md` and the tests are made from that table. What
needs a normalizer at work (added tokens that normalize to nothing or to the same text) is found by the engines.
"""

from __future__ import annotations

from itertools import chain

from tokbatch.errors import SpecError
from tokbatch.spec import models
from tokbatch.spec.fields import show


def check_merges(model: models.BPE, where: str) -> None:
    """Refuse merges that name a token, or make one, that the vocabulary does not have."""
    vocab, merges = model.vocab, model.merges
    has = vocab.__contains__
    prefix_length = len((model.continuing_subword_prefix or "").encode())
    if not prefix_length and all(map(has, map("".join, merges))) and all(map(has, chain.from_iterable(merges))):
        return
    for rank, (left, right) in enumerate(merges):
        for token in (left, right):
            if token not in vocab:
                raise SpecError(f"the token {show(token)} is not in the vocabulary", where=f"{where}.merges[{rank}]")
        tail = right.encode()
        if len(tail) < prefix_length:
            raise SpecError(
                f"the token {show(right)} is shorter than the prefix {show(model.continuing_subword_prefix)}",
                where=f"{where}.merges[{rank}]",
            )
        try:
            merged = left + tail[prefix_length:].decode()
        except UnicodeDecodeError:
            merged = None
        if merged is None or merged not in vocab:
            raise SpecError(
                f"the merge of {show(left)} and {show(right)} gives a token that is not in the vocabulary",
                where=f"{where}.merges[{rank}]",
            )
