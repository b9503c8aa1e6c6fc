"""The files of Unicode tables beside this module: how they are laid out, read and written.

A file is zlib-compressed: a length (uint32, little-endian), a JSON header of that many bytes, then uint32 numbers. The
header names the sections, each a run of numbers, and may carry further facts. Sets are stored as the differences
between their bounds, mappings as three sections. What is in the tables is the business of `__init__.py` and of
`scripts/make_unicode_tables.py`.
"""

from __future__ import annotations

import array
import json
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import Any

from tokbatch.spec.unicode.code_points import CodePointSet


class Tables:
    """One file of tables in memory."""

    def __init__(self, sections: dict[str, Sequence[int]] | None = None, facts: dict[str, Any] | None = None):
        self.sections: dict[str, Sequence[int]] = sections if sections is not None else {}
        self.facts = facts if facts is not None else {}

    def __contains__(self, name: str) -> bool:
        return name in self.sections

    def set_named(self, name: str) -> CodePointSet:
        """Give a section as a set of code points."""
        return CodePointSet(tuple(accumulate(self.sections[name])))

    def put_set(self, name: str, value: CodePointSet) -> None:
        """Store a set."""
        self.sections[name] = _differences(value.bounds)

    def mapping_named(self, name: str) -> dict[int, str]:
        """Give three sections as a mapping from code points to strings."""
        values = "".join(map(chr, self.sections[f"{name}.values"]))
        ends = list(accumulate(self.sections[f"{name}.lengths"]))
        strings = [values[start:end] for start, end in pairwise([0, *ends])]
        return dict(zip(accumulate(self.sections[f"{name}.keys"]), strings, strict=True))

    def put_mapping(self, name: str, value: Mapping[int, str]) -> None:
        """Store a mapping."""
        keys = sorted(value)
        self.sections[f"{name}.keys"] = _differences(keys)
        self.sections[f"{name}.lengths"] = [len(value[key]) for key in keys]
        self.sections[f"{name}.values"] = [ord(character) for key in keys for character in value[key]]

    def to_bytes(self) -> bytes:
        """Give the content of a file; the same tables always give the same bytes."""
        numbers = array.array("I")
        places = {}
        for name in sorted(self.sections):
            places[name] = [len(numbers), len(self.sections[name])]
            numbers.extend(self.sections[name])
        if sys.byteorder == "big":
            numbers.byteswap()
        header = json.dumps({"facts": self.facts, "sections": places}, sort_keys=True).encode()
        return zlib.compress(struct.pack("<I", len(header)) + header + numbers.tobytes(), 9)

    @classmethod
    def from_bytes(cls, data: bytes) -> Tables:
        """Read the content of a file."""
        raw = zlib.decompress(data)
        (size,) = struct.unpack_from("<I", raw)
        header = json.loads(raw[4 : 4 + size])
        numbers = array.array("I")
        numbers.frombytes(raw[4 + size :])
        if sys.byteorder == "big":
            numbers.byteswap()
        sections: dict[str, Sequence[int]] = {
            name: numbers[at : at + count] for name, (at, count) in header["sections"].items()
        }
        return cls(sections, header["facts"])


@cache
def load_tables(name: str) -> Tables:
    """Read the file of that name, once."""
    return Tables.from_bytes(files(__package__).joinpath(f"{name}.bin").read_bytes())


def _differences(ascending: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise([0, *ascending])]
