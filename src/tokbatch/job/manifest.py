"""What a finished job leaves beside its parts: stats.json, stats.parquet and, last of all, manifest.json.

Parts and statistics stand in input order and depend on nothing but config, tokenizer and inputs. All that depends on
how the run went stands under "run" in the manifest.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tokbatch._version import __version__
from tokbatch.batch.stats import Stats, to_table
from tokbatch.errors import NOT_THERE, InputError
from tokbatch.job.inputs import Input
from tokbatch.job.plan import Shard
from tokbatch.job.prepare import Job
from tokbatch.job.quarantine import quarantine_lists
from tokbatch.job.storage import FORMAT, Storage
from tokbatch.job.worker import ShardResult

# What readers of a manifest rely on: types by key; a list has entries of one shape.
_SHAPE: dict[str, Any] = {
    "tokbatch": str,
    "engine": str,
    "tokenizer": {"sha256": str, "vocab_size": int},
    "config": {"base": str},
    "id_type": str,
    "inputs": [
        {"kind": str, "name": str, "path": str, "subset": str | None, "split": str | None}
        | {"rows": int, "sha256": str}
    ],
    "parts": [
        {"path": str, "input": str, "units": [int], "skip_rows": int, "shard_rows": [int]}
        | {"first_row": int, "rows": int, "tokens": int, "bytes": int, "sha256": str}
    ],
    "run": {
        "seconds": int | float,
        "workers": int,
        "retries": [{"input": str, "rows": str, "reason": str}],
    },
    "quarantine": {
        "files": [{"input": str, "reason": str}],
        "rows": [{"input": str, "row": int, "reason": str}],
    },
}


def shard_record(job: Job, result: ShardResult) -> dict[str, Any]:
    """Give the record of a finished shard: what it is, its parts, its statistics."""
    shard = job.shards[result.shard.index]
    name = job.inputs[shard.input].input.name
    parts = []
    for number, part in enumerate(result.parts):
        first, *others = (
            {
                "path": f"data/{part_file_name(job, shard, number, file.suffix)}",
                "bytes": file.size,
                "sha256": file.sha256,
            }
            for file in part.files
        )
        place = {"input": name, "units": [shard.start, shard.stop], "skip_rows": shard.skip}
        place |= {"shard_rows": list(shard.file_rows), "first_row": part.first_row}
        counts: dict[str, Any] = {
            "rows": part.rows,
            "tokens": part.tokens,
            "bytes": first["bytes"],
            "sha256": first["sha256"],
        }
        if others:
            counts["files"] = others
        if result.packing is not None:
            counts["packing"] = result.packing.to_json()
        parts.append({"path": first["path"], **place, **counts})
    return {
        "shard": job.shard_identity(shard),
        "parts": parts,
        "stats": result.stats.to_json(),
        "failures": [list(failure) for failure in result.failures],
        "policy": job.config.policy(),
        "run": {**result.run, "text_bytes": result.stats.bytes},
    }


def part_file_name(job: Job, shard: Shard, number: int, suffix: str) -> str:
    """Name a file of a part under data/; `number` counts the parts of a shard, where there can be several."""
    several = f"-{number:03d}" if job.config.output.max_part_bytes else ""
    return f"{shard.part_name(job.inputs[shard.input].input.name)}{several}{suffix}"


def documents_of(part: Mapping[str, Any]) -> int:
    """Give the number of rows of the input that are in a part."""
    packing = part.get("packing")
    return int(part["rows"] if packing is None else packing["documents"])


def files_of(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give path, bytes and sha256 of each file of a part, the first one first."""
    return [part, *part.get("files", ())]


def write_results(
    storage: Storage,
    job: Job,
    records: Mapping[int, dict[str, Any]],
    skipped: Mapping[str, str],
    run: dict[str, Any],
) -> Stats:
    """Write statistics and manifest from the records of all shards (by index); returns the statistics of the corpus.

    `skipped` are the inputs that are left out, with the reasons.
    """
    names: list[str] = []
    stats: list[Stats] = []
    for number, facts in enumerate(job.inputs):
        own = [records[shard.index] for shard in job.shards if shard.input == number and shard.index in records]
        if own:
            names.append(facts.input.name)
            stats.append(merged(own))
    total = Stats.total(stats)
    table = io.BytesIO()
    pq.write_table(to_table(names, stats), table, compression="zstd")
    storage.write_file("stats.parquet", table.getvalue())
    files = [{"file": name, **record.to_json()} for name, record in zip(names, stats, strict=True)]
    storage.write_json("stats.json", {"files": files, "total": total.to_json()})
    storage.write_json("manifest.json", _manifest(job, [records[i] for i in sorted(records)], skipped, run))
    return total


def merged(records: Sequence[Mapping[str, Any]]) -> Stats:
    """Merge the statistics of the shards of one file."""
    stats = Stats()
    for record in records:
        stats = stats.merge(Stats.from_json(record["stats"]))
    return stats


def read_stats(folder: Path) -> tuple[list[tuple[str, Stats]], Stats]:
    """Read stats.json: (name, statistics) of each file, and of the corpus. Raises `InputError`."""
    content = read_result(folder, "stats.json")
    try:
        files = [
            (entry["file"], Stats.from_json({k: v for k, v in entry.items() if k != "file"}))
            for entry in content["files"]
        ]
        return files, Stats.from_json(content["total"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"not a stats.json of tokbatch: {error!r}", where=str(folder / "stats.json")) from None


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read manifest.json. Raises `InputError` where the folder is no finished output."""
    manifest: dict[str, Any] = read_result(folder, "manifest.json")
    where = str(folder / "manifest.json")
    check_format(manifest, folder / "manifest.json")
    broken = _first_misfit(manifest, _SHAPE, "$")
    if broken is None:
        inputs = {entry["name"] for entry in manifest["inputs"]}
        strays = [index for index, part in enumerate(manifest["parts"]) if part["input"] not in inputs]
        pairs = [
            index
            for index, part in enumerate(manifest["parts"])
            if [len(part["units"]), len(part["shard_rows"])] != [2, 2]
        ]
        broken = f"$.parts[{strays[0]}].input" if strays else f"$.parts[{pairs[0]}].units" if pairs else None
    if broken is not None:
        raise InputError(
            f"a broken manifest.json: {broken} is missing, or is not what it should be",
            where=where,
            hint="make the output anew with `tokbatch run CONFIG --overwrite`",
        )
    return manifest


def check_format(manifest: Any, path: Path) -> None:
    """Raise `InputError` for a manifest of another format than this version of tokbatch writes."""
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise InputError("not a manifest.json of tokbatch: it says no format", where=str(path))
    if found != FORMAT:
        by = manifest.get("tokbatch")
        raise InputError(
            f"a manifest of format {found}" + (f" (by tokbatch {by})" if isinstance(by, str) else "") + ", and "
            f"tokbatch {__version__} knows format {FORMAT}",
            where=str(path),
            hint="use the version that made it, or start anew with `tokbatch run CONFIG --overwrite`",
        )


def _first_misfit(value: Any, shape: Any, path: str) -> str | None:
    """Give the path of the first value that does not have its shape."""
    below: Iterable[tuple[str, Any, Any]]
    if isinstance(shape, dict) and isinstance(value, dict):
        below = ((f"{path}.{key}", value.get(key), inner) for key, inner in shape.items())
    elif isinstance(shape, list) and isinstance(value, list):
        below = ((f"{path}[{index}]", entry, shape[0]) for index, entry in enumerate(value))
    else:
        fits = not isinstance(shape, dict | list) and isinstance(value, shape) and not isinstance(value, bool)
        return None if fits else path
    return next((found for each in below if (found := _first_misfit(each[1], each[2], each[0]))), None)


def read_result(folder: Path, name: str) -> Any:
    """Read a JSON file of a finished output. Raises `InputError`."""
    storage = Storage(folder)
    content = storage.read_json(name)
    if content is None:
        try:
            unfinished = storage.holds_job()
        except OSError as error:
            raise InputError(f"cannot look there: {error.strerror}", where=str(folder)) from None
        raise InputError(
            f"no {name} there" + (": the job is not finished" if unfinished else ""),
            where=str(folder),
            code=None if folder.exists() else NOT_THERE,
            hint="finish it with `tokbatch run CONFIG --resume`" if unfinished else "give the output folder of a job",
        )
    return content


def _described(source: Input) -> dict[str, Any]:
    """Give an input as plain data; the list of its files only where it is made of several."""
    return {key: value for key, value in dataclasses.asdict(source).items() if key != "files" or value}


def _manifest(
    job: Job, records: Sequence[Mapping[str, Any]], skipped: Mapping[str, str], run: dict[str, Any]
) -> dict[str, Any]:
    asked = job.config.tokenizer
    source = (
        {"file": job.config.resolve(asked.file)} if asked.file else {"name": asked.name, "revision": asked.revision}
    )
    return {
        "format": FORMAT,
        "tokbatch": job.identity["tokbatch"],
        "pyarrow": job.identity["pyarrow"],
        "engine": job.identity["engine"],
        "tokenizer": {**source, "sha256": job.identity["tokenizer_sha256"], "vocab_size": job.tokenizer.vocab_size},
        "config": job.config.to_table(),
        "inputs": [
            {**_described(facts.input), "rows": facts.rows, "bytes": facts.size, "sha256": facts.digest}
            for facts in job.inputs
            if facts.input.name not in skipped
        ],
        "id_type": job.transform.options.id_type,
        "schema": [{"name": name, "type": kind} for name, kind in job.identity["schema"]],
        "parts": [part for record in records for part in record["parts"]],
        "quarantine": quarantine_lists(skipped, records),
        "run": run,
    }
