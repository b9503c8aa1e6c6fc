"""Small compiled character maps for tests: a double array in the layout that sentencepiece (darts-clone) writes."""

from __future__ import annotations

import base64
import struct
from typing import Any

_VALUE_BIT = 1 << 31


def charsmap(entries: dict[str, str]) -> bytes:
    """Compile a map. Entries with one replacement share its text; nothing else is shared."""
    texts = bytearray()
    places: dict[str, int] = {}
    for replacement in entries.values():
        if replacement not in places:
            places[replacement] = len(texts)
            texts += replacement.encode() + b"\0"
    root: dict[int, Any] = {}
    for key, replacement in entries.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        # Label 0 leads to the leaf: a key cannot contain NUL.
        node[0] = places[replacement]
    units = {0: 0}
    _place(units, set(), 0, root)
    size = max(units) // 256 * 256 + 256
    trie = struct.pack(f"<{size}I", *(units.get(at, 0) for at in range(size)))
    return struct.pack("<I", len(trie)) + trie + bytes(texts)


def precompiled(data: bytes) -> dict[str, str]:
    """Write a map as the normalizer of a tokenizer.json."""
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def _place(units: dict[int, int], bases: set[int], at: int, node: dict[int, Any]) -> None:
    """Find room for the children of the unit `at`, which then holds the distance to them. No two share a base."""
    base = max(bases, default=0) + 1
    while any(base ^ label in units for label in node):
        base += 1
    bases.add(base)
    offset = base ^ at
    assert offset < 1 << 21, "the long form of an offset is for larger maps"
    units[at] |= offset << 10 | (0 in node) << 8
    for label, child in node.items():
        units[base ^ label] = _VALUE_BIT | child if label == 0 else label
    for label, child in node.items():
        if label:
            _place(units, bases, base ^ label, child)
