"""What `plan`, `inspect` and `explain` print."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tokbatch.job.estimate import Estimate
from tokbatch.job.prepare import Job, worker_count
from tokbatch.job.progress import count, duration, megabytes, rate
from tokbatch.job.text_table import number, render_table

if TYPE_CHECKING:
    from tokbatch.engine.encoding import Encoding
    from tokbatch.spec.describe import Fact
    from tokbatch.tokenizer import Tokenizer

WIDTH = 100


def render_plan(job: Job, estimate: Estimate | str | None = None) -> str:
    """Give the plan of a job as text, with an estimate, or the reason why there is none."""
    table = [["input", "documents", "in the file", "row groups", "shards"]]
    for index, facts in enumerate(job.inputs):
        shards = sum(shard.input == index for shard in job.shards)
        sizes = (megabytes(facts.text_bytes), number(len(facts.units)), number(shards))
        table.append([facts.input.name, number(facts.rows), *sizes])
    rows, size = sum(f.rows for f in job.inputs), sum(f.text_bytes for f in job.inputs)
    groups = sum(len(f.units) for f in job.inputs)
    table.append(["total", number(rows), megabytes(size), number(groups), number(len(job.shards))])
    columns = ", ".join(f"{field.name}: {field.type}" for field in job.schema)
    largest = max((shard.text_bytes for shard in job.shards), default=0)
    why = job.tokenizer.why_reference
    parts = count(len(job.shards), "part") + (", each" if len(job.shards) > 1 else "")
    lines = [
        *render_table(table),
        "",
        f"tokenizer   {job.tokenizer!r}, sha256 {job.identity['tokenizer_sha256'][:12]}",
        *([] if why is None else [f"WARNING     {why}"]),
        f"output      {job.config.output_path}, {parts} from up to {megabytes(largest)}",
        f"columns     {columns}",
        f"workers     {_workers(job)}",
        *_estimated(job, estimate),
        "bytes       as they stand in the files (Parquet: the column's pages, uncompressed; lines: all of them);",
        "            statistics and report count those of the documents themselves",
    ]
    lines += [f"skipped     {name}: {reason}" for name, reason in job.skipped]
    lines += [f"repeated    {name} is named twice and taken once" for name in job.repeated]
    return "\n".join(lines)


def _estimated(job: Job, estimate: Estimate | str | None) -> list[str]:
    if estimate is None:
        return []
    if isinstance(estimate, str):
        return [f"estimate    none: {estimate}"]
    workers = job.config.run.workers if job.config.run.engine != "local" else worker_count(job.config, len(job.shards))
    work = f"{duration(estimate.seconds)} of work"
    if workers > 1:
        work += f", {duration(estimate.seconds / workers)} for {workers} workers"
    disk, free = megabytes(estimate.disk_bytes), megabytes(estimate.free_bytes)
    measured = f"{megabytes(estimate.sample_bytes)} of the documents"
    speed = f"{rate(estimate.sample_bytes, estimate.sample_seconds)} a worker"
    lines = [
        f"estimate    {work}; {disk} on the disk, where {free} are free; {megabytes(estimate.text_bytes)} of documents",
        f"            by {measured}, measured now: {speed}; with other texts or another load it is another",
    ]
    if estimate.disk_bytes > estimate.free_bytes:
        lines.append("WARNING     the disk may be too small for that")
    return lines


def _workers(job: Job) -> str:
    """Say how many workers there would be; how large a cluster is, is not asked for a plan."""
    if job.config.run.engine == "local":
        return str(worker_count(job.config, len(job.shards)))
    return f"{job.config.run.workers or 'one a core'}, on a cluster ({job.config.run.engine})"


def render_facts(facts: Sequence[Fact]) -> str:
    """Give the facts about a tokenizer, section by section."""
    width = max((len(fact.name) for fact in facts), default=0)
    lines: list[str] = []
    section = None
    for fact in facts:
        if fact.section != section:
            section = fact.section
            lines += ["", section] if lines else [section]
        note = f"   ({fact.note})" if fact.note else ""
        lines.append(f"  {fact.name.ljust(width)}  {fact.value}{note}".rstrip())
    return "\n".join(lines)


def render_explanation(tokenizer: Tokenizer, text: str, add_special_tokens: bool = True) -> str:
    """Show one text stage by stage, and what its ids give back."""
    encoding = tokenizer.encode(text, add_special_tokens=add_special_tokens)
    lines = [f"{tokenizer!r}", "", f"text            {_quoted(text)}"]
    for stage in tokenizer.engine.trace(text, add_special_tokens):
        pieces = [
            _quoted(piece or "") + ("" if token_id is None else f"={token_id}")
            for piece, token_id in zip_longest(stage.pieces, stage.ids)
        ]
        lines += _wrapped(stage.name, pieces)
    lines += ["", *_tokens(encoding, text), ""]
    lines.append(f"ids             {encoding.ids}")
    plain = tokenizer.encode(text, add_special_tokens=False).ids
    kept, dropped = tokenizer.decode(plain, skip_special_tokens=False), tokenizer.decode(encoding.ids)
    lines.append(f"decoded         {_quoted(kept)}, the text's own special tokens kept")
    lines.append(f"                {_quoted(dropped)}, all special tokens left out")
    lines.append(f"round trip      {render_verdict(tokenizer, text, add_special_tokens)}")
    return "\n".join(lines)


def _tokens(encoding: Encoding, text: str) -> list[str]:
    table = [["token", "of the text", "id", "from", "to"]]
    # A special token of a template may have more ids than tokens, or fewer.
    for token, token_id, offsets in zip_longest(encoding.tokens, encoding.ids, encoding.offsets):
        start, end = offsets or (0, 0)
        covered = _quoted(text[start:end]) if end > start else ""
        shown = "" if token_id is None else str(token_id)
        table.append(["" if token is None else _quoted(token), covered, shown, str(start), str(end)])
    return render_table(table, left=2)


def render_verdict(tokenizer: Tokenizer, text: str, add_special_tokens: bool) -> str:
    """Say what the round trip gives, in words."""
    ids = tokenizer.encode_batch([text], add_special_tokens)
    record = tokenizer.verify_batch([text], ids, add_special_tokens)[0].as_py()
    words = {
        "exact": "exact: the ids give the text back",
        "stripped": "stripped: all that is lost is whitespace that added tokens absorbed",
        "normalized": "normalized: the difference is the normalizer's, the pre-tokenizer's or the decoder's doing",
        "lossy": "lossy: the ids do not give the text back"
        + (", for it has unknown tokens" if record["unk_tokens"] else ", and no rule explains it"),
    }
    losses = [
        f"{record[name]} {what if record[name] > 1 else what[:-1]}{where}"
        for name, what, where in (
            ("lstrip_chars", "characters", " absorbed to the left of added tokens"),
            ("rstrip_chars", "characters", " absorbed to the right of added tokens"),
            ("unk_tokens", "unknown tokens", ""),
        )
        if record[name]
    ]
    return words[record["verdict"]] + (f" ({', '.join(losses)})" if losses else "")


def _quoted(text: str) -> str:
    """Write a text so that every blank of it can be seen."""
    shown = "".join(c if c.isprintable() and (c == " " or not c.isspace()) else _escaped(c) for c in text)
    return f"'{shown}'"


def _escaped(character: str) -> str:
    return ascii(character)[1:-1]


def _wrapped(name: str, pieces: Sequence[str]) -> list[str]:
    lines, line = [], f"{name:<15}"
    for piece in pieces:
        if cell_len(line) + cell_len(piece) + 1 > WIDTH and len(line) > 15:
            lines.append(line)
            line = " " * 15
        line += f" {piece}"
    return [*lines, line]
