r"""The parser of regular expressions: a pattern in Oniguruma's default syntax to the tree of `regex_tree.py`.

`tokenizers` hands the patterns of Split and Replace to Oniguruma 6.9.10. What that refuses is a `SpecError` here. What
it takes and this project does not reproduce is an `UnsupportedError`: backreferences, calls of groups, conditions,
callouts, absent operators, `\X` and `\y`, `\K` inside a look-around, the options (?CIL) and (?y).

Here: the order of things, groups, options, quantifiers. `regex_scanner.py` has the escapes, `regex_class.py` the
character classes, `regex_drafts.py` what stands for a node while parsing, `regex_folding.py` what `(?i)` does.
Next: `engine/reference/patterns.py`, which runs the tree.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tokbatch.spec.regex_class import read_class
from tokbatch.spec.regex_drafts import (
    BOUNDS,
    Class,
    Draft,
    Group,
    Text,
    descendants,
    flat,
    joined,
    nest,
    never_quantified,
)
from tokbatch.spec.regex_folding import fold_class, fold_text
from tokbatch.spec.regex_scanner import (
    ASCII,
    DIGITS,
    Options,
    Scanner,
    read_character_escape,
    read_class_escape,
    read_property,
)
from tokbatch.spec.regex_tree import (
    EMPTY_SEQUENCE,
    Alternation,
    Anchor,
    AnchorKind,
    Atomic,
    Keep,
    Look,
    Node,
    Repeat,
    Sequence,
    Set,
    maximum_length,
    minimum_length,
)
from tokbatch.spec.unicode import ALL, CodePointSet, oniguruma_class

DEPTH_LIMIT = 100  # of nested groups, and of quantifiers on quantifiers; Oniguruma has one of 4,096 for its own nodes
REPEAT_LIMIT = 100_000
LOOK_BEHIND_LIMIT = 65_535

NEWLINE = CodePointSet.from_characters("\n")
NEWLINES = CodePointSet.from_characters("\n\v\f\r\u0085\u2028\u2029")
ANCHORS: dict[str, AnchorKind] = {
    "^": "line start",
    "$": "line end",
    "\\A": "text start",
    "\\z": "text end",
    "\\Z": "last line end",
    "\\G": "search start",
}


@lru_cache(maxsize=64)
def parse(pattern: str, where: str = "") -> Node:
    r"""Parse a pattern.

    >>> parse("[ab]")
    Set(members=CodePointSet(2 code points: 0061-0062))
    >>> parse("(?<=a|b*c").branches
    Traceback (most recent call last):
    tokbatch.errors.SpecError: regular expression '(?<=a|b*c', character 9: the pattern ends where a ) should stand
    """
    parser = _Parser(Scanner(pattern, where))
    draft = parser.alternatives(Options(), depth=0)
    if not parser.scanner.done:
        parser.scanner.fail("a ) without its (")
    return parser.resolve(draft, in_look_behind=False)


class _Parser:
    """Recursive descent over one pattern."""

    def __init__(self, scanner: Scanner):
        self.scanner = scanner
        self.captures = 0

    # ------------------------------------------------------------------------------------------ alternatives, sequences

    def alternatives(self, options: Options, depth: int) -> Draft:
        """Read branches up to the closing bracket, which stays, or to the end."""
        if depth > DEPTH_LIMIT:
            self.scanner.unsupported(f"a group nested more than {DEPTH_LIMIT} deep")
        branches = [self.branch(options, depth)]
        while self.scanner.take("|"):
            branches.append(self.branch(options, depth))
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))  # type: ignore[arg-type]

    def branch(self, options: Options, depth: int) -> Draft:
        """Read one branch."""
        parts: list[Draft] = []
        while True:
            self.skip_comments(options)
            if self.scanner.done or self.scanner.peek("|") or self.scanner.peek(")"):
                break
            isolated = self.isolated_options(options, depth)
            if isolated is not None:
                parts.append(isolated)
                break
            parts.extend(flat(self.quantified(options, depth)))
        parts = joined(parts)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))  # type: ignore[arg-type]

    def skip_comments(self, options: Options) -> None:
        """Pass over `(?#...)`, and under (?x) over blanks and `# ...` lines."""
        scanner = self.scanner
        while True:
            if scanner.take("(?#"):
                while (character := scanner.next("the ) of a comment")) != ")":
                    if character == "\\" and not scanner.done:
                        scanner.at += 1
            elif options.extended and scanner.take("#"):
                while not scanner.done and scanner.next("a comment") != "\n":
                    pass
            elif not (options.extended and scanner.run(" \t\n\r\f", 1)):
                return

    def isolated_options(self, options: Options, depth: int) -> Draft | None:
        """Read `(?i)`, which holds up to the end of the group it stands in, and what it holds for."""
        scanner = self.scanner
        start = scanner.at
        if not scanner.take("(?"):
            return None
        changed = self.read_options(options)
        if changed is None or not scanner.take(")"):
            scanner.at = start
            return None
        return Group(self.alternatives(changed, depth + 1), captures=False)

    # --------------------------------------------------------------------------------------------------- quantifiers

    def quantified(self, options: Options, depth: int) -> Draft:
        """Read one thing and the quantifiers on it."""
        scanner = self.scanner
        target = self.atom(options, depth)
        lead: list[Draft] = []
        for _ in range(DEPTH_LIMIT):
            self.skip_comments(options)
            quantifier = self.read_quantifier()
            if quantifier is None:
                break
            minimum, maximum, greedy, possessive = quantifier
            if never_quantified(target):
                scanner.fail("a quantifier on something without a width")
            if minimum == maximum == 1:
                target = replace(target, quantified_whole=False) if isinstance(target, Text) else target
                continue
            if isinstance(target, Text) and len(target.text) > 1 and not target.quantified_whole:
                lead.append(replace(target, text=target.text[:-1]))
                target = replace(target, text=target.text[-1])
            repeat = nest(target, minimum, maximum, greedy)
            target = Atomic(repeat) if possessive else repeat
        else:
            scanner.unsupported(f"a chain of {DEPTH_LIMIT} quantifiers")
        return Sequence((*lead, target)) if lead else target  # type: ignore[arg-type]

    def read_quantifier(self) -> tuple[int, int | None, bool, bool] | None:
        """Read (minimum, maximum, greedy, possessive); None where no quantifier follows."""
        scanner = self.scanner
        if scanner.done or scanner.pattern[scanner.at] not in "?*+{":
            return None
        for sign, (minimum, maximum) in BOUNDS.items():
            if scanner.take(sign):
                if scanner.take("?"):
                    return minimum, maximum, False, False
                return minimum, maximum, True, scanner.take("+")
        return self.read_interval()

    def read_interval(self) -> tuple[int, int | None, bool, bool] | None:
        """Read `{2}`, `{2,}`, `{,3}`, `{2,3}`, or `{3,2}`, which is possessive. Any other brace is a character."""
        scanner = self.scanner
        start = scanner.at
        scanner.at += 1
        low = scanner.run(DIGITS, len(scanner.pattern))
        comma = scanner.take(",")
        high = scanner.run(DIGITS, len(scanner.pattern)) if comma else low
        if any(len(number) > 9 or int(number or 0) > REPEAT_LIMIT for number in (low, high)):
            scanner.fail(f"a quantifier counts to {REPEAT_LIMIT} at most")
        if not (low or high) or not scanner.take("}"):
            scanner.at = start
            return None
        minimum, maximum = int(low or 0), int(high) if high else None
        if maximum is not None and maximum < minimum:
            return maximum, minimum, True, True
        return minimum, maximum, not (comma and scanner.take("?")), False

    # --------------------------------------------------------------------------------------------------------- atoms

    def atom(self, options: Options, depth: int) -> Draft:
        """Read one thing: a group, a class, an anchor, an escape, or as many plain characters as there are."""
        scanner = self.scanner
        if self.read_quantifier() is not None:
            scanner.fail("a quantifier with nothing before it")
        character = scanner.next("a pattern")
        if character == "(":
            return self.group(options, depth)
        if character == "[":
            members, negated = read_class(scanner, options)
            if options.ignore_case:
                return Class(members, negated)
            return Set(~members if negated else members)
        if character == ".":
            return Set(ALL if options.dot_matches_newline else ~NEWLINE)
        if character in "^$":
            return Anchor(ANCHORS[character])
        if character == "\\":
            return self.escape(options)
        return Text(character, options.ignore_case)

    def escape(self, options: Options) -> Draft:
        """Read an escape, the backslash being read."""
        scanner = self.scanner
        if scanner.done:
            scanner.fail("the pattern ends in an escape")
        letter = scanner.pattern[scanner.at]
        following = scanner.pattern[scanner.at + 1 : scanner.at + 2]
        if (letter in "kg" and following in ("<", "'")) or letter in "123456789":
            self.refuse_reference(letter)
        if letter in "XyY":
            scanner.unsupported(f"\\{letter} (text segments)")
        if letter in "pP" and following == "{":
            scanner.at += 2
            return Set(read_property(scanner, options, letter == "P", in_bracket=False))
        members = read_class_escape(letter, options, in_bracket=False)
        if members is not None:
            scanner.at += 1
            return Set(members)
        if f"\\{letter}" in ANCHORS:
            scanner.at += 1
            return Anchor(ANCHORS[f"\\{letter}"])
        if letter in "bB":
            scanner.at += 1
            word = oniguruma_class("escape:w")
            assert word is not None
            word = word & ASCII if options.limits("w") else word
            return Anchor("word boundary" if letter == "b" else "no word boundary", word)
        special: dict[str, Node] = {
            "K": Keep(),
            "R": Atomic(Alternation((Sequence((_only("\r"), _only("\n"))), Set(NEWLINES)))),
            "N": Set(~NEWLINE),
            "O": Set(ALL),
        }
        if letter in special:
            scanner.at += 1
            return special[letter]
        codes = read_character_escape(scanner, in_bracket=False)
        return Text("".join(map(chr, codes)), options.ignore_case)

    def refuse_reference(self, letter: str) -> None:
        """Refuse a backreference or a call. `\\10` and more is octal where there are not that many groups."""
        digits = self.scanner.pattern[self.scanner.at :]
        number = digits[: len(digits) - len(digits.lstrip(DIGITS))]
        if letter in "kg" or len(number) == 1 or (len(number) < 5 and int(number) <= self.captures):
            self.scanner.unsupported("a call of a group" if letter == "g" else "a backreference")
        if letter in "89":
            return

    # --------------------------------------------------------------------------------------------------------- groups

    def group(self, options: Options, depth: int) -> Draft:
        """Read a group, the opening bracket being read."""
        scanner = self.scanner
        if scanner.peek("*"):
            scanner.unsupported("a callout (*name)")
        if not scanner.take("?"):
            self.captures += 1
            return Group(self.closed(options, depth), captures=True)
        for sign, behind, negated in (("=", 0, 0), ("!", 0, 1), ("<=", 1, 0), ("<!", 1, 1)):
            if scanner.take(sign):
                body = self.closed(options, depth)
                look = Look(body, bool(behind), bool(negated))  # type: ignore[arg-type]
                if behind:
                    self.check_look_behind(look)
                return look
        if scanner.take(":"):
            body = self.closed(options, depth)
            return replace(body, quantified_whole=True) if isinstance(body, Text) else body
        if scanner.take(">"):
            return Atomic(self.closed(options, depth))  # type: ignore[arg-type]
        for opening, what in (
            ("(", "a condition (?(...)...)"),
            ("{", "a callout (?{...})"),
            ("~", "an absent operator (?~...)"),
        ):
            if scanner.peek(opening):
                scanner.unsupported(what)
        if scanner.peek("<") or scanner.peek("'"):
            return self.named_group(options, depth)
        changed = self.read_options(options)
        if changed is None:
            scanner.fail("an unknown kind of group")
        if not scanner.take(":"):
            scanner.fail("an unknown option of a group")
        return Group(self.closed(changed, depth), captures=False)

    def closed(self, options: Options, depth: int) -> Draft:
        """Read the inside of a group and its closing bracket."""
        body = self.alternatives(options, depth + 1)
        if not self.scanner.take(")"):
            self.scanner.fail("the pattern ends where a ) should stand")
        return body

    def named_group(self, options: Options, depth: int) -> Draft:
        """Read `(?<name>...)`; without references a name means nothing, but it has to be one."""
        scanner = self.scanner
        end = ">" if scanner.next("a name") == "<" else "'"
        start = scanner.at
        while (character := scanner.next(f"the {end} of a name")) != end:
            if character in "()":
                scanner.fail("the name of a group has no end")
        name = scanner.pattern[start : scanner.at - 1]
        word = oniguruma_class("escape:w")
        assert word is not None
        if not name or name[0] in DIGITS or ord(name[0]) not in word:
            scanner.fail(f"{name!r} is no name of a group")
        self.captures += 1
        return Group(self.closed(options, depth), captures=True)

    def read_options(self, options: Options) -> Options | None:
        """Read the letters of `(?im-x:` up to the colon or bracket; None where these are no options."""
        scanner = self.scanner
        on = True
        if not scanner.done and scanner.pattern[scanner.at] not in "imxWDSPyCIL-":
            return None
        while not (scanner.peek(":") or scanner.peek(")")):
            letter = scanner.next("the end of an option group")
            if letter == "-":
                on = False
            elif letter == "i":
                options = replace(options, ignore_case=on)
            elif letter == "m":
                options = replace(options, dot_matches_newline=on)
            elif letter == "x":
                options = replace(options, extended=on)
            elif letter in "WDSP":
                limited = options.ascii_only | {letter} if on else options.ascii_only - {letter}
                options = replace(options, ascii_only=frozenset(limited))
            elif letter in "yCIL":
                scanner.unsupported(f"the option (?{letter})")
            else:
                scanner.fail(f"{letter!r} is no option of a group")
        return options

    # ------------------------------------------------------------------------------------------------------ the end

    def check_look_behind(self, look: Look) -> None:
        """Refuse in a look-behind what Oniguruma refuses there."""
        for node in descendants(look.body):
            wrong = isinstance(node, Look) and (not node.behind or (node.negated and not look.negated))
            wrong |= isinstance(node, Anchor) and node.kind in ("text end", "last line end")
            wrong |= isinstance(node, Group) and node.captures and look.negated
            if wrong:
                self.scanner.fail("something that a look-behind cannot contain")

    def resolve(self, draft: Draft, in_look_behind: bool) -> Node:
        """Turn a draft into the tree."""
        match draft:
            case Text():
                if draft.ignore_case:
                    nodes = fold_text(draft.text, in_look_behind)
                else:
                    nodes = [_only(character) for character in draft.text]
                return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))
            case Class():
                return fold_class(draft.members, draft.negated)
            case Group():
                return self.resolve(draft.body, in_look_behind)
            case Sequence(parts):
                resolved = [self.resolve(part, in_look_behind) for part in parts]
                return Sequence(
                    tuple(p for part in resolved for p in (part.parts if isinstance(part, Sequence) else [part]))
                )
            case Alternation(branches):
                return Alternation(tuple(self.resolve(branch, in_look_behind) for branch in branches))
            case Repeat():
                if draft.maximum == 0:
                    return EMPTY_SEQUENCE
                repeat = replace(draft, body=self.resolve(draft.body, in_look_behind))
                self.check_count(repeat)
                return repeat
            case Atomic():
                return Atomic(self.resolve(draft.body, in_look_behind))
            case Look():
                look = replace(draft, body=self.resolve(draft.body, in_look_behind or draft.behind))
                self.check_look(look)
                return look
            case _:
                return draft

    def check_count(self, repeat: Repeat) -> None:
        """Refuse `(?:^a*){2}`: whether an empty round ends such a loop depends on how long Oniguruma's program is."""
        if repeat.minimum > 1 and minimum_length(repeat.body) == 0:
            for node in descendants(repeat.body):
                if isinstance(node, Anchor | Look):
                    self.scanner.unsupported("a count of something that can be empty and depends on its surroundings")

    def check_look(self, look: Look) -> None:
        r"""Refuse a look-behind that is too long, and `\K` in any look-around.

        In a look-behind Oniguruma steps back by the wrong length over `\R`, and gives odd answers to atomic groups.
        """
        if look.behind and any(isinstance(node, Atomic) for node in descendants(look.body)):
            self.scanner.unsupported("\\R, a possessive quantifier or an atomic group in a look-behind")
        inner = [node for node in descendants(look.body) if look.behind and isinstance(node, Look) and node.negated]
        if any(minimum_length(node.body) == 0 for node in inner):
            # It never holds, and Oniguruma takes it for something empty that always does.
            self.scanner.unsupported("a negative look-behind of something that can be empty in a look-behind")
        if any(isinstance(node, Keep) for node in descendants(look.body)):
            self.scanner.unsupported("\\K in a look-around")
        longest = maximum_length(look.body)
        if look.behind and max(longest or 0, minimum_length(look.body)) > LOOK_BEHIND_LIMIT:
            self.scanner.unsupported(f"a look-behind of more than {LOOK_BEHIND_LIMIT} characters")


@lru_cache(maxsize=1024)
def _only(character: str) -> Set:
    return Set(CodePointSet.from_characters(character))
