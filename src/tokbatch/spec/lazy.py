"""A spec whose long tables are read when somebody asks for them, and its packed form.

Most of a tokenizer.json is the entries of its model: the vocabulary and the merges. An engine that finds its tables in
a file (`engine/table_cache.py`) does without them, and so do all who ask for a tokenizer's options or its digest. What
is left of a spec without entries is its *outline*. Packed, a spec is an outline and entries, in the order of the file:
for a file of tables, and for a pickle.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from tokbatch.spec.digest import digest
from tokbatch.spec.models import BPE, Unigram
from tokbatch.spec.tokenizer_spec import TokenizerSpec

ENTRIES = ("vocab", "merges")
"""The fields of models that an outline does without."""
OPTIONS = ("truncation", "padding", "encode_special_tokens")
"""The fields of a spec that can be changed, and that no table of an engine depends on."""


class Source:
    """What a spec comes from: `read` gives it in full, and may refuse.

    `content` is a name for it, a digest: two sources with the same one give the same spec.
    """

    def __init__(self, read: Callable[[Source], TokenizerSpec], content: str | None = None):
        self._read: Callable[[Source], TokenizerSpec] | None = read
        self._content = content
        self._spec: TokenizerSpec | None = None
        self._outline: TokenizerSpec | None = None
        self._entries: Callable[[], Any] | None = None
        self._digest: str | None = None

    @classmethod
    def packed(cls, outline: bytes, entries: Callable[[], Any], content: str) -> Source:
        """Give the source of a spec that was packed."""
        unpacked = unpack_outline(outline)
        source = cls(lambda _: unpack(unpacked, entries()), content)
        source._outline, source._entries = unpacked, entries
        return source

    def is_found(self, outline: TokenizerSpec, entries: Callable[[], Any], digest_of_spec: str) -> bool:
        """Take another packed form of the spec, one that costs no memory; False where it is another spec."""
        if self._outline is not None and self._outline != outline:
            return False
        self._outline, self._entries, self._digest = outline, entries, digest_of_spec
        self._read = lambda _: unpack(outline, entries())
        return True

    def is_of(self, content: str) -> None:
        """Say what it was really read from, where that may have changed since it was named."""
        self._content = content

    @property
    def spec(self) -> TokenizerSpec:
        """All of it. Raises `SpecError` and `UnsupportedError` where it is read from a text that is none."""
        if self._spec is None:
            assert self._read is not None
            self._spec = self._read(self)
            self._read = None
        return self._spec

    @property
    def outline(self) -> TokenizerSpec:
        """All of it but the entries of the model."""
        if self._outline is None:
            empty: dict[str, Any] = {name: type(getattr(self.spec.model, name))() for name in _entries_of(self.spec)}
            model = msgspec.structs.replace(self.spec.model, **empty)
            self._outline = msgspec.structs.replace(self.spec, model=model)
        return self._outline

    @property
    def digest(self) -> str:
        """See `digest.py`."""
        if self._digest is None:
            self._digest = digest(self.spec)
        return self._digest

    @property
    def content(self) -> str:
        """The name, in hexadecimal."""
        if self._content is None:
            self._content = content_name(self.packed_outline(), self.packed_entries())
        return self._content

    def packed_outline(self) -> bytes:
        """Pack the outline."""
        return msgspec.msgpack.encode(self.outline)

    def packed_entries(self) -> Any:
        """Pack the entries: bytes, or a buffer of them."""
        if self._entries is not None:
            return self._entries()
        return msgspec.msgpack.encode([getattr(self.spec.model, name) for name in _entries_of(self.spec)])


class LazySpec:
    """The spec of a source, with other options where some are given."""

    def __init__(self, source: Source, changes: dict[str, Any] | None = None):
        assert set(changes or ()) <= set(OPTIONS)
        self.source = source
        self._changes = changes or {}

    @classmethod
    def of(cls, spec: TokenizerSpec | LazySpec) -> LazySpec:
        """Give a spec in this form."""
        return spec if isinstance(spec, LazySpec) else cls(Source(lambda _: spec))

    def replace(self, **changes: Any) -> LazySpec:
        """Give the spec with other options."""
        return LazySpec(self.source, {**self._changes, **changes})

    @property
    def changes(self) -> dict[str, Any]:
        """The options that are not the source's."""
        has = {name: value for name, value in self._changes.items() if value != getattr(self.source.outline, name)}
        return {name: has[name] for name in OPTIONS if name in has}

    @cached_property
    def spec(self) -> TokenizerSpec:
        """All of it."""
        return msgspec.structs.replace(self.source.spec, **self.changes) if self._changes else self.source.spec

    @property
    def outline(self) -> TokenizerSpec:
        """All of it but the entries of the model."""
        return msgspec.structs.replace(self.source.outline, **self._changes)

    @cached_property
    def digest(self) -> str:
        """See `digest.py`."""
        return digest(self.spec) if self.changes else self.source.digest


def content_name(*parts: Any) -> str:
    """Give the name of what consists of these parts."""
    name = hashlib.sha256()
    for part in parts:
        name.update(part)
        name.update(memoryview(part).nbytes.to_bytes(8, "little"))
    return name.hexdigest()


def content_name_of_file(path: str | os.PathLike[str]) -> str | None:
    """Give the name of a file's content, read piece by piece; None where it is no file that can be read twice.

    Half of the time of loading a large file from tables would go into memory for its text.
    """
    name, piece, size = hashlib.sha256(), bytearray(1 << 18), 0
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(piece):
                name.update(memoryview(piece)[:count])
                size += count
    except (OSError, ValueError, TypeError):
        return None  # whoever reads it says why
    name.update(size.to_bytes(8, "little"))
    return name.hexdigest()


def unpack_outline(packed: Any) -> TokenizerSpec:
    """Give the outline that was packed."""
    return msgspec.msgpack.decode(packed, type=TokenizerSpec)


def unpack(outline: TokenizerSpec, packed_entries: Any) -> TokenizerSpec:
    """Put entries back into an outline."""
    kind: Any = tuple[dict[str, int]]
    if isinstance(outline.model, BPE):
        kind = tuple[dict[str, int], list[tuple[str, str]]]
    elif isinstance(outline.model, Unigram):
        kind = tuple[list[tuple[str, float]]]
    entries = msgspec.msgpack.decode(packed_entries, type=kind)
    model = msgspec.structs.replace(outline.model, **dict(zip(_entries_of(outline), entries, strict=True)))
    return msgspec.structs.replace(outline, model=model)


def _entries_of(spec: TokenizerSpec) -> list[str]:
    return [name for name in ENTRIES if name in spec.model.__struct_fields__]
