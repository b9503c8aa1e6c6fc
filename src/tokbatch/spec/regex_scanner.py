r"""Characters and escapes of a pattern: the part of the parser that knows positions, errors and what `\x41` means.

Next: `regex_class.py` (character classes) and `regex_syntax.py` (everything else), which both read through this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec.unicode import ALL, CodePointSet, oniguruma_class

ASCII = CodePointSet.from_ranges([(0, 0x7F)])
CONTROL_ESCAPES = {"n": 0x0A, "t": 0x09, "r": 0x0D, "f": 0x0C, "a": 0x07, "b": 0x08, "e": 0x1B, "v": 0x0B}
# Which classes the options (?W), (?D) and (?S) limit to ASCII; (?P) limits them all, and the POSIX brackets with them.
LIMITED_BY = {"w": "W", "d": "D", "s": "S", "word": "W", "digit": "D", "space": "S"}
POSIX_NAMES = frozenset({"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph"}) | frozenset(
    {"lower", "print", "punct", "space", "upper", "word", "xdigit"}
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options in force at a place: (?i), (?m), (?x), and those of (?WDSP) that are on."""

    ignore_case: bool = False
    dot_matches_newline: bool = False
    extended: bool = False
    ascii_only: frozenset[str] = frozenset()

    def limits(self, name: str) -> bool:
        """Say whether a class (`w`, `digit`, ...) has only its ASCII characters here."""
        return "P" in self.ascii_only or LIMITED_BY.get(name) in self.ascii_only


class Scanner:
    """A pattern and a position in it."""

    def __init__(self, pattern: str, where: str):
        self.pattern = pattern
        self.where = where
        self.at = 0

    @property
    def done(self) -> bool:
        """True at the end of the pattern."""
        return self.at >= len(self.pattern)

    def peek(self, text: str) -> bool:
        """Say whether this text comes next."""
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Pass over this text if it comes next."""
        found = self.peek(text)
        if found:
            self.at += len(text)
        return found

    def next(self, wanted: str) -> str:
        """Give the next character; at the end the pattern is an error that says what was wanted."""
        if self.done:
            self.fail(f"the pattern ends where {wanted} should stand")
        self.at += 1
        return self.pattern[self.at - 1]

    def run(self, allowed: str, most: int) -> str:
        """Take up to `most` characters out of `allowed`."""
        start = self.at
        while not self.done and self.at - start < most and self.pattern[self.at] in allowed:
            self.at += 1
        return self.pattern[start : self.at]

    def fail(self, message: str) -> NoReturn:
        """Refuse the pattern as `tokenizers` refuses it."""
        raise SpecError(f"{self._place()}: {message}", where=self.where or None)

    def unsupported(self, what: str) -> NoReturn:
        """Refuse a pattern that `tokenizers` may well take."""
        raise UnsupportedError(
            f"{self._place()}: {what} is not reproduced",
            where=self.where or None,
            hint="rewrite the pattern without it",
        )

    def _place(self) -> str:
        shown = self.pattern if len(self.pattern) <= 80 else self.pattern[:77] + "..."
        return f"regular expression {shown!r}, character {self.at}"


HEXADECIMAL = "0123456789abcdefABCDEF"
OCTAL = "01234567"
DIGITS = "0123456789"


def read_class_escape(letter: str, options: Options, in_bracket: bool) -> CodePointSet | None:
    r"""Give the class of `\w`, `\d`, `\s`, `\h` or of their negations; None for another letter.

    Alone, `\w` also takes ² ³ ¹ ¼ ½ ¾, which it does not in a character class (Oniguruma has two tables).
    """
    small = letter.lower()
    if small not in "wdsh":
        return None
    members = oniguruma_class("bracket:w" if small == "w" and in_bracket else f"escape:{small}")
    assert members is not None
    if options.limits(small):
        members &= ASCII
    return members if letter == small else ~members


def read_property(scanner: Scanner, options: Options, negated: bool, in_bracket: bool) -> CodePointSet:
    r"""Read the rest of `\p{...}` (`\P{...}`: `negated`), the brace being read."""
    if scanner.take("^"):
        negated = not negated
    start = scanner.at
    while (character := scanner.next("a }")) != "}":
        if character in "(){|":
            scanner.fail(f"{character!r} in the name of a property")
    name = scanner.pattern[start : scanner.at - 1]
    plain = name.lower().translate({ord(c): None for c in " -_"})
    if in_bracket and plain == "word":
        members = oniguruma_class("bracket:w")
    else:
        members = oniguruma_class(name) if ":" not in name else None
    if members is None:
        scanner.fail(f"{name!r} is no property of characters")
    if options.limits(plain) and plain in POSIX_NAMES:
        # \p{Punct} and [[:punct:]] are two sets, so which of the names an option limits would have to be measured.
        if plain not in ("word", "digit", "space"):
            scanner.unsupported(f"\\p{{{name}}} under the option (?P)")
        members &= ASCII
    return ~members if negated else members


def read_character_escape(scanner: Scanner, in_bracket: bool) -> list[int]:
    r"""Read an escape that stands for code points, the backslash being read: `\n`, `\x{...}`, `\u0041`, `\cA`, `\-`.

    `\xE3\x81\x82` is one character, given by its bytes. `\x{41 42}` is two (outside character classes).
    """
    letter = scanner.next("an escaped character")
    if letter in "xo" and scanner.peek("{"):
        codes = _read_braced(scanner, 16 if letter == "x" else 8, in_bracket)
        return codes if codes is not None else [ord(letter)]
    if letter == "x" and not scanner.done:
        return [_read_bytes(scanner, 16)]
    if letter == "u" and not scanner.done:
        digits = scanner.run(HEXADECIMAL, 4)
        if len(digits) < 4:
            scanner.fail("\\u takes four hexadecimal digits")
        return [_checked(scanner, int(digits, 16))]
    if letter in OCTAL:
        scanner.at -= 1
        return [_read_bytes(scanner, 8)]
    if letter in "cCM":
        scanner.at -= 1
        return [_read_control(scanner)]
    return [CONTROL_ESCAPES.get(letter, ord(letter))]


def _read_braced(scanner: Scanner, base: int, in_bracket: bool) -> list[int] | None:
    """Read `{41}` or `{41 42}`; None, and nothing read, where no digit follows the brace."""
    allowed, most = (HEXADECIMAL, 8) if base == 16 else (OCTAL, 11)
    start = scanner.at
    scanner.at += 1
    codes: list[int] = []
    while True:
        digits = scanner.run(allowed, most)
        if not digits:
            if codes or (base == 8 and scanner.peek("8")) or (base == 8 and scanner.peek("9")):
                scanner.fail("this is no code point in braces")
            scanner.at = start
            return None
        if not scanner.done and scanner.pattern[scanner.at] in (HEXADECIMAL if base == 16 else DIGITS):
            scanner.fail("a code point has too many digits")
        codes.append(_checked(scanner, int(digits, base)))
        if scanner.take("}"):
            return codes
        if in_bracket:
            scanner.unsupported("a sequence of code points in a character class")
        if not scanner.run(" \n", len(scanner.pattern)):
            scanner.fail("this is no code point in braces")
        if scanner.take("}"):
            return codes


def _read_bytes(scanner: Scanner, base: int) -> int:
    r"""Read the digits of `\xHH` or `\nnn`, and where that is not ASCII the further bytes of the character."""

    def digits() -> int:
        if base == 16:
            return int(scanner.run(HEXADECIMAL, 2) or "0", 16)
        value = int(scanner.run(OCTAL, 3) or "0", 8)
        if value > 0xFF:
            scanner.unsupported("an octal byte above \\377")
        return value

    raw = [digits()]
    lead = raw[0]
    size = (
        1
        if lead < 0x80
        else 2
        if 0xC2 <= lead < 0xE0
        else 3
        if 0xE0 <= lead < 0xF0
        else 4
        if 0xF0 <= lead < 0xF5
        else 0
    )
    while len(raw) < size:
        opening = "\\x" if base == 16 else "\\"
        following = scanner.pattern[scanner.at + len(opening) : scanner.at + len(opening) + 1]
        if not scanner.peek(opening) or following not in (HEXADECIMAL if base == 16 else OCTAL) or not following:
            scanner.fail("the bytes of a character are not complete")
        scanner.at += len(opening)
        raw.append(digits())
    try:
        return ord(bytes(raw).decode())
    except (UnicodeDecodeError, TypeError):
        scanner.unsupported(f"the bytes {bytes(raw)!r}, which are no character,")


def _read_control(scanner: Scanner) -> int:
    r"""Read `cA`, `C-A` or `M-A`, where A may be an escape again; another letter stands for itself."""
    letter = scanner.next("a control character")
    if letter == "M":
        if not scanner.take("-"):
            scanner.fail("\\M is followed by a hyphen")
        return (_read_controlled(scanner) & 0xFF) | 0x80
    if letter == "C" and not scanner.take("-"):
        scanner.fail("\\C is followed by a hyphen")
    if letter in "cC":
        if scanner.take("?"):
            return 0x7F
        return _read_controlled(scanner) & 0x9F
    return CONTROL_ESCAPES.get(letter, ord(letter))


def _read_controlled(scanner: Scanner) -> int:
    character = scanner.next("a character")
    return _read_control(scanner) if character == "\\" else ord(character)


def _checked(scanner: Scanner, code: int) -> int:
    if code not in ALL:
        scanner.unsupported(f"U+{code:04X}, which is no character,")
    return code
