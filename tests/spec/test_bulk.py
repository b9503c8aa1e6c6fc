"""The quick way for long tables: what it gives is what the slow way gives, and what is unusual it leaves alone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tokbatch.errors import SpecError
from tokbatch.spec import bulk, digest
from tokbatch.spec.read import read_spec

TOKENS = [f"t{number}é" for number in range(8000)]


def _bpe(**changes: Any) -> dict[str, Any]:
    vocab = {token: token_id for token_id, token in enumerate(TOKENS)}
    vocab.update({left + right: len(vocab) for left, right in ()})
    merges = [["t1é", "t2é"]] * 8000
    return {"type": "BPE", "vocab": {**vocab, "t1ét2é": 8000}, "merges": merges, **changes}


def _unigram(seed: int = 3) -> dict[str, Any]:
    rng = random.Random(seed)
    return {"type": "Unigram", "unk_id": 0, "vocab": [[token, -rng.random() * 20] for token in TOKENS]}


def _text(model: dict[str, Any], **more: Any) -> str:
    return json.dumps({"version": "1.0", **more, "model": model}, ensure_ascii=False)


def _slowly(text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(bulk, "LONG", 1 << 40)
        return read_spec(text)


@pytest.mark.parametrize(
    "model",
    [
        _bpe(),
        _bpe(merges=["t1é t2é"] * 8000),
        _bpe(merges=["#version: 0.2", *["t1é t2é"] * 8000]),
        _unigram(),
        {"type": "WordLevel", "vocab": _bpe()["vocab"], "unk_token": "t1é"},
    ],
    ids=["pairs", "lines", "lines with a version", "scores", "word level"],
)
def test_both_ways_give_the_same(model: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    text = _text(model)
    rest, tables = bulk.split_bulk(text.encode())

    assert tables
    assert len(rest) < len(text) / 2
    assert read_spec(text) == _slowly(text, monkeypatch)
    assert digest.digest(read_spec(text)) == digest.digest(_slowly(text, monkeypatch))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('"t7é": 7,', '"t7é": -0,', '$.model.vocab["t7é"]'),
        ('"t7é": 7,', '"t7é": 4294967296,', '$.model.vocab["t7é"]'),
        ('"t7é": 7,', '"t7é": 7.0,', '$.model.vocab["t7é"]'),
        ('"t7é": 7,', '"t7é": null,', '$.model.vocab["t7é"]'),
        ('"t7é": 7,', '"t7é": 07,', "line 1 column"),
        ('["t1é", "t2é"]]', '["t1é"]]', "$.model.merges[7999]"),
        ('["t1é", "t2é"]]', '["t1é", 5]]', "$.model.merges[7999][1]"),
        ('["t1é", "t2é"]]', '"t1é t2é"]', "$.model.merges[7999]"),
        ('["t1é", "t2é"]]', '["t1é", "t9é"]]', "$.model.merges[7999]"),
        ('["t1é", "t2é"]]', '["t1é", "\\ud800"]]', "$.model.merges[7999][1]"),
        ('["t1é", "t2é"]]', '["t1é", "t2é"],]', "line 1 column"),
    ],
)
def test_one_wrong_entry_in_a_long_table_is_found_and_named(old: str, new: str, where: str) -> None:
    text = _text(_bpe())
    assert text.count(old) == 1

    with pytest.raises(SpecError) as caught:
        read_spec(text.replace(old, new))

    assert str(caught.value.where).startswith(where)


@pytest.mark.parametrize("score", ["null", '"a"', "[1]", "true", "1e999", "1.", "--1"])
def test_one_wrong_score_is_found_and_named(score: str) -> None:
    text = _text({**_unigram(), "vocab": [*_unigram()["vocab"], ["last", 0.125]]}).replace(
        '"last", 0.125', f'"last", {score}'
    )

    with pytest.raises(SpecError) as caught:
        read_spec(text)

    assert "line 1" in str(caught.value) or str(caught.value.where) == "$.model.vocab[8000][1]"


@pytest.mark.parametrize("score", ["-0.0", "0", "-7", "1e-5", "123456789012345678901234567890.5", "0." + "9" * 400])
def test_odd_scores_are_the_same_both_ways(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _text({**_unigram(), "vocab": [*_unigram()["vocab"], ["last", 0.125]]}).replace(
        '"last", 0.125', f'"last", {score}'
    )
    quick, slow = read_spec(text), _slowly(text, monkeypatch)

    assert repr(quick.model.vocab[-1]) == repr(slow.model.vocab[-1])
    assert quick == slow


def test_a_table_that_stands_in_the_file_twice_is_the_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = json.dumps(_bpe()["vocab"], ensure_ascii=False)
    twice = _text(_bpe()).replace('"merges"', f'"copy": {table}, "merges"')
    repeated = _text(_bpe()).replace('"type"', f'"vocab": {table}, "type"')
    other_last = _text(_bpe())[:-2] + ', "vocab": {"t1é": 0, "t2é": 1, "t1ét2é": 2}}}'

    assert read_spec(twice) == _slowly(twice, monkeypatch)
    assert read_spec(twice).ignored_keys == ("$.model.copy",)
    assert read_spec(repeated) == _slowly(repeated, monkeypatch)
    assert read_spec(other_last) == _slowly(other_last, monkeypatch)
    assert len(read_spec(other_last).model.vocab) == 3


def test_a_table_of_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, ids = _unigram()["vocab"], _bpe()["vocab"]
    for model in (_bpe(vocab=scores), {**_unigram(), "vocab": ids}, {"type": "WordLevel", "vocab": scores}):
        text = _text(model)
        with pytest.raises(SpecError):
            read_spec(text)
        with pytest.raises(SpecError):
            _slowly(text, monkeypatch)
