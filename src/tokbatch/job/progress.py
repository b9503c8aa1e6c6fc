"""How far a job is, for people: a bar where stderr is a terminal, a plain line now and then where it is a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from typing import IO, Any, Protocol

PLAIN_LINE_SECONDS = 10.0
SKIPPED_SHOWN = 3


class Progress(Protocol):
    """What `run_job` tells about its work. Bytes are those of the texts."""

    def start(self, total_bytes: int, done_bytes: int) -> None:
        """Begin; some bytes may be done already, by an earlier attempt."""

    def update(self, done_bytes: int) -> None:
        """Say how many bytes are done in all."""

    def note(self, text: str) -> None:
        """Say a line."""

    def finish(self) -> None:
        """End, whether the job is done or not."""


class Silence:
    """Say nothing."""

    def start(self, total_bytes: int, done_bytes: int) -> None:
        """See `Progress`."""

    def update(self, done_bytes: int) -> None:
        """See `Progress`."""

    def note(self, text: str) -> None:
        """See `Progress`."""

    def finish(self) -> None:
        """See `Progress`."""


class PlainLines:
    """Lines in a log."""

    def __init__(self, stream: IO[str] | None = None, every_seconds: float = PLAIN_LINE_SECONDS):
        self._stream = stream or sys.stderr
        self._every = every_seconds
        self._total = self._first = 0
        self._is_under_way = False
        self._began = self._said = time.monotonic()

    def start(self, total_bytes: int, done_bytes: int) -> None:
        """See `Progress`."""
        self._total, self._first = total_bytes, done_bytes
        self._began = self._said = time.monotonic()
        self._is_under_way = False

    def update(self, done_bytes: int) -> None:
        """See `Progress`."""
        now = time.monotonic()
        if not self._is_under_way and done_bytes > self._first:
            # What was there before is not of this attempt, and the start of the workers says nothing about the rest.
            self._first, self._began, self._is_under_way = done_bytes, now, True
        if now - self._said < self._every:
            return
        self._said = now
        elapsed = now - self._began
        speed = (done_bytes - self._first) / elapsed if elapsed > 0 else 0.0
        left = (self._total - done_bytes) / speed if speed > 0 else None
        self.note(
            f"{100 * done_bytes / max(1, self._total):5.1f} %  {megabytes(done_bytes)} of {megabytes(self._total)}"
            + (f"  {rate(done_bytes - self._first, elapsed)}" if speed > 0 else "")
            + (f"  {duration(left)} left" if left is not None else "")
        )

    def note(self, text: str) -> None:
        """See `Progress`."""
        print(text, file=self._stream, flush=True)

    def finish(self) -> None:
        """See `Progress`."""


class Bar:
    """A bar with rate and time left, by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as RichProgress

        self._console = Console(stderr=True, highlight=False)
        self._bar = RichProgress(
            TextColumn("tokenizing"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task: Any = None

    def start(self, total_bytes: int, done_bytes: int) -> None:
        """See `Progress`."""
        self._bar.start()
        self._task = self._bar.add_task("tokenizing", total=max(1, total_bytes), completed=done_bytes)

    def update(self, done_bytes: int) -> None:
        """See `Progress`."""
        self._bar.update(self._task, completed=done_bytes)

    def note(self, text: str) -> None:
        """See `Progress`."""
        self._console.print(text, markup=False)

    def finish(self) -> None:
        """See `Progress`."""
        self._bar.stop()


def progress_for_people() -> Progress:
    """Give the bar where stderr is a terminal, else plain lines."""
    return Bar() if sys.stderr.isatty() else PlainLines()


def megabytes(count: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def count(number: int, noun: str) -> str:
    """Write a number of things for people."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def skipped(names: Collection[str]) -> str:
    """Say that inputs were left out, and which, after something else; nothing where there are none."""
    if not names:
        return ""
    shown = ", ".join(list(names)[:SKIPPED_SHOWN]) + (", ..." if len(names) > SKIPPED_SHOWN else "")
    return f"; {count(len(names), 'input')} SKIPPED ({shown})"


def left_out_of_rows(documents: int, tokens: int) -> str:
    """Say that documents were dropped by packing, or cut off, after something else; nothing where none were."""
    if documents:
        return f"; {count(documents, 'document')} DROPPED ({count(tokens, 'token')})"
    return f"; {count(tokens, 'token')} CUT OFF from the ends of documents" if tokens else ""


def rate(size: float, seconds: float) -> str:
    """Write a rate for people."""
    return f"{megabytes(size / seconds)}/s"


def duration(seconds: float) -> str:
    """Write a time for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
