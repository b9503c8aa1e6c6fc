"""Encodings: cut, joined, padded. What the oracle does with them is compared in the tests of the post-processors."""

import pytest

from tokbatch.engine.encoding import Encoding, merge_encodings
from tokbatch.errors import EncodeError


def build(*ids: int, type_id: int = 0) -> Encoding:
    n = len(ids)
    return Encoding.of_text(list(ids), [f"t{i}" for i in ids], [(i, i + 1) for i in range(n)], list(range(n)), type_id)


def pieces(encoding: Encoding) -> list[list[int]]:
    return [encoding.ids, *(piece.ids for piece in encoding.overflowing)]


def test_a_text_has_no_special_tokens_and_a_template_has_nothing_else() -> None:
    text, special = build(5, 6, type_id=1), Encoding.of_special_tokens([1, 2], ["x", "y"], 3)
    assert (text.special_tokens_mask, text.attention_mask, text.type_ids) == ([0, 0], [1, 1], [1, 1])
    assert (special.special_tokens_mask, special.attention_mask, special.type_ids) == ([1, 1], [1, 1], [3, 3])
    assert (special.offsets, special.word_ids) == ([(0, 0), (0, 0)], [None, None])
    assert len(text) == len(special) == 2


@pytest.mark.parametrize(
    ("max_length", "stride", "direction", "expected"),
    [
        (3, 1, "Right", [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7]]),
        (3, 1, "Left", [[5, 6, 7], [3, 4, 5], [1, 2, 3], [0, 1]]),
        (4, 0, "Right", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (7, 6, "Right", [[0, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7]]),
        (7, 6, "Left", [[1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6]]),
        (8, 9, "Right", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (0, 9, "Right", [[], [0, 1, 2, 3, 4, 5, 6, 7]]),
    ],
)
def test_truncated(max_length: int, stride: int, direction: str, expected: list[list[int]]) -> None:
    assert pieces(build(*range(8)).truncated(max_length, stride, direction)) == expected


def test_cutting_keeps_what_belongs_to_a_token_and_forgets_the_sequence_ranges() -> None:
    encoding = build(7, 8, 9, type_id=2)
    encoding.set_sequence_id(1)
    first = encoding.truncated(2, 0, "Right")
    assert first.sequence_ranges == {}
    last = first.overflowing[0]
    assert (last.ids, last.tokens, last.offsets, last.type_ids, last.word_ids) == ([9], ["t9"], [(2, 3)], [2], [2])
    assert encoding.truncated(3, 0, "Right").sequence_ranges == {1: (0, 3)}


def test_a_stride_that_leaves_no_step_is_an_error() -> None:
    with pytest.raises(EncodeError, match="2 tokens with a stride of 2") as caught:
        build(1, 2, 3).truncated(2, 2, "Right")
    assert caught.value.where == "$.truncation.stride"


def test_joining_combines_the_overflowing_pieces_of_both_sides() -> None:
    left, right = build(1, 2, 3).truncated(1, 0, "Right"), build(7, 8).truncated(1, 0, "Right")
    joined = merge_encodings([left, right])
    assert pieces(joined) == [[1, 7], [2, 7], [2, 8], [3, 7], [3, 8], [1, 8]]
    # A combination is joined by the same rule, so it has combinations of its own.
    assert pieces(joined.overflowing[0]) == [[2, 7], [2, 8]]
    assert pieces(left) == [[1], [2], [3]]
    assert pieces(right) == [[7], [8]]


def test_joining_moves_the_sequence_ranges_along() -> None:
    a, b = build(5, 6), build(7)
    a.set_sequence_id(0)
    b.set_sequence_id(1)
    joined = merge_encodings(
        [Encoding.of_special_tokens([1], ["x"], 0), a, Encoding.of_special_tokens([2], ["y"], 0), b]
    )
    assert joined.sequence_ranges == {0: (1, 3), 1: (4, 5)}
    assert joined.sequence_ids == [None, 0, 0, None, 1]
    assert joined.ids == [1, 5, 6, 2, 7]
    assert build(5, 6).sequence_ids == [0, 0]


def test_a_copy_shares_nothing() -> None:
    encoding = build(1, 2, 3).truncated(1, 0, "Right")
    encoding.set_sequence_id(0)
    copied = encoding.copy()
    assert copied == encoding
    copied.ids.append(4)
    copied.overflowing[0].ids.append(4)
    copied.set_sequence_id(1)
    assert pieces(encoding) == [[1], [2], [3]]
    assert encoding.sequence_ranges == {0: (0, 1)}


@pytest.mark.parametrize("direction", ["Left", "Right"])
def test_padding_fills_the_pieces_too(direction: str) -> None:
    encoding = build(1, 2, 3).truncated(2, 0, "Right")
    encoding.set_sequence_id(0)
    encoding.pad(4, direction, 9, 7, "[PAD]")
    assert encoding.ids == ([9, 9, 1, 2] if direction == "Left" else [1, 2, 9, 9])
    assert [len(piece) for piece in encoding.overflowing] == [4]
    place = slice(0, 2) if direction == "Left" else slice(2, 4)
    assert encoding.tokens[place] == ["[PAD]", "[PAD]"]
    assert encoding.type_ids[place] == [7, 7]
    assert encoding.offsets[place] == [(0, 0), (0, 0)]
    assert encoding.special_tokens_mask[place] == [1, 1]
    assert encoding.attention_mask[place] == [0, 0]
    assert encoding.word_ids[place] == [None, None]
    assert encoding.sequence_ranges == {0: (2, 4) if direction == "Left" else (0, 2)}
    assert {len(getattr(encoding, name)) for name in ("tokens", "offsets", "type_ids", "word_ids")} == {4}


def test_padding_leaves_a_longer_encoding_alone_but_not_its_pieces() -> None:
    encoding = build(1, 2, 3, 4, 5).truncated(3, 0, "Right")
    encoding.pad(3, "Right", 9, 0, "[PAD]")
    assert pieces(encoding) == [[1, 2, 3], [4, 5, 9]]
