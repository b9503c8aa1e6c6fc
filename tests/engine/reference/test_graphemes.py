import pytest

from tokbatch.engine.reference.graphemes import are_single_characters, graphemes


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("GB3", "a|\r\n|\n|\r|a"),
        ("GB4 and GB5", "a|\x01|\u0301|\r|\u0301"),
        ("GB6", "\u1100\u1100\u1161|\u1100가|\u1100각"),
        ("GB7", "가\u1161\u11a8|\u1161\u1161\u11a8"),
        ("GB8", "각\u11a8\u11a8|\u1161\u11a8|a|\u11a8\u11a8|가"),
        ("GB9", "a\u0301\u200d\u0323|b"),
        ("GB9a", "a\u0903\u0301|b"),
        ("GB9b", "a|\u0600\u0600b\u0301|\u0600|\n"),
        ("GB9c", "क\u094dक\u094d\u200dक|क\u0903|क|a\u094d|क"),
        ("GB11", "☺\ufe0f\u200d☺\u200d☺|a\u200d|☺"),
        ("GB12 and GB13", "\U0001f1e6\U0001f1e6|\U0001f1e6\u0301|\U0001f1e6\U0001f1e6|\U0001f1e6|a"),
        ("GB999", "a|b| |中|文"),
    ],
)
def test_rules_of_annex_29(rule, text):
    expected = text.split("|")

    assert graphemes("".join(expected)) == expected, rule


def test_a_quick_look_never_overlooks_a_cluster():
    for text in ["\r\n", "a\u0301", "\u0600a", "\u1100\u1161", "\u200d", "\U0001f1e6\U0001f1e6", "a\u0903"]:
        assert not are_single_characters(text)
    assert are_single_characters("Hello, wörld\n中文 \U0001f600 가\x00")
