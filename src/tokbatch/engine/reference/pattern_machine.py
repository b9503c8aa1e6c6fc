r"""A backtracking machine for the patterns that Python's `re` cannot run, or cannot run in time.

It tries what Oniguruma tries, in the same order, but remembers at which (instruction, position) it failed, so that it
never fails there twice: its time grows with the length of the text where a backtracker's can double with each
character. It still knows how often a backtracker would have gone back, and stops where the oracle stops: Oniguruma
gives up after ten million times from one starting point (`retry-limit-in-match over`, on which `tokenizers` panics).
That count is a model, since Oniguruma optimizes its programs; the border can lie a little elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.engine.reference.pattern_analysis import may_begin
from tokbatch.errors import EncodeError, UnsupportedError
from tokbatch.spec.regex_tree import (
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
    children,
    maximum_length,
    minimum_length,
)

RETRY_LIMIT = 10_000_000
PROGRAM_LIMIT = 200_000
STEP_LIMIT = 100_000_000
STEPS_A_CHARACTER = 400

# Instructions: (operation, argument, argument).
SET, SPLIT, JUMP, ENTER_ROUND, END_ROUND, ANCHOR, LOOK, ATOMIC, KEEP, MATCH = range(10)
Instruction = tuple[int, Any, Any]


class Machine:
    """A compiled tree."""

    def __init__(self, tree: Node, alphabet: Alphabet):
        self.alphabet = alphabet
        self.program = _Compiler(alphabet).program(tree)
        self._first = may_begin(tree, alphabet)
        self._can_be_empty = minimum_length(tree) == 0
        self._forgets = _has_search_start(tree)

    def spans(self, text: str, begin: int = 0) -> list[tuple[int, int]]:
        """Give the matches as `find_iter` of the oracle gives them, from a position on that follows a match.

        An empty match right after a match does not count: the search goes on one character further.
        """
        run = _Run(self, text)
        spans: list[tuple[int, int]] = []
        at, last_end = begin, (begin if begin else None)
        while at <= len(text):
            found = run.find(at)
            if found is None:
                break
            start, end = found
            if start == end == last_end:
                at += 1
                continue
            spans.append((start, end))
            at = last_end = end
        return spans

    def can_begin_with(self, number: int | None) -> bool:
        """Say whether a match can begin with a character of this class (None: at the end of the text)."""
        return self._can_be_empty if number is None else number in self._first

    @property
    def forgets(self) -> bool:
        r"""True where what fails in one search may not fail in the next (`\G`)."""
        return self._forgets


def _has_search_start(node: Node) -> bool:
    return (isinstance(node, Anchor) and node.kind == "search start") or any(map(_has_search_start, children(node)))


class _Compiler:
    """From tree to program."""

    def __init__(self, alphabet: Alphabet):
        self.alphabet = alphabet
        self.loops = 0
        self.size = 0

    def program(self, tree: Node) -> Program:
        code: list[Instruction] = []
        self.emit(tree, code)
        code.append((MATCH, None, None))
        return Program(code)

    def emit(self, node: Node, code: list[Instruction]) -> None:
        self.size += 1
        if self.size > PROGRAM_LIMIT:
            raise UnsupportedError(
                f"a regular expression of more than {PROGRAM_LIMIT} steps, counts written out, is not reproduced"
            )
        match node:
            case Set(members):
                code.append((SET, self.alphabet.classes_in(members), None))
            case Sequence(parts):
                for part in parts:
                    self.emit(part, code)
            case Alternation(branches):
                self.alternation(branches, code)
            case Repeat():
                self.repeat(node, code)
            case Atomic():
                code.append((ATOMIC, self.program(node.body), None))
            case Look():
                reach = (minimum_length(node.body), maximum_length(node.body)) if node.behind else None
                code.append((LOOK, (self.program(node.body), reach), node.negated))
            case Anchor():
                word = None if node.word is None else self.alphabet.classes_in(node.word)
                code.append((ANCHOR, node.kind, word))
            case Keep():
                code.append((KEEP, None, None))

    def alternation(self, branches: tuple[Node, ...], code: list[Instruction]) -> None:
        jumps = []
        for branch in branches[:-1]:
            split = len(code)
            code.append((SPLIT, split + 1, None))
            self.emit(branch, code)
            jumps.append(len(code))
            code.append((JUMP, None, None))
            code[split] = (SPLIT, split + 1, len(code))
        self.emit(branches[-1], code)
        for jump in jumps:
            code[jump] = (JUMP, len(code), None)

    def repeat(self, node: Repeat, code: list[Instruction]) -> None:
        can_be_empty = minimum_length(node.body) == 0
        for _ in range(node.minimum):
            self.emit(node.body, code)
        if node.maximum is None:
            self.loop(node, can_be_empty, code)
            return
        splits = []
        for _ in range(node.maximum - node.minimum):
            splits.append(len(code))
            code.append((SPLIT, None, None))
            self.emit(node.body, code)
        for split in splits:
            ways = (split + 1, len(code))
            code[split] = (SPLIT, *(ways if node.greedy else ways[::-1]))

    def loop(self, node: Repeat, can_be_empty: bool, code: list[Instruction]) -> None:
        """Write a loop without an end. A round that matched the empty text leaves it."""
        split = len(code)
        code.append((SPLIT, None, None))
        bit = 0
        if can_be_empty:
            bit = 1 << self.loops
            self.loops += 1
            code.append((ENTER_ROUND, bit, None))
        self.emit(node.body, code)
        if can_be_empty:
            code.append((END_ROUND, bit, len(code) + 2))
        code.append((JUMP, split, None))
        ways = (split + 1, len(code))
        code[split] = (SPLIT, *(ways if node.greedy else ways[::-1]))


@dataclass(slots=True, eq=False)
class Program:
    """Instructions of a tree or of the inside of an atomic group or a look-around."""

    code: list[Instruction]


@dataclass(slots=True)
class _Memory:
    r"""What one program is known to do in one text.

    `failed` maps a state to the number of times a backtracker goes back before it has failed there; `results` maps a
    position to (end, place of `\K`, that number) for programs that run as a whole.
    """

    failed: dict[tuple[int, int, int], int] = field(default_factory=dict)
    results: dict[int, tuple[int | None, int | None, int]] = field(default_factory=dict)


class _Run:
    """The machine at work on one text."""

    def __init__(self, machine: Machine, text: str):
        self.machine = machine
        self.codes = machine.alphabet.numbered(text)
        self.text = text
        self.memories: dict[Program, _Memory] = {}
        self.search_start = 0
        self.retries = 0
        self.steps = 0
        self.step_limit = STEP_LIMIT + STEPS_A_CHARACTER * len(text)

    def find(self, at: int) -> tuple[int, int] | None:
        """Give the first match from a position on."""
        self.search_start = at
        if self.machine.forgets:
            self.memories.clear()
        memory = self.memory(self.machine.program)
        for start in range(at, len(self.codes) + 1):
            if self.machine.can_begin_with(self.codes[start] if start < len(self.codes) else None):
                self.retries = 0
                end, kept = self.run(self.machine.program, memory, start, None)
                if end is not None:
                    return (start if kept is None else kept), end
        return None

    def memory(self, program: Program) -> _Memory:
        return self.memories.setdefault(program, _Memory())

    def run(self, program: Program, memory: _Memory, start: int, target: int | None) -> tuple[int | None, int | None]:
        r"""Run a program from a position; give the end of its match (None: no match) and the place of its last `\K`.

        With a `target` only a match that ends there counts.
        """
        code, codes, failed = program.code, self.codes, memory.failed
        length = len(codes)
        pending: list[
            tuple[int, int, int, int | None, int]
        ] = []  # ways not taken: instruction, position, rounds, kept, trail
        trail: list[tuple[tuple[int, int, int], int]] = []  # states gone through that have not failed yet
        at, position, rounds = 0, start, 0
        kept: int | None = None
        steps = 0
        while True:
            operation, first, second = code[at]
            steps += 1
            if operation == SET:
                passed = position < length and codes[position] in first
                if passed:
                    position += 1
                    rounds = 0
                    at += 1
                    continue
            elif operation == SPLIT:
                state = (at, position, rounds)
                known = failed.get(state)
                if known is None:
                    trail.append((state, self.retries))
                    pending.append((second, position, rounds, kept, len(trail)))
                    at = first
                    continue
                self.retries += known - 1
            elif operation == JUMP:
                at = first
                continue
            elif operation == MATCH:
                if target is None or position == target:
                    self.steps += steps
                    return position, kept
            elif operation == ENTER_ROUND:
                rounds |= first
                at += 1
                continue
            elif operation == END_ROUND:
                at = second if rounds & first else at + 1
                rounds &= ~first
                continue
            elif operation == KEEP:
                kept = position
                at += 1
                continue
            elif operation == ATOMIC:
                end, inner, cost = self.whole(first, position)
                self.retries += cost
                if end is not None:
                    kept = kept if inner is None else inner
                    if end > position:
                        rounds = 0
                    position = end
                    at += 1
                    continue
            elif operation == LOOK:
                if self.looks(first[0], first[1], position) != second:
                    at += 1
                    continue
            elif self.holds(first, second, position):
                at += 1
                continue

            # Failed here: go back.
            self.retries += 1
            if self.retries > RETRY_LIMIT or self.steps + steps > self.step_limit:
                self.give_up()
            if not pending:
                for state, before in trail:
                    failed[state] = self.retries - before
                self.steps += steps
                return None, None
            at, position, rounds, kept, mark = pending.pop()
            while len(trail) > mark:
                state, before = trail.pop()
                failed[state] = self.retries - before

    def whole(self, program: Program, position: int) -> tuple[int | None, int | None, int]:
        """Run a program as a whole; give what `run` gives, and how often it went back for it."""
        memory = self.memory(program)
        result = memory.results.get(position)
        if result is None:
            before = self.retries
            end, kept = self.run(program, memory, position, None)
            result = memory.results[position] = (end, kept, self.retries - before)
            self.retries = before
        return result

    def looks(self, program: Program, reach: tuple[int, int | None] | None, position: int) -> bool:
        """Say whether a look-ahead (no `reach`) or look-behind (`reach`: lengths) finds its body."""
        if reach is None:
            end, _, cost = self.whole(program, position)
            self.retries += cost
            return end is not None
        memory = self.memory(program)
        result = memory.results.get(position)
        if result is None:
            shortest, longest = reach
            lowest = 0 if longest is None else max(0, position - longest)
            found, here = False, _Memory()
            for start in range(position - shortest, lowest - 1, -1):
                if self.run(program, here, start, position)[0] is not None:
                    found = True
                    break
            result = memory.results[position] = (position if found else None, None, 0)
        return result[0] is not None

    def holds(self, kind: AnchorKind, word: frozenset[int] | None, position: int) -> bool:
        """Say whether an anchor holds at a position."""
        text, length = self.text, len(self.text)
        if word is not None:
            before = position > 0 and self.codes[position - 1] in word
            after = position < length and self.codes[position] in word
            return (before != after) == (kind == "word boundary")
        if kind == "line start":
            return position == 0 or (position < length and text[position - 1] == "\n")
        if kind == "line end":
            return position == length or text[position] == "\n"
        if kind == "text start":
            return position == 0
        if kind == "text end":
            return position == length
        if kind == "last line end":
            return position == length or (position == length - 1 and text[position] == "\n")
        return position == self.search_start

    def give_up(self) -> None:
        raise EncodeError(
            f"a regular expression went back {RETRY_LIMIT:,} times on this text without an answer",
            hint="tokenizers fails on such a text too; a pattern without nested repeats has no such limit",
            code="pattern-gave-up",
        )
