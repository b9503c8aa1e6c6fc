#!/usr/bin/env python3
"""Ask the oracle what it knows about characters and write it to src/tokbatch/spec/unicode/*.bin.

    make_unicode_tables.py [--check] [NAME...]

NAME is one of the files (oniguruma, rust, normalization, graphemes; all by default). `--check` writes nothing, says
which sections differ from the files, and exits 1 where any does. It takes some minutes.

Nothing comes from Python's own Unicode tables but candidates, which the oracle then confirms or not. The names of
Oniguruma's properties cannot be asked for: they stand in `oniguruma_property_names.txt`, taken from the table of names
in the sources of Oniguruma 6.9.10 (`unicode_property_data.c`).
"""

from __future__ import annotations

import argparse
import base64
import struct
import sys
import unicodedata
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracles"))

import oracle  # noqa: E402
from oracle import tokenizers  # noqa: E402

from tokbatch.spec.unicode.code_points import ALL, CodePointSet  # noqa: E402
from tokbatch.spec.unicode.tables import Tables  # noqa: E402

EVERYTHING = "".join(map(chr, ALL))
POSIX = tuple("alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split())  # noqa: SIM905
ESCAPES = "dhsw"
ACUTE, GRAVE, ZWJ, PREPENDED = "\u0301", "\u0300", "\u200d", "\u0600"
KA, VIRAMA = "\u0915", "\u094d"
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)


def normalizer(**fields: object) -> Callable[[str], str]:
    """Give the function of one of the oracle's normalizers."""
    return oracle.tokenizer({**EMPTY, "normalizer": fields}).normalizer.normalize_str


def pre_tokenizer(**fields: object) -> Callable[[str], list[tuple[str, tuple[int, int]]]]:
    """Give the function of one of the oracle's pre-tokenizers."""
    return oracle.tokenizer({**EMPTY, "pre_tokenizer": fields}).pre_tokenizer.pre_tokenize_str


EMPTY = {
    "version": "1.0",
    "added_tokens": [],
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
}


def code_points_where(holds: Callable[[str], bool], among: Iterable[int] = ALL) -> CodePointSet:
    """Give the code points for whose character something holds."""
    return CodePointSet.from_ranges((code, code) for code in among if holds(chr(code)))


# ---------------------------------------------------------------------------------------------------- Oniguruma


def matched_by(pattern: str, everything: oracle.NormalizedString) -> CodePointSet | None:
    """Give the code points that a one-character pattern matches; None where the oracle refuses the pattern."""
    try:
        regex = tokenizers.Regex(f"{pattern}+")
    except Exception:
        return None
    gaps = [str(piece.normalized) for piece in everything.split(regex, "removed")]
    return ALL - CodePointSet.from_ranges(
        pair for gap in gaps for pair in (ALL & CodePointSet.from_ranges([(ord(gap[0]), ord(gap[-1]))])).ranges()
    )


def make_oniguruma() -> Tables:
    r"""Ask for every property, POSIX bracket and class escape, and for the case folding.

    `\\w` is asked for twice: alone it takes the superscripts and fractions of Latin-1 for word characters, in a
    character class it does not.
    """
    everything = oracle.NormalizedString(EVERYTHING)
    listed = (ROOT / "scripts" / "oniguruma_property_names.txt").read_text().split()
    patterns = {name: rf"\p{{{name}}}" for name in listed}
    patterns |= {f"posix:{name}": f"[[:{name}:]]" for name in POSIX}
    patterns |= {f"escape:{letter}": rf"\{letter}" for letter in ESCAPES}
    patterns["bracket:w"] = r"[\w]"
    tables, names, section_of = Tables(), {}, {}
    for name, pattern in patterns.items():
        found = matched_by(pattern, everything)
        if found is None:
            print(f"oniguruma: no {pattern}", file=sys.stderr)
            continue
        section = section_of.setdefault(found, name)
        names[name] = section
        tables.put_set(section, found)
    tables.facts["names"] = names
    one, several = folding()
    tables.put_mapping("fold", one)
    tables.put_mapping("fold_several", several)
    return tables


def folding() -> tuple[dict[int, str], dict[int, str]]:
    """Find what a character matches when case is ignored: other characters, and for some a sequence of characters.

    The sequences are proposed by Python (`str.casefold`) and confirmed by the oracle.
    """
    cased = CodePointSet.from_characters(
        other
        for character in EVERYTHING
        for text in (character.lower(), character.upper(), character.title(), character.casefold())
        for other in character + text
        if text != character
    )
    for name in ("Cased", "Changes_When_Casemapped", "Changes_When_Casefolded"):
        cased |= matched_by(rf"\p{{{name}}}", oracle.NormalizedString(EVERYTHING)) or ALL
    text = oracle.NormalizedString("\n".join(map(chr, cased)))
    one, several = {}, {}
    for code in cased:
        regex = tokenizers.Regex(rf"(?i:\x{{{code:x}}})")
        kept = {c for piece in text.split(regex, "removed") for c in str(piece.normalized)}
        peers = "".join(chr(c) for c in cased if chr(c) not in kept)
        if peers != chr(code):
            one[code] = peers
        sequence = chr(code).casefold()
        if len(sequence) > 1:
            if oracle.NormalizedString(sequence).split(regex, "removed"):
                raise AssertionError(f"U+{code:04X} does not match {sequence!r}")
            several[code] = sequence
    return one, several


# --------------------------------------------------------------------------- Rust's char, regex, unicode_categories


def make_rust() -> Tables:
    """Ask the components that classify characters by Rust's own tables or by a crate's."""
    tables = Tables()
    words = pre_tokenizer(type="Whitespace")
    joined = words("\n".join("a" + character for character in EVERYTHING))
    tables.put_set("regex_w", CodePointSet.from_characters(piece[1] for piece, _ in joined if len(piece) == 2))
    alone = {start for _, (start, _) in words("\n".join(EVERYTHING))}
    tables.put_set("regex_s", CodePointSet.from_characters(c for i, c in enumerate(EVERYTHING) if 2 * i not in alone))
    tables.put_set("whitespace", ALL - split_off(type="WhitespaceSplit"))
    tables.put_set("numeric", ALL - dropped_by(type="Digits"))
    tables.put_set("punctuation", ALL - split_off(type="Punctuation", behavior="Removed"))
    bert = {"type": "BertNormalizer", "lowercase": False, "strip_accents": False}
    clean = normalizer(**bert, clean_text=True, handle_chinese_chars=False)
    tables.put_set("bert_control", code_points_where(lambda c: clean(c) == ""))
    chinese = normalizer(**bert, clean_text=False, handle_chinese_chars=True)
    tables.put_set("chinese", code_points_where(lambda c: chinese(c) != c))
    strip = normalizer(**{**bert, "strip_accents": True}, clean_text=False, handle_chinese_chars=False)
    tables.put_set("mark_nonspacing", code_points_where(lambda c: strip(c) == ""))
    accents = normalizer(type="StripAccents")
    tables.put_set("combining_mark", code_points_where(lambda c: accents(c) == ""))
    lower = normalizer(type="Lowercase")
    tables.put_mapping("lowercase", {c: lower(chr(c)) for c in ALL if lower(chr(c)) != chr(c)})
    for name, members in scripts().items():
        tables.put_set(f"script:{name}", members)
    return tables


def split_off(**fields: object) -> CodePointSet:
    """Give the characters that survive a pre-tokenizer which removes what it splits at."""
    return CodePointSet.from_characters(c for piece, _ in pre_tokenizer(**fields)(EVERYTHING) for c in piece)


def dropped_by(**fields: object) -> CodePointSet:
    """Give the characters that a pre-tokenizer without a removing mode does not split from an `a` before them."""
    pieces = pre_tokenizer(**fields, individual_digits=True)("".join("a" + character for character in EVERYTHING))
    starts = {start for _, (start, _) in pieces}
    return CodePointSet.from_characters(c for i, c in enumerate(EVERYTHING) if 2 * i + 1 not in starts)


def scripts() -> dict[str, CodePointSet]:
    """Group the characters between which UnicodeScripts does not split; "Any" joins all and is left out."""
    split = pre_tokenizer(type="UnicodeScripts")

    def same(one: str, other: str) -> bool:
        return len(split(one + other)) == 1

    definite = [c for c in EVERYTHING if not (same("a", c) and same("あ", c))]
    runs = [piece for piece, _ in split("".join(definite))]
    groups: list[list[str]] = []
    for run in runs:
        for group in groups:
            if same(group[0][0], run[0]):
                group.append(run)
                break
        else:
            groups.append([run])
    everything = oracle.NormalizedString(EVERYTHING)
    named = {name: matched_by(rf"\p{{{name}}}", everything) for name in ("Han", "Common", "Inherited")}
    result = {}
    for group in groups:
        members = CodePointSet.from_characters(c for run in group for c in run)
        script = next((n for n, s in named.items() if s and ord(group[0][0]) in s), None)
        words = [script] if script else unicodedata.name(group[0][0]).title().split()
        size = next(n for n in range(1, len(words) + 1) if "_".join(words[:n]) not in result)
        result["_".join(words[:size])] = members
    return result


# ------------------------------------------------------------------------------------------------- normalization


def make_normalization() -> Tables:
    """Ask the four normal forms."""
    nfd, nfkd, nfc = (normalizer(type=form) for form in ("NFD", "NFKD", "NFC"))
    tables = Tables()
    characters = [chr(code) for code in ALL if code not in HANGUL_SYLLABLES]
    canonical = {ord(c): nfd(c) for c in characters if nfd(c) != c}
    tables.put_mapping("canonical", canonical)
    tables.put_mapping("compatible", {ord(c): nfkd(c) for c in characters if nfkd(c) != c})
    composites = {}
    for code, parts in canonical.items():
        if len(parts) > 1 and nfc(parts) == chr(code):
            composites[code] = nfc(parts[:-1]) + parts[-1]
            if len(composites[code]) != 2:
                raise AssertionError(f"U+{code:04X} is no pair")
    tables.put_mapping("composition", composites)
    tables.put_mapping("combining", combining(nfd, set(canonical)))
    return tables


def combining(nfd: Callable[[str], str], decomposing: set[int]) -> dict[int, str]:
    """Find each combining class by which of two characters NFD puts first.

    Python's table only proposes a character for each class; the oracle puts those in order, and every other character
    beside the one it does not change places with.
    """
    lowest, highest = "\u0334", "\u0345"

    def combines(character: str) -> bool:
        moves = nfd(highest + character) != highest + character or nfd(character + lowest) != character + lowest
        return moves or character in (lowest, highest)

    proposed: dict[int, str] = {}
    for code in ALL:
        value = unicodedata.combining(chr(code))
        if value and code not in decomposing and combines(chr(code)):
            proposed.setdefault(value, chr(code))
    ladder = sorted(proposed.items())
    for (_, low), (_, high) in pairwise(ladder):
        if nfd(high + low) != low + high or nfd(low + high) != low + high:
            raise AssertionError(f"U+{ord(low):04X} and U+{ord(high):04X} are not in order")
    classes = {}
    for code in ALL:
        character = chr(code)
        if code in decomposing or code in HANGUL_SYLLABLES:
            continue
        if combines(character):
            equal = [
                value
                for value, peer in ladder
                if nfd(peer + character) == peer + character and nfd(character + peer) == character + peer
            ]
            if len(equal) != 1:
                raise AssertionError(f"U+{code:04X} has the classes {equal}")
            classes[code] = chr(equal[0])
    return classes


# ----------------------------------------------------------------------------------------------------- graphemes


def grapheme_count() -> Callable[[str], int]:
    """Give a function that counts graphemes, made of a Precompiled map.

    Every first byte is a key of the map and stands for one Z. A grapheme of less than six bytes is looked up as a whole
    and gives one Z; a longer one is looked up character by character and gives as many.
    """
    units = [0] * 1024
    units[0] = 256 << 10
    for byte in range(1, 256):
        units[256 | byte] = byte | 1 << 8 | 512 << 10
    trie = struct.pack(f"<{len(units)}I", *units)
    charsmap = struct.pack("<I", len(trie)) + trie + b"Z\0"
    normalize = normalizer(type="Precompiled", precompiled_charsmap=base64.b64encode(charsmap).decode())
    return lambda text: len(normalize(text))


def make_graphemes() -> Tables:
    """Find the properties that decide about boundaries, by counting the graphemes of texts made for the purpose.

    Each text has less than six bytes where there is a boundary at the place in question and more where there is none,
    or the other way round.
    """
    count = grapheme_count()
    tables = Tables()
    found: dict[str, CodePointSet] = {}

    def put(name: str, holds: Callable[[str], bool], among: Iterable[int] = ALL) -> None:
        found[name] = code_points_where(holds, among)
        tables.put_set(f"grapheme_{name}", found[name])

    def pictured(c: str) -> bool:
        return count("©" + ZWJ + c) == 3

    joining = code_points_where(lambda c: count("a" + c) == 1)
    put("extend", lambda c: count("©" + c + ZWJ + "©" + GRAVE) == 5, joining)
    put("spacing_mark", lambda c: ord(c) not in found["extend"], joining)
    put("control", lambda c: count(c + GRAVE + ACUTE) == 2 and count(c + c) == 2)
    put("prepend", lambda c: count(c + "a") == 1)
    put("pictographic", pictured, ALL - joining)
    after_l = code_points_where(lambda c: count(PREPENDED + "\u1100" + c) == 3, ALL - joining)
    after_v = code_points_where(lambda c: count(PREPENDED + "\u1160" + c) == 3, ALL - joining)
    put("hangul_t", lambda c: count(PREPENDED + "\u11a8" + c) == 3, ALL - joining)
    put("hangul_v", lambda c: ord(c) not in found["hangul_t"], after_v)
    rest = after_l - found["hangul_v"]
    put("hangul_l", lambda c: count(PREPENDED + c + "\u1100") == 3, rest)
    rest -= found["hangul_l"]
    put("hangul_lv", lambda c: count(PREPENDED + c + "\u1160") == 3, rest)
    tables.put_set("grapheme_hangul_lvt", rest - found["hangul_lv"])
    put("conjunct_consonant", lambda c: count(c + VIRAMA + KA + GRAVE) == 4 and count(c + KA + GRAVE) == 2)
    put("conjunct_linker", lambda c: count(KA + c + KA + GRAVE) == 4, joining)
    put("conjunct_extend", lambda c: count(KA + VIRAMA + c + KA + GRAVE) == 5, joining)
    everything = oracle.NormalizedString(EVERYTHING)
    tables.put_set("grapheme_regional_indicator", matched_by(r"\p{Regional_Indicator}", everything) or ALL)
    return tables


MAKERS = {"oniguruma": make_oniguruma, "rust": make_rust, "normalization": make_normalization}
MAKERS |= {"graphemes": make_graphemes}


def _listed(section: Iterable[int] | None) -> list[int] | None:
    return None if section is None else list(section)


def main() -> int:
    """Make or check the files that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    failures = 0
    for name in arguments.names or MAKERS:
        path = ROOT / "src" / "tokbatch" / "spec" / "unicode" / f"{name}.bin"
        made = MAKERS[name]()
        made.facts["tokenizers"] = oracle.VERSION
        if arguments.check:
            kept = Tables.from_bytes(path.read_bytes())
            differing = [
                s for s in {**made.sections, **kept.sections} if made.sections.get(s) != _listed(kept.sections.get(s))
            ]
            failures += bool(differing) or made.facts != kept.facts
            print(f"{name}: {len(made.sections)} sections, {len(differing)} differ {differing[:8]}", flush=True)
        else:
            path.write_bytes(made.to_bytes())
            print(f"{name}: {len(made.sections)} sections, {path.stat().st_size} bytes", flush=True)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
