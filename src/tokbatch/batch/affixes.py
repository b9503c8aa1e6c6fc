"""Tokens put around the ids of each document: `prepend`, `append`, and other tokens in the template's place.

A token is the same for all rows, or stands in a column (the language of a translation, say). The choice is checked
against vocabulary and template when the transform is built, so that a BOS or EOS is never there twice and never
missing in silence; what stands in a column is checked row by row.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.arrow import string_array, text_column
from tokbatch.batch.token_source import FromColumn, TokenSource
from tokbatch.batch.views import buffer_of, int64s, offsets_of, wide_offsets
from tokbatch.engine.columns import IdColumn
from tokbatch.engine.protocol import Engine
from tokbatch.errors import ConfigError

Affix = int | FromColumn
TOKENS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Affixes:
    """What goes before and after the ids that the engine gives.

    `with_template` says whether the engine applies the template itself; where tokens of the template are replaced,
    it does not, and the template is among the affixes.
    """

    before: tuple[Affix, ...]
    after: tuple[Affix, ...]
    with_template: bool

    @property
    def count(self) -> int:
        """Number of ids put around each document, beside those of the engine."""
        return len(self.before) + len(self.after)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that affixes come from, each once."""
        return tuple(dict.fromkeys(a.column for a in (*self.before, *self.after) if isinstance(a, FromColumn)))

    @property
    def largest_id(self) -> int:
        """The largest id among those known in advance; -1 where there are none."""
        return max((affix for affix in (*self.before, *self.after) if isinstance(affix, int)), default=-1)


def tokens_to_choose(engine: Engine, wanted: str) -> str:
    """Say which special tokens there are, those that look like the wanted one first."""
    tokens = [token for i in sorted(engine.special_ids) if (token := engine.id_to_token(i)) is not None]
    near = difflib.get_close_matches(wanted, tokens, TOKENS_SHOWN, 0.5)
    shown = list(dict.fromkeys([*near, *tokens]))
    if not shown:
        return "the tokenizer has no special tokens"
    more = f" and {len(shown) - TOKENS_SHOWN:,} more" if len(shown) > TOKENS_SHOWN else ""
    return f"its special tokens are {', '.join(map(repr, shown[:TOKENS_SHOWN]))}{more}"


def build_affixes(
    engine: Engine,
    add_special_tokens: bool,
    prepend: Sequence[TokenSource],
    append: Sequence[TokenSource],
    template: Mapping[str, TokenSource],
) -> Affixes:
    """Check the tokens of a job's options against vocabulary and template. Raises `ConfigError` with all problems."""
    problems: list[str] = []
    hints: list[str] = []
    in_template = engine.single_template if add_special_tokens else (None,)
    replaced: dict[int, Affix] = {}

    def affix(source: TokenSource, where: str) -> Affix:
        if isinstance(source, FromColumn):
            return source
        token_id = engine.token_to_id(source)
        if token_id is None:
            problems.append(f"{where}: {source!r} is not in the vocabulary")
            if not hints:
                hints.append(tokens_to_choose(engine, source))
            return -1
        return token_id

    for token, source in template.items():
        token_id = engine.token_to_id(token)
        if token_id is None or token_id not in in_template:
            problems.append(f"template.{token}: the tokenizer's template has no token {token!r}")
        else:
            replaced[token_id] = affix(source, f"template.{token}")
    if template and in_template.count(None) != 1:
        problems.append("template: the tokenizer's template does not have the text in exactly one place")
    around = [replaced.get(id_, id_) if id_ is not None else None for id_ in in_template]
    before: list[Affix] = []
    after: list[Affix] = []
    for name, sources, affixes in (("prepend", prepend, before), ("append", append, after)):
        for index, source in enumerate(sources):
            found = affix(source, f"{name}.{index}")
            if found in around and found != -1:
                problems.append(f"{name}.{index}: the tokenizer's template already adds {source!r}")
            affixes.append(found)
    if problems:
        if "already adds" in " ".join(problems):
            hints.append("add_special_tokens = false leaves the template out")
        raise ConfigError("; ".join(problems), problems=problems, hint="; ".join(hints) or None)
    if not template:
        return Affixes(tuple(before), tuple(after), add_special_tokens)
    place = around.index(None)
    return Affixes(
        (*before, *(a for a in around[:place] if a is not None)),
        (*(a for a in around[place + 1 :] if a is not None), *after),
        with_template=False,
    )


def put_around(ids: IdColumn, affixes: Affixes, from_columns: Mapping[str, pa.Int32Array]) -> IdColumn:
    """Give the ids with the affixes around each row; `from_columns` has the ids of each column, a row each.

    One copy of the ids, made by joining the rows as byte strings.
    """
    if not affixes.count:
        return ids
    offsets = pc.multiply(wide_offsets(ids), 4)
    rows = pa.Array.from_buffers(pa.large_binary(), ids.rows, [None, offsets.buffers()[1], pa.py_buffer(ids.ids)])

    def value(affix: Affix) -> pa.Scalar | pa.Array:
        if isinstance(affix, FromColumn):
            buffer = pa.py_buffer(buffer_of(from_columns[affix.column], 4))
            return pa.Array.from_buffers(pa.binary(4), ids.rows, [None, buffer]).cast(pa.large_binary())
        return pa.scalar(affix.to_bytes(4, "little"), pa.large_binary())

    separator = pa.scalar(b"", pa.large_binary())
    joined = pc.binary_join_element_wise(*map(value, affixes.before), rows, *map(value, affixes.after), separator)
    list_offsets = pc.divide(int64s(offsets_of(joined), ids.rows + 1), 4)
    return IdColumn(memoryview(joined.buffers()[2] or b""), buffer_of(list_offsets, 8), ids.rows)


def ids_in_column(
    values: pa.Array, column: str, rows: pa.Int64Array, engine: Engine
) -> tuple[pa.Int32Array, pa.BooleanArray]:
    """Give the ids of the tokens that some rows of a column name, and which of those rows name none (they get 0)."""
    read = text_column(values, f"column {column!r}", keep_going=True)
    names = string_array(read.texts, read.nulls).take(rows).dictionary_encode()
    known = [engine.token_to_id(token) for token in names.dictionary.to_pylist()]
    ids = pa.array(known, pa.int32()).take(names.indices)
    return pc.fill_null(ids, 0), pc.is_null(ids)
