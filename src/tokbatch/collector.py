"""Python's collector of garbage, and when it would only cost time."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_collecting(*, for_good: bool = False) -> Iterator[None]:
    """Do what makes many objects and no cycles of garbage, without a look at all of them again and again.

    `for_good`: what is there afterwards is never looked at, as what imports make, which stays to the end.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if was_enabled:
            gc.enable()
