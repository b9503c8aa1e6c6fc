"""A function for `datasets.Dataset.map(batched=True)`: the transform of a batch, in the types of that library.

    from tokbatch.frontends.hf_datasets import map_function

    tokenize = map_function("tokenizer.json")
    dataset.map(tokenize, batched=True, num_proc=2, features=tokenize.features(dataset))

It pickles to the same bytes in every process, so that the cache of `datasets` is hit when tokenizer, options and
version of tokbatch are the same, and only then. Neither statistics nor round trips are here: see the job.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tokbatch._version import __version__
from tokbatch.batch.affixes import TokenSource
from tokbatch.batch.transform import Transform, TransformOptions
from tokbatch.errors import InputError
from tokbatch.tokenizer import Tokenizer


def map_function(
    tokenizer: Tokenizer | str | os.PathLike[str],
    *,
    text_column: str = "text",
    id_column: str = "input_ids",
    id_type: Literal["int32", "uint16"] = "int32",
    add_special_tokens: bool = True,
    prepend: Sequence[TokenSource] = (),
    append: Sequence[TokenSource] = (),
    on_bad_row: Literal["fail", "null"] = "fail",
) -> MapFunction:
    """Build the function. `tokenizer` is a `Tokenizer` or the path of one; the rest is as in a job's config.

    Raises `SpecError` and `ConfigError`.
    """
    if not isinstance(tokenizer, Tokenizer):
        tokenizer = Tokenizer.from_file(tokenizer)
    options = TransformOptions(
        text_column=text_column,
        id_column=id_column,
        id_type=id_type,
        add_special_tokens=add_special_tokens,
        prepend=tuple(prepend),
        append=tuple(append),
        on_bad_row=on_bad_row,
        round_trip="off",
    )
    return MapFunction(Transform(options, tokenizer))


class MapFunction:
    """What `map_function` gives: batches in, batches with a column of ids out; null texts have null ids.

    In the Arrow format (`with_format("arrow")`) a table comes in and leaves with all its columns and the ids; nothing
    is copied into Python objects, and `remove_columns` of `map` does nothing, as always there: remove the columns
    before, or after. In the default format the ids come as arrays of numpy, which `datasets` adds to the batch.
    """

    def __init__(self, transform: Transform, version: str = __version__):
        self._transform = transform
        self._version = version

    def __reduce__(self) -> tuple[Any, ...]:
        return MapFunction, (self._transform, self._version)

    def __call__(self, batch: Any) -> Any:
        """Tokenize one batch of `datasets`."""
        options = self._transform.options
        if isinstance(batch, pa.Table):
            ids = self._ids(batch.to_batches())
            chunks = pa.chunked_array(ids, options.id_list_type)
            index = batch.schema.get_field_index(options.id_column)
            add = batch.append_column if index < 0 else lambda name, column: batch.set_column(index, name, column)
            return add(options.id_column, chunks)
        if not isinstance(batch, Mapping):
            raise InputError(
                f"a batch of the type {type(batch).__name__}",
                hint='use the default format of datasets, or with_format("arrow"), and batched=True',
            )
        (array,) = self._ids([_record_batch(batch, self._needed())])
        return {options.id_column: _numpy_rows(array)}

    def features(self, dataset: Any, remove_columns: Sequence[str] = ()) -> Any:
        """Give the features of the mapped dataset, for `map(features=...)` with the same `remove_columns`.

        Without it `datasets` guesses the type of the ids from the first rows, which goes wrong where those are null.
        """
        import datasets

        removed = {remove_columns} if isinstance(remove_columns, str) else set(remove_columns)
        features = {name: feature for name, feature in dataset.features.items() if name not in removed}
        value = datasets.Value(self._transform.options.id_type)
        features[self._transform.options.id_column] = datasets.Sequence(value)
        return datasets.Features(features)

    def _ids(self, batches: Sequence[pa.RecordBatch]) -> list[pa.Array]:
        return [self._transform.transform(batch)[0].column(self._transform.options.id_column) for batch in batches]

    def _needed(self) -> set[str]:
        options, affixes = self._transform.options, self._transform.affixes
        return {name for column in (options.text_column, *affixes.columns) for name in (column, column.split(".")[0])}


def _record_batch(batch: Mapping[str, Any], needed: set[str]) -> pa.RecordBatch:
    """Make Arrow columns of lists; a column of texts that are all null is a column of strings too."""
    columns: dict[str, pa.Array] = {}
    for name in batch:
        if name in needed:
            values = batch[name]
            try:
                columns[name] = pa.array(values.tolist() if isinstance(values, np.ndarray) else values)
            except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
                raise InputError(f"no column of texts: {error}", where=f"column {name!r}") from None
    return pa.record_batch(columns)


def _numpy_rows(array: pa.ListArray) -> list[np.ndarray[Any, Any] | None]:
    """Give a numpy array a row, all of them views of one; None for a null."""
    values = array.values.to_numpy(zero_copy_only=False)
    starts = array.offsets.to_numpy(zero_copy_only=False)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return [values[starts[row] : starts[row + 1]] if valid[row] else None for row in range(len(array))]
