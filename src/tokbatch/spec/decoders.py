"""The decoders of tokenizer.json, as values: one class per `type`, fields named as in the file.

What each of them does to tokens stands in `engine/reference/decoders.py`.
"""

from __future__ import annotations

import msgspec

from tokbatch.spec.pattern import Pattern
from tokbatch.spec.pre_tokenizers import PrependScheme


class BPEDecoder(msgspec.Struct, frozen=True, tag_field="type", tag="BPEDecoder"):
    """Write the end-of-word suffix as a space."""

    suffix: str


class ByteLevel(msgspec.Struct, frozen=True, tag_field="type", tag="ByteLevel"):
    """Read the byte alphabet back as bytes."""

    add_prefix_space: bool
    trim_offsets: bool
    use_regex: bool = True


class WordPiece(msgspec.Struct, frozen=True, tag_field="type", tag="WordPiece"):
    """Join the pieces of words, put spaces between words, clean up around punctuation."""

    prefix: str
    cleanup: bool


class Metaspace(msgspec.Struct, frozen=True, tag_field="type", tag="Metaspace"):
    """Write the replacement as a space."""

    replacement: str
    prepend_scheme: PrependScheme
    split: bool


class CTC(msgspec.Struct, frozen=True, tag_field="type", tag="CTC"):
    """Collapse repeats, drop the padding token, write the word delimiter as a space."""

    pad_token: str
    word_delimiter_token: str
    cleanup: bool


class Replace(msgspec.Struct, frozen=True, tag_field="type", tag="Replace"):
    """Replace each match in each token."""

    pattern: Pattern
    content: str


class Fuse(msgspec.Struct, frozen=True, tag_field="type", tag="Fuse"):
    """Join all tokens into one."""


class Strip(msgspec.Struct, frozen=True, tag_field="type", tag="Strip"):
    """Drop up to `start` leading and `stop` trailing occurrences of a character from each token."""

    content: str
    start: int
    stop: int


class ByteFallback(msgspec.Struct, frozen=True, tag_field="type", tag="ByteFallback"):
    """Read runs of `<0xNN>` tokens as UTF-8."""


class Sequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One after the other."""

    decoders: tuple[Decoder, ...]


Decoder = BPEDecoder | ByteLevel | WordPiece | Metaspace | CTC | Replace | Fuse | Strip | ByteFallback | Sequence
