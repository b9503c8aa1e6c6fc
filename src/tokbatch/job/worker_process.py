"""Where a worker process starts: what has to come before the first import of pyarrow. What it does is `worker.py`.

This module and what it imports at its top are all that a new process loads before it decides.
"""

from __future__ import annotations

from typing import Any


def run_worker(connection: Any, pickled_setup: bytes, lean: bool) -> None:
    """Be a worker until there are no more tasks. `lean`: the job does without numpy and pandas."""
    if lean:
        from tokbatch.batch.lean_arrow import import_lean_arrow

        import_lean_arrow()
    from tokbatch.job.worker import work

    work(connection, pickled_setup)
