"""Where the statistics of texts and ids come from: counted in whole columns, never row by row in Python.

What an id is (special, unknown, byte fallback) is decided by the id alone, with the engine's facts: `special_ids`,
`unk_id` and `byte_token_ids`. So `<unk>` named in a text counts as unknown, as it would for whoever reads the ids.
The statistics of the round trip come from `round_trip.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.stats import Stats
from tokbatch.batch.views import ids_of, list_lengths, strings_of
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import Engine

_SPECIAL, _UNKNOWN, _BYTE = 1, 2, 4
_LARGEST_TABLE = 2**24


class IdClasses:
    """What classes an id belongs to, as a table by id: made once for an engine."""

    def __init__(self, engine: Engine):
        unknown = frozenset() if engine.unk_id is None else frozenset({engine.unk_id})
        self._members = {_SPECIAL: engine.special_ids, _UNKNOWN: unknown, _BYTE: engine.byte_token_ids}
        table = bytearray(min(engine.max_id + 1, _LARGEST_TABLE))
        for class_, ids in self._members.items():
            for token_id in ids:
                if token_id < len(table):
                    table[token_id] |= class_
        self._table = pa.Array.from_buffers(pa.uint8(), len(table), [None, pa.py_buffer(bytes(table))])

    def count(self, ids: pa.Int32Array) -> dict[int, int]:
        """Give the number of ids in each class, at some 5 ns an id; `value_counts` and `is_in` cost four times that."""
        if (pc.max(ids).as_py() or 0) >= len(self._table):
            # Ids that are far apart, as in no real tokenizer: a table would be too large.
            return {class_: _sum(pc.is_in(ids, pa.array(of, pa.int32()))) for class_, of in self._members.items()}
        classes = pc.take(self._table, ids, boundscheck=False)
        return {
            class_: _sum(pc.bit_wise_and(classes, pa.scalar(class_, pa.uint8()))) // class_ if of else 0
            for class_, of in self._members.items()
        }


def count_texts(texts: TextColumn) -> Stats:
    """Count the texts of a column: all but `documents`, which has the null ones too."""
    strings = strings_of(texts)
    lengths = pc.binary_length(strings)
    return Stats(
        empty_documents=_sum(pc.equal(lengths, 0)),
        bytes=_sum(lengths),
        characters=_sum(pc.utf8_length(strings)),
        longest_document_bytes=pc.max(lengths).as_py() or 0,
    )


def count_ids(ids: IdColumn, classes: IdClasses, added_tokens: int) -> Stats:
    """Count the ids of a column, of which `added_tokens` in each row were put around the text."""
    in_class = classes.count(ids_of(ids))
    lengths = list_lengths(ids)
    histogram: dict[int, int] = {}
    for entry in lengths.value_counts().to_pylist():
        bound = 1 << entry["values"].bit_length() >> 1
        histogram[bound] = histogram.get(bound, 0) + entry["counts"]
    return Stats(
        tokens=_sum(lengths),
        added_tokens=added_tokens * ids.rows,
        special_tokens=in_class[_SPECIAL],
        unknown_tokens=in_class[_UNKNOWN],
        byte_fallback_tokens=in_class[_BYTE],
        longest_document_tokens=pc.max(lengths).as_py() or 0,
        document_lengths=dict(sorted(histogram.items())),
    )


def _sum(values: pa.Array) -> int:
    total: int = pc.sum(values).as_py() or 0
    return total
