import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config, write_corpus
from faulty_file_systems import Deadly, Full, NoRename
from tokbatch import Tokenizer, sample
from tokbatch.errors import ConfigError, InputError, OutputError, VerifyError, WorkerError
from tokbatch.job import load_config, read_manifest, read_stats, run_job, verify_output

SMALL_SHARDS = {"run__shard_bytes": 1500, "run__batch_bytes": 700}


class Notes:
    def __init__(self):
        self.notes, self.done, self.total = [], [], 0

    def start(self, total_bytes, done_bytes):
        self.total = total_bytes
        self.done.append(done_bytes)

    def update(self, done_bytes):
        self.done.append(done_bytes)

    def note(self, text):
        self.notes.append(text)

    def finish(self):
        self.finished = True


@pytest.fixture(scope="module")
def finished(engine, tmp_path_factory):
    """A job over three files, one of them without rows, in several shards; undisturbed, with two workers."""
    folder = tmp_path_factory.mktemp("finished")
    write_corpus(folder, "a/x.parquet", 230)
    write_corpus(folder, "b/x.parquet", 100)
    write_corpus(folder, "empty.parquet", 0)
    files = ["a", "b/*.parquet", "empty.parquet", "a/x.parquet"]
    config = write_config(folder, input__files=files, tokenizer__engine=engine, **SMALL_SHARDS)
    notes = Notes()
    result = run_job(load_config(config), progress=notes)
    return folder, config, result, notes


def copy_of(finished, tmp_path):
    """Copy corpus, config and output of the finished job, to go on with."""
    folder = tmp_path / "copy"
    shutil.copytree(finished[0], folder)
    return folder, folder / "job.toml"


def lose(folder, count, seed):
    """Take the job back to an unfinished one: without manifest and statistics, and without some shards' records."""
    for name in ("manifest.json", "stats.json", "stats.parquet"):
        (folder / "out" / name).unlink()
    records = sorted((folder / "out/.tokbatch/shards").iterdir())
    lost = random.Random(seed).sample(records, count)
    for record in lost:
        record.unlink()
    return lost


def test_rows_and_ids(finished):
    folder, _, result, _ = finished
    manifest = read_manifest(folder / "out")
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    assert [entry["name"] for entry in manifest["inputs"]] == ["a/x.parquet", "b/x.parquet", "empty.parquet"]
    for entry in manifest["inputs"]:
        parts = [part for part in manifest["parts"] if part["input"] == entry["name"]]
        table = pa.concat_tables([pq.read_table(folder / "out" / part["path"]) for part in parts])
        source = pq.read_table(folder / entry["name"])
        assert table["id"].equals(source["id"])
        expected = [None if t is None else tokenizer.encode(t).ids for t in source["text"].to_pylist()]
        assert table["input_ids"].to_pylist() == expected
        assert table.column_names == ["id", "input_ids"]
        assert table.schema.field("input_ids").type == pa.list_(pa.field("element", pa.int32(), nullable=False))
    assert len(manifest["parts"]) >= 5
    assert result.stats.documents == 330
    assert result.stats.lstrip_documents == 95


def test_statistics_and_manifest(finished):
    folder, _, result, _ = finished
    files, total = read_stats(folder / "out")
    assert [name for name, _ in files] == ["a/x.parquet", "b/x.parquet", "empty.parquet"]
    assert total == result.stats
    assert (files[0][1].documents, files[0][1].null_documents, files[2][1].documents) == (230, 33, 0)
    assert files[0][1].lstrip_first_rows[:4] == (0, 4, 7, 11)
    table = pq.read_table(folder / "out/stats.parquet")
    assert table["file"].to_pylist() == [name for name, _ in files]
    assert table["tokens"].to_pylist() == [stats.tokens for _, stats in files]
    manifest = read_manifest(folder / "out")
    assert sum(part["tokens"] for part in manifest["parts"]) == total.tokens
    assert [part["path"] for part in manifest["parts"]] == sorted(part["path"] for part in manifest["parts"])
    assert manifest["engine"] == result.job.tokenizer.engine_name
    assert manifest["run"]["retries"] == []
    metadata = pq.read_metadata(folder / "out" / manifest["parts"][0]["path"]).metadata
    assert metadata[b"tokbatch.tokenizer_sha256"].decode() == manifest["tokenizer"]["sha256"]


def test_the_manifest_is_as_its_page_says(finished):
    manifest = read_manifest(finished[0] / "out")
    page = (pathlib.Path(__file__).parents[2] / "docs/output.md").read_text()
    section = page[page.index("## manifest.json") :]
    rows = dict(line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("| `"))
    assert sorted(manifest) == sorted(name for names in rows for name in names.replace("`", "").split(", "))
    for key, below in (("inputs", manifest["inputs"][0]), ("parts", manifest["parts"][0]), ("run", manifest["run"])):
        assert [name for name in below if f"`{name}`" not in rows[f"`{key}`"]] == []
    assert sorted(manifest["quarantine"]) == ["files", "rows"]
    assert rows["`format`"].startswith(f"{manifest['format']}:")


def test_what_was_told(finished, engine):
    _, _, _, notes = finished
    assert "note: a/x.parquet is named twice and taken once" in notes.notes
    assert any(f" {engine} engine>" in note for note in notes.notes)
    assert any("the reference engine (pure Python)" in note for note in notes.notes) == (engine == "reference")
    assert notes.done == sorted(notes.done)
    assert notes.done[0] == 0
    assert notes.done[-1] == notes.total > 0
    assert notes.finished


def test_nothing_but_the_output_is_left(finished):
    names = sorted(str(path.relative_to(finished[0] / "out")) for path in (finished[0] / "out").rglob("*"))
    assert not [name for name in names if "partial" in name or "tmp" in name or name.endswith(".new")]
    assert {name.split("/")[0] for name in names} == {
        ".tokbatch",
        "data",
        "manifest.json",
        "stats.json",
        "stats.parquet",
    }


def test_a_finished_job_has_nothing_to_resume(finished, tmp_path):
    folder, config = copy_of(finished, tmp_path)
    before = files_below(folder / "out")
    result = run_job(load_config(config), resume=True)
    assert result.already_done
    assert result.stats == finished[2].stats
    assert files_below(folder / "out") == before


def test_an_output_is_not_written_over_by_accident(finished, tmp_path):
    _, config = copy_of(finished, tmp_path)
    with pytest.raises(OutputError, match="has a job's output already"):
        run_job(load_config(config))


def test_lost_shards_are_made_again_with_the_same_bytes(finished, tmp_path):
    folder, config = copy_of(finished, tmp_path)
    before = files_below(folder / "out")
    lost = lose(folder, 3, seed=1)
    (folder / "out/.tokbatch/partial").mkdir()
    (folder / "out/.tokbatch/partial/000000-0.parquet").write_bytes(b"half")
    # A part without its record, half of it: as after a crash of the machine.
    part = folder / "out/data" / sorted(os.listdir(folder / "out/data"))[int(lost[0].stem)]
    part.write_bytes(part.read_bytes()[:100])
    result = run_job(load_config(config, ["run.workers=1"]), resume=True)
    assert files_below(folder / "out") == before
    assert result.stats == finished[2].stats
    assert read_manifest(folder / "out")["run"]["resumed_shards"] == len(result.job.shards) - 3


@pytest.mark.parametrize(
    ("change", "overrides", "said"),
    [
        (None, ["tokenizer.add_special_tokens=false"], "tokenizer.add_special_tokens was True, is False"),
        (
            None,
            ["tokenizer.truncation={max_length=7}"],
            "the tokenizer is another one; tokenizer.truncation was 'file'",
        ),
        (None, ["run.batch_bytes=999"], "run.batch_bytes was 700, is 999"),
        (None, ['input.files=["a", "b", "empty.parquet", "new.parquet"]'], "input new.parquet is new"),
        (None, ['input.files=["a", "b"]'], "input empty.parquet is gone"),
        (None, ['input.files=["b", "a", "empty.parquet"]'], "the inputs come in another order"),
        ("b/x.parquet", [], "input b/x.parquet has changed"),
    ],
    ids=["settings", "tokenizer", "batches", "new input", "input gone", "order", "input changed"],
)
def test_another_job_does_not_go_on_in_this_folder(finished, tmp_path, change, overrides, said):
    folder, config = copy_of(finished, tmp_path)
    lose(folder, 1, seed=2)
    write_corpus(folder, "new.parquet", 3)
    if change:
        write_corpus(folder, change, 101)
    before = sorted(folder.rglob("*"))
    with pytest.raises(OutputError, match="this is not the job that was interrupted") as caught:
        run_job(load_config(config, overrides), resume=True)
    assert said in str(caught.value)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("flags", [{}, {"resume": True}, {"overwrite": True}], ids=["plain", "resume", "overwrite"])
def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path, flags):
    write_corpus(tmp_path, "a.parquet", 3)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.doc").write_text("precious")
    with pytest.raises(OutputError, match=r"holds what no job made: thesis\.doc"):
        run_job(load_config(write_config(tmp_path)), **flags)
    assert os.listdir(tmp_path / "out") == ["thesis.doc"]


def test_a_job_goes_on_beside_what_others_put_into_its_folder(finished, tmp_path):
    folder, config = copy_of(finished, tmp_path)
    before = files_below(folder / "out")
    foreign = [folder / "out/notes.txt", folder / "out/.DS_Store", folder / "out/data/nohup.out"]
    for path in foreign:
        path.write_text("kept")
    said = "data/nohup.out: no part of this job; readers of data/ may take it for one"
    complete = Notes()
    assert run_job(load_config(config), resume=True, progress=complete).already_done
    assert said in complete.notes
    sorted((folder / "out/.tokbatch/shards").iterdir())[0].unlink()
    (folder / "out/manifest.json").unlink()
    resumed = Notes()
    run_job(load_config(config), resume=True, progress=resumed)
    assert said in resumed.notes
    assert all(path.read_text() == "kept" for path in foreign)
    assert verify_output(folder / "out").problems == ["data/nohup.out: not in the manifest"]
    foreign.pop().unlink()
    assert files_below(folder / "out") == before
    for flags in ({}, {"overwrite": True}):
        with pytest.raises(OutputError, match=r"no job made: \.DS_Store, notes\.txt") as caught:
            run_job(load_config(config), **flags)
        assert caught.value.hint == "move it away, or give output.path another folder"


def test_two_jobs_cannot_write_one_folder(finished, tmp_path):
    from tokbatch.job.lock import OutputLock
    from tokbatch.job.storage import Storage

    folder, config = copy_of(finished, tmp_path)
    with OutputLock(Storage(folder / "out")):
        for flags in ({}, {"resume": True}, {"overwrite": True}):
            with pytest.raises(OutputError, match=f"another job writes here: process {os.getpid()} on "):
                run_job(load_config(config), **flags)
    assert files_below(folder / "out") == files_below(finished[0] / "out")


def test_a_killed_worker_costs_one_retry(finished, tmp_path):
    folder, config = copy_of(finished, tmp_path)
    before = files_below(folder / "out")
    notes = Notes()
    run_job(load_config(config), overwrite=True, progress=notes, file_system=Deadly(str(tmp_path / "marks"), 1))
    assert files_below(folder / "out") == before
    (retry,) = read_manifest(folder / "out")["run"]["retries"]
    assert retry["reason"].startswith("killed by SIGKILL")
    assert any(note.startswith("a worker died (killed by SIGKILL") for note in notes.notes)


def test_a_shard_that_always_kills_ends_the_job(tmp_path):
    write_corpus(tmp_path, "a.parquet", 30)
    config = load_config(write_config(tmp_path, run__retries=1))
    said = r"a\.parquet: rows 0 to 30: the worker died 2 times \(killed by SIGKILL, .*\); whatever rows it has"
    with pytest.raises(WorkerError, match=said):
        run_job(config, file_system=Deadly(str(tmp_path / "marks"), 99))
    assert files_in_place(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("file_system", "said"), [(Full(300), "No space left on device"), (NoRename(), "Input/output error")]
)
def test_a_disk_that_fails(tmp_path, file_system, said):
    write_corpus(tmp_path, "a.parquet", 100)
    config = load_config(write_config(tmp_path, **SMALL_SHARDS))
    with pytest.raises(OutputError, match=said):
        run_job(config, file_system=file_system)
    assert files_in_place(tmp_path / "out") == []
    run_job(config, resume=True)
    assert verify_output(tmp_path / "out", 1.0).problems == []


def files_in_place(out: pathlib.Path) -> list[str]:
    """Give what has a final name."""
    return [str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and ".tokbatch" not in path.parts]


def write_bad_files(folder):
    good = write_corpus(folder, "good.parquet", 60)
    data = good.read_bytes()
    (folder / "cut.parquet").write_bytes(data[:-20])
    (folder / "text.parquet").write_bytes(b"this is no Parquet file")
    (folder / "zero.parquet").write_bytes(b"")
    (folder / "footer.parquet").write_bytes(data[:4] + data[-8:])
    pq.write_table(pa.table({"text": [1, 2]}), folder / "int.parquet")
    pq.write_table(pa.table({"txt": ["a"]}), folder / "missing.parquet")
    # The footer is good and the pages are not: found only when a worker reads them.
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    (folder / "pages.parquet").write_bytes(data[:4] + b"\x55" * (end - 4) + data[end:])
    return ["cut", "footer", "int", "missing", "pages", "text", "zero"]


def test_each_bad_file_is_one_clear_error(tmp_path):
    for name in write_bad_files(tmp_path):
        config = load_config(write_config(tmp_path, input__files=[f"{name}.parquet"]))
        with pytest.raises(InputError) as caught:
            run_job(config, resume=True)
        if name in ("int", "missing"):  # the config names the column
            assert caught.value.where == "input.text_column"
            assert caught.value.message.endswith(f" in {name}.parquet")
        else:
            assert caught.value.where.startswith(f"{name}.parquet")
        assert "\n" not in str(caught.value).split("\nhint: ")[0]
        assert files_in_place(tmp_path / "out") == []
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_columns_of_one_name_are_not_lost(tmp_path):
    table = pa.table([["a"], [1], [2]], names=["text", "k", "k"])
    pq.write_table(table, tmp_path / "twins.parquet")
    with pytest.raises(InputError, match=r"twins\.parquet: keep_columns: there are 2 columns 'k'"):
        run_job(load_config(write_config(tmp_path)))
    assert not (tmp_path / "out").exists()


def test_bad_files_are_skipped_where_the_config_says_so(tmp_path):
    bad = write_bad_files(tmp_path)
    config = load_config(write_config(tmp_path, run__on_bad_file="skip"))
    notes = Notes()
    result = run_job(config, progress=notes)
    manifest = read_manifest(tmp_path / "out")
    assert sorted(entry["input"] for entry in manifest["quarantine"]["files"]) == [f"{name}.parquet" for name in bad]
    assert all(entry["reason"] for entry in manifest["quarantine"]["files"])
    assert {part["input"] for part in manifest["parts"]} == {"good.parquet"}
    assert result.stats.documents == 60
    assert sum(note.startswith("skipped: ") for note in notes.notes) == len(bad)
    assert run_job(config, resume=True).already_done
    assert verify_output(tmp_path / "out", 1.0).problems == []


def test_no_good_file_at_all(tmp_path):
    (tmp_path / "zero.parquet").touch()
    with pytest.raises(InputError, match="none of the inputs can be read"):
        run_job(load_config(write_config(tmp_path, run__on_bad_file="skip")))
    assert not (tmp_path / "out").exists()


def test_no_input_that_the_workers_can_read(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        path = write_corpus(tmp_path, name, 60)
        content = bytearray(path.read_bytes())
        content[4:200] = bytes(196)  # the footer is whole: only who reads the pages can tell
        path.write_bytes(content)
    config = load_config(write_config(tmp_path, run__on_bad_file="skip"))
    for resume in (False, True):
        with pytest.raises(InputError, match="none of the inputs can be read"):
            run_job(config, resume=resume)
        assert not (tmp_path / "out/manifest.json").exists()


def test_loss_that_the_policy_forbids(tmp_path):
    tokenizer = json.loads(sample.tokenizer_path().read_text())
    tokenizer["model"] = {"type": "WordLevel", "vocab": {"a": 0, "<unk>": 1}, "unk_token": "<unk>"}
    tokenizer["post_processor"] = None
    tokenizer["added_tokens"] = []
    (tmp_path / "t.json").write_text(json.dumps(tokenizer))
    pq.write_table(pa.table({"text": ["a", "b", "a"]}), tmp_path / "a.parquet")
    config = write_config(tmp_path, tokenizer__file="t.json", check__on_lossy="fail")
    with pytest.raises(VerifyError, match=r"a\.parquet: rows 1: 1 documents cannot be given back"):
        run_job(load_config(config))
    assert files_in_place(tmp_path / "out") == []
    result = run_job(load_config(config, ["check.on_lossy=warn"]), overwrite=True)
    assert result.stats.lossy_first_rows == ()
    assert result.stats.lossy_documents == 1


def test_mistakes_that_only_the_tokenizer_shows(tmp_path):
    write_corpus(tmp_path, "a.parquet", 3)
    config = load_config(write_config(tmp_path, tokenizer__append=["<none>"], output__id_type="uint16"))
    with pytest.raises(ConfigError) as caught:
        run_job(config)
    assert caught.value.problems[0].startswith("tokenizer.append")
    assert not (tmp_path / "out").exists()


def test_inputs_that_differ_get_one_schema(tmp_path):
    pq.write_table(pa.table({"text": ["a"], "n": pa.array([1], pa.int8()), "s": ["x"]}), tmp_path / "a.parquet")
    large = pa.table({"n": pa.array([2], pa.int32()), "text": pa.array(["b"], pa.large_string()), "extra": [[1.5]]})
    pq.write_table(large, tmp_path / "b.parquet")
    pq.write_table(pa.table({"text": pa.nulls(2)}), tmp_path / "c.parquet")
    run_job(load_config(write_config(tmp_path)))
    table = pq.read_table(tmp_path / "out/data")
    assert table.select(["n", "s", "extra"]).to_pylist() == [
        {"n": 1, "s": "x", "extra": None},
        {"n": 2, "s": None, "extra": [1.5]},
        {"n": None, "s": None, "extra": None},
        {"n": None, "s": None, "extra": None},
    ]
    assert table["input_ids"].to_pylist()[2:] == [None, None]
    assert verify_output(tmp_path / "out", 1.0).problems == []


RUN = [sys.executable, "-m", "tokbatch.frontends.cli", "run"]


def wait_for(condition, process, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_a_job_that_is_ended_ends_at_once_and_goes_on_later(tmp_path, sent):
    for name in ("a", "b"):
        write_corpus(tmp_path, f"{name}.parquet", 6000)
    config = write_config(tmp_path, run__shard_bytes=10_000)
    run_job(load_config(config, ["output.path=undisturbed"]))
    process = subprocess.Popen([*RUN, str(config)], start_new_session=True, stderr=subprocess.PIPE, text=True)
    shards = tmp_path / "out/.tokbatch/shards"
    wait_for(lambda: shards.is_dir() and any(shards.iterdir()), process)
    start = time.monotonic()
    # Ctrl-C goes to the whole group; a batch system tells the leader.
    (os.killpg if sent == signal.SIGINT else os.kill)(process.pid, sent)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 2
    if sent == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
        # Workers notice that their parent is gone.
        deadline = time.monotonic() + 10
        while True:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            assert time.monotonic() < deadline, "workers outlive the job"
            time.sleep(0.05)
    else:
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "--resume goes on" in err
    assert not (tmp_path / "out/manifest.json").exists()
    assert subprocess.run([*RUN, str(config), "--resume"], capture_output=True).returncode == 0
    assert files_below(tmp_path / "out") == files_below(tmp_path / "undisturbed")
    assert read_manifest(tmp_path / "out")["run"]["resumed_shards"] > 0


@pytest.mark.long
def test_the_bytes_do_not_depend_on_the_workers(finished, tmp_path):
    folder, config = copy_of(finished, tmp_path)
    before = files_below(folder / "out")
    for workers in (1, 7):
        run_job(load_config(config, [f"run.workers={workers}"]), overwrite=True)
        assert files_below(folder / "out") == before
