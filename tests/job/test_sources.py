import pathlib
import random
import shutil

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config
from tokbatch.errors import NOT_THERE, ConfigError, InputError
from tokbatch.job import load_config, read_manifest, run_job, verify_output
from tokbatch.job.inputs import Input, list_inputs
from tokbatch.job.prepare import prepare_job
from tokbatch.job.sizes import bounded
from tokbatch.job.sources import ReadOptions, open_source


def parquet(path):
    return open_source(Input("parquet", "in.parquet", str(path)))


def read(source, batch_bytes, columns=None):
    return list(source.batches(source.units(), columns, batch_bytes, 0))


def test_a_batch_is_cut_to_its_limit_and_a_row_never():
    texts = ["x" * 10] * 50 + ["y" * 5000] + ["z"] * 30
    batch = pa.record_batch({"text": texts})
    pieces = list(bounded(batch, 400))
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([batch]))
    assert [piece.num_rows for piece in pieces if piece.nbytes > 400] == [1]
    assert next(bounded(batch.slice(0, 0), 400)).num_rows == 0


def test_a_row_group_larger_than_a_batch_is_streamed(tmp_path):
    rng = random.Random(5)
    # Long documents at the end: the average says little about them.
    texts = ["".join(rng.choices("abcdefgh ", k=20)) for _ in range(5000)]
    texts += ["".join(rng.choices("abcdefgh ", k=20_000)) for _ in range(20)] + ["w" * 300_000]
    table = pa.table({"text": texts, "n": range(len(texts))})
    pq.write_table(table, tmp_path / "a.parquet")
    batches = read(parquet(tmp_path / "a.parquet"), 60_000)
    assert pa.Table.from_batches(batches).equals(table)
    assert len(batches) > 10
    assert all(batch.nbytes <= 60_000 or batch.num_rows == 1 for batch in batches)


def test_only_the_columns_asked_for_are_read(tmp_path):
    table = pa.table({"meta": [{"text": "a", "n": 1}], "b": ["x"], "meta2": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = read(parquet(tmp_path / "a.parquet"), 1000, ["meta"])
    assert batch.to_pydict() == {"meta": [{"text": "a", "n": 1}]}


def test_the_digest_follows_the_content(tmp_path):
    path = tmp_path / "a.parquet"
    digests = set()
    for texts in (["a"], ["b"], ["a", "b"]):
        pq.write_table(pa.table({"text": texts}), path)
        digests.add(parquet(path).digest)
        assert parquet(path).digest in digests
    assert len(digests) == 3


def test_units_are_row_groups(tmp_path):
    pq.write_table(pa.table({"text": ["abc"] * 7}), tmp_path / "a.parquet", row_group_size=3)
    units = parquet(tmp_path / "a.parquet").units()
    assert [unit.rows for unit in units] == [3, 3, 1]
    assert all(unit.text_bytes > 0 for unit in units)
    other = open_source(Input("parquet", "in.parquet", str(tmp_path / "a.parquet")), ReadOptions("none"))
    assert all(unit.text_bytes == 0 for unit in other.units())


@pytest.mark.shared
def test_the_variants_of_a_file_all_give_the_same_documents(shared):
    expected = None
    seen = 0
    for path in sorted((shared / "corpus/variants").glob("*.parquet")):
        if path.stem in ("not-parquet", "truncated", "zero-bytes"):
            with pytest.raises(InputError, match="not a Parquet file"):
                parquet(path)
            continue
        source = parquet(path)
        if "text" not in source.schema.names or source.schema.field("text").type == pa.int64():
            continue
        kind = pa.binary() if path.stem == "binary" else pa.large_string()
        text = pa.chunked_array([batch["text"].cast(kind) for batch in read(source, 50_000)]).cast(pa.large_string())
        expected = expected or text.to_pylist()
        assert text.to_pylist() == expected, path.stem
        seen += 1
    assert seen >= 14


def test_files_by_url(tmp_path):
    pq.write_table(pa.table({"text": ["a <mask>", "b"]}), tmp_path / "a.parquet")
    memory = fsspec.filesystem("memory")
    memory.pipe("/corpus/a.parquet", (tmp_path / "a.parquet").read_bytes())
    try:
        by_url = open_source(Input("parquet", "u", "memory://corpus/a.parquet"))
        assert by_url.digest == parquet(tmp_path / "a.parquet").digest
        assert [row for batch in read(by_url, 1000) for row in batch["text"].to_pylist()] == ["a <mask>", "b"]
    finally:
        memory.rm("/corpus", recursive=True)
    with pytest.raises(InputError, match="u: cannot be read"):
        open_source(Input("parquet", "u", "memory://corpus/a.parquet"))


def test_a_job_over_a_url_and_files_of_one_name(tmp_path):
    for folder, texts in (("one", ["a <mask>"]), ("two", ["b", None])):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"text": texts}), tmp_path / folder / "x.parquet")
    config = write_config(tmp_path, input__files=[f"file://{tmp_path}/two/x.parquet", "one/x.parquet"])
    run_job(load_config(config))
    parts = read_manifest(tmp_path / "out")["parts"]
    assert [part["path"] for part in parts] == ["data/00000-x-00000.parquet", "data/00001-x-00000.parquet"]
    assert [part["rows"] for part in parts] == [2, 1]
    assert verify_output(tmp_path / "out", 1.0).problems == []


@pytest.fixture
def saved(tmp_path):
    datasets = pytest.importorskip("datasets")
    texts = [None if i % 9 == 0 else f"text {i} <mask>" for i in range(400)]
    dataset = datasets.Dataset.from_dict({"text": texts, "n": list(range(400))})
    dataset.save_to_disk(tmp_path / "plain", num_shards=3)
    shuffled = dataset.shuffle(seed=3)
    shuffled.select(range(100)).save_to_disk(tmp_path / "selected")
    datasets.DatasetDict(train=dataset, test=dataset.select(range(5))).save_to_disk(tmp_path / "splits")
    datasets.DatasetDict(train=dataset.select(range(7))).save_to_disk(tmp_path / "one_split")
    return tmp_path, texts


def test_a_saved_dataset(saved):
    folder, texts = saved
    source = open_source(Input("dataset", "plain", str(folder / "plain")))
    assert sum(unit.rows for unit in source.units()) == 400
    rows = [row for batch in read(source, 700) for row in batch["text"].to_pylist()]
    assert rows == texts
    assert all(batch.nbytes <= 700 or batch.num_rows == 1 for batch in read(source, 700))
    (first, *_) = read(source, 10_000, ["n"])
    assert first.schema.names == ["n"]
    selected = open_source(Input("dataset", "selected", str(folder / "selected")))
    assert sum(batch.num_rows for batch in read(selected, 700)) == 100
    assert selected.digest != source.digest == open_source(Input("dataset", "plain", str(folder / "plain"))).digest


def test_splits_of_a_saved_dataset(saved):
    folder, texts = saved
    one = open_source(Input("dataset", "d", str(folder / "one_split")))
    assert [row for batch in read(one, 10_000) for row in batch["text"].to_pylist()] == texts[:7]
    test = open_source(Input("dataset", "d", str(folder / "splits"), split="test"))
    assert [row for batch in read(test, 10_000) for row in batch["text"].to_pylist()] == texts[:5]
    for split, said in ((None, "no input.split is given"), ("dev", 'none is "dev"')):
        with pytest.raises(ConfigError, match=f"input.split: d.* has the splits train, test, and {said}"):
            open_source(Input("dataset", "d", str(folder / "splits"), split=split))
    with pytest.raises(InputError, match="no dataset of save_to_disk"):
        open_source(Input("dataset", "d", str(folder)))


def test_a_job_over_a_saved_dataset(saved):
    folder, texts = saved
    config = write_config(folder, input__files=[], input__dataset="splits", input__split="train")
    result = run_job(load_config(config))
    assert result.stats.documents == 400
    assert result.stats.null_documents == sum(text is None for text in texts)
    (part,) = read_manifest(folder / "out")["parts"]
    table = pq.read_table(folder / "out" / part["path"])
    assert table["n"].to_pylist() == list(range(400))
    assert verify_output(folder / "out", 1.0).problems == []
    before = files_below(folder / "out")
    run_job(load_config(config, ["run.workers=1"]), overwrite=True)
    assert files_below(folder / "out") == before


def test_a_name_on_the_hub_comes_from_the_local_cache(tmp_path, monkeypatch):
    import datasets
    import huggingface_hub.constants

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    pq.write_table(pa.table({"text": ["a", None, "b"]}), tmp_path / "a.parquet")
    built = datasets.load_dataset("parquet", data_files=str(tmp_path / "a.parquet"))["train"]
    made = pathlib.Path(built.cache_files[0]["filename"])
    cached = tmp_path / "cache/org___name/default/0.0.0" / ("0123456789abcdef" * 3)[:40]
    shutil.copytree(made.parent, cached)
    (cached / made.name).rename(cached / "name-train.arrow")
    source = open_source(Input("dataset", "org/name", "org/name"))
    assert [row for batch in read(source, 1000) for row in batch["text"].to_pylist()] == ["a", None, "b"]
    assert huggingface_hub.constants.HF_HUB_OFFLINE is True
    assert datasets.config.HF_HUB_OFFLINE is False
    with pytest.raises(InputError, match="org/none: cannot load the dataset"):
        open_source(Input("dataset", "org/none", "org/none"))


def test_the_files_of_a_dataset_can_be_read_where_they_are(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for name, texts in (("train-00000", ["a", None]), ("train-00001", ["b"]), ("test-00000", ["c"])):
        (tmp_path / "d/data").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": texts}), tmp_path / f"d/data/{name}-of-00002.parquet")
    config = load_config(
        write_config(tmp_path, input__files=[], input__dataset="d", input__split="train", input__streaming=True)
    )
    found = list_inputs(config).inputs
    assert [(source.kind, source.name) for source in found] == [
        ("parquet", "d:train/data/train-00000-of-00002.parquet"),
        ("parquet", "d:train/data/train-00001-of-00002.parquet"),
    ]
    assert [
        row for source in found for batch in read(open_source(source), 99) for row in batch["text"].to_pylist()
    ] == [*("a", None, "b")]
    with pytest.raises(ConfigError, match=r"the splits .* and none is \"other\""):
        list_inputs(load_config(tmp_path / "job.toml", ["input.split=other"]))
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").rglob("*.arrow"))
    (tmp_path / "d/data").rename(tmp_path / "gone")
    with pytest.raises(InputError, match="cannot look into the dataset"):
        list_inputs(config)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_mistyped_folder_is_told_from_a_dataset_of_the_hub(tmp_path, monkeypatch, streaming):
    import datasets

    def ask(*_, **__):
        raise datasets.exceptions.DatasetNotFoundError("Dataset 'in/dss' doesn't exist on the Hub")

    monkeypatch.setattr(datasets, "load_dataset", ask)
    monkeypatch.setattr(datasets, "load_dataset_builder", ask)
    config = load_config(write_config(tmp_path, input__files=[], input__dataset="in/dss", input__streaming=streaming))
    told = []
    for _ in range(2):
        with pytest.raises(InputError, match=r"in/dss: .*doesn't exist on the Hub") as caught:
            prepare_job(config)
        assert caught.value.code == NOT_THERE
        told.append(
            f"there is no folder {tmp_path / 'in/dss'}, and the hub, which was asked too, says: " in str(caught.value)
        )
        (tmp_path / "in").mkdir(exist_ok=True)
    assert told == [False, True]
