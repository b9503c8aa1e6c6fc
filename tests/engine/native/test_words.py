"""Normalizers that wait until a word is new: they are done to words, each with the space before it, not to texts.

Each is held against the reference engine on texts in which characters act across words: marks behind spaces, characters
that are in one cluster with what follows, ends of lines, whitespace that appears and goes.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from charsmaps import charsmap, precompiled
from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import TextColumn
from tokbatch.spec.read import read_spec

LETTERS = (
    *"  \n\r\t\x0b`'abeX▁é¨ﬁÅＡ가각ｶﾞ中文😀😀\u3000\u00a0\u200b\u200c\u200d\x00\x85\u2028",
    *"\u0301\u0323\u0301\u0327\u0600\u06dd\u0e33\u0e31\u0e01\u0939\u093f\u094d\u0930",
    *"\u1100\u1161\u11a8\u102b\U000110bd\U0001f1e9©\u00ad",
    *(
        "\r\n",
        "e\u0301",
        "``",
        "''",
        " \u0301\u0323",
        "\u0600 ",
        "\u3000\u0301",
        "\u200b\u0e31\u0301",
        "\t\u0301\u0323",
        "ก\u0e31",
        "\u0939\u094d\u0930",
        "👩\u200d👩",
        "a \u0301\u0323b",
    ),
)
LIKE_NMT = {
    "\t": " ",
    "\n": " ",
    "\r": " ",
    "\u3000": " ",
    "\u00a0": " ",
    "\u00a8": " \u0308",
    "ﬁ": "fi",
    "Ａ": "A",
    "\u200b": " ",
    "e\u0301": "é",
    "\u00ad": "",
    "\u0340": "\u0300",
    "ｶﾞ": "ガ",
    "ｶ": "カ",
}
MAPS = [
    LIKE_NMT,
    {**LIKE_NMT, "\u0301": "y", "\u0323": "z", "\u0e31": "w", "\u094d": "v"},
    {**LIKE_NMT, "\u0e31\u0301": "k"},
    # Nothing may wait before these.
    {**LIKE_NMT, " \u0301": "q"},
    {**LIKE_NMT, " ": "_"},
    {**LIKE_NMT, "\u0600": "p"},
    {**LIKE_NMT, "\u06dd ": "r"},
    # Ends of lines are no separators.
    {"\r\n": "n", "ﬁ": " f "},
    {"\r\n": "\u0301", "\n": "\n"},
    {"\n": "x", "\r": " "},
    {"\n": "", "\t": "", "\r": "\r"},
]
NFKD = {"type": "NFKD"}
STRIP_ACCENTS = {"type": "StripAccents"}
LOWERCASE = {"type": "Lowercase"}
QUOTES = [
    {"type": "Replace", "pattern": {"String": quote}, "content": content}
    for quote, content in (("``", '"'), ("''", " "))
]
CHAINS = [
    [*QUOTES, NFKD, STRIP_ACCENTS],
    [NFKD],
    [{"type": "NFC"}, *QUOTES],
    [{"type": "NFKC"}, LOWERCASE],
    [{"type": "NFD"}, LOWERCASE, *QUOTES],
    [*QUOTES, {"type": "Replace", "pattern": {"String": "a "}, "content": "b"}],
    [{"type": "Nmt"}, {"type": "NFKC"}],
    [{"type": "Strip", "strip_left": True, "strip_right": True}, NFKD],
]
NORMALIZERS = [[precompiled(charsmap(entries))] for entries in MAPS]
NORMALIZERS += [[*QUOTES, NFKD, STRIP_ACCENTS, precompiled(charsmap(entries))] for entries in MAPS]
NORMALIZERS += [[STRIP_ACCENTS, precompiled(charsmap(entries)), NFKD, LOWERCASE] for entries in MAPS[:2]]
NORMALIZERS += [[precompiled(charsmap(entries)), precompiled(charsmap(LIKE_NMT))] for entries in MAPS]
NORMALIZERS += [[precompiled(charsmap(LIKE_NMT)), precompiled(charsmap(MAPS[1]))]]
NORMALIZERS += CHAINS


def strip(left: bool, right: bool) -> dict[str, Any]:
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def joined(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


# What comes before a Metaspace: what is stripped of the raw text, what waits, and what makes spaces fewer.
BEGINNINGS: list[list[dict[str, Any]]] = [[], [], [strip(True, True)], [strip(False, True), strip(True, False)]]
CORES: list[list[dict[str, Any]]] = [
    *([precompiled(charsmap(entries))] for entries in MAPS),
    [precompiled(charsmap({**LIKE_NMT, "▁": " ", "\x85": " ", "\uff1c": "<", "\u0f00": "<m"}))],
    [precompiled(charsmap({**LIKE_NMT, "▁": " ", "m\u0301": "m>"}))],
    [],
    [NFKD, STRIP_ACCENTS, precompiled(charsmap(LIKE_NMT))],
    [{"type": "Nmt"}, {"type": "NFKC"}],
    [LOWERCASE],
]
ENDS: list[list[dict[str, Any]]] = [
    [strip(False, True), joined(" {2,}", "▁")],
    [strip(False, True), joined(" {2,}", " ")],
    [joined(" {2,}", "▁")],
    [joined(" +", " "), strip(False, True)],
    # These are not done by words.
    [joined(" {2,}", "▁"), strip(False, True)],
    [strip(True, True), joined(" {2,}", "▁")],
    [joined(r"\s{2,}", " ")],
    [],
]
# Flags of added tokens, and how a Metaspace puts marks in front.
ADDED = ["", "", "normalized", "lstrip normalized", "rstrip", "lstrip rstrip normalized"]
SCHEMES = ["always", "always", "never", "first"]


def marked_spec(chance: random.Random, core: list[dict[str, Any]]) -> bytes:
    whole = json.loads(spec_of([*chance.choice(BEGINNINGS), *core, *chance.choice(ENDS)], True))
    for flag in chance.choice(ADDED).split():
        whole["added_tokens"][0][flag] = True
    split = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": chance.choice(SCHEMES), "split": True}
    digits = {"type": "Digits", "individual_digits": True}
    whole["pre_tokenizer"] = chance.choice([split, split, {"type": "Sequence", "pretokenizers": [split, digits]}])
    # Each pretoken is to end with a mark, so that ids tell where it does.
    whole["model"]["end_of_word_suffix"] = chance.choice(["▁", None])
    return json.dumps(whole).encode()


def spec_of(normalizers: list[dict[str, Any]], metaspace: bool) -> bytes:
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "vocab": vocabulary, "merges": []}
    parts = [{"type": "WhitespaceSplit"}]
    if metaspace:
        parts.append({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True})
    else:
        # Each pretoken is to end with a mark, so that ids tell where it does.
        model["end_of_word_suffix"] = "▁"
    token = {"id": 1000, "content": "<m>", "special": False, "normalized": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    whole = {
        "version": "1.0",
        "added_tokens": [{**token, **flags}],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": parts},
        "model": model,
    }
    return json.dumps(whole).encode()


def texts(chance: random.Random) -> list[str]:
    made = ["", " ", "\r\n", " \u0301", "\u0301 \u0323"]
    made += ["".join(chance.choices(LETTERS, k=chance.randint(1, 6))) for _ in range(400)]
    made += ["".join(chance.choices((*LETTERS, "<m>", "word"), k=chance.randint(7, 60))) for _ in range(60)]
    return made


@pytest.mark.parametrize("metaspace", [False, True])
@pytest.mark.parametrize("number", range(len(NORMALIZERS)))
def test_ids_are_those_of_the_reference(number: int, metaspace: bool) -> None:
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    spec = read_spec(spec_of(NORMALIZERS[number], metaspace))
    column = TextColumn.from_texts(texts(random.Random(number)))
    ids = [list(build_engine(spec, engine).encode_batch(column, False)) for engine in ("native", "reference")]
    assert ids[0] == ids[1]


@pytest.mark.parametrize("number", range(4 * len(CORES)))
def test_ids_before_a_metaspace_are_those_of_the_reference(number: int) -> None:
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    chance = random.Random(number)
    spec = read_spec(marked_spec(chance, CORES[number % len(CORES)]))
    ends = ("", " ", "\u3000", "\x85", "\x85 \x0b", "\u0301", "\u200b\u0301", "<m", "\uff1cm>", "<m\u0301")
    column = TextColumn.from_texts([text + chance.choice(ends) for text in texts(chance)])
    ids = [list(build_engine(spec, engine).encode_batch(column, False)) for engine in ("native", "reference")]
    assert ids[0] == ids[1]
