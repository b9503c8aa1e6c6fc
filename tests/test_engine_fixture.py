"""The first thing to know about a run of the tests: the engine that was asked for is the engine that ran."""

from __future__ import annotations

import json

import tokbatch as tb

WORD_LEVEL = json.dumps(
    {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}}
)


def test_the_engine_of_the_fixture_is_the_engine_that_runs(engine: str) -> None:
    tok = tb.Tokenizer.from_json(WORD_LEVEL, engine=engine)
    assert tok.engine_name == engine
    assert type(tok.engine).__module__.startswith(f"tokbatch.engine.{engine}")
    assert tok.encode("a").ids == [1]
