"""A job on a real Ray cluster of this machine: the bytes of a job on this machine, whatever dies."""

import json
import os
import subprocess
import sys
import time

import pytest

from clusters import ray_cluster
from corpora import files_below, write_config, write_corpus
from faulty_file_systems import DiesAfterBatches
from tokbatch.errors import ConfigError, EngineUnavailableError, InputError
from tokbatch.job import load_config, read_manifest, run_job, verify_output

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster():
    with ray_cluster(cores=2) as ray:
        yield ray


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A corpus, and the output of its job on this machine."""
    folder = tmp_path_factory.mktemp("local")
    write_corpus(folder, "a.parquet", 230)
    write_corpus(folder, "b.parquet", 100)
    config = write_config(folder, run__shard_bytes=1500, run__batch_bytes=700)
    run_job(load_config(config))
    return folder


def settled(folder):
    """The manifest without what depends on the run."""
    manifest = read_manifest(folder)
    del manifest["run"], manifest["config"]
    return manifest


@pytest.mark.long
def test_the_same_bytes_with_a_worker_that_is_killed_and_more_workers_than_cores(cluster, local, tmp_path):
    config = load_config(local / "job.toml", [f"output.path={tmp_path}/out", "run.engine=ray", "run.workers=4"])
    result = run_job(config, file_system=DiesAfterBatches(1, str(tmp_path / "marks")))
    assert files_below(tmp_path / "out") == files_below(local / "out")
    assert settled(tmp_path / "out") == settled(local / "out")
    run = read_manifest(tmp_path / "out")["run"]
    assert run["workers"] == 4
    (retry,) = run["retries"]
    assert "Actor" in retry["reason"]
    assert result.stats.documents == 330
    assert verify_output(tmp_path / "out", sample_rate=1.0).problems == []
    assert cluster.is_initialized()  # it was there before the job, and is not the job's to end


@pytest.mark.long
def test_a_job_of_this_machine_goes_on_on_a_cluster(cluster, local, tmp_path):
    config = load_config(local / "job.toml", [f"output.path={tmp_path}/out", "run.workers=1"])
    run_job(config)
    whole = files_below(tmp_path / "out")
    records = sorted((tmp_path / "out/.tokbatch/shards").iterdir())
    for path in [*records[::2], *(tmp_path / "out" / name for name in ("manifest.json", "stats.json"))]:
        path.unlink()
    again = load_config(local / "job.toml", [f"output.path={tmp_path}/out", "run.engine=ray", "run.workers=0"])
    run_job(again, resume=True)
    assert files_below(tmp_path / "out") == whole
    run = read_manifest(tmp_path / "out")["run"]
    assert run["workers"] == 2
    assert run["resumed_shards"] == len(records) - len(records[::2])


SCRIPT = """
import sys
from faulty_file_systems import Slow
from tokbatch.job import load_config, run_job
run_job(load_config(sys.argv[1], sys.argv[2:]), file_system=Slow())
"""


@pytest.mark.long
def test_a_job_on_a_cluster_whose_process_is_killed_goes_on_there(cluster, local, tmp_path):
    changes = [f"output.path={tmp_path}/out", "run.engine=ray", "run.workers=2"]
    environment = {**os.environ, "RAY_ADDRESS": cluster.get_runtime_context().gcs_address}
    command = [sys.executable, "-c", SCRIPT, str(local / "job.toml"), *changes]
    job = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    records = tmp_path / "out/.tokbatch/shards"
    try:
        end = time.monotonic() + 120
        while not (records.is_dir() and any(records.iterdir())):
            assert job.poll() is None, job.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        job.kill()
        job.communicate()
    assert not (tmp_path / "out/manifest.json").exists()
    done = len(list(records.iterdir()))
    run_job(load_config(local / "job.toml", changes), resume=True)
    assert files_below(tmp_path / "out") == files_below(local / "out")
    assert settled(tmp_path / "out") == settled(local / "out")
    assert read_manifest(tmp_path / "out")["run"]["resumed_shards"] == done > 0


@pytest.mark.long
@pytest.mark.parametrize("changes", [["output.format=megatron", "output.id_type=auto"], ["output.format=bin"]])
def test_other_formats_have_the_same_bytes(cluster, local, tmp_path, changes):
    for engine in ("local", "ray"):
        fresh = [f"output.path={tmp_path}/{engine}", f"run.engine={engine}", "input.keep_columns=[]"]
        run_job(load_config(local / "job.toml", [*fresh, *changes]))
    written = files_below(tmp_path / "ray")
    assert written == files_below(tmp_path / "local")
    assert any(name.endswith(".bin") for name in written)


@pytest.mark.long
def test_errors_of_a_worker_are_those_of_the_job(cluster, local, tmp_path, monkeypatch):
    from tokbatch.job import ray_workers

    monkeypatch.setattr(ray_workers, "VERSIONS", {"tokbatch": "0.0.0", "pyarrow": "1"})
    config = load_config(local / "job.toml", [f"output.path={tmp_path}/versions", "run.engine=ray"])
    with pytest.raises(ConfigError, match="a node of the cluster has"):
        run_job(config)
    monkeypatch.undo()
    write_corpus(tmp_path, "c.parquet", 10)
    config = load_config(write_config(tmp_path, run__engine="ray", run__workers=1))
    run_job(config)
    content = bytearray((tmp_path / "c.parquet").read_bytes())
    content[4:200] = bytes(196)
    (tmp_path / "c.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"c\.parquet"):
        run_job(config, overwrite=True)


def test_without_ray_the_job_says_so_and_writes_nothing(local, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    config = load_config(local / "job.toml", [f"output.path={tmp_path}/out", "run.engine=ray"])
    with pytest.raises(EngineUnavailableError, match=r"ray is not installed.*\n.*tokbatch\[ray\]"):
        run_job(config)
    assert not (tmp_path / "out/manifest.json").exists()


def test_where_the_workers_are_is_no_part_of_what_a_job_is(local):
    settings = [load_config(local / "job.toml", [f"run.engine={engine}"]).settings() for engine in ("local", "ray")]
    assert json.dumps(settings[0]) == json.dumps(settings[1])
