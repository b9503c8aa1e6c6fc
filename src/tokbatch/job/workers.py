"""The seam between a job and whatever runs its workers: processes of this machine, or those of a cluster.

`run.py` gives tasks and hears events; what a failure means is decided there and nowhere else, and only it gives a part
its final name. `pool.py` has the processes of this machine.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tokbatch.job.worker import Task, WorkerSetup

if TYPE_CHECKING:
    from tokbatch.job.config import JobConfig


class Event(Protocol):
    """What happened to the worker that has `task`: a message (see `worker.py`), or ("died", reason)."""

    @property
    def task(self) -> Task | None:
        """The task that the worker had; None: none."""

    @property
    def message(self) -> tuple[Any, ...]:
        """What the worker said, or what is said of it."""


class Workers(Protocol):
    """Workers that take a task each. They start when there is something to do."""

    def give(self, task: Task) -> bool:
        """Give a task to an idle worker, or to a new one; False where all are busy."""

    @property
    def busy(self) -> bool:
        """Whether some worker has a task."""

    def wait(self, seconds: float) -> Sequence[Event]:
        """Wait for messages and deaths, at most so long. A worker that has died gets no more tasks."""

    def kill(self) -> None:
        """End all workers at once. They have only partial files open."""


def start_workers(config: JobConfig, setup: WorkerSetup, count: int) -> Workers:
    """Give up to `count` workers where the config wants them."""
    from tokbatch.job.pool import Pool
    from tokbatch.job.worker_process import run_worker

    # `datasets` is the one source that numpy and pandas are for.
    target = functools.partial(run_worker, lean=config.input.dataset is None, tables=setup.tables)
    return Pool(target, setup, count)
