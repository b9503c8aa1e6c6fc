"""Every pre-tokenizer, on both roads, against the oracle: the pieces and the alignment of each character."""

import pytest
from hypothesis import given, settings

import component_strategies as strategies
import stations
from tokbatch.engine.reference.pre_tokenizers import build_pre_tokenizer
from tokbatch.errors import EncodeError
from tokbatch.spec import pre_tokenizers as specs
from tokbatch.spec.unicode import set_named

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
SPECS = {
    **{name: {"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")},
    **{f"Punctuation {behavior}": {"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS},
    "Digits": {"type": "Digits", "individual_digits": False},
    "Digits individual": {"type": "Digits", "individual_digits": True},
    "Metaspace": metaspace("always"),
    "ByteLevel": BYTE_LEVEL,
    "ByteLevel without regex": {**BYTE_LEVEL, "use_regex": False},
    "FixedLength": {"type": "FixedLength", "length": 3},
    "CharDelimiterSplit": {"type": "CharDelimiterSplit", "delimiter": "a"},
}


@pytest.mark.parametrize("every", [pytest.param(1499, id="some"), pytest.param(7, id="many", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SPECS)
def test_code_points(oracle, name, every):
    stations.check_code_points(oracle, stations.tokenizer_json(None, SPECS[name]), every)


@pytest.mark.long
@pytest.mark.parametrize("name", SPECS)
def test_all_code_points_without_alignment(oracle, name):
    file = stations.tokenizer_json(None, SPECS[name])
    pre_tokenizer, theirs = stations.components(file)[1], oracle.component("pre_tokenizer", SPECS[name])

    for text in stations.all_code_points():
        assert pre_tokenizer.pre_tokenize([text]) == [piece for piece, _ in theirs.pre_tokenize_str(text)]


@pytest.mark.parametrize("examples", [100, pytest.param(3000, marks=pytest.mark.long)])
def test_random_chains(oracle, examples):
    @settings(max_examples=examples, deadline=None)
    @given(strategies.PRE_TOKENIZER_CHAINS, strategies.TEXTS, strategies.TEXTS)
    def check(chain, one, two):
        file = stations.tokenizer_json(None, chain)
        stations.check(oracle, file, one)
        stations.check(oracle, file, two)

    check()


@pytest.mark.parametrize("examples", [120, pytest.param(4000, marks=pytest.mark.long)])
def test_random_chains_behind_random_normalizers(oracle, examples):
    @settings(max_examples=examples, deadline=None)
    @given(strategies.NORMALIZER_CHAINS, strategies.PRE_TOKENIZER_CHAINS, strategies.TEXTS, strategies.TEXTS)
    def check(normalizers, pre_tokenizers, one, two):
        file = stations.tokenizer_json(normalizers, pre_tokenizers)
        stations.check(oracle, file, one)
        stations.check(oracle, file, two)

    check()


@pytest.mark.parametrize("text", ["", " ", "a b", " a", "▁a b", "  a  b "])
@pytest.mark.parametrize(
    "spec",
    [
        metaspace("first"),
        metaspace("first", split=False),
        sequence(metaspace("first"), {"type": "Digits", "individual_digits": True}),
        sequence(metaspace("first", split=False), metaspace("always")),
    ],
)
def test_by_place_serves_the_start_and_the_rest_without_alignment(oracle, text, spec):
    file = stations.tokenizer_json(None, spec)
    pre_tokenizer = stations.components(file)[1]
    at_start, elsewhere = pre_tokenizer.by_place

    assert pre_tokenizer.needs_alignment
    assert not at_start.needs_alignment
    assert not elsewhere.needs_alignment
    stations.check(oracle, file, text)
    expected = [piece for piece, _ in stations.oracle_pieces(oracle, file, text)]
    assert at_start.pre_tokenize([text] if text else []) == expected
    # "never" is what is left of "first" away from the start.
    never = stations.tokenizer_json(None, {**metaspace("never"), "split": spec.get("split", True)})
    if spec["type"] == "Metaspace":
        assert elsewhere.pre_tokenize([text]) == [piece for piece, _ in stations.oracle_pieces(oracle, never, text)]


def test_a_chain_that_cuts_before_it_asks_for_the_start_has_no_such_pair(oracle):
    file = stations.tokenizer_json(None, sequence({"type": "WhitespaceSplit"}, metaspace("first")))
    pre_tokenizer = stations.components(file)[1]

    assert pre_tokenizer.needs_alignment
    assert pre_tokenizer.by_place is None
    stations.check(oracle, file, "a b")
    stations.check(oracle, file, " a b")
    assert [text for text, _ in stations.our_pieces(file, " a b")] == ["a", "b"]


def test_whitespace_and_punctuation_share_nothing():
    # What allows BertPreTokenizer to be one pattern.
    assert not set_named("whitespace") & set_named("punctuation")


def test_characters_without_a_script_are_dropped_at_the_start(oracle):
    file = stations.tokenizer_json(None, SPECS["UnicodeScripts"])

    for text in ["  a", " ", "a b", "a 中", "カーb"]:
        stations.check(oracle, file, text)
    assert stations.our_pieces(file, "  a b") == [("a b", [(2, 3), (3, 4), (4, 5)])]


def test_pieces_of_no_length_fail_where_the_oracle_crashes():
    pre_tokenizer = build_pre_tokenizer(specs.FixedLength(0))

    assert pre_tokenizer.pre_tokenize([]) == []
    with pytest.raises(EncodeError):
        pre_tokenizer.pre_tokenize(["a"])


@pytest.mark.parametrize("unit", ["a", " ", "\u0301", "1", "-", "中", "a ", "\u0915\u094d"])
@pytest.mark.parametrize("name", SPECS)
def test_a_long_run_of_one_thing_takes_linear_time(name, unit):
    # Quadratic time would be minutes, not the time limit of a test.
    pieces = stations.components(stations.tokenizer_json(None, SPECS[name]))[1].pre_tokenize([unit * 30_000])

    assert sum(map(len, pieces)) <= 3 * len(unit) * 30_001
