import dataclasses
import difflib
import typing

import pytest

from tokbatch.batch.token_source import FromColumn
from tokbatch.errors import ConfigError
from tokbatch.job.config import JobConfig, TruncationConfig, load_config, read_config

LEAST = {"tokenizer": {"file": "t.json"}, "input": {"files": ["a.parquet"]}, "output": {"path": "out"}}


def with_keys(**dotted):
    table = {section: dict(keys) for section, keys in LEAST.items()}
    for key, value in dotted.items():
        section, name = key.split("__")
        table.setdefault(section, {})[name] = value
    return table


def problems(table):
    with pytest.raises(ConfigError) as caught:
        read_config(table)
    return caught.value.problems


def test_the_least_config_has_the_documented_defaults():
    config = read_config(LEAST, base="/corpus")
    assert config.input.text_column == "text"
    assert config.input.keep_columns == ()
    assert config.output.id_column == "input_ids"
    assert config.output.id_type == "int32"
    assert config.check.round_trip == "all"
    assert config.check.on_lossy == "warn"
    assert config.run.workers == 0
    assert config.tokenizer.truncation == "file"
    assert config.resolve("t.json") == "/corpus/t.json"
    assert config.resolve("/x/../t.json") == "/t.json"
    assert config.resolve("s3://bucket/a") == "s3://bucket/a"


def test_values_of_every_shape():
    table = with_keys(
        tokenizer__truncation={"max_length": 8},
        tokenizer__prepend=["<s>", {"column": "language"}],
        tokenizer__template={"eng_Latn": {"column": "source_language"}, "</s>": "<eos>"},
        input__keep_columns="all",
        check__crosscheck=1,
    )
    config = read_config(table)
    assert config.tokenizer.truncation == TruncationConfig(8, 0, "Right")
    assert config.tokenizer.prepend == ("<s>", FromColumn("language"))
    assert config.tokenizer.template == {"eng_Latn": FromColumn("source_language"), "</s>": "<eos>"}
    assert config.input.keep_columns == "all"
    assert config.check.crosscheck == 1.0
    assert isinstance(config.check.crosscheck, float)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (with_keys(input__txt_column="t"), ['input.txt_column: unknown key, did you mean "text_column"?']),
        (with_keys(run__zzz=1), None),
        ({**LEAST, "tokeniser": {}}, ['tokeniser: unknown key, did you mean "tokenizer"?']),
        ({**LEAST, "run": 4}, ["run: expected a table"]),
        (with_keys(run__workers="4"), ['run.workers: expected an integer, got "4"']),
        (with_keys(run__workers=True), ["run.workers: expected an integer, got true"]),
        (with_keys(run__workers=-1), ["run.workers: -1 is too small, the least is 0"]),
        (with_keys(run__batch_bytes=0), ["run.batch_bytes: 0 is too small, the least is 1"]),
        (with_keys(check__crosscheck=1.5), ["check.crosscheck: 1.5 is too large, the most is 1"]),
        (with_keys(check__sample_rate=float("nan")), ["check.sample_rate: nan is too small, the least is 0"]),
        (with_keys(check__sample_rate=10**400), ["check.sample_rate: inf is too large, the most is 1"]),
        (
            with_keys(tokenizer__truncation={"max_length": 1 << 64}),
            [f"tokenizer.truncation.max_length: {1 << 64} is too large, the most is {(1 << 64) - 1}"],
        ),
        (
            with_keys(check__on_lossy="fails"),
            ['check.on_lossy: expected "fail" or "warn", got "fails" (did you mean "fail"?)'],
        ),
        (
            with_keys(input__keep_columns="id"),
            ['input.keep_columns: expected "all" or a list of strings, got "id" (write ["id"])'],
        ),
        (with_keys(input__files=["a", 3]), ["input.files[1]: expected a string, got 3"]),
        (
            with_keys(tokenizer__append=[3]),
            ["tokenizer.append[0]: expected a string or a table with column, got 3"],
        ),
        (
            with_keys(tokenizer__append=[{"colum": "x"}]),
            [
                'tokenizer.append[0].colum: unknown key, did you mean "column"?',
                "tokenizer.append[0].column: missing",
            ],
        ),
        (
            with_keys(tokenizer__truncation={"stride": 1}),
            ["tokenizer.truncation.max_length: missing"],
        ),
        (
            with_keys(tokenizer__truncation={"max_length": 4, "stride": 4}),
            ["tokenizer.truncation: a stride of 4 leaves nothing of 4"],
        ),
        (
            {**LEAST, "output": {}},
            ["output.path: missing"],
        ),
        (
            {**LEAST, "tokenizer": {}},
            ["tokenizer.file: give either tokenizer.file or tokenizer.name, here are neither"],
        ),
        (
            with_keys(tokenizer__name="a/b"),
            ["tokenizer.file: give either tokenizer.file or tokenizer.name, here are both"],
        ),
        (with_keys(tokenizer__revision="main"), ["tokenizer.revision: is for a tokenizer given by name"]),
        ({**LEAST, "input": {}}, ["input.files: give either input.files or input.dataset, here are neither"]),
        (
            with_keys(input__dataset="d"),
            ["input.files: give either input.files or input.dataset, here are both"],
        ),
        (with_keys(output__path="a\0b"), ["output.path: a path cannot have a null character"]),
        (with_keys(tokenizer__file="a\0b"), ["tokenizer.file: a path cannot have a null character"]),
        (with_keys(input__files=["a", "b\0"]), ["input.files: a path cannot have a null character"]),
        (with_keys(input__split="train"), ["input.split: is for a dataset"]),
        (with_keys(input__subset="en"), ["input.subset: is for a dataset"]),
        (with_keys(input__text_column=""), ["input.text_column: is empty"]),
        (with_keys(input__keep_columns=["a", "b", "a"]), ['input.keep_columns: "a" stands there twice']),
        (
            with_keys(input__keep_columns=["input_ids"]),
            ['output.id_column: "input_ids" is a kept column already'],
        ),
        (with_keys(output__id_column=""), ["output.id_column: is empty"]),
        (with_keys(output__path="s3://b/o"), ['output.path: expected a folder of this machine, got "s3://b/o"']),
        (
            with_keys(check__round_trip="off", check__on_lossy="fail"),
            ['check.on_lossy: cannot be "fail" where check.round_trip is "off"'],
        ),
    ],
    ids=lambda value: value[0].split(":")[0] if isinstance(value, list) else "",
)
def test_each_mistake_is_named(table, expected):
    found = problems(table)
    if expected is None:
        assert len(found) == 1
        assert found[0].startswith("run.zzz: unknown key, known are workers, ")
    else:
        assert found == expected


def test_all_mistakes_come_at_once():
    table = with_keys(tokenizer__file=3, input__files="a", output__path=1, run__workers=-1, run__worker=2)
    found = problems(table)
    keys = ["tokenizer.file", "input.files", "output.path", "run.worker", "run.workers"]
    assert [line.split(":")[0] for line in found] == keys


def test_settings_leave_out_what_the_output_does_not_depend_on():
    settings = read_config(LEAST, base="/here").settings()
    run = {"workers": 7, "retries": 0, "on_bad_file": "skip", "on_bad_row": "null", "cached_pretokens": 1 << 12}
    moved = {**LEAST, "output": {"path": "elsewhere"}, "run": run, "check": {"on_lossy": "fail"}}
    assert read_config(moved, base="/there").settings() == settings
    changed = with_keys(run__batch_bytes=1 << 20, check__round_trip="off", output__compression="lz4")
    other = read_config(changed).settings()
    assert {
        key for section in settings for key in settings[section] if settings[section][key] != other[section][key]
    } == {
        "batch_bytes",
        "round_trip",
        "compression",
    }


def test_the_config_survives_as_plain_data():
    table = with_keys(tokenizer__truncation={"max_length": 8}, tokenizer__append=[{"column": "c"}, "x"])
    config = read_config(table, base="/b")
    plain = config.to_table()
    base = plain.pop("base")
    # Lists, as JSON has them in the manifest.
    plain["tokenizer"]["append"] = list(plain["tokenizer"]["append"])
    for section, key in (("tokenizer", "prepend"), ("input", "files"), ("input", "keep_columns")):
        plain[section][key] = list(plain[section][key])
    assert read_config(plain, base=base) == config


def test_a_file_with_overrides(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text('[tokenizer]\nfile = "t.json"\n[input]\nfiles = ["a"]\n[output]\npath = "out"\n')
    config = load_config(
        path, ["run.workers=3", "output.path=other/o", 'input.files=["x", "y"]', "tokenizer.engine=reference"]
    )
    assert (config.run.workers, config.output.path, config.input.files) == (3, "other/o", ("x", "y"))
    assert config.output_path == tmp_path / "other/o"
    assert config.tokenizer.engine == "reference"


@pytest.mark.parametrize("override", ["run.workers", "=3", "run.=3", ".workers=3"])
def test_an_override_that_is_none(tmp_path, override):
    path = tmp_path / "job.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"expected section\.key=value"):
        load_config(path, [override])


def test_a_file_that_is_no_config(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[run\n")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(tmp_path / "bytes.toml")


def test_every_key_has_a_help_text_of_its_own():
    texts = []
    for name, hint in typing.get_type_hints(JobConfig).items():
        if name != "base":
            texts += [field.metadata["help"] for field in dataclasses.fields(hint)]
    assert all(texts)
    assert len(set(texts)) == len(texts)
    assert not difflib.get_close_matches("help", texts)


def test_the_page_of_the_settings_is_made_from_them():
    import pathlib
    import subprocess
    import sys

    script = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make_config_page.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
