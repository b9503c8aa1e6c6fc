"""Hold a finished output against its manifest and its inputs, from outside, after the job.

Checked are: every part's size, digest, rows and tokens; that parts and inputs fit together row by row; that the inputs
are the ones that were read; the statistics against the parts; and a sample of rows, made anew from the input with the
same tokenizer and settings. What is wrong comes back as lines: all of it, not the first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tokbatch.batch.sampling import in_sample
from tokbatch.batch.transform import Transform
from tokbatch.errors import InputError, TokbatchError, VerifyError, located
from tokbatch.job.config import JobConfig, PackingConfig, read_config
from tokbatch.job.inputs import Input
from tokbatch.job.manifest import documents_of, files_of, read_manifest, read_stats
from tokbatch.job.packing import BOUNDARIES, unpack
from tokbatch.job.parts import tokens_of
from tokbatch.job.prepare import load_tokenizer, read_options, transform_options
from tokbatch.job.schema import fit
from tokbatch.job.sinks import Sink, build_sink
from tokbatch.job.sinks.ids import without_nulls
from tokbatch.job.sources import ReadOptions, RowCursor, Source, open_dataset_once, open_source_again, rows_of
from tokbatch.job.storage import Storage

VERIFY_SAMPLE = 7  # keeps this sample apart from those of the transform
BATCH_BYTES = 8 << 20


@dataclass
class Verification:
    """What was looked at, and what is wrong.

    `quarantined_rows` are null for a reason, under the policy of the job; `skipped` are the inputs it left out.
    `tokens` are ids of documents in the parts, and the dropped ones those that packing left out.
    """

    parts: int = 0
    rows: int = 0
    tokens: int = 0
    dropped_documents: int = 0
    dropped_tokens: int = 0
    sampled_rows: int = 0
    quarantined_rows: int = 0
    skipped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verify_output(folder: Path | str, sample_rate: float = 0.02) -> Verification:
    """Verify an output folder; `sample_rate` is the share of rows that are made anew (1.0: all of them).

    Raises `InputError` where there is no finished output; what is wrong with one is in `problems`.
    """
    folder = Path(folder)
    open_dataset_once.cache_clear()
    manifest = read_manifest(folder)
    quarantine = manifest["quarantine"]
    found = Verification(skipped=[entry["input"] for entry in quarantine["files"]])
    config = read_config(
        {k: v for k, v in manifest["config"].items() if k != "base"},
        base=manifest["config"]["base"],
        where=str(folder / "manifest.json"),
    )
    rows: dict[str, int] = {entry["name"]: 0 for entry in manifest["inputs"]}
    tokens = dict(rows)
    transform = _transform(config, manifest, found) if sample_rate > 0 else None
    sink = build_sink(config.output, manifest["id_type"])
    given_up: dict[str, dict[int, str]] = {}
    for entry in quarantine["rows"]:
        given_up.setdefault(entry["input"], {})[entry["row"]] = entry["reason"]
    packing = config.output.packing
    again = None if transform is None else _Again(transform, sink, read_options(config), packing, given_up)
    inputs = {entry["name"]: entry for entry in manifest["inputs"]}
    for (name, *_), group in itertools.groupby(
        manifest["parts"], lambda part: (part["input"], part["units"], part["skip_rows"])
    ):
        parts, whole = list(group), True
        for part in parts:
            found.parts += 1
            whole &= _check_part(folder, part, sink, found)
            if part["first_row"] != rows[name]:
                found.problems.append(f"{part['path']}: starts at row {part['first_row']}, {rows[name]} expected")
            rows[name] = part["first_row"] + documents_of(part)
            tokens[name] += part["tokens"] + part.get("packing", {}).get("dropped_tokens", 0)
        if whole and again is not None and name not in again.named:
            _check_rows(folder, parts, inputs[name], again, sample_rate, found)
    _check_sums(folder, manifest, rows, tokens, found)
    known = {file["path"] for part in manifest["parts"] for file in files_of(part)}
    found.problems += [f"{path}: not in the manifest" for path in Storage(folder).foreign_parts(known)]
    return found


@dataclass
class _Again:
    """What makes rows anew. The input that was opened last stays open: its parts follow each other.

    `given_up` are the rows of the quarantine, by input: they are not tried again, since they may have ended a worker.
    `named` are the inputs that are a problem themselves: they are named once, and not for each of their parts.
    """

    transform: Transform
    sink: Sink
    options: ReadOptions
    packing: PackingConfig | None
    given_up: Mapping[str, Mapping[int, str]]
    opened: tuple[str, Source] | None = None
    named: set[str] = field(default_factory=set)

    def open(self, entry: Mapping[str, Any]) -> Source:
        """Open an input by its entry in the manifest."""
        if self.opened is None or self.opened[0] != entry["name"]:
            values = {field.name: entry[field.name] for field in dataclasses.fields(Input) if field.name in entry}
            source = Input(**{**values, "files": tuple(values.get("files", ()))})
            self.opened = (entry["name"], open_source_again(source, self.options))
        return self.opened[1]


def _transform(config: JobConfig, manifest: Mapping[str, Any], found: Verification) -> Transform | None:
    try:
        tokenizer = load_tokenizer(config)
    except TokbatchError as error:
        found.problems.append(f"the tokenizer cannot be loaded, no row was made anew: {error.message}")
        return None
    if tokenizer.digest != manifest["tokenizer"]["sha256"]:
        found.problems.append("the tokenizer is not the one that the job had, no row was made anew")
        return None
    options = dataclasses.replace(transform_options(config, manifest["id_type"]), round_trip="off", crosscheck=0.0)
    return Transform(options, tokenizer)


def _check_part(folder: Path, part: Mapping[str, Any], sink: Sink, found: Verification) -> bool:
    """Check one part without its input; True where it can be read."""
    checked = [_check_file(folder, file, found) for file in files_of(part)]
    if not all(checked):
        return False
    rows = tokens = 0
    try:
        columns = [sink.id_column, *([BOUNDARIES] if "packing" in part else [])]
        for batch in sink.read_part(_paths(folder, part), columns):
            rows += batch.num_rows
            tokens += tokens_of(batch, sink.id_column)
    except (pa.ArrowException, OSError, ValueError, TokbatchError) as error:
        found.problems.append(f"{part['path']}: cannot be read: {error}")
        return False
    for name, value in (("rows", rows), ("tokens", tokens)):
        if value != part[name]:
            found.problems.append(f"{part['path']}: {value} {name}, the manifest says {part[name]}")
    found.rows += rows
    found.tokens += tokens
    return bool(rows == part["rows"])


def _check_file(folder: Path, file: Mapping[str, Any], found: Verification) -> bool:
    """Hold a file against its digest."""
    digest = hashlib.sha256()
    try:
        with open(folder / file["path"], "rb") as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
    except OSError as error:
        found.problems.append(f"{file['path']}: {error.strerror}")
        return False
    if digest.hexdigest() != file["sha256"]:
        found.problems.append(f"{file['path']}: its sha256 is {digest.hexdigest()}, the manifest says {file['sha256']}")
        return False
    return True


def _paths(folder: Path, part: Mapping[str, Any]) -> list[Path]:
    return [folder / file["path"] for file in files_of(part)]


def _check_rows(
    folder: Path,
    parts: Sequence[Mapping[str, Any]],
    entry: Mapping[str, Any],
    again: _Again,
    sample_rate: float,
    found: Verification,
) -> None:
    """Make a sample of the rows of a shard's parts anew from their input (`entry` of the manifest) and compare."""
    transform, bad = again.transform, dict(again.given_up.get(entry["name"], {}))
    on_bad_row = bad.__setitem__ if transform.options.on_bad_row == "null" else None
    try:
        opened = again.open(entry)
        if opened.digest != entry["sha256"]:
            raise InputError("the input has changed since the job read it", where=entry["name"])
        units = opened.units()[slice(*parts[0]["units"])]
        batches = (batch for part in parts for batch in again.sink.read_part(_paths(folder, part)))
        packed = unpack(batches, again.sink.id_column) if "packing" in parts[0] else None
        reader = _Rows(batches)
        row, stop = parts[0]["shard_rows"]
        columns, begin = transform.input_columns(opened.schema), row - parts[0]["skip_rows"]
        source_batches = opened.batches(units, columns, BATCH_BYTES, begin, on_bad_row)
        for batch in RowCursor(source_batches, begin, begin + rows_of(units)).rows(row, stop):
            numbers = pa.array(range(row, row + batch.num_rows), pa.int64())
            chosen = in_sample(numbers, sample_rate, VERIFY_SAMPLE)
            given_up = {row + i: bad[n] for i, n in enumerate(numbers.filter(chosen).to_pylist()) if n in bad}
            made, _ = transform.transform(_chosen_batch(batch, chosen), row, given_up=given_up)
            if packed is not None:
                problem = _packed_difference(made, numbers.filter(chosen).to_pylist(), packed, again.packing)
                if problem:
                    found.problems.append(f"{parts[0]['path']}: {problem}")
                    return
                found.sampled_rows += made.num_rows
                row += batch.num_rows
                continue
            written = _chosen(reader.take(batch.num_rows), chosen)
            if not again.sink.keeps_nulls:
                made = pa.record_batch([without_nulls(made.column(0))], names=made.schema.names)
            made = fit(made, written.schema)
            if not pa.Table.from_batches([made]).equals(written):
                numbers = numbers.filter(chosen)
                found.problems.append(f"{parts[0]['path']}: {_first_difference(made, written, numbers)}")
                return
            found.sampled_rows += made.num_rows
            row += batch.num_rows
    except TokbatchError as error:
        if isinstance(error, InputError):
            again.named.add(entry["name"])
        found.problems.append(f"{located(error, entry['name']).where}: {error.message}")


def _chosen(rows: pa.Table, chosen: pa.BooleanArray) -> pa.Table:
    """Give some of the rows. Arrow filters no string_view, nor what holds one, but it can slice and join them."""
    try:
        return rows.filter(chosen)
    except pa.ArrowNotImplementedError:
        slices = [rows.slice(index, 1) for index in pc.indices_nonzero(chosen).to_pylist()]
        return pa.concat_tables([rows.slice(0, 0), *slices]).combine_chunks()


def _chosen_batch(batch: pa.RecordBatch, chosen: pa.BooleanArray) -> pa.RecordBatch:
    batches = _chosen(pa.Table.from_batches([batch]), chosen).to_batches()
    return batches[0] if batches else batch.slice(0, 0)


def _packed_difference(
    made: pa.RecordBatch, rows: Sequence[int], packed: Mapping[int, list[int]], config: PackingConfig | None
) -> str | None:
    """Compare documents made anew with those that packed rows hold."""
    for row, ids in zip(rows, made.column(0).to_pylist(), strict=True):
        expected = ids or []
        if config is not None and not config.split and len(expected) > config.length:
            expected = expected[: config.length] if config.too_long == "truncate" else []
        if packed.get(row, []) != expected:
            return f"input row {row}: its pieces are {str(packed.get(row))[:80]}, made anew it is {str(expected)[:80]}"
    return None


def _first_difference(made: pa.RecordBatch, written: pa.Table, numbers: pa.Array) -> str:
    for name in written.schema.names:
        left, right = made.column(name).to_pylist(), written.column(name).to_pylist()
        for index, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b:
                return f'input row {numbers[index]}: "{name}" is {str(b)[:80]}, made anew it is {str(a)[:80]}'
    return "rows made anew have another type"


def _check_sums(
    folder: Path, manifest: Mapping[str, Any], rows: Mapping[str, int], tokens: Mapping[str, int], found: Verification
) -> None:
    for entry in manifest["inputs"]:
        if entry["rows"] != rows[entry["name"]]:
            found.problems.append(f"{entry['name']}: {entry['rows']} rows, its parts have {rows[entry['name']]}")
    files, total = read_stats(folder)
    found.quarantined_rows = total.failed_documents
    found.dropped_documents, found.dropped_tokens = total.dropped_documents, total.dropped_tokens
    named = len(manifest["quarantine"]["rows"])
    if named > total.failed_documents:
        found.problems.append(f"stats.json: {total.failed_documents} documents failed, the quarantine has {named}")
    for name, stats in files:
        for what, value in (("documents", rows.get(name)), ("tokens", tokens.get(name))):
            if getattr(stats, what) != value:
                found.problems.append(f"stats.json: {name}: {getattr(stats, what)} {what}, its parts have {value}")
    if (total.documents, total.tokens) != (sum(rows.values()), sum(tokens.values())):
        found.problems.append("stats.json: the total is not the sum of the parts")


class _Rows:
    """Read parts front to back, any number of rows at a time."""

    def __init__(self, batches: Iterable[pa.RecordBatch]):
        self._batches: Iterator[pa.RecordBatch] = iter(batches)
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def take(self, rows: int) -> pa.Table:
        """Give the next rows."""
        while (self._rows < rows or not self._held) and (batch := next(self._batches, None)) is not None:
            self._held.append(batch.replace_schema_metadata(None))
            self._rows += batch.num_rows
        if not self._held:
            raise VerifyError("the parts have no rows", where="data/")
        held = pa.Table.from_batches(self._held)
        left = held.slice(rows)
        self._held, self._rows = left.to_batches() or self._held[-1:], left.num_rows
        if not left.num_rows:
            self._held = [self._held[-1].slice(0, 0)]
        return held.slice(0, rows)
