"""The part of the wire that is needed also where an engine comes from tables: its version, and the options of a spec.

All the rest, in `wire.py`, analyses patterns, and is imported when an engine is built.
"""

from __future__ import annotations

import msgspec

from tokbatch.spec import TokenizerSpec
from tokbatch.spec.lazy import OPTIONS

WIRE_VERSION = 6  # the same number stands in native/src/spec.rs


def options_to_wire(spec: TokenizerSpec, cached_pretokens: int) -> bytes:
    """Write the options, which are not always those of the file, and how many pretokens an encoder remembers."""
    options = {option: getattr(spec, option) for option in OPTIONS}
    return msgspec.msgpack.encode({**options, "cached_pretokens": cached_pretokens})
