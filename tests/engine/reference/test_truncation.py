"""Truncation by hand: the lengths. The comparison with the oracle is in `test_post_processors.py`."""

import pytest

from tokbatch.engine.encoding import Encoding
from tokbatch.engine.reference.truncation import truncate_encodings
from tokbatch.errors import EncodeError
from tokbatch.spec import Truncation


def build(n: int) -> Encoding:
    return Encoding.of_text(list(range(n)), ["t"] * n, [(0, 0)] * n, [0] * n)


def lengths(first: int, second: int | None, truncation: Truncation, added_tokens: int = 0) -> tuple[int, int | None]:
    pair = None if second is None else build(second)
    encoding, pair = truncate_encodings(build(first), pair, truncation, added_tokens)
    return len(encoding), None if pair is None else len(pair)


@pytest.mark.parametrize(
    ("first", "second", "room", "expected"),
    [
        (9, None, 5, (5, None)),
        (3, None, 5, (3, None)),
        (13, 5, 5, (3, 2)),
        (5, 13, 5, (2, 3)),
        (6, 6, 5, (2, 3)),
        (2, 9, 6, (2, 4)),
        (9, 2, 6, (4, 2)),
        (9, 9, 4, (2, 2)),
        (1, 9, 2, (1, 1)),
        (0, 9, 2, (0, 2)),
        (4, 3, 0, (0, 0)),
    ],
)
def test_longest_first(first: int, second: int | None, room: int, expected: tuple[int, int | None]) -> None:
    assert lengths(first, second, Truncation(room)) == expected
    assert lengths(first, second, Truncation(room + 3), added_tokens=3) == expected


def test_only_first_and_only_second() -> None:
    assert lengths(6, 3, Truncation(5, strategy="OnlyFirst")) == (2, 3)
    assert lengths(3, 6, Truncation(5, strategy="OnlySecond")) == (3, 2)
    assert lengths(9, None, Truncation(5, strategy="OnlyFirst")) == (5, None)
    assert lengths(5, None, Truncation(5, strategy="OnlySecond")) == (5, None)


@pytest.mark.parametrize(
    ("first", "second", "strategy", "message"),
    [
        (6, None, "OnlySecond", "second text"),
        (1, 9, "OnlyFirst", "cannot cut 5 tokens off a text of 1"),
        (5, 5, "OnlyFirst", "cannot cut 5 tokens off a text of 5"),
    ],
)
def test_what_cannot_be_cut_is_an_error(first: int, second: int | None, strategy: str, message: str) -> None:
    with pytest.raises(EncodeError, match=message) as caught:
        lengths(first, second, Truncation(5, strategy=strategy))
    assert caught.value.where == "$.truncation"


def test_a_length_without_room_for_the_template_cuts_nothing() -> None:
    assert lengths(9, 4, Truncation(2), added_tokens=3) == (9, 4)
    assert lengths(9, 4, Truncation(3), added_tokens=3) == (0, 0)
