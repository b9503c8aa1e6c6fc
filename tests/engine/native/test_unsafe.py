"""Every `unsafe` of the native engine is on a list, and says why it is safe."""

from __future__ import annotations

import pathlib
import re

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[3] / "native" / "src"

# What a new one has to show is a measurement (docs/log.md) or an interface that cannot be used without it.
KNOWN = {
    "cache/key.rs": 1,  # instructions that not every processor has
    "cache/long.rs": 1,  # words read as bytes
    "cache/short.rs": 3,  # ids written behind the end of a vector in which there is room
    "extensions.rs": 1,  # what is built for processors that have them
    "hash.rs": 1,  # prefetching
    "patterns/scan.rs": 3,  # two functions for processors with AVX2, and where they are called
    "patterns/splitter.rs": 1,  # the step of the transducer, without a look at the length of its table
    "python.rs": 2,  # buffers of the interpreter, in and out
    "table_file.rs": 1,  # a file that is mapped into memory
    "tables.rs": 3,  # what lies in memory or in such a file, as a slice
    "token_table/slots.rs": 1,  # slots copied to where there is room for all of them
}
# Lines of a comment that may stand between `SAFETY` and what it speaks of.
FURTHEST = 8


def unsafe_places(path: pathlib.Path) -> list[tuple[int, bool]]:
    """The lines with an `unsafe` in code, and whether a comment with SAFETY comes before."""
    lines = path.read_text().splitlines()
    places = []
    for number, line in enumerate(lines):
        code = line.split("//")[0]
        for _ in re.findall(r"\bunsafe\b", code):
            before = lines[max(0, number - FURTHEST) : number + 1]
            places.append((number + 1, any("SAFETY" in line for line in before)))
    return places


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the native engine are not here")
def test_every_unsafe_is_known_and_has_a_reason():
    found = {path.relative_to(SOURCES).as_posix(): unsafe_places(path) for path in SOURCES.rglob("*.rs")}
    bare = {f"{name}:{line}" for name, places in found.items() for line, has_reason in places if not has_reason}

    assert not bare
    assert {name: len(places) for name, places in found.items() if places} == KNOWN
    assert sum(KNOWN.values()) <= 18
