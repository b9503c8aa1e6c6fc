"""The recipes and configs for clusters of this machine: ray_map_batches.py, ray_job.toml, spark_frame.py."""

import pathlib
import runpy

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from clusters import ray_cluster, spark_session
from tokbatch import Tokenizer, sample
from tokbatch.job import load_config, read_manifest, run_job

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def tokens():
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    columns = [pq.read_table(path)["text"] for path in sample.corpus_paths()]
    return sum(pc.sum(tokenizer.count_batch(column)).as_py() for column in columns)


def test_ray(capsys, tokens, tmp_path):
    with ray_cluster(cores=3):
        runpy.run_path(str(ROOT / "jobs/ray_map_batches.py"))["main"]([])
        assert f"{tokens:,} tokens" in capsys.readouterr().out
        config = load_config(ROOT / "configs/ray_job.toml", [f"output.path={tmp_path}/out"])
        assert run_job(config).stats.tokens == tokens
    assert read_manifest(tmp_path / "out")["config"]["run"]["engine"] == "ray"


def test_spark(capsys, tokens):
    with spark_session():
        runpy.run_path(str(ROOT / "jobs/spark_frame.py"))["main"]([])
    shown = capsys.readouterr().out
    assert f"{tokens:,} tokens" in shown
    assert "of 419 documents" in shown
