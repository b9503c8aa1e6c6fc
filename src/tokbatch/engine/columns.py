"""Columns of texts and of ids as flat buffers: what goes into an engine and what comes out, without Arrow.

`batch/arrow.py` turns Arrow arrays into these and back, without copying. Nulls stay on that side: here every row
has a value.
"""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tokbatch.errors import DecodeError, EncodeError, TokbatchError

Buffer = bytes | bytearray | memoryview | array.array  # type: ignore[type-arg]


def offsets_view(list_offsets: Buffer) -> memoryview:
    """See list offsets as numbers: those of a buffer whose items are int32 ("i") as such, all others as int64."""
    view = memoryview(list_offsets)
    return view if view.format in ("i", "q") else view.cast("B").cast("q")


@dataclass(frozen=True, slots=True)
class TextColumn:
    """`rows` texts in UTF-8: row i is `data[list_offsets[i]:list_offsets[i + 1]]` (bytes; see `offsets_view`)."""

    data: Buffer
    list_offsets: Buffer
    rows: int

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> TextColumn:
        """Lay texts end to end. A lone surrogate is an `EncodeError` with its row."""
        data, list_offsets = bytearray(), array.array("q", [0])
        for row, text in enumerate(texts):
            try:
                data += text.encode()
            except UnicodeEncodeError as error:
                raise EncodeError(
                    f"a lone surrogate U+{ord(text[error.start]):04X} at character {error.start} is no text",
                    where=f"row {row}",
                    row=row,
                ) from None
            list_offsets.append(len(data))
        return cls(bytes(data), list_offsets, len(list_offsets) - 1)

    def __iter__(self) -> Iterator[str]:
        for row in range(self.rows):
            yield self.text(row)

    def text(self, row: int) -> str:
        """Give the text of a row. Bytes that are not UTF-8 are an `EncodeError` with the row."""
        offsets = offsets_view(self.list_offsets)
        raw = bytes(memoryview(self.data)[offsets[row] : offsets[row + 1]])
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise EncodeError(
                f"byte {error.start} of the text (0x{raw[error.start]:02X}) is not UTF-8", where=f"row {row}", row=row
            ) from None


def int32_ids(ids: Sequence[int] | array.array[int], row: int) -> array.array[int]:
    """Give the ids of a row as they lie in an `IdColumn`. An id beyond 31 bits is an `EncodeError` with the row."""
    try:
        return array.array("i", ids)
    except OverflowError:
        too_large = next(token_id for token_id in ids if not -(2**31) <= token_id < 2**31)
        raise EncodeError(f"id {too_large} does not fit int32", where=f"row {row}", row=row) from None


@dataclass(frozen=True, slots=True)
class IdColumn:
    """`rows` lists of token ids: row i is `ids[list_offsets[i]:list_offsets[i + 1]]` (int32 ids; see `offsets_view`).

    `failures` has (row, error) for the rows that could not be encoded, where the caller asked to go on past them;
    their lists are empty. `truncated_rows` are the rows (ascending) whose ids the tokenizer's truncation cut. With
    `are_checked` a negative id stands for one that no column holds; without, nobody has looked for such yet, and
    the engine that gets the column refuses it.
    """

    ids: Buffer
    list_offsets: Buffer
    rows: int
    failures: list[tuple[int, TokbatchError]] = field(default_factory=list)
    truncated_rows: Sequence[int] = ()
    are_checked: bool = True

    @classmethod
    def from_lists(cls, lists: Iterable[Sequence[int] | array.array[int]]) -> IdColumn:
        """Lay lists of ids end to end. An id beyond 31 bits is an `EncodeError` with its row."""
        ids, list_offsets = array.array("i"), array.array("q", [0])
        for row, row_ids in enumerate(lists):
            ids.extend(int32_ids(row_ids, row))
            list_offsets.append(len(ids))
        return cls(ids, list_offsets, len(list_offsets) - 1)

    def __iter__(self) -> Iterator[list[int]]:
        for row in range(self.rows):
            yield self.row(row)

    def refuse_negative_ids(self) -> None:
        """Raise a `DecodeError` for a negative id, where nobody has looked for one yet."""
        ids = memoryview(self.ids).cast("B").cast("i")
        least = 0 if self.are_checked else min(ids, default=0)
        if least < 0:
            raise DecodeError(f"{least} is no id: ids are not negative", where="ids")

    def row(self, row: int) -> list[int]:
        """Give the ids of a row."""
        offsets = offsets_view(self.list_offsets)
        ids = memoryview(self.ids).cast("B").cast("i")
        return ids[offsets[row] : offsets[row + 1]].tolist()
