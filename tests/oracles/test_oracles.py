"""Every frozen answer of the oracle, replayed on each engine: all fields, both decodings, the overflowing encodings.

Where the oracle failed, and where it crashed, a TokbatchError is the right answer, at the same stage or earlier.
"""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any

import pytest

import tokbatch as tb
from oracles.cases import Case, tokenizer_text

ANSWERS = pathlib.Path(__file__).resolve().parent / "answers"
FIELDS = ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask", "attention_mask")


def load_answers() -> list[Any]:
    """Give the frozen answers, a test parameter each."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(ANSWERS.glob("*.jsonl"))]
    answers = [json.loads(line) for text in texts for line in text.splitlines()]
    return [pytest.param(answer, id=answer["name"]) for answer in answers]


def fields(encoding: Any) -> dict[str, Any]:
    """Give the compared fields of an encoding as plain lists."""
    return {field: [list(x) if isinstance(x, tuple) else x for x in getattr(encoding, field)] for field in FIELDS}


@functools.lru_cache(maxsize=4)
def load(text: str, engine: str, encode_special_tokens: bool) -> tb.Tokenizer:
    """Load a tokenizer; neighbouring answers are often of the same one."""
    return tb.Tokenizer.from_json(text, engine=engine, encode_special_tokens=encode_special_tokens)


def check_unstable(answer: Case, tok: tb.Tokenizer) -> None:
    """The oracle's answer changes from load to load: ours is an error, or equal in what does not change."""
    try:
        encoding = tok.encode(answer["text"], answer.get("pair"), add_special_tokens=answer["add_special_tokens"])
    except tb.EncodeError:
        return
    expected = {field: answer[field] for field in FIELDS if field in answer}
    assert expected
    assert {field: got for field, got in fields(encoding).items() if field in expected} == expected, answer["why"]


@pytest.mark.parametrize("answer", load_answers())
def test_the_engine_answers_as_the_oracle(answer: Case, engine: str) -> None:
    failing_stage = answer.get("error", {}).get("stage")
    if failing_stage == "load":
        with pytest.raises(tb.TokbatchError):
            tb.Tokenizer.from_json(tokenizer_text(answer), engine=engine)
        return
    encode_special_tokens = answer.get("encode_special_tokens", False)
    if failing_stage == "encode":
        # An earlier refusal is as good: a template that no text can pass through may be refused at load.
        with pytest.raises(tb.TokbatchError):
            load(tokenizer_text(answer), engine, encode_special_tokens).encode(
                answer["text"], answer.get("pair"), add_special_tokens=answer["add_special_tokens"]
            )
        return
    tok = load(tokenizer_text(answer), engine, encode_special_tokens)
    if answer.get("unstable"):
        check_unstable(answer, tok)
        return
    ids = answer.get("decode_ids")
    if ids is None:
        special = answer["add_special_tokens"]
        encoding = tok.encode(answer["text"], answer.get("pair"), add_special_tokens=special)
        expected = {field: answer[field] for field in FIELDS if field in answer}
        assert {field: got for field, got in fields(encoding).items() if field in expected} == expected, answer["why"]
        if "overflowing" in answer:
            assert [fields(part) for part in encoding.overflowing] == answer["overflowing"], answer["why"]
        ids = encoding.ids
        if answer.get("pair") is None and "ids" in answer:
            column = tok.encode_batch([answer["text"]], add_special_tokens=special)
            assert column.to_pylist() == [answer["ids"]], answer["why"]
    if failing_stage == "decode":
        with pytest.raises(tb.TokbatchError):
            tok.decode(ids, skip_special_tokens=False)
        return
    for key, skip in (("decoded", False), ("decoded_skip_special", True)):
        if key in answer:
            assert tok.decode(ids, skip_special_tokens=skip) == answer[key], answer["why"]


def test_there_are_answers_of_every_kind() -> None:
    answers = [parameter.values[0] for parameter in load_answers()]
    names = [answer["name"] for answer in answers]
    assert len(set(names)) == len(names)
    assert all(answer["why"] for answer in answers)
    errors = [answer["error"] for answer in answers if "error" in answer]
    assert {error["stage"] for error in errors} >= {"load", "encode"}
    assert sum(error["panicked"] for error in errors) >= 10
    for start in ("lstrip-", "rstrip-", "single-word-"):
        assert sum(name.startswith(start) for name in names) >= 26, start


@pytest.mark.long
def test_the_committed_answers_are_what_the_oracle_gives() -> None:
    # In this process, so that a crash of the oracle shows as such: what `make oracles` does.
    from oracles import make_oracles, oracle

    with oracle.quiet():
        for path in sorted(make_oracles.CASES.glob("*.jsonl")):
            committed = (make_oracles.ANSWERS / path.name).read_text(encoding="utf-8")
            assert make_oracles.render(path) == committed, path.stem


def test_what_hangs_the_oracle_is_refused_at_load(engine: str) -> None:
    # The normalizer leaves nothing of "x": the oracle would look for the empty string, and never end on "c c".
    entry = {"single_word": False, "lstrip": True, "rstrip": True, "normalized": True, "special": True}
    value = {
        "version": "1.0",
        "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": ""},
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"},
        "added_tokens": [{"id": 1, "content": "x", **entry}, {"id": 2, "content": "cb", **entry}],
    }
    with pytest.raises(tb.UnsupportedError, match=r"added_tokens\[0\]"):
        tb.Tokenizer.from_json(json.dumps(value), engine=engine)
