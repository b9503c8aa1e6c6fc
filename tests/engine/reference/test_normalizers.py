"""Every normalizer, on both roads, against the oracle: text and alignment of each character."""

import gzip
import json

import pytest
from hypothesis import given, settings

import component_strategies as strategies
import stations
from charsmaps import charsmap, precompiled

BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
SPECS = {
    **{
        name: {"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")
    },
    "BertNormalizer": BERT,
    "BertNormalizer cased": {**BERT, "lowercase": False},
    "BertNormalizer accents": {**BERT, "lowercase": False, "strip_accents": True},
    "Strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "Prepend": {"type": "Prepend", "prepend": "▁"},
    "Replace": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "Replace regex": {"type": "Replace", "pattern": {"Regex": r"\s+|\p{P}"}, "content": "--"},
}


@pytest.mark.parametrize("every", [pytest.param(1499, id="some"), pytest.param(7, id="many", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SPECS)
def test_code_points(oracle, name, every):
    stations.check_code_points(oracle, stations.tokenizer_json(SPECS[name]), every)


@pytest.mark.long
@pytest.mark.parametrize("name", SPECS)
def test_all_code_points_without_alignment(oracle, name):
    file = stations.tokenizer_json(SPECS[name])
    normalizer, theirs = stations.components(file)[0], oracle.component("normalizer", SPECS[name])

    for text in stations.all_code_points():
        assert normalizer.normalize(text) == theirs.normalize_str(text)


@pytest.mark.parametrize("every", [pytest.param(61, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_strip_knows_the_whitespace(oracle, every):
    file = stations.tokenizer_json(SPECS["Strip"])
    normalizer, _ = stations.components(file)
    theirs = oracle.normalizers.Strip()

    for character in stations.scalar_values(every):
        text = f"{character} a{character}b{character}"
        assert normalizer.normalize(text) == theirs.normalize_str(text), hex(ord(character))


@pytest.mark.parametrize("examples", [120, pytest.param(3000, marks=pytest.mark.long)])
def test_random_chains(oracle, examples):
    @settings(max_examples=examples, deadline=None)
    @given(strategies.NORMALIZER_CHAINS, strategies.TEXTS, strategies.TEXTS)
    def check(chain, one, two):
        file = stations.tokenizer_json(chain)
        stations.check(oracle, file, one)
        stations.check(oracle, file, two)

    check()


def test_text_in_front_of_everything_makes_the_string_road_unsafe(oracle):
    replace = {"type": "Replace", "pattern": {"Regex": "^"}, "content": "X "}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    cut = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, byte_level]}
    file = stations.tokenizer_json(replace, cut)

    stations.check(oracle, file, "ab")
    # The X stands there twice: see the docstring of aligned_text.py.
    assert [text for text, _ in stations.our_pieces(file, "ab")] == ["XX", "ab"]
    stations.check(oracle, stations.tokenizer_json(replace, byte_level), "ab")
    assert stations.our_pieces(stations.tokenizer_json(replace, byte_level), "ab") == stations.FAILED
    assert stations.components(file)[0].needs_alignment
    assert not stations.components(stations.tokenizer_json({**replace, "content": ""}))[0].needs_alignment
    assert stations.components(stations.tokenizer_json({"type": "Prepend", "prepend": ""}))[0].needs_alignment


@pytest.mark.parametrize("every", [pytest.param(997, id="some"), pytest.param(3, id="many", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["t5_small", "nmt_unigram_suffix"])
def test_real_character_maps(oracle, shared, name, every):
    with gzip.open(shared / "tokenizers" / f"{name}.json.gz") as file:
        normalizer = json.load(file)["normalizer"]

    assert "Precompiled" in json.dumps(normalizer)
    stations.check_code_points(oracle, stations.tokenizer_json(normalizer), every)


@pytest.mark.parametrize("unit", ["a", " ", "\u0301", "e\u0323\u0301", "\u1100", "\u0915\u094d", "☺\u200d", "\x01"])
@pytest.mark.parametrize("spec", [*SPECS.values(), precompiled(charsmap({"a": "b"}))], ids=[*SPECS, "Precompiled"])
def test_a_long_run_of_one_thing_takes_linear_time(spec, unit):
    # Quadratic time would be minutes, not the time limit of a test.
    text = stations.components(stations.tokenizer_json(spec))[0].normalize(unit * 30_000)

    assert len(text) <= 4 * len(unit) * 30_000
