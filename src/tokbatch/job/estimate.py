"""How long a job would take and how much disk: a sample of its inputs is encoded, checked and written, into memory.

The sample is some rows from places spread over the corpus, with the job's own engine, settings and sink. It is an
estimate: other files may have other text, other programs may be running. A worker's first megabytes are its slowest, so
the first piece is done twice and measured once. Nothing is written to a disk.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa

from tokbatch.errors import TokbatchError
from tokbatch.job.packing import Packer
from tokbatch.job.prepare import InputFacts, Job
from tokbatch.job.schema import fit
from tokbatch.job.sources import Unit, open_source
from tokbatch.job.storage import FileSystem, HashedFile

PLACES = 16
PIECE_BYTES = 1 << 19
MOST_SECONDS = 4.0
"""No further place is looked at after so long."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample says of the whole job. `input_bytes` are bytes as the plan counts them, `text_bytes` of documents.

    `seconds` is the work of one worker, without its start; `disk_bytes` the parts, `free_bytes` the room where they go.
    """

    seconds: float
    text_bytes: int
    disk_bytes: int
    free_bytes: int
    sample_bytes: int
    sample_seconds: float


def estimate_job(job: Job) -> Estimate | None:
    """Estimate a job; None where there is nothing to measure. Raises `TokbatchError` where that cannot be."""
    pieces = list(_places(job))
    if not pieces:
        return None
    _measure(job, *pieces[0][:3], PIECE_BYTES)
    began = time.monotonic()
    found: list[tuple[int, _Measured]] = []
    for facts, unit, row, places in pieces:
        found.append((places, _measure(job, facts, unit, row, places * PIECE_BYTES)))
        if time.monotonic() - began > MOST_SECONDS:
            break
    total, seen = sum(facts.text_bytes for facts in job.inputs), sum(places for places, _ in found)

    def whole(of: Callable[[_Measured], float]) -> float:
        # A piece stands for its places, however many bytes it turned out to have.
        return sum(of(piece) / max(1, piece.input_bytes) * total * places / seen for places, piece in found)

    return Estimate(
        whole(lambda piece: piece.seconds),
        round(whole(lambda piece: piece.text_bytes)),
        round(whole(lambda piece: piece.disk_bytes)),
        _free(job.config.output_path),
        sum(piece.text_bytes for _, piece in found),
        sum(piece.seconds for _, piece in found),
    )


def _places(job: Job) -> Iterator[tuple[InputFacts, Unit, int, int]]:
    """Give units at even steps through the corpus: the row that each begins with, and how many steps it stands for."""
    total = sum(facts.text_bytes for facts in job.inputs)
    goals = [total * (2 * number + 1) // (2 * PLACES) for number in range(PLACES)]
    done = 0
    for facts in job.inputs:
        row = 0
        for unit in facts.units:
            done, before = done + unit.text_bytes, len(goals)
            while goals and done > goals[0]:
                goals.pop(0)
            if unit.rows and len(goals) < before:
                yield facts, unit, row, before - len(goals)
            row += unit.rows


@dataclass(frozen=True, slots=True)
class _Measured:
    """A piece of the sample: bytes as the plan counts them, of its documents, of what it writes, and its time."""

    input_bytes: int
    text_bytes: int
    disk_bytes: int
    seconds: float


def _measure(job: Job, facts: InputFacts, unit: Unit, row: int, most_bytes: int) -> _Measured:
    """Do the first rows of a unit, of at least so many bytes if it has them."""
    start, rows, text_bytes = time.perf_counter(), 0, 0
    source = open_source(facts.input, job.read_options)
    columns = job.transform.input_columns(source.schema)
    packing = job.config.output.packing
    packer = None if packing is None else Packer(packing, job.schema, job.pad_id)
    files = [HashedFile(Path("sample"), _InMemory()) for _ in job.sink.suffixes]
    writer = job.sink.open_part(files, job.schema, {})
    given_up: dict[int, str] = {}
    on_bad_row = given_up.__setitem__ if job.config.run.on_bad_row == "null" else None
    for batch in source.batches([unit], columns, PIECE_BYTES, row, on_bad_row):
        output, stats = job.transform.transform(batch, row + rows, given_up=given_up)
        written = [fit(output, job.schema)] if packer is None else packer.add(output.column(0), row + rows)
        for each in written:
            writer.write(each)
        rows, text_bytes = rows + batch.num_rows, text_bytes + stats.bytes
        if text_bytes >= most_bytes:
            break
    for each in packer.finish() if packer is not None else ():
        writer.write(each)
    writer.close()
    disk_bytes, seconds = sum(file.size for file in files), time.perf_counter() - start
    return _Measured(unit.text_bytes * rows // unit.rows, text_bytes, disk_bytes, seconds)


class _InMemory(FileSystem):
    """Files that are gone when they are closed."""

    def open(self, path: Path) -> IO[bytes]:
        """See `FileSystem`."""
        return io.BytesIO()

    def sync(self, file: IO[bytes]) -> None:
        """See `FileSystem`."""


def _free(folder: Path) -> int:
    """Give the bytes that are free where a folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def told_estimate(job: Job) -> Estimate | str | None:
    """Estimate a job, or say why that cannot be done."""
    try:
        return estimate_job(job)
    except (TokbatchError, pa.ArrowException, MemoryError) as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
