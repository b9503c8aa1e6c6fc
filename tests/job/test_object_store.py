"""Inputs in an object store: a real server on this machine that speaks S3, and fsspec's own file systems."""

import gzip
import json

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tokbatch.errors import InputError
from tokbatch.job.inputs import list_files
from tokbatch.job.sources import open_source

TEXTS = [f"text {i} <mask>" for i in range(50)]


@pytest.fixture(scope="module")
def store():
    """A bucket; gives the URL of a folder in it."""
    reason = "moto and s3fs are not installed: pip install .[test-remote]"
    server_module = pytest.importorskip("moto.server", reason=reason)
    pytest.importorskip("s3fs", reason=reason)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    before = fsspec.config.conf.get("s3")
    fsspec.config.conf["s3"] = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
    file_system = fsspec.filesystem("s3")
    file_system.mkdir("bucket")
    yield "s3://bucket/corpus"
    fsspec.config.conf.pop("s3")
    if before is not None:
        fsspec.config.conf["s3"] = before
    server.stop()


@pytest.fixture
def memory():
    """Give the URL of a folder in this process's memory."""
    yield "memory://corpus"
    fsspec.filesystem("memory").rm("/corpus", recursive=True)


def fill(url, tmp_path):
    table = pa.table({"text": TEXTS})
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    with pa.ipc.new_stream(tmp_path / "e.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=20)
    contents = {
        "a.parquet": (tmp_path / "a.parquet").read_bytes(),
        "deep/b.jsonl": lines,
        "deep/c.jsonl.gz": gzip.compress(lines),
        "d.txt": "\n".join(TEXTS).encode(),
        "e.arrows": (tmp_path / "e.arrows").read_bytes(),
        "out/.tokbatch/job.json": b"{}",
        "out/data/x.parquet": b"",
    }
    file_system = fsspec.core.url_to_fs(url)[0]
    for name, content in contents.items():
        with file_system.open(f"{url}/{name}", "wb") as file:
            file.write(content)


@pytest.mark.parametrize("kind", ["memory", "store"])
def test_every_format_by_url(kind, request, tmp_path):
    url = request.getfixturevalue(kind)
    fill(url, tmp_path)
    found = list_files([url], "/")
    names = [source.name.rsplit("corpus/", 1)[1] for source in found.inputs]
    assert names == ["a.parquet", "d.txt", "deep/b.jsonl", "deep/c.jsonl.gz", "e.arrows"]
    assert [folder.rsplit("/", 1)[1] for folder in found.passed_over] == ["out"]
    assert len(list_files([f"{url}/deep/*.jsonl"], "/").inputs) == 1
    for source in found.inputs:
        opened = open_source(source)
        batches = list(opened.batches(opened.units(), None, 500, 0))
        assert [text for batch in batches for text in batch["text"].to_pylist()] == TEXTS
        assert open_source(source).digest == opened.digest
    with pytest.raises(InputError):
        list_files([f"{url}/none/*.jsonl"], "/")
    (missing,) = list_files([f"{url}/none.parquet"], "/").inputs
    with pytest.raises(InputError, match=r"none\.parquet: cannot be read"):
        open_source(missing)
