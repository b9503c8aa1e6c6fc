"""gigatoken: reads tokenizer.json; gives awkward arrays."""

import importlib.metadata

import awkward
import gigatoken
import numpy as np


class Gigatoken:
    """See `Peer`."""

    version = importlib.metadata.version("gigatoken")
    share = 1.0

    def __init__(self, tokenizer):
        self.tokenizer = gigatoken.Tokenizer(str(tokenizer))

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return self.tokenizer.encode_batch(texts, parallel=False)

    def ids(self, encoded):
        return awkward.to_numpy(awkward.flatten(encoded)).astype(np.int32, copy=False)


def load(tokenizer):
    """Load the file as it is."""
    return Gigatoken(tokenizer)
