"""Every exception that tokbatch raises.

    TokbatchError
    ├── SpecError                a tokenizer.json that is not one
    │   └── UnsupportedError     ... or that asks for what we do not reproduce exactly
    ├── ConfigError              a job's config, or a bad argument
    ├── EncodeError              a document that cannot be encoded
    ├── DecodeError              ids that cannot be decoded
    ├── VerifyError              outputs that do not match manifest or inputs
    ├── InputError               a file, column or row that cannot be read
    ├── OutputError              a place that cannot be written
    ├── WorkerError              a worker process that died
    └── EngineUnavailableError   an engine that is not installed

Each carries a stable `code`, the place (`where`: a JSON path, a dotted config key, or file:row group:row) and,
where there is something to do about it, a `hint`. No input makes anything else escape from the public surface.
`EngineWarning` is the one warning: it is no error that the slow engine works, and nothing to be silent about.
"""

from __future__ import annotations

from typing import Any, TypeVar


class TokbatchError(Exception):
    """Root of the tree.

    `str(error)` is one line, the fact first: ``where: message``, then the hint on a line of its own.
    Errors cross process boundaries as data: see `to_dict` and `from_dict`.
    """

    code = "error"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None, code: str | None = None):
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\nhint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Give the error as plain data, which `from_dict` turns back into an equal error."""
        return {
            "class": type(self).__name__,
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
        }


Error = TypeVar("Error", bound=TokbatchError)


class SpecError(TokbatchError):
    """The tokenizer.json is broken: not JSON, a wrong type, a merge of unknown tokens. `where` is a JSON path."""

    code = "bad-spec"


class UnsupportedError(SpecError):
    """The tokenizer.json asks for something that is not reproduced exactly. `where` is a JSON path."""

    code = "unsupported"


class ConfigError(TokbatchError):
    """A config or an argument is wrong. `where` is the dotted key; `problems` lists all of them."""

    code = "bad-config"

    def __init__(self, message: str, *, problems: list[str] | None = None, **kw: Any):
        super().__init__(message, **kw)
        self.problems = problems if problems is not None else [message]

    def to_dict(self) -> dict[str, Any]:
        """As in `TokbatchError`, with all the problems."""
        return {**super().to_dict(), "problems": self.problems}


class EncodeError(TokbatchError):
    """A document cannot be encoded. `row` is its index in the batch that was given, where there was a batch."""

    code = "cannot-encode"

    def __init__(self, message: str, *, row: int | None = None, **kw: Any):
        super().__init__(message, **kw)
        self.row = row

    def move_to_row(self, row: int) -> None:
        """Say that it was row `row`: for whoever gave the engine some rows of a longer column."""
        if self.where is not None:
            self.where = self.where.replace(f"row {self.row}", f"row {row}")
        self.row = row

    def to_dict(self) -> dict[str, Any]:
        """As in `TokbatchError`, with the row."""
        return {**super().to_dict(), "row": self.row}


class DecodeError(TokbatchError):
    """Ids cannot be decoded: negative, or no integer."""

    code = "cannot-decode"


class VerifyError(TokbatchError):
    """Outputs do not agree with the manifest, with the inputs, or with a second encoding."""

    code = "verify-failed"


class InputError(TokbatchError):
    """An input cannot be read: no such file, not Parquet, no such column, a wrong type.

    Where it is about a column that a config or an argument names, the code is `WRONG_COLUMN`; where what
    one names is not there at all, before there is any work, `NOT_THERE`.
    """

    code = "bad-input"


WRONG_COLUMN = "wrong-column"
NOT_THERE = "not-there"


class OutputError(TokbatchError):
    """An output cannot be written: in use, full, not ours."""

    code = "bad-output"


class WorkerError(TokbatchError):
    """A worker process ended without an answer."""

    code = "worker-died"


class EngineUnavailableError(TokbatchError):
    """The engine that was asked for is not installed."""

    code = "no-engine"


class EngineWarning(UserWarning):
    """The reference engine does work that the native one was expected to do: it is not installed, or it refuses."""


def located(error: Error, name: str) -> Error:
    """Put the name of an input before the place of an error, where it is not there yet."""
    if not (error.where or "").startswith(name):
        error.where = f"{name}: {error.where}" if error.where else name
    return error


_CLASSES: dict[str, type[TokbatchError]] = {
    c.__name__: c
    for c in (
        TokbatchError,
        SpecError,
        UnsupportedError,
        ConfigError,
        EncodeError,
        DecodeError,
        VerifyError,
        InputError,
        OutputError,
        WorkerError,
        EngineUnavailableError,
    )
}


def from_dict(data: dict[str, Any]) -> TokbatchError:
    """Build the error that `TokbatchError.to_dict` described, as the same class."""
    fields = dict(data)
    error_class = _CLASSES[fields.pop("class")]
    return error_class(fields.pop("message"), **fields)
