"""What a config asks of its tokenizer, checked before any document is read."""

import json

import pytest

from corpora import write_config
from tokbatch import sample
from tokbatch.errors import ConfigError
from tokbatch.job import load_config
from tokbatch.job.prepare import build_transform, load_tokenizer


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["tokenizer.truncation={max_length=1}"],
            "max_length: truncation leaves 1 tokens, and 2 are put around each document",
        ),
        (
            ["tokenizer.truncation={max_length=3}", 'tokenizer.append=["<mask>", "<mask>"]'],
            "max_length: truncation leaves 3 tokens, and 4 are put around each document",
        ),
        (
            ["tokenizer.truncation={max_length=8, stride=6}"],
            "stride: a stride of 6 tokens, while 6 are left for the text",
        ),
    ],
)
def test_a_truncation_that_the_template_leaves_no_room_for_is_refused(tmp_path, settings, said):
    """The oracle would cut nothing, in silence, or fail on each long document."""
    config = load_config(write_config(tmp_path), settings)
    with pytest.raises(ConfigError) as caught:
        build_transform(config, load_tokenizer(config))
    assert str(caught.value).startswith(f"tokenizer.truncation.{said}")


def test_a_truncation_without_the_template_needs_less_room(tmp_path):
    settings = ["tokenizer.truncation={max_length=1}", "tokenizer.add_special_tokens=false"]
    config = load_config(write_config(tmp_path), settings)
    assert load_tokenizer(config).engine.spec.truncation.max_length == 1


def test_a_files_own_truncation_does_what_the_oracle_does(tmp_path, oracle):
    value = json.loads(sample.tokenizer_path().read_text(encoding="utf-8"))
    value["truncation"] = {"max_length": 1, "stride": 0, "strategy": "LongestFirst", "direction": "Right"}
    (tmp_path / "t.json").write_text(json.dumps(value), encoding="utf-8")
    config = load_config(write_config(tmp_path, tokenizer__file=str(tmp_path / "t.json")))
    transform = build_transform(config, load_tokenizer(config))
    ids = oracle.tokenizer(json.dumps(value)).encode("a text").ids
    assert len(ids) > 1, "it cuts nothing"
    assert load_tokenizer(config).encode_batch(["a text"]).to_pylist() == [ids]
    assert transform.engine.spec.truncation.max_length == 1
