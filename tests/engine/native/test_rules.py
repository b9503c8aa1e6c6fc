"""Verdicts that the native engine knows from the spec alone (`native/src/faithful.rs`) are those that a look finds."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokbatch as tb
from tokbatch.engine import native

pytestmark = pytest.mark.skipif(native.why_unavailable() is not None, reason="there is only one engine here")

BYTES = {f"<0x{byte:02X}>": 100 + byte for byte in range(256)}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
WORDS = {"[UNK]": 0, "ab": 1, "##c": 2, ".": 3, "u": 4, "##n": 5, "]": 6, "b": 7, "'": 8, "##k": 9}


def added(content: str, token_id: int, normalized: bool = False) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    return {"id": token_id, "content": content, "normalized": normalized, **flags}


def wordpiece(*tokens: dict[str, Any], pre_tokenizer: str = "BertPreTokenizer", unk: str = "[UNK]") -> dict[str, Any]:
    vocab = {unk if token == "[UNK]" else token: token_id for token, token_id in WORDS.items()}
    names = {"unk_token": unk, "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {
        "added_tokens": list(tokens),
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": pre_tokenizer},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "vocab": vocab, **names},
    }


def unigram(*tokens: dict[str, Any], split: bool = True) -> dict[str, Any]:
    vocab = [["<unk>", 0.0], ["▁", -2.0], ["▁a", -1.0], ["b", -2.0], ["unk", -3.0], [">", -3.0], ["▁▁", -1.0]]
    return {
        "added_tokens": list(tokens),
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": METASPACE | {"split": split},
        "decoder": METASPACE,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False},
    }


def fallback(*tokens: dict[str, Any], vocab: dict[str, int] | None = None) -> dict[str, Any]:
    decoders = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    vocab = {"▁": 0, "a": 1, "b": 2, "ab": 3, "<": 4, "0": 5, "x": 6, "4": 7, "1": 8, ">": 9, **BYTES, **(vocab or {})}
    merges = ["a b", "<0x41> b"] if "<0x41>b" in vocab else ["a b"]
    return {
        "added_tokens": list(tokens),
        "pre_tokenizer": METASPACE | {"prepend_scheme": "first", "split": False},
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": True},
    }


WORD_TEXTS = [
    "ABC .",
    "abx",
    "[UNK] ab",
    "[unk]",
    "[",
    "[ ab",
    "[.",
    "u[",
    "AB##c",
    "unk",
    "ab [",
    "x [UNK]",
    "ab  n't",
]
UNIGRAM_TEXTS = [" a b", "a  b", "a▁▁b", "é", "<", "<unk>", "＜unk＞ a", "a<", "< unk>", "ＡB", "▁▁", "  "]
FALLBACK_TEXTS = [" ab", "  é", "▁a", " <0x41>", "<0x41>", " éab", " <0xé", "\x00 ", " Ab"]
MADE = ["a< x41>", "< x41>", "<\u2581x41>", "a"]
ZERO = {"replacement": "0", "prepend_scheme": "never", "split": False}
SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": "0"}
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "WordPiece": (wordpiece(), WORD_TEXTS),
    "with its unknown token added": (wordpiece(added("[UNK]", 0)), WORD_TEXTS),
    "with it added, and normalized": (wordpiece(added("[unk]", 0, True)), WORD_TEXTS),
    "with an added piece": (wordpiece(added("##UNK]", 20)), [*WORD_TEXTS, "[##UNK]", "[ ##UNK] ab"]),
    "with an id taken over": (wordpiece(added("zz", 1)), [*WORD_TEXTS, "zz", "AB"]),
    "unknown as a word": (wordpiece(unk="u"), WORD_TEXTS),
    "unknown as a mark": (wordpiece(unk="["), WORD_TEXTS),
    "behind spaces only": (wordpiece(pre_tokenizer="WhitespaceSplit"), [*WORD_TEXTS, "##c", "abc.", "u'c"]),
    "Unigram": (unigram(), UNIGRAM_TEXTS),
    "Unigram with its unknown token added": (unigram(added("<unk>", 0)), UNIGRAM_TEXTS),
    "Unigram of whole documents": (unigram(split=False), UNIGRAM_TEXTS),
    "byte fallback": (fallback(), FALLBACK_TEXTS),
    "byte fallback with an added byte": (fallback(added("<0x42>", 700)), [*FALLBACK_TEXTS, " <0x42>", "é<0x42>"]),
    "a merge of a byte": (fallback(vocab={"<0x41>b": 800}), FALLBACK_TEXTS),
    "a mark that makes a byte": (fallback() | {"pre_tokenizer": METASPACE | ZERO}, [*MADE, " ab"]),
    "a normalizer that makes a byte": (fallback() | {"normalizer": SPACES, "pre_tokenizer": None}, [*MADE, "▁ab"]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_what_is_known_is_what_is_found(name, add_special_tokens):
    value, texts = CASES[name]
    reference = tb.Tokenizer.from_json(json.dumps(value), engine="reference")
    ids = reference.encode_batch(texts, add_special_tokens).to_pylist()
    found = reference.verify_batch(texts, ids, add_special_tokens).to_pylist()
    changed = [[*row[:-1], row[-1] ^ 1] if row else [1] for row in ids]
    found_changed = reference.verify_batch(texts, changed, add_special_tokens).to_pylist()

    tok = tb.Tokenizer.from_json(json.dumps(value), engine="native")
    for _ in range(3):  # at first nothing is known, then what was encoded
        assert tok.encode_batch(texts, add_special_tokens).to_pylist() == ids
        assert tok.verify_batch(texts, ids, add_special_tokens).to_pylist() == found
        assert tok.verify_batch(texts, changed, add_special_tokens).to_pylist() == found_changed
    assert len({row["verdict"] for row in found}) > 1
