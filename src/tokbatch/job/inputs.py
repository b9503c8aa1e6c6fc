"""Which inputs a config names: files by path, glob, folder or URL, or one dataset. Nothing is opened here.

What is inside an input: `sources.py` and the files it names.
"""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tokbatch.errors import NOT_THERE, InputError
from tokbatch.job.config import InputConfig, JobConfig, resolve
from tokbatch.job.files import filesystem_of

Kind: TypeAlias = Literal["parquet", "arrow", "jsonl", "text", "documents", "dataset"]
KINDS: dict[Kind, tuple[str, ...]] = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "text": (".txt", ".text", ".md"),
}
COMPRESSED = (".gz", ".zst", ".zstd")  # of text formats; the others compress within
STATE = ".tokbatch"  # the folder that tells a job's output; see `storage.py`


@dataclass(frozen=True, slots=True)
class Input:
    """One input: a file, many text files that are a document each (`files`, below `path`), or one split of a dataset.

    `name` is how statistics and manifest call it: as the config does, so that it does not depend on where the
    corpus lies. `path` is absolute, or a URL.
    """

    kind: Kind
    name: str
    path: str
    subset: str | None = None
    split: str | None = None
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class InputList:
    """Inputs in order; `repeated` are the names of those that the config gives more than once.

    `passed_over` are the folders with the output of other jobs that lie below a folder or glob of the config.
    """

    inputs: list[Input] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


def list_inputs(config: JobConfig) -> InputList:
    """Resolve `input.files` or `input.dataset`.

    Entries keep the order of the config; within a glob or a folder files are sorted by path. A file that is named
    twice is taken once. What lies in the output folder is no input, nor is another job's output below a folder or
    glob. Raises `InputError` for what matches nothing.
    """
    if config.input.dataset is not None and config.input.streaming:
        from tokbatch.job.dataset_input import list_dataset_files

        source = _dataset(config, config.input.dataset)
        try:
            files = list_dataset_files(source)
        except InputError as error:
            raise without_folder(error, config) from None
        return InputList([Input(kind_of(path), f"{source.name}/{name}", path) for name, path in files])
    if config.input.dataset is not None:
        return InputList([_dataset(config, config.input.dataset)])
    return list_files(config.input.files, config.base, str(config.output_path), config.input)


def list_files(
    patterns: Iterable[str], base: str, output: str | None = None, options: InputConfig | None = None
) -> InputList:
    """Resolve paths, globs, folders and URLs; relative ones start from `base`. See `list_inputs`."""
    found = InputList()
    seen: set[str] = set()
    options = options or InputConfig()
    for pattern in patterns:
        listed = _expand(pattern, base, _suffixes(options.format))
        outputs = _outputs(pattern, base, [path for _, path in listed])
        matches = [(name, path) for name, path in listed if not _is_below(path, {output or "", *outputs})]
        found.passed_over += [folder for folder in outputs if folder != output and folder not in found.passed_over]
        if not matches:
            hint = f"relative paths start from {base}"
            if outputs:
                hint = f"what lies there is a job's output: {', '.join(sorted(outputs)[:3])}"
            raise InputError("no file of a known format there", where=pattern, hint=hint, code=NOT_THERE)
        new = []
        for name, path in matches:
            if path in seen:
                found.repeated.append(name)
            else:
                seen.add(path)
                new.append((name, path))
        if options.document == "file":
            found.inputs += _as_documents(pattern, new, base, options.format)
        else:
            found.inputs += [Input(kind_of(path, options.format), name, path) for name, path in new]
    return found


def kind_of(path: str, asked: str = "auto") -> Kind:
    """Tell the format of a file by its name; Parquet where the name does not tell, and then the file must be that."""
    if asked != "auto":
        kind: Kind = asked  # type: ignore[assignment]  # one of the config's own words
        return kind
    for kind, suffixes in KINDS.items():
        if path.lower().endswith(all_suffixes(kind, suffixes)):
            return kind
    return "parquet"


def all_suffixes(kind: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Give the ends of the names of a format, those of compressed files with them."""
    if kind in ("parquet", "arrow"):
        return suffixes
    return suffixes + tuple(suffix + end for suffix in suffixes for end in COMPRESSED)


def _suffixes(asked: str) -> tuple[str, ...] | None:
    """Give the ends of the names that count in a folder; None: all files, where the config says what they are."""
    return _known_suffixes() if asked == "auto" else None


def _known_suffixes() -> tuple[str, ...]:
    return tuple(suffix for kind, suffixes in KINDS.items() for suffix in all_suffixes(kind, suffixes))


def _as_documents(pattern: str, new: list[tuple[str, str]], base: str, asked: str) -> list[Input]:
    """Make one input of the text files of a pattern; files of other formats stay inputs of their own."""
    texts = [path for name, path in new if kind_of(path, asked) == "text"]
    others = [Input(kind_of(path, asked), name, path) for name, path in new if kind_of(path, asked) != "text"]
    if not texts:
        return others
    folder = posixpath.commonpath(texts) if "://" not in texts[0] and len(texts) > 1 else posixpath.dirname(texts[0])
    while not all(path.startswith(folder.rstrip("/") + "/") for path in texts):
        folder = posixpath.dirname(folder)
    names = tuple(path[len(folder.rstrip("/")) + 1 :] for path in texts)
    return [Input("documents", pattern, folder, files=names), *others]


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(folder and path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _outputs(pattern: str, base: str, paths: Iterable[str]) -> set[str]:
    """Find the folders of jobs' outputs in which files lie, below what the pattern itself names."""
    if "://" in pattern:
        file_system, inner = filesystem_of(pattern)
        root = str(file_system.unstrip_protocol(inner))
        holds: Callable[[str], bool] = lambda folder: file_system.exists(f"{folder}/{STATE}")  # noqa: E731
    else:
        holds = lambda folder: os.path.isdir(os.path.join(folder, STATE))  # noqa: E731
        root = resolve(pattern, base)
    while glob.has_magic(root):
        root = posixpath.dirname(root)
    known: dict[str, bool] = {}
    for path in paths:
        folder = posixpath.dirname(path)
        while len(folder) > len(root.rstrip("/")) and folder not in known:
            known[folder] = holds(folder)
            folder = posixpath.dirname(folder)
    return {folder for folder, is_output in known.items() if is_output}


def _dataset(config: JobConfig, dataset: str) -> Input:
    folder = config.resolve(dataset)
    path = folder if os.path.isdir(folder) else dataset
    details = [detail for detail in (config.input.subset, config.input.split) if detail]
    return Input("dataset", ":".join([dataset, *details]), path, config.input.subset, config.input.split)


def without_folder(error: InputError, config: JobConfig) -> InputError:
    """Say in an error about `input.dataset` that there is no such folder, where its name looks like one's."""
    dataset = config.input.dataset
    if dataset is None or "://" in dataset:
        return error
    folder = config.resolve(dataset)
    looks_local = dataset.startswith((".", "~", "/")) or ("/" in dataset and os.path.isdir(os.path.dirname(folder)))
    if looks_local and not os.path.isdir(folder):
        error.message = f"there is no folder {folder}, and the hub, which was asked too, says: {error.message}"
        error.code = NOT_THERE
    return error


def _expand(pattern: str, base: str, suffixes: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """Give (name, path) of each file that a pattern stands for; of a folder those with one of the suffixes."""
    if "://" in pattern:
        return [(url, url) for url in _expand_url(pattern, suffixes)]
    absolute = resolve(pattern, base)
    if os.path.isdir(absolute):
        paths = _visible(glob.glob("**/*", root_dir=absolute, recursive=True))
        matches = sorted(os.path.join(absolute, path) for path in paths if _fits(path, suffixes))
        matches = [path for path in matches if os.path.isfile(path)]
        if not matches and _fits(absolute, _known_suffixes()):
            matches = [absolute]
    elif os.path.exists(absolute) or not glob.has_magic(pattern):
        matches = [absolute]  # Where it is not there, who opens it says so: that is up to `run.on_bad_file`.
    else:
        # The folder of the config may itself have characters that mean something to glob.
        own = os.path.expanduser(pattern)
        root = None if os.path.isabs(own) else base
        found = {os.path.normpath(os.path.join(base, path)) for path in glob.glob(own, root_dir=root, recursive=True)}
        matches = sorted({file for path in found for file in _files_of_match(path, suffixes)})
    keep_absolute = os.path.isabs(os.path.expanduser(pattern))
    return [(path if keep_absolute else os.path.relpath(path, base), path) for path in matches]


def _files_of_match(path: str, suffixes: tuple[str, ...] | None) -> list[str]:
    """Give the files that a match of a glob stands for: itself, or those of a folder that is called like a file.

    Other programs write such folders (x.parquet/part-0.parquet). One without files stays, and so does a link that leads
    nowhere: whoever opens it says what it is.
    """
    if os.path.isfile(path):
        return [path]
    if not _fits(path, suffixes or _known_suffixes()):
        return []
    inner = _visible(glob.glob("**/*", root_dir=path, recursive=True))
    files = [os.path.join(path, name) for name in inner if _fits(name, suffixes)]
    return [file for file in files if os.path.isfile(file)] or [path]


def _expand_url(pattern: str, suffixes: tuple[str, ...] | None) -> list[str]:
    try:
        file_system, path = filesystem_of(pattern)
        if file_system.isdir(path):
            paths = [entry for entry in file_system.find(path) if _fits(entry, suffixes)]
            paths = [path + relative for relative in _visible(entry[len(path) :] for entry in paths)]
        elif glob.has_magic(path):
            paths = [entry for entry in file_system.glob(path) if file_system.isfile(entry)]
        else:
            return [pattern]
        return [str(file_system.unstrip_protocol(entry)) for entry in sorted(paths)]
    except InputError:
        raise
    except Exception as error:
        raise _refusal(pattern, error) from None


def _refusal(where: str, error: Exception) -> InputError:
    return InputError(f"cannot look there: {type(error).__name__}: {error}", where=where)


def _visible(paths: Iterable[str]) -> list[str]:
    """Leave out what starts with a dot or an underscore, as readers of Parquet folders do."""
    return [path for path in paths if not any(part.startswith((".", "_")) for part in path.split("/"))]


def _fits(path: str, suffixes: tuple[str, ...] | None) -> bool:
    return suffixes is None or path.lower().endswith(suffixes)
