"""The programs of `pattern_machine.py`: instructions made of a pattern's tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.errors import UnsupportedError
from tokbatch.spec.regex_tree import (
    Alternation,
    Anchor,
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

PROGRAM_LIMIT = 200_000

# An instruction is (operation, argument, argument):
SET = 0  # one character of some classes
SPLIT = 1  # go on at one instruction, and at another if that fails
LOOP = 2  # the same; but straight to the other where the next character is in none of some classes
JUMP = 3  # to an instruction
ENTER_ROUND = 4  # of a loop whose body can be empty; the argument is the loop's bit
END_ROUND = 5  # ... and to an instruction, if the round was empty
ANCHOR = 6  # kind, and the classes of word characters
LOOK = 7  # a `Look`, and whether it must not find anything
ATOMIC = 8  # a program that runs as a whole
KEEP = 9
MATCH = 10
Instruction = tuple[int, Any, Any]


@dataclass(slots=True, eq=False)
class Program:
    r"""Instructions of a tree, or of the inside of an atomic group or a look-around. `keeps`: there is a `\K` in it."""

    code: list[Instruction]
    keeps: bool
    is_inner: bool


@dataclass(frozen=True, slots=True, eq=False)
class LookProgram:
    """The inside of a look-around; a look-behind has the least and the greatest length of its match."""

    program: Program
    reach: tuple[int, int | None] | None


def compile_program(tree: Node, alphabet: Alphabet) -> Program:
    """Write the program of a tree. Counted repeats are written out; what gets too long is an `UnsupportedError`."""
    return _Compiler(alphabet).program(tree, is_inner=False)


class _Compiler:
    """From tree to program."""

    def __init__(self, alphabet: Alphabet):
        self.alphabet = alphabet
        self.loops = 0
        self.size = 0

    def program(self, tree: Node, is_inner: bool) -> Program:
        code: list[Instruction] = []
        self.emit(tree, code)
        code.append((MATCH, None, None))
        return Program(code, _keeps(tree), is_inner)

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
                code.append((ATOMIC, self.program(node.body, is_inner=True), None))
            case Look():
                reach = (minimum_length(node.body), maximum_length(node.body)) if node.behind else None
                code.append((LOOK, LookProgram(self.program(node.body, is_inner=True), reach), node.negated))
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
        """Write a loop without an end. A round that matched the empty text leaves it.

        Oniguruma looks at the next character before each round of a greedy loop whose body begins with a fixed one, and
        does not count that as a try.
        """
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
        head = _head(node.body)
        if not node.greedy:
            code[split] = (SPLIT, len(code), split + 1)
        elif head is None or can_be_empty:
            code[split] = (SPLIT, split + 1, len(code))
        else:
            code[split] = (LOOP, self.alphabet.classes_in(head.members), len(code))


def _head(node: Node) -> Set | None:
    """Give the one character that a node always begins with."""
    if isinstance(node, Set):
        return node if len(node.members) == 1 else None
    if isinstance(node, Sequence | Atomic):
        inner = children(node)
        return _head(inner[0]) if inner else None
    if isinstance(node, Repeat) and node.minimum > 0:
        return _head(node.body)
    return None


def _keeps(node: Node) -> bool:
    return isinstance(node, Keep) or any(map(_keeps, children(node)))
