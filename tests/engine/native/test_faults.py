"""The native engine among threads and processes, and after a fault in it: a panic is an error like any other."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tokbatch import Tokenizer, sample
from tokbatch.engine import build_engine, native
from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import Engine
from tokbatch.errors import TokbatchError
from tokbatch.spec.read import load_spec

if native.why_unavailable():
    pytest.skip(f"no native engine: {native.why_unavailable()}", allow_module_level=True)

TEXT = "Don't  stop <mask> 123 中文 é"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build_engine(load_spec(sample.tokenizer_path()), "native")


@pytest.fixture
def fault() -> Iterator[None]:
    native._native.set_for_test(None, True)
    yield
    native._native.set_for_test()


def calls(engine: Engine, text: str = TEXT) -> dict[str, Callable[[], Any]]:
    """All that an engine can be asked about texts."""
    texts = TextColumn.from_texts([text, text[:7]])
    ids = [[5, 6, 7], [8]]
    return {
        "encode_batch": lambda: list(engine.encode_batch(texts, True)),
        "count_batch": lambda: engine.count_batch(texts, True).tolist(),
        "encode": lambda: engine.encode(text, text[:9], True),
        "decode": lambda: engine.decode(ids[0], False),
        "trace": lambda: engine.trace(text, True),
        "verify_batch": lambda: engine.verify_batch(texts, IdColumn.from_lists(ids), True),
    }


@pytest.mark.parametrize("name", ["encode_batch", "count_batch", "encode", "decode", "trace", "verify_batch"])
def test_a_panic_is_an_error_and_the_engine_goes_on(engine, name: str):
    call = calls(engine)[name]
    before = call()
    native._native.set_for_test(None, True)
    try:
        with pytest.raises(TokbatchError, match="a fault in the native engine: a test asked for it") as caught:
            call()
    finally:
        native._native.set_for_test()
    assert caught.value.code == "native-fault"
    assert call() == before


@pytest.mark.usefixtures("fault")
def test_a_panic_does_not_end_the_other_threads(engine):
    def work(number: int) -> str:
        try:
            list(engine.encode_batch(TextColumn.from_texts([TEXT * number]), True))
        except TokbatchError as error:
            return error.code
        return "no error"

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(1, 30))) == {"native-fault"}


def test_threads_get_the_same_answers_as_one(engine):
    chance = random.Random(3)
    texts = ["".join(chance.choices([*TEXT, " <mask>", "\n"], k=chance.randint(1, 300))) for _ in range(40)]
    alone = [{name: call() for name, call in calls(engine, text).items()} for text in texts]

    def work(number: int) -> dict[str, Any]:
        return {name: call() for name, call in calls(engine, texts[number % len(texts)]).items()}

    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(work, range(4 * len(texts))))
    assert together == alone * 4


def test_other_threads_of_the_interpreter_run_meanwhile(engine):
    column = TextColumn.from_texts(["".join(random.Random(4).choices(TEXT, k=4_000_000))])
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        engine.encode_batch(column, True)
        ended.set()

    switch_interval = sys.getswitchinterval()
    # With the lock held over the whole call this thread would come to its turn once, after it.
    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    turns = 0
    while not ended.is_set():
        turns += 1
        ended.wait(switch_interval / 10)
    thread.join()
    assert turns > 10


FORKED = """
import os, sys
from tokbatch import Tokenizer, sample
tokenizer = Tokenizer.from_file(sample.tokenizer_path(), engine="native")
texts = ["Don't stop", "a <mask> b"] * 50
before = tokenizer.encode_batch(texts).to_pylist()
child = os.fork()
if child == 0:
    os._exit(0 if tokenizer.encode_batch(texts).to_pylist() == before else 3)
_, status = os.waitpid(child, 0)
assert tokenizer.encode_batch(texts).to_pylist() == before
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_after_a_fork_both_processes_go_on():
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=120).returncode == 0


SPAWNED = """
import pickle, sys
tokenizer = pickle.load(sys.stdin.buffer)
assert tokenizer.engine_name == "native"
sys.stdout.write(repr(tokenizer.encode_batch(["Don't stop", "a <mask> b"]).to_pylist()))
"""


def test_another_process_gives_the_same_ids():
    tokenizer = Tokenizer.from_file(sample.tokenizer_path(), engine="native")
    other = subprocess.run(
        [sys.executable, "-c", SPAWNED], input=pickle.dumps(tokenizer), capture_output=True, timeout=120, check=True
    )
    assert other.stdout.decode() == repr(tokenizer.encode_batch(["Don't stop", "a <mask> b"]).to_pylist())
