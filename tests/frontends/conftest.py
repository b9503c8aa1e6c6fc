"""What the tests of front ends share: the texts of a small dataset, and what becomes of them."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from corpora import DATASET_TEXTS
from tokbatch import Tokenizer, sample


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """The tokenizer of the sample."""
    return Tokenizer.from_file(sample.tokenizer_path())


@pytest.fixture(scope="session")
def expected(tokenizer: Tokenizer) -> list[list[int] | None]:
    """The ids of each text, one by one."""
    return [None if text is None else tokenizer.encode(text).ids for text in DATASET_TEXTS]


@pytest.fixture
def quiet_datasets(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library `datasets` with a cache of this test, and without bars."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture
def dataset(quiet_datasets: None) -> Any:
    """The texts as a dataset in memory, with their numbers."""
    import datasets

    return datasets.Dataset.from_dict({"text": DATASET_TEXTS, "n": list(range(len(DATASET_TEXTS)))})
