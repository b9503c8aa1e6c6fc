import functools
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import write_config, write_corpus
from faulty_file_systems import Poison
from tokbatch import sample
from tokbatch.batch.transform import Transform
from tokbatch.errors import InputError, OutputError, TokbatchError
from tokbatch.job import load_config, read_manifest, render_report, run_job, verify_output


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


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (
            lambda path: write_corpus(path.parent, path.name, 119),
            "a.parquet: the input has changed since the job read it",
        ),
        (lambda path: path.unlink(), "a.parquet: cannot be read: No such file or directory"),
        (lambda path: path.write_bytes(b"PAR1 no more"), "a.parquet: not a Parquet file"),
    ],
    ids=["changed", "missing", "unreadable"],
)
def test_an_input_is_named_once_and_not_for_each_part(output, breakage, said):
    breakage(output.parent / "a.parquet")
    found = verify_output(output, 1.0)
    assert len(found.problems) == 1, found.problems
    assert found.problems[0].startswith(said)
    assert found.problems[0].count("a.parquet") == 1
    assert found.sampled_rows == 40  # those of the other input


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


@pytest.mark.parametrize(
    ("change_format", "said"),
    [
        (
            lambda m: m.update(format=2, tokbatch="9.9", parts=None),
            r"a manifest of format 2 \(by tokbatch 9\.9\), and tokbatch \S+ knows format 1\nhint: use the version that",
        ),
        (lambda m: m.update(format=0), r"a manifest of format 0 "),
        (lambda m: m.pop("format"), r"not a manifest\.json of tokbatch: it says no format"),
        (lambda m: m.update(format="1"), r"it says no format"),
    ],
)
def test_a_manifest_of_another_format_is_refused_by_all(output, change_format, said):
    change(output / "manifest.json", change_format)
    before = sorted((path, path.stat().st_mtime_ns) for path in output.rglob("*") if path.name != "lock")
    resume = functools.partial(run_job, load_config(output.parent / "job.toml"), resume=True)
    for function in (lambda: verify_output(output), lambda: render_report(output), resume):
        with pytest.raises(InputError, match=said) as caught:
            function()
        assert caught.value.where == str(output / "manifest.json")
    assert sorted((path, path.stat().st_mtime_ns) for path in output.rglob("*") if path.name != "lock") == before
    run_job(load_config(output.parent / "job.toml"), overwrite=True)
    assert verify_output(output, 1.0).problems == []


def test_a_state_of_another_format_is_not_gone_on_with(output):
    (output / "manifest.json").unlink()
    change(output / ".tokbatch/job.json", lambda job: job.update(format=2))
    with pytest.raises(OutputError, match="this is not the job that was interrupted: format was 2, is 1"):
        run_job(load_config(output.parent / "job.toml"), resume=True)


def test_rows_that_were_given_up_are_not_tried_again(tmp_path, monkeypatch):
    texts = [b"good", b"bad \xff", b"it ends every worker", None, b"good too"]
    column = pa.array(texts, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": column, "id": range(5)}), tmp_path / "a.parquet")
    config = load_config(write_config(tmp_path, run__on_bad_row="null", run__retries=0))
    run_job(config, file_system=Poison("ends every worker", "SIGKILL"))
    rows = read_manifest(tmp_path / "out")["quarantine"]["rows"]
    assert [row["row"] for row in rows] == [1, 2]
    encode = Transform._encode

    def encode_all_but_one(transform, documents):
        assert "it ends every worker" not in [documents.texts.text(row) for row in range(documents.texts.rows)]
        return encode(transform, documents)

    monkeypatch.setattr(Transform, "_encode", encode_all_but_one)
    found = verify_output(tmp_path / "out", 1.0)
    assert (found.problems, found.quarantined_rows, found.sampled_rows) == ([], 2, 5)
    # What the quarantine says must be so in the parts.
    change(tmp_path / "out/manifest.json", lambda m: m["quarantine"]["rows"].append({**rows[0], "row": 4}))
    found = verify_output(tmp_path / "out", 1.0)
    assert any("2 documents failed, the quarantine has 3" in problem for problem in found.problems)
    assert any('input row 4: "input_ids" is [' in problem for problem in found.problems)


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
