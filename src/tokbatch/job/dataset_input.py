"""Hugging Face datasets as inputs: a folder of `Dataset.save_to_disk`, or a name on the hub, from the cache first."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tokbatch.errors import NOT_THERE, ConfigError, InputError
from tokbatch.job.arrow_checks import check_offsets
from tokbatch.job.files import READ_ERRORS, unreadable
from tokbatch.job.inputs import KINDS, Input, all_suffixes
from tokbatch.job.sizes import bounded
from tokbatch.job.sources import OnBadRow, ReadOptions, Unit

UNIT_BYTES = 4 << 20
MARKS = ("state.json", "dataset_dict.json")


class DatasetSource:
    """One split of a dataset. Its digest is made of the dataset's fingerprint and of the sizes of its files."""

    def __init__(self, source: Input, options: ReadOptions):
        self.input = source
        self.options = options
        self.dataset = _load(source)
        table = self.dataset.data
        try:
            table.validate()  # Nothing else looks whether lengths fit, and they are followed below.
        except READ_ERRORS as error:
            raise unreadable(error, source.name) from None
        self.schema: pa.Schema = table.schema
        files = [(os.path.basename(f["filename"]), _size(f["filename"])) for f in self.dataset.cache_files]
        self.size = sum(size for _, size in files)
        identity = [self.dataset._fingerprint, self.dataset.num_rows, files]
        self.digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
        self._row_bytes: int = max(1, table.nbytes // max(1, table.num_rows))

    def units(self) -> list[Unit]:
        """Give runs of as many rows as hold `UNIT_BYTES` on average."""
        text_column = self.options.text_column
        table, total = self.dataset.data, self.dataset.num_rows
        name = text_column if text_column in self.schema.names else text_column.split(".")[0]
        size = table.column(name).nbytes if name in self.schema.names else 0
        text_bytes = size / max(1, table.num_rows)
        rows = self._rows_a_unit()
        counts = [min(rows, total - start) for start in range(0, total, rows)]
        return [Unit(count, int(count * text_bytes)) for count in counts]

    def is_still(self, size: int, digest: str) -> bool:
        """See `Source`."""
        return self.digest == digest

    def batches(
        self,
        units: Sequence[Unit],
        columns: Sequence[str] | None,
        batch_bytes: int,
        first_row: int,
        on_bad_row: OnBadRow = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `Source.batches`."""
        dataset = self.dataset.with_format("arrow")
        if columns is not None:
            known = self.schema.names
            dataset = dataset.select_columns(list(dict.fromkeys(c if c in known else c.split(".")[0] for c in columns)))
        stop = first_row + sum(unit.rows for unit in units)
        step = max(1, min(self._rows_a_unit(), batch_bytes // self._row_bytes))
        for start in range(first_row, stop, step):
            try:
                table: pa.Table = dataset[start : min(start + step, stop)]
                # A table of several chunks gives several batches, all of them without a copy.
                batches = table.to_batches()
                for batch in batches:
                    check_offsets(batch)
            except READ_ERRORS as error:
                raise unreadable(error, f"{self.input.name}: row {start}") from None
            for batch in batches:
                yield from bounded(batch, batch_bytes)

    def _rows_a_unit(self) -> int:
        return max(1, UNIT_BYTES // self._row_bytes)


def _load(source: Input) -> Any:
    import datasets

    datasets.disable_progress_bars()
    try:
        if os.path.isdir(source.path):
            if not any(os.path.exists(os.path.join(source.path, mark)) for mark in MARKS):
                raise InputError(
                    "no dataset of save_to_disk in this folder",
                    where=source.name,
                    hint="a folder of Parquet files goes into input.files",
                )
            loaded = datasets.load_from_disk(source.path)
        else:
            loaded = _from_hub(source)
    except InputError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        if text[0].startswith("Unknown split"):
            raise ConfigError(f"{source.name}: {text[0]}", where="input.split") from None
        code = NOT_THERE if isinstance(error, datasets.exceptions.DatasetNotFoundError) else None
        raise InputError(f"cannot load the dataset: {text[0]}", where=source.name, code=code) from None
    return _one_split(loaded, source)


def list_dataset_files(source: Input) -> list[tuple[str, str]]:
    """Give (name, path or URL) of the data files of one split, for them to be read where they are.

    They are read as files, by `parquet_input.py` and the others: features that the dataset declares are not applied.
    Raises `InputError` for a dataset that is made of anything else.
    """
    import datasets

    if any(os.path.exists(os.path.join(source.path, mark)) for mark in MARKS):
        raise InputError(
            "a folder of save_to_disk is read where it is already", where=source.name, hint="leave out input.streaming"
        )
    try:
        by_split = datasets.load_dataset_builder(source.path, source.subset).config.data_files or {}
    except Exception as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        code = NOT_THERE if isinstance(error, datasets.exceptions.DatasetNotFoundError) else None
        raise InputError(f"cannot look into the dataset: {text[0]}", where=source.name, code=code) from None
    paths = [str(path) for path in _one_split({str(name): files for name, files in by_split.items()}, source)]
    known = tuple(suffix for kind, suffixes in KINDS.items() for suffix in all_suffixes(kind, suffixes))
    bad = [path for path in paths if not path.lower().endswith(known)]
    if bad or not paths:
        what = f"{os.path.basename(bad[0])} is no Parquet, Arrow, JSON lines or text" if bad else "it has no data files"
        raise InputError(f"cannot be streamed: {what}", where=source.name, hint="leave out input.streaming")
    folder = source.path.rstrip("/") + "/"
    return [
        (
            path.removeprefix(folder).split("@", 1)[-1].split("/", 1)[-1]
            if "://" in path
            else path.removeprefix(folder),
            path,
        )
        for path in paths
    ]


def _from_hub(source: Input) -> Any:
    """Load from the local cache; only what is not there is asked of the hub, so workers never ask it again."""
    import datasets

    try:
        with _offline():
            return datasets.load_dataset(source.path, source.subset, split=source.split)
    except Exception:
        return datasets.load_dataset(source.path, source.subset, split=source.split)


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep `datasets` from the network; it has no argument for that. It would warn that it is offline."""
    import datasets
    import huggingface_hub.constants

    places: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    before = [place.HF_HUB_OFFLINE for place in places]
    verbosity = datasets.logging.get_verbosity()
    try:
        for place in places:
            place.HF_HUB_OFFLINE = True
        datasets.logging.set_verbosity_error()
        yield
    finally:
        datasets.logging.set_verbosity(verbosity)
        for place, value in zip(places, before, strict=True):
            place.HF_HUB_OFFLINE = value


def _one_split(loaded: Any, source: Input) -> Any:
    if not isinstance(loaded, dict):
        return loaded
    names = list(loaded)
    if source.split is None and len(names) == 1:
        return loaded[names[0]]
    if source.split in loaded:
        return loaded[source.split]
    said = "no input.split is given" if source.split is None else f'none is "{source.split}"'
    raise ConfigError(f"{source.name} has the splits {', '.join(names)}, and {said}", where="input.split")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
