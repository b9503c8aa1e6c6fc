"""The digest of a spec: equal for two files that say the same, different for two that may give other ids or texts.

It is the SHA-256 of the spec as JSON with sorted keys, so that neither the order of keys nor the spacing nor an older
spelling of the file counts. Keys that the oracle ignores do not count either. What the file leaves to defaults, and
whether special tokens are ordinary text, does.
"""

from __future__ import annotations

import hashlib

import msgspec

from tokbatch.spec.tokenizer_spec import TokenizerSpec

# Goes into every digest. To be raised when the spec's fields change their meaning, and only then.
FORMAT = b"tokbatch spec 1\n"


def digest(spec: TokenizerSpec) -> str:
    """Give the digest in hexadecimal. A saved output holds it: see `docs/output.md` before changing anything here."""
    content = msgspec.json.encode(msgspec.structs.replace(spec, ignored_keys=()), order="sorted")
    return hashlib.sha256(FORMAT + content).hexdigest()
