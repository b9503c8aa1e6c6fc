"""What the stub says of the extension module is what the module says of itself, by mypy's stubtest."""

import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "src"


@pytest.mark.long
def test_the_stub_is_true():
    pytest.importorskip("mypy", reason="mypy is not installed")
    pytest.importorskip("tokbatch._native", reason="the native engine is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "tokbatch._native", "--concise", "--mypy-config-file", os.devnull],
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (SOURCE / "tokbatch/py.typed").exists()
    assert (SOURCE / "tokbatch/_native.pyi").exists()
