import errno
import os
import pathlib
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config, write_corpus
from faulty_file_systems import FailsOnce
from tokbatch.errors import OutputError
from tokbatch.job import load_config, read_manifest, run_job, verify_output

SMALL = {"run__shard_bytes": 700, "run__batch_bytes": 300, "run__workers": 1}
LAST = {"open": 9, "write": 60, "sync": 9, "rename": 16}  # about as many as a process makes of each


def seeded(seeds):
    """Give (call, nth, number) of failures, each from its seed."""
    for seed in seeds:
        rng = random.Random(seed)
        call = rng.choice(list(LAST))
        nth = rng.randint(1, LAST[call])
        yield pytest.param(call, nth, rng.choice([errno.EIO, errno.ENOSPC, errno.EDQUOT]), id=f"{seed}-{call}-{nth}")


@pytest.mark.parametrize(
    ("call", "nth", "number"),
    [
        ("write", 2, errno.ENOSPC),
        ("sync", 3, errno.EIO),
        ("rename", 4, errno.EDQUOT),
        *(pytest.param(*p.values, id=p.id, marks=pytest.mark.long) for p in seeded(range(40))),
    ],
)
def test_a_call_that_fails_ends_the_job_clearly_and_nothing_is_lost_or_changed(tmp_path, call, nth, number):
    write_corpus(tmp_path, "a.parquet", 120, 30)
    config = write_config(tmp_path, **SMALL)
    run_job(load_config(config, ["output.path=undisturbed"]))
    marks = tmp_path / "marks"
    failing = FailsOnce(call, nth, str(marks), number)
    try:
        run_job(load_config(config), file_system=failing)
    except OutputError as error:
        failure = error
    else:
        failure = None
    assert (failure is not None) == marks.exists()  # some processes make fewer of these calls
    if failure is not None:
        assert os.strerror(number) in failure.message
        assert failure.where.startswith(str(tmp_path / "out"))
        assert (failure.hint is not None) == (number != errno.EIO)
        assert not (tmp_path / "out/manifest.json").exists()
        run_job(load_config(config), resume=True)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "undisturbed")
    assert verify_output(tmp_path / "out", 0.0).problems == []
    assert not [path for path in (tmp_path / "out").rglob("*") if "partial" in path.name]


RUN = [sys.executable, "-m", "tokbatch.frontends.cli", "run"]


@pytest.fixture
def small_disk(tmp_path):
    """A real disk of 1 MB, in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(["-t", "tmpfs", "-o", "size=1m", "tokbatch"], folder)
    yield folder
    subprocess.run(["umount", folder], check=True)


def mount(options, folder):
    try:
        done = subprocess.run(["mount", *options, folder], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command mount here")
    if done.returncode:
        pytest.skip(f"a disk cannot be mounted here: {done.stderr.strip()}")


def test_a_disk_that_is_full_and_gets_more_room(tmp_path, small_disk):
    rng = random.Random(1)
    texts = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=60)) for _ in range(24_000)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", row_group_size=2_000)
    options = {"run__shard_bytes": 150_000, "input__keep_columns": []}
    config = write_config(tmp_path, output__path=str(small_disk / "out"), **options)
    run_job(load_config(config, [f"output.path={tmp_path / 'undisturbed'}"]))
    undisturbed = files_below(tmp_path / "undisturbed")
    assert sum(map(len, undisturbed.values())) > 1.2e6
    full = subprocess.run([*RUN, config], capture_output=True, text=True)
    assert full.returncode == 1
    assert "Traceback" not in full.stderr
    (error,) = [line for line in full.stderr.splitlines() if line.startswith("error: ")]
    assert error.startswith(f"error: {small_disk / 'out'}/")
    assert error.endswith("cannot write: No space left on device")
    assert full.stderr.endswith("hint: make room and run again with --resume: finished shards are kept\n")
    assert not (small_disk / "out/manifest.json").exists()
    for name, content in files_below_if_any(small_disk / "out").items():
        assert undisturbed[name] == content  # what has its final name is whole
    again = subprocess.run([*RUN, config, "--resume"], capture_output=True, text=True)
    assert (again.returncode, "No space left on device" in again.stderr) == (1, True)
    mount(["-o", "remount,size=8m"], small_disk)
    done = subprocess.run([*RUN, config, "--resume"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert read_manifest(small_disk / "out")["run"]["resumed_shards"] > 0
    assert files_below(small_disk / "out") == undisturbed
    assert verify_output(small_disk / "out", 0.1).problems == []


def files_below_if_any(folder: pathlib.Path) -> dict[str, bytes]:
    """Give the parts that have their final names."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "data").iterdir()}
