"""The recipes of jobs/ and the configs of configs/: each config loads, each recipe runs on the sample."""

import json
import pathlib
import runpy
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tokbatch import Tokenizer, sample
from tokbatch.job import load_config, prepare_job, read_stats, run_job

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))
RECIPES = sorted((ROOT / "jobs").glob("*.py"))
OF_THE_HUB = {"languages_nllb"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_loads_and_its_job_can_be_planned(path):
    config = load_config(path)
    if config.tokenizer.name is not None:  # of the hub, and documents that nobody has: they are tested elsewhere
        assert path.stem in OF_THE_HUB
        return
    assert pathlib.Path(config.resolve(config.tokenizer.file)).exists()
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


def run_recipe(name, monkeypatch, capsys, *arguments):
    """Run a recipe as a script, and give what it printed."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    monkeypatch.syspath_prepend(str(ROOT / "jobs"))
    runpy.run_path(str(ROOT / "jobs" / name), run_name="__main__")
    return capsys.readouterr().out


def test_every_recipe_is_run_by_a_test():
    here = pathlib.Path(__file__).read_text(encoding="utf-8")
    clusters = (ROOT / "tests/frontends/test_cluster_recipes.py").read_text(encoding="utf-8")
    assert [path.name for path in RECIPES if path.name not in here + clusters] == []


def test_the_recipe_of_a_corpus(monkeypatch, capsys, tmp_path):
    config = ROOT / "configs/corpus_to_parquet.toml"
    arguments = (config, f"output.path={tmp_path}/out", "run.workers=1")
    shown = run_recipe("corpus_to_parquet.py", monkeypatch, capsys, *arguments)
    _, total = read_stats(tmp_path / "out")
    assert f"419 documents, {total.tokens:,} tokens" in shown
    assert "0 problems" in shown
    assert shown.count(".parquet: ") == 3
    again = run_recipe("corpus_to_parquet.py", monkeypatch, capsys, *arguments)
    assert again.splitlines()[1:] == shown.splitlines()[1:]

    # What it wrote is what the next recipe reads, in memory that nobody copies.
    script = runpy.run_path(str(ROOT / "jobs/training_batches.py"))
    whole = (config, [f"output.path={tmp_path}/ids", "output.id_type=int32", "run.workers=1"])
    run_job(load_config(*whole))
    batches = script["Batches"](tmp_path / "ids", 4, 32)
    assert len(batches) > 10
    for index in (0, len(batches) - 1):
        batch = batches[index]
        view, start = batches.starts[index]
        assert batch.shape == (4, 32)
        assert np.shares_memory(batch, view)
        assert batch.ravel().tolist() == view[start : start + 128].tolist()
    ids = [
        token_id
        for path in sorted((tmp_path / "ids/data").iterdir())[:1]
        for row in pq.read_table(path)["input_ids"].to_pylist()
        for token_id in row or ()
    ]
    assert np.concatenate([batches[i].ravel() for i in range(len(ids) // 128)]).tolist() == ids[: len(ids) // 128 * 128]
    shown = run_recipe("training_batches.py", monkeypatch, capsys, tmp_path / "ids")
    assert "batches of (4, 128)" in shown
    if "torch" in sys.modules:
        assert "by torch" in shown


@pytest.mark.filterwarnings("ignore:.*not writable")
def test_torch_takes_the_batches_over_without_a_copy(tmp_path):
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    changes = [f"output.path={tmp_path}/ids", "output.id_type=int32", "run.workers=1"]
    run_job(load_config(ROOT / "configs/corpus_to_parquet.toml", changes))
    batches = runpy.run_path(str(ROOT / "jobs/training_batches.py"))["Batches"](tmp_path / "ids", 4, 32)
    tensors = list(data.DataLoader(batches, batch_size=None))
    assert len(tensors) == len(batches) > 10
    for tensor, batch in zip(tensors, batches, strict=True):
        assert tensor.data_ptr() == batch.ctypes.data
        assert str(tensor.dtype) == "torch.int32"
        assert tensor.tolist() == batch.tolist()


def test_the_recipe_for_pairs(monkeypatch, capsys):
    shown = run_recipe("fine_tuning_pairs.py", monkeypatch, capsys)
    assert "'token_type_ids': List(Value('int8'))" in shown
    assert "1 of them truncated" in shown


def nllb(folder):
    """A tokenizer of NLLB's shape: language tokens, of which one stands in the template."""
    content = json.loads(sample.tokenizer_path().read_text())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    languages = {"eng_Latn": 2000, "deu_Latn": 2001, "jpn_Jpan": 2002}
    content["added_tokens"] += [{"id": i, "content": name, **flags} for name, i in languages.items()]
    one = [{"SpecialToken": {"id": "eng_Latn", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [*one, end],
        "pair": [*one, {"Sequence": {"id": "B", "type_id": 0}}, end],
        "special_tokens": {
            name: {"id": name, "ids": [i], "tokens": [name]} for name, i in {**languages, "</s>": 2}.items()
        },
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(content))
    return path


def test_the_recipe_for_languages(monkeypatch, capsys, tmp_path):
    table = pa.table({"text": ["ein Satz", "one"], "language": ["deu_Latn", "eng_Latn"]})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.slice(1), tmp_path / "b.parquet")
    text = (ROOT / "configs/languages_nllb.toml").read_text()
    text = text.replace('name = "facebook/nllb-200-distilled-600M"', f'file = "{nllb(tmp_path)}"')
    (tmp_path / "job.toml").write_text(text.replace("../data/*", "*").replace("../out", "out"))
    shown = run_recipe("languages_nllb.py", monkeypatch, capsys, tmp_path / "job.toml", "run.workers=1")
    assert shown.splitlines() == ["deu_Latn deu_Latn ... </s>", "eng_Latn eng_Latn ... </s>"]


def test_the_recipe_for_polars(monkeypatch, capsys):
    pytest.importorskip("polars", reason="polars is not installed")
    shown = run_recipe("polars_column.py", monkeypatch, capsys)
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    counts = [tokenizer.count_batch(pq.read_table(path)["text"]) for path in sample.corpus_paths()]
    assert f"{sum(pc.sum(count).as_py() for count in counts):,} tokens" in shown
    assert "List(Int32)" in shown
