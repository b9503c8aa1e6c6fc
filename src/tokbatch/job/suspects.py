"""Which row of a shard is it that ends every worker? Found by halving: half the rows of what is left, and again.

A `Hunt` only keeps the score: `run.py` gives its probes to workers and says how they ended. About log2(rows) workers
die for one row. What is not decided here is what becomes of the row (`run.on_bad_row`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

Rows = tuple[int, int]
"""The first row of the file, and the one after the last."""

MOST_ROWS = 32
"""How many rows of a shard may be given up: a shard with more of them has another trouble than its rows."""


@dataclass
class Hunt:
    """The search for one row among `rows`, which together end a worker (for `reason`).

    The first probe has no rows at all: a worker that dies of that does not die of a row. A worker that died had told
    how far it was, so it is worth to look there next: `guess` is the first row that was not known to be done. Where
    all is well from there on, the whole is halved.
    """

    rows: Rows
    reason: str
    guess: int | None = None
    found: int | None = None
    is_over: bool = False
    probe: Rows = field(init=False)

    def __post_init__(self) -> None:
        self._low, self._high = self.rows
        if self.guess is not None and not self._low < self.guess < self._high:
            self.guess = None
        self.probe = (self._low, self._low)

    def died(self, reason: str) -> None:
        """The probe has ended its worker."""
        self.reason = reason
        low, high = self.probe
        if low == high:
            self.is_over = True
        elif high - low == 1:
            self.found, self.is_over = low, True
        else:
            self._low, self._high = low, high
            self.probe = self._first_half()

    def passed(self) -> None:
        """The probe has come to its end: so it is one of the other rows, or none by itself."""
        low, high = self.probe
        if low == high and self.guess is not None:
            self.probe = (self.guess, self._high)
        elif low == high or low == self.guess:
            self.probe = self._first_half()
        elif high == self._high:
            self.is_over = True  # The last row left is as good as the others: none does it alone.
        else:
            self._low = high
            self.probe = self._first_half()
        if low != high:
            self.guess = None

    def _first_half(self) -> Rows:
        return self._low, self._low + max(1, (self._high - self._low) // 2)
