"""The pattern of a Split or Replace: a literal string, or a regular expression in Oniguruma's syntax.

Only the value is here. `regex_syntax.py` parses the expression into a tree; the engines compile that tree.
"""

from __future__ import annotations

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """Exactly one of `string` and `regex` is set (`{"String": ...}` or `{"Regex": ...}` in the file)."""

    string: str | None = None
    regex: str | None = None
