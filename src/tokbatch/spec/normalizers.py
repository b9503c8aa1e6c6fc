"""The normalizers of tokenizer.json, as values: one class per `type`, fields named as in the file.

What each of them does to a text stands in `engine/reference/normalizers.py`.
"""

from __future__ import annotations

import msgspec

from tokbatch.spec.pattern import Pattern


class BertNormalizer(msgspec.Struct, frozen=True, tag_field="type", tag="BertNormalizer"):
    """Clean control characters, set CJK apart, strip accents (null: as `lowercase`), lowercase."""

    clean_text: bool
    handle_chinese_chars: bool
    strip_accents: bool | None
    lowercase: bool


class Strip(msgspec.Struct, frozen=True, tag_field="type", tag="Strip"):
    """Remove whitespace at the ends."""

    strip_left: bool
    strip_right: bool


class StripAccents(msgspec.Struct, frozen=True, tag_field="type", tag="StripAccents"):
    """Remove combining marks."""


class NFC(msgspec.Struct, frozen=True, tag_field="type", tag="NFC"):
    """Canonical composition."""


class NFD(msgspec.Struct, frozen=True, tag_field="type", tag="NFD"):
    """Canonical decomposition."""


class NFKC(msgspec.Struct, frozen=True, tag_field="type", tag="NFKC"):
    """Compatibility composition."""


class NFKD(msgspec.Struct, frozen=True, tag_field="type", tag="NFKD"):
    """Compatibility decomposition."""


class Lowercase(msgspec.Struct, frozen=True, tag_field="type", tag="Lowercase"):
    """Map each character to lower case."""


class Nmt(msgspec.Struct, frozen=True, tag_field="type", tag="Nmt"):
    """Drop control characters, map odd spaces to a space (sentencepiece's nmt rule)."""


class Precompiled(msgspec.Struct, frozen=True, tag_field="type", tag="Precompiled"):
    """Sentencepiece's compiled character map, decoded from base64."""

    precompiled_charsmap: bytes


class Replace(msgspec.Struct, frozen=True, tag_field="type", tag="Replace"):
    """Replace each match of a pattern by a literal text."""

    pattern: Pattern
    content: str


class Prepend(msgspec.Struct, frozen=True, tag_field="type", tag="Prepend"):
    """Put a text in front of a text that is not empty."""

    prepend: str


class ByteLevel(msgspec.Struct, frozen=True, tag_field="type", tag="ByteLevel"):
    """Write each UTF-8 byte as a character of the byte alphabet."""


class Sequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One after the other."""

    normalizers: tuple[Normalizer, ...]


Normalizer = (
    BertNormalizer
    | Strip
    | StripAccents
    | NFC
    | NFD
    | NFKC
    | NFKD
    | Lowercase
    | Nmt
    | Precompiled
    | Replace
    | Prepend
    | ByteLevel
    | Sequence
)
