"""How much the native engine remembers is a setting: it bounds its memory, and ids do not depend on it."""

from __future__ import annotations

import pickle
import subprocess
import sys
import textwrap
from typing import Any

import pyarrow as pa
import pytest

import tokbatch as tb
from corpora import write_config
from tokbatch import sample
from tokbatch.engine import native
from tokbatch.errors import ConfigError
from tokbatch.job import load_config
from tokbatch.job.prepare import load_tokenizer

pytestmark = pytest.mark.skipif(native.why_unavailable() is not None, reason="there is no native engine")
FEWEST = 4096


def load(**options: Any) -> tb.Tokenizer:
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine="native").with_options(**options)


def many_pretokens(count: int) -> pa.Array:
    """Texts of new pretokens, short ones and long ones, among some that come again and again."""
    words = (
        f" the {number:x}ab of number{number * 7919 % 1000003} and {'long' * 5}{number:b}" for number in range(count)
    )
    return pa.array(["".join(text) for text in zip(*[words] * 50, strict=False)])


def test_the_ids_are_the_same():
    texts = many_pretokens(20_000)  # some 80,000 pretokens: the small cache is forgotten again and again
    large, small = load(), load(cached_pretokens=FEWEST)
    ids = large.encode_batch(texts)
    for _ in range(2):
        assert small.encode_batch(texts).equals(ids)
        assert small.count_batch(texts).to_pylist() == [len(row) for row in ids]
    verdicts = small.verify_batch(texts, ids)
    assert verdicts.equals(large.verify_batch(texts, ids))
    assert verdicts.field("verdict").unique().to_pylist() == ["exact"]
    assert small.encode(texts[7].as_py()).ids == ids[7].as_py()


def test_memory_stays_bounded():
    """New words without end: a cache of a million pretokens grows with them, one of a few thousand does not."""
    program = f"""
        import sys
        import pyarrow as pa
        import tokbatch as tb

        def memory():
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024

        tok = tb.Tokenizer.from_file({str(sample.tokenizer_path())!r}, engine="native")
        tok = tok.with_options(cached_pretokens=int(sys.argv[1]))
        letters = str.maketrans("0123456789", "ghijklmnop")

        def encode(numbers):
            for first in numbers:
                words = (f"{{i * 2654435761 % 2**32:08x}}" for i in range(first, first + 10_000))
                tok.encode_batch(pa.array([" ".join(words).translate(letters)]))

        encode(range(0, 50_000, 10_000))
        before = memory()
        encode(range(50_000, 400_000, 10_000))
        print(memory() - before)
        """

    def growth(pretokens: int) -> float:
        call = [sys.executable, "-c", textwrap.dedent(program), str(pretokens)]
        return float(subprocess.run(call, check=True, capture_output=True, text=True).stdout)

    if sys.platform != "linux":
        pytest.skip("memory is read from /proc")
    assert growth(FEWEST) < 8 < 25 < growth(1 << 20)


def test_it_is_kept_where_a_tokenizer_goes():
    small = load(cached_pretokens=1 << 13)
    assert pickle.dumps(small) != pickle.dumps(load())
    again = pickle.loads(pickle.dumps(small))
    for tok in (small, again, small.with_options(padding=None), small.with_options(engine="auto")):
        assert tok.with_options(cached_pretokens=1 << 13) is tok
    assert load(cached_pretokens=1 << 13).with_options(cached_pretokens=1 << 14)._cached_pretokens == 1 << 14


@pytest.mark.parametrize("count", [0, FEWEST - 1, (1 << 26) + 1, -1, 1e6, True, "many"])
def test_other_numbers_are_refused(count):
    with pytest.raises(ConfigError, match="expected a whole number from 4,096 to 67,108,864") as caught:
        load(cached_pretokens=count)
    assert caught.value.where == "cached_pretokens"


def test_a_job_passes_it_on(tmp_path):
    assert load_tokenizer(load_config(write_config(tmp_path)))._cached_pretokens is None
    config = load_config(write_config(tmp_path, run__cached_pretokens=1 << 16))
    assert load_tokenizer(config)._cached_pretokens == 1 << 16
    with pytest.raises(ConfigError, match=r"run\.cached_pretokens"):
        load_config(write_config(tmp_path, run__cached_pretokens=5))
