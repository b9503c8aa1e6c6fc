"""Random small tokenizers, texts and ids with faults: both engines say the same of every document.

No outside oracle knows verdicts, so the reference engine is the one to agree with.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from generate.verification import Doubt, verifications
from strategies import doubts
from tokbatch.engine import native

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}
pytestmark = pytest.mark.skipif(native.why_unavailable() is not None, reason="there is only one engine here")


def hold_against_the_reference(doubt: Doubt) -> None:
    note(json.dumps(doubt.value))
    note(repr(doubt.texts))
    expected, *found = verifications(doubt) or [None]

    assert found == [expected] * len(found)


@settings(max_examples=60, **SETTINGS)
@given(doubt=doubts())
def test_a_few_random_tokenizers(doubt: Doubt) -> None:
    hold_against_the_reference(doubt)


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(max_examples=3000, **SETTINGS)
@given(doubt=doubts())
def test_many_random_tokenizers(doubt: Doubt) -> None:
    hold_against_the_reference(doubt)
