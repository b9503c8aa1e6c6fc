"""The one transform: a record batch with texts goes in; one with ids, and the statistics of its documents, come out.

    texts -> ids -> round trip -> affixes -> statistics -> record batch

The job's workers and every front end loop over it and add nothing to it. What comes out does not depend on how the
rows were cut into batches, and its schema depends on the input's schema alone. What is not here: files, processes and
policies for whole files (`job/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.affixes import Affixes, ids_in_column, put_around
from tokbatch.batch.arrow import id_array, text_column
from tokbatch.batch.count import IdClasses, count_ids, count_texts
from tokbatch.batch.crosscheck import compare_ids
from tokbatch.batch.fields import values_of
from tokbatch.batch.options import Layout, TransformOptions, build_layout, checked_affixes
from tokbatch.batch.round_trip import count_verification, first_rows, verification_array
from tokbatch.batch.sampling import in_sample
from tokbatch.batch.stats import FIRST_ROWS, Stats
from tokbatch.batch.views import (
    row_numbers,
    strings_of,
    take_ids,
    take_texts,
    with_empty_ids,
    without_empty_ids,
    without_empty_texts,
)
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import Engine, Verification
from tokbatch.errors import ConfigError, EncodeError, TokbatchError
from tokbatch.spec import Truncation

__all__ = ["Transform", "TransformOptions"]

_ROUND_TRIP, _CROSSCHECK = 0, 1  # purposes of samples
_NONE: Mapping[int, str] = {}


class TokenizerLike(Protocol):
    """What the transform needs of `tokbatch.Tokenizer`, which stands to the right of this folder."""

    engine: Engine

    def with_options(self, *, truncation: Any = ..., padding: Any = ...) -> Any:
        """Give the tokenizer with other options."""


@dataclass(frozen=True, slots=True)
class _Documents:
    """The texts that are left: `rows` are their row numbers in the batch, `affix_ids` the ids from each column.

    `failed` are the rows of the batch that could not be encoded, each with the reason.
    """

    texts: TextColumn
    rows: pa.Int64Array
    affix_ids: Mapping[str, pa.Int32Array]
    failed: Mapping[int, str]

    def without(self, bad: pa.BooleanArray, reasons: Mapping[int, str]) -> _Documents:
        """Move the documents where `bad` is true to the failed ones; `reasons` are theirs, by row of the batch."""
        good = pc.indices_nonzero(pc.invert(bad))
        return _Documents(
            take_texts(self.texts, good),
            self.rows.take(good),
            {name: ids.take(good) for name, ids in self.affix_ids.items()},
            {**self.failed, **reasons},
        )


class Transform:
    """Options and a tokenizer, checked against each other. It never changes, and pickles as small as the tokenizer.

    `crosscheck_tokenizer` is the second one for `options.crosscheck` > 0: the same spec on another engine. A file's
    padding is left out, since it would make the output depend on the batches; its truncation is honoured, and counts
    what `prepend` and `append` add. Raises `ConfigError` with all problems.
    """

    def __init__(
        self, options: TransformOptions, tokenizer: TokenizerLike, crosscheck_tokenizer: TokenizerLike | None = None
    ):
        self.options = options
        self._tokenizers = (tokenizer, crosscheck_tokenizer)
        self.affixes = checked_affixes(options, tokenizer.engine, crosscheck_tokenizer is not None)
        self.engine = _engine_for_batches(tokenizer, self.affixes)
        self.second_engine = _engine_for_batches(crosscheck_tokenizer, self.affixes) if crosscheck_tokenizer else None
        self._classes = IdClasses(self.engine)
        self._added_tokens = self.affixes.count + (self.affixes.with_template and template_length(self.engine))
        self._last_layout: tuple[pa.Schema, Layout] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Transform, (self.options, *self._tokenizers)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that texts and tokens come from, dotted where they are nested."""
        return (self.options.text_column, *self.affixes.columns)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Give the schema of what `transform` makes of batches of this schema: the kept columns, then the ids.

        Raises `InputError` for a column that is missing or has the wrong type, `ConfigError` for names that collide.
        """
        return self._layout(schema).output

    def input_columns(self, schema: pa.Schema) -> list[str]:
        """Give the names of the top-level columns that `transform` looks at, in the order of the input."""
        layout = self._layout(schema)
        indices = {layout.text[0], *layout.kept, *(path[0] for _, path in layout.affixes)}
        return [schema.field(index).name for index in sorted(indices)]

    def transform(
        self,
        batch: pa.RecordBatch,
        first_row: int = 0,
        *,
        given_up: Mapping[int, str] = _NONE,
        on_failure: Callable[[int, str], object] | None = None,
    ) -> tuple[pa.RecordBatch, Stats]:
        """Give the batch with the kept columns and the ids, and the statistics of its documents.

        `first_row` is the number of the batch's first row within its file. A null text has null for ids. Raises
        `EncodeError` with the row number in the file for a text that cannot be encoded, unless `on_bad_row` is "null":
        then `on_failure` hears of the row and the reason. The rows of the file in `given_up` count as failed, for the
        reason given there, without being tried. Raises `VerifyError` where the crosscheck finds a difference, and
        `InputError` for a wrong column.
        """
        layout = self._layout(batch.schema)
        try:
            documents, stats = self._read(batch, layout)
            if given_up:
                documents, empty = _give_up(documents, {row - first_row: reason for row, reason in given_up.items()})
                stats = stats.merge(Stats(empty_documents=-empty))
            documents, ids, is_cut = self._encode(documents)
        except EncodeError as error:
            raise _in_file(error, first_row) from None
        rows = pc.add(documents.rows, first_row)
        verified, verification = self._verify(documents, ids, rows, is_cut)
        stats = stats.merge(verified).merge(self._crosscheck(documents, ids, rows))
        ids = put_around(ids, self.affixes, documents.affix_ids)
        stats = stats.merge(count_ids(ids, self._classes, self._added_tokens)).merge(
            Stats(
                failed_documents=len(documents.failed),
                failed_first_rows=tuple(first_row + row for row in sorted(documents.failed)[:FIRST_ROWS]),
                truncated_documents=pc.sum(is_cut).as_py() or 0,
                truncated_first_rows=first_rows(rows, is_cut),
            )
        )
        if on_failure is not None:
            for row in sorted(documents.failed):
                on_failure(first_row + row, documents.failed[row])
        nulls = None
        if ids.rows < batch.num_rows:
            nulls = pc.invert(pc.is_in(row_numbers(batch.num_rows), documents.rows))
            ids = with_empty_ids(ids, nulls)
        columns = [batch.column(index) for index in layout.kept]
        columns.append(id_array(ids, nulls, self.options.id_type, self.options.id_list_type))
        if self.options.round_trip_column is not None:
            columns.append(_by_row(verification, batch.num_rows, first_row))
        return pa.RecordBatch.from_arrays(columns, schema=layout.output), stats

    def _layout(self, schema: pa.Schema) -> Layout:
        if self._last_layout is None or not self._last_layout[0].equals(schema, check_metadata=True):
            self._last_layout = (schema, build_layout(schema, self.options, self.affixes))
        return self._last_layout[1]

    @property
    def _keep_going(self) -> bool:
        return self.options.on_bad_row == "null"

    def _read(self, batch: pa.RecordBatch, layout: Layout) -> tuple[_Documents, Stats]:
        """Find the texts of a batch and count them; then let those go whose tokens from columns are none."""
        where = f"column {self.options.text_column!r}"
        read = text_column(values_of(batch, layout.text), where, self._keep_going)
        failed = {row: error.message for row, error in read.failures}
        texts, rows = read.texts, row_numbers(batch.num_rows)
        if read.nulls is not None:
            present = pc.invert(read.nulls)
            texts, rows = without_empty_texts(texts, present), rows.filter(present)
        nulls = batch.num_rows - len(rows) - len(failed)
        stats = count_texts(texts).merge(Stats(documents=batch.num_rows, null_documents=nulls))
        documents = _Documents(texts, rows, {}, failed)
        for name, path in layout.affixes:
            ids, is_none = ids_in_column(values_of(batch, path), name, documents.rows, self.engine)
            documents = replace(documents, affix_ids={**documents.affix_ids, name: ids})
            if pc.any(is_none).as_py():
                reason = f"column {name!r} names no token of the vocabulary"
                if not self._keep_going:
                    raise EncodeError(reason, row=documents.rows.filter(is_none)[0].as_py())
                documents = documents.without(
                    is_none, dict.fromkeys(documents.rows.filter(is_none).to_pylist(), reason)
                )
        return documents, stats

    def _encode(self, documents: _Documents) -> tuple[_Documents, IdColumn, pa.BooleanArray]:
        """Give the ids of the documents, and which were truncated; what cannot be encoded is no longer among them."""
        try:
            ids = self.engine.encode_batch(documents.texts, self.affixes.with_template, self._keep_going)
        except EncodeError as error:
            row = None if error.row is None else documents.rows[error.row].as_py()
            raise EncodeError(error.message, row=row, hint=error.hint, code=error.code) from None
        numbers = row_numbers(ids.rows)
        is_cut = pc.is_in(numbers, pa.array(ids.truncated_rows, pa.int64()))
        if ids.failures:
            bad = pc.is_in(numbers, pa.array([row for row, _ in ids.failures], pa.int64()))
            good = pc.invert(bad)
            reasons = {documents.rows[row].as_py(): error.message for row, error in ids.failures}
            documents, ids, is_cut = documents.without(bad, reasons), without_empty_ids(ids, good), is_cut.filter(good)
        return documents, ids, is_cut

    def _verify(
        self, documents: _Documents, ids: IdColumn, rows: pa.Int64Array, is_cut: pa.BooleanArray
    ) -> tuple[Stats, tuple[Verification, pa.Int64Array] | None]:
        """Verify the round trip of the documents, or of a sample; the truncated ones have lost text by request.

        Gives the statistics, and what was found with the rows it belongs to.
        """
        if self.options.round_trip == "off":
            return Stats(), None
        chosen = pc.invert(is_cut)
        if self.options.round_trip == "sample":
            chosen = pc.and_(chosen, in_sample(rows, self.options.sample_rate, _ROUND_TRIP))
        texts, ids, rows = _chosen(documents.texts, ids, rows, chosen)
        verification = self.engine.verify_batch(texts, ids, self.affixes.with_template)
        return count_verification(verification, rows), (verification, rows)

    def _crosscheck(self, documents: _Documents, ids: IdColumn, rows: pa.Int64Array) -> Stats:
        """Encode a sample of the documents by the second engine too."""
        if self.second_engine is None or self.options.crosscheck == 0:
            return Stats()
        chosen = in_sample(rows, self.options.crosscheck, _CROSSCHECK)
        texts, ids, rows = _chosen(documents.texts, ids, rows, chosen)
        again = self.second_engine.encode_batch(texts, self.affixes.with_template, keep_going=True)
        compare_ids(ids, again, rows, self.engine.name, self.second_engine.name)
        return Stats(crosschecked_documents=ids.rows)


def _give_up(documents: _Documents, reasons: Mapping[int, str]) -> tuple[_Documents, int]:
    """Count some rows of the batch as failed, where there is a document; say how many of them have no character.

    What could not be read as a text (a line that is no JSON) came as an empty one, and is none.
    """
    bad = pc.is_in(documents.rows, pa.array(list(reasons), pa.int64()))
    empty = pc.sum(pc.and_(bad, pc.equal(pc.binary_length(strings_of(documents.texts)), 0))).as_py() or 0
    return documents.without(bad, {row: reasons[row] for row in documents.rows.filter(bad).to_pylist()}), empty


def _by_row(found: tuple[Verification, pa.Int64Array] | None, count: int, first_row: int) -> pa.StructArray:
    """Lay a verification out over all rows of a batch, null where there is none."""
    assert found is not None  # the options say so
    verification, rows = found
    return verification_array(verification).take(pc.index_in(row_numbers(count, first_row), rows))


def _chosen(
    texts: TextColumn, ids: IdColumn, rows: pa.Int64Array, chosen: pa.BooleanArray
) -> tuple[TextColumn, IdColumn, pa.Int64Array]:
    """Give what belongs to some of the rows: copied, unless they are all."""
    places = pc.indices_nonzero(chosen)
    if len(places) == len(rows):
        return texts, ids, rows
    return take_texts(texts, places), take_ids(ids, places), rows.take(places)


def _engine_for_batches(tokenizer: TokenizerLike, affixes: Affixes) -> Engine:
    """Give the engine without padding, and with a truncation that leaves room for the affixes."""
    given, padding = tokenizer.engine.truncation, tokenizer.engine.padding
    truncation = given
    if truncation is not None and affixes.count:
        check_truncation(truncation, affixes.count + (affixes.with_template and template_length(tokenizer.engine)))
        truncation = msgspec.structs.replace(truncation, max_length=truncation.max_length - affixes.count)
    if padding is None and truncation == given:
        return tokenizer.engine
    engine: Engine = tokenizer.with_options(truncation=truncation, padding=None).engine
    return engine


def template_length(engine: Engine) -> int:
    """Give the number of tokens that the post-processor puts around a single text."""
    return sum(token_id is not None for token_id in engine.single_template)


def check_truncation(truncation: Truncation, added_tokens: int) -> None:
    """Refuse a truncation without room for the tokens around each document: it would cut nothing and say nothing.

    For what a job asks for. A file that was made so does what the oracle does: it cuts nothing.
    """
    room = truncation.max_length - added_tokens
    if room < 0:
        raise ConfigError(
            f"truncation leaves {truncation.max_length} tokens, and {added_tokens} are put around each document",
            where="tokenizer.truncation.max_length",
        )
    if 0 < truncation.stride >= room:
        raise ConfigError(
            f"a stride of {truncation.stride} tokens, while {room} are left for the text beside the {added_tokens} "
            "that are put around each document",
            where="tokenizer.truncation.stride",
            hint="make the stride smaller, or max_length larger",
        )


def _in_file(error: EncodeError, first_row: int) -> TokbatchError:
    """Give an error about a row of a batch as one about a row of the file."""
    row = None if error.row is None else first_row + error.row
    where = error.where if row is None else f"row {row}"
    return EncodeError(error.message, row=row, where=where, hint=error.hint, code=error.code)
