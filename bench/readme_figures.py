"""Write the figures of README.md from a record; with --check, only say whether they are those of the record.

python bench/readme_figures.py bench/record/NAME.json     take the figures from this record from now on
python bench/readme_figures.py                            write them again from the record that README.md names
python bench/readme_figures.py --check
"""

from __future__ import annotations

import json
import pathlib
import re
import statistics
import sys
from typing import Any

from definitions import FOLDER
from run import ratios, speeds, title

README = FOLDER.parent / "README.md"
BLOCK = re.compile(r"<!-- figures: (\S+) -->\n.*?<!-- end of figures -->\n", re.DOTALL)


def render_figures(record: dict[str, Any], name: str) -> str:
    """Give the block of README.md: what was measured, where, and the tables."""
    machine = record["machine"]
    load = f"{record['load_average_before'][0]:.0f} to {record['load_average_after'][0]:.0f}"
    lines = [
        f"<!-- figures: {name} -->",
        f"Measured {record['date']} on {machine['cores']} cores of {machine['processor']}, load {load}.",
        "One thread, a process for each measurement, in turns, medians. MB of text a second of processor time,",
        "cold / warm; WRONG: other ids than those of `tokenizers`.",
        "",
    ]
    stages = {result["stage"] for result in record["results"]}
    for stage in sorted(stages, key=("encode", "split", "count", "verify", "decode", "write").index):
        results = [r for r in record["results"] if r["stage"] == stage]
        lines += [*_stage_table(stage, results), "", *_reasons(results)]
    if record["jobs"]:
        lines += [*_job_table(record["jobs"]), ""]
    versions = ", ".join(f"{library} {version}" for library, version in sorted(record["versions"].items()))
    return "\n".join([*lines, f"{versions}. The record: [{name}]({name}).", "<!-- end of figures -->", ""])


def _stage_table(stage: str, results: list[dict[str, Any]]) -> list[str]:
    libraries = list(dict.fromkeys(library for result in results for library in result["libraries"]))
    libraries = [
        name for name in libraries if any("unfit" not in r["libraries"].get(name, {"unfit": 1}) for r in results)
    ]
    lines = [f"| {stage} | {' | '.join(libraries)} |", "|---" * (len(libraries) + 1) + "|"]
    for result in results:
        ours = result["libraries"].get("tokbatch")
        cells = (_cell(result["libraries"].get(library), ours) for library in libraries)
        lines.append(f"| {title(result)} | {' | '.join(cells)} |")
    return lines


def _reasons(results: list[dict[str, Any]]) -> list[str]:
    """Say by name which library has no time for which tokenizer, and why."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for result in results:
        for library, entry in result["libraries"].items():
            if "unfit" in entry:
                reasons.setdefault((library, entry["unfit"]), {})[result["tokenizer"]] = None
    lines = [f"- {library}, {', '.join(tokenizers)}: {reason}" for (library, reason), tokenizers in reasons.items()]
    return ["Not measured:", "", *lines, ""] if lines else []


def _cell(entry: dict[str, Any] | None, ours: dict[str, Any] | None) -> str:
    if entry is None or "unfit" in entry:
        return "-"
    if "wrong" in entry:
        return "WRONG"
    text = " / ".join(f"{statistics.median(speeds(entry, name, 'cpu')):,.0f}" for name in ("cold", "warm"))
    if ours is None or ours is entry or not ours["rounds"]:
        return text
    times = (f"{statistics.median(ratios(ours, entry, name, 'cpu')):.1f}" for name in ("cold", "warm"))
    return f"{text} (tokbatch {' / '.join(times)} times)"


def _job_table(jobs: list[dict[str, Any]]) -> list[str]:
    lines = ["| the whole command | seconds | of processor time | tokbatch takes |", "|---|---|---|---|"]
    for job in jobs:
        for command, first in job["rounds"][0].items():
            if isinstance(first, str):
                continue
            wall, cpu = (statistics.median(turn[command][clock] for turn in job["rounds"]) for clock in ("wall", "cpu"))
            own = statistics.median(turn["tokbatch run"]["wall"] / turn[command]["wall"] for turn in job["rounds"])
            what = f"{command}: {title(job)}, {job['bytes'] / 1e6:,.0f} MB, {job['workers']} workers"
            compared = "-" if command == "tokbatch run" else f"{own:.2f} times as long"
            lines.append(f"| {what} | {wall:.2f} | {cpu:.2f} | {compared} |")
    return lines


def written(readme: str, name: str | None = None) -> str:
    """Give README.md with the figures of a record: of the one that it names, or of another one."""
    found = BLOCK.search(readme)
    if found is None:
        sys.exit(f"{README} has no place for figures")
    name = name or found[1]
    record = json.loads((FOLDER.parent / name).read_text())
    return readme[: found.start()] + render_figures(record, name) + readme[found.end() :]


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        if written(text) != text:
            sys.exit("the figures of README.md are not those of its record: run bench/readme_figures.py")
    else:
        given = pathlib.Path(sys.argv[1]).resolve().relative_to(FOLDER.parent).as_posix() if sys.argv[1:] else None
        README.write_text(written(text, given), encoding="utf-8")
