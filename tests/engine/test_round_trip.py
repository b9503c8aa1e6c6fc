"""The four verdicts, each with the case that tells it from its neighbours."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokbatch as tb
from tokbatch import sample

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def verdict(tok: tb.Tokenizer, text: str, add_special_tokens: bool = True) -> dict[str, Any]:
    ids = tok.encode_batch([text], add_special_tokens)
    found: dict[str, Any] = tok.verify_batch([text], ids, add_special_tokens).to_pylist()[0]
    return found


@pytest.fixture(scope="module")
def roberta(engine: str) -> tb.Tokenizer:
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine=engine)


@pytest.fixture(scope="module")
def bert(engine: str) -> tb.Tokenizer:
    value = {
        "added_tokens": [
            {"id": 0, "content": "[UNK]", "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        ],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[UNK]": 0, "ab": 1, "##c": 2, ".": 3},
        },
    }
    return tb.Tokenizer.from_json(json.dumps(value), engine=engine)


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_exact(roberta, add_special_tokens):
    assert verdict(roberta, "Hello world\n  twice", add_special_tokens)["verdict"] == "exact"
    assert verdict(roberta, "", add_special_tokens)["verdict"] == "exact"


def test_exact_although_whitespace_was_absorbed(engine):
    """The decoder of WordPiece puts a blank between tokens: it happens to be the one that was absorbed."""
    flags = {"single_word": False, "lstrip": True, "rstrip": False, "normalized": False, "special": True}
    value = {
        "added_tokens": [{"id": 1, "content": "<m>", **flags}],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
    }
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    assert verdict(tok, "a <m> a") == {"verdict": "exact", "lstrip_chars": 1, "rstrip_chars": 0, "unk_tokens": 2}


def test_stripped(roberta):
    assert verdict(roberta, "a \t<mask> b")["verdict"] == "stripped"


def test_normalized(bert):
    assert verdict(bert, "ABC.")["verdict"] == "normalized"
    assert verdict(bert, "abc  ab")["verdict"] == "normalized"


def test_lossy(bert):
    assert verdict(bert, "abc xyz") == {"verdict": "lossy", "lstrip_chars": 0, "rstrip_chars": 0, "unk_tokens": 1}


def test_what_the_decoder_fails_on_is_lossy_and_the_others_are_not(engine):
    strip = {"type": "Strip", "content": " ", "start": 2, "stop": 2}  # fails on tokens of fewer characters
    value = {
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL, strip]},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []},
    }
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)
    texts = ["aaaa", "", "bbbb"]
    ids = tok.encode_batch(texts)

    with pytest.raises(tb.DecodeError):
        tok.decode([])
    assert tok.verify_batch(texts, ids).field("verdict").to_pylist() == ["exact", "lossy", "exact"]


@pytest.mark.parametrize("normalized", [True, False])
def test_whitespace_that_several_tokens_consumed_is_counted_once(engine, normalized):
    """The blank takes all blanks after it, and each of those is matched again."""
    flags = {"single_word": False, "lstrip": False, "rstrip": True, "normalized": normalized, "special": False}
    value = {
        "added_tokens": [{"id": 1, "content": " ", **flags}, {"id": 2, "content": "<m>", **flags}],
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
    }
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    assert tok.encode("a   a").tokens == ["a", "   ", "  ", " ", "a"], "as the oracle has them"
    assert verdict(tok, "a   a")["rstrip_chars"] == 2
    assert verdict(tok, "a<m>  a \t a")["rstrip_chars"] == 4
    length = 20_000
    assert verdict(tok, " " * length) == {
        "verdict": "exact",
        "lstrip_chars": 0,
        "rstrip_chars": length - 1,
        "unk_tokens": 0,
    }


def test_a_truncated_document_is_lossy(roberta):
    from tokbatch.spec import Truncation

    short = roberta.with_options(truncation=Truncation(max_length=4))

    assert verdict(short, "one two three four")["verdict"] == "lossy"
    assert verdict(short, "a b")["verdict"] == "exact"


def test_padding_is_taken_off(roberta):
    from tokbatch.spec import Padding

    for direction in ("Left", "Right"):
        padded = roberta.with_options(padding=Padding(None, direction, None, 1, 0, "<pad>"))
        texts = ["a b c d e", "a", "", "the <mask>"]
        ids = padded.encode_batch(texts)
        assert len({len(row) for row in ids.to_pylist()}) == 1

        verdicts = [row["verdict"] for row in padded.verify_batch(texts, ids).to_pylist()]

        assert verdicts == ["exact", "exact", "exact", "stripped"]


def test_a_template_that_says_the_text_twice(engine):
    single = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "|", "type_id": 0}}] * 2
    value = {
        "pre_tokenizer": BYTE_LEVEL,
        "decoder": BYTE_LEVEL,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single,
            "special_tokens": {"|": {"id": "|", "ids": [1], "tokens": ["|"]}},
        },
        "model": {"type": "BPE", "vocab": {"a": 0, "|": 1}, "merges": []},
    }
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    assert tok.encode_batch(["a"]).to_pylist() == [[0, 1, 0, 1]]
    assert verdict(tok, "a")["verdict"] == "lossy", "the ids without the template's tokens say the text twice"
