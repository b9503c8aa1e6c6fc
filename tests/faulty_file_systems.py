"""Disks that fail. Here, and not in a test, because worker processes import them."""

from __future__ import annotations

import errno
import os
import pathlib
import signal
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
        if path.name.endswith(".parquet"):
            with open(self.marks, "a+") as marks:
                marks.seek(0)
                if len(marks.readlines()) < self.times:
                    marks.write("killed\n")
                    marks.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().open(path)
