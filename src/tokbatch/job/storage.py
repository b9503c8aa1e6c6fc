"""The output folder: the only place that writes files.

    OUT/data/                 the parts, under their final names only when they are whole
    OUT/stats.json, stats.parquet, manifest.json
    OUT/.tokbatch/lock        held by the job that is running (see `lock.py`)
    OUT/.tokbatch/job.json    what the job is: the digests that a resumed job must have too
    OUT/.tokbatch/shards/     a record for each finished shard
    OUT/.tokbatch/partial/    parts that are being written; cleared when a job starts and when it ends

Everything gets its final name by a rename, after its bytes are on the disk. Workers write partial files, the process
that holds the lock renames them: a worker that outlives its job can never put anything under a final name.
`FileSystem` is what tests replace to make writes and renames fail.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tokbatch.errors import OutputError

FORMAT = 1
"""The format of manifest.json, and of what is kept in the state: another number when an old reader would go wrong."""

STATE = ".tokbatch"
OURS = ("data", "stats.json", "stats.parquet", "manifest.json", STATE)


class FileSystem:
    """The few calls that change a disk."""

    def open(self, path: Path) -> IO[bytes]:
        """Open a new file for writing, unbuffered."""
        return open(path, "wb", buffering=0)

    def write(self, file: IO[bytes], data: Any) -> None:
        """Write all of `data` (a write may take only a part of it)."""
        view = memoryview(data).cast("B")
        while len(view):
            view = view[file.write(view) :]

    def sync(self, file: IO[bytes]) -> None:
        """Wait until the file's bytes are on the disk."""
        os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its final name, over an older file of that name, and wait until that is on the disk."""
        os.replace(source, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class HashedFile:
    """A file for one writer that goes from front to back; knows its digest and size without reading it again."""

    def __init__(self, path: Path, file_system: FileSystem):
        self._file_system = file_system
        self._file = file_system.open(path)
        self._digest = hashlib.sha256()
        self._abandoned = False
        self.size = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        written = memoryview(data).nbytes
        if self._abandoned:
            return written
        self._file_system.write(self._file, data)
        self._digest.update(data)
        self.size += written
        return written

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def tell(self) -> int:
        """Give the position."""
        return self.size

    @property
    def sha256(self) -> str:
        """Digest of what was written so far, as hex."""
        return self._digest.hexdigest()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed

    def close(self) -> None:
        """Wait for the disk and close."""
        if not self._file.closed:
            try:
                self._file_system.sync(self._file)
            finally:
                self._file.close()

    def abandon(self) -> None:
        """Close without waiting for the disk; what a writer still says to a file of no use is not heard."""
        self._abandoned = True
        self._file.close()


class Storage:
    """The output folder of one job."""

    def __init__(self, folder: Path, file_system: FileSystem | None = None):
        self.folder = folder
        self.file_system = file_system or FileSystem()
        self.data = folder / "data"
        self.state = folder / STATE
        self.shards = self.state / "shards"
        self.partial = self.state / "partial"

    def holds_job(self) -> bool:
        """Tell whether there is a job's output, finished or not."""
        return (self.state / "job.json").exists() or (self.folder / "manifest.json").exists()

    def foreign_entries(self) -> list[str]:
        """Give the names in the folder that no job made."""
        return sorted(entry.name for entry in self.folder.iterdir() if entry.name not in OURS) if self.exists() else []

    def foreign_parts(self, known: Container[str]) -> list[str]:
        """Give the paths of the files under data/ that are not among the `known` ones."""
        files = sorted(path for path in self.data.rglob("*") if path.is_file())
        return [name for path in files if (name := path.relative_to(self.folder).as_posix()) not in known]

    def exists(self) -> bool:
        """Tell whether the folder is there."""
        return self.folder.is_dir()

    def prepare(self) -> None:
        """Make the folders, and clear what an earlier attempt left half-written."""
        with told(self.folder):
            shutil.rmtree(self.partial, ignore_errors=True)
            for folder in (self.data, self.shards, self.partial):
                folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Remove a job's output, the lock's file excepted."""
        with told(self.folder):
            # First what says that the output is whole, last what says whose it is.
            for path in (self.folder / "manifest.json", self.folder / "stats.json", self.folder / "stats.parquet"):
                path.unlink(missing_ok=True)
            for tree in (self.shards, self.partial, self.data):
                if tree.exists():
                    shutil.rmtree(tree)
            for name in ("quarantine.json", "job.json"):
                (self.state / name).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove the folder of partial files."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def open_partial(self, name: str) -> HashedFile:
        """Open a partial file for writing."""
        with told(self.partial / name):
            return HashedFile(self.partial / name, self.file_system)

    def commit_part(self, partial: str, part: str) -> None:
        """Give a whole partial file its final name under data/; a part of several files is whole with its record."""
        with told(self.data / part):
            self.file_system.rename(self.partial / partial, self.data / part)

    def drop_partials(self, start: str) -> None:
        """Remove the partial files whose names begin so, up to a dot."""
        for path in self.partial.glob(f"{start}.*"):
            path.unlink(missing_ok=True)

    def drop_parts(self, start: str) -> None:
        """Remove the files under data/ whose names begin so, up to a dot or a hyphen."""
        for path in self.data.glob(f"{start}[.-]*"):
            path.unlink(missing_ok=True)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file of the folder at once (after `prepare`): it is there whole, or as it was before."""
        target = self.folder / name
        partial = self.partial / f"{target.name}.new"
        with told(target):
            try:
                with self.file_system.open(partial) as file:
                    self.file_system.write(file, data)
                    self.file_system.sync(file)
                self.file_system.rename(partial, target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file, keys in their given order."""
        self.write_file(name, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())

    def read_json(self, name: str) -> Any:
        """Read a JSON file of the folder; None where there is none, or where it is no JSON."""
        try:
            return json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError):
            return None


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into an `OutputError` that names the file."""
    try:
        yield
    except OSError as error:
        raise output_error(error, path) from None


def output_error(error: OSError, path: Path) -> OutputError:
    """Describe a refusal of the operating system."""
    hints = {
        errno.ENOSPC: "make room and run again with --resume: finished shards are kept",
        errno.EDQUOT: "the quota is used up; make room and run again with --resume",
        errno.EACCES: "check the permissions of the folder",
        errno.EROFS: "the disk is mounted read-only",
    }
    return OutputError(f"cannot write: {error.strerror or error}", where=str(path), hint=hints.get(error.errno or 0))
