"""What a worker needs does not grow with its row group or its corpus; what a document needs is bounded by the config.

The sizes that people have are in the long tests (2 and 4 GB in one row group, a document of 500 MB), smaller ones that
show the same stand beside them.
"""

import itertools
import json
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from new_text import new_documents, new_text, write_one_row_group
from tokbatch import sample
from tokbatch.engine.native import why_unavailable

pytestmark = pytest.mark.skipif(why_unavailable() is not None, reason="the reference engine would take hours")

MB = 1_000_000
PLAIN = 60 * MB  # of text, which hold nothing new after the first few
BYTE_OF_A_DOCUMENT = 17  # bytes of memory that a byte of one document takes; measured: 15.5 with the sample's tokenizer


def run(folder, files, *settings):
    """Run a job with one worker by the command line; give the finished process and the manifest."""
    config = folder / "job.toml"
    config.write_text(
        f"tokenizer.file = {json.dumps(str(sample.tokenizer_path()))}\n"
        f"input.files = {json.dumps([str(file) for file in files])}\n"
        'output.path = "out"\nrun.workers = 1\nrun.retries = 0\n'
    )
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    command = [sys.executable, "-m", "tokbatch.frontends.cli", "run", str(config), "--overwrite", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    manifest = folder / "out/manifest.json"
    return done, json.loads(manifest.read_text()) if manifest.exists() else None


def peak(folder, file, *settings):
    """Give the bytes that the worker of a job had at its highest."""
    done, manifest = run(folder, [file], *settings)
    assert done.returncode == 0, done.stderr
    return manifest["run"]["peak_memory"]["worker"]


def one_text(size):
    """Give a text of so many bytes."""
    pieces = itertools.accumulate(new_text(3), lambda text, piece: text + piece)
    return next(text for text in pieces if len(text) >= size)[:size].decode()


def write_rows(path, rows):
    pq.write_table(pa.table({"text": pa.array(rows, pa.large_string())}), path, row_group_size=len(rows))


def test_a_row_group_is_not_held(tmp_path):
    (piece,) = new_documents(0, 6 * MB)
    for times in (3, PLAIN // (6 * MB)):
        write_one_row_group(tmp_path / f"{times}.parquet", iter([piece] * times))
    small, large = (
        peak(tmp_path, tmp_path / f"{times}.parquet", 'check.round_trip="off"') for times in (3, PLAIN // (6 * MB))
    )
    assert large < small + PLAIN / 2


def test_a_document_that_memory_does_not_allow_is_named_or_left_out(tmp_path):
    rows = [f"a row {number}" for number in range(50)]
    rows[20] = one_text(20 * MB)
    write_rows(tmp_path / "a.parquet", rows)
    limits = (f"run.max_memory={400 * MB}", "run.batch_bytes=1_000_000")
    done, manifest = run(tmp_path, ["a.parquet"], *limits)
    assert (done.returncode, manifest) == (1, None)
    assert "row 20: this row ends every worker: it took more memory than run.max_memory leaves" in done.stderr
    assert "hint: raise run.max_memory, of which a document takes some 12 bytes for each of its own; " in done.stderr
    done, manifest = run(tmp_path, ["a.parquet"], *limits, 'run.on_bad_row="null"')
    assert done.returncode == 0, done.stderr
    (left_out,) = manifest["quarantine"]["rows"]
    assert left_out["row"] == 20
    assert manifest["run"]["peak_memory"]["worker"] < 400 * MB


# In a process of its own, whose memory has no gaps yet.
LONG_DOCUMENT = """
import pyarrow as pa
from tokbatch import Tokenizer, sample
from tokbatch.job.memory import memory_now
tokenizer = Tokenizer.from_file(sample.tokenizer_path(), engine="native")
texts = pa.array(["a b " * 10_000_000])
tokenizer.encode_batch(pa.array(["a b"]))
before = memory_now()
ids = tokenizer.encode_batch(texts)
held, size = memory_now(), ids.nbytes
del ids
print(before, held, size, memory_now())
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_long_document_leaves_no_memory_behind():
    done = subprocess.run([sys.executable, "-c", LONG_DOCUMENT], capture_output=True, text=True, check=True)
    before, held, size, after = map(int, done.stdout.split())
    assert size > 80 * MB
    assert held > before + 70 * MB
    assert after < held - 70 * MB


def test_too_little_for_a_single_worker_is_said_before_any_work(tmp_path):
    write_rows(tmp_path / "a.parquet", ["a"])
    done, _ = run(tmp_path, ["a.parquet"], "run.max_memory=100_000_000")
    assert done.returncode == 2
    assert "run.max_memory: 100,000,000 bytes are too little: a worker needs about" in done.stderr
    assert "hint: raise it, or lower run.batch_bytes" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_and_four_gigabytes_in_one_row_group(tmp_path):
    peaks = {}
    for gigabytes in (2, 4):
        path = tmp_path / f"{gigabytes}.parquet"
        write_one_row_group(path, new_documents(gigabytes, gigabytes * 1000 * MB))
        peaks[gigabytes] = peak(tmp_path, path)
        path.unlink()
    assert max(peaks.values()) < 400 * MB, peaks
    assert max(peaks.values()) < 1.15 * min(peaks.values()), peaks


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_document_takes_memory_by_its_length(tmp_path):
    write_rows(tmp_path / "a.parquet", ["first", one_text(500 * MB), "last"])
    assert peak(tmp_path, tmp_path / "a.parquet") < 400 * MB + BYTE_OF_A_DOCUMENT * 500 * MB


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_million_tiny_documents(tmp_path):
    write_rows(tmp_path / "a.parquet", [f"a {number}" for number in range(MB)])
    assert peak(tmp_path, tmp_path / "a.parquet") < 400 * MB


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["parquet", "dictionary", "view", "nested"])
def test_more_than_32_bits_of_texts(tmp_path, kind):
    (piece,) = new_documents(0, MB, longest=100_000)
    times = 2300  # 2.3 GB, more than a string's offsets hold
    path = tmp_path / f"a.{'parquet' if kind in ('parquet', 'nested') else 'arrow'}"
    settings = []
    if kind == "dictionary":
        names = pa.array(list(range(len(piece))) * times, pa.int32())
        column = pa.DictionaryArray.from_arrays(names, piece)
    elif kind == "view":
        column = pa.concat_arrays([piece.cast(pa.string_view())] * times)
    elif kind == "parquet":  # its texts stand in a dictionary of the file: 2.3 GB out of few
        column = pa.chunked_array([piece] * times)
    else:
        column = pa.chunked_array([pa.StructArray.from_arrays([piece], names=["body"])] * times)
        settings.append("input.text_column=text.body")
    table = pa.table({"text": column})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=table.num_rows, dictionary_pagesize_limit=2 * MB)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for batch in table.to_batches():
                writer.write_batch(batch)
    del table, column
    held = path.stat().st_size if kind == "view" else 0  # a record batch of Arrow is read as a whole
    assert peak(tmp_path, path, *settings) < 400 * MB + 1.2 * held
