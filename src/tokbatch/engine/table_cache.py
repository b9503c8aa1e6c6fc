"""Where the tables of the native engine are kept between runs, so that they are built once and shared by processes.

A folder with a file for each tokenizer. What is in a file, and how it is checked, is the business of
`native/src/table_file.rs`; here is where it lies, what it is called, and that it is written whole or not at all.
A name is made of the tokenizer's content and of all that can change what is built from it. The cache is never needed:
where a folder or a file cannot be used, that is logged for who debugs, and the tables are built.

Setting: `TOKBATCH_CACHE`, a folder, or "off". Without it the folder is `tokbatch` in `$XDG_CACHE_HOME` or `~/.cache`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from tokbatch._version import __version__

SETTING = "TOKBATCH_CACHE"
LEAST_BYTES = 1 << 14
"""Entries of a model, packed, below which tables are not worth a file: those of a thousand tokens."""
MOST_BYTES = 2 << 30
"""All files together; the ones that were not used for the longest time go."""
_SUFFIX, _UNFINISHED = ".tables", ".unfinished"
_DAY = 86400.0

_folder_of_process: Path | None = None


def note(message: str, *facts: object) -> None:
    """Say something to who debugs."""
    import logging  # here, since most processes have nothing to say

    logging.getLogger(__name__).debug(message, *facts)


def use_folder(folder: Path) -> None:
    """Let this process use a folder, whatever the setting says: the job does, for its workers."""
    global _folder_of_process
    _folder_of_process = folder


def folder() -> Path | None:
    """Give the folder, which need not be there yet; None where there is to be none."""
    if _folder_of_process is not None:
        return _folder_of_process
    named = os.environ.get(SETTING, "")
    if named.lower() == "off":
        return None
    try:
        return Path(named or _user_cache() / "tokbatch") / "tables"
    except RuntimeError as error:  # nobody knows where home is
        note("no cache of tables: %s", error)
        return None


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"


def is_safe(place: Path) -> bool:
    """Whether the folder is there, and its user's alone: where others can write, the files could be anybody's."""
    try:
        found = place.stat()
    except (OSError, ValueError) as error:
        note("no cache of tables: %s", error)
        return False
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        note("no cache of tables: others can write to %s", place)
        return False
    return True


def make(place: Path) -> bool:
    """Make the folder, for its user alone. False where nothing can be kept there."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        note("no cache of tables: %s", error)
        return False
    return is_safe(place) and os.access(place, os.W_OK | os.X_OK)


def key_of(content: str, engine_version: str) -> bytes:
    """Give the key of the tables of a content (`LazySpec.content`) as 32 bytes."""
    versions = (__version__, engine_version, str(sys.implementation.cache_tag), sys.byteorder, _sources())
    return hashlib.sha256("\0".join(("tokbatch tables", content, *versions)).encode()).digest()


@cache
def _sources() -> str:
    """Tell one state of the readers of tokenizer.json from another, also between two versions."""
    package = Path(__file__).parent.parent
    seen = []
    for part in ("spec", "spec/unicode", "engine", "engine/reference"):
        with contextlib.suppress(OSError), os.scandir(package / part) as entries:
            for entry in entries:
                if entry.is_file():
                    seen.append((part, entry.name, entry.stat().st_size, entry.stat().st_mtime_ns))
    return repr(sorted(seen))


def path_of(place: Path, key: bytes) -> Path:
    """Give the path of the file for a key."""
    return place / f"{key.hex()[:40]}{_SUFFIX}"


def mark_used(path: Path) -> None:
    """Remember that a file is in use, about once a day."""
    with contextlib.suppress(OSError):
        if path.stat().st_mtime < time.time() - _DAY:
            os.utime(path)


def keep(path: Path, data: Any) -> bool:
    """Write a file, in one piece for whoever looks; what it takes the place of lives on for those who have it open.

    False where that is not possible.
    """
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.{os.urandom(4).hex()}{_UNFINISHED}")
    try:
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            view = memoryview(data)
            while len(view):
                view = view[os.write(file, view) :]
        finally:
            os.close(file)
        os.replace(unfinished, path)
    except OSError as error:
        note("the tables are not kept: %s", error)
        with contextlib.suppress(OSError):
            unfinished.unlink()
        return False
    _prune(path)
    return True


def _prune(newest: Path) -> None:
    """Remove what was left unfinished, and the files not used for the longest time where all are too large together."""
    with contextlib.suppress(OSError):
        sizes = {}
        for path in newest.parent.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another process prunes too
                found = path.stat()
                if path.suffix == _UNFINISHED and found.st_mtime < time.time() - _DAY:
                    path.unlink()
                elif path.suffix == _SUFFIX and path != newest:
                    sizes[found.st_mtime, path] = found.st_size
        size = newest.stat().st_size + sum(sizes.values())
        for (_, path), freed in sorted(sizes.items()):
            if size <= MOST_BYTES:
                break
            path.unlink(missing_ok=True)
            size -= freed
