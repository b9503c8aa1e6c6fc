"""Where the statistics of texts and ids come from: counted in whole columns, never row by row in Python.

What an id is (special, unknown, byte fallback) is decided by the id alone, with the engine's facts: `special_ids`,
`unk_id` and `byte_token_ids`. So `<unk>` named in a text counts as unknown, as it would for whoever reads the ids.
The statistics of the round trip come from `round_trip.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.stats import Stats
from tokbatch.batch.views import ids_of, large_strings, list_lengths
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import Engine

_SPECIAL, _UNKNOWN, _BYTE = 1, 2, 4
_LARGEST_TABLE = 2**24


class IdClasses:
    """What kinds an id belongs to, as a table by id: made once for an engine."""

    def __init__(self, engine: Engine):
        kinds = dict.fromkeys(engine.special_ids | engine.byte_token_ids, 0)
        for id_ in engine.special_ids:
            kinds[id_] |= _SPECIAL
        for id_ in engine.byte_token_ids:
            kinds[id_] |= _BYTE
        if engine.unk_id is not None:
            kinds[engine.unk_id] = kinds.get(engine.unk_id, 0) | _UNKNOWN
        self._kinds = kinds
        self._table: pa.UInt8Array | None = None
        if engine.max_id < _LARGEST_TABLE:
            table = bytearray(engine.max_id + 1)
            for id_, kind in kinds.items():
                if id_ <= engine.max_id:
                    table[id_] = kind
            self._table = pa.Array.from_buffers(pa.uint8(), len(table), [None, pa.py_buffer(bytes(table))])

    def count(self, ids: pa.Int32Array) -> dict[int, int]:
        """Give, for each combination of kinds that occurs, how many ids are of it."""
        if self._table is not None and (pc.max(ids).as_py() or 0) < len(self._table):
            found = self._table.take(ids)
            return {entry["values"]: entry["counts"] for entry in found.value_counts().to_pylist()}
        # Ids far apart, or none of the engine's: no real tokenizer has such, and a table by id would be too large.
        counts: dict[int, int] = {}
        of_kind = pa.array(list(self._kinds), pa.int32())
        for entry in ids.filter(pc.is_in(ids, of_kind)).value_counts().to_pylist():
            kind = self._kinds[entry["values"]]
            counts[kind] = counts.get(kind, 0) + entry["counts"]
        return counts


def count_texts(texts: TextColumn) -> Stats:
    """Count the texts of a column: all but `documents`, which has the null ones too."""
    strings = large_strings(texts)
    lengths = pc.binary_length(strings)
    return Stats(
        empty_documents=_sum(pc.equal(lengths, 0)),
        bytes=_sum(lengths),
        characters=_sum(pc.utf8_length(strings)),
        longest_document_bytes=pc.max(lengths).as_py() or 0,
    )


def count_ids(ids: IdColumn, classes: IdClasses, added_tokens: int) -> Stats:
    """Count the ids of a column, of which `added_tokens` in each row were put around the text."""
    kinds = classes.count(ids_of(ids))
    lengths = list_lengths(ids)
    histogram: dict[int, int] = {}
    for entry in lengths.value_counts().to_pylist():
        bound = 1 << entry["values"].bit_length() >> 1
        histogram[bound] = histogram.get(bound, 0) + entry["counts"]
    return Stats(
        tokens=_sum(lengths),
        added_tokens=added_tokens * ids.rows,
        special_tokens=sum(count for kind, count in kinds.items() if kind & _SPECIAL),
        unknown_tokens=sum(count for kind, count in kinds.items() if kind & _UNKNOWN),
        byte_fallback_tokens=sum(count for kind, count in kinds.items() if kind & _BYTE),
        longest_document_tokens=pc.max(lengths).as_py() or 0,
        document_lengths=dict(sorted(histogram.items())),
    )


def _sum(values: pa.Array) -> int:
    total: int = pc.sum(values).as_py() or 0
    return total
