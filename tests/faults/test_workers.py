import os
import pathlib
import signal

import multiprocess
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config, write_corpus
from faulty_file_systems import DiesAfterBatches, Poison
from tokbatch.errors import EncodeError, WorkerError
from tokbatch.job import load_config, read_manifest, read_stats, run_job, verify_output
from tokbatch.job.progress import Silence

POISON = "poison 7"


def write_texts(folder: pathlib.Path, name: str = "a.parquet", rows: int = 60, bad: tuple[int, ...] = (40,)) -> None:
    texts = [POISON if row in bad else None if row % 9 == 5 else f"text {row}" for row in range(rows)]
    table = pa.table({"id": list(range(rows)), "text": pa.array(texts, pa.string())})
    pq.write_table(table, folder / name, row_group_size=20)


LONG = pytest.mark.long


@pytest.mark.parametrize("batches", [1, pytest.param(0, marks=LONG), pytest.param(3, marks=LONG)])
def test_a_worker_that_dies_after_some_batches_costs_one_retry_and_nothing_else(tmp_path, batches):
    write_texts(tmp_path, bad=())
    config = write_config(tmp_path, run__shard_bytes=200, run__batch_bytes=100)
    run_job(load_config(config, ["output.path=undisturbed"]))
    run_job(load_config(config), file_system=DiesAfterBatches(batches, str(tmp_path / "marks")))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "undisturbed")
    (retry,) = read_manifest(tmp_path / "out")["run"]["retries"]
    assert retry["input"] == "a.parquet"
    assert retry["reason"].startswith("killed by SIGKILL")


class KillsOneWorker(Silence):
    """Kill a worker of a job that is under way, by SIGKILL from outside.

    Another one, where the job does not say that it has lost a shard: the first may have just finished its own.
    """

    def __init__(self):
        self.notes = []
        self.updates = 0

    def note(self, text):
        self.notes.append(text)

    def update(self, done_bytes):
        self.updates += done_bytes > 0
        if self.updates % 5 == 1 and not any("a worker died" in note for note in self.notes):
            victim = multiprocess.active_children()[0]
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=LONG), pytest.param(3, marks=LONG)])
def test_a_worker_that_is_killed_while_the_job_runs_costs_one_retry_and_nothing_else(tmp_path, workers):
    write_corpus(tmp_path, "a.parquet", 6000, 500)
    config = write_config(tmp_path, run__shard_bytes=5_000, run__batch_bytes=2_000, run__workers=workers)
    run_job(load_config(config, ["output.path=undisturbed"]))
    killer = KillsOneWorker()
    run_job(load_config(config), progress=killer)
    (retry,) = read_manifest(tmp_path / "out")["run"]["retries"]
    assert retry["reason"] == "killed by SIGKILL, as the system does when memory runs out"
    assert [note for note in killer.notes if note.startswith(f"a worker died ({retry['reason']})")]
    assert files_below(tmp_path / "out") == files_below(tmp_path / "undisturbed")
    assert verify_output(tmp_path / "out", 1.0).problems == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("SIGSEGV", "killed by SIGSEGV"),
        pytest.param("exit", "exit status 3", marks=LONG),
        pytest.param("memory", "out of memory", marks=LONG),
        ("panic", "a fault of tokbatch: BaseException: index out of bounds"),
    ],
)
def test_the_row_that_ends_every_worker_is_named(tmp_path, how, reason):
    write_texts(tmp_path, rows=8, bad=(5,))
    config = load_config(write_config(tmp_path, run__retries=0))
    with pytest.raises(WorkerError) as caught:
        run_job(config, file_system=Poison(POISON, how))
    assert str(caught.value) == (
        f"a.parquet: row 5: this row ends every worker: {reason}\n"
        'hint: run.on_bad_row = "null" leaves the document out, and --resume goes on from here'
    )


@LONG
def test_the_row_becomes_null_where_the_config_says_so_and_the_failed_run_goes_on(tmp_path):
    write_texts(tmp_path)
    write_texts(tmp_path, "b.parquet", bad=())
    config = write_config(tmp_path, run__retries=0, run__shard_bytes=200)
    poison = Poison(POISON, "SIGKILL")
    with pytest.raises(WorkerError, match=r"a\.parquet: row 40: this row ends every worker"):
        run_job(load_config(config), file_system=poison)
    result = run_job(load_config(config, ["run.on_bad_row=null"]), resume=True, file_system=poison)
    manifest = read_manifest(tmp_path / "out")
    (row,) = manifest["quarantine"]["rows"]
    assert (row["input"], row["row"]) == ("a.parquet", 40)
    assert row["reason"].startswith("it ends every worker: killed by SIGKILL")
    table = pa.concat_tables(pq.read_table(tmp_path / "out" / part["path"]) for part in manifest["parts"])
    assert [i for i, ids in enumerate(table["input_ids"].to_pylist()[:60]) if ids is None] == sorted(
        {40, *range(5, 60, 9)}
    )
    assert (result.stats.failed_documents, result.stats.null_documents, result.stats.documents) == (1, 14, 120)
    assert read_stats(tmp_path / "out")[0][0][1].failed_first_rows == (40,)
    # The same bytes from a job that was never stopped.
    run_job(load_config(config, ["run.on_bad_row=null", "output.path=other"]), file_system=poison)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "other")
    found = verify_output(tmp_path / "out", 1.0)
    assert (found.problems, found.quarantined_rows) == ([], 1)


@LONG
def test_several_such_rows_of_a_shard(tmp_path):
    write_texts(tmp_path, bad=(0, 33, 59))
    config = load_config(write_config(tmp_path, run__retries=0, run__on_bad_row="null"))
    run_job(config, file_system=Poison(POISON, "exit"))
    rows = read_manifest(tmp_path / "out")["quarantine"]["rows"]
    assert [row["row"] for row in rows] == [0, 33, 59]


def test_a_failed_row_is_in_quarantine_and_made_again_when_the_policy_changes(tmp_path):
    texts = [b"good", b"bad \xff", b"good too", None, b"\xc3("]
    pq.write_table(pa.table({"text": pa.array(texts, pa.binary()).view(pa.string())}), tmp_path / "a.parquet")
    config = write_config(tmp_path)
    with pytest.raises(EncodeError, match=r"a\.parquet: row 1: byte 4 of the text \(0xFF\) is not UTF-8") as caught:
        run_job(load_config(config))
    assert caught.value.hint == 'run.on_bad_row = "null" gives such a row null for ids'
    run_job(load_config(config, ["run.on_bad_row=null"]), resume=True)
    assert read_manifest(tmp_path / "out")["quarantine"]["rows"] == [
        {"input": "a.parquet", "row": 1, "reason": "byte 4 of the text (0xFF) is not UTF-8"},
        {"input": "a.parquet", "row": 4, "reason": "byte 0 of the text (0xC3) is not UTF-8"},
    ]
    assert run_job(load_config(config, ["run.on_bad_row=null"]), resume=True).already_done
    with pytest.raises(EncodeError, match=r"a\.parquet: row 1"):
        run_job(load_config(config), resume=True)
