import os

import fsspec
import pytest

from tokbatch.errors import InputError
from tokbatch.job.config import read_config
from tokbatch.job.inputs import list_files, list_inputs
from tokbatch.job.sources import open_source


@pytest.fixture
def corpus(tmp_path):
    for name in (
        "b/2.parquet",
        "b/1.parquet",
        "a.parquet",
        "b/c/1.pq",
        "b/_temporary/x.parquet",
        "b/.x.parquet",
        "b/readme",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def names(found):
    return [source.name for source in found.inputs]


def test_files_globs_and_folders_in_order(corpus):
    assert names(list_files(["a.parquet"], str(corpus))) == ["a.parquet"]
    assert names(list_files(["b/*.parquet"], str(corpus))) == ["b/1.parquet", "b/2.parquet"]
    assert names(list_files(["b"], str(corpus))) == ["b/1.parquet", "b/2.parquet", "b/c/1.pq"]
    assert names(list_files(["b/**/*.p*"], str(corpus)))[-1] == "b/c/1.pq"
    assert names(list_files([f"{corpus}/b/[12].parquet"], "/")) == [f"{corpus}/b/1.parquet", f"{corpus}/b/2.parquet"]
    found = list_files(["b/2.parquet", "a.parquet"], str(corpus))
    assert names(found) == ["b/2.parquet", "a.parquet"]
    assert [source.path for source in found.inputs] == [f"{corpus}/b/2.parquet", f"{corpus}/a.parquet"]


def test_a_file_named_twice_is_taken_once_and_said(corpus):
    found = list_files(["a.parquet", "./a.parquet", "*.parquet", f"{corpus}/a.parquet"], str(corpus))
    assert names(found) == ["a.parquet"]
    assert found.repeated == ["a.parquet", "a.parquet", f"{corpus}/a.parquet"]


def test_a_name_with_the_characters_of_a_glob(tmp_path):
    folder = tmp_path / "x[1]*"
    folder.mkdir()
    (folder / "a[b].parquet").touch()
    assert names(list_files(["a[b].parquet"], str(folder))) == ["a[b].parquet"]
    assert names(list_files(["*.parquet"], str(folder))) == ["a[b].parquet"]
    assert names(list_files(["."], str(folder))) == ["a[b].parquet"]


def test_the_output_is_no_input(corpus):
    config = read_config(
        {"tokenizer": {"file": "t"}, "input": {"files": ["**/*.parquet"]}, "output": {"path": "b"}}, base=str(corpus)
    )
    assert names(list_inputs(config)) == ["a.parquet"]


@pytest.mark.parametrize("pattern", ["*.none", "b/_temporary/*.none", "memory://none/*.parquet", "nix://a"])
def test_what_matches_nothing(corpus, pattern):
    with pytest.raises(InputError) as caught:
        list_files([pattern], str(corpus))
    assert caught.value.where == pattern


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.parquet", "none.parquet: cannot be read: No such file or directory\nhint: looked for /"),
        ("memory://none/x.parquet", "memory://none/x.parquet: cannot be read: "),
    ],
)
def test_a_file_that_is_not_there_is_an_input_that_cannot_be_opened(corpus, name, said):
    (source,) = list_files([name], str(corpus)).inputs
    with pytest.raises(InputError) as caught:
        open_source(source)
    assert str(caught.value).startswith(said)


def test_folders_that_are_called_like_a_file(tmp_path):
    for name in ("a.parquet/part-0.parquet", "a.parquet/_SUCCESS", "a.parquet/part-1.parquet", "b.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    inside = ["a.parquet/part-0.parquet", "a.parquet/part-1.parquet"]
    for pattern in ("*.parquet", "**/*.parquet", "."):
        found = list_files([pattern], str(tmp_path))
        assert (names(found), found.repeated) == ([*inside, "b.parquet"], [])
    assert names(list_files(["a.parquet"], str(tmp_path))) == inside


def test_what_is_called_like_a_file_and_is_none(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "link.parquet").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    said = []
    assert names(list_files(["folder.parquet"], str(tmp_path))) == ["folder.parquet"]
    for source in list_files(["*"], str(tmp_path)).inputs:
        with pytest.raises(InputError) as caught:
            open_source(source)
        said.append(str(caught.value).split("\n")[0])
    assert said == [
        "folder.parquet: a folder, and no file",
        "link.parquet: cannot be read: No such file or directory",
        "pipe.parquet: no regular file",
    ]


def test_urls():
    memory = fsspec.filesystem("memory")
    for name in ("/bucket/b.parquet", "/bucket/a.parquet", "/bucket/_x/a.parquet"):
        memory.pipe(name, b"x")
    try:
        expected = ["memory:///bucket/a.parquet", "memory:///bucket/b.parquet"]
        for pattern in ("memory://bucket", "memory://bucket/*.parquet"):
            assert [url.replace("memory:///", "memory://") for url in names(list_files([pattern], "/"))] == [
                url.replace("memory:///", "memory://") for url in expected
            ]
        assert names(list_files(["memory://bucket/a.parquet"], "/")) == ["memory://bucket/a.parquet"]
    finally:
        memory.rm("/bucket", recursive=True)


def test_a_dataset(tmp_path):
    table = {"tokenizer": {"file": "t"}, "input": {"dataset": "d", "split": "train"}, "output": {"path": "o"}}
    (source,) = list_inputs(read_config(table, base=str(tmp_path))).inputs
    assert (source.kind, source.name, source.path) == ("dataset", "d:train", "d")
    os.mkdir(tmp_path / "d")
    (source,) = list_inputs(read_config(table, base=str(tmp_path))).inputs
    assert (source.name, source.path) == ("d:train", str(tmp_path / "d"))
