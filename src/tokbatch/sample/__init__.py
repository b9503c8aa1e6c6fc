"""The sample that comes with the package: a small corpus and a small tokenizer, for `make demo` and for first steps.

The corpus is three Parquet files with the columns `id`, `text` (the documents; some are empty, some are null),
`language` and `source` (a struct: title, part, tags). The tokenizer is a byte-level BPE of roberta's shape, with
roberta-base's five added tokens; `<mask>` has `lstrip`, so that it takes the whitespace before it along.

Only paths are here. `scripts/make_sample.py` wrote both, from texts of our own that lie beside it.
"""

from __future__ import annotations

import pathlib

__all__ = ["corpus_folder", "corpus_paths", "tokenizer_path"]

_FOLDER = pathlib.Path(__file__).resolve().parent


def tokenizer_path() -> pathlib.Path:
    """Path of the sample's tokenizer.json."""
    return _FOLDER / "tokenizer.json"


def corpus_folder() -> pathlib.Path:
    """Folder of the sample's Parquet files."""
    return _FOLDER / "corpus"


def corpus_paths() -> list[pathlib.Path]:
    """Paths of the sample's Parquet files, in order."""
    return sorted(corpus_folder().glob("*.parquet"))
