"""Measure tokbatch and its peers, turn and turn about, and print the table.

    python bench/run.py                                   the sample, every library that is installed
    python bench/run.py --tokenizer T.json --corpus data/*.parquet --stages encode verify --rounds 5
    python bench/run.py --tokenizer T.json --corpus data/*.parquet --job --map --record bench/record/NAME.json

Each measurement is a fresh process (`measure.py`), one library after the other, and that for some rounds; shown are
medians, in MB of text a second of wall time (in brackets: of processor time), and the median of the rounds' ratios.
A library whose ids are not those of `tokenizers` is WRONG, and is not timed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from definitions import FOLDER, STAGES, TOKBATCH_ONLY, Answer, Measurement, keep_answer, known_answers
from peers import NAMES

from job import run_job

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
PASSES = ("cold", "warm")


def main() -> None:
    """Run what the arguments ask for."""
    options = _parser().parse_args()
    record: dict[str, Any] = {
        **_circumstances(),
        "arguments": [argument.rsplit("/", 1)[-1] for argument in sys.argv[1:]],
        "versions": {},
        "results": [],
        "jobs": [],
    }
    for tokenizer in options.tokenizer:
        for stage in options.stages:
            libraries = [n for n in options.libraries if n.startswith("tokbatch") or stage not in TOKBATCH_ONLY]
            if stage == "split":
                libraries = [name for name in libraries if name in ("tokbatch", "tokbatch_reference", "tokenizers")]
            wanted = [
                Measurement(name, stage, tokenizer, tuple(options.corpus), options.column, options.mb)
                for name in libraries
            ]
            result = compare(wanted, options.rounds, options.keep_answers)
            record["versions"].update(result.pop("versions"))
            record["results"].append(result)
            print(render_result(result), flush=True)
        if options.job:
            record["jobs"].append(compare_jobs(tokenizer, options))
            print(render_job(record["jobs"][-1]), flush=True)
    record["load_average_after"] = os.getloadavg()
    if options.record:
        pathlib.Path(options.record).write_text(json.dumps(record, indent=1) + "\n")


def compare(wanted: Sequence[Measurement], rounds: int, keep_answers: bool = False) -> dict[str, Any]:
    """Measure several libraries in one stage; give rounds of times by library, or why there are none."""
    first = wanted[0]
    result: dict[str, Any] = {
        "tokenizer": pathlib.Path(first.tokenizer).stem,
        "corpus": [pathlib.Path(file).stem for file in first.corpus],
        "stage": first.stage,
        "libraries": {measurement.peer: {"rounds": []} for measurement in wanted},
        "versions": {},
    }
    for _ in range(rounds):
        for measurement in wanted:
            entry = result["libraries"][measurement.peer]
            if "wrong" in entry or "unfit" in entry:
                continue
            outcome = measure_apart(measurement)
            if "unfit" in outcome:
                entry["unfit"] = outcome["unfit"]
                continue
            result["versions"][measurement.peer] = outcome["version"]
            right = right_answer(outcome["place"], measurement, keep_answers, outcome)
            if right is None:
                entry["unfit"] = "no right answer is on record, and tokenizers is not there to be asked"
                continue
            entry.update(bytes=outcome["bytes"], tokens=outcome["answer"]["tokens"])
            if Answer(**outcome["answer"]) != right:
                entry["wrong"] = f"{outcome['answer']['tokens']} ids, the right ones are {right.tokens}"
                entry["rounds"] = []
                continue
            entry["rounds"].append({name: outcome[name] for name in PASSES} | {"load": outcome["load_seconds"]})
    return result


def measure_apart(measurement: Measurement) -> dict[str, Any]:
    """Measure in a fresh process."""
    command = [sys.executable, str(FOLDER / "measure.py"), measurement.to_json()]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        return {"unfit": lines[-1][:120]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def right_answer(place: str, measurement: Measurement, keep: bool, outcome: dict[str, Any]) -> Answer | None:
    """Look the right answer up, or ask `tokenizers` on the same text: once, and for as long as this process runs."""
    known = _ANSWERS or known_answers()
    _ANSWERS.update(known)
    if place not in _ANSWERS:
        if measurement.peer != "tokenizers":
            stage = "split" if measurement.stage == "split" else "encode"
            asked = replace(measurement, peer="tokenizers", stage=stage, rows=outcome["rows"])
            outcome = measure_apart(asked)
            if outcome.get("place") != place:
                return None
        _ANSWERS[place] = Answer(**outcome["answer"])
        if keep:
            keep_answer(place, _ANSWERS[place])
    return _ANSWERS[place]


_ANSWERS: dict[str, Answer] = {}


def compare_jobs(tokenizer: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run the whole job and its floor in turns."""
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            rounds.append(
                run_job(pathlib.Path(folder), tokenizer, options.corpus, options.column, options.workers, options.map)
            )
    size = sum(_text_bytes(file, options.column) for file in options.corpus)
    return {
        "tokenizer": pathlib.Path(tokenizer).stem,
        "corpus": [pathlib.Path(file).stem for file in options.corpus],
        "workers": options.workers,
        "bytes": size,
        "rounds": rounds,
    }


def _text_bytes(file: str, column: str) -> int:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    return pc.sum(pc.binary_length(pq.read_table(file, columns=[column])[column])).as_py() or 0


# -- what is printed --------------------------------------------------------------------------------------------------


def speeds(entry: dict[str, Any], name: str, clock: str) -> list[float]:
    """Give MB/s by round."""
    return [entry["bytes"] / 1e6 / max(turn[name][clock], 1e-9) for turn in entry["rounds"]]


def ratios(ours: dict[str, Any], theirs: dict[str, Any], name: str, clock: str) -> list[float]:
    """Give our speed in units of theirs, by round."""
    both = zip(speeds(ours, name, clock), speeds(theirs, name, clock), strict=False)
    return [our / their for our, their in both]


def render_result(result: dict[str, Any]) -> str:
    """Give the table of one stage."""
    lines = [f"{title(result)}: {result['stage']}, MB/s of wall (processor) time"]
    ours = result["libraries"].get("tokbatch")
    for library, entry in result["libraries"].items():
        line = f"  {library:20s}"
        if "wrong" in entry or "unfit" in entry:
            lines.append(line + (f"WRONG: {entry['wrong']}" if "wrong" in entry else entry["unfit"]))
            continue
        for name in PASSES:
            wall, cpu = (statistics.median(speeds(entry, name, clock)) for clock in ("wall", "cpu"))
            line += f"  {name} {wall:8.1f} ({cpu:8.1f})"
        if ours is not None and ours is not entry and ours["rounds"]:
            pairs = (f"{statistics.median(ratios(ours, entry, name, 'cpu')):.2f}x {name}" for name in PASSES)
            line += "   tokbatch is " + ", ".join(pairs)
        lines.append(line)
    return "\n".join(lines)


def title(result: dict[str, Any]) -> str:
    """Name tokenizer and corpus; of many files the first."""
    first, *others = result["corpus"]
    return f"{result['tokenizer']} on {first}" + (f" and {len(others)} more" if others else "")


def render_job(job: dict[str, Any]) -> str:
    """Give the table of whole jobs."""
    size = job["bytes"] / 1e6
    head = (
        f"{job['tokenizer']} on {', '.join(job['corpus'])}: the whole command, {size:,.1f} MB, {job['workers']} workers"
    )
    lines = [head]
    for command in job["rounds"][0]:
        if isinstance(job["rounds"][0][command], str):
            lines.append(f"  {command:20s}{job['rounds'][0][command]}")
            continue
        times = {clock: [turn[command][clock] for turn in job["rounds"]] for clock in ("wall", "cpu")}
        own = [turn["tokbatch run"]["wall"] / turn[command]["wall"] for turn in job["rounds"]]
        lines.append(
            f"  {command:20s}  wall {statistics.median(times['wall']):7.2f} s, processor "
            f"{statistics.median(times['cpu']):7.2f} s   tokbatch takes {statistics.median(own):.2f} times as long"
        )
    return "\n".join(lines)


# -- where it ran -----------------------------------------------------------------------------------------------------


def _circumstances() -> dict[str, Any]:
    return {
        "format": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": {
            "processor": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
            "cores": os.cpu_count(),
            "memory": _first_value("/proc/meminfo", "MemTotal"),
            "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
        },
        "load_average_before": os.getloadavg(),
    }


def _first_value(path: str, key: str) -> str | None:
    try:
        lines: Iterable[str] = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)


def _parser() -> argparse.ArgumentParser:
    from tokbatch import sample

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = os.environ.get("BENCH_CORPUS", "").split() or [str(path) for path in sample.corpus_paths()]
    tokenizer = os.environ.get("BENCH_TOKENIZER", "").split() or [str(sample.tokenizer_path())]
    parser.add_argument("--tokenizer", nargs="+", default=tokenizer, help="tokenizer.json files (or BENCH_TOKENIZER)")
    parser.add_argument("--corpus", nargs="+", default=corpus, help="Parquet files (or BENCH_CORPUS)")
    parser.add_argument("--column", default="text")
    parser.add_argument("--libraries", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--stages", nargs="*", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=float, default=100, help="text to measure on; slow libraries get a share of it")
    parser.add_argument("--job", action="store_true", help="the whole command against a copy job")
    parser.add_argument("--map", action="store_true", help="... and against datasets.map with tokenizers (slow)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep-answers", action="store_true", help="put new answers of tokenizers on record")
    parser.add_argument("--record", help="write everything to this JSON file")
    return parser


if __name__ == "__main__":
    main()
