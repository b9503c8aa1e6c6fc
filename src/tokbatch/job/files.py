"""Files of inputs, local or by URL: the one place that opens them and says why it cannot.

Which files there are: `inputs.py`. What is in them: `sources.py`.
"""

from __future__ import annotations

from typing import Any

from tokbatch.errors import InputError


def open_file(path: str, name: str) -> Any:
    """Open a file for reading its bytes; `name` is how an error calls it. Raises `InputError`."""
    try:
        if "://" not in path:
            return open(path, "rb")
        file_system, inner = filesystem_of(path)
        return file_system.open(inner, "rb")
    except InputError:
        raise
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


def unreadable(error: Exception, where: str) -> InputError:
    """Say in one line why something cannot be read."""
    text = str(error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    return InputError(f"cannot be read: {reason}", where=where)
