"""Text without end that does not repeat itself: what a worker meets in a long run.

Words come after a power law; some three in a hundred are two words in one, which nobody has seen before. So common
pretokens come back and new ones never stop coming.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SYLLABLES = [a + b for a in ("", *"bcdfghlmnprstv", "th", "st", "tr") for b in (*"aeiou", "ai", "ea", "ou", "er", "in")]
COMMON_WORDS = 60_000
NEW_WORDS = 0.03
WORDS_AT_ONCE = 1 << 20


def new_text(seed: int) -> Iterator[bytes]:
    """Yield pieces of some MB, without end, the same for one seed; each ends after a word."""
    chance = np.random.default_rng(seed)
    syllables = chance.integers(0, len(SYLLABLES), (COMMON_WORDS, 3))
    spelled = ["".join(SYLLABLES[i] for i in row[: 1 + number % 3]) for number, row in enumerate(syllables.tolist())]
    words = [f"{word} ".encode() for word in spelled] + [word.encode() for word in spelled]
    shares = np.cumsum(1 / (np.arange(COMMON_WORDS) + 2.7))
    while True:
        numbers = np.searchsorted(shares, chance.random(WORDS_AT_ONCE) * shares[-1])
        joined = COMMON_WORDS * (chance.random(WORDS_AT_ONCE) < NEW_WORDS)  # without the space behind it
        yield b"".join(map(words.__getitem__, np.minimum(numbers, COMMON_WORDS - 1) + joined))


def new_documents(seed: int, size: int, longest: int = 20_000) -> Iterator[pa.LargeStringArray]:
    """Yield arrays of documents of 100 to `longest` bytes, `size` bytes in all; documents are cut anywhere."""
    chance = np.random.default_rng(seed + 1)
    for piece in new_text(seed):
        piece = piece[:size]
        size -= len(piece)
        lengths = (100 * (longest / 100) ** chance.random(max(2, len(piece) // 100))).astype(np.int64)
        ends = np.cumsum(lengths)
        ends = np.append(ends[ends < len(piece)], len(piece))
        offsets = pa.array(np.append(0, ends), pa.int64())
        yield pa.Array.from_buffers(pa.large_string(), len(ends), [None, offsets.buffers()[1], pa.py_buffer(piece)])
        if not size:
            return


def write_one_row_group(path: Path, columns: Iterator[pa.Array], name: str = "text") -> None:
    """Write arrays as one column of one row group, whatever its size; all of it is in memory meanwhile."""
    table = pa.table({name: pa.chunked_array(list(columns))})
    pq.write_table(table, path, compression="zstd", row_group_size=table.num_rows)
    assert pq.ParquetFile(path).num_row_groups == 1
