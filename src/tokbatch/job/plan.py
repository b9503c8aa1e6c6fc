"""The plan: which shards there are. A pure function of what the inputs hold; nothing is read or written here.

A shard is a run of row groups of one input and becomes one part of the output, or a few (see `parts.py`). Shards do not
depend on the number of workers: so neither do the parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tokbatch.job.sources import Unit

SMALLEST, SMALL, LARGEST = 4 << 20, 16 << 20, 256 << 20
SHARDS_WANTED = 512
SHARDS_NEEDED = 32  # where shards stay small for it: so many workers end at about the same time


@dataclass(frozen=True, slots=True)
class Shard:
    """The unit of work: units `start` to `stop` (excluded) of the input number `input`, from its row `first_row` on.

    `index` counts through the plan, `number` within the input.
    """

    index: int
    input: int
    number: int
    start: int
    stop: int
    first_row: int
    rows: int
    text_bytes: int

    @property
    def file_rows(self) -> tuple[int, int]:
        """The row of the input that it starts with, and the one after its last."""
        return self.first_row, self.first_row + self.rows

    def part_name(self, input_name: str) -> str:
        """Name the part under data/, without its suffix. Names sort as the rows do; inputs of one base name differ."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", input_name.rstrip("/").rsplit("/", 1)[-1])
        stem = re.sub(r"\.(parquet|pq)$", "", stem).strip("._")[:80] or "input"
        return f"{self.input:05d}-{stem}-{self.number:05d}"


def shard_size(inputs: Sequence[Sequence[Unit]], wanted: int) -> int:
    """Give the bytes of text a shard should hold: what is wanted, or for 0 what suits the size of the corpus.

    Small enough that many workers end at about the same time and little is lost by a kill, large enough that a
    corpus of terabytes does not become a million files.
    """
    total = sum(unit.text_bytes for units in inputs for unit in units)
    smallest = min(SMALL, max(SMALLEST, total // SHARDS_NEEDED))
    return wanted or min(LARGEST, max(smallest, total // SHARDS_WANTED))


def plan_shards(inputs: Sequence[Sequence[Unit]], wanted_bytes: int = 0) -> list[Shard]:
    """Cut each input into shards of about equal bytes. An input without rows is one shard: its part has no rows."""
    size = shard_size(inputs, wanted_bytes)
    shards: list[Shard] = []
    for index, units in enumerate(inputs):
        first_row = 0
        for number, (start, stop) in enumerate(_cut(units, size)):
            rows = sum(unit.rows for unit in units[start:stop])
            text_bytes = sum(unit.text_bytes for unit in units[start:stop])
            shards.append(Shard(len(shards), index, number, start, stop, first_row, rows, text_bytes))
            first_row += rows
    return shards


def _cut(units: Sequence[Unit], size: int) -> list[tuple[int, int]]:
    """Give runs of units whose bytes are near total / n, where n is the number of shards that the total needs."""
    total = sum(unit.text_bytes for unit in units)
    count = min(len(units), max(1, round(total / size)))
    if count <= 1:
        return [(0, len(units))]
    cuts, done = [0], 0
    for index, unit in enumerate(units):
        goal = len(cuts) * total / count
        # The boundary that lies nearer to the goal, before or after this unit; no run is left empty.
        if len(cuts) < count and done + unit.text_bytes / 2 > goal and index > cuts[-1]:
            cuts.append(index)
        done += unit.text_bytes
    return list(zip(cuts, [*cuts[1:], len(units)], strict=True))
