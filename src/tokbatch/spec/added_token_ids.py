"""The ids that added tokens really get, which are not always the ones that the file says.

The oracle reads the file's ids only to warn. It takes the entries in order: a content that an earlier entry or the
model's vocabulary has keeps that id, any other gets the next id from the vocabulary's size on. In a vocabulary
with holes such a new id can be one that a token has already: then both share it, and the later entry takes it over.
(`tokenizer/added_vocabulary.rs` of tokenizers 0.23.3.)
"""

from __future__ import annotations

from tokbatch.spec.models import Unigram
from tokbatch.spec.tokenizer_spec import AddedToken, TokenizerSpec


def added_token_ids(spec: TokenizerSpec) -> list[tuple[int, AddedToken]]:
    """Give (id, entry) of the added tokens in force, by id. Empty ones are dropped; the last entry of an id counts."""
    model = spec.model
    if isinstance(model, Unigram):
        vocab = {token: token_id for token_id, (token, _) in enumerate(model.vocab)}
    else:
        vocab = model.vocab
    next_id = len(model.vocab)
    ids: dict[str, int] = {}
    entries: dict[int, AddedToken] = {}
    for entry in spec.added_tokens:
        if not entry.content:
            continue
        token_id = ids.get(entry.content, vocab.get(entry.content))
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        ids[entry.content] = token_id
        entries[token_id] = entry
    return sorted(entries.items())
