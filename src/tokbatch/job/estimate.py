"""How long a job would take and how much disk: a sample of its inputs is encoded, checked and written, into memory.

The sample is some rows from places spread over the corpus, with the job's own engine, settings and sink. It is an
estimate: other files may have other text, other programs may be running. A worker's first megabytes are its slowest, so
the first piece is done twice and measured once. Nothing is written to a disk.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterator
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

PLACES = 8
PIECE_BYTES = 1 << 20
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
    measured = _Measured(job)
    measured.add(*pieces[0][:3], PIECE_BYTES)
    measured = _Measured(job)
    began = time.monotonic()
    for piece in pieces:
        measured.add(*piece)
        if time.monotonic() - began > MOST_SECONDS:
            break
    if not measured.input_bytes:
        return None
    scale = sum(facts.text_bytes for facts in job.inputs) / measured.input_bytes
    return Estimate(
        measured.seconds * scale,
        round(measured.text_bytes * scale),
        round(measured.disk_bytes * scale),
        _free(job.config.output_path),
        measured.text_bytes,
        measured.seconds,
    )


def _places(job: Job) -> Iterator[tuple[InputFacts, Unit, int, int]]:
    """Give units at even steps through the corpus: the row that each begins with, and how many bytes to take of it."""
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
                yield facts, unit, row, PIECE_BYTES * (before - len(goals))
            row += unit.rows


class _Measured:
    """What has been done of the sample."""

    def __init__(self, job: Job):
        self._job = job
        self.seconds = 0.0
        self.input_bytes = self.text_bytes = self.disk_bytes = 0

    def add(self, facts: InputFacts, unit: Unit, row: int, most_bytes: int) -> None:
        """Do the first rows of a unit, of at least so many bytes if it has them."""
        job, config = self._job, self._job.config
        start, rows, text_bytes = time.perf_counter(), 0, 0
        source = open_source(facts.input, job.read_options)
        columns = job.transform.input_columns(source.schema)
        packing = config.output.packing
        packer = None if packing is None else Packer(packing, job.schema, job.pad_id)
        files = [HashedFile(Path("sample"), _InMemory()) for _ in job.sink.suffixes]
        writer = job.sink.open_part(files, job.schema, {})
        given_up: dict[int, str] = {}
        on_bad_row = given_up.__setitem__ if config.run.on_bad_row == "null" else None
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
        self.seconds += time.perf_counter() - start
        self.input_bytes += unit.text_bytes * rows // unit.rows
        self.text_bytes += text_bytes
        self.disk_bytes += sum(file.size for file in files)


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
