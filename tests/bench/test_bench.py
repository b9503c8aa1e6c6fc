"""The benchmarks: their answers, what is wrong and what is missing, their tables, and the README's figures.

How fast anything is, is no test: a machine is busy when it likes.
"""

import ast
import json
import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokbatch import Tokenizer, sample

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
RIVALS = {"tokenizers", "gigatoken", "tiktoken", "sentencepiece", "tokie", "fastokens", "kitoken"}


@pytest.fixture(scope="module", autouse=True)
def modules():
    """Make the modules of bench/ importable, as they are for its scripts."""
    sys.path.insert(0, str(BENCH))
    yield
    sys.path.remove(str(BENCH))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a <mask> b", None, "", "Hello, world!"] * 20}), path)
    return str(path)


def measurement(corpus, peer="tokbatch_reference", stage="encode", **changes):
    from definitions import Measurement

    fields = {"megabytes": 100.0, "column": "text", "corpus": (corpus,), **changes}
    return Measurement(peer, stage, str(sample.tokenizer_path()), **fields)


def expected(corpus):
    texts = pq.read_table(corpus)["text"].drop_null().combine_chunks()
    return Tokenizer.from_file(sample.tokenizer_path()).encode_batch(texts, add_special_tokens=False).flatten()


def test_the_text_is_whole_documents_from_the_beginning(corpus):
    from definitions import read_texts

    whole, size = read_texts(measurement(corpus), 1.0)
    assert (len(whole), size) == (60, 20 * 23)
    assert whole.null_count == 0
    part, size = read_texts(measurement(corpus, megabytes=0.0001), 0.5)
    assert (len(part), size) == (7, 56)
    assert len(read_texts(measurement(corpus, rows=3), 0.5)[0]) == 3


@pytest.mark.parametrize("stage", ["encode", "count", "verify", "decode", "write"])
def test_a_measurement_has_times_and_its_answer(corpus, stage):
    from run import measure_apart

    outcome = measure_apart(measurement(corpus, stage=stage, rows=60))
    assert outcome["answer"]["tokens"] == len(expected(corpus))
    assert outcome["bytes"] == 20 * 23
    for name in ("cold", "warm"):
        assert outcome[name]["wall"] > 0
        assert outcome[name]["cpu"] > 0


def test_the_split_stage_gives_an_id_a_pretoken(corpus):
    from run import measure_apart

    outcome = measure_apart(measurement(corpus, stage="split", rows=60))
    stages = Tokenizer.from_file(sample.tokenizer_path()).engine.trace("Hello, world!", False)
    assert next(s.pieces for s in stages if s.name == "pretokens") == ["Hello", ",", "Ġworld", "!"]
    assert outcome["answer"]["tokens"] == 20 * (5 + 0 + 4), "a, <, mask, >, b are pretokens where nothing is added"


def test_the_oracle_is_asked_where_no_answer_is_on_record(corpus, monkeypatch):
    import run

    monkeypatch.setattr(run, "_ANSWERS", {})
    wanted = measurement(corpus)
    result = run.compare([wanted], rounds=1)
    entry = result["libraries"]["tokbatch_reference"]
    assert entry["tokens"] == len(expected(corpus)[: entry["tokens"]])
    assert len(entry["rounds"]) == 1
    assert "MB/s" in run.render_result(result)
    assert f"{entry['bytes'] / 1e6 / entry['rounds'][0]['cold']['wall']:.1f}" in run.render_result(result)


def test_what_is_wrong_is_marked_and_not_timed(corpus, monkeypatch):
    import run
    from definitions import Answer, known_answers

    class Always(dict):
        def __missing__(self, key):
            return Answer(1, "")

        def __contains__(self, key):
            return True

    monkeypatch.setattr(run, "_ANSWERS", Always(known_answers() or {"": Answer(0, "")}))
    result = run.compare([measurement(corpus)], rounds=3)
    entry = result["libraries"]["tokbatch_reference"]
    assert entry["rounds"] == []
    assert "the right ones are 1" in entry["wrong"]
    line = run.render_result(result).splitlines()[1]
    assert "WRONG: " in line
    assert "warm" not in line


def test_a_library_that_is_not_there_is_named(corpus, monkeypatch):
    import peers
    import run

    with pytest.raises(peers.Unfit, match="not installed"):
        peers.load_peer("no_such_library", sample.tokenizer_path())
    monkeypatch.setattr(run, "measure_apart", lambda wanted: {"unfit": "not installed: No module named 'x'"})
    assert "not installed" in run.render_result(run.compare([measurement(corpus)], rounds=2))


class Panic(BaseException):
    """As PyO3 raises it."""


@pytest.mark.parametrize("error", [RuntimeError, Panic])
def test_a_refusal_is_told_without_the_places_in_the_source_of_a_library(corpus, monkeypatch, error):
    import peers
    import run

    class Refusing:
        @staticmethod
        def load(tokenizer):
            raise error("Unsupported model: it\n\nLocation:\n    src/load_tokenizer/hf.rs:241:24")

    monkeypatch.setitem(sys.modules, "peers.refusing_peer", Refusing)
    with pytest.raises(peers.Unfit, match=r"^refused: Unsupported model: it$"):
        peers.load_peer("refusing", sample.tokenizer_path())
    assert peers.first_line(error()) == error.__name__
    monkeypatch.setattr(run, "measure_apart", lambda wanted: {"unfit": "refused: it"})
    assert "refused: it" in run.render_result(run.compare([measurement(corpus)], rounds=2))


def test_a_failure_while_it_measures_is_told(corpus, tmp_path):
    from run import measure_apart

    (tmp_path / "t.json").write_text("{}")
    outcome = measure_apart(replace(measurement(corpus, peer="tokbatch"), corpus=(str(tmp_path / "none"),)))
    assert outcome["unfit"].startswith("failed: FileNotFoundError: ")
    outcome = measure_apart(replace(measurement(corpus), tokenizer=str(tmp_path / "t.json")))
    assert outcome["unfit"].startswith("refused: ")


def test_who_is_not_measured_is_named_below_the_table():
    from readme_figures import _reasons

    def result(tokenizer, **libraries):
        return {"tokenizer": tokenizer, "libraries": libraries}

    times = {"rounds": [], "bytes": 1, "tokens": 1}
    results = [result("a", x=times, y={"unfit": "no"}), result("b", x={"unfit": "not it"}, y={"unfit": "no"})]
    assert _reasons(results) == ["Not measured:", "", "- y, a, b: no", "- x, b: not it", ""]
    assert _reasons([result("a", x=times)]) == []


@pytest.mark.parametrize("kind", ["Unigram", "BPE"])
def test_a_model_of_sentencepiece_is_built_from_a_file(tmp_path, kind):
    """Where it is installed, in the venv of the benchmarks: it gives the ids of `tokenizers`."""
    pytest.importorskip("sentencepiece")
    from peers.sentencepiece_peer import load

    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": kind == "Unigram"}
    bytes_ = {f"<0x{byte:02X}>": byte for byte in range(256)}
    words = {token: 256 + index for index, token in enumerate(["<unk>", "▁", "a", "b", "▁a", "ab"])}
    models = {
        "Unigram": {"unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -3.0], ["▁a", -1.0], ["b", -2.0]]},
        "BPE": {"vocab": bytes_ | words, "merges": ["▁ a", "a b"], "unk_token": "<unk>", "byte_fallback": True},
    }
    value = {"added_tokens": [], "pre_tokenizer": metaspace, "model": {"type": kind, **models[kind]}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(value))
    texts = pa.array(["ab a b", "b", "é", ""])
    peer = load(path)
    expected = Tokenizer.from_file(path).encode_batch(texts, add_special_tokens=False).flatten().to_pylist()
    assert peer.ids(peer.encode(peer.prepare(texts))).tolist() == expected


def test_tiktoken_gets_only_what_it_can_express():
    """Its adapter is pure Python up to the last step: the file's shape is looked at first."""
    pytest.importorskip("tiktoken")
    from peers.tiktoken_peer import load

    assert load(sample.tokenizer_path()).version


def test_peers_are_imported_only_when_they_are_measured():
    code = "import peers, definitions, run, job, measure, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=BENCH, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "peers" in loaded
    assert not loaded & (RIVALS | {"awkward"})


def test_every_peer_has_a_file_and_only_it_imports_the_library():
    from peers import NAMES

    assert {f"{name}_peer" for name in NAMES} == {path.stem for path in (BENCH / "peers").glob("*_peer.py")}
    for path in BENCH.rglob("*.py"):
        if ".venv" in path.parts:
            continue
        names = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [])
        }
        rivals = names & RIVALS
        own = "tokenizers" if path.name == "datasets_map.py" else path.stem.removesuffix("_peer")
        assert rivals <= {own}, path


def test_answers_on_record_are_right(corpus):
    """Those of the sample: what `make bench` measures by default."""
    from definitions import Measurement, answer_of, known_answers, place_of, read_texts

    paths = tuple(str(path) for path in sample.corpus_paths())
    texts, _ = read_texts(Measurement("", "", "", paths, "text", 100.0), 1.0)
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    ids = tokenizer.encode_batch(texts, add_special_tokens=False).flatten().to_numpy()
    assert known_answers()[place_of(sample.tokenizer_path(), texts, "encode")] == answer_of(ids)


def test_the_whole_command_against_a_copy_job(corpus, tmp_path):
    from run import render_job

    from job import run_job

    figures = run_job(tmp_path, str(sample.tokenizer_path()), [corpus], "text", 1, with_map=False)
    assert set(figures) == {"tokbatch run", "copy job"}
    assert pq.read_table(tmp_path / "copy0.parquet").num_rows == 80
    record = {"tokenizer": "t", "corpus": ["a"], "workers": 1, "bytes": 460, "rounds": [figures]}
    ratio = figures["tokbatch run"]["wall"] / figures["copy job"]["wall"]
    assert f"tokbatch takes {ratio:.2f} times as long" in render_job(record)


def test_the_figures_of_the_readme_are_those_of_its_record():
    import readme_figures

    text = readme_figures.README.read_text(encoding="utf-8")
    assert readme_figures.written(text) == text
    name = readme_figures.BLOCK.search(text)[1]
    record = json.loads((BENCH.parent / name).read_text())
    assert record["format"] == 1
    assert not any("wrong" in result["libraries"]["tokbatch"] for result in record["results"])
    record["results"][0]["libraries"]["tokbatch"]["bytes"] *= 2
    assert readme_figures.render_figures(record, name) not in text


def test_text_of_the_long_run_is_ever_new_and_the_same_for_a_seed():
    import itertools

    from long_run import documents

    first, again, other = (list(itertools.islice(documents(seed), 300)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    words = [set(" ".join(part).split()) for part in (first[:150], first[150:])]
    assert len(words[1] - words[0]) > 0.2 * len(words[1]), "half of the way, new words still come"
    assert len(set(first)) == 300


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_of_workers_is_told_by_kind():
    from shared_memory import KINDS, memory

    found = memory(os.getpid())
    rollup = pathlib.Path("/proc/self/smaps_rollup").read_text()
    total = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    assert set(found) <= set(KINDS)
    assert sum(found.values()) / 1024 == pytest.approx(total, rel=0.1)
    assert found["heap"] > found["code"] > 0
    call = [
        sys.executable,
        str(BENCH / "shared_memory.py"),
        str(sample.tokenizer_path()),
        "--megabytes",
        "1",
        "--workers",
        "2",
    ]
    lines = subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.rsplit(maxsplit=6)[0] for line in lines[1:]] == [
        "worker 1, ready",
        "worker 1, at work, added",
        "worker 2, ready",
        "worker 2, at work, added",
    ]
