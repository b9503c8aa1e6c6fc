"""Small whole tokenizer.json documents that together hold every component, every field and both older spellings."""

from __future__ import annotations

import base64
import struct
from typing import Any

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
WORD_LEVEL = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
VOCAB = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "##b": 4, "a##": 5}
CHARSMAP = base64.b64encode(struct.pack("<I", 16) + struct.pack("<4I", 0, 0, 0, 0) + b"x\0y\0").decode()
REGEX = {"Regex": "\\s+|a"}
STRING = {"String": "a"}


def document(**sections: Any) -> dict[str, Any]:
    """Give a document with a small model, and with the given sections."""
    return {"version": "1.0", "model": WORD_LEVEL, **sections}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
OLD_METASPACE = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"}

NORMALIZERS: list[dict[str, Any]] = [
    {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    {"type": "Bert", "clean_text": True, "handle_chinese_chars": True, "strip_accents": False, "lowercase": True},
    {"type": "Strip", "strip_left": True, "strip_right": False},
    *({"type": name} for name in ("StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "ByteLevel")),
    {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
    {"type": "Replace", "pattern": REGEX, "content": "b"},
    {"type": "Replace", "pattern": STRING, "content": ""},
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip", "strip_left": True, "strip_right": True}]},
]
PRE_TOKENIZERS: list[dict[str, Any]] = [
    *({"type": name} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
    BYTE_LEVEL,
    {"type": "CharDelimiterSplit", "delimiter": "-"},
    {"type": "Delimiter", "delimiter": "-"},
    METASPACE,
    OLD_METASPACE,
    {**METASPACE, "add_prefix_space": False, "prepend_scheme": "never"},
    {"type": "Split", "pattern": REGEX, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": STRING, "behavior": "MergedWithNext", "invert": True},
    {"type": "Punctuation", "behavior": "Contiguous"},
    {"type": "Digits", "individual_digits": True},
    {"type": "FixedLength", "length": 3},
    {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "FixedLength"}]},
]
TEMPLATE: dict[str, Any] = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"a": {"id": "a", "ids": [1], "tokens": ["a"]}},
}
BERT_PROCESSING = {"type": "BertProcessing", "sep": ["a", 1], "cls": ["[UNK]", 0]}
POST_PROCESSORS: list[dict[str, Any]] = [
    BERT_PROCESSING,
    {**BERT_PROCESSING, "type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": False},
    BYTE_LEVEL,
    TEMPLATE,
    {"type": "Sequence", "processors": [BYTE_LEVEL, BERT_PROCESSING]},
]
DECODERS: list[dict[str, Any]] = [
    {"type": "BPEDecoder", "suffix": "</w>"},
    BYTE_LEVEL,
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    METASPACE,
    OLD_METASPACE,
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    {"type": "Replace", "pattern": REGEX, "content": "b"},
    {"type": "Fuse"},
    {"type": "ByteFallback"},
    {"type": "Strip", "content": "a", "start": 1, "stop": 0},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "BPEDecoder", "suffix": "x"}]},
]
MODELS: list[dict[str, Any]] = [
    WORD_LEVEL,
    {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": VOCAB,
        "merges": [["a", "b"]],
    },
    {"type": "BPE", "continuing_subword_prefix": "##", "vocab": VOCAB, "merges": ["a ##b"]},
    {"type": "BPE", "dropout": 1.0, "vocab": VOCAB, "merges": ["#version: 0.2", "a b"]},
    {
        "type": "WordPiece",
        "unk_token": "<unk>",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": VOCAB,
    },
    {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]], "byte_fallback": False},
]
TRUNCATION = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
PADDING: dict[str, Any] = {
    "strategy": {"Fixed": 8},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
WHOLE: list[dict[str, Any]] = [
    document(
        truncation=TRUNCATION,
        padding=PADDING,
        added_tokens=[{"id": 5, "content": "<s>", **FLAGS}, {"id": 1, "content": "a", **FLAGS, "normalized": True}],
    ),
    document(truncation=None, padding={**PADDING, "strategy": "BatchLongest"}, added_tokens=[], normalizer=None),
]


def without_type(component: dict[str, Any]) -> dict[str, Any]:
    """Give a component without its `type`, which some old files lack."""
    return {key: value for key, value in component.items() if key != "type"}


def sections() -> list[tuple[str, list[dict[str, Any]]]]:
    """Give the sections that hold components, and their components."""
    return [
        ("normalizer", NORMALIZERS),
        ("pre_tokenizer", PRE_TOKENIZERS),
        ("post_processor", POST_PROCESSORS),
        ("decoder", DECODERS),
        ("model", MODELS),
    ]
