"""The statistics of a job as text for people. Numbers come from stats.json, nothing is counted here."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokbatch.batch.stats import Stats
from tokbatch.job.manifest import read_manifest, read_stats
from tokbatch.job.progress import count, duration, left_out_of_rows, megabytes
from tokbatch.job.text_table import number, render_table

_CONTROLS = {
    0x09: "TAB",
    0x0A: "LINE FEED",
    0x0B: "LINE TABULATION",
    0x0C: "FORM FEED",
    0x0D: "CARRIAGE RETURN",
    0x85: "NEXT LINE",
}
FILES_SHOWN = 10
ROWS_SHOWN = 10
Named = tuple[str, Stats]


def render_report(folder: Path | str) -> str:
    """Give the report of a finished job's output folder. Raises `InputError` where it is none."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    files, total = read_stats(folder)
    place, files = without_common_folder(files)
    rows: list[Named] = [*files, ("total", total)]
    lines = [*_head(folder, place, manifest, total), "", *_round_trip(rows), "", *_contents(rows)]
    lines += _packing(rows, packed_length(manifest))
    lines += _absorbed(files, total, "lstrip", "left") + _absorbed(files, total, "rstrip", "right")
    lines += _rows_to_look_at(files) + _what_happened(manifest)
    return "\n".join(lines) + "\n"


def without_common_folder(files: Sequence[Named]) -> tuple[str, list[Named]]:
    """Split off the folder that all files lie in; file names alone are easier to read."""
    folders = [name.split("/")[:-1] for name, _ in files]
    depth = 0
    while folders and all(len(f) > depth and f[depth] == folders[0][depth] for f in folders):
        depth += 1
    return "/".join(folders[0][:depth]) if folders else "", [(name.split("/", depth)[-1], s) for name, s in files]


def _head(folder: Path, place: str, manifest: Mapping[str, Any], total: Stats) -> list[str]:
    tokenizer, run = manifest["tokenizer"], manifest["run"]
    why = run.get("why_reference")
    name = tokenizer.get("file") or tokenizer.get("name")
    size = sum(part["bytes"] for part in manifest["parts"])
    parts = f"{count(len(manifest['parts']), 'part')}, {megabytes(size)}"
    inputs = count(len(manifest["inputs"]), "input") + (f" in {place}" if place else "")
    skipped = len(manifest["quarantine"]["files"])
    inputs += f", {skipped:,} SKIPPED" if skipped else ""
    left_out = left_out_of_rows(total.dropped_documents, total.dropped_tokens)
    tokens = f"{count(total.written_tokens, 'token')} in the output{left_out}; {total.tokens:,} encoded"
    per_token = f", {total.bytes / total.tokens:.2f} bytes a token" if total.tokens else ""
    return [
        os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else str(folder),
        f"  tokenizer   {name}  (sha256 {tokenizer['sha256'][:12]}, {tokenizer['vocab_size']:,} tokens)",
        f"  engine      {manifest['engine']}, tokbatch {manifest['tokbatch']}{f'  ({why})' if why else ''}",
        f"  texts       {count(total.documents, 'document')}, {megabytes(total.bytes)}; {inputs}",
        f"  ids         {tokens if left_out else count(total.tokens, 'token')}{per_token}; {parts}",
        f"  time        {duration(run['seconds'])} with {count(run['workers'], 'worker')}",
        *([f"  memory      {megabytes(peak)} at the most in a worker"] if (peak := _peak(run)) else []),
    ]


def _round_trip(rows: Sequence[Named]) -> list[str]:
    head = ["file", "documents", "tokens", "exact", "stripped", "normalized", "lossy", "docs", "chars", "docs", "chars"]
    table = [head]
    for name, s in rows:
        verdicts = (s.exact_documents, s.stripped_documents, s.normalized_documents, s.lossy_documents)
        absorbed = (s.lstrip_documents, s.lstrip_chars, s.rstrip_documents, s.rstrip_chars)
        table.append([name, *map(number, (s.documents, s.tokens, *verdicts, *absorbed))])
    groups = [("", 1), ("", 2), ("documents by round trip", 4), ("lost to lstrip", 2), ("lost to rstrip", 2)]
    lines = render_table(table, groups=groups)
    total = rows[-1][1]
    if total.null_documents:
        lines.append(f"{count(total.null_documents, 'null document')}, without a text to give back")
    if total.lossy_documents and total.unknown_tokens:
        lines.append(unknown_told(total, rows[:-1]))
    unchecked = total.documents - total.verified_documents - total.null_documents - total.failed_documents
    if unchecked > 0:
        lines.append(f"{unchecked:,} documents were not checked (check.round_trip)")
    return lines


def unknown_told(total: Stats, files: Sequence[Named]) -> str:
    """Say that unknown tokens stand in the ids, which is why documents are lossy."""
    having = sum(stats.unknown_tokens > 0 for _, stats in files)
    where = f" of {having:,} of {len(files):,} files" if len(files) > 1 else ""
    stand = "stands" if total.unknown_tokens == 1 else "stand"
    lossy, unknown = count(total.lossy_documents, "document"), count(total.unknown_tokens, "unknown token")
    return f"{lossy} lossy: {unknown} {stand} in the ids{where}, for text that the tokenizer has no token for"


def _contents(rows: Sequence[Named]) -> list[str]:
    head = ["file", "null", "empty", "failed", "truncated", "added", "special", "unknown", "bytes", "longest", "median"]
    table = [head]
    for name, s in rows:
        documents = (s.null_documents, s.empty_documents, s.failed_documents, s.truncated_documents)
        tokens = (s.added_tokens, s.special_tokens, s.unknown_tokens, s.byte_fallback_tokens)
        table.append(
            [name, *map(number, (*documents, *tokens, s.longest_document_tokens)), _median(s.document_lengths)]
        )
    return render_table(table, groups=[("", 1), ("documents", 4), ("tokens", 4), ("tokens a document", 2)])


def packed_length(manifest: Mapping[str, Any]) -> int:
    """Give the tokens of a packed row; 0 where nothing was packed."""
    packing = manifest["config"].get("output", {}).get("packing")
    return int(packing["length"]) if packing else 0


def padding_share(stats: Stats) -> str:
    """Write the share of packed rows that is padding."""
    places = stats.packed_tokens + stats.padding_tokens
    return f"{100 * stats.padding_tokens / places:.2f} %" if places else number(0)


def _packing(rows: Sequence[Named], length: int) -> list[str]:
    """Say what packing made of the documents, and what it wasted."""
    if not length:
        return []
    table = [["file", "rows", "tokens", "padding", "wasted", "cut", "dropped", "tokens dropped"]]
    for name, s in rows:
        numbers = (s.packed_rows, s.packed_tokens, s.padding_tokens)
        documents = (s.cut_documents, s.dropped_documents, s.dropped_tokens)
        table.append([name, *map(number, numbers), padding_share(s), *map(number, documents)])
    groups = [("", 1), (f"packed into rows of {length:,} tokens", 4), ("documents", 2), ("", 1)]
    return ["", *render_table(table, groups=groups)]


def _median(lengths: Mapping[int, int]) -> str:
    """Give the bucket of the histogram that holds the document in the middle."""
    middle, seen = sum(lengths.values()) / 2, 0
    for bound in sorted(lengths):
        seen += lengths[bound]
        if seen >= middle:
            return f"{bound:,}" if bound < 2 else f"{bound:,}–{2 * bound - 1:,}"
    return number(0)


def _absorbed(files: Sequence[Named], total: Stats, strip: str, side: str) -> list[str]:
    """Say which tokens took which whitespace along: the whole corpus, then file by file, the worst first."""
    if not getattr(total, f"{strip}_documents"):
        return ["", f"No whitespace was lost to {strip}."]
    having = [named for named in files if getattr(named[1], f"{strip}_documents")]
    having.sort(key=lambda named: -getattr(named[1], f"{strip}_chars"))
    shown = [*([("all files", total)] if len(having) > 1 else []), *having[:FILES_SHOWN]]
    lines = [
        "",
        f"Whitespace lost to {strip}: added tokens absorbed it to their {side}, and decoding does not give it back",
    ]
    for name, stats in shown:
        documents, chars = getattr(stats, f"{strip}_documents"), getattr(stats, f"{strip}_chars")
        lines += ["", f"  {name}: {count(chars, 'character')} in {count(documents, 'document')}"]
        table = [["", "documents", "characters"]]
        for kind, label in (("token", visible), ("whitespace", whitespace_label)):
            by_documents = getattr(stats, f"{strip}_documents_by_{kind}")
            by_chars = getattr(stats, f"{strip}_chars_by_{kind}")
            for key in sorted(by_chars, key=lambda key: (-by_chars[key], key)):
                table.append([f"{kind:10}  {label(key)}", number(by_documents.get(key, 0)), number(by_chars[key])])
        lines += [f"    {line}" for line in _without_rule(render_table(table))]
        first = getattr(stats, f"{strip}_first_rows")
        if first:
            lines.append(f"    first rows  {', '.join(map(str, first))}")
    if len(having) > FILES_SHOWN:
        lines += ["", f"  and {len(having) - FILES_SHOWN:,} more files: see stats.json"]
    return lines


def _without_rule(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def visible(content: str) -> str:
    """Write a name so that all of it can be seen, blanks at its ends and controls too."""
    return content if content.isprintable() and content.strip() == content else ascii(content)


def whitespace_label(name: str) -> str:
    """Write a whitespace character of the statistics with its name: ``"U+00A0 NO-BREAK SPACE"``."""
    code = int(name[2:], 16)
    return f"{name} {_CONTROLS.get(code) or unicodedata.name(chr(code), '')}".rstrip()


def _rows_to_look_at(files: Sequence[Named]) -> list[str]:
    lines: list[str] = []
    for name, s in files:
        for what in ("lossy", "failed", "truncated"):
            first = getattr(s, f"{what}_first_rows")
            if first:
                lines.append(f"  {name}: {what} at rows {', '.join(map(str, first))}{_more(s, what, first)}")
    return ["", "Rows to look at", *lines] if lines else []


def _more(stats: Stats, what: str, first: Sequence[int]) -> str:
    more = getattr(stats, f"{what}_documents") - len(first)
    return f" and {more:,} more" if more > 0 else ""


def _what_happened(manifest: Mapping[str, Any]) -> list[str]:
    quarantine = manifest["quarantine"]
    lines = [f"  skipped {entry['input']}: {entry['reason']}" for entry in quarantine["files"]]
    rows = quarantine["rows"]
    lines += [f"  null for {entry['input']}, row {entry['row']}: {entry['reason']}" for entry in rows[:ROWS_SHOWN]]
    if len(rows) > ROWS_SHOWN:
        lines.append(f"  and {len(rows) - ROWS_SHOWN:,} more rows: see the quarantine in manifest.json")
    retries = manifest["run"]["retries"]
    lines += [f"  done again: {entry['input']}, {entry['rows']}: {entry['reason']}" for entry in retries]
    return ["", "What happened on the way", *lines] if lines else []


def _peak(run: Mapping[str, Any]) -> int:
    return int(run.get("peak_memory", {}).get("worker", 0))
