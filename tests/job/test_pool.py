"""Workers that start before their job is known: they get its setup later, and none of them is left over."""

import os
import signal
import time

import pytest

from corpora import files_below, write_config, write_corpus
from tokbatch.errors import InputError
from tokbatch.job import load_config, read_manifest, run_job
from tokbatch.job.inputs import list_inputs
from tokbatch.job.plan import SMALLEST
from tokbatch.job.pool import Pool
from tokbatch.job.prepare import early_worker_count


def alive(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def started(monkeypatch):
    """Job after job starts two workers early; gives their process ids."""
    monkeypatch.setattr("tokbatch.job.run.early_worker_count", lambda config, listed: 2)
    process_ids = []
    start_early = Pool.start_early

    def start(pool, number):
        start_early(pool, number)
        process_ids.extend(worker.process.pid for worker in pool.workers)

    monkeypatch.setattr(Pool, "start_early", start)
    return process_ids


def test_bytes_do_not_depend_on_when_workers_start(tmp_path, started):
    write_corpus(tmp_path, "a.parquet", 200)
    write_corpus(tmp_path, "b.parquet", 90)
    settings = {"run__shard_bytes": 1500}
    run_job(load_config(write_config(tmp_path, **settings)))
    assert len(started) == 2
    manifest = read_manifest(tmp_path / "out")
    assert manifest["run"]["workers"] == 2
    assert manifest["run"]["retries"] == []
    early = files_below(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "before")
    run_job(load_config(write_config(tmp_path, run__workers=1, **settings)))
    assert files_below(tmp_path / "out") == early
    assert read_manifest(tmp_path / "out")["run"]["workers"] == 1
    assert not any(map(alive, started)), "one of the second pair had nothing to do"


def test_workers_of_a_job_that_comes_to_nothing_end(tmp_path, started):
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError):
        run_job(load_config(write_config(tmp_path)))
    assert len(started) == 2
    assert not any(map(alive, started))


def test_a_worker_that_dies_before_the_job_is_known_costs_a_retry(tmp_path, started, monkeypatch):
    write_corpus(tmp_path, "a.parquet", 50)
    monkeypatch.setattr("tokbatch.job.run._say_what", lambda *_: (os.kill(started[0], signal.SIGKILL), time.sleep(0.2)))
    run_job(load_config(write_config(tmp_path, run__shard_bytes=1000)))
    assert len(read_manifest(tmp_path / "out")["run"]["retries"]) <= 1
    assert sum(part["rows"] for part in read_manifest(tmp_path / "out")["parts"]) == 50


def test_a_small_corpus_starts_none_early(tmp_path):
    path = write_corpus(tmp_path, "a.parquet", 50)
    config = load_config(write_config(tmp_path, run__workers=3))
    assert early_worker_count(config, list_inputs(config)) == 0
    with open(path, "ab") as file:
        file.truncate(2 * SMALLEST)
    assert early_worker_count(config, list_inputs(config)) == 2
    with open(path, "ab") as file:
        file.truncate(90 * SMALLEST)
    assert early_worker_count(config, list_inputs(config)) == 3
