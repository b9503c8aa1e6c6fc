"""What the types of the package say: mypy's stubtest for the stub of the extension module, whose source mypy cannot
read, and for the modules of the public names; and what a type checker says to those who use them."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"
PUBLIC = ["errors", "tokenizer", "frontends.hf_datasets", "frontends.ray_data", "frontends.spark", "frontends.notebook"]
# Patterns of what stubtest has no eyes for: structs of msgspec, what is cached, aliases, classes within functions.
NOT_SEEN = [
    r"tokenizer\._Changes\.__init__",
    r"frontends\.spark\._loaded",
    r"frontends\.hf_datasets\.RoundTrip",
    r"frontends\.spark\.ByStageAndPartition@\d+",
]

RIGHT = """
import pyarrow as pa
import tokbatch as tb
from tokbatch.frontends.hf_datasets import map_function, tokenize
from tokbatch.job import load_config, run_job

tok = tb.Tokenizer.from_file("tokenizer.json", engine="auto")
encoding: tb.Encoding = tok.encode("a", pair=None, add_special_tokens=True)
ids: list[int] = encoding.ids
text: str = tok.decode(ids, skip_special_tokens=True)
number: int | None = tok.token_to_id("a")
vocabulary: dict[str, int] = tok.get_vocab()
shown: str = str(tb.explain(tok, text))
tokens: int = run_job(load_config("job.toml")).stats.tokens
function = map_function(tok, append=["</s>", tb.FromColumn("language")])
"""
WRONG = {
    'tb.Tokenizer.from_file("a").encode(1)': "arg-type",
    'tb.Tokenizer.from_file("a").token_to_id("a") + 1': "operator",
    'map_function(tb.Tokenizer.from_file("a"), id_type="int64")': "arg-type",
    "tb.Tokeniser": "attr-defined",
}


def mypy(*arguments):
    pytest.importorskip("mypy", reason="mypy is not installed")
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        check=False,
    )


@pytest.mark.long
def test_the_stub_and_the_public_modules_are_what_their_types_say(tmp_path):
    pytest.importorskip("tokbatch._native", reason="the native engine is not installed")
    (tmp_path / "allowed").write_text("\n".join(f"tokbatch.{name}" for name in NOT_SEEN))
    modules = ["tokbatch._native", *(f"tokbatch.{name}" for name in PUBLIC)]
    options = ["--concise", "--mypy-config-file", "pyproject.toml", "--ignore-unused-allowlist"]
    options += ["--allowlist", str(tmp_path / "allowed")]
    done = mypy("mypy.stubtest", *modules, *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_a_type_checker_knows_the_public_names(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(RIGHT + "\n".join(WRONG) + "\n")
    done = mypy("mypy", "--strict", "--config-file", "pyproject.toml", str(script))
    told = re.findall(r"script\.py:(\d+): error: .*\[(.*)\]$", done.stdout, re.MULTILINE)
    first = RIGHT.count("\n") + 1
    assert told == [(str(first + number), code) for number, code in enumerate(WRONG.values())], done.stdout


def test_the_package_says_that_it_is_typed():
    assert (SOURCE / "tokbatch/py.typed").exists()
    assert (SOURCE / "tokbatch/_native.pyi").exists()
