"""The crosscheck: the ids of two engines for the same texts, held against each other."""

from __future__ import annotations

import pyarrow as pa

from tokbatch.batch.views import ids_of, list_lengths
from tokbatch.engine.columns import IdColumn
from tokbatch.errors import VerifyError

_SHOWN = 8  # ids to show from the first difference on


def compare_ids(ids: IdColumn, again: IdColumn, rows: pa.Int64Array, name: str, name_again: str) -> None:
    """Raise a `VerifyError` for the first row in which two engines (by name) differ; `rows` are the rows' numbers."""
    if again.failures:
        row, error = again.failures[0]
        raise VerifyError(
            f"the {name} engine encoded a text that the {name_again} engine refuses: {error.message}",
            where=f"row {rows[row].as_py()}",
        )
    if ids_of(ids).equals(ids_of(again)) and list_lengths(ids).equals(list_lengths(again)):
        return
    row = next(row for row in range(ids.rows) if ids.row(row) != again.row(row))
    ours, theirs = ids.row(row), again.row(row)
    same = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    raise VerifyError(
        f"from id {same} on, the {name} engine gives {ours[same : same + _SHOWN]} and the {name_again} engine "
        f"{theirs[same : same + _SHOWN]}",
        where=f"row {rows[row].as_py()}",
        hint="one of the engines is wrong: please report the text and the tokenizer",
    )
