"""The sample is what its script makes, and holds what it is there to show."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from types import ModuleType

import pyarrow.parquet as pq
import pytest

from tokbatch import sample

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make_sample.py"


@pytest.fixture(scope="module")
def make_sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_corpus_is_what_the_script_makes(make_sample: ModuleType) -> None:
    built = make_sample.tables()
    assert [path.stem for path in sample.corpus_paths()] == sorted(built)
    for path in sample.corpus_paths():
        assert pq.read_table(path).equals(built[path.stem])


def test_the_tokenizer_is_what_the_script_makes(make_sample: ModuleType) -> None:
    built = make_sample.tables()
    texts = [text for name in ("prose", "code") for text in built[name]["text"].to_pylist() if text]
    assert sample.tokenizer_path().read_text(encoding="utf-8") == make_sample.tokenizer_json(texts)


def test_the_tokenizer_has_the_added_tokens_of_roberta_base() -> None:
    value = json.loads(sample.tokenizer_path().read_text(encoding="utf-8"))
    mask = len(value["model"]["vocab"]) - 1
    shape = [(token["id"], token["content"], token["lstrip"]) for token in value["added_tokens"]]
    assert shape == [
        (0, "<s>", False),
        (1, "<pad>", False),
        (2, "</s>", False),
        (3, "<unk>", False),
        (mask, "<mask>", True),
    ]
    assert not any(token[flag] for token in value["added_tokens"] for flag in ("rstrip", "single_word", "normalized"))
    assert value["post_processor"]["type"] == "RobertaProcessing"


def test_the_corpus_has_what_hurts() -> None:
    columns = [pq.read_table(path)["text"] for path in sample.corpus_paths()]
    texts = [text for column in columns for text in column.to_pylist()]
    assert len(texts) > 300
    assert len(columns) >= 3
    assert None in texts
    assert "" in texts
    for space in (" ", "  ", "\t", "\n", "\r\n", "\u0085", "\u00a0", "\u2003", "\u2028", "\u3000"):
        for token in ("<mask>", "<s>", "</s>", "<pad>", "<unk>"):
            assert any(text and f"{space}{token}{space}" in text for text in texts), (space, token)
