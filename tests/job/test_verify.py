import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import write_config, write_corpus
from tokbatch import sample
from tokbatch.errors import InputError, TokbatchError
from tokbatch.job import load_config, render_report, run_job, verify_output


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    shutil.copy(sample.tokenizer_path(), folder / "t.json")
    write_corpus(folder, "a.parquet", 120, row_group=20)
    write_corpus(folder, "b.parquet", 40)
    run_job(load_config(write_config(folder, tokenizer__file="t.json", run__shard_bytes=300)))
    return folder


@pytest.fixture
def output(original, tmp_path):
    """A finished job in a place of its own, so that the test can break it."""
    shutil.copytree(original, tmp_path / "job")
    manifest = tmp_path / "job/out/manifest.json"
    manifest.write_text(manifest.read_text().replace(str(original), str(tmp_path / "job")))
    return tmp_path / "job/out"


def change(path, function):
    content = json.loads(path.read_text())
    function(content)
    path.write_text(json.dumps(content))


def first_part(output):
    return sorted((output / "data").iterdir())[0]


def rewrite_part(output, function):
    """Change a part and let the manifest agree on its bytes, so that only its content can give it away."""
    import hashlib

    path = first_part(output)
    pq.write_table(function(pq.read_table(path)), path)

    def agree(manifest):
        manifest["parts"][0]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    change(output / "manifest.json", agree)


def swap_ids(table):
    ids = table["input_ids"].to_pylist()
    row = next(i for i, r in enumerate(ids) if r and len(r) > 3)
    ids[row][1], ids[row][2] = ids[row][2], ids[row][1]
    return table.set_column(1, "input_ids", pa.array(ids, table["input_ids"].type))


def test_a_good_output(output):
    found = verify_output(output, 1.0)
    assert (found.rows, found.sampled_rows, found.problems) == (160, 160, [])
    assert found.parts > 2
    some = verify_output(output, 0.3)
    assert 10 < some.sampled_rows < 100
    assert some.problems == []
    assert verify_output(output, 0).sampled_rows == 0


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (lambda out: first_part(out).unlink(), "No such file"),
        (lambda out: first_part(out).write_bytes(first_part(out).read_bytes()[:-1]), "its sha256 is"),
        (lambda out: rewrite_part(out, swap_ids), '"input_ids" is'),
        (lambda out: rewrite_part(out, lambda t: t.set_column(0, "id", pa.array(range(1, len(t) + 1)))), '"id" is 1'),
        (lambda out: rewrite_part(out, lambda t: t.slice(1)), "rows, the manifest says"),
        (lambda out: (out / "data/extra.parquet").write_bytes(b"x"), "data/extra.parquet: not in the manifest"),
        (lambda out: change(out / "manifest.json", lambda m: m["parts"].pop(1)), "expected"),
        (lambda out: change(out / "manifest.json", lambda m: m["parts"].pop()), "40 rows, its parts have 20"),
        (
            lambda out: change(out / "stats.json", lambda s: s["files"][0].update(tokens=7)),
            "stats.json: a.parquet: 7 tokens",
        ),
        (lambda out: change(out / "stats.json", lambda s: s["total"].update(documents=7)), "the total is not the sum"),
        (lambda out: write_corpus(out.parent, "a.parquet", 119), "a.parquet: the input has changed"),
        (lambda out: (out.parent / "b.parquet").unlink(), "b.parquet: cannot be read: No such file"),
        (lambda out: (out.parent / "t.json").write_text("{}"), "the tokenizer cannot be loaded"),
        (
            lambda out: change(out.parent / "t.json", lambda t: t["added_tokens"][-1].update(lstrip=False)),
            "the tokenizer is not the one that the job had",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_found(output, breakage, said):
    breakage(output)
    found = verify_output(output, 1.0)
    assert any(said in problem for problem in found.problems), found.problems


@pytest.mark.parametrize("sample_rate", [0.4, 1.0])
def test_kept_columns_that_arrow_cannot_filter(tmp_path, sample_rate):
    views = pa.array([f"a rather long text {i}" if i % 5 else None for i in range(60)], pa.string_view())
    lists = pa.array([[f"text {i}"] * (i % 3) for i in range(60)], pa.list_(pa.string_view()))
    pq.write_table(pa.table({"view": views, "text": views, "list": lists}), tmp_path / "a.parquet")
    run_job(load_config(write_config(tmp_path)))
    (part,) = (tmp_path / "out/data").iterdir()
    assert pq.read_schema(part).field("view").type == pa.string_view()
    found = verify_output(tmp_path / "out", sample_rate)
    assert found.problems == []
    assert (found.sampled_rows == 60) == (sample_rate == 1.0)
    assert found.sampled_rows > 0


def test_an_unfinished_output(output):
    (output / "manifest.json").unlink()
    for function in (verify_output, render_report):
        with pytest.raises(InputError, match="the job is not finished"):
            function(output)
    with pytest.raises(InputError, match=r"no manifest\.json there\nhint"):
        verify_output(output.parent)
    (output / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="not a manifest"):
        verify_output(output)


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (lambda m: [m.pop(key) for key in list(m) if key not in ("format", "parts")], r"\$\.tokbatch is missing"),
        (lambda m: m.pop("run"), r"\$\.run is"),
        (lambda m: m.update(parts={}), r"\$\.parts is"),
        (lambda m: m["parts"][1].pop("rows"), r"\$\.parts\[1\]\.rows is"),
        (lambda m: m["parts"][1].update(input="none"), r"\$\.parts\[1\]\.input is"),
        (lambda m: m["parts"][0].update(units=[1]), r"\$\.parts\[0\]\.units is"),
        (lambda m: m["inputs"].append(None), r"\$\.inputs\[2\] is"),
        (lambda m: m["tokenizer"].update(vocab_size="many"), r"\$\.tokenizer\.vocab_size is"),
        (lambda m: m["config"].update(input=3), "input: expected a table"),
    ],
)
def test_a_broken_manifest_is_named(output, breakage, said):
    change(output / "manifest.json", breakage)
    for function in (verify_output, render_report) if "expected" not in said else (verify_output,):
        with pytest.raises(TokbatchError, match=said) as caught:
            function(output)
        assert caught.value.where == str(output / "manifest.json")


def test_broken_statistics_are_named(output):
    (output / "stats.json").write_text('{"files": ["a"], "total": {}}')
    for function in (verify_output, render_report):
        with pytest.raises(InputError, match=r"not a stats\.json of tokbatch"):
            function(output)
