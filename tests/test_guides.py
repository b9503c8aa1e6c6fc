"""The guides in docs/guides/, and the page of outputs: every block of code in them is run, in the order of the page.

The word after the language of a block says what to do with it: a TOML block is written to the file of that name,
`not-run` is what belongs to other projects, and `needs=NAME` is run where that package is installed.
"""

import contextlib
import importlib.util
import json
import pathlib
import re
import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clusters import ray_cluster, spark_session
from tokbatch import sample
from tokbatch.frontends.cli import app
from tokbatch.job import load_config

GUIDES = sorted((pathlib.Path(__file__).resolve().parent.parent / "docs" / "guides").glob("*.md"))
PAGES = [*GUIDES, GUIDES[0].parents[1] / "output.md"]
CLUSTERS = {"ray": lambda: ray_cluster(cores=3), "spark": spark_session}
TEXTS = ["a <mask> b", None, "Hello, world!\n", "", "naïve 日本語"] * 8


def blocks(page):
    """Give (language, rest of the line, code) of each block."""
    found = re.findall(r"^```(\w+) ?(.*)\n((?:.*\n)*?)```$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) * 2 == page.read_text(encoding="utf-8").count("```"), "a block without a language"
    return found


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with what the pages speak of."""
    import datasets

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    shutil.copy(sample.tokenizer_path(), "tokenizer.json")
    pathlib.Path("data").mkdir()
    for name in ("a", "b"):
        rows = {
            "id": [f"{name}{row}" for row in range(len(TEXTS))],
            "text": TEXTS,
            "language": ["eng_Latn"] * len(TEXTS),
        }
        pq.write_table(pa.table(rows), f"data/{name}.parquet")
    lines = [json.dumps({"text": text}) for text in TEXTS if text is not None]
    pathlib.Path("data.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def need_of(word):
    """The package that a block needs, by the word after its language."""
    found = re.fullmatch(r"needs=(\w+)", word)
    return found[1] if found else None


def parameters():
    """Each page without the blocks that need a package that is no dependency, and with them."""
    for page in PAGES:
        is_for_clusters = page.stem in CLUSTERS
        needs = {need_of(word) for _, word, _ in blocks(page)} - {None}
        if any(need_of(word) is None and word != "not-run" for _, word, _ in blocks(page)):
            yield pytest.param(page, None, id=page.stem)
        for package in sorted(needs):
            marks = [pytest.mark.long] if is_for_clusters else []
            yield pytest.param(page, package, id=f"{page.stem}, {package}", marks=marks)


@pytest.mark.parametrize(("page", "package"), list(parameters()))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(600)
def test_a_guide_is_true(page, package, desk):
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: its blocks in {page.name} are not run")
    names: dict = {"__name__": "guide"}
    ran = 0
    with CLUSTERS[page.stem]() if package and page.stem in CLUSTERS else contextlib.nullcontext():
        for language, word, code in blocks(page):
            if word == "not-run" or need_of(word) not in (None, package):
                continue
            if language == "toml":
                (desk / word).write_text(code)
                load_config(desk / word)
            elif language == "sh":
                for line in code.splitlines():
                    command, *arguments = shlex.split(line)
                    assert command == "tokbatch"
                    done = CliRunner().invoke(app, arguments)
                    assert done.exit_code == 0, f"{line}\n{done.output}"
            else:
                assert language == "python", f"nobody knows how to run {language}"
                exec(compile(code, str(page), "exec"), names)
            ran += 1
    assert ran


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_guide_points_at_is_there(page):
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_there_is_a_guide_for_each_recipe():
    text = "".join(page.read_text(encoding="utf-8") for page in GUIDES)
    recipes = [path.name for path in (GUIDES[0].parents[2] / "jobs").glob("*.py") if path.name != "demo.py"]
    assert [name for name in recipes if f"jobs/{name}" not in text] == []
