"""What a tokenizer does, as facts for people: the lines of `tokbatch inspect`.

Only the spec is asked. What an engine reproduces is no question here: a spec that could be read is reproduced, and
whatever is not has been refused by name (`refusals.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from tokbatch.spec import decoders, models, normalizers, post_processors, pre_tokenizers
from tokbatch.spec.added_token_ids import added_token_ids
from tokbatch.spec.byte_alphabet import BYTE_TO_CHARACTER
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.tokenizer_spec import AddedToken, TokenizerSpec

TEMPLATE_PIECES = (post_processors.SequencePiece, post_processors.SpecialTokenPiece)
SEQUENCES = (normalizers.Sequence, pre_tokenizers.Sequence, post_processors.Sequence, decoders.Sequence)
BYTE_LEVEL = (normalizers.ByteLevel, pre_tokenizers.ByteLevel)
FLAGS = ("special", "normalized", "single_word", "lstrip", "rstrip")


class Fact(NamedTuple):
    """One line. `note` says what follows from it that a reader may not expect; it is empty where nothing does."""

    section: str
    name: str
    value: str
    note: str = ""


def describe(spec: TokenizerSpec) -> list[Fact]:
    """Give the facts in the order of the road: added tokens, normalizer, pre-tokenizer, model, and so on."""
    return [
        *_added_tokens(spec),
        *_component("normalizer", spec.normalizer),
        *_component("pre-tokenizer", spec.pre_tokenizer),
        *_model(spec),
        *_component("post-processor", spec.post_processor),
        *_component("decoder", spec.decoder),
        *_settings("truncation", spec.truncation, "a job honours it unless its config says otherwise"),
        *_settings("padding", spec.padding, "a job does not pad"),
        *(Fact("file", "ignored key", key, "`tokenizers` ignores it too") for key in spec.ignored_keys),
    ]


def _show(value: Any) -> str:
    if isinstance(value, Pattern):
        return f"/{value.regex}/" if value.regex is not None else _show(value.string)
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, tuple) and value and isinstance(value[0], TEMPLATE_PIECES):
        return " ".join(f"{'$' * (piece.__class__ is TEMPLATE_PIECES[0])}{piece.id}:{piece.type_id}" for piece in value)
    return json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)


def _added_tokens(spec: TokenizerSpec) -> Iterator[Fact]:
    entries = added_token_ids(spec)
    yield Fact("added tokens", "number", f"{len(entries):,}")
    kinds = Counter(_flags(entry) for _, entry in entries)
    for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        yield Fact("added tokens", kind or "no flag", f"{count:,}")
    for token_id, entry in entries:
        if entry.lstrip or entry.rstrip:
            sides = " and ".join(side for side, there in (("left", entry.lstrip), ("right", entry.rstrip)) if there)
            note = f"takes the whitespace to its {sides}, which decoding does not give back"
            yield Fact("added tokens", _show(entry.content), f"id {token_id}", note)
    yield from _odd_added_tokens(spec, entries)


def _flags(entry: AddedToken) -> str:
    return ", ".join(flag for flag in FLAGS if getattr(entry, flag))


def _odd_added_tokens(spec: TokenizerSpec, entries: list[tuple[int, AddedToken]]) -> Iterator[Fact]:
    given = {entry.content: token_id for token_id, entry in entries}
    tokens = _tokens_by_id(spec.model)
    for entry in spec.added_tokens:
        name = _show(entry.content)
        if not entry.content:
            yield Fact("added tokens", name, f"id {entry.id}", "an empty entry is dropped")
        elif entry.content not in given:
            yield Fact("added tokens", name, f"id {entry.id}", "a later entry has taken its id over")
        elif given[entry.content] != entry.id:
            note = f"the file says {entry.id}, which `tokenizers` does not follow"
            yield Fact("added tokens", name, f"id {given[entry.content]}", note)
    for token_id, entry in entries:
        other = tokens.get(token_id)
        if other is not None and other != entry.content:
            note = f"the vocabulary has that id for {_show(other)}"
            yield Fact("added tokens", _show(entry.content), f"id {token_id}", note)


def _tokens_by_id(model: models.Model) -> dict[int, str]:
    if isinstance(model, models.Unigram):
        return {token_id: token for token_id, (token, _) in enumerate(model.vocab)}
    return {token_id: token for token, token_id in model.vocab.items()}


def _component(section: str, component: Any) -> Iterator[Fact]:
    if component is None:
        yield Fact(section, "none", "")
        return
    if isinstance(component, SEQUENCES):
        for step in _steps(component):
            yield from _component(section, step)
        return
    settings = ", ".join(f"{name}={_show(getattr(component, name))}" for name in component.__struct_fields__)
    yield Fact(section, str(component.__struct_config__.tag), settings, _note(component))


def _note(component: Any) -> str:
    if isinstance(component, pre_tokenizers.Metaspace) and component.prepend_scheme == "first":
        return "looks at a pretoken's place in the document"
    if isinstance(component, (normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD)):
        return "with the older Unicode tables of `tokenizers`"
    return ""


def _model(spec: TokenizerSpec) -> Iterator[Fact]:
    model = spec.model
    kind = str(model.__struct_config__.tag)
    yield Fact("model", "type", kind)
    yield Fact("model", "vocabulary", f"{len(model.vocab):,}")
    ids = range(len(model.vocab)) if isinstance(model, models.Unigram) else model.vocab.values()
    largest, distinct = max(ids, default=-1), len(set(ids))
    if distinct < len(model.vocab):
        note = "which of the tokens an id decodes to changes from run to run in `tokenizers`"
        yield Fact("model", "shared ids", f"{len(model.vocab) - distinct:,}", note)
    if largest + 1 > distinct:
        note = "new added tokens get ids from the vocabulary's size on, and may meet those of other tokens"
        yield Fact("model", "unused ids", f"{largest + 1 - distinct:,} below {largest:,}", note)
    if isinstance(model, models.BPE):
        yield Fact("model", "merges", f"{len(model.merges):,}")
        repeated = len(model.merges) - len(set(model.merges))
        if repeated:
            yield Fact("model", "repeated merges", f"{repeated:,}", "the last of each counts")
    for name in model.__struct_fields__:
        if name not in ("vocab", "merges"):
            value = getattr(model, name)
            note = ""
            if name == "unk_token" and value is not None and value not in _vocabulary(model):
                note = "not in the vocabulary: a text with an unknown character is an error"
            if name == "unk_id" and value is None:
                note = "an unknown character is an error"
            if name == "unk_token" and value is None:
                note = _what_is_dropped(spec)
            if name == "dropout" and value == 1.0:
                note = "no merge ever happens"
            yield Fact("model", name, _show(value), note)


def _what_is_dropped(spec: TokenizerSpec) -> str:
    """Say what has no token in a model without an unknown token: nothing, where each byte has one."""
    vocabulary = _vocabulary(spec.model)
    bytes_of: list[str] = []
    if any(isinstance(step, BYTE_LEVEL) for step in _steps(spec.normalizer) + _steps(spec.pre_tokenizer)):
        bytes_of = list(BYTE_TO_CHARACTER.values())
    elif getattr(spec.model, "byte_fallback", False):
        bytes_of = [f"<0x{byte:02X}>" for byte in range(256)]
    missing = sum(token not in vocabulary for token in bytes_of)
    if bytes_of and not missing:
        return "no character is unknown: each of the 256 bytes has a token"
    if bytes_of and missing < 256:
        return f"{missing} of the 256 bytes have no token: a character that needs one of them loses it"
    return "an unknown character is dropped"


def _steps(component: Any) -> list[Any]:
    """Give the components that a component consists of, itself where it is no sequence."""
    if not isinstance(component, SEQUENCES):
        return [component]
    return [inner for step in msgspec.structs.astuple(component)[0] for inner in _steps(step)]


def _vocabulary(model: models.Model) -> Any:
    return {token for token, _ in model.vocab} if isinstance(model, models.Unigram) else model.vocab


def _settings(section: str, value: msgspec.Struct | None, note: str) -> Iterator[Fact]:
    if value is None:
        yield Fact(section, "none", "")
        return
    for position, name in enumerate(value.__struct_fields__):
        yield Fact(section, name, _show(getattr(value, name)), "" if position else note)
