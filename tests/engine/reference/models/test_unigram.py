"""Unigram by hand. The comparison with the oracle is in `test_against_the_oracle.py`."""

import time

import pytest

from tokbatch.engine.reference.models.unigram import Unigram
from tokbatch.errors import EncodeError
from tokbatch.spec import models as spec


def build(*vocab: tuple[str, float], unk_id: int | None = 0, byte_fallback: bool = False) -> Unigram:
    return Unigram(spec.Unigram(list(vocab), unk_id, byte_fallback))


def values(model: Unigram, text: str) -> list[str]:
    return [token.value for token in model.tokenize(text)]


def test_the_highest_sum_wins_and_of_equal_sums_the_last_token_that_begins_further_left() -> None:
    model = build(("?", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -2.5), ("bb", -2.0))
    assert values(model, "ab") == ["a", "b"]
    assert values(model, "bb") == ["bb"]
    assert values(model, "bbb") == ["b", "bb"]


def test_sums_are_rounded_in_the_order_from_left_to_right() -> None:
    # 0.1 + 0.2 + 0.3 is above 0.6 where it is added up from the left, and 0.6 where it is added up from the right.
    model = build(("?", -9.0), ("a", 0.1), ("b", 0.2), ("c", 0.3), ("abc", 0.6))
    assert 0.1 + 0.2 + 0.3 > 0.6 == 0.1 + (0.2 + 0.3)
    assert values(model, "abc") == ["a", "b", "c"]
    backwards = build(("?", -9.0), ("a", 0.1), ("b", 0.2), ("c", 0.3), ("cba", 0.6))
    assert 0.3 + 0.2 + 0.1 == 0.6
    assert values(backwards, "cba") == ["cba"]


def test_an_unknown_character_scores_ten_below_the_lowest_token() -> None:
    # x is spelled as unknown at -3 - 10; with a at 10 that is the score of xa.
    assert values(build(("?", 20.0), ("a", 10.0), ("xa", -3.0)), "xa") == ["xa"]
    assert values(build(("?", 20.0), ("a", 10.5), ("xa", -3.0)), "xa") == ["x", "a"]
    # The lowest score counts even if it is that of an entry which a later one replaces.
    assert values(build(("?", 20.0), ("b", -4.0), ("a", 10.5), ("xa", -3.0), ("b", 0.0)), "xa") == ["xa"]


def test_an_unknown_run_is_one_token_whose_value_is_the_text() -> None:
    model = build(("?", 0.0), ("a", -1.0))
    assert model.tokenize("中éa中") == [(0, "中é", 0, 5), (1, "a", 5, 6), (0, "中", 6, 9)]
    assert model.token_ids("中éa中") == (0, 1, 0)


def test_the_unknown_token_as_text_grows_into_the_run() -> None:
    model = build(("<unk>", 0.0), ("a", -1.0))
    assert values(model, "a<unk>a") == ["a", "<unk>", "a"]
    assert values(model, "a中<unk>éa") == ["a", "中<unk>é", "a"]


def test_a_run_that_happens_to_be_a_token_has_its_id() -> None:
    # Spelling both characters as unknown costs less than the token does, yet the run is then looked up.
    model = build(("?", 30.0), ("xy", 30.0), ("a", 30.0))
    assert model.tokenize("xya") == [(1, "xy", 0, 2), (2, "a", 2, 3)]


def test_bytes_are_all_or_nothing_for_a_run_and_each_covers_the_run() -> None:
    model = build(("?", 0.0), ("a", -1.0), ("<0xC3>", -2.0), ("<0xA9>", -2.0), byte_fallback=True)
    assert model.tokenize("éa") == [(2, "<0xC3>", 0, 2), (3, "<0xA9>", 0, 2), (1, "a", 2, 3)]
    assert model.tokenize("é中a") == [(0, "é中", 0, 5), (1, "a", 5, 6)]
    assert model.byte_token_ids == {2, 3}
    assert build(("?", 0.0), ("<0xC3>", -2.0)).byte_token_ids == frozenset()


def test_of_a_piece_that_is_there_twice_the_last_one_counts() -> None:
    model = build(("?", 0.0), ("a", -1.0), ("a", -0.5))
    assert model.token_ids("aa") == (2, 2)
    assert (model.id_to_token(1), model.id_to_token(2), model.id_to_token(3), model.vocab_size) == ("a", "a", None, 3)


def test_without_an_unknown_token_an_unknown_character_is_an_error() -> None:
    model = build(("a", -1.0), ("xa", -1.0), unk_id=None)
    assert model.token_ids("a") == (0,)
    for method in (model.tokenize, model.token_ids):
        with pytest.raises(EncodeError, match="names no unknown token") as caught:
            method("xa")
        assert caught.value.where == "$.model.unk_id"


def test_no_error_where_the_unknown_character_is_already_part_of_a_better_token() -> None:
    model = build(("x", -1.0), ("xa", -1.0), ("b", -1.0), unk_id=None)
    assert values(model, "xab") == ["xa", "b"]


def test_time_is_linear_in_the_length_of_a_text() -> None:
    model = build(("?", 0.0), *(("a" * n, -float(n)) for n in range(1, 17)))

    def seconds(n: int) -> float:
        started = time.process_time()
        assert len(model.token_ids("a" * 16 * n)) == n
        return time.process_time() - started

    assert min(seconds(8_000) for _ in range(3)) < 8 * min(seconds(2_000) for _ in range(3))
