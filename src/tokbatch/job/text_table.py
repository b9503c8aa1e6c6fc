"""Aligned tables in plain text, for reports and plans. A wide character (CJK) takes two places, as in terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

NOTHING = "·"


def number(value: int) -> str:
    """Write a count; a zero as a dot, so that what is there stands out."""
    return f"{value:,}" if value else NOTHING


def render_table(rows: Sequence[Sequence[str]], *, left: int = 1, groups: Sequence[tuple[str, int]] = ()) -> list[str]:
    """Align rows (the first is the header, the last one a total when it starts with "total").

    The first `left` columns are set left, the others right. `groups` puts titles over runs of columns: (title, how
    many columns), from the first column on; an empty title leaves the place free.
    """
    widths = [max(cell_len(row[index]) for row in rows) for index in range(len(rows[0]))]
    gaps = _gaps(len(widths), groups)
    lines = [_line(row, widths, gaps, left) for row in rows]
    rule = "─" * max(map(cell_len, lines))
    body = [lines[0], rule, *lines[1:]]
    if rows[-1][0] == "total" and len(rows) > 2:
        body.insert(-1, rule)
    return [*_titles(groups, widths, gaps), *body]


def _gaps(columns: int, groups: Sequence[tuple[str, int]]) -> list[int]:
    """Give the blanks before each column: more where a group begins."""
    begins, index = set(), 0
    for _, count in groups:
        begins.add(index)
        index += count
    return [0 if i == 0 else 4 if i in begins else 2 for i in range(columns)]


def _line(row: Sequence[str], widths: Sequence[int], gaps: Sequence[int], left: int) -> str:
    cells = [
        " " * gap + (cell + free if index < left else free + cell)
        for index, (cell, free, gap) in enumerate(zip(row, _free(row, widths), gaps, strict=True))
    ]
    return "".join(cells).rstrip()


def _free(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Give the blanks that fill each cell up to the width of its column."""
    return [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]


def _titles(groups: Sequence[tuple[str, int]], widths: Sequence[int], gaps: Sequence[int]) -> list[str]:
    if not groups:
        return []
    line, index = "", 0
    for title, count in groups:
        span = sum(widths[index : index + count]) + sum(gaps[index + 1 : index + count])
        line += " " * gaps[index] + title.rjust(span)
        index += count
    return [line.rstrip()]
