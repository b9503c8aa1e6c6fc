r"""A backtracking machine for the patterns that Python's `re` cannot run, or cannot run in time.

It tries what Oniguruma tries, in the same order, but remembers at which (instruction, position) it failed, so that it
never fails there twice: its time grows with the length of the text where a backtracker's can double with each
character. It still knows how often a backtracker would have gone back, and stops where the oracle stops: Oniguruma
gives up after ten million times from one starting point (`retry-limit-in-match over`, on which `tokenizers` panics).
That count is a model, since Oniguruma optimizes its programs; the border can lie a little elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.engine.reference.pattern_analysis import may_begin
from tokbatch.engine.reference.pattern_program import (
    ANCHOR,
    ATOMIC,
    END_ROUND,
    ENTER_ROUND,
    JUMP,
    KEEP,
    LOOK,
    LOOP,
    MATCH,
    SET,
    SPLIT,
    LookProgram,
    Program,
    compile_program,
)
from tokbatch.errors import EncodeError
from tokbatch.spec.regex_tree import Anchor, AnchorKind, Node, children, minimum_length

RETRY_LIMIT = 10_000_000
STEP_LIMIT = 50_000_000
STEPS_A_CHARACTER = 1_000
# A look-behind that reaches back further than this is looked up in a sweep over the whole text.
SHORT_REACH = 32

State = tuple[int, int, int]  # instruction, position, loops in whose round nothing was matched yet


class Machine:
    """A compiled tree."""

    def __init__(self, tree: Node, alphabet: Alphabet):
        self.alphabet = alphabet
        self.program = compile_program(tree, alphabet)
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


@dataclass(slots=True)
class _Memory:
    r"""What one program is known to do in one text.

    `failed` maps a state to the number of times a backtracker goes back before it has failed there, `succeeded` a state
    to (end of the match, that number); `results` maps a position to (end, place of `\K`, that number) for programs that
    run as a whole.
    """

    failed: dict[State, int] = field(default_factory=dict)
    succeeded: dict[State, tuple[int, int]] = field(default_factory=dict)
    results: dict[int, tuple[int | None, int | None, int]] = field(default_factory=dict)


class _Run:
    """The machine at work on one text."""

    def __init__(self, machine: Machine, text: str):
        self.machine = machine
        self.codes = machine.alphabet.numbered(text)
        self.text = text
        self.memories: dict[Program, _Memory] = {}
        self.swept: dict[LookProgram, bytearray] = {}
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
        succeeded = memory.succeeded if program.is_inner and not program.keeps and target is None else None
        length = len(codes)
        # Ways not taken: instruction, position, rounds, place of \K, and how much of the trail lies before.
        pending: list[tuple[int, int, int, int | None, int]] = []
        # States gone through that have not failed yet, each with the number of retries at that time.
        trail: list[tuple[State, int]] = []
        at, position, rounds = 0, start, 0
        kept: int | None = None
        end: int | None = None
        while end is None:
            operation, first, second = code[at]
            self.steps += 1
            if operation == SET:
                if position < length and codes[position] in first:
                    position += 1
                    rounds = 0
                    at += 1
                    continue
            elif operation in (SPLIT, LOOP):
                if operation == LOOP:
                    if position >= length or codes[position] not in first:
                        at = second
                        continue
                    first = at + 1
                state = (at, position, rounds)
                known = failed.get(state)
                if known is None:
                    if succeeded and state in succeeded:
                        end, cost = succeeded[state]
                        self.retries += cost
                        break
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
                    end = position
                    break
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
                inner_end, inner_kept, cost = self.whole(first, position)
                self.retries += cost
                if inner_end is not None:
                    kept = kept if inner_kept is None else inner_kept
                    rounds = 0 if inner_end > position else rounds
                    position = inner_end
                    at += 1
                    continue
            elif operation == LOOK:
                if self.looks(first, position) != second:
                    at += 1
                    continue
            elif self.holds(first, second, position):
                at += 1
                continue

            # Failed here: go back.
            self.retries += 1
            if self.retries > RETRY_LIMIT or self.steps > self.step_limit:
                self.give_up()
            if not pending:
                failed.update((state, self.retries - before) for state, before in trail)
                return None, None
            at, position, rounds, kept, mark = pending.pop()
            while len(trail) > mark:
                state, before = trail.pop()
                failed[state] = self.retries - before
        if succeeded is not None and end is not None:
            succeeded.update((state, (end, self.retries - before)) for state, before in trail)
        return end, kept

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

    def looks(self, look: LookProgram, position: int) -> bool:
        """Say whether a look-around finds its body."""
        if look.reach is None:
            end, _, cost = self.whole(look.program, position)
            self.retries += cost
            return end is not None
        shortest, longest = look.reach
        if longest is None or longest > SHORT_REACH:
            if look not in self.swept:
                self.swept[look] = self.sweep(look.program)
            return bool(self.swept[look][position])
        here = _Memory()
        return any(
            self.run(look.program, here, start, position)[0] is not None
            for start in range(position - shortest, max(0, position - longest) - 1, -1)
        )

    def sweep(self, program: Program) -> bytearray:
        """Mark the positions at which a match ends that begins anywhere: all threads of a program at once."""
        ends = bytearray(len(self.codes) + 1)
        threads: list[int] = []
        for position in range(len(self.codes) + 1):
            reached: set[int] = set()
            waiting: list[int] = []
            pending = [0, *threads]
            while pending:
                at = pending.pop()
                if at in reached:
                    continue
                reached.add(at)
                self.steps += 1
                operation, first, second = program.code[at]
                if operation == SET:
                    waiting.append(at)
                elif operation == SPLIT:
                    pending += (first, second)
                elif operation == LOOP:
                    pending += (at + 1, second)
                elif operation == JUMP:
                    pending.append(first)
                elif operation == MATCH:
                    ends[position] = 1
                elif operation == ANCHOR:
                    if self.holds(first, second, position):
                        pending.append(at + 1)
                elif operation == LOOK:
                    if self.looks(first, position) != second:
                        pending.append(at + 1)
                else:
                    pending.append(at + 1)
            if position < len(self.codes):
                code = self.codes[position]
                threads = [at + 1 for at in waiting if code in program.code[at][1]]
        return ends

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
            hint="tokenizers may answer or fail; a pattern without nested repeats has no such limit",
            code="pattern-gave-up",
        )
