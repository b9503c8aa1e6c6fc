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
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'tokbatch[ray]'")
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


def path_for_workers() -> str:
    """Give the PYTHONPATH with which other processes see what this one sees."""
    return os.pathsep.join([str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")])


def need_spark() -> None:
    """Skip the test where there is no Spark, or no Java for it."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'tokbatch[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("there is no Java for Spark")


@contextlib.contextmanager
def spark_session(cores: int = 2) -> Iterator[Any]:
    """Start a Spark of this machine, and end it."""
    need_spark()
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
