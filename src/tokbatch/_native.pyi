"""The extension module, which native/ is built into. `engine/native.py` is the one that calls it.

Buffers go in and come out by the buffer protocol. An error is a `NativeError` whose arguments describe it: class, code,
message, where, hint, row.
"""

import os
from typing import Any, TypeAlias, final

from typing_extensions import Buffer

_Described: TypeAlias = tuple[str, str, str, str, str, int | None]
_Counts: TypeAlias = dict[Any, int]

__all__ = [
    "IS_OPTIMIZED",
    "SOURCES",
    "VERSION",
    "WIRE_VERSION",
    "Engine",
    "Ids",
    "Memory",
    "NativeError",
    "Tables",
    "set_for_test",
]

IS_OPTIMIZED: bool
SOURCES: str
VERSION: str
WIRE_VERSION: int

class NativeError(Exception): ...

def set_for_test(longest: int | None = None, has_fault: bool = False) -> None: ...

@final
class Engine:
    def __new__(cls, components: bytes, options: bytes, entries: bytes) -> Engine: ...
    @staticmethod
    def with_tables(
        components: bytes, options: bytes, entries: bytes, key: bytes, documents: list[bytes]
    ) -> tuple[Engine, Memory]: ...
    def encode_batch(
        self, /, data: Buffer, list_offsets: Buffer, rows: int, add_special_tokens: bool, keep_going: bool
    ) -> Ids: ...
    def count_batch(self, /, data: Buffer, list_offsets: Buffer, rows: int, add_special_tokens: bool) -> Memory: ...
    def encode(self, /, text: str, pair: str | None, add_special_tokens: bool) -> tuple[Any, ...]: ...
    def decode(self, /, ids: list[int], skip_special_tokens: bool) -> str: ...
    def decode_batch(
        self, /, ids: Buffer, list_offsets: Buffer, rows: int, are_checked: bool, skip_special_tokens: bool
    ) -> tuple[Memory, Memory]: ...
    def verify_batch(
        self,
        /,
        texts: tuple[Buffer, Buffer],
        ids: tuple[Buffer, Buffer],
        rows: int,
        are_checked: bool,
        add_special_tokens: bool,
    ) -> tuple[list[Memory], list[_Counts]]: ...
    def trace(self, /, text: str, add_special_tokens: bool) -> list[tuple[str, list[str], list[int | None]]]: ...
    def facts(self, /) -> tuple[int, int, list[int], int | None, list[int], list[int | None]]: ...
    def token_to_id(self, /, token: str) -> int | None: ...
    def id_to_token(self, /, id: int) -> str | None: ...

@final
class Tables:
    def __new__(cls, path: str | os.PathLike[str], key: bytes) -> Tables: ...
    def document(self, /, number: int) -> Memory: ...
    def engine(self, /, components: bytes, options: bytes) -> Engine: ...

@final
class Ids:
    def ids(self, /) -> Memory: ...
    def list_offsets(self, /) -> tuple[Memory, str]: ...
    def failures(self, /) -> list[tuple[int, _Described]]: ...
    def truncated_rows(self, /) -> list[int]: ...

@final
class Memory(Buffer): ...
