"""The byte alphabet: GPT-2's 256 printable stand-ins for the values of a byte.

A byte that is a visible character of Latin-1 stands for itself; the 68 others (controls, the space, U+00AD) take the
code points from U+0100 on, in order. Source: `bytes_to_unicode` in openai/gpt-2, src/encoder.py.

Used by the normalizer and the pre-tokenizer `ByteLevel`, and by the decoder of that name.
"""

from __future__ import annotations

import codecs

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHER = [byte for byte in range(256) if byte not in set(_VISIBLE)]

BYTE_TO_CHARACTER: dict[int, str] = {
    **{byte: chr(byte) for byte in _VISIBLE},
    **{byte: chr(0x100 + position) for position, byte in enumerate(_OTHER)},
}
CHARACTER_TO_BYTE: dict[str, int] = {character: byte for byte, character in BYTE_TO_CHARACTER.items()}

# As a decoding table of a one-byte character set, the alphabet is applied at the speed of a copy.
_DECODING_TABLE = "".join(BYTE_TO_CHARACTER[byte] for byte in range(256))


def to_byte_alphabet(text: str) -> str:
    """Write each byte of the text's UTF-8 as a character of the alphabet.

    >>> to_byte_alphabet(" é")
    'ĠÃ©'
    """
    return codecs.charmap_decode(text.encode(), "strict", _DECODING_TABLE)[0]
