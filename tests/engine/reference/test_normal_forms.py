from itertools import pairwise, product

import pytest
from hypothesis import given, settings

import component_strategies as strategies
from tokbatch.engine.reference.normal_forms import normal_form

FORMS = [pytest.param(k, c, id=f"NF{'K' if k else ''}{'C' if c else 'D'}") for k, c in product([False, True], repeat=2)]


@pytest.mark.parametrize(("compatible", "composed"), FORMS)
def test_looking_only_at_runs_gives_what_the_definition_gives(compatible, composed):
    form = normal_form(compatible, composed)

    @settings(max_examples=200, deadline=None)
    @given(strategies.TEXTS)
    def check(text):
        changes = list(form.changes(text))
        normalized = "".join(character for character, _ in changes)
        assert form.apply(text) == normalized
        # Every character of the text is accounted for.
        assert sum(1 - change for _, change in changes) == len(text)
        bounds = [0, *(bound for run in form.unstable_runs(text) for bound in run), len(text)]
        for stable, (start, end) in zip([True, False] * len(bounds), pairwise(bounds), strict=False):
            assert not stable or form.apply(text[start:end]) == text[start:end]

    check()


@pytest.mark.parametrize(("compatible", "composed"), FORMS)
def test_normalizing_twice_changes_nothing(compatible, composed):
    form = normal_form(compatible, composed)
    text = "".join(strategies.CHARACTERS)

    assert form.apply(form.apply(text)) == form.apply(text)


def test_hangul_goes_by_arithmetic():
    composed, decomposed = normal_form(False, True), normal_form(False, False)
    syllables = "".join(map(chr, range(0xAC00, 0xD7A4)))

    assert decomposed.apply("각가") == "\u1100\u1161\u11a8\u1100\u1161"
    assert composed.apply(decomposed.apply(syllables)) == syllables
    # U+11A7 is no trailing consonant, though its place in the arithmetic is 0.
    assert composed.apply("가\u11a7") == "가\u11a7"
