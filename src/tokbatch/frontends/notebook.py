"""A text stage by stage in a notebook: coloured tokens where HTML is shown, the text of `tokbatch explain` elsewhere.

    tb.explain(tok, "a <mask> b")

The HTML has no script and loads nothing; every text in it is escaped. What the stages are stands in `cli_text.py`.
"""

from __future__ import annotations

import html
from itertools import zip_longest
from typing import TYPE_CHECKING

from tokbatch.frontends.cli_text import render_explanation, render_verdict

if TYPE_CHECKING:
    from tokbatch.tokenizer import Tokenizer

# Backgrounds of neighbouring pretokens, readable below black text; special tokens are framed.
COLOURS = ("#cfe8ff", "#ffe2c4", "#d6f5d6", "#f3d9fa", "#fff3bf", "#d0f4f0")
BLANKS = {" ": "·", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽"}
MOST_TOKENS = 2000


class Explanation:
    """How one text is tokenized. `str` gives it as text, a notebook shows it coloured."""

    def __init__(self, tokenizer: Tokenizer, text: str, add_special_tokens: bool = True):
        self.tokenizer = tokenizer
        self.text = text
        self.add_special_tokens = add_special_tokens
        self.encoding = tokenizer.encode(text, add_special_tokens=add_special_tokens)

    def __str__(self) -> str:
        return render_explanation(self.tokenizer, self.text, self.add_special_tokens)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Give HTML for notebooks: the tokens as they lie in the text, then the stages."""
        rows = [("text", _shown(self.text, 2 * MOST_TOKENS)), ("tokens", self._tokens())]
        for stage in self.tokenizer.engine.trace(self.text, self.add_special_tokens):
            pieces = [
                _chip(piece or "", COLOURS[index % len(COLOURS)], "" if token_id is None else f"id {token_id}")
                for index, (piece, token_id) in enumerate(zip_longest(stage.pieces, stage.ids))
            ]
            rows.append((stage.name, _cut(pieces)))
        rows.append(("round trip", html.escape(render_verdict(self.tokenizer, self.text, self.add_special_tokens))))
        cells = "".join(
            f'<tr><th style="text-align:left;vertical-align:top;white-space:nowrap">{html.escape(name)}</th>'
            f'<td style="text-align:left;overflow-wrap:anywhere">{content}</td></tr>'
            for name, content in rows
        )
        return f"<div><code>{html.escape(repr(self.tokenizer))}</code><table>{cells}</table></div>"

    def _tokens(self) -> str:
        """Colour the tokens by the pretoken that they come from; the title of each has its id and its place."""
        encoding = self.encoding
        chips = []
        places = zip_longest(encoding.tokens, encoding.ids, encoding.offsets, encoding.word_ids)
        for token, token_id, offsets, word in places:
            start, end = offsets or (0, 0)
            colour = "#e9ecef" if word is None else COLOURS[word % len(COLOURS)]
            title = f"id {token_id}" + (f", characters {start} to {end}" if end > start else "")
            chips.append(_chip(token or "", colour, title, framed=word is None))
        return _cut(chips)


def explain(tokenizer: Tokenizer, text: str, add_special_tokens: bool = True) -> Explanation:
    """Show how a text is tokenized, stage by stage, and what its ids give back. For notebooks and for `print`.

    Raises `EncodeError`.
    """
    return Explanation(tokenizer, text, add_special_tokens)


def _chip(text: str, colour: str, title: str, framed: bool = False) -> str:
    frame = "1px solid #868e96" if framed else "1px solid transparent"
    style = f"background:{colour};color:#000;border:{frame};border-radius:3px;padding:0 2px;margin:0 1px;"
    style += "font-family:monospace;white-space:pre-wrap;display:inline-block"
    return f'<span style="{style}" title="{html.escape(title)}">{_shown(text)}</span>'


def _shown(text: str, most: int = 500) -> str:
    """Escape a text, with blanks that can be seen."""
    shown = html.escape("".join(BLANKS.get(c, c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text[:most]))
    return shown + (f" … {len(text) - most:,} characters more" if len(text) > most else "")


def _cut(chips: list[str]) -> str:
    more = len(chips) - MOST_TOKENS
    return "".join(chips[:MOST_TOKENS]) + (f" … {more:,} more" if more > 0 else "")
