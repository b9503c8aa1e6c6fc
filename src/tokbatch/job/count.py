"""Count tokens of files, without a job: nothing is written, nothing is checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from tokbatch.batch.fields import find_field, values_of
from tokbatch.errors import NOT_THERE, WRONG_COLUMN, EncodeError, TokbatchError, located
from tokbatch.job.config import MEBIBYTE
from tokbatch.job.inputs import Input, list_files
from tokbatch.job.sources import ReadOptions, open_source
from tokbatch.tokenizer import Tokenizer

BATCH_BYTES = 8 * MEBIBYTE


def count_files(
    tokenizer: Tokenizer, files: Sequence[str], text_column: str, add_special_tokens: bool
) -> Iterator[tuple[str, int, int]]:
    """Give (name, documents, tokens) of each file; relative paths are relative to the working folder.

    A folder of `Dataset.save_to_disk` is one of them, and each split of a folder of `DatasetDict.save_to_disk`.
    Null documents count as documents. Raises `InputError` and `EncodeError`, with the file in `where`.
    """
    for source in _inputs(files):
        documents = tokens = 0
        try:
            opened = open_source(source, ReadOptions(text_column))
            column = opened.schema.names[find_field(opened.schema, text_column, "--text-column")[0]]
            for batch in opened.batches(opened.units(), [column], BATCH_BYTES, 0):
                texts = values_of(batch, find_field(batch.schema, text_column, "--text-column"))
                documents += batch.num_rows
                tokens += pc.sum(tokenizer.count_batch(texts, add_special_tokens)).as_py() or 0
        except TokbatchError as error:
            if error.code == WRONG_COLUMN:
                error.message = f"{error.message} in {source.name}"
                raise
            if error.hint and any(f"{section}." in error.hint for section in ("input", "output", "run")):
                # It is about the config of a job, which there is none of.
                error.hint = "mend the row, or leave the file out" if isinstance(error, EncodeError) else None
            if documents == 0 and "://" not in source.path and not os.path.lexists(source.path):
                error.code = NOT_THERE
            raise located(error, source.name) from None
        yield source.name, documents, tokens


def _inputs(patterns: Sequence[str]) -> list[Input]:
    """Give the inputs that the patterns name, each once."""
    if not any(_splits_on_disk(pattern) for pattern in patterns):
        return list_files(patterns, os.getcwd()).inputs
    found: dict[str, Input] = {}
    for pattern in patterns:
        for source in _splits_on_disk(pattern) or list_files([pattern], os.getcwd()).inputs:
            found.setdefault(source.path, source)
    return list(found.values())


def _splits_on_disk(folder: str) -> list[Input]:
    """Give the datasets that a folder of `save_to_disk` holds: one, or those of its splits; none of another folder."""
    path = os.path.abspath(os.path.expanduser(folder))
    if all(os.path.isfile(os.path.join(path, mark)) for mark in ("state.json", "dataset_info.json")):
        return [Input("dataset", folder, path)]
    try:
        with open(os.path.join(path, "dataset_dict.json"), encoding="utf-8") as file:
            splits = json.load(file)["splits"]
        return [Input("dataset", os.path.join(folder, name), os.path.join(path, name)) for name in splits]
    except (OSError, ValueError, KeyError, TypeError):
        return []
