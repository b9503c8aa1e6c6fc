"""Decoders: random ones against the oracle, and some by hand."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokbatch.engine.reference.decoders import build_decoder
from tokbatch.errors import DecodeError
from tokbatch.spec import decoders as spec
from tokbatch.spec.pattern import Pattern

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))

PARTS = [
    *("a", "b", "▁", "▁", "Ġ", "Ã", "©", "##", "##a", " ", ".", " n't", " ' ", " do not", "'s", "|", "<pad>", "</w>"),
    *("<0xC3>", "<0xa9>", "<0x+5>", "<0x-1>", "<0x41>", "<0xE4>", "<0xé>", "é", "中", "ð", "Ł", "ĺ", "â", "Ģ", "í"),
]
TOKENS = st.lists(st.lists(st.sampled_from(PARTS), max_size=3).map("".join), max_size=8)
PATTERNS = st.sampled_from(
    [{"String": "▁"}, {"String": "a"}, {"String": ""}, {"Regex": "▁+"}, {"Regex": "a*"}, {"Regex": "[ab]"}]
)


def _struct(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


FLAG = st.booleans()
DECODERS = st.recursive(
    st.one_of(
        _struct("BPEDecoder", suffix=st.sampled_from(["</w>", "", "a"])),
        _struct("ByteLevel", add_prefix_space=FLAG, trim_offsets=FLAG, use_regex=FLAG),
        _struct("WordPiece", prefix=st.sampled_from(["##", "", "a"]), cleanup=FLAG),
        _struct(
            "Metaspace",
            replacement=st.sampled_from("▁a中"),
            prepend_scheme=st.sampled_from(["always", "first", "never"]),
            split=FLAG,
        ),
        _struct(
            "CTC",
            pad_token=st.sampled_from(["<pad>", "a", ""]),
            word_delimiter_token=st.sampled_from(["|", "", "a"]),
            cleanup=FLAG,
        ),
        _struct("Replace", pattern=PATTERNS, content=st.sampled_from(["", "X", " ", "▁"])),
        _struct("Strip", content=st.sampled_from("a ▁"), start=st.integers(0, 3), stop=st.integers(0, 3)),
        _struct("ByteFallback"),
        _struct("Fuse"),
    ),
    lambda inner: _struct("Sequence", decoders=st.lists(inner, max_size=4)),
    max_leaves=5,
)


def spec_of(decoder: dict[str, Any]) -> spec.Decoder:
    """Build the spec's value from the file's."""
    fields = {key: value for key, value in decoder.items() if key != "type"}
    if decoder["type"] == "Sequence":
        return spec.Sequence(tuple(map(spec_of, fields["decoders"])))
    if decoder["type"] == "Replace":
        fields["pattern"] = Pattern(**{kind.lower(): value for kind, value in fields["pattern"].items()})
    return getattr(spec, decoder["type"])(**fields)


def compare(oracle: ModuleType, decoder: dict[str, Any], tokens: list[str]) -> None:
    ours = build_decoder(spec_of(decoder))
    try:
        with oracle.quiet(), oracle.guard():
            expected = oracle.component("decoder", decoder).decode(tokens)
    except oracle.OracleError:
        with pytest.raises(DecodeError):
            ours.decode(tokens)
        return
    assert ours.decode(tokens) == expected


@settings(RANDOM, max_examples=300)
@given(decoder=DECODERS, tokens=TOKENS)
def test_random_decoders(oracle: ModuleType, decoder: dict[str, Any], tokens: list[str]) -> None:
    compare(oracle, decoder, tokens)


@pytest.mark.long
@settings(RANDOM, max_examples=5_000)
@given(decoder=DECODERS, tokens=TOKENS)
def test_many_random_decoders(oracle: ModuleType, decoder: dict[str, Any], tokens: list[str]) -> None:
    compare(oracle, decoder, tokens)


@pytest.mark.long
@settings(RANDOM, max_examples=5_000)
@given(
    raw=st.lists(
        st.sampled_from(bytes.fromhex("41808f909fa0bfc0c1c2c3dfe0e1ececedeeeff0f1f3f4f5ff")), min_size=1, max_size=6
    )
)
def test_bytes_that_are_not_utf8(oracle: ModuleType, raw: list[int]) -> None:
    from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER

    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    compare(oracle, decoder, ["".join(BYTE_TO_CHARACTER[byte] for byte in raw)])
    compare(oracle, {"type": "ByteFallback"}, [f"<0x{byte:02X}>" for byte in raw])


WORDPIECE = spec.WordPiece("##", cleanup=True)


@pytest.mark.parametrize(
    ("decoder", "tokens", "expected"),
    [
        (None, ["a", "b"], "a b"),
        (None, [], ""),
        (spec.Sequence(()), ["a", "b"], "ab"),
        (spec.Fuse(), [], ""),
        (spec.BPEDecoder("</w>"), ["a</w>", "b", "c</w>"], "a bc"),
        (spec.BPEDecoder("</w>"), [], ""),
        (WORDPIECE, ["##a", "##b", "c", ".", "do", "n't"], "##ab c. don't"),
        # The artifacts are looked for token by token: a space before a comma is one token with it, "do not" never is.
        (WORDPIECE, ["do", "not"], "do not"),
        (spec.Metaspace("▁", "always", True), ["▁a▁", "▁b"], "a b"),
        (spec.Metaspace("▁", "never", True), ["▁a", "▁b"], " a b"),
        (spec.CTC("<pad>", "|", True), ["h", "h", "<pad>", "h", "|", "|", "."], "hh ."),
        (spec.CTC("<pad>", "|", False), ["h", "|"], "h|"),
        (spec.ByteLevel(True, True), ["Ã", "©Ġ", "中", "Ã"], "é 中�"),
        (spec.ByteFallback(), ["<0xC3>", "<0xa9>", "x", "<0xC3>", "<0x41>"], "éx��"),
        (spec.ByteFallback(), ["<0x+9>", "<0x 9>", "<0x9>"], "\t<0x 9><0x9>"),
        (spec.Strip("a", 1, 0), ["aab", "b", ""], "abb"),
        (spec.Strip("a", 0, 2), ["baaa", "ba"], "bab"),
        (spec.Sequence((spec.ByteFallback(), spec.Fuse(), spec.Strip(" ", 1, 0))), [" ", "<0x20>"], " "),
    ],
)
def test_by_hand(decoder: spec.Decoder | None, tokens: list[str], expected: str) -> None:
    assert build_decoder(decoder).decode(tokens) == expected


@pytest.mark.parametrize(("content", "start", "stop", "token"), [("a", 0, 2, "a"), ("a", 2, 1, "aa"), ("a", 0, 1, "")])
def test_stripping_from_both_ends_until_they_meet_is_an_error(content: str, start: int, stop: int, token: str) -> None:
    with pytest.raises(DecodeError, match="cannot strip") as caught:
        build_decoder(spec.Strip(content, start, stop)).decode([token])
    assert caught.value.where == "$.decoder"
