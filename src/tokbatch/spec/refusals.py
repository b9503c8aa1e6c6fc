"""What the oracle loads and tokbatch refuses by name: one table, from which the tests and `tokbatch inspect` are made.

A refusal is an `UnsupportedError` with the JSON path, the value, and the reason from here as its hint. Patterns have
reasons of their own: see `regex_syntax.py`.
"""

from __future__ import annotations

from tokbatch.errors import UnsupportedError

REFUSALS = {
    "unknown type": "`tokenizers` passes over a `type` that it does not know, and guesses a component from the fields",
    "array for object": "write an object; `tokenizers` also takes an array of the values in an order of its own",
    "object for name": "write the name as a string; `tokenizers` also takes an object with the name as its only key",
    "dropout": "random merges give other ids each time; only 0 (or null) and 1 (no merge at all) can be equal",
    "length of zero": "`tokenizers` crashes on every text that reaches this pre-tokenizer",
    "skipped value": "`tokenizers` does not read this key, but other JSON readers stumble over the value; remove it",
}


def refuse(name: str, message: str, where: str, hint: str | None = None) -> UnsupportedError:
    """Build the error of a refusal. `name` is a key of `REFUSALS`."""
    return UnsupportedError(message, where=where, hint=f"{REFUSALS[name]}{f'; {hint}' if hint else ''}")
