"""Outputs of jobs that never ran, for the tests of reports."""

from __future__ import annotations

from tokbatch.batch.stats import Stats
from tokbatch.job import render_report
from tokbatch.job.storage import Storage


def absorbed(chars, documents, rows=()):
    counts = {"lstrip_chars_by_token": {"<mask>": chars}, "lstrip_documents_by_token": {"<mask>": documents}}
    blanks = {"lstrip_chars_by_whitespace": {"U+000A": chars}, "lstrip_documents_by_whitespace": {"U+000A": documents}}
    return Stats(
        documents=documents,
        tokens=9,
        lstrip_chars=chars,
        lstrip_documents=documents,
        lstrip_first_rows=rows,
        **counts,
        **blanks,
    )


def output(folder, files, skipped=(), rows=(), **run):
    storage = Storage(folder)
    storage.prepare()
    total = Stats.total(stats for _, stats in files)
    listed = [{"file": name, **stats.to_json()} for name, stats in files]
    storage.write_json("stats.json", {"files": listed, "total": total.to_json()})
    manifest = {
        "format": 1,
        "tokbatch": "1.0",
        "engine": "reference",
        "tokenizer": {"file": "t.json", "sha256": "ab" * 32, "vocab_size": 2000},
        "config": {"base": "/"},
        "id_type": "int32",
        "inputs": [dict.fromkeys(("kind", "name", "path", "sha256"), name) | {"rows": 0} for name, _ in files],
        "parts": [
            {"path": "p", "input": files[0][0], "units": [0, 1], "skip_rows": 0, "shard_rows": [0, 0]}
            | {"first_row": 0, "rows": 0, "tokens": 0, "bytes": 1500, "sha256": ""}
        ],
        "run": {"seconds": 3.0, "workers": 2, "retries": [], **run},
        "quarantine": {"files": list(skipped), "rows": list(rows)},
    }
    storage.write_json("manifest.json", manifest)
    return render_report(folder)
