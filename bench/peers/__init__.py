"""The libraries that are measured, one a file; each is imported when it is measured, and only then.

A peer turns texts into ids by the fastest way in that its documentation knows, on one thread. What it cannot do with a
tokenizer.json it says by `Unfit`; whether what it does is right is found out from its ids (see `measure.py`).
"""

from __future__ import annotations

import importlib
import pathlib
import textwrap
from typing import Any, Protocol

NAMES = (
    "tokbatch",
    "tokbatch_reference",
    "tokenizers",
    "gigatoken",
    "tiktoken",
    "sentencepiece",
    "tokie",
    "fastokens",
    "kitoken",
)


class Unfit(Exception):
    """The library is not installed, or cannot express this tokenizer; the reason is for the table."""


class Peer(Protocol):
    """A library with a tokenizer loaded. `texts` is an Arrow array of strings without nulls."""

    version: str
    share: float
    """The part of the corpus that is enough: libraries without a cache that matters run at an even speed."""

    def prepare(self, texts: Any) -> Any:
        """Give the texts in the library's own form. Not timed."""

    def encode(self, prepared: Any) -> Any:
        """Encode all texts, without special tokens around them. Timed."""

    def ids(self, encoded: Any) -> Any:
        """Give all ids of what `encode` gave, in order, as one numpy array of int32. Not timed."""


def load_peer(name: str, tokenizer: pathlib.Path) -> Peer:
    """Import a library and load a tokenizer.json with it. Raises `Unfit`."""
    try:
        module = importlib.import_module(f"peers.{name}_peer")
    except ImportError as error:
        raise Unfit(f"not installed: {error}") from None
    try:
        return module.load(tokenizer)  # type: ignore[no-any-return]
    except (Unfit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in a library is no Exception
        raise Unfit(f"refused: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """Give what an error says, without the places in a library's source that some add below."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return textwrap.shorten(lines[0], 160, placeholder=" ...") if lines else type(error).__name__
