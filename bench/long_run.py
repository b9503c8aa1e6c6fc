"""Does a worker slow down or grow over a long corpus? Encode and verify ever new text, in one process.

    python bench/long_run.py --tokenizer T.json --gigabytes 5

The text is made on the fly from a seed: words that are spelled by chance after a power law, so that common ones come
back and new ones never stop coming (as names, numbers and typing errors do), some lines of code and some of other
scripts. Prints the speed (processor time of the encoding and verifying alone) and the memory for every tenth; exits 1
where the last tenth is slower than the first by more than the tolerance, or memory passed the limit.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import random
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

import tokbatch as tb
from tokbatch.batch.transform import Transform, TransformOptions

SYLLABLES = [a + b for a in ("", *"bcdfghlmnprstv", "th", "st", "tr") for b in (*"aeiou", "ai", "ea", "ou", "er", "in")]
SCRIPTS = [range(0x0430, 0x0450), range(0x03B1, 0x03CA), range(0x4E00, 0x5200), range(0x0905, 0x0939)]
COMMON_WORDS = 60_000
NEW_WORDS = 0.03  # share of words that nobody has seen before


def documents(seed: int) -> Iterator[str]:
    """Yield documents without end, of some 200 to 20,000 characters, the same for one seed."""
    chance = random.Random(seed)
    words = [_word(chance) for _ in range(COMMON_WORDS)]
    weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(COMMON_WORDS)))
    while True:
        count = int(35 * 100 ** chance.random())
        pieces = chance.choices(words, cum_weights=weights, k=count)
        for _ in range(int(count * NEW_WORDS)):
            pieces[chance.randrange(count)] = _word(chance) + _word(chance)
        for _ in range(count // 50):
            pieces[chance.randrange(count)] = str(chance.randrange(10 ** chance.randrange(1, 9)))
        for _ in range(count // 100):
            script = chance.choice(SCRIPTS)
            other = "".join(chr(chance.choice(script)) for _ in range(chance.randrange(1, 9)))
            code = f"\n    {chance.choice(words)}[{chance.randrange(99)}] = {chance.choice(words)}(x)\n"
            pieces[chance.randrange(count)], pieces[chance.randrange(count)] = other, code
        yield " ".join(pieces)


def batches(seed: int, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield record batches of about so many characters."""
    held: list[str] = []
    size = 0
    for document in documents(seed):
        held.append(document)
        size += len(document)
        if size >= batch_bytes:
            yield pa.record_batch([pa.array(held, pa.string())], names=["text"])
            held, size = [], 0


def _word(chance: random.Random) -> str:
    word = "".join(chance.choice(SYLLABLES) for _ in range(chance.choice((1, 1, 2, 2, 3, 4))))
    return word.capitalize() if chance.random() < 0.1 else word


def memory(field: str) -> float:
    """Give a field of this process's memory in MB: VmRSS now, VmHWM at its highest."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1]) * 1024 / 1e6


def main() -> None:
    """Run for so many gigabytes, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--engine", default="native")
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch-bytes", type=int, default=2 << 20)
    parser.add_argument("--tolerance", type=float, default=0.15, help="how much slower the end may be")
    parser.add_argument("--memory", type=float, default=350, help="MB that the process may have at its highest")
    options = parser.parse_args()
    tokenizer = tb.Tokenizer.from_file(options.tokenizer, engine=options.engine)
    transform = Transform(TransformOptions(), tokenizer)
    tenth = options.gigabytes * 1e9 / 10
    done = documents_done = 0.0
    speeds: list[float] = []
    seconds = size = 0.0
    print(f"{tokenizer!r}: {memory('VmRSS'):.0f} MB before the first document", flush=True)
    for batch in batches(options.seed, options.batch_bytes):
        start = time.process_time()
        output, stats = transform.transform(batch, int(documents_done))
        seconds += time.process_time() - start
        del output
        size += stats.bytes
        documents_done += stats.documents
        if size >= tenth:
            done += size
            speeds.append(size / 1e6 / seconds)
            print(f"{done / 1e9:6.2f} GB  {speeds[-1]:7.1f} MB/s  {memory('VmRSS'):6.0f} MB now", flush=True)
            seconds = size = 0.0
        if len(speeds) == 10:
            break
    peak, change = memory("VmHWM"), speeds[-1] / speeds[0] - 1
    print(f"last tenth against the first: {change:+.0%}; memory at its highest: {peak:.0f} MB")
    if change < -options.tolerance or peak > options.memory:
        sys.exit(1)


if __name__ == "__main__":
    main()
