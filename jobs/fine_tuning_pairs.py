"""Pairs of texts for the fine-tuning of a BERT: the template for pairs, type ids, truncation, and no padding.

python jobs/fine_tuning_pairs.py [TOKENIZER.json]

Padding is the collator's business: `DataCollatorWithPadding` pads each batch to its own longest, and makes the mask.
"""

import sys

from datasets import Dataset, DatasetDict

from tokbatch import sample
from tokbatch.frontends.hf_datasets import tokenize

TRAIN = [
    {"premise": "A man inspects a uniform.", "hypothesis": "The man is asleep.", "label": 2},
    {"premise": "Two dogs run over the grass.", "hypothesis": "There are animals outdoors.", "label": 0},
]
TEST = [{"premise": "It rains, and it has rained for days.", "hypothesis": "The streets are wet.", "label": 1}]


def main(arguments: list[str]) -> None:
    """Tokenize both splits, and show a row."""
    tokenizer = arguments[0] if arguments else sample.tokenizer_path()
    splits = DatasetDict({"train": Dataset.from_list(TRAIN), "test": Dataset.from_list(TEST)})
    tokenized, stats = tokenize(
        splits,
        tokenizer,
        column="premise",
        pair_column="hypothesis",
        max_length=16,  # the longer of the two is cut first
        remove_columns=["premise", "hypothesis"],
    )
    print(tokenized["train"].features)
    for name, split in tokenized.items():
        print(name, split[0])
        print(f"{stats[name].documents} pairs, {stats[name].truncated_documents} of them truncated")


if __name__ == "__main__":
    main(sys.argv[1:])
