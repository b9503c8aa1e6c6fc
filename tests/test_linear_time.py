"""Time grows with the length of a document, and not faster: two lengths in one run, for every model.

The long one is `FACTOR` times the short one. Quadratic time would show as `FACTOR` squared; what is asserted lies in
the middle between that and `FACTOR` itself, so that a noisy machine does not matter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

import tokbatch as tb

FACTOR = 8
FLAGS = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": False, "special": True}
GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
BYTES = [chr(c) for c in range(0x21, 0x7F)] + ["Ġ", "Ċ", "Ģ", "ä", "¸", "Ń"]
MODELS: dict[str, dict[str, Any]] = {
    "byte-level BPE": {
        "pre_tokenizer": GPT2,
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate([*BYTES, "aa", "aaaa", "ĠĠ", "ĠĠĠĠ"])},
            "merges": [["a", "a"], ["aa", "aa"], ["Ġ", "Ġ"], ["ĠĠ", "ĠĠ"]],
        },
    },
    "BPE of whole documents": {
        "pre_tokenizer": METASPACE,
        "model": {
            "type": "BPE",
            "vocab": {token: i for i, token in enumerate(["<unk>", "▁", "a", "aa", "aaaa", "▁▁", "▁▁▁▁"])},
            "merges": [["a", "a"], ["aa", "aa"], ["▁", "▁"], ["▁▁", "▁▁"]],
            "unk_token": "<unk>",
            "fuse_unk": True,
        },
    },
    "WordPiece": {
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 10_000_000,
            "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "##aaa": 3, "aa": 4},
        },
    },
    "WordLevel": {
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"},
    },
    "Unigram": {
        "pre_tokenizer": METASPACE,
        "model": {
            "type": "Unigram",
            "unk_id": 0,
            "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["aa", -3.5], ["▁▁▁", -4.0], ["aaaaaaa", -5.0]],
        },
    },
}
TEXTS: dict[str, tuple[Callable[[int], str], int]] = {
    # what the text is, and the length of the short one, so that it takes some tens of milliseconds
    "equal letters": (lambda n: "a" * n, 4_000),
    "spaces": (lambda n: " " * n, 4_000),
    "line ends": (lambda n: "\n" * n, 4_000),
    "Chinese without a space": (lambda n: "中" * n, 2_000),
    "added tokens in a row": (lambda n: "<m>" * n, 1_000),
    "added tokens with whitespace between": (lambda n: "  <m>\t" * n, 700),
    "words": (lambda n: "a aaa aa " * n, 800),
}


def load(value: dict[str, Any], engine: str) -> tb.Tokenizer:
    added = [{"id": len(value["model"]["vocab"]), "content": "<m>", **FLAGS}]
    return tb.Tokenizer.from_json(json.dumps({**value, "added_tokens": added}), engine=engine)


def seconds(tok: tb.Tokenizer, text: str) -> float:
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        ids = tok.encode_batch([text])
        tok.verify_batch([text], ids)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_time_is_linear_in_the_length_of_a_document(model: str, text: str, engine: str):
    tok = load(MODELS[model], engine)
    make, length = TEXTS[text]
    if engine == "native":
        length *= 20
    seconds(tok, make(100))

    ratio = seconds(tok, make(length * FACTOR)) / max(seconds(tok, make(length)), 1e-3)

    assert ratio < FACTOR * FACTOR / 2


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("model", MODELS)
def test_a_million_of_everything(model: str, engine: str):
    tok = load(MODELS[model], engine)
    for text, count in [("a", 10**6), (" ", 10**6), ("\n", 10**6), ("中", 333_000), ("<m>", 10**5), (" <m>", 10**5)]:
        ids = tok.encode_batch([text * count])

        assert len(ids) == 1
        assert len(ids.values) > 0 or text in " \n"
