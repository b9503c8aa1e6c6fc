"""Inputs that change, vanish or do not fit to the others: each is named, nothing of two states is mixed."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import files_below, write_config
from faulty_file_systems import InputChanges
from tokbatch.errors import InputError, OutputError
from tokbatch.job import load_config, prepare_job, read_manifest, run_job, verify_output

ROWS = 120
TEXTS = [f"Hello, number {i:03d}!" for i in range(ROWS)]
OTHERS = ["Jello" + text[5:] if i in (70, ROWS - 1) else text for i, text in enumerate(TEXTS)]


def content_of(suffix, texts, **options):
    """Give a file of some texts; of one length for `TEXTS` and `OTHERS`, where nothing is compressed."""
    sink, table = io.BytesIO(), pa.table({"text": texts})
    if suffix == "parquet":
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False} | options
        pq.write_table(table, sink, row_group_size=10, **options)
    elif suffix == "arrow":
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=10)
    elif suffix == "txt":
        sink.write("\n".join(texts).encode())
    else:
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        sink.write(gzip.compress(lines, mtime=0, compresslevel=0) if suffix.endswith(".gz") else lines)
    return sink.getvalue()


def corpus(folder, suffix="parquet", **options):
    """Write two inputs, of which the first one will change; gives its path and the config."""
    changing = folder / f"a.{suffix}"
    changing.write_bytes(content_of(suffix, TEXTS, **options))
    (folder / "b.parquet").write_bytes(content_of("parquet", TEXTS))
    config = write_config(
        folder,
        input__files=[changing.name, "b.parquet"],
        run__workers=1,
        run__shard_bytes=200,
        run__batch_bytes=100,
    )
    return changing, config


def made_of(folder, config, name):
    """Give the output of an undisturbed job over the inputs as they are now."""
    run_job(load_config(config, [f"output.path={name}"]))
    return files_below(folder / name)


LONG = pytest.mark.long
CHANGED = "the file has changed since the job was planned"
WRITTEN = "the file has been written to since the job was planned"


@pytest.mark.parametrize(
    ("suffix", "nth", "keeps_time", "said"),
    [
        ("parquet", 3, False, WRITTEN),
        pytest.param("parquet", 1, False, WRITTEN, marks=LONG),
        ("jsonl", 1, True, CHANGED),
        pytest.param("jsonl", 1, False, CHANGED, marks=LONG),
        pytest.param("jsonl.gz", 1, True, CHANGED, marks=LONG),
        pytest.param("txt", 1, True, CHANGED, marks=LONG),
        pytest.param("arrow", 1, True, CHANGED, marks=LONG),
    ],
)
def test_other_bytes_of_the_same_size_while_the_job_runs(tmp_path, suffix, nth, keeps_time, said):
    path, config = corpus(tmp_path, suffix)
    content = content_of(suffix, OTHERS)
    assert len(content) == len(path.read_bytes())
    changes = InputChanges(str(path), content, nth, str(tmp_path / "marks"), keeps_time)
    with pytest.raises(InputError, match=said) as caught:
        run_job(load_config(config), file_system=changes)
    assert caught.value.where == path.name
    assert not (tmp_path / "out/manifest.json").exists()
    if suffix == "parquet":  # its footer is the same: the rest is made of what is there now, and so is all of it
        run_job(load_config(config), resume=True)
        assert files_below(tmp_path / "out") == made_of(tmp_path, config, "other")
        return
    with pytest.raises(OutputError, match=rf"this is not the job that was interrupted: input a\.{suffix} has changed"):
        run_job(load_config(config), resume=True)
    path.write_bytes(content_of(suffix, TEXTS))
    run_job(load_config(config), resume=True)
    assert files_below(tmp_path / "out") == made_of(tmp_path, config, "other")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (content_of("parquet", OTHERS), WRITTEN),
        pytest.param(content_of("parquet", TEXTS[:-1]), WRITTEN, marks=LONG),
        pytest.param(b"", WRITTEN, marks=LONG),
        (None, "cannot be read: No such file or directory"),
    ],
    ids=["pages", "footer", "emptied", "removed"],
)
def test_an_input_that_changes_is_skipped_as_a_whole(tmp_path, content, said):
    path, config = corpus(tmp_path)
    changes = InputChanges(str(path), content, 3, str(tmp_path / "marks"))
    config = load_config(config, ["run.on_bad_file=skip"])
    result = run_job(config, file_system=changes)
    assert dict(result.skipped) == {"a.parquet": said}
    manifest = read_manifest(tmp_path / "out")
    assert manifest["quarantine"]["files"] == [{"input": "a.parquet", "reason": said}]
    assert {part["input"] for part in manifest["parts"]} == {"b.parquet"}
    assert [entry["name"] for entry in manifest["inputs"]] == ["b.parquet"]
    assert result.stats.documents == ROWS
    assert verify_output(tmp_path / "out", 1.0).problems == []


def test_pages_that_change_under_the_same_footer_and_time_are_noticed_by_their_checksums(tmp_path):
    path, config = corpus(tmp_path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(b"Hello, number 119!")] = ord("J")
    changes = InputChanges(str(path), bytes(content), 1, str(tmp_path / "marks"), keeps_time=True)
    with pytest.raises(
        InputError, match=r"a\.parquet: row group 11: cannot be read: .*CRC checksum verification failed"
    ):
        run_job(load_config(config), file_system=changes)


def test_an_input_that_vanishes_before_the_job_begins_or_goes_on(tmp_path):
    path, config = corpus(tmp_path)
    prepare_job(load_config(config))
    content = path.read_bytes()
    path.unlink()
    said = r"^a\.parquet: cannot be read: No such file or directory\nhint: looked for /"
    with pytest.raises(InputError, match=said):
        run_job(load_config(config))
    assert not (tmp_path / "out").exists()
    result = run_job(load_config(config, ["run.on_bad_file=skip", "output.path=skipped"]))
    assert dict(result.skipped) == {"a.parquet": "cannot be read: No such file or directory"}
    path.write_bytes(content)
    undisturbed = made_of(tmp_path, config, "undisturbed")
    path.write_bytes(content_of("parquet", OTHERS)[:-1])
    with pytest.raises(InputError, match=r"^a\.parquet: not a Parquet file"):
        run_job(load_config(config))
    path.write_bytes(content)
    removes = InputChanges(str(path), None, 3, str(tmp_path / "marks"))
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read: No such file or directory"):
        run_job(load_config(config), file_system=removes)
    with pytest.raises(InputError, match=said):
        run_job(load_config(config), resume=True)
    # What was finished of it is not thrown away, whatever the policy says: it may come back.
    for overrides in (["run.on_bad_file=skip"], ['input.files=["*.parquet"]']):
        with pytest.raises(OutputError, match=r"not the job that was interrupted: .*input a\.parquet is gone"):
            run_job(load_config(config, overrides), resume=True)
    path.write_bytes(content)
    run_job(load_config(config), resume=True)
    assert read_manifest(tmp_path / "out")["run"]["resumed_shards"] > 0
    assert files_below(tmp_path / "out") == undisturbed


@pytest.mark.parametrize(
    ("columns", "kept", "said"),
    [
        ({"text": [1, 2]}, [], "column 'text'"),
        ({"txt": ["a", "b"]}, [], "there is no column 'text'"),
        pytest.param({"text": ["a", "b"]}, ["n"], "there is no column 'n'", marks=LONG),
        ({"text": ["a", "b"], "n": ["x", "y"]}, ["n"], 'the column "n" is string here, and int64 in a.parquet'),
        pytest.param(
            {"text": ["a", "b"], "n": [0.5, 1.5]},
            "all",
            'the column "n" is double here, and int64 in a.parquet',
            marks=LONG,
        ),
    ],
    ids=["other type", "no text", "no kept column", "kept column of another type", "one of all columns"],
)
def test_a_file_whose_columns_do_not_fit_to_the_others(tmp_path, columns, kept, said):
    pq.write_table(pa.table({"text": ["one", "two"], "n": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(columns), tmp_path / "b.parquet")
    pq.write_table(pa.table({"n": [3], "text": ["three"]}), tmp_path / "c.parquet")
    config = write_config(tmp_path, input__keep_columns=kept)
    with pytest.raises(InputError) as caught:
        run_job(load_config(config))
    assert caught.value.where.startswith("b.parquet")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()
    result = run_job(load_config(config, ["run.on_bad_file=skip"]))
    assert list(result.skipped) == ["b.parquet"]
    assert said in result.skipped["b.parquet"]
    assert (result.stats.documents, verify_output(tmp_path / "out", 1.0).problems) == (3, [])
