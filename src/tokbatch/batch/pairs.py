"""Pairs of texts, for fine-tuning: two columns of texts go in, ids and type ids come out.

    (text, pair) -> ids, type ids, with the file's template for pairs and its truncation

Row by row, through `Engine.encode`: pairs are what the tables of a benchmark are made of, not what a corpus is. What
truncation cuts off is gone, so that every row stays one row. There is no round trip here: it is defined for one text.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.arrow import id_array, text_column
from tokbatch.batch.count import IdClasses, count_ids, count_texts
from tokbatch.batch.fields import find_field, values_of
from tokbatch.batch.options import IdOptions, problems_of_choices, problems_of_size
from tokbatch.batch.round_trip import first_rows
from tokbatch.batch.stats import FIRST_ROWS, Stats
from tokbatch.batch.views import row_numbers
from tokbatch.engine.columns import IdColumn, int32_ids
from tokbatch.engine.encoding import Encoding
from tokbatch.engine.protocol import Engine
from tokbatch.errors import ConfigError, EncodeError

TYPE_ID_LIST = pa.list_(pa.int8())
"""Type ids are 0 and 1, and whatever else a template says up to 127."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions(IdOptions):
    """What to do with each batch of pairs. `type_id_column` None: no column of type ids."""

    text_column: str
    pair_column: str
    type_id_column: str | None = "token_type_ids"

    @property
    def new_columns(self) -> pa.Schema:
        """The columns that come out."""
        fields = [(self.id_column, self.id_list_type)]
        if self.type_id_column is not None:
            fields.append((self.type_id_column, TYPE_ID_LIST))
        return pa.schema(fields)


class PairTransform:
    """Options and a tokenizer, as `Transform` is for single texts. The file's padding is left out."""

    def __init__(self, options: PairOptions, tokenizer: Any):
        self.options = options
        self._tokenizer = tokenizer
        unpadded = tokenizer if tokenizer.engine.padding is None else tokenizer.with_options(padding=None)
        self.engine: Engine = unpadded.engine
        problems = problems_of_choices(options) + problems_of_size(options, self.engine.max_id)
        if problems:
            raise ConfigError("; ".join(problems), problems=problems)
        self._classes = IdClasses(self.engine)

    def __reduce__(self) -> tuple[Any, ...]:
        return PairTransform, (self.options, self._tokenizer)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that texts and tokens come from, dotted where they are nested."""
        return (self.options.text_column, self.options.pair_column)

    def transform(self, batch: pa.RecordBatch, first_row: int = 0) -> tuple[pa.RecordBatch, Stats]:
        """Give the columns of ids and type ids, and the statistics; null where one of the two texts is null.

        Texts and their bytes are counted in both columns, documents once. Raises as `Transform.transform`.
        """
        options = self.options
        columns = []
        for name, option in ((options.text_column, "text_column"), (options.pair_column, "pair_column")):
            values = values_of(batch, find_field(batch.schema, name, option))
            columns.append(text_column(values, f"column {name!r}", options.on_bad_row == "null"))
        text, pair = columns
        failed = {row for column in columns for row, _ in column.failures}
        missing = [False] * batch.num_rows
        for column in columns:
            if column.nulls is not None:
                missing = [a or b for a, b in zip(missing, column.nulls.to_pylist(), strict=True)]
        encodings: list[Encoding] = []
        for row in range(batch.num_rows):
            if not missing[row]:
                encoding = self._encode(text.texts.text(row), pair.texts.text(row), row, first_row)
                if encoding is None:
                    failed.add(row)
                    missing[row] = True
            encodings.append(_NOTHING if missing[row] or encoding is None else encoding)
        return self._output(batch, encodings, missing), self._stats(columns, encodings, missing, failed, first_row)

    def _encode(self, text: str, pair: str, row: int, first_row: int) -> Encoding | None:
        try:
            return self.engine.encode(text, pair, self.options.add_special_tokens)
        except EncodeError as error:
            if self.options.on_bad_row == "null":
                return None
            number = first_row + row
            raise EncodeError(
                error.message, row=number, where=f"row {number}", hint=error.hint, code=error.code
            ) from None

    def _output(self, batch: pa.RecordBatch, encodings: list[Encoding], missing: list[bool]) -> pa.RecordBatch:
        options = self.options
        nulls = pa.array(missing) if any(missing) else None
        ids = IdColumn.from_lists(encoding.ids for encoding in encodings)
        arrays = [id_array(ids, nulls, options.id_type, options.id_list_type)]
        if options.type_id_column is not None:
            type_ids = IdColumn.from_lists(encoding.type_ids for encoding in encodings)
            arrays.append(id_array(type_ids, nulls, pa.int8(), TYPE_ID_LIST))
        return pa.RecordBatch.from_arrays(arrays, schema=options.new_columns)

    def _stats(
        self, columns: list[Any], encodings: list[Encoding], missing: list[bool], failed: set[int], first_row: int
    ) -> Stats:
        present = [encoding for encoding, is_missing in zip(encodings, missing, strict=True) if not is_missing]
        is_cut = pa.array([bool(encoding.overflowing) for encoding in encodings], pa.bool_())
        ids = IdColumn.from_lists(array("i", int32_ids(encoding.ids, 0)) for encoding in present)
        stats = count_ids(ids, self._classes, 0)
        for column in columns:
            stats = stats.merge(count_texts(column.texts))
        return stats.merge(
            Stats(
                documents=len(encodings),
                null_documents=sum(missing) - len(failed),
                added_tokens=sum(encoding.word_ids.count(None) for encoding in present),
                failed_documents=len(failed),
                failed_first_rows=tuple(first_row + row for row in sorted(failed)[:FIRST_ROWS]),
                truncated_documents=pc.sum(is_cut).as_py() or 0,
                truncated_first_rows=first_rows(row_numbers(len(encodings), first_row), is_cut),
            )
        )


_NOTHING = Encoding()
