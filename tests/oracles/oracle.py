"""The oracle: `tokenizers` 0.23.3, the outside source of truth that both engines are held against.

This is the only file of the tree that imports `tokenizers`; everything else that wants to ask takes this module
(tests through the `oracle` fixture). The version is asserted, because an answer means nothing without it.

The oracle panics on some inputs. The exception that comes out of a Rust panic is a `BaseException` and no
`Exception`; here it becomes an `OracleError` with `panicked` set, as every other failure of the oracle becomes an
`OracleError` without it.

`answers.py` says what is asked and how an answer is written down; `make_oracles.py` freezes answers.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

# A panic prints a backtrace of forty lines where the environment asks for one. The message is enough.
os.environ["RUST_BACKTRACE"] = "0"
# The oracle may otherwise start threads for its batch calls, and warns about them after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import tokenizers
from tokenizers import (
    AddedToken,
    Encoding,
    NormalizedString,
    PreTokenizedString,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

VERSION = "0.23.3"
if tokenizers.__version__ != VERSION:
    raise ImportError(f"the oracle is tokenizers {VERSION}; installed is {tokenizers.__version__}")

__all__ = [
    "VERSION",
    "AddedToken",
    "Encoding",
    "NormalizedString",
    "OracleError",
    "PreTokenizedString",
    "Tokenizer",
    "component",
    "decode",
    "decoders",
    "encode",
    "guard",
    "models",
    "normalizers",
    "pre_tokenizers",
    "processors",
    "quiet",
    "tokenizer",
    "trainers",
]

_EMPTY: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": None,
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
}


class OracleError(Exception):
    """The oracle refused a tokenizer, failed on a text, or crashed (`panicked`)."""

    def __init__(self, message: str, *, panicked: bool = False):
        super().__init__(message)
        self.panicked = panicked


@contextlib.contextmanager
def guard() -> Iterator[None]:
    """Turn whatever the oracle raises, its panics included, into an `OracleError`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, OracleError):
        raise
    except BaseException as error:
        raise OracleError(str(error), panicked=not isinstance(error, Exception)) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Send the process's stderr to nowhere meanwhile: a panic writes there, past `sys.stderr`."""
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def tokenizer(json_text: str | bytes | dict[str, Any], encode_special_tokens: bool = False) -> Tokenizer:
    """Load a tokenizer from the text of a tokenizer.json (or from its value). A refusal is an `OracleError`."""
    if isinstance(json_text, dict):
        json_text = json.dumps(json_text)
    if isinstance(json_text, bytes):
        json_text = json_text.decode()
    with guard():
        loaded = Tokenizer.from_str(json_text)
        loaded.encode_special_tokens = encode_special_tokens
    return loaded


def component(section: str, value: Any) -> Any:
    """Load one component, such as `component("normalizer", {"type": "NFC"})`."""
    return getattr(tokenizer({**_EMPTY, section: value}), section)


def encode(loaded: Tokenizer, text: str, pair: str | None = None, add_special_tokens: bool = True) -> Encoding:
    """Encode one text, or a pair; offsets are in characters."""
    with guard():
        return loaded.encode(text, pair, add_special_tokens=add_special_tokens)


def decode(loaded: Tokenizer, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
    """Decode ids."""
    with guard():
        return loaded.decode(list(ids), skip_special_tokens=skip_special_tokens)
