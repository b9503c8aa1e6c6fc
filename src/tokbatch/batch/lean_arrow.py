"""pyarrow without numpy and pandas: for processes of ours that need neither.

pyarrow imports numpy when it is imported itself, and pandas when it makes the first array of Python values, only to
know their types by sight. Both are optional for it. In a process that starts, does a second of work and ends, they are
a third of its time: 0.1 s and 0.3 s of processor time. Nothing in spec/, engine/, batch/ and job/ uses them, but
`datasets` does, and so does a user's own program: such processes never call this.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

_HIDDEN = ("numpy", "pandas")


def import_lean_arrow() -> bool:
    """Import pyarrow so that it knows of neither. False, and nothing done, where one of the three is there already.

    numpy and pandas themselves can be imported afterwards, but pyarrow no longer takes their arrays.
    """
    if "pyarrow" in sys.modules or any(name in sys.modules for name in _HIDDEN):
        return False
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(_HIDDEN))  # None: the import fails as if nothing were installed
    try:
        arrow = importlib.import_module("pyarrow")
        for name in ("pyarrow.compute", "pyarrow.parquet"):
            importlib.import_module(name)
        arrow.array([0])  # here it looks for pandas, once and for all
    finally:
        for name in _HIDDEN:
            del modules[name]
    return True
