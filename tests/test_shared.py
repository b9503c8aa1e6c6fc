"""The acceptance scripts that lie beside a development checkout, as far as they fit into the time of the tests.

They are skipped, with the reason, where the material is not there: nothing of the project depends on it.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

REAL_TOKENIZERS = ["gpt2", "bert_base_uncased", "t5_small", "llama2", "roberta_base"]


def acceptance(shared: pathlib.Path, script: str, *arguments: str | pathlib.Path) -> str:
    """Run a script and give the last line that it prints."""
    command = [sys.executable, shared / "acceptance" / script, *arguments]
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | {"RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_the_cases(shared: pathlib.Path, engine: str):
    number = len(list((shared / "cases").glob("*.json")))

    assert acceptance(shared, "cases.py", shared / "cases", "--engine", engine) == (
        f"{number} cases: {number} equal, 0 differ, 0 refused"
    )


def test_real_tokenizers(shared: pathlib.Path, engine: str):
    paths = [shared / "tokenizers" / f"{name}.json.gz" for name in REAL_TOKENIZERS]
    corpus = sorted((shared / "corpus").glob("*.parquet"))
    limits = ("--docs", "8", "--characters", "1500", "--deep", "4")

    last = acceptance(shared, "exact.py", *paths, "--corpus", *corpus, "--engine", engine, *limits)

    assert last == f"{len(paths)} tokenizers: {len(paths)} equal, 0 differ, 0 refused"


@pytest.mark.parametrize("component", ["NFKC", "BertNormalizer", "gpt2", "Punctuation"])
def test_some_code_points(shared: pathlib.Path, engine: str, component: str):
    last = acceptance(shared, "codepoints.py", "--engine", engine, "--every", "53", "--only", component)

    assert last == f"equal    {component}: 0 code points"
