"""Tokenize in a Ray Data pipeline: two actors, each with its own tokenizer, and Arrow tables in between.

python jobs/ray_map_batches.py [TOKENIZER.json [FILE.parquet...]]

For a corpus that is to be verified and resumed, see configs/ray_job.toml: the same job as on one machine, on a cluster.
"""

import sys

import ray

from tokbatch import sample
from tokbatch.frontends.ray_data import Tokenize


def main(arguments: list[str]) -> None:
    """Read, tokenize, and count the tokens."""
    tokenizer = arguments[0] if arguments else str(sample.tokenizer_path())
    files = arguments[1:] or [str(path) for path in sample.corpus_paths()]
    documents = ray.data.read_parquet(files, columns=["id", "text"])
    tokenized = documents.map_batches(
        Tokenize,
        fn_constructor_kwargs={"tokenizer": tokenizer, "column": "text", "remove_columns": ["text"]},
        batch_format="pyarrow",
        concurrency=2,
    )
    print(tokenized.schema())
    tokens = sum(len(row["input_ids"]) for row in tokenized.iter_rows() if row["input_ids"] is not None)
    print(f"{tokens:,} tokens")


if __name__ == "__main__":
    main(sys.argv[1:])
