"""What a tokenizer's two engines say about ids that may or may not be those of a text: it has to be the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tokbatch as tb
from generate.source import Source
from generate.texts import random_text
from generate.tokenizers import contents_of, random_tokenizer, words_of
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.native import NativeEngine
from tokbatch.engine.protocol import Verification
from tokbatch.engine.reference.pipeline import ReferenceEngine
from tokbatch.errors import TokbatchError

Value = dict[str, Any]


@dataclass(frozen=True)
class Doubt:
    """A tokenizer and texts whose ids are looked at, some of them after a change."""

    value: Value
    texts: tuple[str, ...]
    changes: tuple[tuple[int, int, int], ...]  # row, place, id: the id at the place goes, or becomes another one
    add_special_tokens: bool


def _fitting_decoder(value: Value) -> Value:
    """Make a decoder that gives most texts back, as real files have it: then all four verdicts are frequent."""
    written = str(value["pre_tokenizer"]) + str(value["normalizer"])
    if "ByteLevel" in written:
        return {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    if "Metaspace" in written:
        return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    if value["model"].get("end_of_word_suffix"):
        return {"type": "BPEDecoder", "suffix": "</w>"}
    if value["model"]["type"] == "WordPiece":
        return {"type": "WordPiece", "prefix": value["model"]["continuing_subword_prefix"], "cleanup": True}
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}


def random_doubt(source: Source) -> Doubt:
    """Make a tokenizer, some texts and some faults. Blanks beside and between added tokens come often."""
    value = random_tokenizer(source)
    for entry in value["added_tokens"]:
        entry["rstrip"] = entry["rstrip"] or source.chance(30)
        entry["lstrip"] = entry["lstrip"] or source.chance(15)
    if source.chance(60):
        value["decoder"] = _fitting_decoder(value)
    words, contents = words_of(value), contents_of(value)
    blanks = [content for content in contents if content.isspace()]
    texts = []
    for _ in range(source.integer(1, 6)):
        text = random_text(source, words, contents)
        if blanks and source.chance(30):
            text += source.choose(blanks) * source.integer(1, 4)
        texts.append(text)
    highest = len(value["model"]["vocab"]) + len(contents) + 2
    change = lambda: (source.integer(0, len(texts) - 1), source.integer(0, 5), source.integer(-1, highest))  # noqa: E731
    return Doubt(value, tuple(texts), tuple(source.several(change, 0, 2)), not source.chance(25))


def changed(ids: Sequence[int], place: int, token_id: int) -> list[int]:
    """Give the ids with one of them replaced, or without it (an id of -1)."""
    return [*ids[:place], *([] if token_id < 0 else [token_id]), *ids[place + 1 :]]


def verifications(doubt: Doubt) -> list[Verification]:
    """Ask the reference engine, the native one before it has seen the texts, and again when it has encoded them.

    Nothing where the tokenizer is refused.
    """
    try:
        spec = tb.Tokenizer.from_json(json.dumps(doubt.value), engine="reference").spec
        reference, native = ReferenceEngine(spec), NativeEngine(spec)
    except TokbatchError:
        return []
    texts, special = TextColumn.from_texts(doubt.texts), doubt.add_special_tokens
    encoded = reference.encode_batch(texts, special, keep_going=True)
    rows = [list(encoded.row(row)) for row in range(encoded.rows)]
    for row, place, token_id in doubt.changes:
        rows[row] = changed(rows[row], place, token_id)
    ids = IdColumn.from_lists(rows)
    found = [reference.verify_batch(texts, ids, special), native.verify_batch(texts, ids, special)]
    native.encode_batch(texts, special, keep_going=True)
    return [*found, native.verify_batch(texts, ids, special)]
