"""A worker: a process that makes one shard after another into parts.

`work` is what the process runs. Over its pipe come `Task`s (None: no more); back go tuples:

    ("ready",)                      the tokenizer is loaded
    ("progress", rows)              rows of the current task that are done
    ("done", ShardResult)           the parts are whole, on the disk, under their partial names
    ("failed", error)               the error as plain data (`TokbatchError.to_dict`)

A worker gives nothing a final name (see `storage.py`), and it ends when its parent does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokbatch.batch.stats import Stats
from tokbatch.batch.transform import Transform
from tokbatch.errors import EncodeError, InputError, OutputError, TokbatchError, VerifyError, WorkerError, located
from tokbatch.job.config import PackingConfig
from tokbatch.job.files import Stamp, stamp_of
from tokbatch.job.inputs import Input
from tokbatch.job.memory import end_beyond, give_back_large_blocks, peak_memory
from tokbatch.job.packing import Packer, PackingCounts
from tokbatch.job.parts import PartsWriter, WrittenPart
from tokbatch.job.plan import Shard
from tokbatch.job.reading import RowReader
from tokbatch.job.schema import fit
from tokbatch.job.sinks import Sink
from tokbatch.job.sources import ReadOptions, Unit, changed, open_source_again, written_to
from tokbatch.job.storage import FileSystem, Storage, output_error

FAILURES_KEPT = 1000
"""How many failed rows of a shard are named; all of them are counted."""


@dataclass(frozen=True)
class WorkerSetup:
    """What all shards of a job have in common; sent to a worker once, when it starts.

    `tables` is a folder with the engine's tables, where the cache has them not.
    """

    transform: Transform
    folder: Path
    schema: pa.Schema
    sink: Sink
    packing: PackingConfig | None
    pad_id: int
    read_options: ReadOptions
    batch_bytes: int
    max_part_bytes: int
    fail_on_lossy: bool
    part_metadata: dict[str, str]
    file_system: FileSystem
    tables: Path | None = None
    memory_limit: int = 0


@dataclass(frozen=True)
class Task:
    """One shard to do, or with `rows` (first, last + 1; of the file) a probe of some of its rows (see `suspects.py`).

    `input_digest` and `input_stamp` are what the plan saw: others mean that the input has changed. `given_up` are rows
    that get null without being tried, with the reasons. `partial` is what the names of its partial files begin with.
    """

    shard: Shard
    input: Input
    input_size: int
    input_digest: str
    units: tuple[Unit, ...]
    partial: str
    input_stamp: Stamp | None = None
    given_up: Mapping[int, str] = field(default_factory=dict)
    rows: tuple[int, int] | None = None


@dataclass(frozen=True)
class ShardResult:
    """What came out of one shard. `run` is no statistic: it says something about the run, not the documents.

    `failures` are the first rows that have null for a reason, with the reasons; the statistics have their number.
    """

    shard: Shard
    parts: tuple[WrittenPart, ...]
    stats: Stats
    run: Mapping[str, Any]
    failures: tuple[tuple[int, str], ...] = ()
    packing: PackingCounts | None = None


def work(connection: Any, pickled_setup: bytes) -> None:
    """Run a worker process until there are no more tasks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides.
    _end_with_parent()
    pa.set_cpu_count(1)
    give_back_large_blocks()
    try:
        from multiprocess.reduction import ForkingPickler

        setup: WorkerSetup = ForkingPickler.loads(pickled_setup)
        storage = Storage(setup.folder, setup.file_system)
        if setup.memory_limit:
            end_beyond(setup.memory_limit)
        connection.send(("ready",))
        reader = RowReader()
        while (task := connection.recv()) is not None:
            connection.send(attempt(setup, storage, task, lambda rows: connection.send(("progress", rows)), reader))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # The parent is gone.


def attempt(
    setup: WorkerSetup, storage: Storage, task: Task, progress: Callable[[int], None], reader: RowReader
) -> tuple[Any, ...]:
    """Do a task and give the answer, ("done", ...) or ("failed", ...). `reader` is the same one for all tasks.

    An error of any kind becomes an answer, so that it is never the process that ends; but where `progress` says that
    nobody listens any more, that is raised.
    """
    try:
        return ("done", make_parts(setup, storage, task, progress, reader))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except TokbatchError as error:
        if isinstance(error, EncodeError) and error.row is not None and error.hint is None:
            error.hint = 'run.on_bad_row = "null" gives such a row null for ids'
        return ("failed", (error if isinstance(error, OutputError) else located(error, task.input.name)).to_dict())
    except MemoryError:
        hint = "lower run.batch_bytes or run.workers"
        return ("failed", WorkerError("out of memory", where=task.input.name, hint=hint).to_dict())
    except OSError as error:
        return ("failed", output_error(error, storage.partial).to_dict())
    except BaseException as error:  # A panic of native code is no Exception.
        text = f"{type(error).__name__}: {error}"
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        return ("failed", WorkerError(f"a fault of tokbatch: {text}", where=task.input.name).to_dict())


def make_parts(
    setup: WorkerSetup, storage: Storage, task: Task, progress: Callable[[int], None], reader: RowReader
) -> ShardResult:
    """Read, transform and write one shard, or the rows of a probe. The partial files are on the disk afterwards."""
    start, began = time.monotonic(), time.time()
    shard, name = task.shard, task.input.name
    first, stop = task.rows or shard.file_rows
    source = open_source_again(task.input, setup.read_options)
    if not source.is_still(task.input_size, task.input_digest):
        raise changed(name)
    _check_stamp(task)
    columns = setup.transform.input_columns(source.schema)
    stats, row, failures = Stats(), first, _Failures(task.given_up)
    partial, limit = task.partial, setup.max_part_bytes
    packer = None if setup.packing is None else Packer(setup.packing, setup.schema, setup.pad_id)
    with (
        _blamed_on_the_file(task),
        PartsWriter(storage, setup.sink, setup.schema, setup.part_metadata, partial, first, limit) as writer,
    ):
        given_up = dict(task.given_up)
        on_bad_row = given_up.__setitem__ if setup.transform.options.on_bad_row == "null" else None
        for batch in reader.rows(source, task, columns, setup.batch_bytes, on_bad_row):
            output, counted = setup.transform.transform(batch, row, given_up=given_up, on_failure=failures.add)
            if setup.fail_on_lossy and counted.lossy_documents:
                raise _lossy(name, counted)
            if packer is None:
                writer.write(fit(output, setup.schema))
            else:
                writer.write_all(packer.add(output.column(0), row))
            stats = stats.merge(counted)
            row += batch.num_rows
            progress(row - shard.first_row)
        if packer is not None:
            writer.write_all(packer.finish())
            stats = stats.merge(packer.counts.to_stats())
    _check_stamp(task)
    if row != stop:
        raise InputError(f"{row - first} rows from row {first}, the plan says {stop - first}", where=name)
    run = {
        "worker": f"{socket.gethostname()}:{os.getpid()}",
        "started": round(began, 3),
        "seconds": round(time.monotonic() - start, 3),
        "peak_memory": peak_memory(),
    }
    counts = packer.counts if packer is not None else None
    return ShardResult(shard, tuple(writer.parts), stats, run, tuple(failures.kept), counts)


def _check_stamp(task: Task) -> None:
    """Raise `InputError` where somebody has written to the input; before and after its rows are read."""
    if task.input_stamp is not None and stamp_of(task.input.path) not in (None, task.input_stamp):
        raise written_to(task.input.name)


@contextlib.contextmanager
def _blamed_on_the_file(task: Task) -> Iterator[None]:
    """What cannot be read of a file that somebody has written to since is no fault of what the plan saw."""
    try:
        yield
    except InputError:
        _check_stamp(task)
        raise


class _Failures:
    """The first failed rows of a shard, in the order of the rows, and all that were `given_up`."""

    def __init__(self, given_up: Mapping[int, str]) -> None:
        self.kept: list[tuple[int, str]] = []
        self._given_up = given_up

    def add(self, row: int, reason: str) -> None:
        if len(self.kept) < FAILURES_KEPT or row in self._given_up:
            self.kept.append((row, reason))


def _lossy(name: str, stats: Stats) -> VerifyError:
    rows = ", ".join(map(str, stats.lossy_first_rows))
    return VerifyError(
        f"{stats.lossy_documents} documents cannot be given back from their ids, and no rule explains the loss",
        where=f"{name}: rows {rows}",
        hint='look at one with `tokbatch explain`, or set check.on_lossy = "warn"',
    )


def _end_with_parent() -> None:
    """End this process as soon as its parent ends, however that happens, also in the middle of a shard."""
    import multiprocess.connection
    import multiprocess.process

    parent = multiprocess.process.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        multiprocess.connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
