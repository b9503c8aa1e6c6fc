"""Byte-level BPE whose vocabulary lacks some bytes, where the unknown token may be one of its symbols.

Then one symbol comes from several bytes, and merges with its neighbours wherever it comes from.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import TextColumn
from tokbatch.spec.read import read_spec

LETTERS = "abcdé "
KNOWN = "abcÃ"


def tokenizer(generator: random.Random, unknown: str, fuses: bool, suffix: str | None) -> bytes:
    """Merges of few symbols in a random order; "d", the second byte of "é" and the space are in no token."""
    tokens = dict.fromkeys([unknown, *KNOWN, *(letter + (suffix or "") for letter in KNOWN)])
    merges: list[list[str]] = []
    for _ in range(14):
        left, right = generator.choice(list(tokens)), generator.choice(list(tokens))
        if "<" in left or [left, right] in merges or len(left + right) > 12:
            continue
        merges.append([left, right])
        tokens[left + right] = None
    generator.shuffle(merges)
    model: dict[str, Any] = {
        "type": "BPE",
        "unk_token": unknown,
        "fuse_unk": fuses,
        "end_of_word_suffix": suffix,
        "vocab": {token: number for number, token in enumerate(tokens)},
        "merges": merges,
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return json.dumps({"version": "1.0", "pre_tokenizer": byte_level, "model": model}).encode()


@pytest.mark.parametrize("unknown", ["a", "Ã", "<unk>"])
@pytest.mark.parametrize("fuses", [False, True])
@pytest.mark.parametrize("suffix", [None, "</w>"])
def test_unknown_symbols_merge_as_the_reference_engine_merges_them(
    unknown: str, fuses: bool, suffix: str | None
) -> None:
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    generator = random.Random(f"{unknown} {fuses} {suffix}")
    merged = 0
    for _ in range(8):
        spec = read_spec(tokenizer(generator, unknown, fuses, suffix))
        texts = ["".join(generator.choices(LETTERS, k=generator.randint(0, 24))) for _ in range(60)]
        column = TextColumn.from_texts(texts)
        ids, expected = [list(build_engine(spec, name).encode_batch(column, False)) for name in ("native", "reference")]
        assert ids == expected
        merged += sum(len(text.encode()) - len(row) for text, row in zip(texts, ids, strict=True))
    assert merged > 200
