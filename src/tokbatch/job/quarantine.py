"""What a job has left out under its policy: files that cannot be read, and rows that no worker survives.

It is kept beside the records of the shards, so that a resumed job does not find it all out again. Documents that merely
cannot be encoded are not here: they stand in the record of their shard. The manifest has all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokbatch.errors import TokbatchError
from tokbatch.job.config import JobConfig
from tokbatch.job.storage import Storage

NAME = ".tokbatch/quarantine.json"


@dataclass
class Quarantine:
    """Files by name and rows by file, each with the reason."""

    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[int, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, storage: Storage, config: JobConfig) -> Quarantine:
        """Read what an earlier attempt has left out; what the config no longer allows to leave out is tried again."""
        content = storage.read_json(NAME) or {}
        files = content.get("files", {}) if config.run.on_bad_file == "skip" else {}
        rows = content.get("rows", {}) if config.run.on_bad_row == "null" else {}
        return cls(dict(files), {name: {int(row): why for row, why in own.items()} for name, own in rows.items()})

    def write(self, storage: Storage) -> None:
        """Keep it for a later attempt."""
        storage.write_json(NAME, {"files": self.files, "rows": self.rows})

    def add_row(self, name: str, row: int, reason: str) -> None:
        """Leave a row out."""
        self.rows.setdefault(name, {})[row] = reason

    def rows_between(self, name: str, first: int, stop: int) -> dict[int, str]:
        """Give the rows of a file from `first` to before `stop`."""
        return {row: reason for row, reason in self.rows.get(name, {}).items() if first <= row < stop}


def reason_of(error: TokbatchError, name: str) -> str:
    """Give an error in one line, for a list that has the name of the input already."""
    place = (error.where or "").removeprefix(name).strip(": ")
    return f"{place}: {error.message}" if place else error.message


def quarantine_lists(files: Mapping[str, str], records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the lists of the manifest: files, and the failed rows of all shards, in the order of the inputs."""
    return {
        "files": [{"input": name, "reason": reason} for name, reason in files.items()],
        "rows": [
            {"input": record["parts"][0]["input"], "row": row, "reason": reason}
            for record in records
            for row, reason in record["failures"]
        ],
    }
