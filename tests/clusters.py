"""Real clusters of this machine for the tests of those front ends, and skips with a reason where they cannot be had."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

TESTS = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def ray_cluster(cores: int = 2) -> Iterator[Any]:
    """Start a Ray of this machine, whose processes see what this one sees, and end it."""
    need("ray")
    import ray

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", path_for_workers())
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        ray.init(
            address="local",
            num_cpus=cores,
            object_store_memory=100 << 20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="warning",
        )
        try:
            yield ray
        finally:
            ray.shutdown()


def need(name: str) -> None:
    """Skip the test where there is no such package, or where `scripts/test_extras.sh` found that it does not start."""
    package = {"spark": "pyspark"}.get(name, name)
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'tokbatch[{name}]'")
    if name in os.environ.get("TOKBATCH_TESTS_WITHOUT", "").split():
        pytest.skip(f"{name} does not start on this machine")


def path_for_workers() -> str:
    """Give the PYTHONPATH with which other processes see what this one sees."""
    return os.pathsep.join([str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")])


def need_spark() -> None:
    """Skip the test where there is no Spark, or no Java for it."""
    need("spark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java for Spark")


def end_java() -> None:
    """End the Java of an earlier session, which would keep its working directory."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def spark_session(cores: int = 2) -> Iterator[Any]:
    """Start a Spark of this machine, and end it. Its Java begins in the working directory of the moment."""
    need_spark()
    end_java()
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYTHONPATH", path_for_workers())
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master(f"local[{cores}]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.memory", "512m")
            .getOrCreate()
        )
        try:
            yield session
        finally:
            session.stop()
