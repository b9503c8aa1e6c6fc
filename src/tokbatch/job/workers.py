"""The seam between a job and whatever runs its workers: processes of this machine, or those of a cluster.

`run.py` gives tasks and hears events; what a failure means is decided there and nowhere else, and only it gives a part
its final name. `pool.py` has the processes of this machine, `ray_workers.py` the actors of a Ray cluster.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tokbatch.job.worker import Task, WorkerSetup

if TYPE_CHECKING:
    from tokbatch.job.config import JobConfig
    from tokbatch.job.pool import Pool


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


def early_workers(config: JobConfig, number: int) -> Pool:
    """Start workers of this machine while the job is still being prepared: they take a while to load."""
    from tokbatch.job.pool import Pool
    from tokbatch.job.worker_process import run_worker

    # `datasets` is the one source that numpy and pandas are for.
    pool = Pool(functools.partial(run_worker, lean=config.input.dataset is None))
    pool.start_early(number if config.run.engine == "local" else 0)
    return pool


def start_workers(config: JobConfig, setup: WorkerSetup, count: int, early: Pool | None = None) -> Workers:
    """Give up to `count` workers where the config wants them; those that have started early are among them.

    Raises `EngineUnavailableError`.
    """
    if config.run.engine == "ray":
        from tokbatch.job.ray_workers import RayWorkers

        return RayWorkers(setup, count)
    from tokbatch.job.pool import pickled

    pool = early_workers(config, 0) if early is None else early
    pool.set_up((setup.tables, pickled(setup)), count)
    return pool


def cluster_cores(config: JobConfig) -> int | None:
    """Give the cores of the cluster that the config wants; None: it wants this machine."""
    if config.run.engine == "local":
        return None
    from tokbatch.job.ray_workers import connected

    return int(connected().cluster_resources().get("CPU", 1))
