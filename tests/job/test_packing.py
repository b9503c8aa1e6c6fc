import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import files_below, write_config, write_corpus
from tokbatch.errors import ConfigError, EncodeError
from tokbatch.job import load_config, packing, prepare_job, read_manifest, render_report, run_job, verify_output
from tokbatch.job.config import PackingConfig
from tokbatch.job.html_report import render_html
from tokbatch.job.packing import Packer, packed_schema, unpack
from tokbatch.job.sinks.ids import id_list_type

PAD = 9


def pack(documents, cuts=(), id_type="int32", **config):
    """Pack documents that come in batches cut at `cuts`; gives the packed rows and the counts."""
    kind = id_list_type(id_type)
    schema = packed_schema(pa.schema([("input_ids", kind)]), "input_ids", config["length"])
    packer = Packer(PackingConfig(pad="<pad>", **config), schema, PAD)
    batches = []
    edges = [0, *sorted(cut for cut in cuts if cut < len(documents)), len(documents)]
    for start, stop in itertools.pairwise(edges):
        batches += packer.add(pa.array(documents[start:stop], kind), 100 + start)
    batches += packer.finish()
    return pa.Table.from_batches(batches, schema), packer.counts


def ids_of(table):
    return table["input_ids"].to_pylist()


def test_greedy_cuts_where_a_row_ends():
    table, counts = pack([[1, 2, 3], None, [4, 5], [], [6]], length=4)
    assert ids_of(table) == [[1, 2, 3, 4], [5, 6, PAD, PAD]]
    assert table["boundaries"].to_pylist() == [[0, 3, 4], [0, 1, 2]]
    assert table["documents"].to_pylist() == [[100, 102], [102, 104]]
    assert table["starts"].to_pylist() == [[0, 0], [1, 0]]
    assert counts.to_json() == {
        "documents": 5,
        "rows": 2,
        "tokens": 6,
        "padding": 2,
        "cut_documents": 1,
        "dropped_documents": 0,
        "dropped_tokens": 0,
    }


def test_greedy_without_cuts_begins_a_row():
    table, counts = pack([[1, 2, 3], [4, 5], [6]], length=4, split=False)
    assert ids_of(table) == [[1, 2, 3, PAD], [4, 5, 6, PAD]]
    assert (counts.padding, counts.cut_documents) == (2, 0)


def test_best_fit_fills_the_row_where_the_least_is_left():
    table, counts = pack([[1, 1, 1], [2, 2], [3], [4, 4]], length=4, strategy="best_fit", split=False)
    assert ids_of(table) == [[1, 1, 1, 3], [2, 2, 4, 4]]
    assert counts.padding == 0
    table, counts = pack([[1] * 6, [2, 2]], length=4, strategy="best_fit")
    assert ids_of(table) == [[1, 1, 1, 1], [1, 1, 2, 2]]
    assert counts.cut_documents == 1


def test_what_is_longer_than_a_row():
    with pytest.raises(EncodeError, match="row 101: 5 tokens, and a row holds 4"):
        pack([[1], [2] * 5], length=4, split=False)
    with pytest.raises(EncodeError, match="row 100: 70,000 tokens, and a row holds 2,048"):
        pack([[1] * 70000], length=2048, split=False)
    table, counts = pack([[1], [2] * 5, [3]], length=4, split=False, too_long="truncate")
    assert ids_of(table) == [[1, PAD, PAD, PAD], [2, 2, 2, 2], [3, PAD, PAD, PAD]]
    assert (counts.dropped_tokens, counts.dropped_documents) == (1, 0)
    table, counts = pack([[1], [2] * 5, [3]], length=4, split=False, too_long="drop")
    assert ids_of(table) == [[1, 3, PAD, PAD]]
    assert (counts.dropped_tokens, counts.dropped_documents, counts.documents) == (5, 1, 3)


documents = st.lists(st.none() | st.lists(st.integers(0, 65_535), max_size=12), max_size=40)


@settings(deadline=None)
@given(
    documents,
    st.lists(st.integers(0, 40), max_size=3),
    st.integers(1, 9),
    st.sampled_from(["greedy", "best_fit"]),
    st.booleans(),
    st.sampled_from(["int32", "uint16"]),
)
def test_documents_come_out_as_they_went_in(given_documents, cuts, length, strategy, split, id_type):
    config = {"length": length, "strategy": strategy, "split": split, "too_long": "truncate", "id_type": id_type}
    table, counts = pack(given_documents, cuts, **config)
    assert table.equals(pack(given_documents, **config)[0]), "the batches do not matter"
    limit = None if split else length
    expected = {100 + i: ids[:limit] for i, ids in enumerate(given_documents) if ids}
    assert unpack(iter(table.to_batches()), "input_ids") == expected
    for ids, boundaries in zip(ids_of(table), table["boundaries"].to_pylist(), strict=True):
        assert len(ids) == length
        assert boundaries == sorted(set(boundaries))
        assert ids[boundaries[-1] :] == [PAD] * (length - boundaries[-1])
    tokens = sum(len(ids) for ids in expected.values())
    assert (counts.tokens, counts.tokens + counts.padding) == (tokens, counts.rows * length)
    assert counts.dropped_tokens == sum(len(ids or []) for ids in given_documents) - tokens
    if strategy == "greedy" and split:
        assert counts.padding < length


def test_best_fit_keeps_a_bounded_number_of_rows_open(monkeypatch):
    monkeypatch.setattr(packing, "OPEN_ROWS", 3)
    monkeypatch.setattr(packing, "ROWS_A_BATCH", 2)
    documents = [[i] * 3 for i in range(20)]
    table, counts = pack(documents, length=5, strategy="best_fit", split=False)
    assert [ids[0] for ids in ids_of(table)] == list(range(20))
    assert counts.padding == 40


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_job_that_packs(tmp_path, form):
    write_corpus(tmp_path, "a.parquet", 300)
    packed = {"length": 32, "pad": "<pad>", "strategy": "best_fit"}
    config = write_config(tmp_path, input__keep_columns=[], output__format=form, run__shard_bytes=1500)
    text = config.read_text() + "\n[output.packing]\n" + "".join(f"{k} = {v!r}\n" for k, v in packed.items())
    config.write_text(text)
    result = run_job(load_config(config))
    manifest = read_manifest(tmp_path / "out")
    counts = [part["packing"] for part in manifest["parts"]]
    assert sum(count["documents"] for count in counts) == 300
    assert (
        sum(count["tokens"] for count in counts) == result.stats.tokens == sum(p["tokens"] for p in manifest["parts"])
    )
    assert all(part["rows"] == part["packing"]["rows"] for part in manifest["parts"])
    padding, tokens = (sum(count[key] for count in counts) for key in ("padding", "tokens"))
    assert padding < 0.15 * tokens
    found = verify_output(tmp_path / "out", 1.0)
    assert (found.problems, found.sampled_rows) == ([], 300)
    stats = result.stats
    for name in ("cut_documents", "dropped_documents", "dropped_tokens"):
        assert getattr(stats, name) == sum(count[name] for count in counts)
    assert (stats.packed_rows, stats.packed_tokens) == (sum(count["rows"] for count in counts), tokens)
    length = result.job.config.output.packing.length
    assert stats.padding_tokens == padding == stats.packed_rows * length - tokens
    report = render_report(tmp_path / "out")
    assert f"packed into rows of {length} tokens" in report
    assert f"{100 * padding / (padding + tokens):.2f} %" in report
    page = render_html(tmp_path / "out")
    assert "Packed rows" in page
    assert f"{100 * padding / (padding + tokens):.2f} % of their places is padding" in page
    before = files_below(tmp_path / "out")
    run_job(load_config(config, ["run.workers=1"]), overwrite=True)
    assert files_below(tmp_path / "out") == before


def problems_of(config, changes=()):
    with pytest.raises(ConfigError) as caught:
        load_config(config, changes)
    return caught.value.problems


def test_what_does_not_go_with_packing(tmp_path):
    config = write_config(tmp_path, output__max_part_bytes=1 << 20, output__format="bin")
    given = config.read_text()
    config.write_text(given.replace('keep_columns = "all"', "") + "\n[output.packing]\nlength = 0\n")
    assert problems_of(config) == [
        "output.packing.length: 0 is too small, the least is 1",
        "output.packing.pad: missing",
    ]
    config.write_text(given + '\n[output.packing]\nlength = 8\npad = "<none>"\n')
    assert problems_of(config) == [
        'output.packing: the format "bin" is for whole documents',
        'input.keep_columns: the format "bin" has no place for other columns than the ids: set it to []',
    ]
    assert problems_of(config, ["output.format=parquet"]) == [
        "input.keep_columns: packed rows have no place for columns of documents: set it to []",
        "output.max_part_bytes: packed parts are limited by run.shard_bytes",
    ]
    write_corpus(tmp_path, "a.parquet", 3)
    changes = ["output.format=parquet", "output.max_part_bytes=0", "input.keep_columns=[]"]
    with pytest.raises(ConfigError, match=r'output\.packing\.pad: "<none>" is no token of the vocabulary'):
        prepare_job(load_config(config, changes))
