"""tiktoken: knows byte-level BPE whose ids are the ranks of its merges; its vocabulary is built from the file here."""

import json

import numpy as np
import tiktoken

from peers import Unfit

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


class Tiktoken:
    """See `Peer`."""

    version = tiktoken.__version__
    share = 1.0

    def __init__(self, encoding):
        self.encoding = encoding

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return [self.encoding.encode_to_numpy(text, allowed_special="all") for text in texts]

    def ids(self, encoded):
        return np.concatenate([ids.astype(np.int32) for ids in encoded] or [np.zeros(0, np.int32)])


def load(tokenizer):
    """Build an encoding from a tokenizer.json of the one shape that tiktoken has."""
    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    model = content["model"]
    normalizer = content.get("normalizer") or {}
    is_normalized = bool(normalizer.get("normalizers", normalizer))
    if model.get("type", "BPE") != "BPE" or model.get("byte_fallback") or is_normalized or "merges" not in model:
        raise Unfit("only byte-level BPE without a normalizer")
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    bytes_of = _byte_alphabet()
    try:
        ranks = {
            bytes(bytes_of[character] for character in token): token_id
            for token, token_id in model["vocab"].items()
            if token not in added
        }
    except KeyError:
        raise Unfit("a vocabulary that is not byte-level") from None
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    places = [model["vocab"]["".join(pair)] for pair in merges]
    if places != sorted(places):
        raise Unfit("merges whose ranks are not the order of the ids")
    encoding = tiktoken.Encoding(
        tokenizer.stem, pat_str=_pattern(content["pre_tokenizer"]), mergeable_ranks=ranks, special_tokens=added
    )
    return Tiktoken(encoding)


def _pattern(pre_tokenizer):
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    splits = [step["pattern"]["Regex"] for step in steps if step["type"] == "Split" and "Regex" in step["pattern"]]
    if not splits and any(step["type"] == "ByteLevel" and step.get("use_regex", True) for step in steps):
        return GPT2
    if len(splits) != 1 or any(step["type"] not in ("Split", "ByteLevel") for step in steps):
        raise Unfit("not one Split pattern")
    return splits[0]


def _byte_alphabet():
    """Give the byte of each character of the byte alphabet: printable bytes are themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + place): b for place, b in enumerate(others)}
