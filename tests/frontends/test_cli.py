import json
import os
import re
import subprocess
import sys

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import tokbatch as tb
from corpora import write_config, write_corpus
from tokbatch import Tokenizer, sample
from tokbatch.engine import native
from tokbatch.frontends.cli import app

ENGINE = "native" if native.why_unavailable() is None else "reference"
TOKENIZER = str(sample.tokenizer_path())


def tokbatch(*arguments, expect=0, stdin=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == expect, (result.stdout, result.stderr, result.exception)
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_corpus(folder, "a.parquet", 70)
    config = write_config(folder)
    return folder, config, tokbatch("run", config)


def test_run_says_where_on_stdout_and_talks_on_stderr(job):
    folder, _, result = job
    assert result.stdout == f"{folder / 'out'}\n"
    assert "70 documents" in result.stderr
    assert "10 null, 0 failed" in result.stderr
    assert "stripped" in result.stderr


def test_run_twice(job):
    _, config, _ = job
    again = tokbatch("run", config, expect=1)
    assert again.stderr.splitlines() == [
        f"error: {job[0] / 'out'}: the folder has a job's output already",
        "hint: go on with it by --resume, or start anew with --overwrite",
    ]
    complete = tokbatch("run", config, "--resume")
    assert complete.stdout == f"{job[0] / 'out'}\n"
    resumed = complete.stderr.splitlines()
    assert resumed[1].startswith("before: 1 of 1 shard finished, ")
    assert resumed[2].startswith("nothing left to do")
    elsewhere = tokbatch("run", config, "--resume", "--set", "output.path=new").stderr.splitlines()
    assert elsewhere[0].startswith("nothing to resume: there is no ")
    assert elsewhere[0].endswith("new yet; a new job begins")
    tokbatch("run", config, "--resume", "--overwrite", expect=2)


@pytest.mark.parametrize("command", ["run", "verify", "report"])
def test_what_is_skipped_stands_in_the_last_line(tmp_path, command):
    data = write_corpus(tmp_path, "good.parquet", 60).read_bytes()
    (tmp_path / "at_the_plan.parquet").write_bytes(data[:-20])
    # The footer is good and the pages are not: only a worker finds that.
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    (tmp_path / "in_a_worker.parquet").write_bytes(data[:4] + b"\x55" * (end - 4) + data[end:])
    config = write_config(tmp_path, run__on_bad_file="skip")
    ran = tokbatch("run", config)
    skipped = "2 inputs SKIPPED (at_the_plan.parquet, in_a_worker.parquet)"
    if command == "run":
        assert f"0 failed; {skipped}; see `tokbatch report" in ran.stderr.splitlines()[-1]
        assert f"is complete; {skipped}" in tokbatch("run", config, "--resume").stderr.splitlines()[-1]
    elif command == "verify":
        verified = tokbatch("verify", tmp_path / "out", "--sample", "1").stderr
        assert verified == f"1 part, 60 rows, 60 made anew; {skipped}: 0 problems\n"
    else:
        report = tokbatch("report", tmp_path / "out").stdout
        assert "1 input, 2 SKIPPED" in report
        lines = [line.strip() for line in report.splitlines() if "  skipped" in line]
        assert lines[0].startswith("skipped at_the_plan.parquet: not a Parquet file, or cut short: ")
        assert lines[1].startswith("skipped in_a_worker.parquet: row group 0: cannot be read: ")
        told = json.loads(tokbatch("report", tmp_path / "out", "--json").stdout)
        assert [entry["input"] for entry in told["quarantine"]["files"]] == [
            "at_the_plan.parquet",
            "in_a_worker.parquet",
        ]


@pytest.mark.parametrize("too_long", ["drop", "truncate"])
def test_what_packing_leaves_out_is_said_everywhere(tmp_path, too_long):
    pq.write_table(pa.table({"text": ["a", "many more words " * 20, "b"]}), tmp_path / "a.parquet")
    config = write_config(tmp_path, input__keep_columns=[], run__workers=1)
    packing = f'[output.packing]\nlength = 8\npad = "<pad>"\nsplit = false\ntoo_long = "{too_long}"\n'
    config.write_text(config.read_text() + packing)
    said = tokbatch("run", config).stderr.splitlines()
    total = json.loads((tmp_path / "out/stats.json").read_text())["total"]
    written, gone = total["packed_tokens"], total["dropped_tokens"]
    assert total["dropped_documents"] == (too_long == "drop")
    assert gone == total["tokens"] - written > 0
    left_out = f"{gone} tokens CUT OFF from the ends of documents"
    if too_long == "drop":
        left_out = f"1 document DROPPED ({gone} tokens)"
    assert f"{total['tokens']} tokens encoded in " in said[-3]
    assert said[-2] == f"{written} tokens in the output; {left_out}"
    assert f"is complete; {left_out}" in tokbatch("run", config, "--resume").stderr.splitlines()[-1]
    verified = tokbatch("verify", tmp_path / "out", "--sample", "1").stderr
    rows = total["packed_rows"]
    assert verified == (
        f"1 part, {rows} row{'s' * (rows > 1)}, {written} tokens in the output, 3 made anew; {left_out}: 0 problems\n"
    )
    report = tokbatch("report", tmp_path / "out").stdout
    assert f"  ids         {written} tokens in the output; {left_out}; {total['tokens']} encoded, " in report
    told = json.loads(tokbatch("report", tmp_path / "out", "--json").stdout)
    dropped = {name: total[name] for name in ("dropped_documents", "dropped_tokens")}
    assert told["output"] == {"tokens": written, **dropped}
    tokbatch("report", tmp_path / "out", "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"<b>{written}</b><span>tokens in the output</span>" in page
    big, small = ("1", f"document DROPPED ({gone} tokens)") if too_long == "drop" else left_out.split(" ", 1)
    assert f"<b>{big}</b><span>{small}</span>" in page


def test_verify_and_report(job):
    folder, _, _ = job
    verified = tokbatch("verify", folder / "out", "--sample", "1")
    assert verified.stdout == ""
    assert "1 part, 70 rows, 70 made anew: 0 problems" in verified.stderr
    report = tokbatch("report", folder / "out").stdout
    assert "<mask>" in report
    assert "10 null documents, without a text to give back" in report
    assert "U+3000 IDEOGRAPHIC SPACE" in report
    content = json.loads(tokbatch("report", folder / "out", "--json").stdout)
    assert content["total"]["documents"] == 70
    assert content["files"][0]["file"] == "a.parquet"
    assert content["engine"] == ENGINE
    (folder / "out/data/extra.parquet").touch()
    assert tokbatch("verify", folder / "out", expect=1).stdout == "data/extra.parquet: not in the manifest\n"
    (folder / "out/data/extra.parquet").unlink()


def test_plan_writes_nothing(tmp_path):
    write_corpus(tmp_path, "a.parquet", 70)
    config = write_config(tmp_path)
    plan = tokbatch("plan", config, "--set", "run.shard_bytes=500").stdout
    assert "a.parquet" in plan
    assert "input_ids: list<element: int32 not null>" in plan
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "job.toml"]


def test_a_resumed_run_tells_its_own_speed(tmp_path):
    write_corpus(tmp_path, "a.parquet", 200, row_group=20)
    config = write_config(tmp_path, run__shard_bytes=300)
    tokbatch("run", config)
    (tmp_path / "out/manifest.json").unlink()
    sorted((tmp_path / "out/.tokbatch/shards").iterdir())[0].unlink()
    said = tokbatch("run", config, "--resume").stderr
    assert "before: 9 of 10 shards finished, " in said
    assert re.search(r"tokens; this time [\d.]+ k?B in [\d.]+ s, ", said)


def test_five_mistakes_are_five_lines(tmp_path):
    config = write_config(
        tmp_path, input__txt_column="t", run__workers=-1, output__id_type="int16", check__on_lossy=3, runn__workers=1
    )
    result = tokbatch("run", config, expect=2)
    assert result.stdout == ""
    assert sorted(result.stderr.splitlines()) == [
        'error: check.on_lossy: expected "fail" or "warn", got 3',
        'error: input.txt_column: unknown key, did you mean "text_column"?',
        'error: output.id_type: expected "int32", "uint16" or "auto", got "int16" (did you mean "uint16"?)',
        "error: run.workers: -1 is too small, the least is 0",
        'error: runn: unknown key, did you mean "run"?',
    ]


@pytest.mark.parametrize(
    ("dotted", "status", "said"),
    [
        ({"input__text_column": "txt"}, 2, "input.text_column: there is no column 'txt' in a.parquet"),
        ({"input__files": ["none.parquet"]}, 2, "none.parquet: cannot be read: No such file or directory"),
        ({"input__files": ["*.jsonl"]}, 2, "*.jsonl: no file of a known format there"),
        ({"input__files": ["job.toml"]}, 1, "job.toml: not a Parquet file"),
        ({"tokenizer__file": "job.toml"}, 2, "job.toml"),
        ({"tokenizer__file": "none.json"}, 2, "none.json"),
        ({"tokenizer__append": ["<none>"]}, 2, "tokenizer.append"),
        ({"input__keep_columns": ["idd"]}, 2, "input.keep_columns: there is no column 'idd' in a.parquet"),
        ({"input__files": "a"}, 2, 'input.files: expected a list of strings, got "a" (write ["a"])'),
        ({"output__path": "a.parquet/out"}, 1, "a.parquet/out"),
        ({"output__id_column": "id"}, 2, "id"),
        ({"output__path": "x" * 300}, 1, "cannot write: File name too long"),
        ({"tokenizer__file": "x" * 300}, 2, "File name too long"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_one_mistake_is_one_clear_line_and_nothing_is_written(tmp_path, dotted, status, said):
    write_corpus(tmp_path, "a.parquet", 3)
    result = tokbatch("run", write_config(tmp_path, **dotted), expect=status)
    lines = [line for line in result.stderr.splitlines() if not line.startswith(("hint: ", "1 input", "note: "))]
    assert len(lines) == 1, lines
    assert said in lines[0]
    assert lines[0].startswith("error: ")
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "job.toml"]


def test_a_split_that_is_not_given_or_not_there(tmp_path):
    rows = datasets.Dataset.from_dict({"text": ["a"]})
    datasets.DatasetDict(train=rows, test=rows).save_to_disk(tmp_path / "d")
    config = write_config(tmp_path, input__files=[], input__dataset="d")
    for options in ([], ["--set", "input.split=dev"]):
        for command in ("plan", "run"):
            (line,) = tokbatch(command, config, *options, expect=2).stderr.splitlines()
            assert line.startswith("error: input.split: d")
            assert "has the splits train, test, and " in line
    assert not (tmp_path / "out").exists()


def test_what_is_not_there_is_a_wrong_command(tmp_path):
    none, text = str(tmp_path / "none.json"), tmp_path / "text.json"
    text.write_text("no tokenizer")
    for command in (
        ("inspect", none),
        ("inspect", text),
        ("explain", none, "a"),
        ("count", none, text),
        ("count", TOKENIZER, tmp_path / "none.parquet"),
        ("count", TOKENIZER, tmp_path / "*.parquet"),
        ("report", tmp_path / "none"),
        ("verify", tmp_path / "none"),
        ("run", tmp_path / "none.toml"),
    ):
        said = tokbatch(*command, expect=2).stderr.splitlines()
        assert [line.split(":")[0] for line in said] in (["error"], ["error", "hint"]), said


def test_a_folder_that_cannot_be(tmp_path):
    for command in ("report", "verify"):
        assert "cannot look there: File name too long" in tokbatch(command, tmp_path / ("x" * 300), expect=1).stderr


def test_explain_shows_the_token_its_place_and_what_decoding_loses():
    result = tokbatch("explain", TOKENIZER, "a <mask> b")
    encoding = Tokenizer.from_file(TOKENIZER).encode("a <mask> b")
    start, end = encoding.offsets[2]
    (row,) = [line.split() for line in result.stdout.splitlines() if line.startswith("' <mask>'")]
    assert row[-3:] == [str(encoding.ids[2]), str(start), str(end)]
    assert "decoded         'a<mask> b'" in result.stdout
    assert f"ids             {encoding.ids}" in result.stdout
    assert "round trip      stripped" in result.stdout
    assert "(1 character absorbed to the left of added tokens)" in result.stdout


@pytest.mark.parametrize(("ids", "tokens"), [([1, 0], ["<s>"]), ([1], ["<s>", "x"])])
def test_explain_shows_a_special_token_with_more_ids_than_tokens_or_fewer(tmp_path, ids, tokens):
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    value = {
        "model": {"type": "WordLevel", "vocab": {"a": 0, "<s>": 1}, "unk_token": "a"},
        "added_tokens": [],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single,
            "special_tokens": {"<s>": {"id": "<s>", "ids": ids, "tokens": tokens}},
        },
    }
    (tmp_path / "t.json").write_text(json.dumps(value))
    result = tokbatch("explain", tmp_path / "t.json", "a", "--engine", "reference")
    assert f"ids             {[*ids, 0]}" in result.stdout
    assert "post-processed  '<s>'=1 " in result.stdout


def test_explain_shows_every_blank_and_reads_stdin():
    result = tokbatch("explain", TOKENIZER, "-", "--no-special-tokens", stdin="tab\tno-break\u00a0line\n")
    assert r"'tab\tno-break\xa0line\n'" in result.stdout
    assert "round trip      exact" in result.stdout
    assert "<s>" not in result.stdout.split("\n", 1)[1]
    assert "ids             [0, 2]" in tokbatch("explain", TOKENIZER, "").stdout


def test_explain_aligns_wide_characters_and_says_why_a_text_is_lost(tmp_path):
    from rich.cells import cell_len

    document = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "日本語": 1, "a": 2}},
        "pre_tokenizer": {"type": "Whitespace"},
    }
    (tmp_path / "t.json").write_text(json.dumps(document))
    shown = tokbatch("explain", tmp_path / "t.json", "日本語 a b").stdout.splitlines()
    start = next(index for index, line in enumerate(shown) if line.startswith("token "))
    table = [shown[start], *shown[start + 2 : start + 5]]
    assert len({cell_len(line) for line in table}) == 1
    assert "日本語" in table[1]
    assert (
        shown[-1]
        == "round trip      lossy: the ids do not give the text back, for it has unknown tokens (1 unknown token)"
    )


def test_explain_against_another_engine_or_tokenizer(tmp_path):
    assert "equal in every stage" in tokbatch("explain", TOKENIZER, "a <mask> b", "--against", "reference").stdout
    changed = json.loads(sample.tokenizer_path().read_text(encoding="utf-8"))
    changed["pre_tokenizer"]["add_prefix_space"] = True
    other = tmp_path / "other.json"
    other.write_text(json.dumps(changed), encoding="utf-8")

    found = tokbatch("explain", TOKENIZER, "a b", "--against", other, expect=1)

    assert "differs in pretokens: entry 0 is 'a' on one side, 'Ġa' on the other" in found.stdout


def test_explain_refuses_an_engine_that_is_none():
    assert (
        "expected auto, native or reference" in tokbatch("explain", TOKENIZER, "x", "--engine", "fast", expect=2).stderr
    )


def test_a_config_is_no_tokenizer(tmp_path):
    config = write_config(tmp_path)
    for arguments in (("inspect", config), ("explain", config, "a"), ("count", config, "a.parquet")):
        said = tokbatch(*arguments, expect=2).stderr.splitlines()
        assert said[0].startswith(f"error: {config}: ")
        assert said[1] == "hint: a tokenizer.json is wanted here, and this looks like the config of a job"


def test_inspect():
    result = tokbatch("inspect", TOKENIZER)
    assert "<mask>" in result.stdout
    assert "BPE" in result.stdout


def test_count(tmp_path, monkeypatch):
    write_corpus(tmp_path, "a.parquet", 20)
    pq.write_table(pa.table({"meta": [{"body": "a <mask>"}, {"body": None}]}), tmp_path / "b.parquet")
    tokenizer = Tokenizer.from_file(TOKENIZER)
    texts = [text for text in pq.read_table(tmp_path / "a.parquet")["text"].to_pylist() if text is not None]
    tokens = sum(len(tokenizer.encode(text).ids) for text in texts)
    monkeypatch.chdir(tmp_path)
    lines = tokbatch("count", TOKENIZER, "a.parquet").stdout.splitlines()
    assert [line.split() for line in lines] == [["tokens", "documents", "file"], [str(tokens), "20", "a.parquet"]]
    options = ("--text-column", "meta.body", "--no-special-tokens")
    nested = tokbatch("count", TOKENIZER, tmp_path / "b.parquet", *options).stdout
    assert nested.splitlines()[1].split()[:2] == [
        str(len(tokenizer.encode("a <mask>", add_special_tokens=False).ids)),
        "2",
    ]
    both = tokbatch("count", TOKENIZER, "a.parquet", tmp_path / "a.parquet", "b.parquet", expect=2)
    assert both.stderr.splitlines()[0] == "error: --text-column: there is no column 'text' in b.parquet"
    alone = tokbatch("count", TOKENIZER, "b.parquet", expect=2)
    assert alone.stdout == ""


def test_count_has_hints_of_its_own(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": 7}\n')
    bad = tokbatch("count", TOKENIZER, tmp_path / "a.jsonl", expect=1).stderr.splitlines()
    assert bad[0].startswith(f"error: {tmp_path / 'a.jsonl'}: line 2: not as the columns are")
    assert bad[1:] == ["hint: mend the row, or leave the file out"]


def test_count_takes_a_dataset_of_save_to_disk(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    one = datasets.Dataset.from_dict({"text": ["a <mask>", None, "b"]})
    one.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"train": one, "test": one.select([0])}).save_to_disk(tmp_path / "all")
    write_corpus(tmp_path, "a.parquet", 2)
    monkeypatch.chdir(tmp_path)
    lines = tokbatch("count", TOKENIZER, "one", "a.parquet", "all", "./one/").stdout.splitlines()
    assert [line.split()[1:] for line in lines[1:]] == [
        ["3", "one"],
        ["2", "a.parquet"],
        ["3", "all/train"],
        ["1", "all/test"],
        ["9", "total"],
    ]
    tokens = [int(line.split()[0].replace(",", "")) for line in lines[1:]]
    assert tokens[0] == tokens[2] > tokens[3] > 0


def test_help_teaches_with_examples():
    assert "tokbatch run job.toml" in tokbatch("--help").stdout
    for command in ("run", "plan", "verify", "report", "inspect", "explain", "count"):
        assert f"tokbatch {command} " in tokbatch(command, "--help").stdout
    assert tokbatch("--version").stdout.startswith("tokbatch 0.")
    assert "No such command" in tokbatch("rnu", expect=2).stderr


def test_the_installed_command_and_a_closed_pipe(job):
    folder, _, _ = job
    command = [sys.executable, "-m", "tokbatch.frontends.cli", "report", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == tokbatch("report", folder / "out").stdout
    command = [sys.executable, "-m", "tokbatch", "report", str(folder / "out")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_everything(job, encoding):
    folder, _, _ = job
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for arguments in (["report", str(folder / "out")], ["explain", TOKENIZER, "naïve 日本"]):
        command = [sys.executable, "-m", "tokbatch.frontends.cli", *arguments]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        assert done.stderr == b""
        assert b"\\u" in done.stdout
    command = [sys.executable, "-m", "tokbatch.frontends.cli", "report", str(folder / "out"), "--json"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert json.loads(done.stdout)["total"]["documents"] == 70


def test_a_native_engine_that_is_missing_is_told(tmp_path, monkeypatch):
    for reason in (None, "no such module"):
        monkeypatch.setattr("tokbatch.engine.native._why_not", reason)
        said = tokbatch("--version").stdout.splitlines()[1]
        assert said == f"native engine: {f'NOT INSTALLED: {reason}' if reason else 'installed'}"
    why = "the native engine is not installed: no such module"
    inspected = tokbatch("inspect", TOKENIZER)
    assert inspected.stdout.startswith("<Tokenizer BPE, ")
    assert "reference engine>\n" in inspected.stdout
    assert inspected.stderr == f"WARNING: {why}; the reference engine does the work: exact, and slow\n"
    write_corpus(tmp_path, "a.parquet", 3)
    config = write_config(tmp_path)
    assert f"WARNING     {why}" in tokbatch("plan", config).stdout
    done = tokbatch("run", config)
    assert done.stderr.count(f"WARNING: {why}") == 1
    assert "reference engine>" in done.stderr.splitlines()[0]
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["engine"], manifest["run"]["why_reference"]) == ("reference", why)
    assert f"engine      reference, tokbatch {tb.__version__}  ({why})" in tokbatch("report", tmp_path / "out").stdout
    assert "0 problems" in tokbatch("verify", tmp_path / "out").stderr


@pytest.mark.skipif(ENGINE != "native", reason="there is no native engine")
def test_auto_is_the_native_engine_where_it_is_installed(tmp_path):
    inspected = tokbatch("inspect", TOKENIZER)
    assert "native engine>\n" in inspected.stdout
    assert inspected.stderr == ""
    write_corpus(tmp_path, "a.parquet", 3)
    done = tokbatch("run", write_config(tmp_path))
    assert "native engine>" in done.stderr.splitlines()[0]
    assert "WARNING" not in done.stderr
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["engine"], manifest["run"]["why_reference"]) == ("native", None)


def test_a_crosscheck_that_cannot_fail_is_told(tmp_path):
    write_corpus(tmp_path, "a.parquet", 3)
    done = tokbatch("run", write_config(tmp_path, tokenizer__engine="reference", check__crosscheck=0.5), expect=2)
    fact, hint = done.stderr.splitlines()
    assert fact.startswith(
        "error: check.crosscheck: the crosscheck encodes again with the reference engine, which does the"
    )
    assert hint == "hint: leave it at 0.0 where the native engine does not do the work"
    assert not (tmp_path / "out").exists()
