"""The added-token scanner through the public surface: what is matched, what is absorbed, where it must give up."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokbatch as tb


def entry(content: str, token_id: int, **flags: bool) -> dict[str, Any]:
    defaults = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": token_id, "content": content, **defaults, **flags}


def load(engine: str, *entries: dict[str, Any], normalizer: Any = None, **more: Any) -> tb.Tokenizer:
    vocab = {"[UNK]": 0, "a": 1, "b": 2}
    value = {
        "added_tokens": list(entries),
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"},
    }
    return tb.Tokenizer.from_json(json.dumps(value), engine=engine, **more)


def test_a_match_absorbs_all_whitespace_of_any_kind(engine):
    tok = load(engine, entry("<m>", 3, lstrip=True, rstrip=True))

    e = tok.encode("a\t\u00a0\u3000<m>\n\u2003b")

    assert e.tokens == ["a", "\t\u00a0\u3000<m>\n\u2003", "b"]
    assert e.offsets == [(0, 1), (1, 9), (9, 10)]


def test_the_longest_of_the_leftmost_wins_before_anything_is_absorbed(engine):
    tok = load(engine, entry("<m>", 3, lstrip=True), entry("<m><m>", 4))

    assert tok.encode("a <m><m> <m>").ids == [1, 4, 3]


def test_a_rejected_single_word_is_not_searched_again(engine):
    tok = load(engine, entry("xy", 3, single_word=True), entry("x", 4))

    assert tok.encode("xy").ids == [3]
    assert tok.encode("xyz x").ids == [0, 4], "the x of xyz was part of the rejected match"


def test_the_raw_pass_comes_first(engine):
    tok = load(engine, entry("B", 3), entry("ab", 4, normalized=True), normalizer={"type": "Lowercase"})

    assert tok.encode("AB").ids == [1, 3], "B is found in the raw text before ab is in the normalized one"


def test_contents_that_share_a_normalized_form_fail_only_where_it_stands(engine):
    tok = load(
        engine, entry("QQ", 3, normalized=True), entry("qq", 4, normalized=True), normalizer={"type": "Lowercase"}
    )

    assert tok.encode("a b").ids == [1, 2]
    with pytest.raises(tb.EncodeError, match="several added tokens are 'qq'") as caught:
        tok.encode("a Qq b")
    assert caught.value.code == "ambiguous-added-token"


def test_ambiguity_between_tokens_that_are_passed_over_does_not_matter(engine):
    flags = {"normalized": True, "special": True}
    tok = load(
        engine,
        entry("QQ", 3, **flags),
        entry("qq", 4, **flags),
        normalizer={"type": "Lowercase"},
        encode_special_tokens=True,
    )

    assert tok.encode("a Qq b").ids == [1, 0, 2]


def test_a_token_that_the_normalizer_removes_is_refused(engine):
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}

    with pytest.raises(tb.UnsupportedError) as caught:
        load(engine, entry("<m>", 3), entry("  ", 4, normalized=True), normalizer=strip)

    assert caught.value.where == "$.added_tokens[1].content"


def test_whitespace_that_is_already_consumed_is_an_error_of_the_document(engine):
    tok = load(engine, entry("<r>", 3, rstrip=True), entry("  ", 4, lstrip=True))

    assert tok.encode("a<r>  b").ids == [1, 3, 2], "consumed to the last character: nothing is left of it"
    with pytest.raises(tb.EncodeError) as caught:
        tok.encode("a<r>   b")
    assert caught.value.code == "added-token-overlap"
    ids = tok.encode_batch(["a b"])
    assert ids.to_pylist() == [[1, 2]], "the tokenizer goes on"


def test_many_added_tokens_are_all_found(engine):
    entries = [entry(f"<extra_{number}>", 3 + number) for number in range(20_000)]
    tok = load(engine, *entries)

    assert tok.encode("a <extra_19999><extra_1> <extra_10>b").ids == [1, 20_002, 4, 13, 2]


def test_an_earlier_special_entry_of_a_content_is_not_forgotten(engine):
    tok = load(engine, entry("<m>", 3, special=True), entry("<m>", 3))

    assert tok.decode([1, 3], skip_special_tokens=True) == "a"


def test_the_absorbed_whitespace_is_counted(engine):
    tok = load(engine, entry("<m>", 3, lstrip=True, rstrip=True))
    text = "a \u00a0<m>\t b"

    found = tok.verify_batch([text], tok.encode_batch([text])).to_pylist()[0]

    assert (found["lstrip_chars"], found["rstrip_chars"]) == (2, 2)
