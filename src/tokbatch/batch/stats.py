"""The statistics of documents: each defined once, by name, unit, meaning and merge; all integers.

The JSON, the Arrow schema, the report and the docs are made from the definitions in `FIELDS`, which are the fields of
`Stats` below. `count.py`, which comes next, makes the numbers from columns. What is not here: durations and throughput,
which are no property of the documents (see the shard's result in `job/`), and ratios, which are made where they are
shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from tokbatch.errors import InputError

FIRST_ROWS = 10
"""How many row numbers are kept of each kind of document."""

Kind = Literal["number", "counts", "counts of counts", "histogram", "rows"]
Merge = Literal["sum", "max", "first"]

_COUNTS = pa.list_(pa.struct([pa.field("name", pa.string(), False), pa.field("count", pa.int64(), False)]))
_ARROW_TYPES: dict[Kind, pa.DataType] = {
    "number": pa.int64(),
    "counts": _COUNTS,
    "counts of counts": pa.list_(pa.struct([pa.field("name", pa.string(), False), pa.field("counts", _COUNTS, False)])),
    "histogram": pa.list_(pa.struct([pa.field("from", pa.int64(), False), pa.field("count", pa.int64(), False)])),
    "rows": pa.list_(pa.int64()),
}


@dataclass(frozen=True, slots=True)
class Field:
    """The definition of a statistic.

    `kind` is the shape of its value: "number"; "counts" (name -> number); "counts of counts" (name -> name -> number);
    "histogram" (lower bound of a bucket -> number: bucket 0 is zero itself, bucket b holds b to 2b - 1); "rows" (the
    first row numbers within the file, ascending). `merge` says how values join: by sum (entry by entry), by the
    larger, or by keeping the first `FIRST_ROWS`.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    merge: Merge

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the statistic's column in `arrow_schema`."""
        return _ARROW_TYPES[self.kind]


def _number(unit: str, meaning: str, merge: Merge = "sum") -> Any:
    return dataclasses.field(default=0, metadata={"kind": "number", "unit": unit, "meaning": meaning, "merge": merge})


def _counts(unit: str, meaning: str, kind: Kind = "counts") -> Any:
    return dataclasses.field(
        default_factory=dict, metadata={"kind": kind, "unit": unit, "meaning": meaning, "merge": "sum"}
    )


def _rows(meaning: str) -> Any:
    return dataclasses.field(default=(), metadata={"kind": "rows", "unit": "row", "meaning": meaning, "merge": "first"})


@dataclass(frozen=True, slots=True)
class Stats:
    """The statistics of some documents: of a batch, a shard, a file, or a corpus."""

    documents: int = _number("document", "rows, null ones too")
    null_documents: int = _number("document", "rows without a text; they get no ids")
    empty_documents: int = _number("document", "texts of no characters")
    failed_documents: int = _number("document", "texts that could not be encoded and have null for ids")
    truncated_documents: int = _number("document", "texts whose ids the tokenizer's truncation cut")
    bytes: int = _number("byte", "UTF-8 of the texts; a text that is not UTF-8 is left out")
    characters: int = _number("character", "code points of the texts; a text that is not UTF-8 is left out")
    tokens: int = _number("token", "ids written, whatever put them there")
    added_tokens: int = _number("token", "ids that the template, `prepend` and `append` put around the texts")
    special_tokens: int = _number(
        "token", "ids of added tokens with `special = true`, put around a text or found in it"
    )
    unknown_tokens: int = _number("token", "ids of the model's unknown token, given by the model or named in a text")
    byte_fallback_tokens: int = _number("token", "ids of the byte-fallback tokens `<0x00>` to `<0xFF>`")
    longest_document_tokens: int = _number("token", "ids of the document with the most of them", "max")
    longest_document_bytes: int = _number("byte", "UTF-8 of the longest text", "max")
    document_lengths: Mapping[int, int] = _counts(
        "document", "encoded documents by the number of their ids, in powers of two", "histogram"
    )
    verified_documents: int = _number(
        "document", "encoded documents whose round trip was checked; truncated ones are not"
    )
    exact_documents: int = _number("document", "checked: the decoded text is the text")
    stripped_documents: int = _number("document", "checked: all that is lost is whitespace that added tokens absorbed")
    normalized_documents: int = _number(
        "document", "checked: the difference is the normalizer's, the pre-tokenizer's or the decoder's doing"
    )
    lossy_documents: int = _number("document", "checked: a loss that no rule explains: unknown tokens, or a fault")
    lossy_first_rows: Sequence[int] = _rows("where the first lossy documents are")
    failed_first_rows: Sequence[int] = _rows("where the first failed documents are")
    truncated_first_rows: Sequence[int] = _rows("where the first truncated documents are")
    lstrip_documents: int = _number("document", "checked: an added token absorbed whitespace to its left")
    lstrip_chars: int = _number("character", "whitespace absorbed to the left of added tokens")
    lstrip_documents_by_token: Mapping[str, int] = _counts("document", "`lstrip_documents` by added token")
    lstrip_documents_by_whitespace: Mapping[str, int] = _counts("document", "`lstrip_documents` by absorbed character")
    lstrip_chars_by_token: Mapping[str, int] = _counts("character", "`lstrip_chars` by added token")
    lstrip_chars_by_whitespace: Mapping[str, int] = _counts("character", "`lstrip_chars` by absorbed character")
    lstrip_chars_by_token_and_whitespace: Mapping[str, Mapping[str, int]] = _counts(
        "character", "`lstrip_chars` by added token, then by absorbed character", "counts of counts"
    )
    lstrip_first_rows: Sequence[int] = _rows("where whitespace was first absorbed to the left")
    rstrip_documents: int = _number("document", "checked: an added token absorbed whitespace to its right")
    rstrip_chars: int = _number("character", "whitespace absorbed to the right of added tokens")
    rstrip_documents_by_token: Mapping[str, int] = _counts("document", "`rstrip_documents` by added token")
    rstrip_documents_by_whitespace: Mapping[str, int] = _counts("document", "`rstrip_documents` by absorbed character")
    rstrip_chars_by_token: Mapping[str, int] = _counts("character", "`rstrip_chars` by added token")
    rstrip_chars_by_whitespace: Mapping[str, int] = _counts("character", "`rstrip_chars` by absorbed character")
    rstrip_chars_by_token_and_whitespace: Mapping[str, Mapping[str, int]] = _counts(
        "character", "`rstrip_chars` by added token, then by absorbed character", "counts of counts"
    )
    rstrip_first_rows: Sequence[int] = _rows("where whitespace was first absorbed to the right")
    crosschecked_documents: int = _number("document", "encoded a second time by another engine, with the same ids")
    packed_rows: int = _number("packed row", "rows of one length that documents were packed into")
    packed_tokens: int = _number("token", "ids of documents in packed rows")
    padding_tokens: int = _number("token", "places of packed rows that no document fills: what packing wastes")
    cut_documents: int = _number("document", "packed: in more pieces than one")
    dropped_documents: int = _number("document", 'packed: in no row, for being longer than one (`too_long = "drop"`)')
    dropped_tokens: int = _number("token", "ids in no row, of dropped documents and of those that packing truncated")

    @property
    def written_tokens(self) -> int:
        """The ids of documents that are in the output: those that were encoded, without those that packing left out."""
        return self.tokens - self.dropped_tokens

    def merge(self, other: Stats) -> Stats:
        """Give the statistics of the documents of both, which are documents of the same file.

        The order of merging does not matter. Row numbers count within a file: for several files, see `total`.
        """
        return Stats(
            **{field.name: _merged(field, getattr(self, field.name), getattr(other, field.name)) for field in FIELDS}
        )

    @classmethod
    def total(cls, of_files: Iterable[Stats]) -> Stats:
        """Merge the statistics of several files. Row numbers mean nothing beyond their file, so those go."""
        merged = cls()
        for stats in of_files:
            merged = merged.merge(stats)
        no_rows: dict[str, Any] = {field.name: () for field in FIELDS if field.kind == "rows"}
        return dataclasses.replace(merged, **no_rows)

    def to_json(self) -> dict[str, Any]:
        """Give plain data for JSON: names sorted within each statistic, histogram bounds as strings."""
        return {field.name: _to_plain(getattr(self, field.name)) for field in FIELDS}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Stats:
        """Read what `to_json` gave: ``Stats.from_json(stats.to_json()) == stats``.

        A statistic that is missing, unknown or not made of integers is an `InputError`.
        """
        names = [field.name for field in FIELDS]
        wrong = [name for name in names if name not in data] + [name for name in data if name not in names]
        if wrong:
            raise InputError(
                f"no statistics of this version: {', '.join(map(repr, wrong))} missing or unknown",
                hint="the record was written by another version of tokbatch; use that one, or run the job again",
            )
        return cls(**{field.name: _from_plain(field, data[field.name]) for field in FIELDS})


FIELDS: tuple[Field, ...] = tuple(Field(name=f.name, **f.metadata) for f in dataclasses.fields(Stats))
"""The definitions, in the order in which people should see them."""


def whitespace_name(character: str) -> str:
    """Give the name that a whitespace character has in the statistics: ``"U+00A0"``."""
    return f"U+{ord(character):04X}"


def arrow_schema() -> pa.Schema:
    """Give the schema of `to_table` without the column `file`; a field's metadata hold its unit and its meaning."""
    fields = []
    for field in FIELDS:
        metadata = {"unit": field.unit, "meaning": field.meaning, "merge": field.merge}
        fields.append(pa.field(field.name, field.arrow_type, False, metadata))
    return pa.schema(fields)


def to_table(files: Sequence[str], stats: Sequence[Stats]) -> pa.Table:
    """Give a row a file, in the given order: the column `file`, then a column a statistic."""
    schema = pa.schema([pa.field("file", pa.string(), False), *arrow_schema()])
    columns = [pa.array(files, pa.string())]
    for field in FIELDS:
        columns.append(pa.array([_to_arrow(field, getattr(record, field.name)) for record in stats], field.arrow_type))
    return pa.Table.from_arrays(columns, schema=schema)


def _merged(field: Field, left: Any, right: Any) -> Any:
    if field.merge == "max":
        return max(left, right)
    if field.merge == "first":
        return tuple(sorted({*left, *right})[:FIRST_ROWS])
    return _sum(left, right)


def _sum(left: Any, right: Any) -> Any:
    """Add numbers, or mappings entry by entry; a mapping comes out sorted."""
    if not isinstance(left, Mapping):
        return left + right
    if not left or not right:  # nearly always: most counts are of what is rare
        return left or right
    both = {key: _sum(left[key], right[key]) for key in left.keys() & right.keys()}
    return dict(sorted({**left, **right, **both}.items()))


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_plain(value[key]) for key in sorted(value)}
    return value if isinstance(value, int) else list(value)


def _from_plain(field: Field, value: Any) -> Any:
    """Check the shape of a value against its definition and undo `_to_plain`."""
    try:
        if field.kind == "number":
            return _integer(value)
        if field.kind == "rows":
            return tuple(_integer(row) for row in value)
        if field.kind == "histogram":
            return {int(bound): _integer(count) for bound, count in value.items()}
        if field.kind == "counts":
            return {name: _integer(count) for name, count in value.items()}
        return {name: {inner: _integer(n) for inner, n in counts.items()} for name, counts in value.items()}
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"{field.kind} expected, found {value!r}", where=field.name) from None


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _to_arrow(field: Field, value: Any) -> Any:
    if field.kind == "histogram":
        return [{"from": bound, "count": value[bound]} for bound in sorted(value)]
    if field.kind == "counts":
        return _name_counts(value)
    if field.kind == "counts of counts":
        return [{"name": name, "counts": _name_counts(value[name])} for name in sorted(value)]
    return value


def _name_counts(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "count": counts[name]} for name in sorted(counts)]
