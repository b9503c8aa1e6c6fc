"""Tokenize a dataset of the library `datasets`: Arrow in, Arrow out, with its cache, its processes and its streams.

    from tokbatch.frontends.hf_datasets import tokenize

    tokenized, stats = tokenize(dataset, "tokenizer.json", column="text", remove_columns=["text"], num_proc=2)

For those who call `.map` themselves there is `map_function`:

    function = map_function("tokenizer.json")
    dataset.map(function, batched=True, num_proc=2, features=function.features(dataset))

What happens to a batch is in `hf_map.py`. A corpus that is to be verified, resumed and recorded is a job (`job/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from tokbatch.batch.pairs import PairTransform
from tokbatch.batch.token_source import TokenSource
from tokbatch.batch.transform import Transform
from tokbatch.errors import ConfigError, InputError
from tokbatch.frontends.hf_map import (
    STATS_COLUMN,
    CountingMapFunction,
    MapFunction,
    RunningStats,
    StreamingMapFunction,
    collected_stats,
)
from tokbatch.frontends.tables import AnyTokenizer, Options, build_transform, names_of

__all__ = ["MapFunction", "RunningStats", "Tokenized", "map_function", "tokenize"]

RoundTrip = Literal["all", "sample", "off"]


class Tokenized(NamedTuple):
    """What `tokenize` gives: `dataset` of the kind that was given, and `stats`.

    `stats` is a `Stats` for a Dataset and a `RunningStats` for an IterableDataset; a dict of these by split for the
    dicts of datasets.
    """

    dataset: Any
    stats: Any


def tokenize(
    dataset: Any,
    tokenizer: AnyTokenizer,
    *,
    column: str = "text",
    pair_column: str | None = None,
    id_column: str = "input_ids",
    id_type: Literal["int32", "uint16"] = "int32",
    add_special_tokens: bool = True,
    prepend: Sequence[TokenSource] = (),
    append: Sequence[TokenSource] = (),
    template: Mapping[str, TokenSource] | None = None,
    max_length: int | None = None,
    round_trip: RoundTrip = "all",
    round_trip_column: str | None = None,
    on_bad_row: Literal["fail", "null"] = "fail",
    remove_columns: Sequence[str] = (),
    batch_size: int = 1000,
    num_proc: int | None = None,
    **map_options: Any,
) -> Tokenized:
    """Tokenize a Dataset, DatasetDict, IterableDataset or IterableDatasetDict.

    A column of ids comes to the others, except for those of `remove_columns`; its type is declared, and null texts have
    null ids. `round_trip_column` names a column of structs for what the round trip found in each row (`verdict`,
    `lstrip_chars`, `rstrip_chars`, `unk_tokens`). With `pair_column` the rows are pairs: ids by the template for pairs,
    a column `token_type_ids`, and no round trip. `max_length` truncates, in place of the file's truncation; padding is
    never applied. The other options are those of a job's config. `map_options` go to `datasets`'s `map`
    (`load_from_cache_file`, `keep_in_memory`, `writer_batch_size`, `desc`), which streams do not have.

    The statistics are those of each split, with row numbers of the split; they come out of the cache with the ids when
    the cache of `datasets` has them. Those of a stream count as it goes by. The cache is hit when dataset, tokenizer,
    options and version of tokbatch are the same, whatever the process, the day or the number of processes.

    Raises `SpecError`, `ConfigError`, `InputError` for a column that is missing or has no texts, `EncodeError`.
    """
    import datasets

    transform = build_transform(
        tokenizer,
        column,
        Options(
            pair_column=pair_column,
            max_length=max_length,
            id_column=id_column,
            id_type=id_type,
            add_special_tokens=add_special_tokens,
            prepend=prepend,
            append=append,
            template=template,
            round_trip=round_trip,
            round_trip_column=round_trip_column,
            on_bad_row=on_bad_row,
        ),
    )
    dropped = names_of(remove_columns)
    splits = dataset if isinstance(dataset, dict) else {"": dataset}
    done: dict[str, Tokenized] = {}
    for name, split in splits.items():
        if isinstance(split, datasets.IterableDataset):
            if num_proc is not None or map_options:
                given = ", ".join([*map_options, *(["num_proc"] if num_proc is not None else [])])
                raise ConfigError(f"a stream does not take {given}", where="tokenize")
            done[name] = _tokenize_stream(split, transform, dropped, batch_size)
        elif isinstance(split, datasets.Dataset):
            done[name] = _tokenize_table(split, transform, dropped, batch_size, num_proc, map_options)
        else:
            raise InputError(
                f"a dataset of the library datasets expected, found {type(split).__name__}",
                hint="an Arrow column goes to Tokenizer.encode_batch, files go to a job",
            )
    if not isinstance(dataset, dict):
        return done[""]
    kind = datasets.DatasetDict if not isinstance(dataset, datasets.IterableDatasetDict) else type(dataset)
    return Tokenized(
        kind({name: result.dataset for name, result in done.items()}),
        {name: result.stats for name, result in done.items()},
    )


def map_function(
    tokenizer: AnyTokenizer,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    id_column: str = "input_ids",
    id_type: Literal["int32", "uint16"] = "int32",
    add_special_tokens: bool = True,
    prepend: Sequence[TokenSource] = (),
    append: Sequence[TokenSource] = (),
    template: Mapping[str, TokenSource] | None = None,
    max_length: int | None = None,
    round_trip_column: str | None = None,
    on_bad_row: Literal["fail", "null"] = "fail",
) -> MapFunction:
    """Build a function for `Dataset.map(batched=True)`. The options are those of `tokenize`; there are no statistics.

    Raises `SpecError` and `ConfigError`.
    """
    return MapFunction(
        build_transform(
            tokenizer,
            text_column,
            Options(
                pair_column=pair_column,
                max_length=max_length,
                id_column=id_column,
                id_type=id_type,
                add_special_tokens=add_special_tokens,
                prepend=prepend,
                append=append,
                template=template,
                round_trip="off" if round_trip_column is None else "all",
                round_trip_column=round_trip_column,
                on_bad_row=on_bad_row,
            ),
        )
    )


def _tokenize_table(
    dataset: Any,
    transform: Transform | PairTransform,
    dropped: tuple[str, ...],
    batch_size: int,
    num_proc: int | None,
    map_options: dict[str, Any],
) -> Tokenized:
    import datasets

    function = CountingMapFunction(transform, dropped=dropped)
    features = function.checked_features(dataset, dropped)
    wanted = dataset.format
    if len(dataset) == 0:  # `map` would give it back as it is, without the column
        empty = datasets.Dataset.from_dict({name: [] for name in features}, features=features, split=dataset.split)
        return Tokenized(_formatted(empty, wanted, dataset.column_names), collected_stats(()))
    mapped = dataset.with_format("arrow").map(
        function,
        batched=True,
        with_indices=True,
        batch_size=batch_size,
        num_proc=num_proc,
        features=datasets.Features({**features, STATS_COLUMN: datasets.Value("string")}),
        **{"desc": "Tokenize", **map_options},
    )
    stats = collected_stats(mapped.data.column(STATS_COLUMN).chunks)
    return Tokenized(_formatted(mapped.remove_columns(STATS_COLUMN), wanted, dataset.column_names), stats)


def _tokenize_stream(
    dataset: Any, transform: Transform | PairTransform, dropped: tuple[str, ...], batch_size: int
) -> Tokenized:
    import datasets

    function = StreamingMapFunction(transform, dropped=dropped)
    options: dict[str, Any] = {"batched": True, "with_indices": True, "batch_size": batch_size}
    if dataset.features is not None:
        features = function.checked_features(dataset, dropped)
        mapped = dataset.with_format("arrow").map(function, features=features, **options)
        return Tokenized(mapped.with_format(None), function.running)
    # Nobody has declared the types: they are those of the first rows. Arrow has no way for rows like these, since
    # `datasets` makes a table of each of them, of other types where there are nulls.
    first: dict[str, Any] = next(iter(dataset.with_format(None).iter(batch_size)), {})
    types = {name: pa.array(values).type for name, values in first.items()}
    types |= {name: pa.string() for name in transform.columns if types.get(name) == pa.null()}
    given = datasets.Features.from_arrow_schema(pa.schema(types))
    features = function.checked_features(SimpleNamespace(features=given), dropped) if first else None
    mapped = dataset.with_format(None).map(
        function, features=features, remove_columns=[name for name in dropped if name in types], **options
    )
    return Tokenized(mapped, function.running)


def _formatted(dataset: Any, wanted: Mapping[str, Any], before: Sequence[str]) -> Any:
    """Give a dataset the format that the one before had; a choice of columns gets the new ones."""
    columns = [name for name in dataset.column_names if name in wanted["columns"] or name not in before]
    return dataset.with_format(
        wanted["type"],
        columns=columns if len(columns) < len(dataset.column_names) else None,
        output_all_columns=wanted["output_all_columns"],
        **wanted["format_kwargs"],
    )
