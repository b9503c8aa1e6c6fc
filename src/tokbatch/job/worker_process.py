"""Where a worker process starts: what has to come before the first import of pyarrow. What it does is `worker.py`.

This module and what it imports at its top are all that a new process loads before it decides.
"""

from __future__ import annotations

import pickle
from typing import Any


def run_worker(connection: Any, pickled_setup: bytes | None, lean: bool) -> None:
    """Be a worker until there are no more tasks. `lean`: the job does without numpy and pandas.

    What is pickled is where the engine's tables are, if not in the cache, and the `WorkerSetup`, pickled by itself: to
    unpickle that is to load the tokenizer. A worker without it has started early: it loads all it can, and then waits.
    """
    from tokbatch.collector import without_collecting
    from tokbatch.job.lean_arrow import import_lean_arrow

    if lean:
        import_lean_arrow()
    with without_collecting(for_good=True):
        from tokbatch.job.worker import work

    if pickled_setup is None:
        try:
            pickled_setup = connection.recv_bytes()
        except (EOFError, ConnectionResetError):
            return  # The job came to nothing.
    tables, pickled_setup = pickle.loads(pickled_setup)
    if tables is not None:
        from tokbatch.engine import table_cache

        table_cache.use_folder(tables)
    work(connection, pickled_setup)
