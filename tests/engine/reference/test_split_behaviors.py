import re

import pytest

from tokbatch.engine.reference.character_patterns import CharacterPattern
from tokbatch.engine.reference.split_behaviors import CHARACTER_TEMPLATES, behavior_spans, pieces_are_matches
from tokbatch.spec.unicode import CodePointSet

DASH = CodePointSet.from_characters("-")
TEXTS = ["", "-", "--", "a", "ab-cd--e", "-a", "a-", "--a--", "a-b-c", "---a"]


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        ("Removed", "ab cd e"),
        ("Isolated", "ab - cd - - e"),
        ("MergedWithPrevious", "ab- cd- - e"),
        ("MergedWithNext", "ab -cd - -e"),
        ("Contiguous", "ab - cd -- e"),
    ],
)
def test_table_of_the_docstring(behavior, expected):
    text = "ab-cd--e"
    matches = [match.span() for match in re.finditer("-", text)]
    spans = behavior_spans(matches, len(text), behavior, False)

    assert " ".join(text[start:end] for start, end in spans) == expected


@pytest.mark.parametrize("behavior", CHARACTER_TEMPLATES)
@pytest.mark.parametrize("text", TEXTS)
def test_templates_give_the_same_as_the_rule(behavior, text):
    matches = [match.span() for match in re.finditer("-", text)]
    pattern = CharacterPattern(CHARACTER_TEMPLATES[behavior], points=DASH)

    assert pattern.spans(text) == behavior_spans(matches, len(text), behavior, False)


@pytest.mark.parametrize("behavior", CHARACTER_TEMPLATES)
@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_matches_that_cover_the_text_are_the_pieces_where_that_is_said(behavior, invert, text):
    matches = [match.span() for match in re.finditer("[^-]+|-", text)]

    if pieces_are_matches(behavior, invert):
        assert behavior_spans(matches, len(text), behavior, invert) == matches
