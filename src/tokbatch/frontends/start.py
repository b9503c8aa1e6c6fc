"""Where the command starts: what a Ctrl-C does has to be settled before the imports, which take a while.

The commands are in `cli.py`.
"""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn


def main() -> None:
    """Run the command line; the entry point of the installed `tokbatch`."""
    leave_when_told()
    from tokbatch.frontends.cli import main

    main()


def leave_when_told() -> None:
    """End at once by Ctrl-C, and by what a preempted machine or a batch system sends: there is nothing to put in order.

    As an exception it would come out of an import, or out of what an earlier one is ending, with a traceback.
    """
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)


def interrupt_when_told() -> None:
    """Raise a `KeyboardInterrupt` the first time, from now on: there are workers to end and a lock to give back.

    Only in a process that is the command's own.
    """
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: Any) -> NoReturn:
    leave_when_told()  # Who does not want to wait tells us again.
    raise KeyboardInterrupt


def _leave(number: int, frame: Any) -> NoReturn:
    os.write(2, b"interrupted\n")
    os._exit(130)
