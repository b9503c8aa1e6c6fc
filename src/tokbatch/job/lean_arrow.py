"""pyarrow without what it loads for others: for processes of ours that need none of it.

pyarrow imports numpy when it is imported itself, and pandas when it makes the first array of Python values, only to
know their types by sight; `pyarrow.compute` parses the documentation of all its functions for their wrappers;
`multiprocess` takes dill where that is. All of it is optional. In a process that starts, does a second of work and
ends, it is a third of its time: 0.1 s, 0.3 s, 0.03 s and 0.04 s of processor time. Nothing in spec/, engine/, batch/
and job/ uses it, but `datasets` does, and so does a user's own program: such processes never call this.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from tokbatch.collector import without_collecting

_HIDDEN = ("numpy", "pandas", "dill")
_READER_OF_DOCUMENTATION = "pyarrow.vendored.docscrape"


def import_lean_arrow() -> bool:
    """Import pyarrow so that it knows of neither. False, and nothing done, where one of them is there already.

    numpy and pandas themselves can be imported afterwards, but pyarrow no longer takes their arrays. `multiprocess`
    pickles as the standard library does, unless it was there before, as it is in a worker.
    """
    if "pyarrow" in sys.modules or any(name in sys.modules for name in ("numpy", "pandas")):
        return False
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in _HIDDEN if name not in modules]
    modules.update(dict.fromkeys(hidden))  # None: the import fails as if nothing were installed
    try:
        with without_collecting(for_good=True):
            importlib.import_module("multiprocess.connection")
            arrow = importlib.import_module("pyarrow")
            _import_compute()
            importlib.import_module("pyarrow.parquet")
        arrow.array([0])  # here it looks for pandas, once and for all
    finally:
        for name in hidden:
            del modules[name]
    return True


def _import_compute() -> None:
    """Import `pyarrow.compute`; where it can be, without the documentation of the options of its functions."""
    reader = types.ModuleType(_READER_OF_DOCUMENTATION)
    vars(reader)["NumpyDocString"] = lambda documentation: {"Parameters": []}
    sys.modules[_READER_OF_DOCUMENTATION] = reader
    try:
        importlib.import_module("pyarrow.compute")
        return
    except Exception:  # Another version of it wants to know more.
        sys.modules.pop("pyarrow.compute", None)
    finally:
        del sys.modules[_READER_OF_DOCUMENTATION]
    importlib.import_module("pyarrow.compute")
