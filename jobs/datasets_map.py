"""Tokenize inside of `datasets.map`, in two processes, with ids of 32 bits and a cache that is hit the second time.

python jobs/datasets_map.py [TOKENIZER.json [FILE.parquet...]]
"""

import sys

from datasets import Dataset

from tokbatch import sample
from tokbatch.frontends.hf_datasets import map_function


def main(arguments: list[str]) -> None:
    """Map in both formats of datasets, and compare."""
    tokenizer = arguments[0] if arguments else sample.tokenizer_path()
    files = arguments[1:] or [str(path) for path in sample.corpus_paths()]
    tokenize = map_function(tokenizer)
    dataset = Dataset.from_parquet(files).select_columns(["id", "text"])

    # The default format: `features` keeps the ids at 32 bits, whatever the first rows hold.
    features = tokenize.features(dataset, remove_columns=["text"])
    mapped = dataset.map(tokenize, batched=True, num_proc=2, remove_columns=["text"], features=features)
    print(mapped)
    print(mapped.features["input_ids"], "first ids:", mapped[0]["input_ids"][:8])

    # The Arrow format: the same ids, and nothing goes through Python objects.
    arrow = dataset.with_format("arrow").map(tokenize, batched=True, num_proc=2).with_format(None)
    assert arrow["input_ids"] == mapped["input_ids"]


if __name__ == "__main__":
    main(sys.argv[1:])
