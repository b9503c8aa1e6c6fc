"""Columns through the native engine: the boundary, failures, threads, and ids held against the reference engine."""

from __future__ import annotations

import array
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tokbatch import sample
from tokbatch.engine import build_engine, native, wire
from tokbatch.engine.columns import TextColumn
from tokbatch.engine.protocol import Engine
from tokbatch.engine.reference import pre_tokenizers
from tokbatch.errors import EncodeError, TokbatchError
from tokbatch.spec.read import load_spec

ALPHABET = "  \n\t\r aabeorstThQZ''!.,-_<>mask0123é٣中文😀\u3000\u200b"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The native engine of the sample's tokenizer."""
    if native.why_unavailable():
        pytest.skip(f"no native engine: {native.why_unavailable()}")
    return build_engine(load_spec(sample.tokenizer_path()), "native")


@pytest.fixture(scope="module")
def reference() -> Engine:
    return build_engine(load_spec(sample.tokenizer_path()), "reference")


def texts(seed: int, count: int) -> list[str]:
    """Random texts; here and there a long one, with an added token inside."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        letters = chance.sample(ALPHABET, chance.randint(1, 12))
        made.append("".join(chance.choices(letters, k=3000 if number % 50 == 0 else chance.randint(0, 60))))
        if number % 7 == 0:
            made[-1] += " <mask> " + made[-1][:9]
    return made


def test_the_pattern_of_byte_level_stands_in_two_places_alike():
    assert wire.GPT2_PATTERN == pre_tokenizers.GPT2_PATTERN


def test_ids_are_those_of_the_reference(engine, reference):
    column = TextColumn.from_texts(texts(1, 400))
    for add_special_tokens in (True, False):
        assert list(engine.encode_batch(column, add_special_tokens)) == list(
            reference.encode_batch(column, add_special_tokens)
        )


def test_a_document_longer_than_any_window_is_cut_without_a_seam(engine, reference):
    chance = random.Random(2)
    words = ["the", " of", "  ", "\n\n", " 12345", "中文字", " don't", "...", " <mask>"]
    column = TextColumn.from_texts(["".join(chance.choices(words, k=60_000)), "", "a"])
    assert list(engine.encode_batch(column, True)) == list(reference.encode_batch(column, True))


def test_counts_are_those_of_the_ids(engine, reference):
    # Long enough that the rows are counted in several blocks.
    column = TextColumn.from_texts(texts(3, 400) + ["word " * 40_000, ""] * 2)
    for add_special_tokens in (True, False):
        counts = engine.count_batch(column, add_special_tokens)
        assert list(counts) == [len(row) for row in engine.encode_batch(column, add_special_tokens)]
    few = TextColumn.from_texts(texts(4, 60))
    assert engine.count_batch(few, True) == reference.count_batch(few, True)
    assert list(engine.count_batch(TextColumn.from_texts([]), True)) == []


def test_a_row_that_cannot_be_counted_is_told_with_its_number(engine):
    data = b"word " * 40_000
    column = TextColumn(data * 2 + b"\xff", array.array("q", [0, len(data), 2 * len(data), 2 * len(data) + 1]), 3)
    with pytest.raises(EncodeError) as caught:
        engine.count_batch(column, True)
    assert caught.value.row == 2


def test_no_rows_and_empty_rows(engine):
    assert list(engine.encode_batch(TextColumn.from_texts([]), True)) == []
    assert list(engine.encode_batch(TextColumn.from_texts(["", ""]), False)) == [[], []]


def test_a_row_that_is_not_utf8_fails_alone(engine):
    column = TextColumn(b"good\xffbad" + b"good", array.array("q", [0, 4, 8, 12]), 3)
    with pytest.raises(EncodeError, match=r"row 1: byte 0 of the text \(0xFF\) is not UTF-8") as failure:
        engine.encode_batch(column, False)
    assert failure.value.row == 1
    encoded = engine.encode_batch(column, False, keep_going=True)
    rows = list(encoded)
    assert rows[0] == rows[2] != []
    assert rows[1] == []
    assert [row for row, _ in encoded.failures] == [1]


@pytest.mark.parametrize("offsets", [[0, 5, 3], [0, 99], [-1, 2], [1, 0]])
def test_offsets_that_lead_out_of_the_data_are_an_error(engine, offsets):
    with pytest.raises(TokbatchError, match="offsets"):
        engine.encode_batch(TextColumn(b"abcdef", array.array("q", offsets), len(offsets) - 1), False)


def test_a_result_keeps_its_ids_while_others_are_made(engine):
    first = engine.encode_batch(TextColumn.from_texts(["one two three"]), False)
    before = list(first)
    for number in range(20):
        engine.encode_batch(TextColumn.from_texts([f"{number} other words"]), False)
    assert list(first) == before


def test_threads_share_an_engine(engine):
    columns = [TextColumn.from_texts(texts(seed, 60)) for seed in range(8)]
    alone = [list(engine.encode_batch(column, True)) for column in columns]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda column: list(engine.encode_batch(column, True)), columns * 4))
    assert together == alone * 4
