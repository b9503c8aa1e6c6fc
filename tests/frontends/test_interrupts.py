"""What a Ctrl-C does to the command, sent from inside of it at the moment that is meant."""

import subprocess
import sys

import pytest

from corpora import write_config, write_corpus

IN_AN_IMPORT = """
import builtins, os, signal, sys
real, name = builtins.__import__, sys.argv.pop(1)
def told(wanted, *rest, **options):
    if wanted == name:
        os.kill(os.getpid(), signal.SIGINT)
    return real(wanted, *rest, **options)
from tokbatch.frontends.start import main
builtins.__import__ = told
main()
"""

IN_A_JOB = """
import os, signal, sys, time
import tokbatch.job.run
from tokbatch.frontends.start import main
times = int(sys.argv.pop(1))
def run_job(*arguments, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    finally:
        for _ in range(times - 1):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
tokbatch.job.run.run_job = run_job
main()
"""


def told(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("name", ["click", "tokbatch.job.prepare", "pyarrow"])
def test_in_an_import(tmp_path, name):
    write_corpus(tmp_path, "a.parquet", 3)
    assert told(IN_AN_IMPORT, name, "plan", write_config(tmp_path)) == "interrupted\n"


def test_in_a_job_once_and_again(tmp_path):
    config = write_config(tmp_path)
    assert told(IN_A_JOB, 1, "run", config) == "interrupted; what is finished stays, --resume goes on\n"
    assert told(IN_A_JOB, 3, "run", config) == "interrupted\n"
