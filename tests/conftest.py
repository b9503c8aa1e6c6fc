"""Fixtures that every folder of tests shares: the engine under test, the oracle, the material beside the checkout."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tokbatch.engine import native, table_cache

TESTS = pathlib.Path(__file__).resolve().parent
# So that tests can say `from oracles import oracle` and `import strategies` in pytest's importlib mode too.
sys.path.insert(0, str(TESTS))

# The engines that are installed. Every test of what an engine does takes the `engine` fixture and runs once for each;
# `test_engine_fixture.py` sees to it that the native one is not missing where it could be there.
ENGINES = ["reference"] if native.why_unavailable() else ["reference", "native"]


@pytest.fixture(scope="session", autouse=True)
def _no_cache_but_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tables in a folder of the tests, also those of the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(table_cache.SETTING, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=ENGINES, scope="session")
def engine(request: pytest.FixtureRequest) -> str:
    """Name of the engine under test."""
    return str(request.param)


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """The module `tests/oracles/oracle.py`, the one way to `tokenizers` itself."""
    from oracles import oracle as module

    return module


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder `shared` beside the checkout: real tokenizers, cases and a corpus, too large to commit.

    A test that takes it is skipped where the folder is absent. Where it is there but lacks a part, that is no reason
    to skip in continuous integration (`CI=true`): nobody would notice that the test no longer runs.
    """
    folder = TESTS.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"no acceptance material at {folder}")
    missing = [part for part in ("tokenizers", "cases", "corpus") if not any((folder / part).glob("*"))]
    if missing:
        reason = f"{folder} lacks {', '.join(missing)}"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes the `shared` fixture, so that `-m "not shared"` leaves it out."""
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("shared")
