"""Patterns in the native engine: the same matches as in the reference engine, and a search given up at the same length.

The reference engine is held against the oracle in tests/engine/reference/test_patterns.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pattern_strategies import pattern_texts, patterns
from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import IdColumn, TextColumn, offsets_view
from tokbatch.engine.protocol import Engine
from tokbatch.errors import SpecError, TokbatchError, UnsupportedError
from tokbatch.spec import TokenizerSpec
from tokbatch.spec.read import read_spec

if native.why_unavailable():
    pytest.skip(f"no native engine: {native.why_unavailable()}", allow_module_level=True)

EMPTY: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"?": 0, "x": 1}, "unk_token": "?"},
}
GAVE_UP = ("EncodeError", "pattern-gave-up")


def engines(part: str, regex: str) -> tuple[Engine, Engine]:
    """The reference engine and the native one of a tokenizer that uses a pattern in one part."""
    pattern = {"Regex": regex}
    written = {
        "normalizer": {"type": "Replace", "pattern": pattern, "content": "<>"},
        "pre_tokenizer": {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False},
        "decoder": {"type": "Replace", "pattern": pattern, "content": "<>"},
    }
    spec = spec_with(part, written[part])
    return build_engine(spec, "reference"), build_engine(spec, "native")


def spec_with(part: str, component: dict[str, Any]) -> TokenizerSpec:
    return read_spec(json.dumps({**EMPTY, part: component}).encode())


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except TokbatchError as error:
        return type(error).__name__, error.code, error.message, error.where, error.hint


def ids_of(engine: Engine, text: str) -> list[int]:
    ids: IdColumn = engine.encode_batch(TextColumn.from_texts([text]), False)
    return memoryview(ids.ids).cast("B").cast("i").tolist()


def check(regex: str, text: str) -> None:
    for part in ("normalizer", "pre_tokenizer"):
        try:
            reference, fast = engines(part, regex)
        except (SpecError, UnsupportedError):
            assume(False)
        assert outcome(fast.trace, text, False) == outcome(reference.trace, text, False)
        assert outcome(fast.encode, text, None, False) == outcome(reference.encode, text, None, False)
        assert outcome(ids_of, fast, text) == outcome(ids_of, reference, text)


@example(r"\Ga", "aaba")
@example(r"a\Kb", "abab")
@example(r"(?>a\K)b", "abab")
@example(r"(?:|a)+", "aab")
@example(r"(?<=a*)b", "aab")
@given(patterns(), pattern_texts())
@settings(max_examples=80, deadline=None)
def test_a_random_pattern_matches_as_in_the_reference_engine(regex: str, text: str):
    check(regex, text)


@pytest.mark.long
@given(patterns(), pattern_texts())
@settings(max_examples=10_000, deadline=None)
def test_many_random_patterns(regex: str, text: str):
    check(regex, text)


# Texts on which repeats inside of repeats have many ways to fail.
repetitive_texts = st.builds(
    lambda unit, times, tail: unit * times + tail,
    st.text("aabc \n", min_size=1, max_size=3),
    st.sampled_from([5, 20, 25, 40, 130, 500]),
    st.text("abc \n", max_size=2),
)


def nested(regex: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["(?:%s)*c", "(?:%s|a)+$", "(?:(?:%s)?){12}b", "(?>(?:%s)*)b", "(?=(?:%s)*c)a"]).map(
        lambda outer: outer % regex
    )


@example("(?:(?:a|a)*c)*c", "a" * 24)
@example("(?=(?:.|.)*c)a", " " * 25)
@example("(?=a*a*a*a*c)b?a", "a" * 399)
@given(patterns().flatmap(nested), repetitive_texts)
@settings(max_examples=25, deadline=None)
def test_a_search_in_a_repetitive_text_is_given_up_where_the_reference_engine_gives_up(regex: str, text: str):
    check(regex, text)


@pytest.mark.long
@pytest.mark.timeout(1800)
@given(patterns().flatmap(nested), repetitive_texts)
@settings(max_examples=3_000, deadline=None)
def test_many_searches_in_repetitive_texts(regex: str, text: str):
    check(regex, text)


@pytest.mark.parametrize(
    ("regex", "gives_up"),
    [
        ("(a|a)*c", True),
        ("(a+)+$", True),
        ("(?=(?:a|a)*c)a", True),
        ("(?:a?){30}a{30}", True),
        ("(a*)*b", False),
        ("(?>(?:a|aa)*)c", False),
        (r"(?:(?:a|a)*\K)*c", True),
    ],
)
@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_a_pattern_that_blows_up_fails_at_the_same_length_in_both_engines(regex: str, gives_up: bool, part: str):
    reference, fast = engines(part, regex)
    outcomes = set()
    for length in range(18, 36):
        text = "a" * length + "b"
        expected = outcome(ids_of, reference, text)
        assert outcome(ids_of, fast, text) == expected
        assert outcome(fast.encode, text, None, False) == outcome(reference.encode, text, None, False)
        outcomes.add(isinstance(expected, tuple) and expected[:2] == GAVE_UP)
    assert (True in outcomes) == gives_up


def test_a_decoder_gives_up_too():
    texts = ["a" * 20, "a" * 30]
    spec = spec_with("decoder", {"type": "Replace", "pattern": {"Regex": "(a|a)*c"}, "content": ""})
    spec = msgspec.structs.replace(
        spec, model=msgspec.structs.replace(spec.model, vocab=dict(zip(texts, (0, 1), strict=True)))
    )
    for name in ("reference", "native"):
        engine = build_engine(spec, name)
        assert engine.decode([0], False) == texts[0]
        assert outcome(engine.decode, [1], False)[:2] == GAVE_UP


def test_only_the_row_fails_on_which_a_pattern_blows_up():
    _, fast = engines("pre_tokenizer", "(a|a)*c")

    ids = fast.encode_batch(TextColumn.from_texts(["ac", "a" * 30, "x"]), False, keep_going=True)

    assert [(row, error.code) for row, error in ids.failures] == [(1, "pattern-gave-up")]
    assert offsets_view(ids.list_offsets).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("regex", "run"),
    [
        ("(a+) ", "a"),
        ("a*b|a", "a"),
        ("(?=.*b)a", "a"),
        ("(?<=a.*)b", "ab"),
        (r"(\w+\s*)+:", "a "),
        ("a*a*$", "a"),
        (r"\s+\S|\s", " "),
        ("(?:ab|a)*c|a", "a"),
    ],
)
def test_hard_patterns_take_time_in_proportion_to_the_text(regex: str, run: str):
    _, fast = engines("pre_tokenizer", regex)

    def seconds(size: int) -> float:
        text = run * size + "d"
        start = time.process_time()
        outcome(ids_of, fast, text)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(160_000) < 0.5 + 8 * seconds(40_000)


@pytest.mark.parametrize(
    ("regex", "code"), [("(?:(?:a|b)*c){70000}", "unsupported"), ("(?:(?:ab){1000}){1000}", "native-unsupported")]
)
def test_a_pattern_that_is_too_large_is_refused_by_name(regex: str, code: str):
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    with pytest.raises(UnsupportedError) as caught:
        build_engine(spec_with("pre_tokenizer", split), "native")
    assert (caught.value.code, caught.value.where) == (code, "$.pre_tokenizer.pattern")
