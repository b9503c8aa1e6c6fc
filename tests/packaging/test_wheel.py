"""The package as it is built: a wheel with the native engine, and an install where there is no cargo."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import zipfile

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(sys.executable).parent

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not (REPOSITORY / "native").is_dir(), reason="no source tree"),
]


def path_without_cargo() -> str:
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (pathlib.Path(folder) / "cargo").exists())


def run(command: list[object], **options: object) -> str:
    """Run a program; what it says on both channels."""
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.fixture
def sources(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the tree for each test, so that a build leaves nothing in it that the next one finds."""
    folder = tmp_path / "sources" / "tokbatch"
    ignored = shutil.ignore_patterns(".*", "target", "build", "dist", "*.so", "*.egg-info", "__pycache__", "out")
    shutil.copytree(REPOSITORY, folder, ignore=ignored)
    return folder


def fresh_environment(folder: pathlib.Path) -> pathlib.Path:
    """A virtual environment with the dependencies of this one, but not the package. Gives its folder of programs."""
    run([sys.executable, "-m", "venv", folder])
    site = next(folder.glob("lib/python*/site-packages"))
    # An editable install of the package would come along by a .pth or a finder there: those are not read twice.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin"


def environment(programs: pathlib.Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "CARGO_HOME")}
    return {**kept, "PATH": f"{programs}{os.pathsep}{path_without_cargo()}"}


ENCODES = """
import pathlib, sys, tokbatch
from tokbatch import sample
assert pathlib.Path(tokbatch.__file__).is_relative_to(sys.prefix), tokbatch.__file__
tokenizer = tokbatch.Tokenizer.from_file(sample.tokenizer_path(), engine=sys.argv[1])
print(tokenizer.engine_name, tokenizer.encode_batch(["Don't stop"]).to_pylist())
"""


def test_a_wheel_works_where_there_is_no_cargo(sources: pathlib.Path, tmp_path: pathlib.Path):
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo to build the native engine")
    run(["make", "wheel", f"PYTHON={sys.executable}", f"DIST={tmp_path}"], cwd=sources)
    (wheel,) = tmp_path.glob("*.whl")
    assert any("_native" in name for name in zipfile.ZipFile(wheel).namelist())
    if sys.version_info >= (3, 11):
        assert "-cp311-abi3-" in wheel.name

    programs = fresh_environment(tmp_path / "fresh")
    outside = environment(programs)
    assert shutil.which("cargo", path=outside["PATH"]) is None
    run([programs / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel], env=outside, cwd=tmp_path)
    said = run([programs / "python", "-W", "error", "-c", ENCODES, "native"], env=outside, cwd=tmp_path)
    assert said.startswith("native [[")
    version = run([programs / "tokbatch", "--version"], env=outside, cwd=tmp_path)
    assert "native engine: installed" in version


def test_an_install_without_cargo_works_and_says_so(sources: pathlib.Path, tmp_path: pathlib.Path):
    programs = fresh_environment(tmp_path / "fresh")
    outside = environment(programs)
    assert shutil.which("cargo", path=outside["PATH"]) is None
    run([programs / "python", "-m", "pip", "install", "--no-deps", sources], env=outside, cwd=tmp_path)
    said = run([programs / "python", "-W", "ignore", "-c", ENCODES, "auto"], env=outside, cwd=tmp_path)
    assert said.startswith("reference [[")

    def tokbatch(*arguments: object) -> str:
        return run([programs / "tokbatch", *arguments], env=outside, cwd=tmp_path)

    why = "native engine is not installed"
    assert "NOT INSTALLED" in tokbatch("--version")
    python = [
        programs / "python",
        "-c",
        "from tokbatch import sample; print(sample.tokenizer_path(), sample.corpus_folder())",
    ]
    tokenizer, corpus = run(python, env=outside, cwd=tmp_path).split()
    assert why in tokbatch("inspect", tokenizer)
    config = tmp_path / "config.toml"
    config.write_text(
        f'[tokenizer]\nfile = "{tokenizer}"\n[input]\nfiles = ["{corpus}/*.parquet"]\n[output]\npath = "out"\n'
    )
    assert why in tokbatch("run", config)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["engine"] == "reference"
    assert why in json.dumps(manifest)
