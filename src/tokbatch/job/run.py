"""Run a job: plan, hand shards to workers, commit what they finish, go on where an earlier attempt stopped.

The order of things is what makes a kill harmless at any moment: a part is whole on the disk before it gets its final
name, its record is written after that, and the manifest comes last. Whatever lies there without a record is made again,
with the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokbatch.batch.stats import Stats
from tokbatch.engine.native import NativeEngine
from tokbatch.errors import InputError, OutputError, TokbatchError, WorkerError, from_dict
from tokbatch.job.config import JobConfig
from tokbatch.job.inputs import list_inputs
from tokbatch.job.lock import OutputLock
from tokbatch.job.manifest import check_format, files_of, merged, part_file_name, shard_record, write_results
from tokbatch.job.memory import PASSED_LIMIT, PER_BATCH_BYTE, limit_of_a_worker, peak_memory, workers_within
from tokbatch.job.plan import Shard
from tokbatch.job.pool import Pool
from tokbatch.job.prepare import Job, digest_of, early_worker_count, prepare_job, worker_count
from tokbatch.job.progress import Progress, Silence, count, megabytes
from tokbatch.job.quarantine import Quarantine, reason_of
from tokbatch.job.resume import differences, holds, record_name, refuse_used
from tokbatch.job.storage import FileSystem, Storage, told
from tokbatch.job.suspects import MOST_ROWS, Hunt
from tokbatch.job.worker import ShardResult, Task, WorkerSetup
from tokbatch.job.workers import Event, Workers, cluster_cores, early_workers, start_workers

WAKE_SECONDS = 0.5


@dataclass(frozen=True)
class JobResult:
    """What a finished job was: `text_bytes` were encoded by this attempt in `seconds`.

    `already_done` says that there was nothing left to do. `skipped` are the inputs left out, with the reasons.
    """

    job: Job
    stats: Stats
    seconds: float
    text_bytes: int = 0
    already_done: bool = False
    skipped: Mapping[str, str] = field(default_factory=dict)


def run_job(
    config: JobConfig,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    file_system: FileSystem | None = None,
) -> JobResult:
    """Run a job to its end. With `resume` finished shards of an earlier attempt are kept, with `overwrite` nothing is.

    Raises a `TokbatchError`; then, as after a `KeyboardInterrupt`, what is finished stays, and `resume` goes on.
    """
    progress = progress or Silence()
    storage = Storage(config.output_path, file_system)
    with contextlib.ExitStack() as stack:
        with told(storage.folder):  # a name that is too long, a folder that may not be read
            under_way = storage.state.is_dir()
        if under_way:
            stack.enter_context(OutputLock(storage))
        with told(storage.folder):
            refuse_used(storage, resume, overwrite)
        if resume and (manifest := storage.read_json("manifest.json")) is not None:
            check_format(manifest, storage.folder / "manifest.json")
        listed = list_inputs(config)
        waits = resume or config.run.max_memory > 0  # There may be nothing to do, or no room for so many.
        early = early_workers(config, 0 if waits else early_worker_count(config, listed))
        stack.callback(early.kill)
        job = prepare_job(config, listed)
        _say_what(job, progress)
        if not under_way:
            stack.enter_context(OutputLock(storage))
        if overwrite:
            storage.clear()
        return _Run(job, storage, progress, early).run()


@dataclass
class _Run:
    """One attempt at a job that holds the lock."""

    job: Job
    storage: Storage
    progress: Progress
    early: Pool
    records: dict[int, dict[str, Any]] = field(default_factory=dict)
    quarantine: Quarantine = field(default_factory=Quarantine)
    rows_done: dict[int, int] = field(default_factory=dict)
    finished_bytes: int = 0
    attempts: dict[int, int] = field(default_factory=dict)
    deaths: dict[int, int] = field(default_factory=dict)
    retries: list[dict[str, Any]] = field(default_factory=list)
    hunts: dict[int, Hunt] = field(default_factory=dict)

    def run(self) -> JobResult:
        start, began = time.monotonic(), time.time()
        self._adopt()
        resumed = set(self.records)
        pending = self._pending()
        manifest = self.storage.read_json("manifest.json")
        if not pending and manifest is not None and manifest.get("parts") == self._parts():
            self._tidy()
            seconds = time.monotonic() - start
            return JobResult(self.job, self._total(), seconds, already_done=True, skipped=self._all_skipped())
        limits = self.job.config.run
        wanted = worker_count(self.job.config, len(pending), cluster_cores(self.job.config) if pending else None)
        workers = workers_within(limits.max_memory, limits.batch_bytes, wanted)
        if pending:
            self._work_off(pending, workers)
        if not self.records:
            name, reason = next(iter(self._all_skipped().items()))
            raise InputError("none of the inputs can be read", where=name, hint=reason)
        seconds = time.monotonic() - start
        run = {
            "host": socket.gethostname(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(seconds, 3),
            "workers": workers,
            "why_reference": self.job.tokenizer.why_reference,
            "shards": len(self.records),
            "resumed_shards": len(resumed),
            "retries": self.retries,
            "peak_memory": {
                "this_process": peak_memory(),
                "worker": max((record["run"]["peak_memory"] for record in self.records.values()), default=0),
            },
            "timeline": [
                {"input": record["shard"]["input"], **record["run"]} for _, record in sorted(self.records.items())
            ],
        }
        stats = write_results(self.storage, self.job, self.records, self._all_skipped(), run)
        self._tidy()
        new = sum(record["run"]["text_bytes"] for index, record in self.records.items() if index not in resumed)
        return JobResult(self.job, stats, seconds, new, skipped=self._all_skipped())

    # -- what an earlier attempt left ---------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Take over the finished shards of the same job; refuse those of another one."""
        before = self.storage.read_json(".tokbatch/job.json")
        if before is not None and before != self.job.identity:
            raise OutputError(
                "this is not the job that was interrupted: " + "; ".join(differences(before, self.job.identity)),
                where=str(self.storage.folder),
                hint="put it back as it was, or start anew with --overwrite",
            )
        self.storage.prepare()
        if before is None:
            self.storage.write_json(".tokbatch/job.json", self.job.identity)
        self.quarantine = Quarantine.read(self.storage, self.job.config)
        for shard in self.job.shards:
            record = self.storage.read_json(record_name(shard))
            if holds(record, self.job, shard, self.storage.folder):
                self.records[shard.index] = record
        for name in self.quarantine.files:
            self._forget(name)
        self._count_finished()
        if before is not None:
            self._say_what_is_finished("before: ")

    def _pending(self) -> deque[Shard]:
        """Give what is left, the largest first, so that no worker works alone at the end."""
        left = [s for s in self.job.shards if s.index not in self.records and not self._is_skipped(s)]
        sizes: list[int] = []
        for shard in self.job.shards:
            # The pieces of a row group stay in their order, so that whoever does one can go on with a later one.
            sizes.append(sizes[-1] if shard.skip else shard.text_bytes)
        return deque(sorted(left, key=lambda shard: (-sizes[shard.index], shard.index)))

    # -- the work -----------------------------------------------------------------------------------------------

    def _work_off(self, pending: deque[Shard], workers: int) -> None:
        setup = self._setup(self._shared_tables(workers), workers)
        pool = start_workers(self.job.config, setup, workers, self.early)
        self.progress.start(sum(shard.text_bytes for shard in self.job.shards), self._done_bytes())
        try:
            while pending or pool.busy:
                self._give_out(pending, pool)
                for event in pool.wait(WAKE_SECONDS):
                    self._give_out(pending, pool)  # First, so that no worker waits while the disk takes a part in.
                    self._handle(event, pending)
                self.progress.update(self._done_bytes())
        finally:
            self.progress.finish()
            pool.kill()
            if sys.exc_info()[0] is not None:
                self._say_what_is_finished()

    def _give_out(self, pending: deque[Shard], pool: Workers) -> None:
        while pending and pool.give(self._task(pending[0])):
            pending.popleft()

    def _handle(self, event: Event, pending: deque[Shard]) -> None:
        kind, *rest = event.message
        task = event.task
        if task is None:
            return
        if kind == "progress":
            self.rows_done[task.shard.index] = rest[0]
        elif kind == "died":
            self._retry(task, rest[0], pending)
        elif kind == "failed":
            self._fail(task, from_dict(rest[0]), pending)
        elif kind == "done" and task.rows is not None:
            self._clear_up(task)
            self.hunts[task.shard.index].passed()
            self._go_on_hunting(task, pending)
        elif kind == "done":
            self._commit(task, rest[0])

    def _commit(self, task: Task, result: ShardResult) -> None:
        if task.input.name in self.quarantine.files:
            self.storage.drop_partials(task.partial)
            return
        for number, part in enumerate(result.parts):
            for file in part.files:
                self.storage.commit_part(file.partial, part_file_name(self.job, task.shard, number, file.suffix))
        record = shard_record(self.job, result)
        self.storage.write_json(record_name(task.shard), record)
        self.records[task.shard.index] = record
        self.finished_bytes += task.shard.text_bytes
        self.rows_done.pop(task.shard.index, None)

    def _fail(self, task: Task, error: TokbatchError, pending: deque[Shard]) -> None:
        """End the job, or leave the whole input out where the file is at fault and the config says so."""
        if isinstance(error, WorkerError):  # A fault, or no memory: it is about some row, as a death is.
            self._retry(task, error.message, pending)
            return
        self.storage.drop_partials(task.partial)
        name = task.input.name
        if error.code == "input-written":  # What was finished is of other bytes than what is left, as far as one knows.
            self._forget(name)
        if not isinstance(error, InputError) or self.job.config.run.on_bad_file == "fail":
            raise error
        if name not in self.quarantine.files:
            self.quarantine.files[name] = reason_of(error, name)
            self.quarantine.write(self.storage)
            self.progress.note(f"skipped: {name}: {self.quarantine.files[name]}")
        self._forget(name)
        for shard in [shard for shard in pending if self._name(shard) == name]:
            pending.remove(shard)
        self._count_finished()

    # -- workers that die ---------------------------------------------------------------------------------------

    def _retry(self, task: Task, reason: str, pending: deque[Shard]) -> None:
        """Give the shard of a worker that died to another one, a few times; then look for the row that does it."""
        shard, rows = task.shard, task.rows or task.shard.file_rows
        done = self._clear_up(task)
        place = f"rows {rows[0]} to {rows[1]}"
        self.retries.append({"input": task.input.name, "rows": place, "reason": reason})
        if task.rows is not None:
            self.hunts[shard.index].died(reason)
            self._go_on_hunting(task, pending)
            return
        self.deaths[shard.index] = self.deaths.get(shard.index, 0) + 1
        has_a_name = shard.index in self.hunts
        self.progress.note(f"a worker died ({reason}); its shard is done again: {task.input.name}, {place}")
        if self.deaths[shard.index] > self.job.config.run.retries or has_a_name:
            self.progress.note(f"looking for the row that does it: {task.input.name}, {place}")
            self.hunts[shard.index] = Hunt(shard.file_rows, reason, shard.first_row + done)
        pending.appendleft(shard)

    def _go_on_hunting(self, task: Task, pending: deque[Shard]) -> None:
        """Give the next probe, or decide what becomes of the row that was found."""
        shard, name = task.shard, task.input.name
        hunt = self.hunts[shard.index]
        pending.appendleft(shard)
        if not hunt.is_over:
            return
        died = f"{self.deaths[shard.index]} times ({hunt.reason})"
        hint = "lower run.batch_bytes or run.workers if memory ran out; --resume goes on from here"
        if hunt.found is None:
            place = f"{name}: rows {shard.first_row} to {shard.first_row + shard.rows}"
            cause = "whatever rows it has" if hunt.probe[0] == hunt.probe[1] else "and none of the rows does it alone"
            text = f"the worker died {died}; {cause}"
            raise WorkerError(text, where=place, hint=hint)
        if self.job.config.run.on_bad_row == "fail":
            hint = 'run.on_bad_row = "null" leaves the document out, and --resume goes on from here'
            if hunt.reason == PASSED_LIMIT:
                needed = f"of which a document takes some {PER_BATCH_BYTE} bytes for each of its own"
                hint = f"raise run.max_memory, {needed}; or {hint}"
            raise WorkerError(
                f"this row ends every worker: {hunt.reason}", where=f"{name}: row {hunt.found}", hint=hint
            )
        known = self.quarantine.rows_between(name, *shard.file_rows)
        if hunt.found in known or len(known) >= MOST_ROWS:
            text = f"the worker died {died}; {len(known)} rows have been given up already"
            raise WorkerError(text, where=f"{name}: row {hunt.found}", hint="is the file as it should be?")
        self.quarantine.add_row(name, hunt.found, f"it ends every worker: {hunt.reason}")
        self.quarantine.write(self.storage)
        self.progress.note(f"given up: {name}: row {hunt.found}: {hunt.reason}")

    def _clear_up(self, task: Task) -> int:
        """Remove what is left of a task; gives the rows that it had done."""
        self.storage.drop_partials(task.partial)
        return self.rows_done.pop(task.shard.index, 0)

    def _say_what_is_finished(self, when: str = "") -> None:
        done, total = self.finished_bytes, sum(shard.text_bytes for shard in self.job.shards)
        finished = f"{len(self.records):,} of {count(len(self.job.shards), 'shard')}"
        self.progress.note(f"{when}{finished} finished, {megabytes(done)} of {megabytes(total)}")

    def _tidy(self) -> None:
        """Remove what only a job at work needs, and name what is among the parts and is none: `verify` does so too."""
        self.storage.tidy()
        known = {file["path"] for part in self._parts() for file in files_of(part)}
        for path in self.storage.foreign_parts(known):
            self.progress.note(f"{path}: no part of this job; readers of data/ may take it for one")

    # -- small things -------------------------------------------------------------------------------------------

    def _shared_tables(self, workers: int) -> Path | None:
        """Give a folder with the engine's tables for the workers; None: they are in the cache, or not worth a file."""
        engine, tables = self.job.transform.engine, self.storage.partial / "tables"
        is_shared = workers > 1 and isinstance(engine, NativeEngine) and engine.share_tables(tables)
        return tables if is_shared else None

    def _setup(self, tables: Path | None, workers: int) -> WorkerSetup:
        job, config = self.job, self.job.config
        return WorkerSetup(
            transform=job.transform,
            folder=self.storage.folder,
            schema=job.schema,
            sink=job.sink,
            packing=config.output.packing,
            pad_id=job.pad_id,
            read_options=job.read_options,
            max_part_bytes=config.output.max_part_bytes,
            batch_bytes=config.run.batch_bytes,
            fail_on_lossy=config.check.on_lossy == "fail",
            file_system=self.storage.file_system,
            tables=tables,
            memory_limit=limit_of_a_worker(config.run.max_memory, workers),
            part_metadata={
                "tokbatch.version": job.identity["tokbatch"],
                "tokbatch.engine": job.identity["engine"],
                "tokbatch.tokenizer_sha256": job.identity["tokenizer_sha256"],
                "tokbatch.settings_sha256": digest_of(job.identity["settings"]),
            },
        )

    def _task(self, shard: Shard) -> Task:
        facts = self.job.inputs[shard.input]
        number = self.attempts[shard.index] = self.attempts.get(shard.index, 0) + 1
        hunt = self.hunts.get(shard.index)
        return Task(
            shard,
            dataclasses.replace(facts.input, files=()),  # the units name them
            facts.size,
            facts.digest,
            facts.units[shard.start : shard.stop],
            f"{shard.index:06d}-{number}",
            facts.stamp,
            self.quarantine.rows_between(facts.input.name, *shard.file_rows),
            None if hunt is None or hunt.is_over else hunt.probe,
        )

    def _name(self, shard: Shard) -> str:
        return self.job.inputs[shard.input].input.name

    def _forget(self, name: str) -> None:
        """Remove the parts and the records of an input that is skipped."""
        for shard in self.job.shards:
            if self._name(shard) == name:
                self.records.pop(shard.index, None)
                self.rows_done.pop(shard.index, None)
                (self.storage.folder / record_name(shard)).unlink(missing_ok=True)
                self.storage.drop_parts(shard.part_name(name))

    def _count_finished(self) -> None:
        finished = (s for s in self.job.shards if s.index in self.records or self._is_skipped(s))
        self.finished_bytes = sum(shard.text_bytes for shard in finished)

    def _done_bytes(self) -> int:
        """Add what the workers have done of their current shards to what is finished."""
        current = ((self.job.shards[index], rows) for index, rows in self.rows_done.items())
        return self.finished_bytes + sum(s.text_bytes * rows // max(1, s.rows) for s, rows in current)

    def _all_skipped(self) -> dict[str, str]:
        return {**dict(self.job.skipped), **self.quarantine.files}

    def _is_skipped(self, shard: Shard) -> bool:
        return self._name(shard) in self.quarantine.files

    def _parts(self) -> list[dict[str, Any]]:
        return [part for _, record in sorted(self.records.items()) for part in record["parts"]]

    def _total(self) -> Stats:
        by_input: dict[int, list[dict[str, Any]]] = {}
        for index, record in sorted(self.records.items()):
            by_input.setdefault(self.job.shards[index].input, []).append(record)
        return Stats.total(merged(records) for records in by_input.values())


def _say_what(job: Job, progress: Progress) -> None:
    for name in dict.fromkeys(job.repeated):
        progress.note(f"note: {name} is named twice and taken once")
    for folder in job.passed_over:
        progress.note(f"note: {folder} is the output of a job and no input")
    for name, reason in job.skipped:
        progress.note(f"skipped: {name}: {reason}")
    rows = sum(facts.rows for facts in job.inputs)
    size = megabytes(sum(facts.text_bytes for facts in job.inputs))
    inputs, shards = count(len(job.inputs), "input"), count(len(job.shards), "shard")
    progress.note(f"{inputs}, {count(rows, 'document')}, {size} to read, {shards}; {job.tokenizer!r}")
    if job.tokenizer.why_reference is not None:
        progress.note(f"WARNING: {job.tokenizer.why_reference}")
    if job.identity["engine"] == "reference":
        progress.note("note: the reference engine (pure Python) does the work; it is exact, and slow")
