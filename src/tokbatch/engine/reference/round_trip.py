"""Encode then decode: the verdict of each document, and the whitespace that added tokens absorbed.

On the ids without the template's tokens, decoded with the special tokens kept, a document is

- exact: the decoded text is the text;
- stripped: with each added token rendered as the slice of text that it consumed, the decoded text is the text;
- normalized: the decoded text is what the decoder makes of the document's pretokens and added tokens;
- lossy: anything else: unknown tokens, a truncation, ids that are not the ids of this text, or a decoder that fails.

An exact document costs a decoding. Only the others are encoded a second time, to see their pretokens and slices.
"""

from __future__ import annotations

import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import VERDICTS, Absorbed, Verification
from tokbatch.engine.reference.added_tokens import AddedMatch, gaps
from tokbatch.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from tokbatch.engine.reference.pipeline import ReferenceEngine

Pretoken = tuple[AddedMatch | None, str, tuple[int, ...]]  # the match, the text it covers, its ids

EXACT, STRIPPED, NORMALIZED, LOSSY = range(len(VERDICTS))


def verify_column(engine: ReferenceEngine, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
    """Verify a column, row by row: see `Engine.verify_batch`. A text that cannot be encoded is lossy."""
    result = Verification(array.array("b"), array.array("q"), array.array("q"), array.array("q"), Absorbed())
    unk_id = -1 if engine.unk_id is None else engine.unk_id
    counts: Counter[tuple[str, str, str]] = Counter()
    documents: Counter[tuple[str, str]] = Counter()
    documents_by_whitespace: Counter[tuple[str, str]] = Counter()
    for row in range(texts.rows):
        text, row_ids = texts.text(row), ids.row(row)
        body = _without_template(engine, text, row_ids, add_special_tokens)
        absorbed = _absorbed(engine, text, row_ids if body is None else body)
        try:
            verdict = LOSSY if body is None else _verdict(engine, text, body)
        except DecodeError:
            verdict = LOSSY
        lengths = {"lstrip": 0, "rstrip": 0}
        for side, content, whitespace in absorbed:
            lengths[side] += len(whitespace)
            counts.update((side, content, character) for character in whitespace)
        documents.update({(side, content) for side, content, _ in absorbed})
        documents_by_whitespace.update({(side, c) for side, _, whitespace in absorbed for c in whitespace})
        result.verdicts.append(verdict)
        result.lstrip_chars.append(lengths["lstrip"])
        result.rstrip_chars.append(lengths["rstrip"])
        result.unk_tokens.append((row_ids if body is None else body).count(unk_id))
    result.absorbed.counts.update(counts)
    result.absorbed.documents.update(documents)
    result.absorbed.documents_by_whitespace.update(documents_by_whitespace)
    return result


def _without_template(engine: ReferenceEngine, text: str, ids: list[int], add_special_tokens: bool) -> list[int] | None:
    """Take the template's tokens (and the padding) away. None where they are not where they should be."""
    affixes = engine.post_processor.single_affixes(add_special_tokens)
    if affixes is not None and engine.spec.padding is None:
        prefix, suffix = map(list, affixes)
        end = len(ids) - len(suffix)
        if len(prefix) > end or ids[: len(prefix)] != prefix or ids[end:] != suffix:
            return None
        return ids[len(prefix) : end]
    try:
        encoding = engine.encode(text, None, add_special_tokens)
    except EncodeError:
        return None
    if engine.spec.padding is not None:
        pad_id = engine.spec.padding.pad_id
        first, last = _extent(encoding.attention_mask)
        for attribute in (encoding.ids, encoding.special_tokens_mask):
            attribute[:] = attribute[first:last]
        missing = len(ids) - len(encoding.ids)
        padding = ids[len(encoding.ids) :] if engine.spec.padding.direction == "Right" else ids[: max(missing, 0)]
        if padding != [pad_id] * missing:
            return None
        ids = ids[: len(encoding.ids)] if engine.spec.padding.direction == "Right" else ids[missing:]
    if ids != encoding.ids:
        return None
    return [token_id for token_id, special in zip(ids, encoding.special_tokens_mask, strict=True) if not special]


def _extent(mask: Sequence[int]) -> tuple[int, int]:
    """Where the ones of an attention mask begin and end."""
    if 1 not in mask:
        return 0, 0
    return mask.index(1), len(mask) - mask[::-1].index(1)


def _verdict(engine: ReferenceEngine, text: str, body: list[int]) -> int:
    decoded = engine.decode(body, skip_special_tokens=False)
    if decoded == text:
        return EXACT
    try:
        pretokens = list(engine.pretokens(text))
    except EncodeError:
        return LOSSY
    if [token_id for _, _, ids in pretokens for token_id in ids] != body:
        return LOSSY
    if engine.decoder.decode(_tokens(engine, pretokens, slices=True)) == text:
        return STRIPPED
    if engine.decoder.decode(_tokens(engine, pretokens, slices=False)) == decoded:
        return NORMALIZED
    return LOSSY


def _tokens(engine: ReferenceEngine, pretokens: list[Pretoken], slices: bool) -> list[str]:
    """Give tokens for the decoder.

    With `slices`: the model's tokens, and added tokens as the slice that they consumed. Without: pretokens as if each
    were one token, and added tokens as they are.
    """
    tokens: list[str | None] = []
    for match, text, ids in pretokens:
        if slices:
            tokens += [text] if match is not None else [engine.id_to_token(token_id) for token_id in ids]
        else:
            tokens += [text] if match is None else [engine.id_to_token(match.token_id)]
    return [token for token in tokens if token is not None]


def _absorbed(engine: ReferenceEngine, text: str, ids: list[int]) -> list[tuple[str, str, str]]:
    """Give (side, token content, whitespace) for each added token of a text that absorbed any.

    Only a text among whose ids is that of an added token with `lstrip` or `rstrip` is looked at, or one that
    may have been truncated. Whitespace that several matches consumed was absorbed by the first of them.
    """
    stripping = engine.added_vocabulary.stripping_ids
    if not stripping or (engine.spec.truncation is None and stripping.isdisjoint(ids)):
        return []
    absorbed = []
    try:
        for searched, matches in _passes(engine, text):
            claimed = 0
            for match in matches:
                content = engine.added_vocabulary.by_id[match.token_id].content
                before = searched[max(match.start, claimed) : match.content_start]
                after = searched[max(match.content_end, match.start, claimed) : match.end]
                absorbed += [("lstrip", content, before)] if before else []
                absorbed += [("rstrip", content, after)] if after else []
                claimed = max(claimed, match.end)
    except EncodeError:
        return []
    return absorbed


def _passes(engine: ReferenceEngine, text: str) -> Iterator[tuple[str, list[AddedMatch]]]:
    """Yield each text that is searched for added tokens, with its matches: the document, then what lies between."""
    matches = engine.added_vocabulary.raw_pass.matches(text)
    yield text, matches
    for match, start, end in gaps(matches, len(text)):
        if match is None:
            normalized = engine.normalizer.normalize(text[start:end])
            yield normalized, engine.added_vocabulary.normalized_pass.matches(normalized)
