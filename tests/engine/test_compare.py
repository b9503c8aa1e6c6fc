"""The first stage at which two traces differ."""

from __future__ import annotations

import msgspec
import pytest

import tokbatch as tb
from tokbatch import sample
from tokbatch.engine.compare import Difference, first_difference
from tokbatch.engine.protocol import Stage


@pytest.fixture(scope="module")
def spec() -> tb.TokenizerSpec:
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine="reference").spec


def trace(spec: tb.TokenizerSpec, engine: str, text: str = "Hello  world <mask>!") -> list[Stage]:
    return tb.Tokenizer(spec, engine).engine.trace(text, True)


def test_equal_traces_have_no_difference(spec, engine):
    assert first_difference(trace(spec, engine), trace(spec, "reference")) is None


def test_the_first_stage_is_named_and_not_a_later_one(spec, engine):
    from tokbatch.spec.pre_tokenizers import ByteLevel

    other = msgspec.structs.replace(spec, pre_tokenizer=ByteLevel(True, True, True))

    found = first_difference(trace(spec, engine), trace(other, engine))

    assert found == Difference("pretokens", 0, ("Hello", None), ("ĠHello", None))
    assert "pretokens: entry 0 is 'Hello' on one side, 'ĠHello' on the other" in str(found)


def test_a_difference_of_the_template_shows_only_at_the_end(spec, engine):
    other = msgspec.structs.replace(spec, post_processor=None)

    found = first_difference(trace(spec, engine), trace(other, engine))

    assert found is not None
    assert (found.stage, found.index) == ("post-processed", 0)


def test_a_side_that_ends_early_is_missing():
    left, right = [Stage("model", ["a"], [1])], [Stage("model", ["a", "b"], [1, 2])]

    found = first_difference(left, right)

    assert found == Difference("model", 1, None, ("b", 2))
    assert "missing on one side" in str(found)


def test_traces_of_other_stages_are_refused():
    with pytest.raises(ValueError, match="different stages"):
        first_difference([Stage("model", [], [])], [Stage("pretokens", [], [])])
