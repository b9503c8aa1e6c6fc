import html.parser
import json
import re

import pytest

from reports import absorbed, output
from tokbatch.batch.stats import Stats
from tokbatch.job.html_report import FILES_SHOWN, render_html
from tokbatch.job.svg import bars, columns, stacked, steps

HOSTILE = "<script>alert('x')</script>&amp;\"\u202e\n.parquet"
STATS = Stats(
    documents=9,
    bytes=100,
    tokens=20,
    verified_documents=9,
    exact_documents=6,
    stripped_documents=2,
    lossy_documents=1,
    document_lengths={0: 1, 1: 3, 8: 5},
)


class Tags(html.parser.HTMLParser):
    """Collects tags, what they refer to, and the text; fails on what is not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], [], [], ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for key, value in attributes if key in ("href", "src", "srcset", "action")]
        assert not [key for key, _ in attributes if key.startswith("on")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    timeline = [
        {"input": "a", "worker": f"h:{i % 2}", "started": 100.0 + i, "seconds": 0.9, "text_bytes": 10_000 * i}
        for i in range(6)
    ]
    output(tmp_path, [("a.parquet", STATS), ("b.parquet", absorbed(8, 4, (2, 33)))], timeline=timeline)
    page = Tags(render_html(tmp_path))
    assert page.links == []
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert page.tags.count("svg") == 6
    for title in (
        "Round trip",
        "Whitespace lost to lstrip",
        "Document lengths",
        "Tokens a byte",
        "Throughput",
        "Files",
    ):
        assert title in page.text
    assert "U+000A LINE FEED" in page.text
    assert "worker 2" in page.text


def test_hostile_names_are_text(tmp_path):
    files = [(HOSTILE, STATS)]
    rows = [{"input": HOSTILE, "row": 3, "reason": HOSTILE}]
    output(tmp_path, files, skipped=[{"input": HOSTILE, "reason": HOSTILE}], rows=rows)
    stats = json.loads((tmp_path / "stats.json").read_text())
    token = "<b onclick=1>\u0007</b>"
    for record in (stats["total"], stats["files"][0]):
        record["lstrip_documents"], record["lstrip_chars"] = 1, 5
        record["lstrip_chars_by_token"] = {token: 5}
        record["lstrip_chars_by_whitespace"] = {"U+0020": 5}
    (tmp_path / "stats.json").write_text(json.dumps(stats))
    content = render_html(tmp_path)
    page = Tags(content)
    assert not {"script", "b onclick"} & set(page.tags)
    assert "<script>alert('x')" in page.text, "it is shown, as text"
    assert "\u202e" not in content, "what turns the text around is written out"
    assert "\\u202e" in page.text
    assert "\u0007" not in content


def test_a_corpus_of_many_files_or_of_nothing(tmp_path):
    many = [(f"f{i:03}.parquet", Stats(documents=1, bytes=i + 1, tokens=1)) for i in range(FILES_SHOWN + 7)]
    output(tmp_path / "many", many)
    page = Tags(render_html(tmp_path / "many"))
    assert "f046.parquet" in page.text
    assert "f000.parquet" not in page.text
    assert "7 more are in stats.json" in page.text
    output(tmp_path / "none", [("empty.parquet", Stats())])
    assert "No document was checked" in Tags(render_html(tmp_path / "none")).text


@pytest.mark.parametrize(
    "chart",
    [
        bars([("a", 0), ("b", 7)], str),
        stacked([("a", (1, 0, 5, 0)), ("b", (0, 0, 0, 0))], ("w", "x", "y", "z"), str),
        columns([("1", 0), ("2", 10**9)], str),
        columns([], str),
        steps([("one", [(0, 1, 5), (1, 3, 2)]), ("two", [])], str, str),
        steps([], str, str),
    ],
)
def test_charts_stay_inside_their_frame(chart):
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', chart).groups())
    Tags(chart)
    assert "nan" not in chart
    for x, y, w, h in re.findall(r'<rect class="\w+" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', chart):
        assert float(x) >= 0
        assert float(y) >= 0
        assert float(x) + float(w) <= width
        assert float(y) + float(h) <= height


def test_labels_fit_into_their_place():
    wide = ["U+202F NARROW NO-BREAK SPACE", "日本語の長い名前のファイル.parquet", "a" * 60 + ".parquet", "W" * 40]
    chart = bars([(name, 1) for name in [*wide, "short.parquet"]], str)
    shown = re.findall(r'<text class="end"[^>]*>([^<]*)<title>([^<]*)<', chart)
    assert [title for _, title in shown] == [*wide, "short.parquet"]
    assert shown[-1][0] == "short.parquet"
    for text, title in shown[:-1]:
        before, after = text.split("…")
        assert title.startswith(before)
        assert title.endswith(after)
        assert 10 < len(text) < 34
