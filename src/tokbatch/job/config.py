"""What a job is asked to do: the config file as one frozen value.

`load_config` reads a TOML file, lays `--set a.b=c` over it and reports all mistakes at once. `JobConfig.settings`
gives what the output depends on, and only that: the number of workers and the place of the output are not in it.
How a table becomes a dataclass stands in `config_reader.py`; the next file of the road is `plan.py`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tokbatch.batch.token_source import TokenSource
from tokbatch.engine.protocol import CACHED_PRETOKENS, FEWEST_PRETOKENS, MOST_PRETOKENS
from tokbatch.errors import ConfigError
from tokbatch.job.config_reader import Problems, read_table, setting

MEBIBYTE = 1 << 20
LONGEST = (1 << 64) - 1  # what a tokenizer's file can say


@dataclasses.dataclass(frozen=True, slots=True)
class TruncationConfig:
    """Documents are cut to a number of tokens, in place of what the tokenizer's file says."""

    max_length: int = setting(
        help="tokens a document may have, those of the template included", minimum=1, maximum=LONGEST
    )
    stride: int = setting(
        0, help="tokens that a cut-off piece would share with the one before", minimum=0, maximum=LONGEST
    )
    direction: Literal["Left", "Right"] = setting("Right", help="the side that is cut off")


@dataclasses.dataclass(frozen=True, slots=True)
class TokenizerConfig:
    """Which tokenizer, and what it adds to each document."""

    file: str | None = setting(None, help="a tokenizer.json (or .json.gz, or a folder with one)")
    name: str | None = setting(None, help="a tokenizer on the hub, looked up in the local cache first")
    revision: str | None = setting(None, help="branch, tag or commit of the hub's repository")
    engine: Literal["auto", "native", "reference"] = setting(
        "auto", help='"auto": native; reference where that is not installed or refuses the file'
    )
    add_special_tokens: bool = setting(True, help="apply the template of the tokenizer's post-processor")
    prepend: tuple[TokenSource, ...] = setting(
        (), help='tokens put before each document, beside the template; { column = "c" }: the one in a row\'s column'
    )
    append: tuple[TokenSource, ...] = setting((), help="tokens put after each document, likewise")
    template: Mapping[str, TokenSource] = setting(
        dict, help="tokens that take the place of tokens of the template: a language, for one"
    )
    encode_special_tokens: bool = setting(False, help="true: special tokens in a text are ordinary text")
    truncation: Literal["file", "off"] | TruncationConfig = setting("file", help="cut long documents")  # noqa: RUF009


@dataclasses.dataclass(frozen=True, slots=True)
class InputConfig:
    """Where the documents are."""

    files: tuple[str, ...] = setting((), help="paths, globs, folders, fsspec URLs; formats may differ")
    format: Literal["auto", "parquet", "arrow", "jsonl", "text"] = setting(
        "auto", help="of the files; auto: by their names, which is Parquet where they do not tell"
    )
    document: Literal["line", "file"] = setting("line", help="what a document of a text file is")
    types: Mapping[str, Literal["bool", "int64", "double", "string", "json"]] = setting(
        dict, help="types of columns of JSON lines, where the first lines do not tell"
    )
    dataset: str | None = setting(None, help="a folder of Dataset.save_to_disk, or the name of a dataset on the hub")
    subset: str | None = setting(None, help="the dataset's configuration")
    split: str | None = setting(None, help="the dataset's split, needed where there are several")
    streaming: bool = setting(False, help="read a dataset's files where they are, without a copy in the cache")
    text_column: str = setting("text", help="the column with the documents; dotted for a nested field")
    keep_columns: Literal["all"] | tuple[str, ...] = setting((), help='columns copied through; "all": all others')


@dataclasses.dataclass(frozen=True, slots=True)
class PackingConfig:
    """Documents are packed into rows of one length, for training; without this section each has a row of its own."""

    length: int = setting(help="tokens of a row", minimum=1, maximum=1 << 24)
    pad: str = setting(help="the token that fills what is left of a row")
    strategy: Literal["greedy", "best_fit"] = setting("greedy", help="in order, or where the least room is left")
    split: bool = setting(True, help="cut documents: greedy at the end of every row, best_fit only what is longer")
    too_long: Literal["fail", "truncate", "drop"] = setting(
        "fail", help="without split: what a document does that is longer than a row"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class OutputConfig:
    """Where the ids go."""

    path: str = setting(help="the folder to write; a job has one to itself")
    id_column: str = setting("input_ids", help="name of the column of ids")
    id_type: Literal["int32", "uint16", "auto"] = setting(
        "int32", help="uint16 where the largest id fits; auto: the smaller one that does"
    )
    format: Literal["parquet", "arrow", "megatron", "bin"] = setting("parquet", help="of the parts: docs/output.md")
    compression: Literal["zstd", "lz4", "snappy", "gzip", "brotli", "none"] | None = setting(
        None, help="of the parts; not set: zstd, where the format can"
    )
    packing: PackingConfig | None = setting(None, help="rows of one length: see output.packing")  # noqa: RUF009
    max_part_bytes: int = setting(
        0, help="bytes that a part may have, unless a single row has more; 0: a part holds a shard", minimum=0
    )


@dataclasses.dataclass(frozen=True, slots=True)
class CheckConfig:
    """What is checked while the job runs."""

    round_trip: Literal["all", "sample", "off"] = setting("all", help="documents whose ids are decoded and compared")
    sample_rate: float = setting(0.01, help='share of documents, for round_trip = "sample"', minimum=0, maximum=1)
    on_lossy: Literal["fail", "warn"] = setting("warn", help="what a document does whose loss no rule explains")
    crosscheck: float = setting(
        0.0,
        help="share of documents that the native engine encoded and the reference engine encodes again",
        minimum=0,
        maximum=1,
    )


@dataclasses.dataclass(frozen=True, slots=True)
class RunConfig:
    """How the work is done."""

    workers: int = setting(0, help="worker processes; 0: one a core", minimum=0)
    engine: Literal["local", "ray"] = setting(
        "local", help="where the workers are: on this machine, or on a Ray cluster"
    )
    on_bad_file: Literal["fail", "skip"] = setting("fail", help="what a file does that cannot be read")
    on_bad_row: Literal["fail", "null"] = setting("fail", help="what a document does that cannot be encoded")
    retries: int = setting(2, help="times a shard is tried again after its worker died", minimum=0)
    batch_bytes: int = setting(
        8 * MEBIBYTE, help="text that a worker holds at a time; what bounds its memory", minimum=1
    )
    max_memory: int = setting(
        0,
        help="bytes that the whole job may take, all processes; 0: any. It bounds the number of workers; a document "
        "that makes a worker pass its share is a bad row",
        minimum=0,
    )
    cached_pretokens: int = setting(
        CACHED_PRETOKENS,
        help="pretokens whose ids the native engine remembers, in each worker, some 80 bytes each; the ids that come "
        "out do not depend on it",
        minimum=FEWEST_PRETOKENS,
        maximum=MOST_PRETOKENS,
    )
    shard_bytes: int = setting(0, help="text of a shard, which is what a part holds; 0: by the corpus", minimum=0)


@dataclasses.dataclass(frozen=True, slots=True)
class JobConfig:
    """A whole job. `base` is the folder that relative paths start from: the config file's own."""

    tokenizer: TokenizerConfig
    input: InputConfig
    output: OutputConfig
    check: CheckConfig
    run: RunConfig
    base: str = dataclasses.field(default=".", metadata={"internal": True})

    def resolve(self, path: str) -> str:
        """Give a path of the config as an absolute one; a URL stays as it is."""
        return resolve(path, self.base)

    @property
    def output_path(self) -> Path:
        """The output folder, absolute."""
        return Path(self.resolve(self.output.path))

    def to_table(self) -> dict[str, Any]:
        """Give the whole config as plain data."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dict(msgspec.to_builtins(fields))

    def settings(self) -> dict[str, Any]:
        """Give what the output's bytes depend on, beside the tokenizer's and the inputs' own digests."""
        table = self.to_table()
        del table["base"], table["output"]["path"]
        for key in ("file", "name", "revision", "engine"):
            del table["tokenizer"][key]
        for key in ("files", "format", "dataset", "subset", "split", "streaming"):
            del table["input"][key]
        del table["check"]["on_lossy"]
        for key in ("engine", "workers", "retries", "on_bad_file", "on_bad_row", "max_memory", "cached_pretokens"):
            del table["run"][key]
        return table

    def policy(self) -> dict[str, Any]:
        """Give what only matters to shards with failed or lossy documents: the others come out the same whatever it is.

        A resumed job keeps such a shard only where the policy is the one under which it was made.
        """
        return {
            "on_bad_row": self.run.on_bad_row,
            "on_lossy": self.check.on_lossy,
            "max_memory": self.run.max_memory,
        }


def resolve(path: str, base: str) -> str:
    """Give a path that is relative to `base` as an absolute one; a URL stays as it is."""
    return path if "://" in path else os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> JobConfig:
    """Read a config file, with `overrides` such as ``run.workers=4`` laid over it.

    Raises `ConfigError` with all mistakes in `problems`, one line each.
    """
    name = os.fspath(path)
    try:
        table = msgspec.toml.decode(Path(name).read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read the config: {error.strerror}", where=name) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the config is not TOML: {error}", where=name) from None
    for override in overrides:
        _lay_over(table, override)
    return read_config(table, base=os.path.dirname(os.path.abspath(name)), where=name)


def read_config(table: Mapping[str, Any], *, base: str = ".", where: str = "config") -> JobConfig:
    """Build a `JobConfig` from the tables of a config file. Raises as `load_config`."""
    problems = Problems()
    sections = _sections()
    given = {key: value for key, value in table.items() if isinstance(value, dict) or key not in sections}
    for key in set(table) - set(given):
        problems.add(key, "expected a table")
    config = read_table(_Sections, given, "", problems)
    if config is not None:
        for keys, message in _rules(config):
            if not problems.touch(*keys):
                problems.add(keys[0], message)
    if problems.by_key or config is None:
        lines = problems.lines()
        count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
        raise ConfigError(f"{count} in the config:\n" + "\n".join(lines), where=where, problems=lines)
    return JobConfig(**{name: getattr(config, name) for name in sections}, base=os.path.abspath(base))


@dataclasses.dataclass(frozen=True)
class _Sections:
    tokenizer: TokenizerConfig
    input: InputConfig
    output: OutputConfig
    check: CheckConfig
    run: RunConfig


def _sections() -> list[str]:
    return [field.name for field in dataclasses.fields(_Sections)]


def _rules(config: _Sections) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give what is wrong between keys: the keys, the first to be named, and what it is."""
    tokenizer, source, output = config.tokenizer, config.input, config.output
    paths = (
        ("tokenizer.file", (tokenizer and tokenizer.file,)),
        ("input.files", source.files if source else ()),
        ("output.path", (output and output.path,)),
    )
    for key, given_paths in paths:
        if any(path and "\0" in path for path in given_paths):
            yield (key,), "a path cannot have a null character"
    if tokenizer is not None:
        if (tokenizer.file is None) == (tokenizer.name is None):
            given = "neither" if tokenizer.file is None else "both"
            yield (
                ("tokenizer.file", "tokenizer.name"),
                f"give either tokenizer.file or tokenizer.name, here are {given}",
            )
        if tokenizer.revision is not None and tokenizer.name is None:
            yield ("tokenizer.revision", "tokenizer.name"), "is for a tokenizer given by name"
        truncation = tokenizer.truncation
        if isinstance(truncation, TruncationConfig) and truncation.stride >= truncation.max_length:
            yield (
                ("tokenizer.truncation",),
                f"a stride of {truncation.stride} leaves nothing of {truncation.max_length}",
            )
    if source is not None:
        if bool(source.files) == (source.dataset is not None):
            given = "both" if source.files else "neither"
            yield ("input.files", "input.dataset"), f"give either input.files or input.dataset, here are {given}"
        for key in ("subset", "split", "streaming"):
            if getattr(source, key) and source.dataset is None:
                yield (f"input.{key}", "input.dataset"), "is for a dataset"
        if not source.text_column:
            yield ("input.text_column",), "is empty"
        if source.keep_columns != "all":
            for name in _repeated(source.keep_columns):
                yield ("input.keep_columns",), f'"{name}" stands there twice'
            if output is not None and output.id_column in source.keep_columns:
                yield ("output.id_column", "input.keep_columns"), f'"{output.id_column}" is a kept column already'
    if output is not None:
        if not output.id_column:
            yield ("output.id_column",), "is empty"
        allowed = {"parquet": None, "arrow": ("zstd", "lz4", "none")}.get(output.format, ("none",))
        if output.compression and allowed and output.compression not in allowed:
            choices = " or ".join(f'"{choice}"' for choice in allowed)
            yield (
                ("output.compression", "output.format"),
                f'expected {choices} for the format "{output.format}", got "{output.compression}"',
            )
        if output.packing is not None:
            if output.format in ("megatron", "bin"):
                yield (("output.packing", "output.format"), f'the format "{output.format}" is for whole documents')
            if source is not None and source.keep_columns:
                yield (
                    ("input.keep_columns", "output.packing"),
                    "packed rows have no place for columns of documents: set it to []",
                )
            if output.max_part_bytes:
                yield ("output.max_part_bytes", "output.packing"), "packed parts are limited by run.shard_bytes"
        if output.format in ("megatron", "bin") and source is not None and source.keep_columns:
            yield (
                ("input.keep_columns", "output.format"),
                f'the format "{output.format}" has no place for other columns than the ids: set it to []',
            )
        if "://" in output.path or not output.path:
            yield ("output.path",), f'expected a folder of this machine, got "{output.path}"'
    if config.check is not None and config.check.round_trip == "off" and config.check.on_lossy == "fail":
        yield ("check.on_lossy", "check.round_trip"), 'cannot be "fail" where check.round_trip is "off"'


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def _lay_over(table: dict[str, Any], override: str) -> None:
    """Set one key. The value is TOML; what is not TOML is a string, so that `output.path=out/a` needs no quotes."""
    dotted, sign, text = override.partition("=")
    keys = [key.strip() for key in dotted.split(".")]
    if not sign or not all(keys):
        raise ConfigError(f'expected section.key=value, got "{override}"', where="--set")
    try:
        value = msgspec.toml.decode(f"value = {text}".encode())["value"]
    except msgspec.DecodeError:
        value = text
    for key in keys[:-1]:
        below = table.setdefault(key, {})
        if not isinstance(below, dict):
            below = table[key] = {}
        table = below
    table[keys[-1]] = value
