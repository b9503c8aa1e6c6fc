"""Charts as inline SVG: bars, stacked bars and lines, drawn for one page that is read in light and in dark.

Only numbers and labels come in; every label is escaped. Colours are CSS variables of the page (`html_report.py`), so a
chart has no colour of its own. Nothing here knows what the numbers mean.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from html import escape

WIDTH = 760
LABELS = 244
ROW, BAR = 26, 16

Shown = Callable[[float], str]


def bars(rows: Sequence[tuple[str, float]], shown: Shown, colour: str = "c1") -> str:
    """Draw a horizontal bar a row, the value written at its end."""
    top = max((value for _, value in rows), default=0) or 1
    room = WIDTH - LABELS - 110
    parts = []
    for index, (label, value) in enumerate(rows):
        y = index * ROW
        width = max(value / top * room, 1 if value else 0)
        parts.append(_label(label, y))
        parts.append(_bar(LABELS, y, width, colour, f"{label}: {shown(value)}"))
        parts.append(f'<text class="value" x="{LABELS + width + 8:.1f}" y="{y + 17}">{escape(shown(value))}</text>')
    return _svg(len(rows) * ROW, parts)


def stacked(
    rows: Sequence[tuple[str, Sequence[float]]],
    names: Sequence[str],
    shown: Shown,
    colours: Sequence[int] = (1, 2, 3, 4),
) -> str:
    """Draw each row's shares of its own sum as one bar, with a legend. A row of nothing has an empty bar."""
    room = WIDTH - LABELS - 100
    parts, x = [], 0.0
    for index, name in enumerate(names):
        parts.append(f'<rect class="c{colours[index]}" x="{LABELS + x:.1f}" y="4" width="12" height="12" rx="2"/>')
        parts.append(f'<text x="{LABELS + x + 18:.1f}" y="15">{escape(name)}</text>')
        x += 34 + 7.5 * len(name)
    for number, (label, values) in enumerate(rows, 1):
        y, left, total = number * ROW, float(LABELS), sum(values)
        parts.append(_label(label, y))
        parts.append(f'<rect class="empty" x="{LABELS}" y="{y + 5}" width="{room}" height="{BAR}" rx="2"/>')
        for index, value in enumerate(values):
            width = value / total * room if total else 0
            if value:
                # What is there at all can be seen, however little it is.
                share = f"{label}: {names[index]} {shown(value)} ({100 * value / total:.2f} %)"
                parts.append(_bar(left, y, max(width - 1, 1.5), f"c{colours[index]}", share))
            left += width
        parts.append(f'<text class="value" x="{LABELS + room + 8}" y="{y + 17}">{escape(shown(total))}</text>')
    return _svg((len(rows) + 1) * ROW, parts)


def columns(values: Sequence[tuple[str, float]], shown: Shown, height: int = 170) -> str:
    """Draw a histogram: upright bars side by side, with their labels below."""
    top = max((value for _, value in values), default=0) or 1
    step = min(64.0, (WIDTH - 20) / max(1, len(values)))
    parts = [f'<line class="axis" x1="0" x2="{step * len(values) + 4:.1f}" y1="{height + 20}" y2="{height + 20}"/>']
    for index, (label, value) in enumerate(values):
        x, tall = index * step + 2, max(value / top * height, 1.5 if value else 0)
        middle = x + step / 2 - 2
        if value:
            title = f"<title>{escape(label)}: {escape(shown(value))}</title>"
            size = f'width="{step - 4:.1f}" height="{tall:.1f}"'
            parts.append(f'<rect class="c1" x="{x:.1f}" y="{height + 20 - tall:.1f}" {size} rx="2">{title}</rect>')
            place = f'x="{middle:.1f}" y="{height + 14 - tall:.1f}"'
            parts.append(f'<text class="small middle" {place}>{escape(shown(value))}</text>')
        parts.append(f'<text class="small middle" x="{middle:.1f}" y="{height + 36}">{escape(label)}</text>')
    return _svg(height + 44, parts)


def steps(
    series: Sequence[tuple[str, Sequence[tuple[float, float, float]]]], shown: Shown, clock: Shown, height: int = 180
) -> str:
    """Draw (begin, end, height) runs over time, a line a series; between runs a line has a gap."""
    end = max((run[1] for _, runs in series for run in runs), default=0) or 1
    top = _round_up(max((run[2] for _, runs in series for run in runs), default=0) or 1)
    left, right, base = 76, WIDTH - 16, height + 14
    scale_x, scale_y = (right - left) / end, height / top
    parts = []
    for i in range(5):
        y, x = base - height * i / 4, left + (right - left) * i / 4
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small end" x="{left - 8}" y="{y + 4:.1f}">{escape(shown(top * i / 4))}</text>')
        anchor = "small end" if i == 4 else "small middle"
        parts.append(f'<text class="{anchor}" x="{x:.1f}" y="{base + 18}">{escape(clock(end * i / 4))}</text>')
    for index, (name, runs) in enumerate(series):
        colour = index % 6 + 1
        path, before = [], None
        for begin, stop, value in runs:
            y = base - value * scale_y
            joins = before is not None and (begin - before) * scale_x < 4
            path.append(f"{'L' if joins else 'M'}{left + begin * scale_x:.1f} {y:.1f}H{left + stop * scale_x:.1f}")
            before = stop
        parts.append(f'<path class="line s{colour}" d="{"".join(path)}"><title>{escape(name)}</title></path>')
        if len(series) <= 6:
            x = left + index * 110
            parts.append(f'<rect class="c{colour}" x="{x}" y="{base + 32}" width="12" height="12" rx="2"/>')
            parts.append(f'<text class="small" x="{x + 18}" y="{base + 42}">{escape(name)}</text>')
    return _svg(base + (52 if len(series) <= 6 else 28), parts)


def _bar(x: float, y: float, width: float, colour: str, title: str) -> str:
    size = f'width="{width:.1f}" height="{BAR}"'
    return f'<rect class="{colour}" x="{x:.1f}" y="{y + 5}" {size} rx="2"><title>{escape(title)}</title></rect>'


def _label(label: str, y: float) -> str:
    short, kept = label, len(label)
    while _width(short) > LABELS - 16:
        kept -= 1
        short = f"{label[: kept * 2 // 5]}…{label[len(label) - kept * 3 // 5 :]}"
    return f'<text class="end" x="{LABELS - 10}" y="{y + 17}">{escape(short)}<title>{escape(label)}</title></text>'


def _width(text: str) -> float:
    """Estimate the pixels that a text takes; rather too many than too few."""
    return sum(14 if unicodedata.east_asian_width(c) in "WF" else 9.0 if c.isupper() else 7.4 for c in text)


def _round_up(value: float) -> float:
    """Give the next of 1, 2, 4, 8, ... times a power of ten: a scale that four lines divide well."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 8, 10) if step * power >= value)


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">' + "\n".join(parts) + "</svg>"
