"""Character classes of a pattern: `[a-z&&[^aeiou]\\d[:punct:]]` to a set of code points.

What is allowed where follows Oniguruma's default syntax, oddities included: `[]a]` begins with a bracket, `[a-]`,
`[-a]`, `[a-c-e]` contain a hyphen, `^` negates what the whole class amounts to, `&&` binds tighter than that.
"""

from __future__ import annotations

from tokbatch.spec.regex_scanner import (
    ASCII,
    POSIX_NAMES,
    Options,
    Scanner,
    read_character_escape,
    read_class_escape,
    read_property,
)
from tokbatch.spec.unicode import CodePointSet, oniguruma_class

DEPTH_LIMIT = 100


def read_class(scanner: Scanner, options: Options, depth: int = 0) -> tuple[CodePointSet, bool]:
    """Read a class, its opening bracket being read; give what is written in it and whether `^` negates that."""
    if depth > DEPTH_LIMIT:
        scanner.unsupported(f"a character class nested more than {DEPTH_LIMIT} deep")
    negated = scanner.take("^")
    if scanner.peek("]") and "]" not in scanner.pattern[scanner.at + 1 :]:
        scanner.fail("an empty character class")
    reader = _ClassReader(scanner, options, depth)
    reader.read()
    return reader.result(), negated


class _ClassReader:
    """The members of one class, up to its closing bracket.

    `state` is "start", "value" (a member was read; a hyphen would make it the begin of a range), "range" (that hyphen
    was read) or "complete" (a range was read). `last` is the member before the hyphen, None if it was a class.
    """

    def __init__(self, scanner: Scanner, options: Options, depth: int):
        self.scanner = scanner
        self.options = options
        self.depth = depth
        self.ranges: list[tuple[int, int]] = []
        self.others: list[CodePointSet] = []
        self.before_and: CodePointSet | None = None
        self.state = "start"
        self.last: int | None = None

    def result(self) -> CodePointSet:
        """Give the members, with all intersections made."""
        here = CodePointSet.union([CodePointSet.from_ranges(self.ranges), *self.others])
        return here if self.before_and is None else self.before_and & here

    def read(self) -> None:
        """Read members up to the closing bracket, which may be the first member instead."""
        scanner = self.scanner
        if scanner.take("]"):
            self.character(ord("]"))
        while True:
            character = scanner.next("the ] of a character class")
            if character == "]":
                return
            if character == "-":
                self.hyphen()
            elif character == "\\":
                self.escape()
            elif character == "[":
                self.bracket()
            elif character == "&" and scanner.take("&"):
                self.before_and = self.result()
                self.ranges, self.others, self.state = [], [], "start"
            else:
                self.character(ord(character))

    def character(self, code: int) -> None:
        """Add a member, or end a range with it."""
        if self.state == "range":
            assert self.last is not None
            if code < self.last:
                self.scanner.fail("a range of characters that ends before it begins")
            self.ranges.append((self.last, code))
            self.state = "complete"
            return
        self.ranges.append((code, code))
        self.state, self.last = "value", code

    def members(self, members: CodePointSet) -> None:
        """Add a class of characters."""
        if self.state == "range":
            self.scanner.fail("a class of characters at the end of a range")
        self.others.append(members)
        self.state, self.last = "value", None

    def hyphen(self) -> None:
        """Take a hyphen for the sign of a range where it can be one, and otherwise for a member."""
        if self.state == "value" and not self.scanner.peek("]") and not self.scanner.peek("&&"):
            if self.last is None:
                self.scanner.fail("a class of characters at the begin of a range")
            self.state = "range"
        elif self.state == "value":
            self.ranges.append((0x2D, 0x2D))
        else:
            self.character(0x2D)

    def bracket(self) -> None:
        """Read a POSIX bracket or a nested class."""
        scanner = self.scanner
        name = self._posix_name()
        if name is None:
            if self.state == "range":  # [a-[b]]: Oniguruma drops both the a and the hyphen
                self.ranges.pop()
            inner, negated = read_class(scanner, self.options, self.depth + 1)
            self.others.append(~inner if negated else inner)
            self.state, self.last = "complete", None
            return
        scanner.at += len(name) + 3
        negated = name.startswith("^")
        plain = name[negated:]
        if plain not in POSIX_NAMES:
            scanner.fail(f"{plain!r} is no POSIX bracket")
        members = oniguruma_class(f"posix:{plain}")
        assert members is not None
        if self.options.limits(plain):
            members &= ASCII
        self.members(~members if negated else members)

    def _posix_name(self) -> str | None:
        """Give the text between `:` and `:]` where the bracket just read begins a POSIX bracket."""
        scanner = self.scanner
        if not scanner.peek(":"):
            return None
        end = scanner.pattern.find(":", scanner.at + 1)
        name = scanner.pattern[scanner.at + 1 : end]
        letters = oniguruma_class("alpha")
        assert letters is not None
        wellformed = end > 0 and name and all(ord(c) in letters for c in name.removeprefix("^"))
        return name if wellformed and scanner.pattern.startswith(":]", end) else None

    def escape(self) -> None:
        """Read an escape, the backslash being read."""
        scanner = self.scanner
        if scanner.done:
            scanner.fail("the pattern ends in an escape")
        letter = scanner.pattern[scanner.at]
        members = read_class_escape(letter, self.options, in_bracket=True)
        if members is not None:
            scanner.at += 1
            self.members(members)
        elif letter in "pP" and scanner.pattern.startswith("{", scanner.at + 1):
            scanner.at += 2
            self.members(read_property(scanner, self.options, letter == "P", in_bracket=True))
        else:
            self.character(read_character_escape(scanner, in_bracket=True)[0])
