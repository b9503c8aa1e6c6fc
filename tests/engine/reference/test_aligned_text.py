"""The oddities of the oracle are here in isolation; that they are the oracle's, `test_normalizers.py` shows."""

import pytest

from tokbatch.engine.reference.aligned_text import AlignedText
from tokbatch.errors import EncodeError


def alignment(text):
    return list(zip(text.text, text.starts, text.ends, strict=True))


def test_a_fresh_text_is_aligned_with_itself():
    text = AlignedText.from_text("ab", 7)

    assert alignment(text) == [("a", 7, 8), ("b", 8, 9)]
    assert (text.start, text.end) == (7, 9)


def test_changes_replace_insert_and_drop():
    text = AlignedText.from_text("abcdef").transform([("A", 0), ("+", 1), ("C", -2), ("F", 0)], initial_removed=1)

    assert alignment(text) == [("A", 1, 2), ("+", 1, 2), ("C", 2, 3), ("F", 5, 6)]
    assert (text.start, text.end) == (0, 6)


def test_a_slice_covers_what_its_characters_come_from():
    text = AlignedText.from_text("abcdef", 10).transform([("A", -1), ("C", -1), ("E", 0), ("F", 0)])

    piece = text.slice(1, 3)

    assert alignment(piece) == [("C", 12, 13), ("E", 14, 15)]
    assert (piece.start, piece.end) == (12, 15)
    assert text.slice(2, 2).text == ""


def test_a_prefix_is_aligned_with_the_first_character():
    assert alignment(AlignedText.from_text("a", 3).prepend("__")) == [("_", 3, 4), ("_", 3, 4), ("a", 3, 4)]
    assert AlignedText.from_text("").prepend("__").text == ""


def test_an_empty_prefix_takes_the_alignment_of_the_first_character_away():
    assert alignment(AlignedText.from_text("ab", 3).prepend("")) == [("a", 3, 3), ("b", 4, 5)]


def test_content_is_aligned_with_the_last_character_it_replaces():
    assert alignment(AlignedText.from_text("abcd").replace([(0, 2), (3, 3)], "xy")) == [
        ("x", 1, 2),
        ("y", 1, 2),
        ("c", 2, 3),
        ("x", 2, 3),
        ("y", 2, 3),
        ("d", 3, 4),
    ]


def test_content_in_front_of_everything_is_aligned_with_nothing():
    text = AlignedText.from_text("ab", 4).replace([(0, 0)], "x")

    assert alignment(text) == [("x", 4, 4), ("a", 4, 5), ("b", 5, 6)]
    assert not text.has_plain_start


def test_a_transformation_of_the_whole_text_goes_behind_what_is_aligned_with_nothing():
    text = AlignedText.from_text("ab").replace([(0, 0)], "x").transform([("X", 0), ("A", 1), ("B", 0)])

    assert text.text == "xXAB"


def test_a_text_that_covers_nothing_keeps_its_old_characters():
    piece = AlignedText.from_text("ab", 5).replace([(0, 0)], "x").slice(0, 1)

    assert (piece.start, piece.end) == (5, 5)
    assert alignment(piece.with_text("X")) == [("X", 5, 5), ("x", 5, 5)]


def test_a_transformation_that_runs_out_of_original_fails():
    text = AlignedText.from_text("ab").replace([(0, 0)], "x")

    with pytest.raises(EncodeError, match="nothing to align it with"):
        text.with_text("XAB")
    with pytest.raises(EncodeError, match="nothing to align it with"):
        text.replace([(1, 3)], "").with_text("X")


def test_runs_are_a_transformation_with_nothing_between():
    text = AlignedText.from_text("abcdef")

    in_runs = text.transform_runs([(1, 3, [("X", -1)]), (5, 6, [("Y", 0), ("Z", 1)])])

    assert in_runs == text.transform([("a", 0), ("X", -1), ("d", 0), ("e", 0), ("Y", 0), ("Z", 1)])
