"""From a config to a job that is ready to run: tokenizer, inputs, plan and identity. Writes nothing.

`tokbatch plan` ends here; `run.py` goes on. The identity is what a resumed job must have in common with the one that
was interrupted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import typing
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from tokbatch._version import __version__
from tokbatch.batch.affixes import tokens_to_choose
from tokbatch.batch.token_source import FromColumn
from tokbatch.batch.transform import Transform, TransformOptions, check_truncation, template_length
from tokbatch.engine import engine_told
from tokbatch.engine.protocol import CACHED_PRETOKENS
from tokbatch.errors import NOT_THERE, WRONG_COLUMN, ConfigError, InputError, SpecError, TokbatchError, located
from tokbatch.job.config import JobConfig, TruncationConfig
from tokbatch.job.files import Stamp, stamp_of
from tokbatch.job.inputs import Input, InputList, list_inputs, without_folder
from tokbatch.job.packing import packed_schema
from tokbatch.job.plan import SMALLEST, SMALLEST_FOR_REFERENCE, Shard, plan_shards, shard_size
from tokbatch.job.quarantine import reason_of
from tokbatch.job.schema import SchemaUnion
from tokbatch.job.sinks import Sink, build_sink
from tokbatch.job.sources import ReadOptions, Unit, open_source, rows_of
from tokbatch.job.storage import FORMAT
from tokbatch.spec import Truncation
from tokbatch.tokenizer import Tokenizer

FOOTERS_AT_ONCE = 8
IdType: TypeAlias = Literal["int32", "uint16"]


@dataclass(frozen=True)
class InputFacts:
    """What the plan knows of an input. `stamp` is there where its digest is not that of all that is read."""

    input: Input
    size: int
    digest: str
    rows: int
    text_bytes: int
    units: tuple[Unit, ...]
    schema: pa.Schema
    stamp: Stamp | None = None


@dataclass(frozen=True)
class Job:
    """A job that is ready to run. `skipped` are (name, reason) of the inputs that cannot be read."""

    config: JobConfig
    tokenizer: Tokenizer
    transform: Transform
    sink: Sink
    pad_id: int
    read_options: ReadOptions
    inputs: tuple[InputFacts, ...]
    skipped: tuple[tuple[str, str], ...]
    repeated: tuple[str, ...]
    passed_over: tuple[str, ...]
    schema: pa.Schema
    shards: tuple[Shard, ...]
    identity: dict[str, Any]

    def shard_identity(self, shard: Shard) -> dict[str, Any]:
        """Give what a shard's record must say for the shard to be done."""
        facts = self.inputs[shard.input]
        return {
            "input": facts.input.name,
            "input_sha256": facts.digest,
            "tokenizer_sha256": self.identity["tokenizer_sha256"],
            "settings_sha256": digest_of(self.identity["settings"]),
            "units": [shard.start, shard.stop],
            "rows": [shard.first_row, shard.first_row + shard.rows],
        }


def prepare_job(config: JobConfig, listed: InputList | None = None) -> Job:
    """Load the tokenizer, look into every input (`listed`, where that is done), and make the plan.

    Raises `ConfigError`, `SpecError`, `InputError`: what can be found out before any work is found out here.
    """
    listed = list_inputs(config) if listed is None else listed
    with engine_told():  # `run` does, and the plan
        tokenizer = load_tokenizer(config)
        transform = build_transform(config, tokenizer)
    sink = build_sink(config.output, id_type_of(config, tokenizer))
    options = read_options(config)
    facts: list[InputFacts] = []
    skipped: list[tuple[str, str]] = []
    union = SchemaUnion()
    for source, looked in _look_into(listed.inputs, options, is_local=config.run.engine == "local"):
        try:
            if isinstance(looked, InputError):
                raise without_folder(looked, config)
            own = _output_schema(transform, sink, looked, is_first=not facts)
            union.add(source.name, own)
            facts.append(dataclasses.replace(looked, schema=own))
        except InputError as error:
            if config.run.on_bad_file == "fail":
                if source.kind != "dataset" and "://" not in source.path and not os.path.lexists(source.path):
                    error.code = NOT_THERE
                raise
            skipped.append((source.name, reason_of(error, source.name)))
    if not facts:
        raise InputError("none of the inputs can be read", where=skipped[0][0], hint=skipped[0][1])
    schema = union.schema(last=config.output.id_column)
    if config.output.packing is not None:
        schema = packed_schema(schema, config.output.id_column, config.output.packing.length)
    units = [fact.units for fact in facts]
    smallest = SMALLEST if tokenizer.engine_name == "native" else SMALLEST_FOR_REFERENCE
    shards = plan_shards(units, shard_size(units, config.run.shard_bytes, smallest))
    identity = {
        "format": FORMAT,
        "tokbatch": __version__,
        "pyarrow": pa.__version__,
        "engine": tokenizer.engine_name,
        "tokenizer_sha256": tokenizer.digest,
        "settings": json.loads(json.dumps(config.settings())),
        "schema": [[field.name, str(field.type)] for field in schema],
        "inputs": [{"name": f.input.name, "bytes": f.size, "sha256": f.digest} for f in facts],
    }
    return Job(
        config,
        tokenizer,
        transform,
        sink,
        pad_id_of(config, tokenizer),
        options,
        tuple(facts),
        tuple(skipped),
        tuple(listed.repeated),
        tuple(listed.passed_over),
        schema,
        tuple(shards),
        identity,
    )


def load_tokenizer(config: JobConfig) -> Tokenizer:
    """Load the tokenizer of a config, with the config's truncation, and with the engine chosen for all processes."""
    asked = config.tokenizer
    place = config.resolve(asked.file) if asked.file is not None else asked.name or ""
    try:
        if asked.file is not None:
            tokenizer = Tokenizer.from_file(place, asked.engine, asked.encode_special_tokens)
        else:
            tokenizer = Tokenizer.from_pretrained(place, asked.revision, asked.engine, asked.encode_special_tokens)
    except SpecError as error:
        raise located(error, place) from None
    if isinstance(asked.truncation, TruncationConfig):
        cut = asked.truncation
        truncation = Truncation(cut.max_length, cut.stride, direction=cut.direction)
        check_truncation(truncation, template_length(tokenizer.engine) if asked.add_special_tokens else 0)
        tokenizer = tokenizer.with_options(truncation=truncation)
    elif asked.truncation == "off":
        tokenizer = tokenizer.with_options(truncation=None)
    pretokens = config.run.cached_pretokens
    return tokenizer.with_options(
        engine=tokenizer.engine_name, cached_pretokens=None if pretokens == CACHED_PRETOKENS else pretokens
    )


def build_transform(config: JobConfig, tokenizer: Tokenizer) -> Transform:
    """Build the transform of a config; with a crosscheck, it gets the reference engine for a second one.

    Raises `ConfigError`, also for a crosscheck of the reference engine with itself.
    """
    second = None
    if config.check.crosscheck > 0:
        if tokenizer.engine_name == "reference":
            raise ConfigError(
                "the crosscheck encodes again with the reference engine, which does the work already: it cannot fail"
                + (f" ({tokenizer.why_reference})" if tokenizer.why_reference else ""),
                where="check.crosscheck",
                hint="leave it at 0.0 where the native engine does not do the work",
            )
        second = tokenizer.with_options(engine="reference")
    try:
        return Transform(transform_options(config, id_type_of(config, tokenizer)), tokenizer, second)
    except ConfigError as error:
        if error.where is not None:  # one problem, and its key
            raise
        problems = [_dotted(problem) for problem in error.problems]
        raise ConfigError("\n".join(problems), problems=problems, hint=error.hint) from None


def _dotted(problem: str) -> str:
    """Put the section of the config before a problem that starts with the name of an option."""
    name = re.split(r"\W", problem, maxsplit=1)[0]
    for section, hint in typing.get_type_hints(JobConfig).items():
        if dataclasses.is_dataclass(hint) and any(field.name == name for field in dataclasses.fields(hint)):
            return f"{section}.{problem}"
    return problem


def pad_id_of(config: JobConfig, tokenizer: Tokenizer) -> int:
    """Give the id that fills packed rows; 0 where none are packed. Raises `ConfigError`."""
    packing = config.output.packing
    if packing is None:
        return 0
    token_id = tokenizer.token_to_id(packing.pad)
    if token_id is None:
        raise ConfigError(
            f'"{packing.pad}" is no token of the vocabulary',
            where="output.packing.pad",
            hint=tokens_to_choose(tokenizer.engine, packing.pad),
        )
    return token_id


def id_type_of(config: JobConfig, tokenizer: Tokenizer) -> IdType:
    """Give the type of the ids. "auto" goes by the largest id there is, never by how many there are."""
    asked = config.output.id_type
    if asked != "auto":
        return asked
    return "uint16" if tokenizer.engine.max_id <= 0xFFFF else "int32"


def read_options(config: JobConfig) -> ReadOptions:
    """Give the part of a config that a source needs."""
    kept, tokenizer = config.input.keep_columns, config.tokenizer
    tokens = (*tokenizer.prepend, *tokenizer.append, *tokenizer.template.values())
    named = [token.column for token in tokens if isinstance(token, FromColumn)]
    columns = kept if kept == "all" else tuple(dict.fromkeys([*kept, *named]))
    return ReadOptions(config.input.text_column, columns, config.input.types)


def transform_options(config: JobConfig, id_type: IdType) -> TransformOptions:
    """Give the part of a config that the transform of a batch needs; see `id_type_of`."""
    return TransformOptions(
        text_column=config.input.text_column,
        keep_columns=config.input.keep_columns,
        id_column=config.output.id_column,
        id_type=id_type,
        add_special_tokens=config.tokenizer.add_special_tokens,
        prepend=config.tokenizer.prepend,
        append=config.tokenizer.append,
        template=config.tokenizer.template,
        round_trip=config.check.round_trip,
        sample_rate=config.check.sample_rate,
        crosscheck=config.check.crosscheck,
        on_bad_row=config.run.on_bad_row,
    )


def digest_of(value: Any) -> str:
    """Give the SHA-256 of plain data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def worker_count(config: JobConfig, shards: int, cores: int | None = None) -> int:
    """Give the number of workers: as asked, or one a core, but none without a shard.

    `cores` None: those of this machine that this process may use.
    """
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(config.run.workers or cores, shards))


def early_worker_count(config: JobConfig, listed: InputList) -> int:
    """Give the number of workers that there will be work for, whatever the plan says: by the sizes of local files."""
    stamps = (stamp_of(entry.path) for entry in listed.inputs)
    shards = sum(stamp[0] for stamp in stamps if stamp is not None) // SMALLEST
    return worker_count(config, shards) if shards else 0


def _look_into(
    inputs: Iterable[Input], options: ReadOptions, is_local: bool
) -> list[tuple[Input, InputFacts | InputError]]:
    """Open every input; remote footers take a while each, so several at once.

    Not `is_local`: other machines read them, whose clocks and copies are their own, so stamps say nothing.
    """

    def look(source: Input) -> tuple[Input, InputFacts | InputError]:
        stamp = stamp_of(source.path) if is_local and source.kind == "parquet" else None
        try:
            opened = open_source(source, options)
            units = tuple(opened.units())
        except InputError as error:
            return source, error
        except MemoryError:
            raise TokbatchError("out of memory while looking into it", where=source.name) from None
        text_bytes = sum(unit.text_bytes for unit in units)
        return source, InputFacts(
            source, opened.size, opened.digest, rows_of(units), text_bytes, units, opened.schema, stamp
        )

    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as threads:
        return list(threads.map(look, inputs))


def _output_schema(transform: Transform, sink: Sink, facts: InputFacts, is_first: bool) -> pa.Schema:
    """Give the schema of an input's parts; the transform refuses a missing column or a wrong type.

    Where the first input lacks a column, the mistake is the config's, and its key is named first, as always then. Where
    another had it, this one does not fit.
    """
    try:
        return sink.part_schema(transform.output_schema(facts.schema))
    except InputError as error:
        if error.code != WRONG_COLUMN or not is_first:
            error.code = InputError.code
            raise located(error, facts.input.name) from None
        where, message = _dotted(error.where or ""), f"{error.message} in {facts.input.name}"
        raise InputError(message, where=where, hint=error.hint, code=WRONG_COLUMN) from None
