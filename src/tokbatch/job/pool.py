"""The worker processes of a job: started by spawn, watched by their pipes and sentinels, replaced when they die.

No process can end unnoticed and nothing waits for one that has: `Pool.wait` wakes up for a message and for a death
alike. Which shard goes where, and what a failure means, is decided in `run.py`.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import multiprocess
import multiprocess.connection

from tokbatch.job.memory import EXIT_STATUS, PASSED_LIMIT
from tokbatch.job.worker import Task


@dataclass
class Worker:
    """One worker process, the task it has, and whether it has answered yet."""

    number: int
    process: Any
    connection: Any
    task: Task | None = None
    ready: bool = False


@dataclass(frozen=True)
class Event:
    """What happened to a worker: a message from it, or its death (`message` is ("died", reason))."""

    worker: Worker
    task: Task | None
    message: tuple[Any, ...]


class Pool:
    """Up to `count` workers that run `target(connection, setup)`; they start when there is something to do.

    Or before, by `start_early`: such workers run `target(connection, None)` and get their setup over the pipe.
    """

    def __init__(self, target: Callable[[Any, bytes | None], None]):
        self._target = target
        self._setup: bytes | None = None
        self._count = 0
        self._context = multiprocess.get_context("spawn")
        self._started = 0
        self.workers: list[Worker] = []

    def start_early(self, number: int) -> None:
        """Start workers that have nothing to do yet, so that they load what they need while a plan is made."""
        for _ in range(number):
            self._start()

    def set_up(self, setup: Any, count: int) -> None:
        """Say what the tasks have in common, and how many workers there may be. What is too many ends."""
        self._setup = pickled(setup)
        self._count = count
        self._end(self.workers[count:])
        for worker in self.workers:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # Where it has died, `wait` says so.
                worker.connection.send_bytes(self._setup)

    def give(self, task: Task) -> bool:
        """Give a task to an idle worker, or to a new one; False where all are busy."""
        worker = next((worker for worker in self.workers if worker.task is None), None)
        if worker is None:
            if len(self.workers) >= self._count:
                return False
            worker = self._start()
        worker.task = task
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # Where it has died, `wait` says so.
            worker.connection.send(task)
        return True

    @property
    def busy(self) -> bool:
        """Whether some worker has a task."""
        return any(worker.task is not None for worker in self.workers)

    def wait(self, seconds: float) -> list[Event]:
        """Wait for messages and deaths, at most so long. A worker that has died is no longer in the pool."""
        handles: dict[Any, Worker] = {}
        for worker in self.workers:
            handles[worker.connection] = handles[worker.process.sentinel] = worker
        events: list[Event] = []
        woken = multiprocess.connection.wait(list(handles), seconds)
        for worker in {id(handles[handle]): handles[handle] for handle in woken}.values():
            self._hear(worker, events)
        return events

    def kill(self) -> None:
        """End all workers at once. They have only partial files open."""
        self._end(self.workers)

    def _end(self, ended: list[Worker]) -> None:
        for worker in ended:
            worker.process.kill()
        for worker in ended:
            worker.process.join()
            worker.connection.close()
        self.workers = [worker for worker in self.workers if worker not in ended]

    def _start(self) -> Worker:
        ours, theirs = self._context.Pipe()
        # The new process inherits the mask: a Ctrl-C while it starts must not print a traceback from inside Python.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = self._context.Process(target=self._target, args=(theirs, self._setup), daemon=True)
            with _no_main_module():
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        worker = Worker(self._started, process, ours)
        self._started += 1
        self.workers.append(worker)
        return worker

    def _hear(self, worker: Worker, events: list[Event]) -> None:
        """Take all messages of a worker, then its death: what it finished before it died counts."""
        try:
            while worker.connection.poll():
                message = worker.connection.recv()
                events.append(Event(worker, worker.task, message))
                worker.ready = True
                if message[0] in ("done", "failed"):
                    worker.task = None
        except (EOFError, OSError):
            worker.process.join(5)  # The pipe breaks a moment before the process is gone.
        if not worker.process.is_alive():
            worker.connection.close()
            self.workers.remove(worker)
            events.append(Event(worker, worker.task, ("died", _reason(worker.process.exitcode))))


def pickled(value: Any) -> bytes:
    """Pickle for a process of the pool."""
    from multiprocess.reduction import ForkingPickler

    return bytes(ForkingPickler.dumps(value))


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Start a process that does not import the main script: nothing in it is needed there.

    A script whose calls are not below `if __name__ == "__main__":` would start its job again in every worker.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _reason(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code == EXIT_STATUS:
        return PASSED_LIMIT
    if code >= 0:
        return f"exit status {code}"
    name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else f"signal {-code}"
    return f"killed by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
