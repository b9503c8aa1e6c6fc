"""Make a failing case small: take away whatever the difference does not need.

`smallest` tries one removal at a time, keeps those after which the case still fails in the same way, and stops when
none is left. The order goes from what matters most to a reader (the text, whole sections) to the vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from generate.compare import Question

Value = dict[str, Any]
Case = tuple[Value, Question]

PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
MODEL_DEFAULTS = {
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}


def _shorter(text: str) -> Iterator[str]:
    size = len(text)
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size //= 2


def _smaller_questions(question: Question) -> Iterator[Question]:
    if question.decode_ids:
        yield replace(question, decode_ids=())
        for at in range(len(question.decode_ids)):
            yield replace(question, decode_ids=question.decode_ids[:at] + question.decode_ids[at + 1 :])
    if question.pair is not None:
        yield replace(question, pair=None)
        yield from (replace(question, pair=pair) for pair in _shorter(question.pair))
    yield from (replace(question, text=text) for text in _shorter(question.text))
    if question.encode_special_tokens:
        yield replace(question, encode_special_tokens=False)
    if question.add_special_tokens:
        yield replace(question, add_special_tokens=False)


def _smaller_values(value: Value) -> Iterator[Value]:
    def changed(change: Callable[[Value], None]) -> Value:
        smaller = copy.deepcopy(value)
        change(smaller)
        return smaller

    for section in ("truncation", "padding", *PARTS):
        if value[section] is not None:
            yield {**value, section: None}
    for section, parts in PARTS.items():
        children = (value[section] or {}).get(parts, [])
        for at, child in enumerate(children):
            yield {**value, section: child}
            yield changed(lambda v, s=section, p=parts, i=at: v[s][p].pop(i))  # type: ignore[misc]
    for at, entry in enumerate(value["added_tokens"]):
        yield changed(lambda v, i=at: v["added_tokens"].pop(i))  # type: ignore[misc]
        for flag in ("single_word", "lstrip", "rstrip", "normalized", "special"):
            if entry[flag]:
                yield changed(lambda v, i=at, f=flag: v["added_tokens"][i].update({f: False}))  # type: ignore[misc]
    model = value["model"]
    for key, default in MODEL_DEFAULTS.items():
        if model["type"] == "BPE" and model[key] != default:
            yield {**value, "model": {**model, key: default}}
    for key in ("merges", "vocab"):
        entries = model.get(key) or []
        size = max(len(entries) // 2, 1)
        while size and entries:
            for start in range(0, len(entries), size):
                if isinstance(entries, dict):
                    kept: Any = dict(list(entries.items())[:start] + list(entries.items())[start + size :])
                else:
                    kept = entries[:start] + entries[start + size :]
                yield {**value, "model": {**model, key: kept}}
            size //= 2


def smallest(case: Case, fails: Callable[[Case], bool], most_tries: int = 3000) -> Case:
    """Give a case that still fails and from which nothing more can be taken away (or as far as the tries go)."""
    tries = 0
    progress = True
    while progress and tries < most_tries:
        progress = False
        value, question = case
        candidates = [(value, smaller) for smaller in _smaller_questions(question)]
        for candidate in (*candidates, *((smaller, question) for smaller in _smaller_values(value))):
            tries += 1
            if tries > most_tries:
                break
            if fails(candidate):
                case, progress = candidate, True
                break
    return case
