"""Reading files: where they may lie, what errors say, what is ignored and what is refused by name; real files."""

from __future__ import annotations

import gc
import gzip
import json
import pathlib
from types import ModuleType
from typing import Any

import pytest
from documents import FLAGS, PADDING, WORD_LEVEL, document

from tokbatch.errors import InputError, SpecError, TokbatchError, UnsupportedError
from tokbatch.spec import AddedToken, decoders, models, normalizers, post_processors, pre_tokenizers
from tokbatch.spec.read import load_spec, read_spec
from tokbatch.spec.refusals import REFUSALS

SMALL = json.dumps(document())


def test_a_file_a_packed_file_and_a_folder_give_the_same(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tokenizer.json").write_text(SMALL)
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(SMALL.encode()))
    expected = read_spec(SMALL)

    assert load_spec(tmp_path / "tokenizer.json") == expected
    assert load_spec(str(tmp_path / "packed.json.gz")) == expected
    assert load_spec(tmp_path) == expected
    assert load_spec(tmp_path, encode_special_tokens=True).encode_special_tokens


def test_files_that_cannot_be_read_are_input_errors(tmp_path: pathlib.Path) -> None:
    packed = gzip.compress(SMALL.encode())
    (tmp_path / "cut.json.gz").write_bytes(packed[:-9])
    (tmp_path / "flipped.json.gz").write_bytes(packed[:20] + b"\xff\xff" + packed[22:])
    (tmp_path / "plain.json.gz").write_text(SMALL)
    for name in ("absent.json", "cut.json.gz", "flipped.json.gz", "plain.json.gz", "."):
        with pytest.raises(InputError) as caught:
            load_spec(tmp_path / name)
        assert str(tmp_path) in str(caught.value.where)


def test_a_text_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(SpecError, match="lone surrogate"):
        read_spec(SMALL.replace("[UNK]", "\ud800"))


def test_reading_leaves_the_garbage_collector_as_it_was() -> None:
    assert gc.isenabled()
    read_spec(SMALL)
    assert gc.isenabled()
    with pytest.raises(SpecError):
        read_spec("{")
    assert gc.isenabled()
    gc.disable()
    try:
        read_spec(SMALL)
        assert not gc.isenabled()
    finally:
        gc.enable()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (document(version="2.0"), "$.version", '"2.0"'),
    (document(extra=None), "$.extra", '"extra"'),
    ({"version": "1.0"}, "$.model", "no model"),
    (document(model={"type": "BPE", "vocab": {}}), "$.model", "`merges`"),
    (document(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}), "$.model.merges[0]", '"b"'),
    (document(model={"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "a"]]}), "$.model.merges[0]", '"a" and "a"'),
    (document(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["a  a"]}), "$.model.merges[0]", '"a  a"'),
    (document(model={**WORD_LEVEL, "vocab": {"a": 2**32}}), "$.model.vocab.a", "4294967296"),
    (document(model={"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1}), "$.model.unk_id", "1 is beyond"),
    (document(added_tokens=[{"id": -1, "content": "a", **FLAGS}]), "$.added_tokens[0].id", "-1"),
    (document(added_tokens=[{"id": 1, "content": "a"}]), "$.added_tokens[0]", "`single_word`"),
    (document(padding={**PADDING, "strategy": {"Fixed": -1}}), "$.padding.strategy.Fixed", "-1"),
    (document(normalizer={"type": "Strip", "strip_left": 1}), "$.normalizer.strip_left", "1 where true or false"),
    (
        document(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": 5}]}),
        "$.normalizer.normalizers[1].prepend",
        "5 where a string",
    ),
    (
        document(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        "$.normalizer.precompiled_charsmap",
        '"AAAA" is no character map',
    ),
    (
        document(pre_tokenizer={"type": "CharDelimiterSplit", "delimiter": "ab"}),
        "$.pre_tokenizer.delimiter",
        '"ab" where a string of one character',
    ),
    (
        document(pre_tokenizer={"type": "Metaspace", "replacement": "_", "add_prefix_space": False}),
        "$.pre_tokenizer",
        "`add_prefix_space` is false",
    ),
    (
        document(pre_tokenizer={"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}),
        "$.pre_tokenizer.pattern.Regex",
        "(",
    ),
    (document(decoder={"prefix": "x"}), "$.decoder", "`prefix`"),
]


@pytest.mark.parametrize(("whole", "where", "message"), WRONG, ids=[where for _, where, _ in WRONG])
def test_errors_name_the_path_and_the_value(whole: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_spec(json.dumps(whole))

    assert caught.value.where == where
    assert message in str(caught.value)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("unknown type", document(normalizer={"type": "Magic", "prepend": "a"}), "$.normalizer.type"),
    ("unknown type", document(decoder={"type": None, "suffix": "a"}), "$.decoder.type"),
    ("unknown type", document(model={**WORD_LEVEL, "type": "Magic"}), "$.model.type"),
    ("array for object", document(normalizer=["StripAccents"]), "$.normalizer"),
    ("array for object", document(truncation=["Right", 8, "LongestFirst", 0]), "$.truncation"),
    (
        "object for name",
        document(pre_tokenizer={"type": "Punctuation", "behavior": {"Isolated": None}}),
        "$.pre_tokenizer.behavior",
    ),
    (
        "dropout",
        document(model={"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []}),
        "$.model.dropout",
    ),
    (
        "length of zero",
        document(
            pre_tokenizer={
                "type": "Sequence",
                "pretokenizers": [{"type": "Whitespace"}, {"type": "FixedLength", "length": 0}],
            }
        ),
        "$.pre_tokenizer.pretokenizers[1].length",
    ),
    (
        "skipped value",
        document(truncation={"max_length": 1, "strategy": "OnlyFirst", "stride": 0, "x": "\ud800"}),
        "$.truncation.x",
    ),
]


def test_each_refusal_has_an_example() -> None:
    assert {name for name, _, _ in REFUSED} == set(REFUSALS)


@pytest.mark.parametrize(("name", "whole", "where"), REFUSED, ids=[f"{name} {where}" for name, _, where in REFUSED])
def test_refusals_by_name(oracle: ModuleType, name: str, whole: dict[str, Any], where: str) -> None:
    text = json.dumps(whole)
    with pytest.raises(UnsupportedError) as caught:
        read_spec(text)

    assert caught.value.where == where
    assert caught.value.code == "unsupported"
    assert str(caught.value.hint).startswith(REFUSALS[name])
    if where != "$.model.type":
        assert oracle.tokenizer(text) is not None  # Else it would be no refusal but an error.


@pytest.mark.parametrize("dropout", ["null", "0", "0.0", "-0.0", "1", "1.0", "1.00000001", "1e-50"])
def test_dropouts_that_are_certain_are_read(dropout: str) -> None:
    text = json.dumps(document(model={"type": "BPE", "dropout": 5, "vocab": {"a": 0}, "merges": []}))

    assert read_spec(text.replace("5", dropout)).model.dropout in (None, 0.0, 1.0)


def test_ignored_keys_are_listed_in_order() -> None:
    added_token = {"id": 0, "content": "a", **FLAGS, "type": "AddedToken"}
    whole = document(
        truncation={"max_length": 1, "strategy": "OnlyFirst", "stride": 0, "old": [1]},
        added_tokens=[added_token],
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC", "speed": 3}], "name": "n"},
        post_processor={
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0, "why": None}}],
            "pair": [],
            "special_tokens": {"a": {"id": "a", "ids": [], "tokens": [], "note": ""}},
        },
        model={**WORD_LEVEL, "merges": []},
    )

    assert sorted(read_spec(json.dumps(whole)).ignored_keys) == [
        "$.added_tokens[0].type",
        "$.model.merges",
        "$.normalizer.name",
        "$.normalizer.normalizers[0].speed",
        "$.post_processor.single[0].Sequence.why",
        "$.post_processor.special_tokens.a.note",
        "$.truncation.old",
    ]


def test_older_spellings_give_the_same_values() -> None:
    bert = {"clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    spec = read_spec(
        json.dumps(
            document(
                normalizer={"type": "Bert", **bert},
                pre_tokenizer={"type": "Metaspace", "replacement": "_", "str_rep": "_", "add_prefix_space": True},
                post_processor={"sep": ["a", 1], "cls": ["b", 2], "trim_offsets": True, "add_prefix_space": False},
                decoder={"prefix": "##", "cleanup": False},
                model={"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["#version: 0.2", "a b"]},
                added_tokens=[{"id": 9, "content": "a", **FLAGS}],
            )
        )
    )

    assert spec.normalizer == normalizers.BertNormalizer(strip_accents=None, **bert)
    assert spec.pre_tokenizer == pre_tokenizers.Metaspace("_", "always", True)
    assert spec.post_processor == post_processors.RobertaProcessing(("a", 1), ("b", 2), True, False)
    assert spec.decoder == decoders.WordPiece("##", False)
    assert spec.model == models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")])
    assert spec.added_tokens == (AddedToken(id=9, content="a", **FLAGS),)


def test_a_bpe_without_type_whose_merges_are_broken_is_a_word_level_model() -> None:
    model = {"vocab": {"a": 0}, "unk_token": "a", "merges": ["a b"]}

    assert read_spec(json.dumps(document(model=model))).model == models.WordLevel({"a": 0}, "a")


def test_small_real_tokenizers_load(shared: pathlib.Path) -> None:
    for path in sorted((shared / "tokenizers").glob("*.json.gz")):
        if path.stat().st_size < 300_000:
            spec = load_spec(path)
            assert spec.model.vocab, path.name
            assert spec.ignored_keys == (), path.name


@pytest.mark.long
def test_all_real_tokenizers_load(shared: pathlib.Path) -> None:
    for path in sorted((shared / "tokenizers").glob("*.json.gz")):
        assert len(load_spec(path).model.vocab) > 10_000, path.name


def test_broken_real_tokenizers_are_refused(shared: pathlib.Path, oracle: ModuleType) -> None:
    for path in sorted((shared / "tokenizers_bad").glob("*.json")):
        with pytest.raises(oracle.OracleError):
            oracle.tokenizer(path.read_text())
        with pytest.raises(TokbatchError):
            load_spec(path)
