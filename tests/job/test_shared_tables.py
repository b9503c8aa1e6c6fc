"""Where there is no cache, the workers of a job share tables through the job's own folder, which is gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpora import files_below, write_config, write_corpus
from tokbatch.engine import native, table_cache
from tokbatch.job import load_config, run_job
from tokbatch.job.storage import FileSystem

pytestmark = pytest.mark.skipif(native.why_unavailable() is not None, reason="no native engine")


class Watching(FileSystem):
    """Notes what lies in the folder of tables whenever this process gives a part its final name."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, ...]] = set()

    def rename(self, source: Path, target: Path) -> None:
        if target.suffix == ".parquet" and target.name != "stats.parquet":
            self.seen.add(tuple(sorted(file.suffix for file in (source.parent / "tables").glob("*"))))
        super().rename(source, target)


@pytest.mark.parametrize("is_on", [True, False], ids=["cache", "no cache"])
def test_workers_share_tables(tmp_path, monkeypatch, is_on):
    monkeypatch.setattr(table_cache, "LEAST_BYTES", 0)
    write_corpus(tmp_path, "x.parquet", 200)
    config = {"tokenizer__engine": "native", "run__workers": 2, "run__shard_bytes": 1500}
    expected = write_config(tmp_path, **config, output__path=str(tmp_path / "expected"))
    run_job(load_config(expected))
    monkeypatch.setenv(table_cache.SETTING, str(tmp_path / "cache") if is_on else "off")
    watching = Watching()
    result = run_job(load_config(write_config(tmp_path, **config)), file_system=watching)

    assert watching.seen == {() if is_on else (".tables",)}
    assert (tmp_path / "cache" / "tables").exists() == is_on
    out = result.job.config.output_path
    assert not (out / ".tokbatch" / "partial").exists()
    assert files_below(out) == files_below(tmp_path / "expected")
