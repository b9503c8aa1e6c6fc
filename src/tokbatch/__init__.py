"""tokbatch: a corpus in, checked token ids out.

    import tokbatch as tb

    tok = tb.Tokenizer.from_file("tokenizer.json")
    ids = tok.encode_batch(["a text", "another one"])       # a pyarrow list array of int32

Reading order of the source: `spec/` (what a tokenizer is), `engine/` (how text becomes ids), `batch/` (one record
batch), `tokenizer.py` (the three in one object), `job/` (a corpus), `frontends/` (ways in). Each imports only what
stands before it. Importing `tokbatch` itself is cheap: `Tokenizer` and pyarrow are loaded at their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokbatch._version import __version__
from tokbatch.errors import (
    ConfigError,
    DecodeError,
    EncodeError,
    EngineUnavailableError,
    EngineWarning,
    InputError,
    OutputError,
    SpecError,
    TokbatchError,
    UnsupportedError,
    VerifyError,
    WorkerError,
)

if TYPE_CHECKING:
    from tokbatch.batch.token_source import FromColumn
    from tokbatch.engine.encoding import Encoding
    from tokbatch.frontends.notebook import explain
    from tokbatch.spec import TokenizerSpec
    from tokbatch.tokenizer import Tokenizer

__all__ = [
    "ConfigError",
    "DecodeError",
    "EncodeError",
    "Encoding",
    "EngineUnavailableError",
    "EngineWarning",
    "FromColumn",
    "InputError",
    "OutputError",
    "SpecError",
    "TokbatchError",
    "Tokenizer",
    "TokenizerSpec",
    "UnsupportedError",
    "VerifyError",
    "WorkerError",
    "__version__",
    "explain",
]

_LAZY = {
    "FromColumn": "tokbatch.batch.token_source",
    "Encoding": "tokbatch.engine.encoding",
    "Tokenizer": "tokbatch.tokenizer",
    "TokenizerSpec": "tokbatch.spec",
    "explain": "tokbatch.frontends.notebook",
}


if not TYPE_CHECKING:  # to a type checker, a name that is not there would be there

    def __getattr__(name: str) -> object:
        if name not in _LAZY:
            raise AttributeError(f"module 'tokbatch' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_LAZY[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
