"""The post-processors of tokenizer.json, as values: one class per `type`, fields named as in the file.

What each of them does to an encoding stands in `engine/reference/post_processors.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class BertProcessing(msgspec.Struct, frozen=True, tag_field="type", tag="BertProcessing"):
    """`[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`. `sep` and `cls` are (token, id)."""

    sep: tuple[str, int]
    cls: tuple[str, int]


class RobertaProcessing(msgspec.Struct, frozen=True, tag_field="type", tag="RobertaProcessing"):
    """`<s> A </s>` and `<s> A </s> </s> B </s>`. `sep` and `cls` are (token, id)."""

    sep: tuple[str, int]
    cls: tuple[str, int]
    trim_offsets: bool
    add_prefix_space: bool


class ByteLevel(msgspec.Struct, frozen=True, tag_field="type", tag="ByteLevel"):
    """Trim the whitespace of byte-level tokens from their offsets."""

    add_prefix_space: bool
    trim_offsets: bool
    use_regex: bool = True


class SequencePiece(msgspec.Struct, frozen=True, tag_field="kind", tag="Sequence"):
    """The place of a text in a template: `id` is "A" or "B"."""

    id: Literal["A", "B"]
    type_id: int


class SpecialTokenPiece(msgspec.Struct, frozen=True, tag_field="kind", tag="SpecialToken"):
    """The place of a special token in a template: `id` is a key of `special_tokens`."""

    id: str
    type_id: int


TemplatePiece = SequencePiece | SpecialTokenPiece


class TemplateToken(msgspec.Struct, frozen=True):
    """What a special token of a template stands for: one or more ids with their token strings."""

    id: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]


class TemplateProcessing(msgspec.Struct, frozen=True, tag_field="type", tag="TemplateProcessing"):
    """Any arrangement of the texts and of special tokens."""

    single: tuple[TemplatePiece, ...]
    pair: tuple[TemplatePiece, ...]
    special_tokens: dict[str, TemplateToken]


class Sequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One after the other."""

    processors: tuple[PostProcessor, ...]


PostProcessor = BertProcessing | RobertaProcessing | ByteLevel | TemplateProcessing | Sequence
