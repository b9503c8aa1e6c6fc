"""The report of a job as one HTML page that needs nothing else: no script, no network, no file beside it.

Names of files, tokens and reasons come from the corpus and are escaped, and what cannot be seen in them is written out.
The text report (`report.py`) has the same numbers; what is here beside them are the charts (`svg.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tokbatch.batch.stats import Stats
from tokbatch.job.manifest import read_manifest, read_stats
from tokbatch.job.progress import count, duration, megabytes
from tokbatch.job.report import (
    ROWS_SHOWN,
    Named,
    packed_length,
    padding_share,
    unknown_told,
    visible,
    whitespace_label,
    without_common_folder,
)
from tokbatch.job.svg import bars, columns, stacked, steps

FILES_SHOWN = 40
KEYS_SHOWN = 15

_STYLE = """
:root { color-scheme: light dark; --bg: #fcfcfb; --fg: #1b1b1a; --soft: #6a6a66; --line: #dededa; --card: #f3f3f0;
  --c1: #2f6fb2; --c2: #e0a030; --c3: #6b9e78; --c4: #c8452f; --c5: #8a63b0; --c6: #4aa3a8; }
@media (prefers-color-scheme: dark) { :root { --bg: #161617; --fg: #e9e9e6; --soft: #9b9b96; --line: #37373a;
  --card: #202023; --c1: #6ba6e8; --c2: #e8b65a; --c3: #86bf95; --c4: #ee7a64; --c5: #b797da; --c6: #6fc7cc; } }
body { background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  margin: 0 auto; max-width: 860px; padding: 32px 20px 64px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 18px; margin: 40px 0 4px; }
p.note { color: var(--soft); margin: 0 0 12px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 16px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; margin: 24px 0 0; }
.tile { background: var(--card); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 20px; font-weight: 600; } .tile span { color: var(--soft); font-size: 13px; }
svg { display: block; width: 100%; height: auto; margin: 8px 0; }
svg text { fill: var(--fg); font-size: 13px; } svg text.value, svg text.small { fill: var(--soft); }
svg text.small { font-size: 11px; } svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
.c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); } .c4 { fill: var(--c4); }
.c5 { fill: var(--c5); } .c6 { fill: var(--c6); } .empty { fill: var(--card); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); }
.s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); }
.axis, .grid { stroke: var(--line); stroke-width: 1; }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: 4px 6px; text-align: right; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child, td.text { text-align: left; }
td:first-child, td.text { overflow-wrap: anywhere; } .files td:first-child { min-width: 180px; }
tr.total td { font-weight: 600; border-bottom: 0; }
.scroll { overflow-x: auto; } code { background: var(--card); border-radius: 4px; padding: 0 4px; }
"""


def render_html(folder: Path | str) -> str:
    """Give the page of a finished job's output folder. Raises `InputError` where it is none."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    files, total = read_stats(folder)
    place, files = without_common_folder(files)
    shown = sorted(files, key=lambda named: -named[1].bytes)[:FILES_SHOWN] if len(files) > FILES_SHOWN else files
    left_out = len(files) - len(shown)
    body = [
        f"<h1>{_text(folder.name)}</h1>",
        _facts(manifest, place),
        _tiles(manifest, total),
        _verdicts(shown, total, left_out),
        _lost(total, "lstrip", "left"),
        _lost(total, "rstrip", "right"),
        _lengths(total),
        _density(shown, left_out),
        _packing(shown, total, packed_length(manifest), left_out),
        _throughput(manifest["run"].get("timeline", ())),
        _table(shown, total, left_out),
        _left_out(manifest),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(folder.name)} · tokbatch</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def _text(text: Any) -> str:
    return escape(visible(str(text)))


def _section(title: str, note: str, content: str) -> str:
    return f'<h2>{escape(title)}</h2>\n<p class="note">{escape(note)}</p>\n{content}'


def _facts(manifest: Mapping[str, Any], place: str) -> str:
    tokenizer, run = manifest["tokenizer"], manifest["run"]
    name = tokenizer.get("file") or tokenizer.get("name")
    facts = [
        ("tokenizer", f"{name} (sha256 {tokenizer['sha256'][:12]}, {tokenizer['vocab_size']:,} tokens)"),
        ("engine", f"{manifest['engine']}, tokbatch {manifest['tokbatch']}"),
        ("inputs", count(len(manifest["inputs"]), "input") + (f" in {place}" if place else "")),
        ("run", f"{run.get('started', '')}, {duration(run['seconds'])} with {count(run['workers'], 'worker')}"),
    ]
    peak = run.get("peak_memory", {}).get("worker")
    if peak:
        facts.append(("memory", f"{megabytes(peak)} at the most in a worker"))
    return "<dl>" + "".join(f"<dt>{key}</dt><dd>{_text(value)}</dd>" for key, value in facts) + "</dl>"


def _tiles(manifest: Mapping[str, Any], total: Stats) -> str:
    size = sum(part["bytes"] for part in manifest["parts"])
    tiles = [
        (f"{total.documents:,}", "document" if total.documents == 1 else "documents"),
        (megabytes(total.bytes), "of text"),
        (
            f"{total.written_tokens:,}",
            ("token" if total.written_tokens == 1 else "tokens") + (" in the output" if total.dropped_tokens else ""),
        ),
        *_left_out_of_rows(total),
        (f"{total.bytes / total.tokens:.2f}" if total.tokens else "–", "bytes a token"),
        (megabytes(size), f"in {count(len(manifest['parts']), 'part')}"),
    ]
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{b}</b><span>{s}</span></div>' for b, s in tiles)
        + "</div>"
    )


def _left_out_of_rows(total: Stats) -> list[tuple[str, str]]:
    """Give the tile of what packing left out, where it did."""
    if total.dropped_documents:
        documents = "document" if total.dropped_documents == 1 else "documents"
        return [(f"{total.dropped_documents:,}", f"{documents} DROPPED ({count(total.dropped_tokens, 'token')})")]
    tokens = "token" if total.dropped_tokens == 1 else "tokens"
    return [(f"{total.dropped_tokens:,}", f"{tokens} CUT OFF from the ends of documents")] * bool(total.dropped_tokens)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _verdicts(files: Sequence[Named], total: Stats, left_out: int) -> str:
    if not total.verified_documents:
        return _section("Round trip", "No document was checked (check.round_trip).", "")
    rows = [
        (visible(name), (s.exact_documents, s.stripped_documents, s.normalized_documents, s.lossy_documents))
        for name, s in [("all files", total), *(files if len(files) > 1 else [])]
    ]
    names = ("exact", "stripped", "normalized", "lossy")
    note = "Documents by what decoding their ids gives back." + _more(left_out)
    if total.lossy_documents and total.unknown_tokens:
        note += f" {unknown_told(total, () if left_out else files)}."
    if total.null_documents:
        note += f" {count(total.null_documents, 'null document')}, without a text, stand in none of the bars."
    return _section("Round trip", note, stacked(rows, names, _number))


def _more(left_out: int) -> str:
    return f" The {FILES_SHOWN} largest files; {left_out:,} more are in stats.json." if left_out else ""


def _lost(total: Stats, strip: str, side: str) -> str:
    by_token, by_blank = getattr(total, f"{strip}_chars_by_token"), getattr(total, f"{strip}_chars_by_whitespace")
    if not by_token:
        return ""
    documents, chars = getattr(total, f"{strip}_documents"), getattr(total, f"{strip}_chars")
    note = (
        f"Added tokens with {strip} absorbed {count(chars, 'character')} to their {side}, "
        f"in {count(documents, 'document')}; decoding does not give them back."
    )
    charts = []
    for counts, label in ((by_token, visible), (by_blank, whitespace_label)):
        rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        shown = [(label(key), value) for key, value in rows[:KEYS_SHOWN]]
        charts.append(bars(shown, _number, "c2"))
        if len(rows) > KEYS_SHOWN:
            rest = count(sum(value for _, value in rows[KEYS_SHOWN:]), "character")
            charts.append(f'<p class="note">and {len(rows) - KEYS_SHOWN:,} others with {rest}</p>')
    return _section(f"Whitespace lost to {strip}", note, "\n".join(charts))


def _lengths(total: Stats) -> str:
    lengths = total.document_lengths
    if not lengths:
        return ""
    bounds = [0] if 0 in lengths else []
    bound, last = max(1, min((b for b in lengths if b), default=1)), max(lengths)
    while bound <= last:
        bounds.append(bound)
        bound *= 2
    values = [(_short(b), lengths.get(b, 0)) for b in bounds]
    note = "Documents by their number of tokens, in powers of two: the label is the least of a column."
    return _section("Document lengths", note, columns(values, _short))


def _short(value: float) -> str:
    """Write a count in few characters: 12.3k."""
    for unit in ("", "k", "M", "G"):
        if value < 1000:
            return f"{value:.0f}{unit}" if value == int(value) or value >= 100 else f"{value:.1f}{unit}"
        value = value / 1024 if value == int(value) and int(value) % 1024 == 0 else value / 1000
    return f"{value:,.0f}T"


def _density(files: Sequence[Named], left_out: int) -> str:
    rows = [(visible(name), s.tokens / s.bytes) for name, s in files if s.bytes and s.tokens]
    if not rows:
        return ""
    note = "More tokens a byte mean that the tokenizer knows this kind of text less well." + _more(left_out)
    return _section("Tokens a byte, by file", note, bars(rows, lambda value: f"{value:.3f}"))


def _packing(files: Sequence[Named], total: Stats, length: int, left_out: int) -> str:
    if not length:
        return ""
    note = (
        f"{count(total.packed_rows, 'row')} of {length:,} tokens: {padding_share(total)} of their places is padding; "
        f"{count(total.cut_documents, 'document')} cut, {total.dropped_documents:,} dropped, "
        f"{count(total.dropped_tokens, 'token')} in no row."
    )
    rows = [
        (visible(name), (s.packed_tokens, s.padding_tokens, s.dropped_tokens))
        for name, s in [("all files", total), *(files if len(files) > 1 else [])]
    ]
    chart = stacked(rows, ("tokens", "padding", "dropped"), _number, (1, 2, 4))
    return _section("Packed rows", note + _more(left_out), chart)


def _throughput(timeline: Sequence[Mapping[str, Any]]) -> str:
    """Show each worker's shards as steps. What was done by an earlier attempt is there too, at its own time."""
    runs = [run for run in timeline if run["seconds"] > 0]
    if not runs:
        return ""
    begin = min(run["started"] for run in runs)
    by_worker: dict[str, list[tuple[float, float, float]]] = {}
    for run in sorted(runs, key=lambda run: run["started"]):
        start = run["started"] - begin
        by_worker.setdefault(run["worker"], []).append(
            (start, start + run["seconds"], run["text_bytes"] / run["seconds"])
        )
    series = [(f"worker {number}", steps_) for number, steps_ in enumerate(by_worker.values(), 1)]
    note = "Text encoded, checked and written a second by each worker, shard by shard."
    end = max(run["started"] + run["seconds"] for run in runs) - begin
    decimals = 0 if end >= 20 else 1 if end >= 2 else 2

    def clock(seconds: float) -> str:
        return duration(seconds) if end >= 60 else f"{seconds:.{decimals}f} s"

    def speed(value: float) -> str:
        return f"{megabytes(value)}/s".replace(".0 ", " ") if value else "0"

    chart = steps(series, speed, clock)
    return _section("Throughput", note, chart)


def _table(files: Sequence[Named], total: Stats, left_out: int) -> str:
    head = ("file", "documents", "null", "failed", "tokens", "unknown", "exact", "stripped", "normalized", "lossy")
    rows = []
    for name, s in [*files, ("total", total)]:
        numbers = (
            *(s.documents, s.null_documents, s.failed_documents, s.tokens, s.unknown_tokens),
            *(s.exact_documents, s.stripped_documents, s.normalized_documents, s.lossy_documents),
        )
        cells = f"<td>{_text(name)}</td>" + "".join(f"<td>{n:,}</td>" if n else "<td>·</td>" for n in numbers)
        rows.append(f"<tr class='total'>{cells}</tr>" if s is total else f"<tr>{cells}</tr>")
    titles = "".join(f"<th>{title}</th>" for title in head)
    table = f'<div class="scroll"><table class="files"><tr>{titles}</tr>{"".join(rows)}</table></div>'
    return _section("Files", "All numbers are in stats.json." + _more(left_out), table)


def _left_out(manifest: Mapping[str, Any]) -> str:
    quarantine, retries = manifest["quarantine"], manifest["run"]["retries"]
    lines = [(f"{entry['input']}", "left out", entry["reason"]) for entry in quarantine["files"]]
    rows = quarantine["rows"]
    lines += [(f"{e['input']}, row {e['row']}", "null", e["reason"]) for e in rows[: 5 * ROWS_SHOWN]]
    if len(rows) > 5 * ROWS_SHOWN:
        lines.append((f"{len(rows) - 5 * ROWS_SHOWN:,} more rows", "null", "see the quarantine in manifest.json"))
    lines += [(f"{e['input']}, {e['rows']}", "done again", e["reason"]) for e in retries[: 5 * ROWS_SHOWN]]
    if not lines:
        return ""
    cells = "".join(
        f'<tr><td>{_text(place)}</td><td class="text">{what}</td><td class="text">{_text(reason)}</td></tr>'
        for place, what, reason in lines
    )
    return _section("What happened on the way", "Left out under the policy, and done again.", f"<table>{cells}</table>")
