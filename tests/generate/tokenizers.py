"""Random whole tokenizers: small, mostly valid, with models that know something of the texts they will be given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from component_strategies import CHARACTERS
from generate.components import (
    random_decoder,
    random_normalizer,
    random_post_processor,
    random_pre_tokenizer,
)
from generate.source import Source
from generate.texts import WHITESPACE, WORDS
from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER

Value = dict[str, Any]

CONTENTS = [
    "<m>",
    "<s>",
    "</s>",
    "<pad>",
    "<unk>",
    "[X]",
    "New York",
    "É",
    "é",
    "İ",
    "ﬁ",
    "a",
    "ab",
    "abc",
    "1",
    "</w>",
]
CONTENTS += ["日", "▁x", "▁", "<M>", "'s", "e\u0301", "😀", "x y", " x", "x ", "the", "²", "\u200d"]


def _surfaces(value: Value) -> Callable[[str], str]:
    """Guess how a text looks when it reaches the model: in the byte alphabet, with marks for blanks, or as it is."""
    written = str(value["pre_tokenizer"]) + str(value["normalizer"])
    if "ByteLevel" in written:
        return lambda text: "".join(BYTE_TO_CHARACTER[byte] for byte in text.encode())
    if "▁" in written:
        return lambda text: text.replace(" ", "▁")
    return lambda text: text


def _strings(source: Source) -> list[str]:
    """Make the strings that the vocabulary will be built from."""
    letters = [*"abc", " ", *source.several(lambda: source.choose(CHARACTERS), 2, 8)]
    strings = ["".join(source.several(lambda: source.choose(letters), 1, 4)) for _ in range(source.integer(2, 10))]
    return [*letters, *strings, *source.subset(WORDS, 20), *source.subset(WHITESPACE, 15)]


def _numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}


def _bpe(source: Source, strings: Sequence[str]) -> Value:
    prefix = "##" if source.chance(10) else None
    suffix = "</w>" if source.chance(15) else None
    characters = list(dict.fromkeys(character for string in strings for character in string))
    known = [c for c in characters if not source.chance(10)]
    tokens = ["<unk>", *known]
    if prefix:
        tokens += [prefix + c for c in known]
    if suffix:
        tokens += [c + suffix for c in known]
    if prefix and suffix:
        tokens += [prefix + c + suffix for c in known]
    byte_fallback = source.chance(35)
    if byte_fallback:
        tokens += [f"<0x{byte:02X}>" for byte in range(256) if byte < 128 or source.chance(95)]
    merges: list[list[str]] = []
    for _ in range(source.integer(0, 14)):
        left, right = source.choose(tokens[1:] or tokens), source.choose(tokens[1:] or tokens)
        if source.chance(60) and len(string := source.choose(strings)) > 1:
            cut = source.integer(1, len(string) - 1)
            left, right = string[:cut], (prefix or "") + string[cut:]
        if left in tokens and right in tokens and (not prefix or right.startswith(prefix)):
            merges.append([left, right])
            tokens.append(left + right[len(prefix or "") :])
    tokens += source.subset(strings, 20)
    vocabulary = _numbered(tokens)
    if source.chance(20):
        order = list(vocabulary)
        vocabulary = {token: source.integer(0, 3) * 1000 + number for number, token in enumerate(order)}
    return {
        "type": "BPE",
        "dropout": source.choose([None, None, None, None, None, 0.0, 1.0]),
        "unk_token": "<unk>" if source.chance(60) else None,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": source.chance(40),
        "byte_fallback": byte_fallback,
        "ignore_merges": source.chance(30),
        "vocab": vocabulary,
        "merges": merges,
    }


def _word_piece(source: Source, strings: Sequence[str]) -> Value:
    prefix = source.choose(["##", "##", "##", "", "é"])
    tokens = ["[UNK]"] if not source.chance(5) else []
    for string in strings:
        tokens += source.subset([string, prefix + string], 70)
    return {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": prefix,
        "max_input_chars_per_word": source.choose([100, 100, 5, 1]),
        "vocab": _numbered(tokens or ["[UNK]"]),
    }


def _word_level(source: Source, strings: Sequence[str]) -> Value:
    tokens = ["<unk>"] if not source.chance(10) else ["a"]
    return {"type": "WordLevel", "vocab": _numbered([*tokens, *source.subset(strings, 80)]), "unk_token": "<unk>"}


def _unigram(source: Source, strings: Sequence[str]) -> Value:
    pieces = ["<unk>", *source.subset(list(dict.fromkeys(strings)), 85)]
    pieces += source.several(lambda: source.choose(strings), 0, 2)
    byte_fallback = source.chance(30)
    if byte_fallback:
        pieces += [f"<0x{byte:02X}>" for byte in range(256) if byte < 128 or source.chance(95)]
    # Quarters are exact in binary, so that equal sums are equal: ties must be broken as the oracle breaks them.
    scores = [source.integer(-32, -1) / 4 if source.chance(85) else source.integer(-9000, 100) / 700 for _ in pieces]
    return {
        "type": "Unigram",
        "unk_id": None if source.chance(10) else source.choose([0, 0, 0, len(pieces) - 1]),
        "vocab": [[piece, score] for piece, score in zip(pieces, scores, strict=True)],
        "byte_fallback": byte_fallback,
    }


def _added_tokens(source: Source, strings: Sequence[str], size: int) -> list[Value]:
    def entry(number: int) -> Value:
        pool = source.choose([CONTENTS, CONTENTS, CONTENTS, WHITESPACE, list(strings)])
        return {
            "id": size + number if not source.chance(8) else source.integer(0, size + 12),
            "content": source.choose(pool),
            "single_word": source.chance(25),
            "lstrip": source.chance(35),
            "rstrip": source.chance(35),
            "normalized": source.chance(45),
            "special": source.chance(50),
        }

    return [entry(number) for number in range(source.integer(0, 6))]


def _truncation(source: Source) -> Value:
    longest = source.integer(0, 9)
    return {
        "max_length": longest,
        "stride": source.integer(0, max(longest // 2 - 1, 0)),
        "strategy": source.choose(["LongestFirst", "LongestFirst", "OnlyFirst", "OnlySecond"]),
        "direction": source.choose(["Right", "Left"]),
    }


def _padding(source: Source) -> Value:
    return {
        "strategy": source.choose(["BatchLongest", {"Fixed": source.integer(0, 12)}]),
        "direction": source.choose(["Right", "Left"]),
        "pad_to_multiple_of": source.choose([None, None, 4, 0]),
        "pad_id": source.integer(0, 5),
        "pad_type_id": source.choose([0, 1]),
        "pad_token": source.choose(["<pad>", "a"]),
    }


def random_tokenizer(source: Source) -> Value:
    """Make a tokenizer.json as a value."""
    value: Value = {"version": "1.0", "truncation": None, "padding": None}
    value["normalizer"] = random_normalizer(source)
    value["pre_tokenizer"] = random_pre_tokenizer(source)
    surface = _surfaces(value)
    strings = list(dict.fromkeys(surface(string) for string in _strings(source)))
    model = source.choose([_bpe, _bpe, _unigram, _word_piece, _word_level])(source, strings)
    value["model"] = model
    size = len(model["vocab"])
    value["added_tokens"] = _added_tokens(source, strings, size)
    vocabulary = model["vocab"] if isinstance(model["vocab"], dict) else _numbered([p for p, _ in model["vocab"]])
    candidates = [*vocabulary.items(), *((entry["content"], entry["id"]) for entry in value["added_tokens"])]
    value["post_processor"] = random_post_processor(source, candidates[-8:])
    value["decoder"] = random_decoder(source)
    if source.chance(20):
        value["truncation"] = _truncation(source)
    if source.chance(15):
        value["padding"] = _padding(source)
    return value


def words_of(value: Value) -> list[str]:
    """Give the entries of a tokenizer's vocabulary as they would stand in a text."""
    vocabulary = value["model"]["vocab"]
    tokens = list(vocabulary) if isinstance(vocabulary, dict) else [piece for piece, _ in vocabulary]
    if "ByteLevel" in str(value["pre_tokenizer"]) + str(value["normalizer"]):
        bytes_of = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}
        plain = [bytes(bytes_of[c] for c in token if c in bytes_of).decode(errors="replace") for token in tokens]
    else:
        plain = [token.replace("▁", " ").removeprefix("##").removesuffix("</w>") for token in tokens]
    return [word for word in plain if word][:300]


def contents_of(value: Value) -> list[str]:
    """Give the contents of a tokenizer's added tokens."""
    return [entry["content"] for entry in value["added_tokens"]]
