"""How much memory a process takes, has taken at the most, and may take.

The limit of a worker (`run.max_memory`) is kept by a thread of the worker itself, which ends it: that is a death like
any other, so the shard is tried again and the document that needs so much is found. Numbers come from /proc, and from
`getrusage` where there is none.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time

from tokbatch.errors import ConfigError

EXIT_STATUS = 77
"""Exit status of a worker that has passed its limit."""

PER_BATCH_BYTE = 12
"""What a byte of text takes while it is a batch: read, encoded, decoded, compared, held for the row group."""
WRITING = 96 << 20
"""What a row group takes while it is written."""

_WATCH_SECONDS = 0.05


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
