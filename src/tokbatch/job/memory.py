"""How much memory a process takes, has taken at the most, and may take.

The limit of a worker (`run.max_memory`) is kept by a thread of the worker itself, which ends it: that is a death like
any other, so the shard is tried again and the document that needs so much is found. Numbers come from /proc, and from
`getrusage` where there is none.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import threading
import time

from tokbatch.errors import ConfigError

EXIT_STATUS = 77
"""Exit status of a worker that has passed its limit."""

PASSED_LIMIT = "it took more memory than run.max_memory leaves to a worker"
"""Why such a worker ended, for people."""

PER_BATCH_BYTE = 12
"""What a byte of text takes while it is a batch: read, encoded, decoded, compared, held for the row group.

So does a byte of a document that is longer than a batch. Measured with 200 MB and 500 MB of English in one document,
gpt2 and Parquet: 12 bytes; a third of them while it is read, half of them in the writer of Parquet, for the levels of
its lists. With the sample's tokenizer, whose tokens are short, it is 15.5; as flat ids 6.
"""
WRITING = 96 << 20
"""What a row group takes while it is written."""

_WATCH_SECONDS = 0.05

_M_MMAP_THRESHOLD = -3  # of mallopt(3)
_MAPPED_FROM = 4 << 20
"""A block of so many bytes is mapped by itself, and given back to the system when it is freed.

Left alone, glibc raises this limit to the largest block that was freed. Then the ids of a row group, each batch of
another size, lie in the heap and leave gaps there: 40 MB of nothing but gaps after 1 GB of text, and more later. With
1 MB the memory is no smaller, and the system's part of the processor time doubles.
"""


def peak_memory() -> int:
    """Give the most bytes that this process has had in memory."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def memory_now() -> int:
    """Give the bytes that this process has in memory; where that cannot be told, the most it has had."""
    return _status("VmRSS") or peak_memory()


def memory_of_a_worker(batch_bytes: int) -> int:
    """Estimate what a worker needs: as much as this process, which has loaded the same, and room for its batches."""
    return memory_now() + PER_BATCH_BYTE * batch_bytes + WRITING


def workers_within(max_memory: int, batch_bytes: int, workers: int) -> int:
    """Give the number of workers that fit into `max_memory` (0: no limit) beside this process, at most `workers`."""
    if not max_memory:
        return workers
    each = memory_of_a_worker(batch_bytes)
    room = (max_memory - memory_now()) // each
    if room < 1:
        raise ConfigError(
            f"{max_memory:,} bytes are too little: a worker needs about {each:,}, and this process {memory_now():,}",
            where="run.max_memory",
            hint="raise it, or lower run.batch_bytes",
        )
    return min(workers, room)


def limit_of_a_worker(max_memory: int, workers: int) -> int:
    """Give the bytes that each worker may have; 0: any number."""
    return (max_memory - memory_now()) // workers if max_memory else 0


def give_back_large_blocks() -> None:
    """Have this process give large blocks back to the system, where it has glibc; elsewhere nothing changes."""
    with contextlib.suppress(ImportError, OSError, AttributeError, TypeError):
        import ctypes

        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)


def end_beyond(limit: int) -> None:
    """End this process when it has more than `limit` bytes in memory."""

    def watch() -> None:
        while memory_now() <= limit:
            time.sleep(_WATCH_SECONDS)
        os._exit(EXIT_STATUS)

    threading.Thread(target=watch, daemon=True, name="end-beyond-memory").start()


def _status(key: str) -> int:
    """Read a number of bytes from /proc/self/status; 0 where it is not there."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(key.encode()):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0
