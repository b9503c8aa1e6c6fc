"""The ids that added tokens really get, which are not always the ones that the file says.

The oracle reads the file's ids only to warn. It takes the entries in order: a content that an earlier entry or the
model's vocabulary has keeps that id, any other gets the next id from the vocabulary's size on. In a vocabulary
with holes such a new id can be one that a token has already: then both share it, and the later entry takes it over.
(`tokenizer/added_vocabulary.rs` of tokenizers 0.23.3.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tokbatch.spec.models import Unigram
from tokbatch.spec.tokenizer_spec import AddedToken, TokenizerSpec


@dataclass(frozen=True, slots=True)
class AddedTokenTable:
    """What becomes of the entries of `added_tokens`, in the order of the file and without the empty ones.

    `in_force` has the last entry of each id. What earlier entries said is not forgotten: `ids` knows every content, a
    content that was special once is in `special_contents` for good, and the normalized form that decoding shows for an
    id is the last one that differs from its content, among the forms of `normalized_contents` (id, content).
    """

    in_force: dict[int, AddedToken] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    special_contents: set[str] = field(default_factory=set)
    normalized_contents: list[tuple[int, str]] = field(default_factory=list)


def added_token_table(spec: TokenizerSpec) -> AddedTokenTable:
    """Give the added tokens their ids."""
    model = spec.model
    if isinstance(model, Unigram):
        vocab = {token: token_id for token_id, (token, _) in enumerate(model.vocab)}
    else:
        vocab = model.vocab
    next_id = len(model.vocab)
    table = AddedTokenTable()
    for entry in spec.added_tokens:
        if not entry.content:
            continue
        token_id = table.ids.get(entry.content, vocab.get(entry.content))
        if token_id is None:
            token_id, next_id = next_id, next_id + 1
        table.ids[entry.content] = token_id
        table.in_force[token_id] = entry
        if entry.special:
            table.special_contents.add(entry.content)
        if entry.normalized:
            table.normalized_contents.append((token_id, entry.content))
    return table


def added_token_ids(spec: TokenizerSpec) -> list[tuple[int, AddedToken]]:
    """Give (id, entry) of the added tokens in force, by id. Empty ones are dropped; the last entry of an id counts."""
    return sorted(added_token_table(spec).in_force.items())
