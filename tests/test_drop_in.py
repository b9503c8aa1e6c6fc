"""The names that people know from `tokenizers` and `transformers`, with the answers that they know."""

import json

import pytest

import tokbatch as tb
from tokbatch import sample

UNIGRAM = {
    "version": "1.0",
    "added_tokens": [
        {"id": 0, "content": "<unk>", "special": True, "normalized": False}
        | {"single_word": False, "lstrip": False, "rstrip": False},
        {"id": 9, "content": "<new>", "special": False, "normalized": True}
        | {"single_word": False, "lstrip": False, "rstrip": False},
    ],
    "model": {
        "type": "Unigram",
        "unk_id": 0,
        "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -2.0]],
        "byte_fallback": False,
    },
}
DOCUMENTS = {"sample": sample.tokenizer_path().read_text(), "unigram": json.dumps(UNIGRAM)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_vocabulary(oracle, engine, name):
    tokenizer, reference = tb.Tokenizer.from_json(DOCUMENTS[name], engine), oracle.tokenizer(DOCUMENTS[name])
    for with_added_tokens in (True, False):
        assert tokenizer.get_vocab(with_added_tokens) == reference.get_vocab(with_added_tokens)
        assert tokenizer.get_vocab_size(with_added_tokens) == reference.get_vocab_size(with_added_tokens)
    assert tokenizer.get_vocab() == {tokenizer.id_to_token(i): i for i in tokenizer.get_vocab().values()}


class Fast:
    """What is used of a fast tokenizer of transformers."""

    def __init__(self, backend):
        self.backend_tokenizer = backend


@pytest.mark.parametrize("wrapped", [Fast, lambda backend: backend], ids=["transformers", "tokenizers"])
def test_a_tokenizer_of_another_library_as_it_is_at_the_moment(oracle, engine, wrapped):
    backend = oracle.tokenizer(DOCUMENTS["sample"])
    text = "a <mask> b and more"
    assert tb.Tokenizer.from_transformers(wrapped(backend), engine).encode(text).ids == backend.encode(text).ids
    backend.enable_truncation(4)
    backend.add_tokens(["more"])
    taken = tb.Tokenizer.from_transformers(wrapped(backend), engine)
    assert taken.encode(text).ids == backend.encode(text).ids
    assert taken.token_to_id("more") == backend.token_to_id("more") is not None
    assert taken.engine_name == engine


def test_a_slow_tokenizer_is_refused():
    with pytest.raises(tb.InputError, match="no fast tokenizer: dict"):
        tb.Tokenizer.from_transformers({})


def test_a_real_tokenizer_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    (tmp_path / "tokenizer.json").write_text(DOCUMENTS["sample"])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), eos_token="<over>")
    taken = tb.Tokenizer.from_transformers(fast)
    for text in ("a <mask> b", "the end<over>", ""):
        assert taken.encode(text).ids == fast(text)["input_ids"]
    assert taken.get_vocab() == fast.get_vocab()
