"""WordPiece by hand. The comparison with the oracle is in `test_against_the_oracle.py`."""

import time

import pytest

from tokbatch.engine.reference.models.wordpiece import WordPiece
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec


def build(*tokens: str, prefix: str = "##", longest: int = 100) -> WordPiece:
    return WordPiece(spec.WordPiece({token: i for i, token in enumerate(tokens)}, "[UNK]", prefix, longest))


def test_the_longest_token_is_taken_though_another_way_would_go_on() -> None:
    assert [token.value for token in build("ab", "a", "##bc", "##c", "[UNK]").tokenize("abc")] == ["ab", "##c"]
    assert [token.value for token in build("ab", "a", "##bc", "[UNK]").tokenize("abc")] == ["[UNK]"]


def test_places_are_in_bytes_and_without_the_prefix() -> None:
    tokens = build("é", "##中x", "[UNK]").tokenize("é中x")
    assert [tuple(token) for token in tokens] == [(0, "é", 0, 2), (1, "##中x", 2, 6)]


def test_the_unknown_token_covers_all_of_the_pretoken() -> None:
    assert build("a", "[UNK]").tokenize("a中") == [(1, "[UNK]", 0, 4)]
    assert build("a", "[UNK]").token_ids("a中") == (1,)


def test_the_limit_counts_characters() -> None:
    model = build("中", "##中", "[UNK]", longest=3)
    assert model.token_ids("中中中") == (0, 1, 1)
    assert model.token_ids("中中中中") == (2,)


def test_an_empty_prefix_makes_no_difference_between_first_and_inner() -> None:
    assert build("ab", "c", "[UNK]", prefix="").token_ids("cabab") == (1, 0, 0)


def test_without_the_unknown_token_the_pretoken_is_an_error() -> None:
    model = build("a")
    assert model.unk_token_id is None
    for method in (model.tokenize, model.token_ids):
        with pytest.raises(EncodeError, match="'ab'") as caught:
            method("ab")
        assert caught.value.where == "$.model.unk_token"


def test_time_is_linear_in_the_length_of_a_pretoken() -> None:
    model = build("a", "##a", "##aaaa", "[UNK]", longest=10**9)

    def seconds(n: int) -> float:
        started = time.process_time()
        assert model.token_ids("a" * (4 * n + 1)) == (0, *[2] * n)
        return time.process_time() - started

    assert min(seconds(40_000) for _ in range(3)) < 8 * min(seconds(10_000) for _ in range(3))
