"""Hypothesis strategies: texts made of characters that matter, and random normalizers and pre-tokenizers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from charsmaps import charsmap, precompiled

# One or two of each kind that some component treats in its own way, dense enough that they meet.
CHARACTERS = [
    *"aAzZ09 _-'.,!$<>|^`~",
    *"\t\n\v\f\r\0\x01\x1c\x1f\x7f\x85\x8f\x9f\xa0\xad",
    *"éÉßÅªº²½×¡«·ÿſ",
    *"İıΣςΩΐϓӀߋ",
    *"\u0300\u0301\u0308\u0315\u0323\u0327\u0338\u0344\u0345\u0483\u0591\u064b\u0903\u0f71\u0f72\u0f74\u302a\u3099",
    *"\u0600\u0c4d\u0d4d\u0e33\u1160\u135d\u1dff\u1e947\ufe20\U00011131\U00011127\U0001d165\U0001e8d0",
    *"कषि\u093c\u094dক\u09bfশ\u0958",
    *"\u1100\u1161\u11a8\u11a7가각\uac1c한",
    *"中文\u3400\u9fff\ua000豈\ufaff\U00020000\U0002b81f\U0002f800々〇",
    *"かガｶﾞーー゛ﬁﬀ㎜①Ⅷ℃Å\u2126",
    *"אבגשׁيلا١۲๑",
    *"\u1680\u180e\u2000\u200b\u200c\u200d\u200e\u2028\u2029\u202f\u2060\u3000\ufeff\ufffd\uffff\ue000",
    *"▁Ġ–—“”…€™☺❤\ufe0f♥©",
    *"\U0001f600\U0001f468\U0001f3fd\U0001f1e6\U0001f1ea\U000e0020\U00010400\U0001d7d8\U000e0100\U0010ffff",
]

ANY_CHARACTER = st.characters(exclude_categories=["Cs"])
TEXTS = st.one_of(
    st.lists(st.sampled_from(CHARACTERS), max_size=14).map("".join),
    st.lists(st.one_of(st.sampled_from(CHARACTERS), ANY_CHARACTER), max_size=14).map("".join),
    st.lists(st.sampled_from(["hello", " ", "  ", "World's", "12", "\n", "e\u0301", "中", "-", "▁"]), max_size=10).map(
        "".join
    ),
)
SHORT = st.lists(st.sampled_from(["a", " ", "▁", "é", "\u0301", "X", "中"]), max_size=2).map("".join)
ONE_CHARACTER = st.sampled_from(["a", " ", "▁", "é", "中", "-", "\U0001f600", "\u0301"])
BOOLEANS = st.booleans()
BEHAVIORS = st.sampled_from(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
PATTERNS = st.one_of(
    st.one_of(ONE_CHARACTER, SHORT).map(lambda text: {"String": text}),
    st.sampled_from(
        [
            r"\s+",
            r"\s",
            r"a|\p{N}+",
            r"\p{L}+| ",
            r"[^a-z]",
            r" ?\w+|\s+(?!\S)|\s+",
            r"\s*",
            r"^",
            r"$",
            r"(?=a)",
            r"a*",
            r"\p{P}",
            r"\p{M}+",
            r"(?i:é)",
            r"..",
        ]
    ).map(lambda expression: {"Regex": expression}),
)


def of_type(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Make components of one type."""
    return st.fixed_dictionaries({"type": st.just(name), **fields})


NORMALIZERS = st.one_of(
    *(of_type(name) for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel")),
    of_type(
        "BertNormalizer",
        clean_text=BOOLEANS,
        handle_chinese_chars=BOOLEANS,
        strip_accents=st.none() | BOOLEANS,
        lowercase=BOOLEANS,
    ),
    of_type("Strip", strip_left=BOOLEANS, strip_right=BOOLEANS),
    of_type("Prepend", prepend=SHORT),
    of_type("Replace", pattern=PATTERNS, content=SHORT),
    st.dictionaries(
        st.lists(st.sampled_from(CHARACTERS), min_size=1, max_size=2).map("".join).filter(lambda key: "\0" not in key),
        SHORT,
        max_size=8,
    ).map(lambda entries: precompiled(charsmap(entries))),
)
NORMALIZER_CHAINS = st.lists(NORMALIZERS, max_size=4).map(lambda parts: {"type": "Sequence", "normalizers": parts})

PRE_TOKENIZERS = st.one_of(
    *(of_type(name) for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
    of_type("ByteLevel", add_prefix_space=BOOLEANS, trim_offsets=st.just(True), use_regex=BOOLEANS),
    of_type(
        "Metaspace",
        replacement=ONE_CHARACTER,
        prepend_scheme=st.sampled_from(["first", "always", "never"]),
        split=BOOLEANS,
    ),
    of_type("CharDelimiterSplit", delimiter=ONE_CHARACTER),
    of_type("Split", pattern=PATTERNS, behavior=BEHAVIORS, invert=BOOLEANS),
    of_type("Punctuation", behavior=BEHAVIORS),
    of_type("Digits", individual_digits=BOOLEANS),
    of_type("FixedLength", length=st.integers(1, 4)),
)
PRE_TOKENIZER_CHAINS = st.lists(PRE_TOKENIZERS, max_size=4).map(
    lambda parts: {"type": "Sequence", "pretokenizers": parts}
)
