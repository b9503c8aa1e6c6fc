"""Texts written in the byte alphabet (`spec/byte_alphabet.py`).

Used by the normalizer and the pre-tokenizer `ByteLevel`, and by the decoder of that name.
"""

from __future__ import annotations

import codecs

from tokbatch.spec.byte_alphabet import BYTE_TO_CHARACTER

__all__ = ["BYTE_TO_CHARACTER", "CHARACTER_TO_BYTE", "to_byte_alphabet"]

CHARACTER_TO_BYTE: dict[str, int] = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}

# As a decoding table of a one-byte character set, the alphabet is applied at the speed of a copy.
_DECODING_TABLE = "".join(BYTE_TO_CHARACTER[byte] for byte in range(256))


def to_byte_alphabet(text: str) -> str:
    """Write each byte of the text's UTF-8 as a character of the alphabet.

    >>> to_byte_alphabet(" é")
    'ĠÃ©'
    """
    return codecs.charmap_decode(text.encode(), "strict", _DECODING_TABLE)[0]
