"""The workers of a job as actors of a Ray cluster: the same tasks, the same answers, the same bytes.

The plan, the retries, the names and the manifest stay with the process that runs the job (`run.py`). So inputs and
output.path must be folders that all nodes see, and all nodes need the same versions of tokbatch and pyarrow: an actor
that has others refuses to work. The cluster is the one that the process is connected to, or that `ray.init()` finds
(`RAY_ADDRESS`), or else one of this machine that lives as long as the job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokbatch._version import __version__
from tokbatch.engine import table_cache
from tokbatch.errors import ConfigError, EngineUnavailableError, TokbatchError
from tokbatch.job.reading import RowReader
from tokbatch.job.storage import Storage
from tokbatch.job.worker import Task, WorkerSetup, attempt

VERSIONS = {"tokbatch": __version__, "pyarrow": pa.__version__}

_own_cluster: list[bool] = []  # True in it: the connection was made here, and ends with the workers


class Actor:
    """What runs in a process of the cluster. It holds one tokenizer, and does one task at a time."""

    def __init__(self, pickled_setup: bytes, tables: Path | None, versions: dict[str, str]):
        pa.set_cpu_count(1)
        if tables is not None:
            table_cache.use_folder(tables)
        self._pickled_setup = pickled_setup
        self._versions = versions
        self._setup: WorkerSetup | None = None
        self._rows: tuple[str, int] = ("", 0)
        self._reader = RowReader()

    def start(self) -> int:
        """Give the process id, as soon as there is a process."""
        return os.getpid()

    def do(self, task: Task) -> tuple[Any, ...]:
        """Do a task: ("done", ...) or ("failed", ...), as in `worker.py`."""
        try:
            if self._versions != VERSIONS:
                raise ConfigError(
                    f"a node of the cluster has {VERSIONS}, the job runs with {self._versions}",
                    where="run.engine",
                    hint="install the same versions on all nodes",
                )
            if self._setup is None:
                self._setup = pickle.loads(self._pickled_setup)
        except TokbatchError as error:
            return ("failed", error.to_dict())
        storage = Storage(self._setup.folder, self._setup.file_system)
        return attempt(self._setup, storage, task, self._tell(task), self._reader)

    def progress(self) -> tuple[str, int]:
        """Give the partial name of the current task and the rows that are done."""
        return self._rows

    def _tell(self, task: Task) -> Any:
        def tell(rows: int) -> None:
            self._rows = (task.partial, rows)

        return tell


@dataclass
class Worker:
    """An actor, and what is awaited of it."""

    actor: Any
    starting: Any
    process_id: int | None = None
    task: Task | None = None
    answer: Any = None
    progress: Any = None


@dataclass(frozen=True)
class RayEvent:
    """See `workers.Event`."""

    task: Task | None
    message: tuple[Any, ...]


class RayWorkers:
    """Up to `count` actors of one core each. See `workers.Workers`."""

    def __init__(self, setup: WorkerSetup, count: int):
        self._ray = connected()
        self._setup, self._tables = self._ray.put(pickle.dumps(setup)), setup.tables
        # Threads: one for the task, one that answers how far it is. What dies is started again by us, not by Ray.
        options = {"num_cpus": 1, "max_concurrency": 2, "max_restarts": 0, "max_task_retries": 0}
        self._class = self._ray.remote(**options)(Actor)
        self._count = count
        self.workers: list[Worker] = []

    def give(self, task: Task) -> bool:
        """Give a task to an idle worker, or to a new one; False where all are busy."""
        worker = next((worker for worker in self.workers if worker.task is None), None)
        if worker is None:
            if len(self.workers) >= self._count:
                return False
            actor = self._class.remote(self._setup, self._tables, VERSIONS)
            worker = Worker(actor, actor.start.remote())
            self.workers.append(worker)
        worker.task, worker.answer = task, worker.actor.do.remote(task)
        return True

    @property
    def busy(self) -> bool:
        """Whether some worker has a task."""
        return any(worker.task is not None for worker in self.workers)

    def wait(self, seconds: float) -> Sequence[RayEvent]:
        """Wait for answers and deaths, at most so long. A worker that has died is no longer there."""
        self._make_room()
        awaited = [ref for worker in self.workers for ref in (worker.starting, worker.answer) if ref is not None]
        done, _ = self._ray.wait(awaited, num_returns=1, timeout=seconds) if awaited else ([], [])
        done, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0) if done else ([], [])
        events: list[RayEvent] = []
        for worker in list(self.workers):
            self._hear(worker, set(done), events)
        return events

    def kill(self) -> None:
        """End all workers at once; and the cluster, where it was started for them."""
        for worker in self.workers:
            self._end(worker)
        self.workers.clear()
        if _own_cluster:
            _own_cluster.clear()
            self._ray.shutdown()

    def _hear(self, worker: Worker, done: set[Any], events: list[RayEvent]) -> None:
        task = worker.task
        try:
            if worker.starting in done:
                worker.process_id = self._ray.get(worker.starting)
                worker.starting = None
            if worker.answer in done:
                events.append(RayEvent(task, self._ray.get(worker.answer)))
                worker.task = worker.answer = worker.progress = None
            elif task is not None and worker.starting is None:
                self._ask_for_progress(worker, task, events)
        except self._ray.exceptions.RayError as error:
            self._end(worker)
            self.workers.remove(worker)
            events.append(RayEvent(task, ("died", _reason(error))))

    def _ask_for_progress(self, worker: Worker, task: Task, events: list[RayEvent]) -> None:
        if worker.progress is None:
            worker.progress = worker.actor.progress.remote()
        elif self._ray.wait([worker.progress], timeout=0)[0]:
            partial, rows = self._ray.get(worker.progress)
            worker.progress = None
            if partial == task.partial:
                events.append(RayEvent(task, ("progress", rows)))

    def _make_room(self) -> None:
        """End idle workers while others wait for a core: the cluster may have fewer than there are workers."""
        if any(worker.starting is not None and worker.task is not None for worker in self.workers):
            for worker in [worker for worker in self.workers if worker.task is None]:
                self._end(worker)
                self.workers.remove(worker)

    def _end(self, worker: Worker) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(worker.actor, no_restart=True)


def connected() -> Any:
    """Give the module ray, connected to a cluster. Raises `EngineUnavailableError`."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise EngineUnavailableError(
            f"ray is not installed: {error}", where="run.engine", hint='pip install "tokbatch[ray]"'
        ) from None
    if not ray.is_initialized():
        in_main_thread = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(log_to_driver=False, logging_level=logging.WARNING)
            _own_cluster.append(True)
        except Exception as error:  # whatever keeps a cluster from answering
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise EngineUnavailableError(f"no Ray cluster: {reason}", where="run.engine") from None
        finally:
            if in_main_thread:  # Ray's own ends the process; ours leaves a job that can be resumed.
                signal.signal(signal.SIGTERM, before)
    return ray


def _reason(error: Exception) -> str:
    """Say in one line what Ray says in many."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"
