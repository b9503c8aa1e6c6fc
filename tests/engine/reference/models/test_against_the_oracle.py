"""Random models and pretokens: tokens, ids and byte offsets are the oracle's, and it fails where we do."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model_strategies as strategies
from tokbatch.engine.reference.models import build_model
from tokbatch.errors import EncodeError

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))


def compare(oracle: ModuleType, model: dict[str, Any], pretoken: str) -> None:
    """Hold one pretoken against the oracle, with `tokenize` and with `token_ids`."""
    ours, theirs = build_model(strategies.spec_of(model)), oracle.tokenizer({"version": "1.0", "model": model}).model
    try:
        with oracle.guard():
            expected = [(token.id, token.value, *token.offsets) for token in theirs.tokenize(pretoken)]
    except oracle.OracleError:
        with pytest.raises(EncodeError):
            ours.tokenize(pretoken)
        with pytest.raises(EncodeError):
            ours.token_ids(pretoken)
        return
    assert [tuple(token) for token in ours.tokenize(pretoken)] == expected
    assert ours.token_ids(pretoken) == tuple(token_id for token_id, *_ in expected)
    for token_id in range(50):
        assert ours.id_to_token(token_id) == theirs.id_to_token(token_id)
    for token in dict(model["vocab"]):
        assert ours.token_to_id(token) == theirs.token_to_id(token)


@settings(RANDOM, max_examples=120)
@given(data=st.data(), model=strategies.MODELS)
def test_models(oracle: ModuleType, data: st.DataObject, model: dict[str, Any]) -> None:
    compare(oracle, model, data.draw(strategies.pretokens(model)))


@pytest.mark.long
@settings(RANDOM, max_examples=2_000)
@given(data=st.data(), model=strategies.MODELS)
def test_many_models(oracle: ModuleType, data: st.DataObject, model: dict[str, Any]) -> None:
    compare(oracle, model, data.draw(strategies.pretokens(model)))


@settings(RANDOM, max_examples=50)
@given(data=st.data(), model=strategies.bpe_models(shares_ids=True))
def test_bpe_vocabularies_in_which_tokens_share_ids(
    oracle: ModuleType, data: st.DataObject, model: dict[str, Any]
) -> None:
    # The strings of shared ids depend on a random hash order in the oracle; ids and places do not.
    pretoken = data.draw(strategies.pretokens(model))
    ours, theirs = build_model(strategies.spec_of(model)), oracle.tokenizer({"version": "1.0", "model": model}).model
    try:
        with oracle.guard():
            expected = [(token.id, *token.offsets) for token in theirs.tokenize(pretoken)]
    except oracle.OracleError:
        with pytest.raises(EncodeError):
            ours.tokenize(pretoken)
        return
    assert [(token.id, token.start, token.end) for token in ours.tokenize(pretoken)] == expected
    assert ours.token_ids(pretoken) == tuple(token_id for token_id, *_ in expected)
