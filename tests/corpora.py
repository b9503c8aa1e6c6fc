"""Small corpora and configs for the tests of jobs and front ends."""

from __future__ import annotations

import json
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

from tokbatch import sample

TEXTS = ["a <mask> b", "", None, "Hello, world!\n", "x\u3000<mask>", "naïve – 日本語 🙂", "  two  blanks "]

DATASET_TEXTS = [None, "a <mask> b", "", "Hello, world!", "日本語", "x\t<mask>"] * 20
"""The rows of the datasets and data frames that the front ends are tested on."""


def write_corpus(folder: pathlib.Path, name: str, rows: int, row_group: int = 50) -> pathlib.Path:
    """Write a Parquet file whose documents are told apart by their numbers."""
    texts = [None if TEXTS[i % 7] is None else f"{TEXTS[i % 7]} {i}" if TEXTS[i % 7] else "" for i in range(rows)]
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "text": pa.array(texts, pa.string())})
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group)
    return path


def write_config(folder: pathlib.Path, name: str = "job.toml", **dotted: object) -> pathlib.Path:
    """Write a config of the sample's tokenizer; keys are given as ``run__workers=2``."""
    sections: dict[str, dict[str, object]] = {
        "tokenizer": {"file": str(sample.tokenizer_path()), "engine": "auto"},
        "input": {"files": ["*.parquet"], "keep_columns": "all"},
        "output": {"path": "out"},
        "run": {"workers": 2},
    }
    for key, value in dotted.items():
        section, inner = key.split("__")
        sections.setdefault(section, {})[inner] = value
    lines = [
        f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for section, keys in sections.items()
    ]
    path = folder / name
    path.write_text("\n".join(lines))
    return path


def files_below(folder: pathlib.Path) -> dict[str, bytes]:
    """Give what must not depend on workers, order or kills: name -> bytes."""
    paths = [*sorted((folder / "data").rglob("*")), folder / "stats.json", folder / "stats.parquet"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}
