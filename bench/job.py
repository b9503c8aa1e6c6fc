"""The whole command against what no job can do without: reading the texts and writing the ids.

The copy job reads the same text columns and writes the same ids with the settings of a part, a process a worker,
without tokenizing anything: the floor. `datasets.map` with `tokenizers` is what the command replaces.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

COPY = """
import json, multiprocessing, sys
import pyarrow.parquet as pq

def copy(task):
    source, ids, column, target = task
    table, file, row = pq.read_table(ids), pq.ParquetFile(source), 0
    settings = {"compression": "zstd", "compression_level": 1, "use_dictionary": False, "write_statistics": False}
    encoding = {"input_ids.list.element": "BYTE_STREAM_SPLIT"}
    with pq.ParquetWriter(target, table.schema, column_encoding=encoding, **settings) as writer:
        for batch in file.iter_batches(batch_size=4096, columns=[column]):
            writer.write_table(table.slice(row, batch.num_rows))
            row += batch.num_rows

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(int(sys.argv[2])) as pool:
        pool.map(copy, json.loads(sys.argv[1]), chunksize=1)
"""
MAP = """
import json, sys
import datasets, tokenizers

files, tokenizer, column, workers, folder = json.loads(sys.argv[1])
loaded = tokenizers.Tokenizer.from_file(tokenizer)
data = datasets.Dataset.from_parquet(files, cache_dir=folder + "/cache")

def encode(batch):
    return {"input_ids": [e.ids for e in loaded.encode_batch_fast(batch[column])]}

data.map(encode, batched=True, num_proc=workers).to_parquet(folder + "/map.parquet")
"""


def run_job(
    folder: pathlib.Path, tokenizer: str, corpus: Sequence[str], column: str, workers: int, with_map: bool
) -> dict[str, dict[str, float] | str]:
    """Run each of the commands once, in turn; give its wall and processor time, children included."""
    for name in ("out", "map"):
        shutil.rmtree(folder / name, ignore_errors=True)
    config = folder / "job.toml"
    config.write_text(
        f"[tokenizer]\nfile = {json.dumps(tokenizer)}\n"
        f"[input]\nfiles = {json.dumps(list(corpus))}\ntext_column = {json.dumps(column)}\n"
        f"[output]\npath = {json.dumps(str(folder / 'out'))}\n[run]\nworkers = {workers}\n"
    )
    figures: dict[str, dict[str, float] | str] = {}
    figures["tokbatch run"] = _timed([sys.executable, "-m", "tokbatch.frontends.cli", "run", str(config)])
    tasks = _copy_tasks(folder, corpus, column)
    (folder / "copy_job.py").write_text(COPY)
    figures["copy job"] = _timed([sys.executable, str(folder / "copy_job.py"), json.dumps(tasks), str(workers)])
    if with_map and importlib.util.find_spec("tokenizers") is None:
        figures["datasets.map"] = "tokenizers is not installed"
    elif with_map:
        (folder / "map").mkdir()
        (folder / "map_job.py").write_text(MAP)
        argument = json.dumps([list(corpus), tokenizer, column, workers, str(folder / "map")])
        figures["datasets.map"] = _timed([sys.executable, str(folder / "map_job.py"), argument])
    return figures


def _copy_tasks(folder: pathlib.Path, corpus: Sequence[str], column: str) -> list[tuple[str, str, str, str]]:
    """Lay the ids of the job beside it, uncompressed, a file an input. Not timed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: dict[str, list[Any]] = {}
    for part in json.loads((folder / "out" / "manifest.json").read_text())["parts"]:
        parts.setdefault(part["input"], []).append(pq.read_table(folder / "out" / part["path"]))
    tasks = []
    for number, (name, tables) in enumerate(parts.items()):
        source = next(file for file in corpus if pathlib.Path(file).name == pathlib.Path(name).name)
        pq.write_table(pa.concat_tables(tables), folder / f"ids{number}.parquet", compression="none")
        tasks.append((source, str(folder / f"ids{number}.parquet"), column, str(folder / f"copy{number}.parquet")))
    return tasks


def _timed(command: Sequence[str]) -> dict[str, float]:
    environment = os.environ | {"TOKENIZERS_PARALLELISM": "false", "HF_DATASETS_OFFLINE": "1"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)[:200]}: exit {done.returncode}\n{done.stderr[-3000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}
