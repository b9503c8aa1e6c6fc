"""The first thing to know about a run of the tests: the engine that was asked for is the engine that ran."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import tokbatch as tb
from tokbatch.engine import native

WORD_LEVEL = json.dumps(
    {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}}
)


def test_the_engine_of_the_fixture_is_the_engine_that_runs(engine: str) -> None:
    tok = tb.Tokenizer.from_json(WORD_LEVEL, engine=engine)
    assert tok.engine_name == engine
    assert type(tok.engine).__module__.startswith(f"tokbatch.engine.{engine}")
    assert tok.encode("a").ids == [1]


def test_the_native_engine_is_not_missing_where_it_can_be_built() -> None:
    reason = native.why_unavailable()
    if reason is not None:
        could_be_there = os.environ.get("CI") == "true" and shutil.which("cargo") is not None
        (pytest.fail if could_be_there else pytest.skip)(f"no native engine: {reason}")
