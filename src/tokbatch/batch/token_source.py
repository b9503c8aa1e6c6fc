"""Where a token that is put around documents comes from. Apart from `affixes.py`, so that a config needs no pyarrow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FromColumn:
    """The token that a row has in a column of strings; `column` is a name or a dotted path."""

    column: str


TokenSource = str | FromColumn
"""A token string, or the column where each row has its own."""
