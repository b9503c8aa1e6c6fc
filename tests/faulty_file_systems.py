"""Disks that fail, and ways for a worker to die. Here, and not in a test, because worker processes import them."""

from __future__ import annotations

import errno
import fcntl
import os
import pathlib
import signal
import time
from dataclasses import dataclass
from typing import IO, Any

from tokbatch.job.storage import FileSystem


@dataclass
class Full(FileSystem):
    """A disk that is full after some bytes; all files of a process share them."""

    room: int

    def write(self, file: IO[bytes], data: Any) -> None:
        view = memoryview(data).cast("B")
        super().write(file, view[: self.room])
        if view.nbytes > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= view.nbytes


class Slow(FileSystem):
    """A disk on which it takes a while to begin a part."""

    def open(self, path: pathlib.Path) -> IO[bytes]:
        if path.parent.name == "partial":
            time.sleep(0.4)
        return super().open(path)


class NoRename(FileSystem):
    """A disk that writes, but renames nothing."""

    def rename(self, source: pathlib.Path, target: pathlib.Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@dataclass
class Deadly(FileSystem):
    """A disk that kills the process that opens a part, as long as the file `marks` has fewer than `times` lines."""

    marks: str
    times: int

    def open(self, path: pathlib.Path) -> IO[bytes]:
        if path.name.endswith(".parquet") and claim(self.marks, self.times):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().open(path)


@dataclass
class FailsOnce(FileSystem):
    """A disk whose `call` ("open", "write", "sync", "rename") fails at the `nth` time, once for the whole job.

    A write that fails has written a part of its bytes.
    """

    call: str
    nth: int
    marks: str
    number: int = errno.EIO
    calls: int = 0

    def _count(self, call: str) -> None:
        if call != self.call:
            return
        self.calls += 1
        if self.calls == self.nth and claim(self.marks, 1):
            raise OSError(self.number, os.strerror(self.number))

    def open(self, path: pathlib.Path) -> IO[bytes]:
        self._count("open")
        return super().open(path)

    def write(self, file: IO[bytes], data: Any) -> None:
        try:
            self._count("write")
        except OSError:
            view = memoryview(data).cast("B")
            super().write(file, view[: view.nbytes // 2])
            raise
        super().write(file, data)

    def sync(self, file: IO[bytes]) -> None:
        self._count("sync")
        super().sync(file)

    def rename(self, source: pathlib.Path, target: pathlib.Path) -> None:
        self._count("rename")
        super().rename(source, target)


@dataclass
class InputChanges(FileSystem):
    """Somebody writes to an input, or removes it (`content` None), while a worker makes its `nth` part.

    `keeps_time`: the file has the same time of modification afterwards.
    """

    path: str
    content: bytes | None
    nth: int
    marks: str
    keeps_time: bool = False
    parts: int = 0

    def open(self, path: pathlib.Path) -> IO[bytes]:
        if path.parent.name == "partial" and path.suffix == ".parquet":
            self.parts += 1
            if self.parts == self.nth and claim(self.marks, 1):
                self.change()
        return super().open(path)

    def change(self) -> None:
        before = os.stat(self.path)
        if self.content is None:
            os.unlink(self.path)
            return
        with open(self.path, "r+b") as file:
            file.write(self.content)
            file.truncate()
        if self.keeps_time:
            os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            os.utime(self.path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


@dataclass
class Poison(FileSystem):
    """Not the disk but some documents are at fault: a worker that encodes a text with `text` in it ends by `how`."""

    text: str
    how: str

    def open(self, path: pathlib.Path) -> IO[bytes]:
        if path.name.endswith(".parquet"):
            from tokbatch.batch.transform import Transform

            def encode(this: Any, documents: Any) -> Any:
                column = documents.texts
                if any(self.text in column.text(row) for row in range(column.rows)):
                    end(self.how)
                return original(this, documents)

            original = Transform._encode
            if original.__module__ != __name__:
                Transform._encode = encode  # type: ignore[method-assign]
        return super().open(path)


@dataclass
class DiesAfterBatches(FileSystem):
    """A worker dies by SIGKILL after some batches of its own, `times` times in the whole job."""

    batches: int
    marks: str
    times: int = 1

    def open(self, path: pathlib.Path) -> IO[bytes]:
        if path.name.endswith(".parquet"):
            from tokbatch.batch.transform import Transform

            def transform(this: Any, *args: Any, **kw: Any) -> Any:
                self.batches -= 1
                if self.batches < 0 and claim(self.marks, self.times):
                    os.kill(os.getpid(), signal.SIGKILL)
                return original(this, *args, **kw)

            original = Transform.transform
            if original.__module__ != __name__:
                Transform.transform = transform  # type: ignore[method-assign]
        return super().open(path)


def end(how: str) -> None:
    """End as a worker can end: by a signal, a wrong exit, no memory, or a fault of the program."""
    if how == "memory":
        raise MemoryError
    if how == "panic":
        raise BaseException("index out of bounds")
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))


def claim(marks: str, times: int) -> bool:
    """Tell whether this happens for the first, second, ... up to `times`-th time, over all processes."""
    with open(marks, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        happened = len(file.readlines())
        if happened < times:
            file.write("happened\n")
        return happened < times
