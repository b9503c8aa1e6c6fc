"""Random small tokenizers and texts, asked of the oracle and of each engine: everything must be equal.

A few examples at every run, thousands in the long tier. `scripts/differential.py` runs any number of them and prints
what differs as small cases.
"""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

from generate.compare import Question, differences
from strategies import tokenizers_with_questions

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}


def hold_against_the_oracle(oracle: ModuleType, case: tuple[dict[str, Any], Question], engine: str) -> None:
    value, question = case
    with oracle.quiet():
        found = differences(value, question, engine)
    note(json.dumps(value))
    note(repr(question))
    assert found == []


@settings(max_examples=60, **SETTINGS)
@given(case=tokenizers_with_questions())
def test_a_few_random_tokenizers(oracle: ModuleType, engine: str, case: tuple[dict[str, Any], Question]) -> None:
    hold_against_the_oracle(oracle, case, engine)


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(max_examples=3000, **SETTINGS)
@given(case=tokenizers_with_questions())
def test_many_random_tokenizers(oracle: ModuleType, engine: str, case: tuple[dict[str, Any], Question]) -> None:
    hold_against_the_oracle(oracle, case, engine)
