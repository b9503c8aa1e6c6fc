"""tokbatch itself: the native engine, columns in and out, in batches of 512 rows as a job has them."""

import numpy as np
import pyarrow as pa

import tokbatch as tb

BATCH_ROWS = 512


class Tokbatch:
    """See `Peer`. The further methods are stages that only tokbatch is measured in."""

    version = tb.__version__
    share = 1.0

    def __init__(self, tokenizer, engine="native"):
        self.tokenizer = tb.Tokenizer.from_file(tokenizer, engine=engine).with_options(truncation=None, padding=None)

    def prepare(self, texts):
        return [texts.slice(start, BATCH_ROWS) for start in range(0, len(texts), BATCH_ROWS)]

    def encode(self, batches):
        return [self.tokenizer.encode_batch(batch, add_special_tokens=False) for batch in batches]

    def ids(self, encoded):
        return np.concatenate([array.flatten().to_numpy() for array in encoded] or [np.zeros(0, np.int32)])

    def count(self, batches):
        return sum(pa.compute.sum(self.tokenizer.count_batch(batch, False)).as_py() or 0 for batch in batches)

    def verify(self, batches, encoded):
        return [
            self.tokenizer.verify_batch(*pair, add_special_tokens=False) for pair in zip(batches, encoded, strict=True)
        ]

    def decode(self, encoded):
        return [self.tokenizer.decode_batch(array, skip_special_tokens=False) for array in encoded]


def load(tokenizer):
    """Load the native engine."""
    return Tokbatch(tokenizer)
