"""A worker: a process that makes one shard after another into a part.

`work` is what the process runs. Over its pipe come `Task`s (None: no more); back go tuples:

    ("ready",)                      the tokenizer is loaded
    ("progress", rows)              rows of the current task that are done
    ("done", ShardResult)           the part is whole, on the disk, under its partial name
    ("failed", error)               the error as plain data (`TokbatchError.to_dict`)

A worker gives nothing a final name (see `storage.py`), and it ends when its parent does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tokbatch.batch.stats import Stats
from tokbatch.batch.transform import Transform
from tokbatch.errors import InputError, OutputError, TokbatchError, VerifyError, WorkerError
from tokbatch.job.inputs import Input
from tokbatch.job.parquet_output import PartWriter
from tokbatch.job.plan import Shard
from tokbatch.job.schema import fit
from tokbatch.job.sources import open_source_again
from tokbatch.job.storage import FileSystem, Storage, output_error


@dataclass(frozen=True)
class WorkerSetup:
    """What all shards of a job have in common; sent to a worker once, when it starts."""

    transform: Transform
    folder: Path
    schema: pa.Schema
    id_column: str
    compression: str
    batch_bytes: int
    fail_on_lossy: bool
    part_metadata: dict[str, str]
    file_system: FileSystem


@dataclass(frozen=True)
class Task:
    """One shard to do. `input_digest` is what the plan saw: another one means that the input has changed."""

    shard: Shard
    input: Input
    input_digest: str
    partial: str


@dataclass(frozen=True)
class ShardResult:
    """What came out of one shard. `seconds` is no statistic: it says something about the run, not the documents."""

    shard: Shard
    rows: int
    size: int
    sha256: str
    stats: Stats
    seconds: float


def work(connection: Any, pickled_setup: bytes) -> None:
    """Run a worker process until there are no more tasks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides.
    _end_with_parent()
    pa.set_cpu_count(1)
    try:
        from multiprocess.reduction import ForkingPickler

        setup: WorkerSetup = ForkingPickler.loads(pickled_setup)
        storage = Storage(setup.folder, setup.file_system)
        connection.send(("ready",))
        while (task := connection.recv()) is not None:
            connection.send(_attempt(setup, storage, task, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(1)  # The parent is gone.


def _attempt(setup: WorkerSetup, storage: Storage, task: Task, connection: Any) -> tuple[Any, ...]:
    """Do a task; an error of any kind becomes an answer, so that it is never the process that ends."""
    try:
        return ("done", make_part(setup, storage, task, lambda rows: connection.send(("progress", rows))))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except TokbatchError as error:
        if not isinstance(error, OutputError) and not (error.where or "").startswith(task.input.name):
            error.where = f"{task.input.name}: {error.where}" if error.where else task.input.name
        return ("failed", error.to_dict())
    except OSError as error:
        return ("failed", output_error(error, storage.partial / task.partial).to_dict())
    except MemoryError:
        hint = "lower run.batch_bytes or run.workers"
        return ("failed", WorkerError("out of memory", where=task.input.name, hint=hint).to_dict())
    except BaseException as error:  # A panic of native code is no Exception.
        text = f"{type(error).__name__}: {error}"
        print(traceback.format_exc(), file=sys.stderr, flush=True)
        return ("failed", WorkerError(f"a fault of tokbatch: {text}", where=task.input.name).to_dict())


def make_part(setup: WorkerSetup, storage: Storage, task: Task, progress: Callable[[int], None]) -> ShardResult:
    """Read, transform and write one shard. The partial file is on the disk when this returns."""
    start = time.monotonic()
    shard, name = task.shard, task.input.name
    source = open_source_again(task.input)
    if source.digest != task.input_digest:
        raise InputError("the file has changed since the job was planned", where=name)
    columns = setup.transform.input_columns(source.schema)
    stats, row = Stats(), shard.first_row
    file = storage.open_partial(task.partial)
    with PartWriter(file, setup.schema, setup.id_column, setup.compression, setup.part_metadata) as writer:
        for batch in source.batches(range(shard.start, shard.stop), columns, setup.batch_bytes, row):
            output, counted = setup.transform.transform(batch, row)
            if setup.fail_on_lossy and counted.lossy_documents:
                raise _lossy(name, counted)
            writer.write(fit(output, setup.schema))
            stats = stats.merge(counted)
            row += batch.num_rows
            progress(row - shard.first_row)
    if row - shard.first_row != shard.rows:
        raise InputError(
            f"{row - shard.first_row} rows from row {shard.first_row}, the plan says {shard.rows}", where=name
        )
    return ShardResult(shard, shard.rows, file.size, file.sha256, stats, time.monotonic() - start)


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

    def watch() -> None:
        multiprocess.connection.wait([parent.sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
