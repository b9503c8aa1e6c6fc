"""How text becomes ids: the protocol of an engine, the reference engine, and what compares two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokbatch.errors import ConfigError

if TYPE_CHECKING:
    from tokbatch.engine.protocol import Engine
    from tokbatch.spec import TokenizerSpec

ENGINES = ("auto", "native", "reference")


def build_engine(spec: TokenizerSpec, engine: str = "auto") -> Engine:
    """Build the engine with this name; "auto" takes the fastest one that is installed.

    Raises `ConfigError` for a name that is none, `EngineUnavailableError` for an engine that is not installed, and
    `SpecError` for a spec that no engine can be built from.
    """
    if engine not in ENGINES:
        raise ConfigError(f"{engine!r} is no engine", where="engine", hint=f"one of {', '.join(ENGINES)}")
    if engine == "native":
        from tokbatch.engine.native import NativeEngine

        return NativeEngine(spec)
    from tokbatch.engine.reference.pipeline import ReferenceEngine

    return ReferenceEngine(spec)
