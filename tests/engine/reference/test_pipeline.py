"""The two roads of the pipeline, and the offsets of `encode`."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tokbatch as tb
from strategies import texts, tokenizer_values
from tokbatch import sample
from tokbatch.engine.columns import TextColumn
from tokbatch.engine.reference.offsets import DocumentOffsets
from tokbatch.engine.reference.pipeline import CACHED_PRETOKENS, ReferenceEngine
from tokbatch.spec.read import read_spec

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}


@settings(max_examples=60, **SETTINGS)
@given(value=tokenizer_values(), data=st.data())
def test_both_roads_give_the_same_ids(value: dict[str, Any], data: st.DataObject):
    text = data.draw(texts(list(value["model"]["vocab"]) if isinstance(value["model"]["vocab"], dict) else []))
    try:
        built = ReferenceEngine(read_spec(json.dumps({**value, "padding": None})))
        encoding = built.encode(text, None, True)
    except tb.TokbatchError:
        return

    assert built.encode_batch(TextColumn.from_texts([text]), True).row(0) == encoding.ids


def test_the_cache_stays_bounded(monkeypatch):
    built = ReferenceEngine(tb.Tokenizer.from_file(sample.tokenizer_path(), engine="reference").spec)
    monkeypatch.setattr("tokbatch.engine.reference.pipeline.CACHED_PRETOKENS", 100)

    column = TextColumn.from_texts(f"word{number}" for number in range(1000))
    first, second = built.encode_batch(column, True), built.encode_batch(column, True)

    assert len(built._cache) <= 100 < CACHED_PRETOKENS
    assert list(first) == list(second)


def test_offsets_in_characters():
    places = DocumentOffsets("aé𝔘b")  # 1, 2, 4 and 1 bytes

    assert places.from_bytes(0, 1) == (0, 1)
    assert places.from_bytes(1, 3) == (1, 2)
    assert places.from_bytes(2, 5) == (1, 2), "within a character: the character"
    assert places.from_bytes(3, 8) == (2, 4), "to the end of the document"
    assert places.from_bytes(7, 12) == (3, 5), "beyond the end: one more than the last"
    assert places.from_bytes(8, 8) == (8, 8), "from the end: bytes, since no character begins there"
    assert places.checked(4, 4) == (8, 8)
    assert places.checked(2, 4) == (2, 4)


def test_offsets_of_an_ascii_document_are_its_bytes():
    places = DocumentOffsets("abc")

    assert places.from_bytes(1, 2) == (1, 2)
    assert places.from_bytes(3, 3) == (3, 3)
