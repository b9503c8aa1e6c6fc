"""The byte alphabet: GPT-2's 256 printable stand-ins for the values of a byte.

A byte that is a visible character of Latin-1 stands for itself; the 68 others (controls, the space, U+00AD) take the
code points from U+0100 on, in order. Source: `bytes_to_unicode` in openai/gpt-2, src/encoder.py.
"""

from __future__ import annotations

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHER = [byte for byte in range(256) if byte not in set(_VISIBLE)]

BYTE_TO_CHARACTER: dict[int, str] = {
    **{byte: chr(byte) for byte in _VISIBLE},
    **{byte: chr(0x100 + position) for position, byte in enumerate(_OTHER)},
}
