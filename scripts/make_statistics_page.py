"""Write docs/statistics.md from the definitions of the statistics; with --check, only say whether it is up to date."""

from __future__ import annotations

import pathlib
import sys

from tokbatch.batch.stats import FIELDS, FIRST_ROWS

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "statistics.md"

HEAD = f"""# Statistics

A job writes these for each file into `stats.json` and `stats.parquet`, and for the whole corpus under `total`. All are
integers. They do not depend on the number of workers, on how rows were cut into batches, or on how often a job was
resumed. Durations are not among them.

This page is made by `scripts/make_statistics_page.py` from `src/tokbatch/batch/stats.py`, where each is defined once.

- **number**: a number; statistics of several shards or files join by sum, or by the larger where "max" stands.
- **counts**: name -> number. Whitespace characters are named `U+0020`. In Parquet: a list of (name, count).
- **histogram**: lower bound of a bucket -> number. Bucket 0 is zero itself, bucket b holds b to 2b - 1.
- **rows**: the first {FIRST_ROWS} row numbers within the file, from 0. A total over files has none.

What an id is (special, unknown, byte fallback) is decided by the id alone, whether the model gave it or a text named
it. Documents that were truncated are counted as such and are not verified: what they lost was cut off by request.

| statistic | kind | unit | meaning | merge |
|---|---|---|---|---|
"""


def render_page() -> str:
    """Give the text of the page."""
    rows = (f"| `{f.name}` | {f.kind} | {f.unit} | {f.meaning} | {f.merge} |\n" for f in FIELDS)
    return HEAD + "".join(rows)


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != render_page():
            sys.exit(f"{PAGE} is out of date: run {pathlib.Path(__file__).name}")
    else:
        PAGE.write_text(render_page(), encoding="utf-8")
