"""`tokenize` of whole datasets: the cache of `datasets` itself, its processes, its streams, and the statistics."""

import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading

import datasets
import pyarrow as pa
import pytest
from datasets.fingerprint import Hasher

from corpora import DATASET_TEXTS
from tokbatch import Tokenizer, sample
from tokbatch.batch.stats import Stats
from tokbatch.batch.transform import Transform, TransformOptions
from tokbatch.errors import ConfigError, EncodeError, InputError
from tokbatch.frontends import hf_map
from tokbatch.frontends.hf_datasets import map_function, tokenize

pytestmark = pytest.mark.usefixtures("quiet_datasets")
INT32 = datasets.List(datasets.Value("int32"))


@pytest.fixture(scope="module")
def expected_stats(tokenizer):
    transform = Transform(TransformOptions(), tokenizer)
    return transform.transform(pa.record_batch({"text": pa.array(DATASET_TEXTS)}))[1]


@pytest.fixture
def on_disk(dataset, tmp_path):
    """A dataset with files, which is what `datasets` caches for."""
    dataset.save_to_disk(tmp_path / "saved")
    return datasets.load_from_disk(tmp_path / "saved")


def test_a_dataset(dataset, tokenizer, expected, expected_stats):
    tokenized, stats = tokenize(dataset, tokenizer, batch_size=7)
    assert tokenized.column_names == ["text", "n", "input_ids"]
    assert tokenized.features == datasets.Features({**dataset.features, "input_ids": INT32})
    assert tokenized["input_ids"] == expected
    assert tokenized["text"] == DATASET_TEXTS
    assert stats == expected_stats
    assert stats.lstrip_first_rows[:3] == (1, 5, 7)


def test_a_choice_of_rows_is_done_in_whole_batches(dataset, tokenizer, expected, monkeypatch):
    """It comes as a table with a chunk a row, and would take fifty times as long."""
    sizes = []
    real = Transform.transform

    def transform(self, batch, *arguments):
        sizes.append(batch.num_rows)
        return real(self, batch, *arguments)

    monkeypatch.setattr(Transform, "transform", transform)
    chosen = dataset.filter(lambda n: n % 2 == 1, input_columns="n")
    tokenized, stats = tokenize(chosen, tokenizer, batch_size=20)
    assert tokenized["input_ids"] == expected[1::2]
    assert stats.documents == sum(sizes) - sizes[0] == 60
    assert sizes[1:] == [20, 20, 20]


@pytest.mark.parametrize("num_proc", [1, 2, 3])
def test_processes_after_the_tokenizer_was_used(dataset, tokenizer, expected, expected_stats, num_proc):
    tokenizer.encode_batch(DATASET_TEXTS)
    tokenized, stats = tokenize(dataset, tokenizer, num_proc=num_proc, remove_columns="text", batch_size=10)
    assert tokenized.column_names == ["n", "input_ids"]
    assert tokenized["input_ids"] == expected
    assert stats == expected_stats


SPAWNED = """
import multiprocess, sys, datasets
from tokbatch import Tokenizer, sample
from tokbatch.frontends.hf_datasets import tokenize
if __name__ == "__main__":
    multiprocess.set_start_method(sys.argv[1])
    datasets.disable_progress_bars()
    tokenizer = Tokenizer.from_file(sample.tokenizer_path(), engine=sys.argv[2])
    tokenizer.encode_batch(["used before"] * 1000)
    dataset = datasets.Dataset.from_dict({"text": [None, "a <mask> b", "c"] * 50})
    tokenized, stats = tokenize(dataset, tokenizer, num_proc=2)
    assert tokenized["input_ids"] == tokenizer.encode_batch(dataset["text"][:]).to_pylist()
    print(stats.documents, stats.null_documents, stats.lstrip_chars)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_start_methods(tmp_path, engine, method):
    script = tmp_path / "script.py"
    script.write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, script, method, engine], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["150", "50", "50"]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_processes_that_are_forked_while_threads_use_the_tokenizer(dataset, tokenizer, expected):
    """A lock of the tokenizer that some thread holds at the fork would be held in the child for ever."""
    over = threading.Event()

    def use():
        while not over.is_set():
            tokenizer.encode_batch(DATASET_TEXTS * 20)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            tokenized, _ = tokenize(dataset, tokenizer, num_proc=2, load_from_cache_file=False)
            assert tokenized["input_ids"] == expected
    finally:
        over.set()
        for thread in threads:
            thread.join()


class Counted:
    """Counts the batches that reach the transform in this process."""

    def __init__(self, monkeypatch):
        self.batches = 0
        real = hf_map.MapFunction._table

        def table(*arguments):
            self.batches += 1
            return real(*arguments)

        monkeypatch.setattr(hf_map.MapFunction, "_table", table)


FRESH = """
import json, sys, time
real = time.time
time.time = lambda: real() + 40 * 86400
import datasets
from tokbatch.frontends.hf_datasets import tokenize
from tokbatch.frontends import hf_map
from pathlib import Path
def no_table(*_): raise SystemExit("the cache was not hit")
hf_map.MapFunction._table = no_table
datasets.disable_progress_bars()
datasets.config.HF_DATASETS_CACHE = Path(sys.argv[3])
tokenized, stats = tokenize(datasets.load_from_disk(sys.argv[1]), sys.argv[2], append=["<mask>"])
print(json.dumps([tokenized["input_ids"][:], stats.to_json()]))
"""


def test_the_cache_is_hit_by_whoever_asks_for_the_same(on_disk, tokenizer, monkeypatch, tmp_path):
    counted = Counted(monkeypatch)
    first, stats = tokenize(on_disk, tokenizer, append=["<mask>"])
    assert counted.batches > 0
    made = counted.batches
    used = pickle.loads(pickle.dumps(tokenizer))
    used.encode_batch(DATASET_TEXTS)
    auto = [sample.tokenizer_path(), used, Tokenizer.from_file(sample.tokenizer_path(), "auto")]
    for again in auto:
        for num_proc in (None, 2):
            cached, cached_stats = tokenize(on_disk, again, append=("<mask>",), num_proc=num_proc)
            assert cached.cache_files == first.cache_files
            assert cached_stats == stats
    assert counted.batches == made

    # In a new interpreter, in another folder, on another day, with another seed for its hashes and another copy of the
    # tokenizer's file.
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copyfile(sample.tokenizer_path(), tmp_path / "elsewhere/other-name.json")
    os.utime(copy, (1, 1))
    arguments = [tmp_path / "saved", copy, tmp_path / "cache"]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path / "elsewhere",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ids, told = json.loads(done.stdout.splitlines()[-1])
    assert ids == first["input_ids"][:]
    assert Stats.from_json(told) == stats


def other_tokenizer():
    """The sample's tokenizer with one token in another place of the vocabulary."""
    content = json.loads(sample.tokenizer_path().read_text())
    vocab = content["model"]["vocab"]
    vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
    return Tokenizer.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("tokenizer", "options"),
    [
        ("other", {}),
        ("with special tokens as text", {}),
        ("sample", {"add_special_tokens": False}),
        ("sample", {"prepend": ["<mask>"]}),
        ("sample", {"append": ["<mask>"]}),
        ("sample", {"template": {"<s>": "<mask>"}}),
        ("sample", {"max_length": 3}),
        ("sample", {"id_type": "uint16"}),
        ("sample", {"id_column": "ids"}),
        ("sample", {"round_trip_column": "found"}),
        ("sample", {"round_trip": "off"}),
        ("sample", {"on_bad_row": "null"}),
    ],
)
def test_the_cache_is_not_hit_where_something_else_would_come_out(on_disk, monkeypatch, tokenizer, options):
    tokenize(on_disk, sample.tokenizer_path())
    counted = Counted(monkeypatch)
    given = {
        "other": other_tokenizer,
        "with special tokens as text": lambda: Tokenizer.from_file(sample.tokenizer_path(), encode_special_tokens=True),
        "sample": sample.tokenizer_path,
    }[tokenizer]()
    tokenize(on_disk, given, **options)
    assert counted.batches > 0


def changed(content, path, value):
    """A tokenizer of the sample's file with another value at one place of it."""
    content = json.loads(json.dumps(content))
    *way, last = path
    place = content
    for key in way:
        place = place[key]
    place[last] = value
    return Tokenizer.from_json(json.dumps(content))


def test_each_change_of_the_file_that_can_change_ids_has_a_fingerprint_of_its_own():
    content = json.loads(sample.tokenizer_path().read_text())
    mask = next(i for i, token in enumerate(content["added_tokens"]) if token["content"] == "<mask>")
    merges = content["model"]["merges"]
    changes = [
        (("version",), content["version"]),  # no change
        (("truncation",), {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}),
        (("truncation",), {"direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 0}),
        (("normalizer",), {"type": "Lowercase"}),
        (("post_processor",), None),
        (("model", "merges"), [merges[1], merges[0], *merges[2:]]),
        (("model", "ignore_merges"), not content["model"].get("ignore_merges", False)),
        *((("added_tokens", mask, flag), not content["added_tokens"][mask][flag]) for flag in ("lstrip", "normalized")),
        (("added_tokens", mask, "single_word"), True),
    ]
    tokenizers = [changed(content, path, value) for path, value in changes]
    same = Tokenizer.from_json(json.dumps(content))
    hashes = [Hasher.hash(map_function(tokenizer)) for tokenizer in [same, *tokenizers]]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == len(changes)


def test_the_cache_is_not_hit_by_another_version(on_disk, monkeypatch):
    tokenize(on_disk, sample.tokenizer_path())
    counted = Counted(monkeypatch)
    monkeypatch.setattr(hf_map.CountingMapFunction.__init__, "__defaults__", ("0.0.0-other", ()))
    tokenize(on_disk, sample.tokenizer_path())
    assert counted.batches > 0


def test_a_dict_of_splits(dataset, tokenizer, expected):
    splits = datasets.DatasetDict({"train": dataset, "test": dataset.select(range(4)), "none": dataset.select([])})
    tokenized, stats = tokenize(splits, tokenizer, remove_columns=["text"])
    assert isinstance(tokenized, datasets.DatasetDict)
    assert tokenized["train"]["input_ids"] == expected
    assert tokenized["test"]["input_ids"] == expected[:4]
    assert tokenized["none"].features == tokenized["train"].features
    assert {name: each.documents for name, each in stats.items()} == {"train": 120, "test": 4, "none": 0}
    assert stats == {name: tokenize(split, tokenizer).stats for name, split in splits.items()}


@pytest.mark.parametrize("kind", ["dataset", "splits", "no rows", "stream", "rows without types"])
def test_no_column_is_overwritten(tokenizer, kind):
    rows = {"text": ["a"], "input_ids": [7], "token_type_ids": [1], "n": [3]}
    given = datasets.Dataset.from_dict(rows)
    if kind == "no rows":
        given = given.select([])
    elif kind == "splits":
        given = datasets.DatasetDict({"train": given.select_columns("text"), "test": given})
    elif kind == "stream":
        given = given.to_iterable_dataset()
    elif kind == "rows without types":
        given = datasets.IterableDataset.from_generator(lambda: iter([{k: v[0] for k, v in rows.items()}]))
    for option, name, options in (
        ("id_column", "input_ids", {}),
        ("round_trip_column", "n", {"id_column": "ids", "round_trip_column": "n"}),
        ("pair_column", "token_type_ids", {"id_column": "ids", "pair_column": "text"}),
    ):
        with pytest.raises(ConfigError, match=f"{option}: there is a column '{name}' already") as caught:
            tokenize(given, tokenizer, **options)
        assert "put it into remove_columns" in caught.value.hint
    with pytest.raises(ConfigError, match="two new columns would be called 'x'"):
        tokenize(given, tokenizer, id_column="x", round_trip_column="x")
    if kind != "splits":
        tokenized = tokenize(given, tokenizer, remove_columns=["input_ids"]).dataset
        expected = [] if kind == "no rows" else [tokenizer.encode("a").ids]
        assert [row["input_ids"] for row in tokenized] == expected
        # The ids again, by name: what was there is gone.
        assert [set(row) for row in tokenized] == [{"text", "token_type_ids", "n", "input_ids"}] * len(expected)


def test_the_format_stays(dataset, tokenizer):
    chosen = dataset.with_format("numpy", columns=["n"])
    tokenized, _ = tokenize(chosen, tokenizer)
    assert tokenized.format["type"] == "numpy"
    assert tokenized.format["columns"] == ["n", "input_ids"]
    assert tokenized[3]["input_ids"].tolist() == tokenizer.encode(DATASET_TEXTS[3]).ids
    assert tokenize(dataset.with_format("arrow"), tokenizer).dataset.format["type"] == "arrow"


def test_round_trip_columns(dataset, tokenizer):
    tokenized, stats = tokenize(dataset, tokenizer, round_trip_column="round_trip", batch_size=11)
    ids = tokenizer.encode_batch(DATASET_TEXTS)
    assert tokenized["round_trip"] == tokenizer.verify_batch(DATASET_TEXTS, ids).to_pylist()
    assert set(tokenized.features["round_trip"]) == {"verdict", "lstrip_chars", "rstrip_chars", "unk_tokens"}
    kept = tokenized.filter(lambda found: found is not None and found["verdict"] == "exact", input_columns="round_trip")
    assert len(kept) == stats.exact_documents > 0
    # What was truncated has lost text by request, and has no verdict.
    cut, stats = tokenize(dataset, tokenizer, round_trip_column="round_trip", max_length=4)
    assert cut["round_trip"][3] is None
    assert cut["input_ids"][3] == [*tokenizer.encode(DATASET_TEXTS[3]).ids[:3], tokenizer.token_to_id("</s>")]
    assert stats.truncated_documents > 0


def test_pairs(tokenizer, oracle):
    rows = {"premise": ["a b", None, "Hello, world!", ""], "hypothesis": ["c", "d", "<mask> e f g", None]}
    dataset = datasets.Dataset.from_dict(rows)
    tokenized, stats = tokenize(dataset, tokenizer, column="premise", pair_column="hypothesis", max_length=9)
    reference = oracle.tokenizer(sample.tokenizer_path().read_text())
    reference.enable_truncation(9)
    whole = [reference.encode(rows["premise"][row], rows["hypothesis"][row]) for row in (0, 2)]
    assert tokenized["input_ids"] == [whole[0].ids, None, whole[1].ids, None]
    assert tokenized["token_type_ids"] == [whole[0].type_ids, None, whole[1].type_ids, None]
    assert tokenized.features["input_ids"] == INT32
    assert (stats.documents, stats.null_documents, stats.truncated_documents) == (4, 2, bool(whole[1].overflowing))
    assert stats.tokens == sum(len(encoding.ids) for encoding in whole)
    assert stats.added_tokens == sum(
        mask for e in whole for mask, word in zip(e.special_tokens_mask, e.word_ids, strict=True) if word is None
    )
    with pytest.raises(ConfigError, match="pair_column"):
        tokenize(dataset, tokenizer, column="premise", pair_column="hypothesis", append=["<mask>"])


@pytest.mark.parametrize("source", ["shards", "generator"])
def test_a_stream_keeps_its_order_and_counts(dataset, tokenizer, expected, expected_stats, source):
    if source == "shards":
        stream = dataset.to_iterable_dataset(num_shards=4)
    else:
        rows = dataset.to_list()
        stream = datasets.IterableDataset.from_generator(lambda: iter(rows))
    tokenized, stats = tokenize(stream, tokenizer, batch_size=9)
    assert tokenized.features["input_ids"] == INT32
    assert stats.so_far() == Stats()
    for _ in range(2):  # a second epoch counts anew
        seen = list(tokenized)
        assert [row["input_ids"] for row in seen] == expected
        assert [row["n"] for row in seen] == list(range(len(DATASET_TEXTS)))
        assert stats.so_far() == expected_stats


def test_a_stream_without_declared_features_gets_them(tokenizer):
    stream = datasets.IterableDataset.from_generator(lambda: iter([{"text": "a"}, {"text": None}]))
    assert stream.features is None
    tokenized, _ = tokenize(stream, tokenizer)
    assert tokenized.features == datasets.Features({"text": datasets.Value("string"), "input_ids": INT32})
    assert [row["input_ids"] for row in tokenized] == [tokenizer.encode("a").ids, None]
    assert list(tokenize(stream, tokenizer, remove_columns="text").dataset)[1] == {"input_ids": None}
    nulls = datasets.IterableDataset.from_generator(lambda: iter([{"text": None}, {"text": None}]))
    assert [row["input_ids"] for row in tokenize(nulls, tokenizer).dataset] == [None, None]
    assert list(tokenize(datasets.IterableDataset.from_generator(lambda: iter([])), tokenizer).dataset) == []


def test_a_dict_of_streams(dataset, tokenizer, expected):
    splits = datasets.IterableDatasetDict({"train": dataset.to_iterable_dataset()})
    tokenized, stats = tokenize(splits, tokenizer, remove_columns=["text", "n"])
    assert isinstance(tokenized, datasets.IterableDatasetDict)
    assert list(tokenized["train"]) == [{"input_ids": ids} for ids in expected]
    assert stats["train"].so_far().documents == len(DATASET_TEXTS)


def test_the_memory_of_a_stream_does_not_grow(tokenizer):
    def rows():
        for number in range(4000):
            yield {"text": f"{number} " * 200}

    features = datasets.Features({"text": datasets.Value("string")})
    stream = datasets.IterableDataset.from_generator(rows, features=features)
    tokenized, stats = tokenize(stream, tokenizer, batch_size=50, remove_columns="text", round_trip="off")
    held = []
    for number, _ in enumerate(tokenized):
        if number % 1000 == 999:
            held.append(pa.total_allocated_bytes())
    assert max(held) < 1.5 * held[0] + (1 << 20)
    assert stats.so_far().documents == 4000


LONG_STREAM = """
import sys, datasets, tokbatch
from tokbatch.frontends.hf_datasets import tokenize

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def rows():
    for number in range(60_000):
        yield {"text": " ".join(f"{number * 7919 + word:x}" for word in range(250))}

features = datasets.Features({"text": datasets.Value("string")})
stream = datasets.IterableDataset.from_generator(rows, features=features)
tokenizer = tokbatch.Tokenizer.from_file(sys.argv[1]).with_options(cached_pretokens=1 << 14)
tokenized, stats = tokenize(stream, tokenizer, batch_size=500)
for number, row in enumerate(tokenized):
    if number % 5000 == 4999:
        print(resident())
assert stats.so_far().documents == 60_000
"""


@pytest.mark.long
@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="there is no /proc to read the memory from")
def test_the_memory_of_the_process_is_flat_over_a_long_stream():
    """A hundred megabytes of ever new text, of which nothing stays but the cache of pretokens, which is small here."""
    command = [sys.executable, "-c", LONG_STREAM, sample.tokenizer_path()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    held = [int(line) for line in done.stdout.split()]
    assert len(held) == 12
    assert max(held[6:]) - max(held[:6]) < 16 << 20, held


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"column": "body"}, InputError, "^column: there is no column 'body'\nhint: there are '"),
        ({"column": "txt"}, InputError, "did you mean 'text'"),
        ({"column": "n"}, InputError, "a column of texts expected"),
        ({"remove_columns": ["m"]}, InputError, "no column 'm'"),
        ({"max_length": 0}, ConfigError, "max_length"),
        ({"append": ["<none>"]}, ConfigError, "<none>"),
        ({"round_trip": "off", "round_trip_column": "found"}, ConfigError, "round_trip_column"),
    ],
)
def test_mistakes_are_told_before_anything_is_mapped(dataset, tokenizer, options, error, message):
    with pytest.raises(error, match=message):
        tokenize(dataset, tokenizer, **options)


def test_other_mistakes(dataset, tokenizer):
    with pytest.raises(InputError, match="list"):
        tokenize(["a"], tokenizer)
    with pytest.raises(ConfigError, match="id_type: 'int64' is none of 'int32', 'uint16'; on_bad_row"):
        tokenize(dataset, tokenizer, column="text", pair_column="text", id_type="int64", on_bad_row="drop")
    with pytest.raises(ConfigError, match="num_proc"):
        tokenize(dataset.to_iterable_dataset(), tokenizer, num_proc=2)


def test_an_error_in_a_process_is_ours(tokenizer):
    table = pa.table({"text": pa.array([b"a", b"b", b"\xff", b"d"]).cast(pa.string(), safe=False)})
    dataset = datasets.Dataset(table)
    with pytest.raises(EncodeError) as caught:
        tokenize(dataset, tokenizer, num_proc=2)
    assert caught.value.row == 2
    assert tokenize(dataset, tokenizer, on_bad_row="null").stats.failed_first_rows == (2,)
