"""Where a worker process starts: what has to come before the first import of pyarrow. What it does is `worker.py`.

This module and what it imports at its top are all that a new process loads before it decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def run_worker(connection: Any, pickled_setup: bytes, lean: bool, tables: Path | None) -> None:
    """Be a worker until there are no more tasks.

    `lean`: the job does without numpy and pandas. `tables` is where the engine's tables are, if not in the cache.
    """
    if lean:
        from tokbatch.batch.lean_arrow import import_lean_arrow

        import_lean_arrow()
    if tables is not None:
        from tokbatch.engine import table_cache

        table_cache.use_folder(tables)
    from tokbatch.job.worker import work

    work(connection, pickled_setup)
