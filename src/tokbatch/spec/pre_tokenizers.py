"""The pre-tokenizers of tokenizer.json, as values: one class per `type`, fields named as in the file.

What each of them does to a text stands in `engine/reference/pre_tokenizers.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tokbatch.spec.pattern import Pattern

Behavior = Literal["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PrependScheme = Literal["first", "never", "always"]

# ByteLevel's own pattern, which no file spells out. Source: openai/gpt-2, src/encoder.py.
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class BertPreTokenizer(msgspec.Struct, frozen=True, tag_field="type", tag="BertPreTokenizer"):
    """Split at whitespace, which goes, and around each punctuation character."""


class ByteLevel(msgspec.Struct, frozen=True, tag_field="type", tag="ByteLevel"):
    """Split by GPT-2's pattern (unless `use_regex` is false), then write bytes as the byte alphabet."""

    add_prefix_space: bool
    trim_offsets: bool
    use_regex: bool = True


class CharDelimiterSplit(msgspec.Struct, frozen=True, tag_field="type", tag="CharDelimiterSplit"):
    """Split at one character, which goes."""

    delimiter: str


class Metaspace(msgspec.Struct, frozen=True, tag_field="type", tag="Metaspace"):
    """Write spaces as `replacement`, put one in front by `prepend_scheme`, and split before each."""

    replacement: str
    prepend_scheme: PrependScheme
    split: bool


class Whitespace(msgspec.Struct, frozen=True, tag_field="type", tag="Whitespace"):
    r"""Keep the matches of `\w+|[^\w\s]+`."""


class WhitespaceSplit(msgspec.Struct, frozen=True, tag_field="type", tag="WhitespaceSplit"):
    """Split at whitespace, which goes."""


class Split(msgspec.Struct, frozen=True, tag_field="type", tag="Split"):
    """Split at the matches of a pattern (or, inverted, at what lies between them)."""

    pattern: Pattern
    behavior: Behavior
    invert: bool


class Punctuation(msgspec.Struct, frozen=True, tag_field="type", tag="Punctuation"):
    """Split at each punctuation character."""

    behavior: Behavior


class Digits(msgspec.Struct, frozen=True, tag_field="type", tag="Digits"):
    """Split runs of numeric characters off, or each of them alone."""

    individual_digits: bool


class UnicodeScripts(msgspec.Struct, frozen=True, tag_field="type", tag="UnicodeScripts"):
    """Split where the script changes (kana counts as Han)."""


class FixedLength(msgspec.Struct, frozen=True, tag_field="type", tag="FixedLength"):
    """Cut into pieces of `length` characters."""

    length: int


class Sequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One after the other, each on the pieces of the one before."""

    pretokenizers: tuple[PreTokenizer, ...]


PreTokenizer = (
    BertPreTokenizer
    | ByteLevel
    | CharDelimiterSplit
    | Metaspace
    | Whitespace
    | WhitespaceSplit
    | Split
    | Punctuation
    | Digits
    | UnicodeScripts
    | FixedLength
    | Sequence
)
