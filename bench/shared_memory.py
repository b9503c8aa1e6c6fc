"""What does one more worker cost in memory? Start them one after the other, and look where their memory lies.

    python bench/shared_memory.py T.json [--corpus C.parquet --column text] [--workers 3] [--megabytes 30]

Each worker reads its text once, without a tokenizer. Then it loads the tokenizer, whose tables come from the cache
(`TOKBATCH_CACHE`), and encodes and verifies the text in small batches; then it waits, and the next one starts. Printed
is the proportional set size (memory that n processes share counts as 1/n in each) of all workers together, in MB, by
kind: what the engine keeps in anonymous memory (the heap now, less the heap before the tokenizer was loaded), its
mapped tables, its code, and what Python, pyarrow and the libraries take. The lines of later workers say what each
of them added. Exits 1 where the tokenizer's own share of a later worker passes `--limit`. Linux only.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from long_run import batches

import tokbatch as tb

STAGES = ("python", "ready", "at work")
KINDS = ("heap", "tables", "code", "python")
OWN = ("heap", "tables", "code")


def memory(process: int) -> Counter[str]:
    """Give the proportional set size of a process in bytes, by kind; its whole heap is "heap"."""
    found: Counter[str] = Counter()
    kind = ""
    for line in pathlib.Path(f"/proc/{process}/smaps").read_text().splitlines():
        key, *rest = line.split()
        if not key.endswith(":"):
            path = " ".join(rest[4:])
            if "/tables/" in path:
                kind = "tables"
            elif "tokbatch/_native" in path:
                kind = "code"
            else:
                kind = "python" if path.startswith("/") else "heap"
        elif key == "Pss:":
            found[kind] += int(rest[0]) << 10
    return found


def texts(options: argparse.Namespace) -> Iterator[pa.Array]:
    """Yield the texts of a worker: those of the corpus, or some that no other worker has."""
    size = 0.0
    if options.corpus:
        rows = pq.ParquetFile(options.corpus).iter_batches(batch_size=64, columns=[options.column])
        found = (batch.column(0) for batch in rows)
    else:
        found = (batch.column(0) for batch in batches(options.number, options.batch_bytes))
    for column in found:
        yield column
        size += column.nbytes / 1e6
        if size >= options.megabytes:
            return


def work(options: argparse.Namespace) -> None:
    """Be a worker: say when a stage is reached, and wait until somebody has looked."""

    def reached(stage: str) -> None:
        print(stage, flush=True)
        sys.stdin.readline()

    for column in texts(options):
        column.nbytes  # noqa: B018
    reached("python")
    tokenizer = tb.Tokenizer.from_file(options.tokenizer, engine="native")
    reached("ready")
    for column in texts(options):
        tokenizer.verify_batch(column, tokenizer.encode_batch(column))
    reached("at work")


def start(options: argparse.Namespace, number: int) -> tuple[subprocess.Popen[str], dict[str, Counter[str]]]:
    """Start a worker and see it to work; give what its memory was at each stage."""
    call = [sys.executable, *sys.argv, "--number", str(number)]
    process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    seen = {}
    for stage in STAGES:
        if process.stdout.readline().strip() != stage:
            raise SystemExit(f"worker {number} did not come to the stage {stage!r}")
        seen[stage] = memory(process.pid)
        if stage != STAGES[-1]:
            print(file=process.stdin, flush=True)
    return process, seen


def main() -> None:
    """Start the workers, and print what each of them added."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("--corpus", help="a Parquet file; without one, text is made up")
    parser.add_argument("--column", default="text")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=30, help="text for each worker")
    parser.add_argument("--batch-bytes", type=int, default=1 << 20, help="of text that is made up")
    parser.add_argument("--limit", type=float, default=60, help="MB of its own that a later worker may take")
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.number is not None:
        return work(options)
    tb.Tokenizer.from_file(options.tokenizer, engine="native")  # makes the tables, where they are not there
    workers: list[subprocess.Popen[str]] = []
    before: Counter[str] = Counter()
    print(f"{'MB':<30}" + "".join(f"{kind:>10}" for kind in (*KINDS, "own", "all")))
    passed = False
    try:
        for number in range(options.workers):
            process, seen = start(options, number)
            workers.append(process)
            own_before = seen["python"]["heap"]
            show(
                f"worker {number + 1}, ready",
                seen["ready"],
                own_before,
            )
            now = Counter[str]()
            for each in workers:
                now.update(memory(each.pid))
            added = Counter({kind: now[kind] - before[kind] for kind in KINDS})
            own = show(f"worker {number + 1}, at work, added", added, own_before)
            passed |= number > 0 and own > options.limit
            before = now
    finally:
        for process in workers:
            process.kill()
    sys.exit(int(passed))


def show(name: str, sizes: Counter[str], heap_before: int) -> float:
    """Print sizes in MB, the heap in two parts; give what is the tokenizer's own."""
    sizes = Counter({**sizes, "heap": sizes["heap"] - heap_before, "python": sizes["python"] + heap_before})
    own = sum(sizes[kind] for kind in OWN) / 1e6
    figures = [*(sizes[kind] / 1e6 for kind in KINDS), own, sum(sizes.values()) / 1e6]
    print(f"{name:<30}" + "".join(f"{figure:>10.1f}" for figure in figures), flush=True)
    return own


if __name__ == "__main__":
    main()
