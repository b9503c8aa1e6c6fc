"""Chains of normalizers and pre-tokenizers that the column road cuts in several ways, or rewrites between cuts.

Each is held against the reference engine, in columns whose documents share chunks.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import TextColumn
from tokbatch.spec.read import read_spec

LETTERS = " \n\t▁.,-_aabdehtT01239é٣中文\u3000ﬁ😀"
ADDED = [("<m>", {}), ("<n>", {"normalized": True}), ("a b", {"normalized": True, "lstrip": True})]


def model() -> dict[str, Any]:
    """A BPE that can spell every text: bytes, a mark for spaces, and some merges."""
    merges = [pair.split() for pair in ("▁ t", "h e", "▁t he", "a b", "▁ ▁", "1 2", "Ġ t", "Ã ©", "- -")]
    letters = sorted(set("▁ĠĊãÃ©abdehtT0123._-")) + ["".join(merge) for merge in merges]
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *dict.fromkeys(letters)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": vocabulary, "merges": merges}


def split(pattern: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def metaspace(scheme: str, cuts: bool) -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cuts}


def byte_level(prefix: bool, cuts: bool = True) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": cuts}


DIGITS = {"type": "Digits", "individual_digits": True}
PUNCTUATION = {"type": "Punctuation", "behavior": "MergedWithPrevious"}
SCRIPTS = {"type": "UnicodeScripts"}
FIXED = {"type": "FixedLength", "length": 3}
AHEAD = split("(?:a|b(?=a))+(?!\\d)|\\s+(?!\\S)", "MergedWithNext")
SPACE = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
MARKS = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
MARK_BEFORE = {"type": "Prepend", "prepend": "▁"}
NFKC = {"type": "NFKC"}

CHAINS: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
    ([], [DIGITS, byte_level(True)]),
    ([], [AHEAD, PUNCTUATION, byte_level(True, cuts=False)]),
    ([NFKC], [SCRIPTS, DIGITS, byte_level(False)]),
    ([], [FIXED, byte_level(False, cuts=False)]),
    ([], [byte_level(False), metaspace("always", True)]),
    ([], [AHEAD]),
    ([], [DIGITS, AHEAD, FIXED]),
    ([], [metaspace("first", True), DIGITS]),
    ([], [metaspace("always", True), SCRIPTS, DIGITS]),
    ([], [metaspace("always", True), byte_level(True)]),
    ([], [DIGITS, metaspace("always", True)]),
    ([NFKC], [PUNCTUATION, metaspace("never", True)]),
    ([], [split("\\n|\\d", "Removed"), metaspace("always", True), AHEAD]),
    ([], [metaspace("first", False), DIGITS]),
    ([], [metaspace("always", False), SCRIPTS]),
    ([NFKC], [metaspace("always", False), AHEAD]),
    ([], [metaspace("always", False), byte_level(False)]),
    ([MARKS], [SPACE]),
    ([MARKS], [{**SPACE, "behavior": "Removed", "invert": True}]),
    ([MARKS], [DIGITS]),
    ([MARK_BEFORE, MARKS], []),
    ([MARK_BEFORE, MARKS], [SPACE, PUNCTUATION]),
    ([NFKC, MARK_BEFORE, MARKS], []),
    ([NFKC, MARKS], [AHEAD, DIGITS]),
    ([MARKS], [byte_level(False)]),
]


def spec_of(normalizers: list[dict[str, Any]], pre_tokenizers: list[dict[str, Any]], added: bool) -> bytes:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    tokens = [{"id": 1000 + number, "content": content, **flags, **own} for number, (content, own) in enumerate(ADDED)]
    whole = {
        "version": "1.0",
        "added_tokens": tokens if added else [],
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers} if pre_tokenizers else None,
        "model": model(),
    }
    return json.dumps(whole).encode()


def texts(chance: random.Random) -> list[str]:
    made = ["", " ", "▁", "<m>", "<n> a b", " a", "a b"]
    for _ in range(120):
        parts = ["".join(chance.choices(LETTERS, k=chance.randint(0, 12))) for _ in range(chance.randint(1, 5))]
        made.append(chance.choice(["<m>", "<n>", "a b", "", " ", "the "]).join(parts))
    return made


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("number", range(len(CHAINS)))
def test_ids_are_those_of_the_reference(number: int, added: bool) -> None:
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    normalizers, pre_tokenizers = CHAINS[number]
    spec = read_spec(spec_of(normalizers, pre_tokenizers, added))
    column = TextColumn.from_texts(texts(random.Random(number)))
    ids = [list(build_engine(spec, engine).encode_batch(column, False)) for engine in ("native", "reference")]
    assert ids[0] == ids[1]
