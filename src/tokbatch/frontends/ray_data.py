"""Ray Data: a class for `map_batches`, with one tokenizer to each actor.

    from tokbatch.frontends.ray_data import Tokenize

    dataset.map_batches(
        Tokenize,
        fn_constructor_kwargs={"tokenizer": "tokenizer.json", "column": "text"},
        batch_format="pyarrow",
        concurrency=4,
    )

Ray itself is not imported here. There are no statistics: a batch that Ray does twice would count twice. A corpus that
is to be verified, counted and resumed on a cluster is a job with `run.engine = "ray"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tokbatch.errors import InputError
from tokbatch.frontends.tables import AnyTokenizer, Options, TableFunction, build_transform, names_of


class Tokenize:
    """Tables in, tables with a column of ids out; null texts have null ids.

    `tokenizer` is a path that all nodes see, or a `Tokenizer`, which travels to them. Each actor builds its own once.
    `remove_columns` are left out; the options are those of `tokbatch.frontends.hf_datasets.tokenize`, but without the
    round trip unless `round_trip_column` asks for it. Raises as that does.
    """

    def __init__(
        self,
        tokenizer: AnyTokenizer,
        column: str = "text",
        remove_columns: Sequence[str] | str = (),
        **options: Any,
    ):
        options.setdefault("round_trip", "off" if options.get("round_trip_column") is None else "all")
        transform = build_transform(tokenizer, column, Options(**options))  # type: ignore[typeddict-item]
        self._function = TableFunction(transform, names_of(remove_columns))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Tokenize one batch."""
        if not isinstance(table, pa.Table):
            raise InputError(
                f"a batch of the type {type(table).__name__}", hint='map_batches(..., batch_format="pyarrow")'
            )
        return self._function(table)[0]
