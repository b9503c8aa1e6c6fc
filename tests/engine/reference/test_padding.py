"""Padding by hand: the lengths. The comparison with the oracle is in `test_post_processors.py`."""

from typing import Any

import pytest

from tokbatch.engine.encoding import Encoding
from tokbatch.engine.reference.padding import LONGEST, pad_encodings, padded_length
from tokbatch.errors import EncodeError
from tokbatch.spec import Padding


def build(**fields: Any) -> Padding:
    defaults = {"fixed_length": None, "direction": "Right", "pad_to_multiple_of": None}
    return Padding(**{**defaults, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 5),
        ({"fixed_length": 3}, 3),
        ({"fixed_length": 9}, 9),
        ({"pad_to_multiple_of": 8}, 8),
        ({"pad_to_multiple_of": 5}, 5),
        ({"pad_to_multiple_of": 0}, 5),
        ({"fixed_length": 9, "pad_to_multiple_of": 4}, 12),
    ],
)
def test_padded_length(fields: dict[str, int], expected: int) -> None:
    assert padded_length([2, 5, 0], build(**fields)) == expected


def test_all_encodings_of_a_batch_become_equally_long() -> None:
    encodings = [Encoding.of_text([1] * n, ["t"] * n, [(0, 0)] * n, [0] * n) for n in (0, 3, 1)]
    pad_encodings(encodings, build(pad_id=7))
    assert [encoding.ids for encoding in encodings] == [[7, 7, 7], [1, 1, 1], [1, 7, 7]]
    pad_encodings([], build())


def test_a_length_that_would_fill_the_memory_is_an_error() -> None:
    assert padded_length([], build(fixed_length=LONGEST)) == LONGEST
    with pytest.raises(EncodeError, match="cannot pad to") as caught:
        padded_length([1], build(pad_to_multiple_of=2**40))
    assert caught.value.where == "$.padding"
