"""Random normalizers, pre-tokenizers, post-processors and decoders, as values of a tokenizer.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from charsmaps import charsmap, precompiled
from component_strategies import CHARACTERS
from generate.source import Source

Value = dict[str, Any]

BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
SCHEMES = ["always", "first", "never"]
SHORT = ["", "a", " ", "▁", "é", "\u0301", "X", "日", "ab", "--", "▁▁", "\n"]
ONE = ["▁", " ", "a", "_", "é", "日", "😀", ".", "\u0301"]
EXPRESSIONS = [
    r"\s+",
    r" ",
    r"\p{L}+",
    r"\p{N}{1,3}",
    r"[^a-z]",
    r"\w+|[^\w\s]+",
    r"\s*",
    r"a*",
    r"^",
    r"$",
    r"(?=[A-Z])",
    r"(?<=a)b",
    r"(?<!\s)\p{P}",
    r"(?i:it|s)",
    r"..",
    r"\p{Han}+|\p{Hiragana}",
    r"\p{M}+",
    r"[\r\n]+",
    r"a|ab|abc",
    r"(a|b)*?c",
    r"x{2,}",
    r"\A.|.\z",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|\p{N}{1,3}|\s+(?!\S)|\s+",
    r"\d|[[:punct:]]",
]


def _pattern(source: Source) -> Value:
    if source.chance(70):
        return {"Regex": source.choose(EXPRESSIONS)}
    return {"String": source.choose([*SHORT[1:], ""])}


def _byte_level(source: Source) -> Value:
    return {
        "type": "ByteLevel",
        "add_prefix_space": source.chance(50),
        "trim_offsets": source.chance(50),
        "use_regex": not source.chance(40),
    }


def _metaspace(source: Source) -> Value:
    return {
        "type": "Metaspace",
        "replacement": "▁" if source.chance(80) else source.choose(ONE),
        "prepend_scheme": source.choose(SCHEMES),
        "split": not source.chance(30),
    }


def _character_map(source: Source) -> Value:
    def key() -> str:
        return "".join(source.several(lambda: source.choose(CHARACTERS), 1, 2)).replace("\0", "") or "a"

    return precompiled(charsmap({key(): source.choose(SHORT) for _ in range(source.integer(1, 6))}))


Maker = Callable[[Source], Value]

NORMALIZERS: list[Maker] = [
    *((lambda _, name=name: {"type": name}) for name in ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents")),
    *((lambda _, name=name: {"type": name}) for name in ("Nmt", "ByteLevel")),
    lambda source: {"type": "Strip", "strip_left": source.chance(60), "strip_right": source.chance(60)},
    lambda source: {"type": "Prepend", "prepend": source.choose(SHORT)},
    lambda source: {"type": "Replace", "pattern": _pattern(source), "content": source.choose(SHORT)},
    lambda _: {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    lambda source: {
        "type": "BertNormalizer",
        "clean_text": source.chance(50),
        "handle_chinese_chars": source.chance(50),
        "strip_accents": source.choose([None, True, False]),
        "lowercase": source.chance(50),
    },
    _character_map,
]

PRE_TOKENIZERS: list[Maker] = [
    lambda _: {"type": "WhitespaceSplit"},
    _byte_level,
    _metaspace,
    lambda source: {
        "type": "Split",
        "pattern": _pattern(source),
        "behavior": source.choose(BEHAVIORS),
        "invert": source.chance(30),
    },
    lambda _: {"type": "BertPreTokenizer"},
    lambda _: {"type": "Whitespace"},
    lambda _: {"type": "UnicodeScripts"},
    lambda source: {"type": "CharDelimiterSplit", "delimiter": source.choose(ONE)},
    lambda source: {"type": "Punctuation", "behavior": source.choose(BEHAVIORS)},
    lambda source: {"type": "Digits", "individual_digits": source.chance(50)},
    lambda source: {"type": "FixedLength", "length": source.integer(1, 4)},
]

DECODERS: list[Maker] = [
    _byte_level,
    _metaspace,
    lambda source: {
        "type": "WordPiece",
        "prefix": source.choose(["##", "", "a"]),
        "cleanup": source.chance(60),
    },
    lambda source: {"type": "BPEDecoder", "suffix": source.choose(["</w>", "", "a", "▁"])},
    lambda source: {
        "type": "CTC",
        "pad_token": source.choose(["<pad>", "a", "▁"]),
        "word_delimiter_token": source.choose(["|", "b", " "]),
        "cleanup": source.chance(50),
    },
    lambda source: {"type": "Replace", "pattern": _pattern(source), "content": source.choose(SHORT)},
    lambda _: {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    lambda _: {"type": "Fuse"},
    lambda source: {
        "type": "Strip",
        "content": source.choose([" ", "a", "▁"]),
        "start": source.integer(0, 2),
        "stop": source.integer(0, 2),
    },
    lambda _: {"type": "ByteFallback"},
]


def _one_or_several(source: Source, makers: Sequence[Maker], parts: str) -> Value | None:
    kind = source.integer(0, 9)
    if kind < 3:
        return None
    if kind < 7:
        return source.choose(makers)(source)
    return {"type": "Sequence", parts: source.several(lambda: source.choose(makers)(source), 0, 3)}


def random_normalizer(source: Source) -> Value | None:
    """Make a normalizer, a sequence of them, or none."""
    return _one_or_several(source, NORMALIZERS, "normalizers")


def random_pre_tokenizer(source: Source) -> Value | None:
    """Make a pre-tokenizer, a sequence of them, or none."""
    return _one_or_several(source, PRE_TOKENIZERS, "pretokenizers")


def random_decoder(source: Source) -> Value | None:
    """Make a decoder, a sequence of them, or none."""
    return _one_or_several(source, DECODERS, "decoders")


def random_post_processor(source: Source, tokens: Sequence[tuple[str, int]]) -> Value | None:
    """Make a post-processor that adds some of these (token, id), a sequence of them, or none."""

    def token() -> list[Any]:
        return list(source.choose(tokens))

    def template(_: Source) -> Value:
        used: dict[str, Value] = {}

        def special() -> Value:
            name, token_id = source.choose(tokens)
            ids, names = [token_id], [name]
            if source.chance(10):
                other, other_id = source.choose(tokens)
                ids, names = [token_id, other_id], [name, other]
            used.setdefault(name, {"id": name, "ids": ids, "tokens": names})
            return {"SpecialToken": {"id": name, "type_id": source.choose([0, 0, 1, 2])}}

        def side(*texts: str) -> list[Value]:
            pieces = source.several(special, 0, 2)
            for text in texts:
                pieces.append({"Sequence": {"id": text, "type_id": source.choose([0, 1, 2])}})
                pieces += source.several(special, 0, 2)
            return pieces

        single, pair = side("A"), side("A", "B")
        return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": used}

    makers: list[Maker] = [
        template,
        lambda _: {"type": "BertProcessing", "sep": token(), "cls": token()},
        lambda _: {
            "type": "RobertaProcessing",
            "sep": token(),
            "cls": token(),
            "trim_offsets": source.chance(50),
            "add_prefix_space": source.chance(50),
        },
        _byte_level,
    ]
    return _one_or_several(source, makers, "processors")
