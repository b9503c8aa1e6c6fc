"""tokie: reads tokenizer.json; gives flat arrays."""

import importlib.metadata

import numpy as np
import tokie


class Tokie:
    """See `Peer`."""

    version = importlib.metadata.version("tokie")
    share = 1.0

    def __init__(self, tokenizer):
        self.tokenizer = tokie.Tokenizer.from_json(str(tokenizer))

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return self.tokenizer.encode_batch_flat(texts, add_special_tokens=False)

    def ids(self, encoded):
        return np.asarray(encoded[0], np.int32)


def load(tokenizer):
    """Load the file as it is."""
    return Tokie(tokenizer)
