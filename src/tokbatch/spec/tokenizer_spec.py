"""The whole of a tokenizer.json as one value: what both engines are built from, and all they are built from."""

from __future__ import annotations

from typing import Literal

import msgspec

from tokbatch.spec.decoders import Decoder
from tokbatch.spec.models import Model
from tokbatch.spec.normalizers import Normalizer
from tokbatch.spec.post_processors import PostProcessor
from tokbatch.spec.pre_tokenizers import PreTokenizer

Direction = Literal["Left", "Right"]


class AddedToken(msgspec.Struct, frozen=True):
    """An entry that is matched in the text before the model sees it.

    `id` is what the file says. The id that the tokenizer gives can be another one: see `added_token_ids`.
    """

    id: int
    content: str
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool


class Truncation(msgspec.Struct, frozen=True):
    """Lengths are in tokens."""

    max_length: int
    stride: int = 0
    strategy: Literal["LongestFirst", "OnlyFirst", "OnlySecond"] = "LongestFirst"
    direction: Direction = "Right"


class Padding(msgspec.Struct, frozen=True):
    """`fixed_length` is None for the file's strategy "BatchLongest". Lengths are in tokens."""

    fixed_length: int | None
    direction: Direction
    pad_to_multiple_of: int | None
    pad_id: int
    pad_type_id: int
    pad_token: str


class TokenizerSpec(msgspec.Struct, frozen=True):
    """A parsed and checked tokenizer.json.

    `ignored_keys` are the JSON paths of keys that `tokenizers` ignores too (it refuses others, and so do we).
    `encode_special_tokens` is not in the file: true means that special tokens in a text are ordinary text.
    """

    model: Model
    added_tokens: tuple[AddedToken, ...] = ()
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None
    truncation: Truncation | None = None
    padding: Padding | None = None
    encode_special_tokens: bool = False
    ignored_keys: tuple[str, ...] = ()
