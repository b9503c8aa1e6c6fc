"""Hypothesis strategies of regular expressions in Oniguruma's syntax, and of texts for them."""

# ruff: noqa: SIM905 - lists of patterns are easier to read without quotes

from __future__ import annotations

from hypothesis import strategies as st

_ATOMS = (
    r"a b c K 1 - é ß ss ab abc . \w \W \s \S \d \h \R \N \O \n \- \x41 \x{e9} \u00df \p{L} \P{L} \p{^Lu} "
    r"[ab] [^a] [a-c&&[^b]] [\w-] [^\W\d] [\s\S] [[:punct:]] [[:^alpha:]b] []a] [a-c-e] [-a] [é-ü] [\p{L}&&\p{M}] "
    r"(?i:k) (?i:s) (?i:ss) (?i:ß) (?i:ſt) (?i:ﬁ) (?i:[^k]) (?i:[ß]) (?i:[a-k]) (?W:\w) (?D:\d) (?S:\s) "
    r"(?P:[[:alpha:]]) (?m:.) (?i)ab (?x:a\nb) (?#c)a"
).split()
_ANCHORS = r"^ $ \b \B \A \z \Z \G \K (?W:\b)".split()
_QUANTIFIERS = "* + ? *? +? ?? *+ ++ ?+ {2} {1,2} {,2} {1,} {2,1} {1,2}? {2}? {2}+ {0} {1}".split()
_GROUPS = ["(?:%s)", "(%s)", "(?>%s)", "(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)", "(?i:%s)", "(?<name>%s)"]
_LETTERS = "aaabbbccc  \n\n\r1²éßsSſKK\u212a_-,.Àƒ中\u0301x\x0b\u2028ẞﬁ\U00010400"


def patterns() -> st.SearchStrategy[str]:
    """Patterns, most of which the oracle accepts."""
    leaves = st.sampled_from(_ATOMS * 3 + _ANCHORS)
    return st.recursive(leaves, _larger, max_leaves=8)


def _larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    quantified = st.builds(
        lambda body, quantifier, group: (group % body) + quantifier,
        smaller,
        st.sampled_from(_QUANTIFIERS),
        st.sampled_from(["%s", "(?:%s)", "(?:%s)", "(%s)"]),
    )
    return st.one_of(
        st.builds("{}{}".format, smaller, smaller),
        st.builds("{}|{}".format, smaller, smaller),
        st.builds("(?:{}|{})".format, smaller, smaller),
        st.builds(lambda group, body: group % body, st.sampled_from(_GROUPS), smaller),
        quantified,
        quantified,
    )


def pattern_texts() -> st.SearchStrategy[str]:
    """Short texts of the letters that the patterns speak of."""
    return st.text(st.sampled_from(_LETTERS), min_size=1, max_size=9)
