"""The recipes of jobs/ and the configs of configs/: each config loads, each recipe runs on the sample."""

import pathlib
import runpy
import sys

import pytest

from tokbatch.job import load_config, prepare_job, read_stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
RECIPES = sorted((ROOT / "jobs").glob("*.py"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_loads_and_its_job_can_be_planned(path):
    config = load_config(path)
    assert config.tokenizer.file is None or pathlib.Path(config.resolve(config.tokenizer.file)).exists()
    assert len(prepare_job(config).shards) >= 1


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_uses_the_public_api(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 60
    modules = [line.split()[1] for line in lines if line.startswith(("from tokbatch", "import tokbatch"))]
    assert modules
    assert all(module in {"tokbatch", "tokbatch.job"} or module.startswith("tokbatch.frontends.") for module in modules)


def test_the_demo_shows_file_by_file_what_was_lost(monkeypatch, capsys, tmp_path):
    import tokbatch.job

    load = tokbatch.job.load_config
    monkeypatch.setattr(tokbatch.job, "load_config", lambda path: load(path, [f"output.path={tmp_path}/out"]))
    runpy.run_path(str(ROOT / "jobs/demo.py"), run_name="__main__")
    shown = capsys.readouterr().out
    files, total = read_stats(tmp_path / "out")
    assert len(files) >= 2
    assert total.lstrip_chars > 0
    for name, stats in files:
        (line,) = [line for line in shown.splitlines() if line.startswith(name.split("/")[-1] + " ")][:1]
        assert f"{stats.tokens:,}" in line
        assert f"{stats.lstrip_chars:,}" in line or not stats.lstrip_chars
    assert "<mask>" in shown
    assert "U+0020 SPACE" in shown


def test_the_recipe_for_datasets(monkeypatch, capsys, tmp_path):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["datasets_map.py"])
    datasets.disable_progress_bars()
    runpy.run_path(str(ROOT / "jobs/datasets_map.py"), run_name="__main__")
    assert "List(Value('int32'))" in capsys.readouterr().out


def test_the_recipe_for_megatron(monkeypatch, capsys, tmp_path):
    import tokbatch.job

    load = tokbatch.job.load_config
    monkeypatch.setattr(tokbatch.job, "load_config", lambda path: load(path, [f"output.path={tmp_path}/out"]))
    monkeypatch.setattr(sys, "argv", ["megatron_export.py"])
    runpy.run_path(str(ROOT / "jobs/megatron_export.py"), run_name="__main__")
    printed = [line.split(" ", 1) for line in capsys.readouterr().out.splitlines()]
    assert printed
    assert sum(int(tokens) for tokens, _ in printed) == read_stats(tmp_path / "out")[1].tokens
    for tokens, prefix in printed:
        assert pathlib.Path(f"{prefix}.idx").is_file()
        assert pathlib.Path(f"{prefix}.bin").stat().st_size == 2 * int(tokens)
