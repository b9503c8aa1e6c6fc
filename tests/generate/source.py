"""Where random choices come from: one generator of tokenizers and texts serves Hypothesis and a seeded script.

Everything is derived from `integer`. Hypothesis shrinks integers towards their lower bound, so the plain choice
always comes first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Source:
    """Choices, derived from one function that gives an integer between two bounds (both included)."""

    def __init__(self, integer: Callable[[int, int], int]):
        self.integer = integer

    def choose(self, values: Sequence[T]) -> T:
        """Give one of the values; the first is the plainest."""
        return values[self.integer(0, len(values) - 1)]

    def chance(self, percent: int) -> bool:
        """Give True in `percent` of a hundred cases."""
        return self.integer(0, 99) >= 100 - percent

    def several(self, make: Callable[[], T], at_least: int, at_most: int) -> list[T]:
        """Call `make` a few times."""
        return [make() for _ in range(self.integer(at_least, at_most))]

    def subset(self, values: Sequence[T], percent: int) -> list[T]:
        """Keep `percent` of a hundred values, in order."""
        return [value for value in values if self.chance(percent)]


def seeded(seed: int) -> Source:
    """Make a source for a script: the same seed, the same choices."""
    return Source(random.Random(seed).randint)


class Draw(Protocol):
    """What Hypothesis hands to a composite strategy."""

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any:
        """Give a value of the strategy."""


def drawn(draw: Draw) -> Source:
    """Make a source out of Hypothesis's choices."""
    return Source(lambda low, high: int(draw(st.integers(low, high))))
