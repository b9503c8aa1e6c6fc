"""The command line: `tokbatch run`, `plan`, `verify`, `report`, `inspect`, `explain`, `count`.

Data goes to stdout, talk to stderr. Exit status: 0 done, 1 the job failed or something is wrong with what was checked,
2 bad usage or config, 130 interrupted. What the commands do stands elsewhere; `cli_text.py` has the texts of `explain`.
"""

from __future__ import annotations

import functools
import io
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tokbatch._version import __version__
from tokbatch.collector import without_collecting
from tokbatch.errors import NOT_THERE, WRONG_COLUMN, ConfigError, EngineWarning, SpecError, TokbatchError
from tokbatch.frontends.start import interrupt_when_told, leave_when_told

_PATH = click.Path(path_type=Path)
config_argument = click.argument("config", metavar="CONFIG", type=_PATH)
out_argument = click.argument("out", metavar="OUT", type=_PATH)
tokenizer_argument = click.argument("tokenizer", metavar="TOKENIZER")
set_option = click.option(
    "--set", "changes", metavar="A.B=C", multiple=True, help="Lay a value over the config; may be repeated."
)
engine_option = click.option(
    "--engine", metavar="ENGINE", default="auto", show_default=True, help="auto, native or reference."
)
no_special_tokens_option = click.option("--no-special-tokens", is_flag=True, help="Leave the template out.")


def main() -> None:
    """Run the command line; `start.py` calls it."""
    leave_when_told()
    # A terminal that knows only ASCII gets escapes: a text that cannot be shown is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="tokbatch")
    except BrokenPipeError:  # `tokbatch report | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _told(command: Callable[..., None]) -> Callable[..., None]:
    """Say errors as lines for people, without a traceback, and end with the right status."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kw: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", EngineWarning)
                warnings.showwarning = lambda message, *_, **__: _say(f"WARNING: {message}")
                command(*args, **kw)
            sys.stdout.flush()
        except ConfigError as error:
            # A line for each mistake, with the key before it: of a whole config, or the one that was found later.
            alone = error.problems == [error.message]
            lines = [f"{error.where}: {error.message}" if error.where else error.message] if alone else error.problems
            _say(*(f"error: {line}" for line in lines))
            if error.hint:
                _say(f"hint: {error.hint}")
            raise click.exceptions.Exit(2) from None
        except TokbatchError as error:
            _say(f"error: {error}")
            # No tokenizer, a column or a file that is not there: the command or the config asks for what cannot be.
            asked_wrong = isinstance(error, SpecError) or error.code in (WRONG_COLUMN, NOT_THERE)
            raise click.exceptions.Exit(2 if asked_wrong else 1) from None
        except MemoryError:
            _say("error: out of memory")
            raise click.exceptions.Exit(1) from None
        except KeyboardInterrupt:
            is_job = command.__name__ == "run"
            _say("interrupted" + ("; what is finished stays, --resume goes on" if is_job else ""))
            raise click.exceptions.Exit(130) from None

    return wrapped


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)


class _InOrder(click.Group):
    """Commands in the order of a job, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    invoke_without_command=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Say the version and the engine, and end.")
def app(version: bool) -> None:
    """Turn a corpus into token ids: exactly those of Hugging Face tokenizers, with a record of what they lose.

    \b
    A job, from its config to its report:
        tokbatch plan job.toml
        tokbatch run job.toml --set run.workers=8
        tokbatch report out/run1

    \b
    What a tokenizer does:
        tokbatch inspect tokenizer.json
        tokbatch explain tokenizer.json 'a <mask> b'

    \b
    Exit status:
        0    done
        1    it was begun and failed, or what was checked is not right
        2    a wrong command or config: also a file, column, split or tokenizer that is not there, or is none
        130  interrupted; a job goes on with run --resume

    \b
    Names of tokenizers are looked up by huggingface_hub, in its cache first:
        HF_HUB_OFFLINE=1  never ask the network
        HF_TOKEN          for repositories that are private or gated

    \b
    Completion of commands and options, in bash (zsh and fish alike):
        eval "$(_TOKBATCH_COMPLETE=bash_source tokbatch)"
    """
    if version:
        from tokbatch.engine.native import why_unavailable

        missing = why_unavailable()
        print(f"tokbatch {__version__}")
        print(f"native engine: {'installed' if missing is None else f'NOT INSTALLED: {missing}'}")
        raise click.exceptions.Exit()


@app.command()
@config_argument
@set_option
@click.option("--resume", is_flag=True, help="Go on where an earlier attempt stopped.")
@click.option("--overwrite", is_flag=True, help="Remove an earlier output first.")
@_told
def run(config: Path, changes: tuple[str, ...], resume: bool, overwrite: bool) -> None:
    """Run a job: encode, check and write a corpus.

    CONFIG is the job's TOML file. Parts, statistics and a manifest go to the config's output.path. A job that was
    killed goes on with --resume and ends with the same bytes.

    \b
        tokbatch run job.toml
        tokbatch run job.toml --set output.path=out/try --set run.workers=2
        tokbatch run job.toml --resume
    """
    from tokbatch.job.config import load_config
    from tokbatch.job.lean_arrow import import_lean_arrow

    if resume and overwrite:
        raise ConfigError("--resume and --overwrite exclude each other")
    loaded = load_config(config, changes)
    if loaded.input.dataset is None:
        import_lean_arrow()
    with without_collecting(for_good=True):
        from tokbatch.job.progress import (
            count,
            duration,
            left_out_of_rows,
            megabytes,
            progress_for_people,
            rate,
            skipped,
        )
        from tokbatch.job.run import run_job

    if resume and not loaded.output_path.exists():
        _say(f"nothing to resume: there is no {_shown(loaded.output_path)} yet; a new job begins")
    interrupt_when_told()
    result = run_job(loaded, resume=resume, overwrite=overwrite, progress=progress_for_people())
    stats, where = result.stats, loaded.output_path
    left_out = left_out_of_rows(stats.dropped_documents, stats.dropped_tokens)
    if result.already_done:
        _say(f"nothing left to do: {where} is complete{skipped(result.skipped)}{left_out}")
        print(where)
        return
    nulls = f"{stats.null_documents:,} null, " if stats.null_documents else ""
    took = f"{duration(result.seconds)}, {rate(result.text_bytes, result.seconds)}"
    if result.text_bytes < stats.bytes:
        took = f"; this time {megabytes(result.text_bytes)} in {took}"
    else:
        took = f" in {took}"
    tokens = count(stats.tokens, "token") + (" encoded" if left_out else "")
    _say(
        f"{count(stats.documents, 'document')}, {megabytes(stats.bytes)}, {tokens}{took}",
        *([f"{count(stats.written_tokens, 'token')} in the output{left_out}"] if left_out else []),
        f"{stats.exact_documents:,} exact, {stats.stripped_documents:,} stripped, "
        f"{stats.normalized_documents:,} normalized, {stats.lossy_documents:,} lossy, {nulls}"
        f"{stats.failed_documents:,} failed{skipped(result.skipped)}; see `tokbatch report {_shown(where)}`",
    )
    print(where)


@app.command()
@config_argument
@set_option
@click.option("--no-estimate", is_flag=True, help="Leave time and disk out: encode no sample.")
@_told
def plan(config: Path, changes: tuple[str, ...], no_estimate: bool) -> None:
    """Say what a job would do, without doing it: shards, time, disk.

    CONFIG is the job's TOML file. Time and disk are an estimate: some megabytes of the inputs are encoded, checked
    and written into memory.

    \b
        tokbatch plan job.toml
        tokbatch plan job.toml --no-estimate
    """
    from tokbatch.frontends.cli_text import render_plan
    from tokbatch.job.config import load_config
    from tokbatch.job.estimate import told_estimate
    from tokbatch.job.prepare import prepare_job

    job = prepare_job(load_config(config, changes))
    print(render_plan(job, None if no_estimate else told_estimate(job)))


@app.command()
@out_argument
@click.option(
    "--sample",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="Share of rows that are made anew.",
)
@_told
def verify(out: Path, sample: float) -> None:
    """Check a finished output from outside.

    OUT is the output folder of a finished job. What is checked: every part's digest, rows and tokens against the
    manifest; the inputs; the statistics; and a sample of rows, which is encoded again.

    \b
        tokbatch verify out/run1
        tokbatch verify out/run1 --sample 1
    """
    from tokbatch.job.progress import count, left_out_of_rows, skipped
    from tokbatch.job.verify import verify_output

    found = verify_output(out, sample)
    for problem in found.problems:
        print(problem)
    given_up = f", {found.quarantined_rows:,} of them given up" if found.quarantined_rows else ""
    left_out = left_out_of_rows(found.dropped_documents, found.dropped_tokens)
    tokens = f", {count(found.tokens, 'token')} in the output" if left_out else ""
    _say(
        f"{count(found.parts, 'part')}, {count(found.rows, 'row')}{given_up}{tokens}, {found.sampled_rows:,} made anew"
        f"{skipped(found.skipped)}{left_out}: {count(len(found.problems), 'problem')}"
    )
    if found.problems:
        raise click.exceptions.Exit(1)


@app.command()
@out_argument
@click.option("--json", "as_json", is_flag=True, help="The statistics as JSON.")
@click.option("--html", metavar="FILE", type=_PATH, help="Write a page with charts, which needs no other file.")
@_told
def report(out: Path, as_json: bool, html: Path | None) -> None:
    """Print the statistics of a finished job, or write them as a page.

    OUT is its output folder. What the ids can give back, file by file, what was lost, and to which token.

    \b
        tokbatch report out/run1
        tokbatch report out/run1 --json | jq .total.tokens
        tokbatch report out/run1 --html report.html
    """
    from tokbatch.job.html_report import render_html
    from tokbatch.job.manifest import read_manifest, read_stats
    from tokbatch.job.report import render_report
    from tokbatch.job.storage import told

    if html is not None:
        page = render_html(out)
        with told(html):
            html.write_text(page, encoding="utf-8", errors="backslashreplace")
        _say(f"written: {html}")
        if not as_json:
            return
    if not as_json:
        print(render_report(out), end="")
        return
    manifest, (files, total) = read_manifest(out), read_stats(out)
    head = {key: manifest[key] for key in ("tokbatch", "engine", "tokenizer", "run", "quarantine")}
    head["output"] = {
        "tokens": total.written_tokens,
        "dropped_documents": total.dropped_documents,
        "dropped_tokens": total.dropped_tokens,
    }
    stats = {"files": [{"file": name, **s.to_json()} for name, s in files], "total": total.to_json()}
    # JSON has escapes of its own for a terminal that does not know a character.
    only_ascii = (sys.stdout.encoding or "ascii").lower() not in ("utf-8", "utf8")
    print(json.dumps({**head, **stats}, ensure_ascii=only_ascii, indent=1))


@app.command()
@tokenizer_argument
@_told
def inspect(tokenizer: str) -> None:
    """Say what a tokenizer does, part by part.

    TOKENIZER is a tokenizer.json (or .json.gz, or its folder), or a name on the hub.

    \b
        tokbatch inspect tokenizer.json
        tokbatch inspect org/name
    """
    from tokbatch.frontends.cli_text import render_facts
    from tokbatch.spec.describe import describe

    loaded = _load(tokenizer, "auto")
    print(f"{loaded!r}\n")
    print(render_facts(describe(loaded.spec)))


@app.command()
@tokenizer_argument
@click.argument("text", metavar="TEXT")
@engine_option
@no_special_tokens_option
@click.option(
    "--against", metavar="OTHER", help="Another engine or tokenizer: name the first stage where the two differ."
)
@_told
def explain(tokenizer: str, text: str, engine: str, no_special_tokens: bool, against: str | None) -> None:
    """Show a text stage by stage, and back.

    TOKENIZER is a tokenizer.json (or .json.gz, or its folder), or a name on the hub; TEXT is the text, - reads it
    from stdin. Shown are added tokens, normalized text, pretokens, tokens, ids, and what decoding gives back. With
    --against, exit 1 where the other one makes something else of the text.

    \b
        tokbatch explain tokenizer.json 'a <mask> b'
        tokbatch explain org/name - < page.txt
        tokbatch explain tokenizer.json 'a text' --against reference
        tokbatch explain old/tokenizer.json 'a text' --against new/tokenizer.json
    """
    from tokbatch.engine import ENGINES
    from tokbatch.engine.compare import first_difference
    from tokbatch.frontends.cli_text import render_explanation

    given = sys.stdin.read() if text == "-" else text
    loaded = _load(tokenizer, engine)
    print(render_explanation(loaded, given, add_special_tokens=not no_special_tokens))
    if against is not None:
        other = loaded.with_options(engine=against) if against in ENGINES else _load(against, engine)
        traces = [side.engine.trace(given, not no_special_tokens) for side in (loaded, other)]
        difference = first_difference(*traces)
        print(f"against {against}  " + (f"differs in {difference}" if difference else "equal in every stage"))
        if difference:
            raise click.exceptions.Exit(1)


@app.command()
@tokenizer_argument
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option(
    "--text-column",
    "--column",
    metavar="NAME",
    default="text",
    show_default=True,
    help="The column of texts; dotted for a nested field.",
)
@engine_option
@no_special_tokens_option
@_told
def count(tokenizer: str, files: tuple[str, ...], text_column: str, engine: str, no_special_tokens: bool) -> None:
    """Count the tokens of files.

    TOKENIZER is a tokenizer.json (or .json.gz, or its folder), or a name on the hub. FILES are Parquet, Arrow, JSON
    lines or text: paths, globs, folders, URLs; folders of save_to_disk.

    \b
        tokbatch count tokenizer.json data/*.parquet
        tokbatch count org/name data/ --text-column body
    """
    from tokbatch.job.count import count_files

    loaded = _load(tokenizer, engine)
    documents = tokens = counted = 0
    for name, file_documents, file_tokens in count_files(loaded, files, text_column, not no_special_tokens):
        if not counted:
            print(f"{'tokens':>15}  {'documents':>12}  file")
        print(f"{file_tokens:>15,}  {file_documents:>12,}  {name}", flush=True)
        documents, tokens, counted = documents + file_documents, tokens + file_tokens, counted + 1
    if counted > 1:
        print(f"{tokens:>15,}  {documents:>12,}  total")


def _load(tokenizer: str, engine: str) -> Any:
    """Load a tokenizer from a path, or by its name on the hub where there is no such path."""
    from tokbatch.tokenizer import Tokenizer

    if engine not in ("auto", "native", "reference"):
        raise ConfigError(f'expected auto, native or reference, got "{engine}"', where="--engine")
    try:
        if os.path.exists(tokenizer) or tokenizer.endswith((".json", ".json.gz")):
            return Tokenizer.from_file(tokenizer, engine)
        return Tokenizer.from_pretrained(tokenizer, engine=engine)
    except SpecError as error:
        error.where = f"{tokenizer}: {error.where}" if error.where else tokenizer
        if tokenizer.endswith(".toml"):
            error.hint = "a tokenizer.json is wanted here, and this looks like the config of a job"
        raise


def _shown(path: Path) -> str:
    """Write a path the short way where it lies below the working folder."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    main()
