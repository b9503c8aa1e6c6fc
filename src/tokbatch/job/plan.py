"""The plan: which shards there are. A pure function of what the inputs hold; nothing is read or written here.

A shard is a run of row groups of one input, or a run of rows of a large one, and becomes one part of the output, or a
few (see `parts.py`). Shards do not depend on the number of workers: so neither do the parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokbatch.job.sources import Unit

SMALLEST, SMALL, LARGEST = 4 << 20, 16 << 20, 256 << 20
SMALLEST_FOR_REFERENCE = 1 << 20
"""The reference engine takes a second or two for this much."""
SHARDS_WANTED = 512
SHARDS_NEEDED = 32  # where shards stay small for it: so many workers end at about the same time
MOST_PIECES = 8
"""How many pieces a row group is cut into at the most: whoever makes a piece has to read what lies before it."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The unit of work: rows of the units `start` to `stop` (excluded) of the input number `input`.

    It begins at row `first_row` of the input, and `skip` rows after the first of the units does. `index` counts
    through the plan, `number` within the input.
    """

    index: int
    input: int
    number: int
    start: int
    stop: int
    first_row: int
    rows: int
    text_bytes: int
    skip: int = 0

    @property
    def file_rows(self) -> tuple[int, int]:
        """The row of the input that it starts with, and the one after its last."""
        return self.first_row, self.first_row + self.rows

    def part_name(self, input_name: str) -> str:
        """Name the part under data/, without its suffix. Names sort as the rows do; inputs of one base name differ."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", input_name.rstrip("/").rsplit("/", 1)[-1])
        stem = re.sub(r"\.(parquet|pq)$", "", stem).strip("._")[:80] or "input"
        return f"{self.input:05d}-{stem}-{self.number:05d}"


def shard_size(inputs: Sequence[Sequence[Unit]], wanted: int, smallest: int = SMALLEST) -> int:
    """Give the bytes of text a shard should hold: what is wanted, or for 0 what suits the size of the corpus.

    Small enough that many workers end at about the same time and little is lost by a kill, large enough that a
    corpus of terabytes does not become a million files.
    """
    total = sum(unit.text_bytes for units in inputs for unit in units)
    smallest = min(SMALL, max(smallest, total // SHARDS_NEEDED))
    return wanted or min(LARGEST, max(smallest, total // SHARDS_WANTED))


def plan_shards(inputs: Sequence[Sequence[Unit]], wanted_bytes: int = 0) -> list[Shard]:
    """Cut each input into shards of about equal bytes. An input without rows is one shard: its part has no rows."""
    size = shard_size(inputs, wanted_bytes)
    shards: list[Shard] = []
    for index, units in enumerate(inputs):
        first_row = 0
        pieces = [piece for number, unit in enumerate(units) for piece in _pieces(number, unit, size)]
        for number, (start, stop) in enumerate(_cut([piece.text_bytes for piece in pieces], size)):
            run = pieces[start:stop]
            rows = sum(piece.rows for piece in run)
            text_bytes = sum(piece.text_bytes for piece in run)
            first, last, skip = (run[0].unit, run[-1].unit + 1, run[0].skip) if run else (0, 0, 0)
            shards.append(Shard(len(shards), index, number, first, last, first_row, rows, text_bytes, skip))
            first_row += rows
    return shards


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of the unit number `unit`, from its row `skip` on."""

    unit: int
    skip: int
    rows: int
    text_bytes: int


def _pieces(number: int, unit: Unit, size: int) -> list[_Piece]:
    """Cut a unit into even pieces where it is much larger than a shard should be."""
    count = min(MOST_PIECES, unit.rows, round(unit.text_bytes / size)) if unit.by_rows else 1
    if count < 2:
        return [_Piece(number, 0, unit.rows, unit.text_bytes)]
    rows = [unit.rows * i // count for i in range(count + 1)]
    size_to = [unit.text_bytes * i // count for i in range(count + 1)]
    return [_Piece(number, rows[i], rows[i + 1] - rows[i], size_to[i + 1] - size_to[i]) for i in range(count)]


def _cut(sizes: Sequence[int], size: int) -> list[tuple[int, int]]:
    """Give runs whose bytes are near total / n, where n is the number of shards that the total needs."""
    total = sum(sizes)
    count = min(len(sizes), max(1, round(total / size)))
    if count <= 1:
        return [(0, len(sizes))]
    cuts, done = [0], 0
    for index, own in enumerate(sizes):
        goal = len(cuts) * total / count
        # The boundary that lies nearer to the goal, before or after this one; no run is left empty.
        if len(cuts) < count and done + own / 2 > goal and index > cuts[-1]:
            cuts.append(index)
        done += own
    return list(zip(cuts, [*cuts[1:], len(sizes)], strict=True))
