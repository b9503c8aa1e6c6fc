"""Jobs over inputs of every format at once."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import TEXTS, files_below, write_config
from tokbatch import Tokenizer, sample
from tokbatch.errors import EncodeError, InputError
from tokbatch.job import load_config, read_manifest, read_stats, run_job, verify_output

DOCUMENTS = [f"{TEXTS[i % 7]} {i}" for i in range(120)]


def write_inputs(folder):
    table = pa.table({"text": DOCUMENTS, "n": range(120)})
    lines = "".join(json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(DOCUMENTS))
    (folder / "in").mkdir()
    pq.write_table(table, folder / "in/a.parquet", row_group_size=50)
    (folder / "in/b.jsonl").write_text(lines)
    (folder / "in/c.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "in/d.txt").write_text("".join(text.replace("\n", " ") + "\r\n" for text in DOCUMENTS))
    with pa.ipc.new_stream(folder / "in/e.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    with pa.ipc.new_file(folder / "in/f.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    (folder / "in/readme").write_text("no input")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    write_inputs(folder)
    config = write_config(folder, input__files=["in"], run__shard_bytes=1000)
    run_job(load_config(config))
    return folder, config


def rows_of(out, name):
    parts = [part for part in read_manifest(out)["parts"] if part["input"] == name]
    return pa.concat_tables([pq.read_table(out / part["path"]) for part in parts])


def test_every_format_gives_the_same_ids(finished):
    folder, _ = finished
    names = [entry["name"] for entry in read_manifest(folder / "out")["inputs"]]
    assert names == [f"in/{name}" for name in ("a.parquet", "b.jsonl", "c.jsonl.gz", "d.txt", "e.arrows", "f.arrow")]
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    expected = [tokenizer.encode(text).ids for text in DOCUMENTS]
    for name in names:
        table = rows_of(folder / "out", name)
        if name == "in/d.txt":
            assert table["input_ids"].to_pylist() == [tokenizer.encode(t.replace("\n", " ")).ids for t in DOCUMENTS]
            assert table["n"].null_count == 120
        else:
            assert table["input_ids"].to_pylist() == expected
            assert table["n"].to_pylist() == list(range(120))
    found = verify_output(folder / "out", 1.0)
    assert (found.problems, found.sampled_rows) == ([], 720)


def test_workers_and_interruptions_change_nothing(finished, tmp_path):
    folder, config = finished
    before = files_below(folder / "out")
    shards = sorted((folder / "out/.tokbatch/shards").iterdir())
    for record in shards[1::2]:
        record.unlink()
    (folder / "out/manifest.json").unlink()
    run_job(load_config(config, ["run.workers=1"]), resume=True)
    assert files_below(folder / "out") == before


def test_the_output_of_a_job_below_the_folder_of_its_inputs_is_no_input(finished):
    from tokbatch.job.inputs import list_files

    folder, _ = finished
    found = list_files(["."], str(folder))
    assert len(found.inputs) == 6
    assert found.passed_over == [str(folder / "out")]
    found = list_files(["**/*.parquet"], str(folder))
    assert [source.name for source in found.inputs] == ["in/a.parquet"]
    # Who names it means it.
    assert len(list_files(["out/data"], str(folder)).inputs) > 1
    assert len(list_files(["out/data/*.parquet"], str(folder)).inputs) > 1
    with pytest.raises(InputError, match="what lies there is a job's output"):
        list_files(["o*/data/*.parquet"], str(folder))


def test_bad_rows_and_bad_files_under_the_policies(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one <mask>"}\nnot json\n{"text": null}\n{"txt": 1}\n')
    (tmp_path / "b.txt").write_bytes(b"good\nb\xffd\n")
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"lost\n" * 50)[:-9])
    with pa.ipc.new_stream(tmp_path / "d.arrows", pa.schema([("text", pa.string())])) as writer:
        writer.write_table(pa.table({"text": ["cut"]}))
    (tmp_path / "d.arrows").write_bytes((tmp_path / "d.arrows").read_bytes()[:-8])
    files = ["a.jsonl", "b.txt", "c.txt.gz", "d.arrows"]
    config = load_config(write_config(tmp_path, input__files=files, run__on_bad_file="skip"))
    with pytest.raises(EncodeError, match=r"(a\.jsonl: line 2: not JSON|b\.txt: line 2: byte 1 \(0xFF\))"):
        run_job(config)
    config = load_config(tmp_path / "job.toml", ["run.on_bad_row=null"])
    result = run_job(config, resume=True)
    manifest = read_manifest(tmp_path / "out")
    assert [entry["input"] for entry in manifest["quarantine"]["files"]] == ["c.txt.gz", "d.arrows"]
    assert [(entry["input"], entry["row"]) for entry in manifest["quarantine"]["rows"]] == [
        ("a.jsonl", 1),
        ("a.jsonl", 3),
        ("b.txt", 1),
    ]
    assert [entry["name"] for entry in manifest["inputs"]] == ["a.jsonl", "b.txt"]
    assert [name for name, _ in read_stats(tmp_path / "out")[0]] == ["a.jsonl", "b.txt"]
    assert (result.stats.documents, result.stats.null_documents, result.stats.failed_documents) == (6, 1, 3)
    assert rows_of(tmp_path / "out", "a.jsonl")["input_ids"].is_valid().to_pylist() == [True, False, False, False]
    assert verify_output(tmp_path / "out", 1.0).problems == []


@pytest.mark.parametrize("form", ["arrow", "megatron", "bin"])
def test_a_job_in_every_format_of_parts(tmp_path, form):
    table = pa.table({"text": [*DOCUMENTS[:30], None, ""]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    config = write_config(
        tmp_path, input__keep_columns=[], output__format=form, output__id_type="auto", run__shard_bytes=400
    )
    run_job(load_config(config))
    manifest = read_manifest(tmp_path / "out")
    assert manifest["id_type"] == "uint16"
    found = verify_output(tmp_path / "out", 1.0)
    assert (found.problems, found.sampled_rows) == ([], 32)
    before = files_below(tmp_path / "out")
    assert len(before) == 2 + len(manifest["parts"]) * {"arrow": 1, "megatron": 2, "bin": 3}[form]
    # A part of which only one file is there is made again.
    (path,) = [name for name in before if name.startswith("data/") and "00000-00000" not in name][-1:]
    (tmp_path / "out" / path).unlink()
    (tmp_path / "out/manifest.json").unlink()
    run_job(load_config(config, ["run.workers=1"]), resume=True)
    assert files_below(tmp_path / "out") == before
    (tmp_path / "out" / path).write_bytes(b"x")
    assert any(f"{path}: its sha256 is" in problem for problem in verify_output(tmp_path / "out", 0).problems)


def test_formats_that_do_not_go_together(tmp_path):
    from tokbatch.errors import ConfigError

    config = write_config(tmp_path, output__format="megatron", output__compression="zstd")
    with pytest.raises(ConfigError) as caught:
        load_config(config)
    assert caught.value.problems == [
        'output.compression: expected "none" for the format "megatron", got "zstd"',
        'input.keep_columns: the format "megatron" has no place for other columns than the ids: set it to []',
    ]
