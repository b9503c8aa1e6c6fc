"""The round trip of a batch: the engine's verification as an Arrow column, and as statistics.

What the verdicts mean and how they are found is the engine's business (`engine/protocol.py`, `Verification`).
"""

from __future__ import annotations

import array
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.arrow import Nulls
from tokbatch.batch.stats import FIRST_ROWS, Stats, whitespace_name
from tokbatch.engine.protocol import VERDICTS, Absorbed, Verification

VERIFICATION_TYPE = pa.struct(
    [
        pa.field("verdict", pa.string()),
        pa.field("lstrip_chars", pa.int64()),
        pa.field("rstrip_chars", pa.int64()),
        pa.field("unk_tokens", pa.int64()),
    ]
)
"""The type of `verification_array`: a verdict of `VERDICTS`, and counts of characters and tokens."""
_FIELDS = list(VERIFICATION_TYPE)
_OFTEN = 4096


def verification_array(verification: Verification, nulls: Nulls = None) -> pa.StructArray:
    """Give a struct a row, of `VERIFICATION_TYPE`, and null where `nulls` is true.

    With `nulls`, the verification has an entry for each row of it, in order, those without a text included.
    """
    children = [
        _names_of(verification.verdicts),
        _numbers(verification.lstrip_chars),
        _numbers(verification.rstrip_chars),
        _numbers(verification.unk_tokens),
    ]
    if nulls is not None:  # also in the fields, for who takes one without the struct's own nulls
        children = [pc.if_else(nulls, pa.scalar(None, child.type), child) for child in children]
    if nulls is None:
        return pa.Array.from_buffers(VERIFICATION_TYPE, len(verification.verdicts), [None], children=children)
    return pa.StructArray.from_arrays(children, fields=_FIELDS, mask=nulls)


def _names_of(verdicts: array.array[int]) -> pa.StringArray:
    numbers, count = verdicts.tobytes(), len(verdicts)
    if count <= _OFTEN and numbers.count(numbers[:1]) == count:
        return _same_names(verdicts[0]).slice(0, count) if count else _verdict_names().slice(0, 0)
    return _verdict_names().take(_numbers(verdicts, pa.int8()))


@cache
def _same_names(verdict: int) -> pa.StringArray:
    """Give a name often: most batches have one verdict, and a view of these costs a tenth of making them."""
    return pa.array([VERDICTS[verdict]] * _OFTEN)


@cache
def _verdict_names() -> pa.StringArray:
    return pa.array(VERDICTS)  # not at import: the first `pa.array` imports pandas, where that is


def count_verification(verification: Verification, rows: pa.Int64Array) -> Stats:
    """Count a verification whose entries belong to these row numbers of the file."""
    verdicts = _numbers(verification.verdicts, pa.int8())
    counts = {entry["values"]: entry["counts"] for entry in verdicts.value_counts().to_pylist()}
    lossy = pc.equal(verdicts, VERDICTS.index("lossy"))
    to_the_left = pc.greater(_numbers(verification.lstrip_chars), 0)
    to_the_right = pc.greater(_numbers(verification.rstrip_chars), 0)
    absorbed = verification.absorbed
    return Stats(
        verified_documents=len(verdicts),
        exact_documents=counts.get(VERDICTS.index("exact"), 0),
        stripped_documents=counts.get(VERDICTS.index("stripped"), 0),
        normalized_documents=counts.get(VERDICTS.index("normalized"), 0),
        lossy_documents=counts.get(VERDICTS.index("lossy"), 0),
        lossy_first_rows=first_rows(rows, lossy),
        lstrip_documents=pc.sum(to_the_left).as_py() or 0,
        lstrip_chars=sum(verification.lstrip_chars),
        lstrip_documents_by_token=_documents_by_token(absorbed, "lstrip"),
        lstrip_documents_by_whitespace=_documents_by_whitespace(absorbed, "lstrip"),
        lstrip_chars_by_token=_chars_by_token(absorbed, "lstrip"),
        lstrip_chars_by_whitespace=_chars_by_whitespace(absorbed, "lstrip"),
        lstrip_chars_by_token_and_whitespace=_chars_by_token_and_whitespace(absorbed, "lstrip"),
        lstrip_first_rows=first_rows(rows, to_the_left),
        rstrip_documents=pc.sum(to_the_right).as_py() or 0,
        rstrip_chars=sum(verification.rstrip_chars),
        rstrip_documents_by_token=_documents_by_token(absorbed, "rstrip"),
        rstrip_documents_by_whitespace=_documents_by_whitespace(absorbed, "rstrip"),
        rstrip_chars_by_token=_chars_by_token(absorbed, "rstrip"),
        rstrip_chars_by_whitespace=_chars_by_whitespace(absorbed, "rstrip"),
        rstrip_chars_by_token_and_whitespace=_chars_by_token_and_whitespace(absorbed, "rstrip"),
        rstrip_first_rows=first_rows(rows, to_the_right),
    )


def first_rows(rows: pa.Int64Array, chosen: pa.BooleanArray) -> tuple[int, ...]:
    """Give the first of the row numbers (ascending) where `chosen` is true."""
    return tuple(rows.filter(chosen).slice(0, FIRST_ROWS).to_pylist())


def _numbers(values: array.array[int], kind: pa.DataType | None = None) -> pa.Array:
    return pa.Array.from_buffers(kind or pa.int64(), len(values), [None, pa.py_buffer(values)])


def _documents_by_token(absorbed: Absorbed, side: str) -> dict[str, int]:
    return {token: count for (side_, token), count in absorbed.documents.items() if side_ == side}


def _documents_by_whitespace(absorbed: Absorbed, side: str) -> dict[str, int]:
    return {
        whitespace_name(character): count
        for (side_, character), count in absorbed.documents_by_whitespace.items()
        if side_ == side
    }


def _chars_by_token_and_whitespace(absorbed: Absorbed, side: str) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (side_, token, character), count in absorbed.counts.items():
        if side_ == side:
            nested.setdefault(token, {})[whitespace_name(character)] = count
    return nested


def _chars_by_token(absorbed: Absorbed, side: str) -> dict[str, int]:
    nested = _chars_by_token_and_whitespace(absorbed, side)
    return {token: sum(by_whitespace.values()) for token, by_whitespace in nested.items()}


def _chars_by_whitespace(absorbed: Absorbed, side: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for by_whitespace in _chars_by_token_and_whitespace(absorbed, side).values():
        for name, count in by_whitespace.items():
            counts[name] = counts.get(name, 0) + count
    return counts
