"""fastokens: reads tokenizer.json; gives flat arrays."""

import importlib.metadata

import fastokens
import numpy as np


class Fastokens:
    """See `Peer`."""

    version = importlib.metadata.version("fastokens")
    share = 1.0

    def __init__(self, tokenizer):
        self.tokenizer = fastokens.Tokenizer.from_file(str(tokenizer))

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return self.tokenizer.encode_batch_flat(texts, add_special_tokens=False)

    def ids(self, encoded):
        return np.frombuffer(encoded[0], np.uint32).astype(np.int32)


def load(tokenizer):
    """Load the file as it is."""
    return Fastokens(tokenizer)
