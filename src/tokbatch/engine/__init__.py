"""How text becomes ids: the protocol of an engine, the two engines, the choice between them, and what compares two."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tokbatch.errors import ConfigError, EngineWarning, UnsupportedError

if TYPE_CHECKING:
    from tokbatch.engine.protocol import Engine
    from tokbatch.spec import TokenizerSpec
    from tokbatch.spec.lazy import LazySpec

ENGINES = ("auto", "native", "reference")


def build_engine(spec: TokenizerSpec | LazySpec, engine: str = "auto") -> Engine:
    """Build the engine with this name; "auto" is native, or the reference engine with an `EngineWarning`.

    Raises `ConfigError` for a name that is none, `EngineUnavailableError` for an engine that is not installed, and
    `SpecError` for a spec that no engine can be built from.
    """
    return choose_engine(spec, engine)[0]


def choose_engine(
    spec: TokenizerSpec | LazySpec, engine: str = "auto", cached_pretokens: int | None = None
) -> tuple[Engine, str | None]:
    """Give what `build_engine` gives, and why it is not the native engine although nobody asked for another one.

    `cached_pretokens` is how many of them the native engine remembers; None: its own number.
    """
    if engine not in ENGINES:
        raise ConfigError(f"{engine!r} is no engine", where="engine", hint=f"one of {', '.join(ENGINES)}")
    why_not = None
    if engine != "reference":
        from tokbatch.engine.native import NativeEngine, why_unavailable

        missing = why_unavailable() if engine == "auto" else None
        if missing is None:
            try:
                return NativeEngine(spec, cached_pretokens), None
            except UnsupportedError as error:
                if engine == "native" or error.code != "native-unsupported":
                    raise
                why_not = f"the native engine refuses this tokenizer: {error.where}: {error.message}"
        else:
            why_not = f"the native engine is not installed: {missing}"
        # From here and not from the caller's line: so Python shows it once a process and reason, not once a call.
        warnings.warn(f"{why_not}; the reference engine does the work: exact, and slow", EngineWarning, stacklevel=1)
    from tokbatch.engine.reference.pipeline import ReferenceEngine
    from tokbatch.spec.lazy import LazySpec

    return ReferenceEngine(LazySpec.of(spec).spec), why_not


@contextlib.contextmanager
def engine_told() -> Iterator[None]:
    """Keep `EngineWarning` back: for callers that say themselves which engine works, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineWarning)
        yield
