"""The part of the wire that is needed also where an engine comes from tables: its version, and the options of a spec.

All the rest, in `wire.py`, analyses patterns, and is imported when an engine is built.
"""

from __future__ import annotations

import msgspec

from tokbatch.spec import TokenizerSpec
from tokbatch.spec.lazy import OPTIONS

WIRE_VERSION = 5  # the same number stands in native/src/spec.rs


def options_to_wire(spec: TokenizerSpec, cached_pretokens: int | None = None) -> bytes:
    """Write the options, not always those of the file, and how many pretokens to remember, where that is said."""
    options = {option: getattr(spec, option) for option in OPTIONS}
    if cached_pretokens is not None:
        options["cached_pretokens"] = cached_pretokens
    return msgspec.msgpack.encode(options)
