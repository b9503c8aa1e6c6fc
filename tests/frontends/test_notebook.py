"""What a notebook shows of a text: well-formed, escaped, and true."""

import html.parser
import re

import pytest

import tokbatch as tb
from tokbatch import sample
from tokbatch.frontends import notebook


class Reader(html.parser.HTMLParser):
    """Checks that tags match, and keeps the text of table cells and the titles of tokens."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.titles = [], set(), [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        self.titles += [value for key, value in attributes if key == "title"]
        assert {key for key, _ in attributes} <= {"style", "title"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def tok(engine):
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine=engine)


@pytest.mark.parametrize(
    "text",
    ["a <mask> b", "", "<script>alert('x')</script>", '"><img src=x onerror=alert(1)>', "&lt;", "\x00\u202e\n\t日本"],
)
def test_a_text_is_shown_and_nothing_of_it_is_a_tag(tok, text):
    explanation = tb.explain(tok, text)
    shown = Reader(explanation._repr_html_())
    assert shown.tags <= {"div", "code", "table", "tr", "th", "td", "span"}
    rows = dict(shown.rows)
    encoding = tok.encode(text)
    tokens = "".join(encoding.tokens)
    assert rows["tokens"] == "".join(notebook.BLANKS.get(c, c) for c in tokens)
    ids = [int(re.match(r"id (\d+)", title)[1]) for title in shown.titles[: len(encoding.ids)]]
    assert ids == encoding.ids
    assert rows["round trip"].startswith(tok.verify_batch([text], tok.encode_batch([text]))[0].as_py()["verdict"])
    assert str(explanation) == repr(explanation)
    assert f"ids             {encoding.ids}" in str(explanation)


def test_special_tokens_can_be_left_out(tok):
    assert dict(Reader(tb.explain(tok, "a", add_special_tokens=False)._repr_html_()).rows)["tokens"] == "a"


def test_a_long_text_is_cut(tok):
    text = "word " * 50_000
    shown = tb.explain(tok, text)._repr_html_()
    assert len(shown) < 5_000_000
    assert re.search(r"… [\d,]+ more", shown)
    assert "characters more" in Reader(shown).rows[0][1]
