"""One job at a time in an output folder.

The lock is the kernel's (`flock`): it ends with the process that holds it, however that process ends, so a lock
cannot be stale. What stands in the file only tells the second job who the first one is. On a file system without
`flock` a job says so and does not start.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from types import TracebackType

from tokbatch.errors import OutputError
from tokbatch.job.storage import Storage, told


class OutputLock:
    """Hold an output folder: ``with OutputLock(storage): ...``. Raises `OutputError` where another job holds it."""

    def __init__(self, storage: Storage):
        self._path = storage.state / "lock"
        self._folder = storage.folder
        self._descriptor = -1

    def __enter__(self) -> OutputLock:
        with told(self._folder):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S %z")}
            with told(self._path):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, json.dumps(owner).encode(), 0)
        except OSError as error:
            text = os.pread(self._descriptor, 4096, 0)
            self._close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise OutputError(
                    f"another job writes here: {_describe(text)}",
                    where=str(self._folder),
                    hint="wait for it, stop it, or give this job another output.path",
                ) from None
            raise OutputError(
                f"cannot lock the folder: {error.strerror}",
                where=str(self._folder),
                hint="the file system must support flock; give output.path on another one",
            ) from None
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        # The file stays: removing it would let a third job lock a new file while a second one waits on the old.
        os.close(self._descriptor)
        self._descriptor = -1


def _describe(text: bytes) -> str:
    try:
        owner = json.loads(text)
        return f"process {owner['pid']} on {owner['host']}, since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has not said who it is"
