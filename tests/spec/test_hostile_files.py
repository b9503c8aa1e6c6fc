"""Files that somebody made to hurt: each loads or is refused, within seconds and within bounded memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import textwrap
import time

import pytest
from documents import FLAGS, WORD_LEVEL, document

from tokbatch.errors import SpecError
from tokbatch.spec.added_token_ids import added_token_ids
from tokbatch.spec.read import read_spec

TOP = '{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"'


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[" * 1_000_000,
        TOP + ',"x":' + "[" * 100_000 + "]" * 100_000 + "}}",
        TOP + '},"normalizer":' + '{"type":"Sequence","normalizers":[' * 50_000 + "]}" * 50_000 + "}",
        '{"model":{"type":"BPE","vocab":' + "[" * 100_000 + "]" * 100_000 + ',"merges":[]}}',
        '{"model":{"type":"BPE","vocab":{},"merges":' + "[" * 100_000 + "]" * 100_000 + "}}",
        '{"model":{"type":"Unigram","vocab":[["a",' + "9" * 1_000_000 + "]]}}",
        '{"model":{"type":"Unigram","vocab":[["a",1e' + "9" * 1_000_000 + "]]}}",
        '{"version":"' + "1" * 5_000_000 + '"}',
        "\0" * 100_000,
        '"' * 100_000,
        "{" * 100_000,
        " " * 5_000_000,
    ],
    ids=lambda text: text[:40],
)
def test_each_is_refused_within_seconds(text: str) -> None:
    start = time.monotonic()
    with pytest.raises(SpecError) as caught:
        read_spec(text)

    assert time.monotonic() - start < 5
    assert len(str(caught.value)) < 1000


def test_extreme_numbers_that_are_allowed() -> None:
    spec = read_spec(
        '{"model":{"type":"Unigram","vocab":[["a",0.' + "9" * 1_000_000 + '],["b",1e-' + "9" * 1000 + "]]}}"
    )

    assert spec.model.vocab == [("a", 1.0), ("b", 0.0)]  # 19 digits of the first count; they round to 1
    vocab = {"a": 2**32 - 1, "b": 0}
    assert read_spec(json.dumps(document(model={**WORD_LEVEL, "vocab": vocab}))).model.vocab == vocab


@pytest.mark.parametrize("token_id", [-1, 2**32, 2**63, 2**64, 10**400, 0.5], ids=lambda number: str(number)[:20])
@pytest.mark.parametrize("rows", [1, 20_000], ids=["short", "long"])
def test_ids_out_of_range_are_refused_with_their_token(token_id: float, rows: int) -> None:
    vocab = {**{f"t{number}": number for number in range(rows)}, "bad": token_id}
    with pytest.raises(SpecError) as caught:
        read_spec(json.dumps(document(model={**WORD_LEVEL, "vocab": vocab})))

    assert caught.value.where == "$.model.vocab.bad"


def test_fifty_thousand_added_tokens() -> None:
    entries = [{"id": number, "content": f"<{number}>", **FLAGS} for number in range(50_000)]
    start = time.monotonic()
    spec = read_spec(json.dumps(document(added_tokens=entries)))
    ids = added_token_ids(spec)

    assert time.monotonic() - start < 10
    assert len(spec.added_tokens) == 50_000
    assert ids[0][0] == len(WORD_LEVEL["vocab"])  # type: ignore[arg-type]
    assert ids[-1] == (50_001, spec.added_tokens[-1])


MILLION = """
    import json, resource, sys, time
    from tokbatch.errors import SpecError
    from tokbatch.spec.read import read_spec
    vocab = {f"t{number}": number for number in range(1_000_000)}
    merges = [["t1", "t2"], ["t3", "t4"]] * 250_000
    model = {
        "bpe": {"type": "BPE", "vocab": {**vocab, "t1t2": 1_000_000, "t3t4": 1_000_001}, "merges": merges},
        "bad": {"type": "BPE", "vocab": {**vocab, "t1t2": 1_000_000}, "merges": merges},
        "late": {"type": "WordLevel", "vocab": {**vocab, "z": -1}, "unk_token": "t1"},
        "unigram": {"type": "Unigram", "vocab": [[token, -0.1 * token_id] for token, token_id in vocab.items()]},
    }[sys.argv[1]]
    data = json.dumps({"model": model})
    del vocab, merges, model
    start = time.monotonic()
    try:
        answer = len(read_spec(data).model.vocab)
    except SpecError as error:
        answer = error.where
    print(json.dumps([answer, time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bpe", 1_000_002),
        ("unigram", 1_000_000),
        ("bad", "$.model.merges[1]"),
        ("late", "$.model.vocab.z"),
    ],
)
def test_a_million_tokens(kind: str, expected: object) -> None:
    """In a process of its own, whose memory is measured and limited."""
    gigabyte = 1 << 30
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MILLION), kind],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 * gigabyte, 4 * gigabyte)),
    )
    answer, seconds, kilobytes = json.loads(done.stdout)

    assert answer == expected
    assert seconds < 60
    assert kilobytes * 1024 < 2 * gigabyte
