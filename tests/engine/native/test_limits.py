"""What is too large for the native engine: ids beyond int32, texts of 2 GiB; each is an error of its row, none wraps.

The limit of 2 GiB is set lower for the tests; one long test asks for it as it is.
"""

from __future__ import annotations

import array
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tokbatch import sample
from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import TextColumn
from tokbatch.engine.protocol import Engine
from tokbatch.errors import EncodeError, TokbatchError, UnsupportedError
from tokbatch.spec.read import load_spec, read_spec

if native.why_unavailable():
    pytest.skip(f"no native engine: {native.why_unavailable()}", allow_module_level=True)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "oracles" / "tokenizers"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
LIMIT = 150_000  # more than a window of native/src/pipeline.rs

LARGE = 2**32 - 1
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [LARGE], "tokens": ["<s>"]}},
}
PADDING = {
    "strategy": {"Fixed": 3},
    "direction": "Left",
    "pad_to_multiple_of": None,
    "pad_id": LARGE,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
ADDED = {
    "content": "<m>",
    "id": LARGE,
    "single_word": False,
    "lstrip": False,
    "rstrip": False,
    "normalized": False,
    "special": True,
}
WORD_LEVEL = {"type": "WordLevel", "vocab": {"a": 2**31, "b": 2**31 - 1, "?": 0}, "unk_token": "?"}
SMALL = {"type": "WordLevel", "vocab": {"a": 1, "?": 0}, "unk_token": "?"}
WORD_PIECE = {
    "type": "WordPiece",
    "vocab": {"a": LARGE, "##b": 2**31, "b": 1, "?": 0},
    "unk_token": "?",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
}
BPE = {
    "type": "BPE",
    "vocab": {"a": 2**31, "b": 1, "ab": LARGE - 1, "abb": 2},
    "merges": [["a", "b"], ["ab", "b"]],
}
TOO_LARGE: dict[str, dict[str, Any]] = {
    "word level": {"model": WORD_LEVEL},
    "word piece": {"model": WORD_PIECE},
    "bpe": {"model": BPE},
    "added token": {"model": {**SMALL, "vocab": {"a": 1, "?": 0, "<m>": LARGE}}, "added_tokens": [ADDED]},
    "template": {"model": SMALL, "post_processor": TEMPLATE},
    "padding": {"model": SMALL, "padding": PADDING},
    "cut": {
        "model": WORD_LEVEL,
        "truncation": {"max_length": 1, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
    },
}
TEXTS = ["b", "a", "ab", "abb", "b a b", "<m>a", "", "b b b a"]


@pytest.mark.parametrize("name", TOO_LARGE)
def test_ids_beyond_int32_are_errors_of_their_rows_in_both_engines(name: str):
    spec = read_spec(json.dumps({"pre_tokenizer": {"type": "WhitespaceSplit"}, **TOO_LARGE[name]}).encode())
    found = []
    for engine_name in ("reference", "native"):
        engine = build_engine(spec, engine_name)
        encodings = [engine.encode(text, None, True) for text in TEXTS]
        batches = []
        for texts in (TEXTS, TEXTS[:1], TEXTS[3:]):
            for keep_going in (True, False):
                batches.append(batch_of(engine, texts, keep_going))
        decoded = [engine.decode(encoding.ids, False) for encoding in encodings]
        tokens = [engine.id_to_token(token_id) for token_id in (1, 2**31 - 1, 2**31, LARGE - 1, LARGE)]
        found.append((encodings, batches, decoded, tokens, engine.max_id, engine.vocab_size))
    assert found[0] == found[1]
    assert "does not fit int32" in str(found[0][1])


def batch_of(engine: Engine, texts: list[str], keep_going: bool) -> Any:
    try:
        ids = engine.encode_batch(TextColumn.from_texts(texts), True, keep_going)
    except TokbatchError as error:
        return error.to_dict()
    return list(ids), [(row, error.to_dict()) for row, error in ids.failures], list(ids.truncated_rows)


def test_the_one_id_that_stands_for_none_is_refused_by_name():
    spec = read_spec(json.dumps({"model": {"type": "BPE", "vocab": {"a": LARGE}, "merges": []}}).encode())
    with pytest.raises(UnsupportedError, match="id 4294967295") as caught:
        build_engine(spec, "native")
    assert (caught.value.code, caught.value.where) == ("native-unsupported", "$.model.vocab")


@pytest.fixture
def limited() -> Iterator[None]:
    native._native.set_for_test(LIMIT)
    yield
    native._native.set_for_test()


def rows_of(engine: Engine, texts: list[str]) -> tuple[list[list[int]], dict[int, str]]:
    ids = engine.encode_batch(TextColumn.from_texts(texts), True, keep_going=True)
    return list(ids), {row: error.code for row, error in ids.failures}


@pytest.mark.usefixtures("limited")
def test_a_long_document_of_short_pretokens_is_no_matter():
    spec = load_spec(sample.tokenizer_path())
    text = "the low of it, " * (2 * LIMIT // 15)
    rows, failures = rows_of(build_engine(spec, "native"), [text])
    assert failures == {}
    assert rows == rows_of(build_engine(spec, "reference"), [text])[0]


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_is_too_long_fails_alone(name: str):
    engine = build_engine(load_spec(FOLDER / f"{name}.json"), "native")
    long = "a" * (LIMIT + 1)

    rows, failures = rows_of(engine, ["the low", long, "er", "x" + long + "\n", ""])

    expected, _ = rows_of(engine, ["the low", "er", ""])
    assert failures in ({1: "text-too-long", 3: "text-too-long"}, {})
    if failures:
        assert [rows[0], rows[2], rows[4]] == expected
        assert rows[1] == rows[3] == []
        with pytest.raises(EncodeError, match="more than the native engine takes"):
            engine.encode(long, None, True)


@pytest.mark.usefixtures("limited")
def test_only_the_rows_fail_that_a_normalizer_makes_too_long():
    value = {
        "model": SMALL,
        "normalizer": {"type": "Replace", "pattern": {"String": "x"}, "content": "yz" * 500},
        "pre_tokenizer": {"type": "Whitespace"},
    }
    engine = build_engine(read_spec(json.dumps(value).encode()), "native")

    rows, failures = rows_of(engine, ["a", "x a x", "x" * 200, "a a", "x " * 140, "x" * 149])

    assert failures == {2: "text-too-long"}
    assert [len(row) for row in rows] == [1, 3, 0, 2, 140, 1]


@pytest.mark.long
def test_a_row_of_more_than_two_gibibytes():
    engine = build_engine(load_spec(sample.tokenizer_path()), "native")
    size = 2**31 + 100_000_000
    data = b"a" * size + b"the low"

    # A row far behind in its column, and one that is too long for a pretoken.
    behind = TextColumn(data, array.array("q", [size, size + 3, size + 7]), 2)
    assert list(engine.encode_batch(behind, False)) == list(
        engine.encode_batch(TextColumn.from_texts(["the", " low"]), False)
    )
    long = TextColumn(data, array.array("q", [0, size, size + 3]), 2)
    encoded = engine.encode_batch(long, False, keep_going=True)
    assert [(row, error.code) for row, error in encoded.failures] == [(0, "text-too-long")]
    assert list(encoded) == [[], *engine.encode_batch(TextColumn.from_texts(["the"]), False)]
