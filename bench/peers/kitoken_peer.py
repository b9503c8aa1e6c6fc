"""kitoken: reads tokenizer.json; gives lists of ids."""

import importlib.metadata

import kitoken
import numpy as np


class Kitoken:
    """See `Peer`."""

    version = importlib.metadata.version("kitoken")
    share = 1.0

    def __init__(self, tokenizer):
        self.tokenizer = kitoken.Kitoken.from_tokenizers_file(str(tokenizer))

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return self.tokenizer.encode_all(texts, True)

    def ids(self, encoded):
        return np.concatenate([np.array(ids, np.int32) for ids in encoded] or [np.zeros(0, np.int32)])


def load(tokenizer):
    """Load the file as it is. Special tokens in a text are tokens, as with `tokenizers`."""
    return Kitoken(tokenizer)
