"""Random models and pretokens for Hypothesis: small vocabularies over a few characters, so that much collides.

A model is drawn as the value of the file's `model` key. `spec_of` turns it into the spec's value, as the reader would.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tokbatch.spec import models as spec

ALPHABET = "abcé中😀#<>0x"
WORDS = st.text(ALPHABET[:5], min_size=1, max_size=4) | st.text(ALPHABET, min_size=1, max_size=3)
UNKNOWN = st.sampled_from(["<unk>", "a", "ab", "##"])
# A decimal number of so few digits is the same number to every parser.
SCORES = st.one_of(
    st.integers(-4, 4).map(float),
    st.sampled_from([0.1, 0.2, 0.3, -0.1, -0.2, -0.3]),
    st.integers(-20_000, 40_000).map(lambda thousandths: thousandths / 1000),
)


def spec_of(model: dict[str, Any]) -> spec.Model:
    """Build the spec's value from the file's."""
    fields = {key: value for key, value in model.items() if key != "type"}
    return getattr(spec, model["type"])(**fields)


@st.composite
def _byte_tokens(draw: st.DrawFn) -> list[str]:
    if not draw(st.booleans()):
        return []
    left_out = draw(st.sets(st.sampled_from([0x0A, 0x62, 0x81, 0xAD, 0xB8, 0xC3, 0xE4, 0xF0]), max_size=3))
    return [f"<0x{byte:02X}>" for byte in range(256) if byte not in left_out]


@st.composite
def bpe_models(draw: st.DrawFn, shares_ids: bool = False) -> dict[str, Any]:
    """Draw BPE models; merges are of any tokens in any order, some of them twice."""
    prefix = draw(st.sampled_from([None, None, None, "", "##", "é"]))
    suffix = draw(st.sampled_from([None, None, None, "", "</w>", "b"]))
    unk_token = draw(st.none() | UNKNOWN)
    tokens = draw(st.lists(st.sampled_from(ALPHABET), unique=True))
    tokens += [prefix + token for token in tokens if prefix and draw(st.booleans())]
    tokens += [token + suffix for token in tokens if suffix and draw(st.booleans())]
    if unk_token is not None and draw(st.integers(0, 9)):
        tokens.append(unk_token)
    tokens += draw(st.sampled_from([[], [], [], [""]]))
    cut = len((prefix or "").encode())
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 20)) if tokens else 0):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        merged = (left.encode() + right.encode()[cut:]).decode(errors="replace")
        if len(right.encode()) >= cut and "\N{REPLACEMENT CHARACTER}" not in merged and len(merged) < 12:
            tokens.append(merged)
            merges.append((left, right))
    merges += draw(st.lists(st.sampled_from(merges), max_size=2)) if merges else []
    byte_tokens = draw(_byte_tokens())
    tokens = list(dict.fromkeys(tokens))
    ids = draw(st.lists(st.integers(0, 40 if shares_ids else 400), min_size=len(tokens), max_size=len(tokens)))
    if not shares_ids:
        ids = draw(st.permutations(range(len(tokens))))
    return {
        "type": "BPE",
        "vocab": dict(zip([*tokens, *byte_tokens], [*ids, *range(1000, 1000 + len(byte_tokens))], strict=True)),
        "merges": draw(st.permutations(merges)),
        "dropout": draw(st.sampled_from([None, None, None, 0.0, 1.0])),
        "unk_token": unk_token,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": draw(st.booleans()),
        "byte_fallback": bool(byte_tokens) and draw(st.booleans()),
        "ignore_merges": draw(st.sampled_from([False, False, True])),
    }


@st.composite
def wordpiece_models(draw: st.DrawFn) -> dict[str, Any]:
    """Draw WordPiece models."""
    prefix = draw(st.sampled_from(["##", "", "#", "中"]))
    begins = draw(st.lists(WORDS, max_size=12))
    inner = [prefix + word for word in draw(st.lists(WORDS, max_size=12))]
    tokens = list(dict.fromkeys([*begins, *inner, *draw(st.sampled_from([["[UNK]"], ["[UNK]"], []]))]))
    return {
        "type": "WordPiece",
        "vocab": {token: token_id for token_id, token in enumerate(draw(st.permutations(tokens)))},
        "unk_token": "[UNK]",
        "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": draw(st.sampled_from([0, 3, 10, 100])),
    }


@st.composite
def wordlevel_models(draw: st.DrawFn) -> dict[str, Any]:
    """Draw WordLevel models."""
    tokens = draw(st.lists(WORDS | st.just("[UNK]"), unique=True, max_size=10))
    return {
        "type": "WordLevel",
        "vocab": {token: token_id for token_id, token in enumerate(tokens)},
        "unk_token": "[UNK]",
    }


@st.composite
def unigram_models(draw: st.DrawFn) -> dict[str, Any]:
    """Draw Unigram models: many ties, pieces twice, any piece as the unknown one."""
    byte_tokens = draw(_byte_tokens())
    tokens = draw(st.lists(WORDS | UNKNOWN | st.just(""), max_size=20)) + byte_tokens
    scores = draw(st.lists(SCORES, min_size=len(tokens), max_size=len(tokens)))
    return {
        "type": "Unigram",
        "vocab": list(zip(tokens, scores, strict=True)),
        "unk_id": draw(st.integers(0, min(20, len(tokens)) - 1)) if tokens and draw(st.integers(0, 4)) else None,
        "byte_fallback": draw(st.booleans()),
    }


MODELS = st.one_of(bpe_models(), wordpiece_models(), wordlevel_models(), unigram_models())


def pretokens(model: dict[str, Any]) -> st.SearchStrategy[str]:
    """Draw pretokens: tokens of the model and other words glued together."""
    vocab = model["vocab"]
    tokens = [token for token in (vocab if isinstance(vocab, dict) else dict(vocab)) if token][:60]
    parts = st.sampled_from(tokens) | WORDS if tokens else WORDS
    return st.lists(parts, min_size=1, max_size=30).map("".join)
