r"""What the oracle knows about characters: tables pinned from `tokenizers` 0.23.3, independent of Python's Unicode.

The oracle uses five sources of different age, and each component below says which:

- Oniguruma (Split, Replace, ByteLevel's own pattern): `oniguruma_class`
- the regex crate (Whitespace, `single_word`, `lstrip`, `rstrip` of added tokens): `rust_regex_class`
- Rust's `char` (WhitespaceSplit, Digits, Lowercase, Strip): `set_named`, `mapping_named`
- unicode_categories (Punctuation, BertNormalizer): `set_named`
- unicode-normalization-alignments (NFC, NFD, NFKC, NFKD, StripAccents): `decomposition`, `composition`,
  `combining_classes`
- unicode-segmentation (Precompiled): `set_named("grapheme_...")`

`scripts/make_unicode_tables.py` asks the oracle for all of it and writes the .bin files; with `--check` it compares.
Not here: what components do with the tables. Next: `regex_syntax.py` in the folder above.
"""

from __future__ import annotations

from functools import cache

from tokbatch.spec.unicode.code_points import ALL, EMPTY, CodePointSet
from tokbatch.spec.unicode.tables import load_tables

__all__ = [
    "ALL",
    "EMPTY",
    "SETS",
    "CodePointSet",
    "combining_classes",
    "composition",
    "decomposition",
    "fold_peers",
    "fold_sequences",
    "mapping_named",
    "oniguruma_class",
    "rust_regex_class",
    "script_ranges",
    "set_named",
]

SETS = {
    "whitespace": "Rust's char::is_whitespace",
    "numeric": "Rust's char::is_numeric",
    "punctuation": "what Punctuation and BertPreTokenizer split at: ASCII punctuation and categories P*",
    "bert_control": "what BertNormalizer's clean_text drops: categories C*, NUL, U+FFFD; not tab, newline, return",
    "chinese": "what BertNormalizer's handle_chinese_chars sets apart",
    "mark_nonspacing": "what BertNormalizer's strip_accents drops after NFD: category Mn",
    "combining_mark": "what StripAccents drops: categories M*",
    "grapheme_control": "Control, CR and LF: a boundary on both sides (GB4, GB5)",
    "grapheme_extend": "Extend: no boundary before (GB9)",
    "grapheme_spacing_mark": "SpacingMark and ZWJ: no boundary before (GB9, GB9a)",
    "grapheme_prepend": "Prepend: no boundary after (GB9b)",
    "grapheme_pictographic": "Extended_Pictographic (GB11)",
    "grapheme_hangul_l": "leading consonants (GB6)",
    "grapheme_hangul_v": "vowels (GB6, GB7)",
    "grapheme_hangul_t": "trailing consonants (GB7, GB8)",
    "grapheme_hangul_lv": "syllables without a trailing consonant (GB6, GB7)",
    "grapheme_hangul_lvt": "syllables with one (GB6, GB8)",
    "grapheme_regional_indicator": "letters of flags (GB12, GB13)",
    "grapheme_conjunct_consonant": "InCB=Consonant (GB9c)",
    "grapheme_conjunct_linker": "InCB=Linker (GB9c)",
    "grapheme_conjunct_extend": "InCB=Extend, InCB=Linker and ZWJ (GB9c)",
}


@cache
def oniguruma_class(name: str) -> CodePointSet | None:
    r"""Give what `\p{name}` matches in Oniguruma; None where it knows no such property.

    Case, spaces, hyphens and underscores of a name do not count. Beside the properties there are `posix:alpha` (what
    `[[:alpha:]]` matches) and its kind, `escape:w` (what `\w` matches) and its kind, and `bracket:w` (what `\w` matches
    in a character class, which is less).

    >>> len(oniguruma_class("L")), oniguruma_class("letter") == oniguruma_class("L"), oniguruma_class("Klingon")
    (141028, True, None)
    """
    tables = load_tables("oniguruma")
    key = name if ":" in name else name.lower().translate({ord(c): None for c in " -_"})
    section = tables.facts["names"].get(key)
    return None if section is None else tables.set_named(section)


@cache
def fold_peers() -> dict[int, str]:
    """Give the characters (itself included) that each character matches in Oniguruma when case is ignored.

    A character that matches itself only has no entry.
    """
    return load_tables("oniguruma").mapping_named("fold")


@cache
def fold_sequences() -> dict[int, str]:
    """Give the two or three characters that some characters match in Oniguruma when case is ignored (ß: ss)."""
    return load_tables("oniguruma").mapping_named("fold_several")


@cache
def rust_regex_class(letter: str) -> CodePointSet:
    r"""Give what `\w`, `\s` or `\d` match in the regex crate: `letter` is "w", "s" or "d"."""
    return load_tables("rust").set_named(f"regex_{letter}")


@cache
def set_named(name: str) -> CodePointSet:
    """Give one of the sets described in `SETS`."""
    return load_tables("graphemes" if name.startswith("grapheme_") else "rust").set_named(name)


@cache
def mapping_named(name: str) -> dict[int, str]:
    """Give a mapping of characters; those that stay as they are have no entry. There is one: "lowercase"."""
    return load_tables("rust").mapping_named(name)


@cache
def decomposition(compatible: bool) -> dict[int, str]:
    """Give the full decomposition of each character that has one, in canonical order.

    Without the Hangul syllables U+AC00 to U+D7A3, which decompose by arithmetic.
    """
    return load_tables("normalization").mapping_named("compatible" if compatible else "canonical")


@cache
def composition() -> dict[str, str]:
    """Give the character that a pair of characters composes to; again without Hangul."""
    pairs = load_tables("normalization").mapping_named("composition")
    return {pair: chr(code_point) for code_point, pair in pairs.items()}


@cache
def combining_classes() -> dict[int, int]:
    """Give the canonical combining class of each character whose class is not 0."""
    return {code: ord(value) for code, value in load_tables("normalization").mapping_named("combining").items()}


@cache
def script_ranges() -> list[tuple[int, int, str]]:
    """Give (first, last, script) of UnicodeScripts' own table, ascending; hiragana, katakana and U+30FC count as Han.

    What is in no range has the script "Any", which takes the script of its surroundings.
    """
    tables = load_tables("rust")
    named = [name for name in tables.sections if name.startswith("script:")]
    return sorted((first, last, name[7:]) for name in named for first, last in tables.set_named(name).ranges())
