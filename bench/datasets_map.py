"""`datasets.map` with tokbatch against `datasets.map` with `tokenizers`: the same ids, and how many times as fast.

    python bench/datasets_map.py TOKENIZER FILE.parquet... [--num-proc 2] [--rounds 5] [--documents N]

Both map the same documents in the same number of processes, without the cache, in turns: a round runs both, one after
the other, and gives one ratio. What is printed is the median of the ratios, of elapsed time and of CPU time (of all
processes). Theirs is what people write: `encode_batch_fast` on a batch of strings, ids as lists. Ours is `tokenize`
without the round trip, and once more with it. Ids that differ end the script with status 1, and no time is printed.
"""

from __future__ import annotations

import argparse
import gzip
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tokenizers

from tokbatch import Tokenizer
from tokbatch.frontends.hf_datasets import tokenize


def read(path: pathlib.Path) -> str:
    """Read a tokenizer.json, packed or not."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def read_texts(files: list[str], column: str, documents: int | None, folder: str) -> datasets.Dataset:
    """Give the texts of all files, without nulls, as a dataset with a file of its own, which is what people map."""
    texts = [pq.read_table(path, columns=[column])[column].cast(pa.large_string()) for path in files]
    joined = pc.drop_null(pa.chunked_array([chunk for text in texts for chunk in text.chunks], pa.large_string()))
    table = pa.table({"text": joined if documents is None else joined[:documents]})
    datasets.Dataset(pa.Table.from_batches(table.to_batches(max_chunksize=1000), table.schema)).save_to_disk(folder)
    return datasets.load_from_disk(folder)


class Theirs:
    """What people write, as an object that pickles by the text of its tokenizer."""

    def __init__(self, text: str):
        self.text = text
        self.tokenizer: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Theirs, (self.text,)

    def __call__(self, batch: dict[str, list[str]]) -> dict[str, Any]:
        """Encode a batch."""
        if self.tokenizer is None:
            self.tokenizer = tokenizers.Tokenizer.from_str(self.text)
            self.tokenizer.no_padding()
        return {"input_ids": [encoding.ids for encoding in self.tokenizer.encode_batch_fast(batch["text"])]}


def measured(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Give the answer, the seconds that went by, and the seconds of CPU of this process and its children."""
    before, start = os.times(), time.perf_counter()
    answer = call()
    after, end = os.times(), time.perf_counter()
    return answer, end - start, sum(after[:4]) - sum(before[:4])


def main() -> int:
    """Read the texts and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--column", default="text")
    options = parser.parse_args()
    datasets.disable_progress_bars()
    datasets.disable_caching()

    with tempfile.TemporaryDirectory() as folder:
        return compare(read_texts(options.files, options.column, options.documents, folder), options)


def compare(dataset: datasets.Dataset, options: argparse.Namespace) -> int:
    """Run the rounds on a dataset and print the ratios."""
    text = read(options.tokenizer)
    theirs, ours = Theirs(text), Tokenizer.from_json(text)
    common = {"num_proc": options.num_proc, "load_from_cache_file": False}
    ways: dict[str, Callable[[], Any]] = {
        "tokenizers": lambda: dataset.map(theirs, batched=True, remove_columns="text", **common),
        "tokbatch": lambda: tokenize(dataset, ours, remove_columns="text", round_trip="off", **common).dataset,
        "tokbatch, round trip": lambda: tokenize(dataset, ours, remove_columns="text", **common).dataset,
    }
    ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    tokens = 0
    for _ in range(options.rounds):
        answers = {name: measured(way) for name, way in ways.items()}
        mapped, elapsed, cpu = answers["tokenizers"]
        ids = mapped.data.column("input_ids").combine_chunks()
        tokens = len(ids.flatten())
        for name, (answer, other_elapsed, other_cpu) in answers.items():
            other = answer.data.column("input_ids").combine_chunks().cast(ids.type)
            if not ids.equals(other):
                print(f"{name}: the ids differ", file=sys.stderr)
                return 1
            ratios[name].append((elapsed / other_elapsed, cpu / other_cpu))
    size = f"{len(dataset):,} documents, {tokens:,} tokens"
    print(f"{options.tokenizer.name}, {size}, num_proc {options.num_proc}, ids equal")
    for name, found in ratios.items():
        by_time, by_cpu = (statistics.median(each[place] for each in found) for place in (0, 1))
        print(f"{name:<24}{by_time:>8.2f} times as fast, {by_cpu:>8.2f} by CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
