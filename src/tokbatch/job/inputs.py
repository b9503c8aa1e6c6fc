"""Which inputs a config names: files by path, glob, folder or URL, or one dataset. Nothing is opened here.

What is inside an input: `parquet_input.py` and `dataset_input.py`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from tokbatch.errors import InputError
from tokbatch.job.config import JobConfig, resolve

SUFFIXES = (".parquet", ".pq")


@dataclass(frozen=True, slots=True)
class Input:
    """One input: a Parquet file, or one split of a dataset.

    `name` is how statistics and manifest call it: as the config does, so that it does not depend on where the
    corpus lies. `path` is absolute, or a URL.
    """

    kind: Literal["parquet", "dataset"]
    name: str
    path: str
    subset: str | None = None
    split: str | None = None


@dataclass(slots=True)
class InputList:
    """Inputs in order; `repeated` are the names of those that the config gives more than once."""

    inputs: list[Input] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)


def list_inputs(config: JobConfig) -> InputList:
    """Resolve `input.files` or `input.dataset`.

    Entries keep the order of the config; within a glob or a folder files are sorted by path. A file that is named
    twice is taken once. What lies in the output folder is no input. Raises `InputError` for what matches nothing.
    """
    if config.input.dataset is not None:
        return InputList([_dataset(config, config.input.dataset)])
    return list_files(config.input.files, config.base, str(config.output_path))


def list_files(patterns: Iterable[str], base: str, output: str | None = None) -> InputList:
    """Resolve paths, globs, folders and URLs; relative ones start from `base`. See `list_inputs`."""
    found = InputList()
    seen: set[str] = set()
    for pattern in patterns:
        matches = [match for match in _expand(pattern, base) if not (output and match[1].startswith(output + os.sep))]
        if not matches:
            raise InputError("no Parquet file there", where=pattern, hint=f"relative paths start from {base}")
        for name, path in matches:
            if path in seen:
                found.repeated.append(name)
            else:
                seen.add(path)
                found.inputs.append(Input("parquet", name, path))
    return found


def _dataset(config: JobConfig, dataset: str) -> Input:
    folder = config.resolve(dataset)
    path = folder if os.path.isdir(folder) else dataset
    details = [detail for detail in (config.input.subset, config.input.split) if detail]
    return Input("dataset", ":".join([dataset, *details]), path, config.input.subset, config.input.split)


def _expand(pattern: str, base: str) -> list[tuple[str, str]]:
    """Give (name, path) of each file that a pattern stands for."""
    if "://" in pattern:
        return [(url, url) for url in _expand_url(pattern)]
    absolute = resolve(pattern, base)
    if os.path.isdir(absolute):
        paths = _visible(glob.glob("**/*", root_dir=absolute, recursive=True))
        matches = sorted(os.path.join(absolute, path) for path in paths if path.endswith(SUFFIXES))
    elif os.path.exists(absolute) or not glob.has_magic(pattern):
        if not os.path.exists(absolute):
            raise InputError("no such file", where=pattern, hint=f"looked for {absolute}")
        matches = [absolute]
    else:
        # The folder of the config may itself have characters that mean something to glob.
        own = os.path.expanduser(pattern)
        root = None if os.path.isabs(own) else base
        matches = [os.path.normpath(os.path.join(base, path)) for path in glob.glob(own, root_dir=root, recursive=True)]
        matches = sorted(path for path in matches if os.path.isfile(path))
    keep_absolute = os.path.isabs(os.path.expanduser(pattern))
    return [(path if keep_absolute else os.path.relpath(path, base), path) for path in matches]


def _expand_url(pattern: str) -> list[str]:
    try:
        file_system, path = filesystem_of(pattern)
        if file_system.isdir(path):
            paths = [entry for entry in file_system.find(path) if entry.endswith(SUFFIXES)]
            paths = [path + relative for relative in _visible(entry[len(path) :] for entry in paths)]
        elif glob.has_magic(path):
            paths = [entry for entry in file_system.glob(path) if file_system.isfile(entry)]
        elif not file_system.exists(path):
            raise InputError("no such file", where=pattern)
        else:
            return [pattern]
        return [str(file_system.unstrip_protocol(entry)) for entry in sorted(paths)]
    except InputError:
        raise
    except Exception as error:
        raise _refusal(pattern, error) from None


def filesystem_of(url: str) -> tuple[Any, str]:
    """Give the fsspec file system and the path in it. Raises `InputError` for a protocol that is not installed."""
    import fsspec

    try:
        file_system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(f"cannot open this kind of URL: {error}", where=url) from None
    return file_system, str(path)


def _refusal(where: str, error: Exception) -> InputError:
    return InputError(f"cannot look there: {type(error).__name__}: {error}", where=where)


def _visible(paths: Iterable[str]) -> list[str]:
    """Leave out what starts with a dot or an underscore, as readers of Parquet folders do."""
    return [path for path in paths if not any(part.startswith((".", "_")) for part in path.split("/"))]
