"""Count tokens of files, without a job: nothing is written, nothing is checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow.compute as pc

from tokbatch.batch.fields import find_field, values_of
from tokbatch.errors import WRONG_COLUMN, TokbatchError, located
from tokbatch.job.config import MEBIBYTE
from tokbatch.job.inputs import list_files
from tokbatch.job.sources import ReadOptions, open_source
from tokbatch.tokenizer import Tokenizer

BATCH_BYTES = 8 * MEBIBYTE


def count_files(
    tokenizer: Tokenizer, files: Sequence[str], text_column: str, add_special_tokens: bool
) -> Iterator[tuple[str, int, int]]:
    """Give (name, documents, tokens) of each file; relative paths are relative to the working folder.

    Null documents count as documents. Raises `InputError` and `EncodeError`, with the file in `where`.
    """
    for source in list_files(files, os.getcwd()).inputs:
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
            raise located(error, source.name) from None
        yield source.name, documents, tokens
