import errno
import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest

from tokbatch.errors import OutputError
from tokbatch.job.lock import OutputLock
from tokbatch.job.storage import FileSystem, Storage


class Full(FileSystem):
    """A disk that is full after some bytes."""

    def __init__(self, room):
        self.room = room

    def write(self, file, data):
        if memoryview(data).nbytes > self.room:
            super().write(file, memoryview(data).cast("B")[: self.room])
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= memoryview(data).nbytes
        super().write(file, data)


class NoRename(FileSystem):
    def rename(self, source, target):
        raise OSError(errno.EIO, "Input/output error")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_part_has_its_final_name_only_when_it_is_whole(tmp_path):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    file = storage.open_partial("p")
    file.write(b"abc")
    file.write(memoryview(b"def"))
    assert (file.size, file.tell(), file.sha256) == (6, 6, hashlib.sha256(b"abcdef").hexdigest())
    file.close()
    assert list(storage.data.iterdir()) == []
    storage.commit_part("p", "a.parquet")
    assert (storage.data / "a.parquet").read_bytes() == b"abcdef"
    assert list(storage.partial.iterdir()) == []


def test_an_abandoned_file_hears_nothing_more(tmp_path):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    file = storage.open_partial("p.parquet")
    file.write(b"abc")
    file.abandon()
    assert file.write(b"footer") == 6
    file.close()
    assert (storage.partial / "p.parquet").read_bytes() == b"abc"
    storage.open_partial("pq.parquet").close()
    storage.drop_partials("p")
    storage.drop_partials("p")
    assert files(tmp_path) == ["out/.tokbatch/partial/pq.parquet"], "what only begins alike stays"


def test_prepare_clears_what_was_half_written_and_keeps_what_is_done(tmp_path):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    storage.open_partial("p").abandon()
    storage.write_json(".tokbatch/shards/1.json", {"a": "ü"})
    Storage(tmp_path / "out").prepare()
    assert files(tmp_path / "out") == [".tokbatch/shards/1.json"]
    assert storage.read_json(".tokbatch/shards/1.json") == {"a": "ü"}
    assert storage.read_json("none.json") is None
    (tmp_path / "out/stats.json").write_text("{")
    assert storage.read_json("stats.json") is None


def test_clear_leaves_only_the_lock(tmp_path):
    storage = Storage(tmp_path / "out")
    storage.prepare()
    for name in ("manifest.json", "stats.json", "stats.parquet", ".tokbatch/job.json", ".tokbatch/lock", "data/a"):
        storage.write_file(name, b"x")
    assert storage.holds_job()
    storage.clear()
    assert files(tmp_path / "out") == [".tokbatch/lock"]
    assert not storage.holds_job()


def test_foreign_entries(tmp_path):
    storage = Storage(tmp_path)
    assert storage.foreign_entries() == []
    storage.prepare()
    (tmp_path / "thesis.doc").touch()
    assert storage.foreign_entries() == ["thesis.doc"]
    assert Storage(tmp_path / "none").foreign_entries() == []


@pytest.mark.parametrize("file_system", [Full(5), NoRename()], ids=["full", "no rename"])
def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path, file_system):
    good = Storage(tmp_path)
    good.prepare()
    good.write_file("stats.json", b"old")
    bad = Storage(tmp_path, file_system)
    with pytest.raises(OutputError) as caught:
        bad.write_file("stats.json", b"new and longer")
    assert caught.value.where == str(tmp_path / "stats.json")
    assert (tmp_path / "stats.json").read_bytes() == b"old"
    assert files(tmp_path) == ["stats.json"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        Storage(tmp_path / "file" / "out").prepare()


HOLD = """
import signal, sys
from pathlib import Path
from tokbatch.job.lock import OutputLock
from tokbatch.job.storage import Storage
with OutputLock(Storage(Path(sys.argv[1]))):
    print("held", flush=True)
    signal.pause()
"""


def test_two_jobs_cannot_hold_a_folder_and_a_killed_one_holds_none(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with (
            pytest.raises(OutputError, match=f"another job writes here: process {process.pid} on "),
            OutputLock(Storage(tmp_path)),
        ):
            pass
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    with OutputLock(Storage(tmp_path)):
        owner = json.loads((tmp_path / ".tokbatch/lock").read_bytes())
        assert owner["pid"] == os.getpid()
        with pytest.raises(OutputError, match=f"process {os.getpid()} on "), OutputLock(Storage(tmp_path)):
            pass
    with OutputLock(Storage(tmp_path)):
        pass


def test_a_lock_that_does_not_say_whose_it_is(tmp_path):
    with OutputLock(Storage(tmp_path)):
        (tmp_path / ".tokbatch/lock").write_bytes(b"")
        with pytest.raises(OutputError, match="a process that has not said"), OutputLock(Storage(tmp_path)):
            pass
