"""Files of inputs, local or by URL: the one place that opens them and says why it cannot.

Which files there are: `inputs.py`. What is in them: `sources.py`.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Any, TypeAlias

import pyarrow as pa

from tokbatch.errors import InputError

# What pyarrow raises for what it cannot read, or Python where pyarrow asks it for what is impossible: a damaged length
# may be negative, or larger than any file.
READ_ERRORS = (pa.ArrowException, OSError, ValueError, OverflowError, SystemError)
Stamp: TypeAlias = tuple[int, int]
"""Size of a file, and when it was written to; see `stamp_of`."""


def open_file(path: str, name: str) -> Any:
    """Open a file for reading its bytes; `name` is how an error calls it. Raises `InputError`."""
    try:
        if "://" not in path:
            if not stat.S_ISREG(mode := os.stat(path).st_mode):  # To open a pipe is to wait for who writes to it.
                raise InputError("a folder, and no file" if stat.S_ISDIR(mode) else "no regular file", where=name)
            return open(path, "rb")
        file_system, inner = filesystem_of(path)
        return file_system.open(inner, "rb")
    except InputError:
        raise
    except FileNotFoundError as error:
        hint = f"looked for {path}" if path != name else None
        raise InputError(unreadable(error, name).message, where=name, hint=hint) from None
    except Exception as error:  # what a file system of fsspec raises is its own
        raise unreadable(error, name) from None


def filesystem_of(url: str) -> tuple[Any, str]:
    """Give the fsspec file system and the path in it. Raises `InputError` for a protocol that is not installed."""
    import fsspec

    try:
        file_system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot open this kind of URL: {error}", where=url) from None
    return file_system, str(path)


def stamp_of(path: str) -> Stamp | None:
    """Give what changes when somebody writes to a file of this machine; None where there is none."""
    try:
        entry = os.stat(path)
    except (OSError, ValueError):
        return None
    return entry.st_size, entry.st_mtime_ns


def unreadable(error: Exception, where: str) -> InputError:
    """Say in one line why something cannot be read. Raises `MemoryError` where it is not the file that is at fault."""
    if isinstance(error, MemoryError) and not _is_absurd(error):
        raise error
    text = str(error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    return InputError(f"cannot be read: {reason}", where=where)


def _is_absurd(error: MemoryError) -> bool:
    """Tell whether more was asked for than the machine has: so says a file that is damaged."""
    asked = re.search(r"size (\d+)", str(error))
    return asked is not None and int(asked[1]) > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
