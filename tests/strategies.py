"""Hypothesis strategies that all tests share: texts, and whole small tokenizers with questions to ask them.

The generators are in `generate/`, where `scripts/differential.py` uses them too. Random single components are in
`component_strategies.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from generate.compare import Question
from generate.source import Source, drawn
from generate.texts import random_text
from generate.tokenizers import contents_of, random_tokenizer, words_of
from generate.verification import Doubt, random_doubt


def random_question(source: Source, value: dict[str, Any]) -> Question:
    """Make a text (or a pair) for a tokenizer, and ids to decode."""
    words, contents = words_of(value), contents_of(value)
    highest = len(value["model"]["vocab"]) + len(contents) + 2
    return Question(
        text=random_text(source, words, contents),
        pair=random_text(source, words, contents, longest=4) if source.chance(20) else None,
        add_special_tokens=not source.chance(25),
        encode_special_tokens=source.chance(10),
        decode_ids=tuple(source.several(lambda: source.integer(0, highest), 0, 6)),
    )


@st.composite
def texts(draw: Any, vocabulary: Sequence[str] = (), added: Sequence[str] = ()) -> str:
    """Texts glued from vocabulary entries, added tokens with their neighbours, whitespace, awkward characters."""
    return random_text(drawn(draw), vocabulary, added)


@st.composite
def tokenizer_values(draw: Any) -> dict[str, Any]:
    """Whole small tokenizers, as values of a tokenizer.json."""
    return random_tokenizer(drawn(draw))


@st.composite
def tokenizers_with_questions(draw: Any) -> tuple[dict[str, Any], Question]:
    """A small tokenizer and what to ask of it."""
    source = drawn(draw)
    value = random_tokenizer(source)
    return value, random_question(source, value)


@st.composite
def doubts(draw: Any) -> Doubt:
    """A small tokenizer, texts, and ids of which some may be wrong."""
    return random_doubt(drawn(draw))
