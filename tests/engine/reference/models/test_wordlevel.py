"""WordLevel by hand. The comparison with the oracle is in `test_against_the_oracle.py`."""

import pytest

from tokbatch.engine.reference.models.wordlevel import WordLevel
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec


def test_a_pretoken_is_a_token_or_unknown() -> None:
    model = WordLevel(spec.WordLevel({"?": 3, "中 a": 5}, "?"))
    assert model.tokenize("中 a") == [(5, "中 a", 0, 5)]
    assert model.tokenize("中") == [(3, "?", 0, 3)]
    assert (model.token_ids("中 a"), model.token_ids("中")) == ((5,), (3,))
    assert (model.unk_token_id, model.vocab_size, model.byte_token_ids) == (3, 2, frozenset())
    assert (model.id_to_token(5), model.id_to_token(0), model.token_to_id("?")) == ("中 a", None, 3)


def test_without_the_unknown_token_the_pretoken_is_an_error() -> None:
    model = WordLevel(spec.WordLevel({"a": 0}, "?"))
    assert model.token_ids("a") == (0,)
    for method in (model.tokenize, model.token_ids):
        with pytest.raises(EncodeError, match="neither 'b'") as caught:
            method("b")
        assert caught.value.where == "$.model.unk_token"
