"""What the native engine says of texts and ids, held against the reference engine: encodings, texts, verdicts, stages.

The tokenizers are the small ones of the oracles, one for each model, with templates, padding and truncation put in.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from sections import FOLDER, NAMES, PADDING, TRUNCATION
from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import Engine
from tokbatch.errors import TokbatchError
from tokbatch.spec.read import read_spec

VARIANTS: dict[str, dict[str, Any]] = {"plain": {}, "cut and padded": {"truncation": TRUNCATION, "padding": PADDING}}
ALPHABET = [
    "a",
    "b",
    "e",
    "the",
    "low",
    "er",
    " ",
    "  ",
    "\n",
    ".",
    " n't",
    "▁",
    "é",
    "中",
    "😀",
    "\u3000",
    "<0x41>",
    "##",
]


@pytest.fixture(scope="module", params=[(name, variant) for name in NAMES for variant in VARIANTS], ids=" ".join)
def engines(request: pytest.FixtureRequest) -> tuple[Engine, Engine]:
    """The reference engine and the native one of the same tokenizer."""
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    name, variant = request.param
    spec = read_spec(json.dumps(json.loads((FOLDER / f"{name}.json").read_text()) | VARIANTS[variant]))
    return build_engine(spec, "reference"), build_engine(spec, "native")


def texts_for(engine: Engine) -> list[str]:
    """Random texts with the tokenizer's added tokens in them."""
    chance = random.Random(7)
    parts = ALPHABET + [token.content for token in engine.spec.added_tokens]
    return ["", " ", *("".join(chance.choices(parts, k=chance.randint(1, 14))) for _ in range(25))]


def damaged(rows: list[list[int]], largest: int) -> list[list[int]]:
    """Change, drop and repeat some ids."""
    chance = random.Random(11)
    changed = []
    for row in rows:
        row = list(row)
        for _ in range(chance.randint(0, 2) if row else 0):
            at = chance.randrange(len(row))
            row[at : at + 1] = chance.choice([[], [row[at]] * 2, [chance.randint(0, largest + 2)], row[at : at + 1]])
            if not row:
                break
        changed.append(row)
    return changed


def outcome(method: Callable[..., Any], *arguments: Any) -> Any:
    """Give what a method returns, or the error that it raises."""
    try:
        result = method(*arguments)
    except TokbatchError as error:
        return error.to_dict()
    return list(result) if isinstance(result, TextColumn) else result


def test_texts_and_pairs_have_the_same_encodings(engines):
    reference, engine = engines
    texts = texts_for(reference)
    for add_special_tokens in (True, False):
        for text, pair in zip(texts, [None, *reversed(texts)], strict=False):
            expected = outcome(reference.encode, text, pair, add_special_tokens)
            assert outcome(engine.encode, text, pair, add_special_tokens) == expected
            stages = outcome(reference.trace, text, add_special_tokens)
            assert outcome(engine.trace, text, add_special_tokens) == stages


def test_columns_of_ids_are_decoded_and_verified_alike(engines):
    reference, engine = engines
    texts = TextColumn.from_texts(texts_for(reference))
    seen = set()
    for add_special_tokens in (True, False):
        rows = list(reference.encode_batch(texts, add_special_tokens, keep_going=True))
        for given in (rows, damaged(rows, reference.max_id)):
            ids = IdColumn.from_lists(given)
            expected = outcome(reference.verify_batch, texts, ids, add_special_tokens)
            assert outcome(engine.verify_batch, texts, ids, add_special_tokens) == expected
            seen |= set(expected.verdicts)
            for skip_special_tokens in (True, False):
                decoded = outcome(reference.decode_batch, ids, skip_special_tokens)
                assert outcome(engine.decode_batch, ids, skip_special_tokens) == decoded
                for row in given[::4]:
                    text = outcome(reference.decode, row, skip_special_tokens)
                    assert outcome(engine.decode, row, skip_special_tokens) == text
    assert len(seen) > 1


def test_facts_are_the_same(engines):
    reference, engine = engines
    for fact in ("vocab_size", "max_id", "special_ids", "unk_id", "byte_token_ids", "single_template"):
        assert getattr(engine, fact) == getattr(reference, fact)
    for token_id in range(-1, reference.max_id + 3, reference.max_id // 200 + 1):
        token = reference.id_to_token(token_id)
        assert engine.id_to_token(token_id) == token
        assert token is None or engine.token_to_id(token) == reference.token_to_id(token)
    assert engine.token_to_id("\ud800") is None


def test_what_is_no_id_is_passed_over(engines):
    reference, engine = engines
    ids = [-1, 0, 1 << 32, 1 << 31, 1]
    assert outcome(engine.decode, ids, False) == outcome(reference.decode, ids, False)
    column = IdColumn.from_lists([[0, -5, 1], [-1 << 31], [(1 << 31) - 1]])
    assert outcome(engine.decode_batch, column, False) == outcome(reference.decode_batch, column, False)
    texts = TextColumn.from_texts(["", "a", "\ufffd"])
    assert outcome(engine.verify_batch, texts, column, False) == outcome(reference.verify_batch, texts, column, False)
