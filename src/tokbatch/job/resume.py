"""What an earlier attempt left, and whether it can be kept: the rules of `--resume`.

A job goes on only in the folder of the same job: same version, engine, tokenizer, inputs and settings (the identity of
`prepare.py`). How many workers there are and what becomes of bad files and rows is no part of that; a finished shard
is kept as long as nothing in it depends on such a rule that has changed since (`JobConfig.policy`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokbatch.errors import OutputError
from tokbatch.job.manifest import files_of
from tokbatch.job.plan import Shard
from tokbatch.job.prepare import Job
from tokbatch.job.storage import Storage


def record_name(shard: Shard) -> str:
    """Name the file of a finished shard's record."""
    return f".tokbatch/shards/{shard.index:06d}.json"


def refuse_used(storage: Storage, resume: bool, overwrite: bool) -> None:
    """Refuse a folder that has something in it which nobody said may be touched.

    A job that goes on in its own folder leaves alone what others put there: it writes under its own names only.
    """
    ours = storage.holds_job() or storage.state.exists()
    foreign = [] if resume and ours else storage.foreign_entries()
    if foreign or (storage.exists() and not ours and any(storage.folder.iterdir())):
        raise OutputError(
            f"the folder holds what no job made: {', '.join((foreign or ['data'])[:5])}",
            where=str(storage.folder),
            hint="move it away, or give output.path another folder",
        )
    if storage.holds_job() and not resume and not overwrite:
        raise OutputError(
            "the folder has a job's output already",
            where=str(storage.folder),
            hint="go on with it by --resume, or start anew with --overwrite",
        )


def holds(record: Any, job: Job, shard: Shard, folder: Path) -> bool:
    """Tell whether a record is that of this shard of this job, made under its policy, and its parts are there."""
    try:
        if record["shard"] != job.shard_identity(shard):
            return False
        stats = record["stats"]
        depends_on_policy = stats["failed_documents"] or stats["lossy_documents"]
        if depends_on_policy and record["policy"] != job.config.policy():
            return False
        files = [file for part in record["parts"] for file in files_of(part)]
        paths = [folder / file["path"] for file in files]
        sizes = [path.stat().st_size if path.is_file() else None for path in paths]
        return bool(sizes == [file["bytes"] for file in files])
    except (KeyError, TypeError):  # A record of another version, or none.
        return False


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Name what two identities do not have in common."""
    found = []
    for key in ("format", "tokbatch", "pyarrow", "engine"):
        if before.get(key) != now[key]:
            found.append(f"{key} was {before.get(key)}, is {now[key]}")
    if before.get("tokenizer_sha256") != now["tokenizer_sha256"]:
        found.append("the tokenizer is another one")
    found += [
        f"{section}.{key} was {was!r}, is {now['settings'][section].get(key)!r}"
        for section, keys in before.get("settings", {}).items()
        for key, was in keys.items()
        if now["settings"].get(section, {}).get(key) != was
    ]
    old, new = ({entry["name"]: entry for entry in identity.get("inputs", ())} for identity in (before, now))
    found += [f"input {name} is gone" for name in old if name not in new]
    found += [f"input {name} is new" for name in new if name not in old]
    found += [f"input {name} has changed" for name in new if name in old and new[name] != old[name]]
    if not found and list(old) != list(new):
        found.append("the inputs come in another order")
    return found or ["its schema or its settings"]
