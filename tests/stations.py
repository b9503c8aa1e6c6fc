"""The road up to the model, seen from outside: which pieces come out, and where in the document they come from.

The oracle shows them through a BPE without merges that falls back to bytes: its ids are the bytes of the pieces, its
offsets their alignment, its word ids the bounds of the pieces.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from itertools import groupby
from types import ModuleType
from typing import Any

import tokbatch as tb
from tokbatch.engine import native
from tokbatch.engine.reference.aligned_text import AlignedText
from tokbatch.engine.reference.normalizers import Normalizer, build_normalizer
from tokbatch.engine.reference.offsets import DocumentOffsets
from tokbatch.engine.reference.pre_tokenizers import PreTokenizer, build_pre_tokenizer
from tokbatch.errors import EncodeError
from tokbatch.spec.read import read_spec

Piece = tuple[str, list[tuple[int, int]]]
FAILED = "failed"


def tokenizer_json(normalizer: Any = None, pre_tokenizer: Any = None) -> str:
    """Write a tokenizer.json around the two components."""
    model = {
        "type": "BPE",
        "vocab": {f"<0x{byte:02X}>": byte for byte in range(256)},
        "merges": [],
        "byte_fallback": True,
    }
    return json.dumps(
        {"version": "1.0", "added_tokens": [], "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": model}
    )


@functools.lru_cache(maxsize=64)
def _oracle_tokenizer(oracle: ModuleType, file: str) -> Any:
    return oracle.tokenizer(file)


@functools.lru_cache(maxsize=64)
def components(file: str) -> tuple[Normalizer, PreTokenizer]:
    """Build our two components of a file."""
    spec = read_spec(file)
    return build_normalizer(spec.normalizer), build_pre_tokenizer(spec.pre_tokenizer)


def oracle_pieces(oracle: ModuleType, file: str, text: str) -> list[Piece] | str:
    """Give the oracle's pieces, each with the offsets of its characters; `FAILED` where it crashes."""
    loaded = _oracle_tokenizer(oracle, file)
    try:
        with oracle.quiet():
            encoding = oracle.encode(loaded, text, add_special_tokens=False)
    except oracle.OracleError as error:
        if not error.panicked:
            raise
        return FAILED
    return _pieces_of(encoding)


@functools.lru_cache(maxsize=64)
def native_tokenizer(file: str) -> tb.Tokenizer:
    """Build the native engine for a file."""
    return tb.Tokenizer.from_json(file, engine="native")


def native_pieces(file: str, text: str) -> list[Piece] | str:
    """Give the native engine's pieces, read from its encoding as from the oracle's."""
    try:
        return _pieces_of(native_tokenizer(file).encode(text, add_special_tokens=False))
    except EncodeError:
        return FAILED


def native_bytes(file: str, text: str) -> bytes | str:
    """Give the bytes of the native engine's pieces on the road that columns take."""
    try:
        (ids,) = native_tokenizer(file).encode_batch([text], add_special_tokens=False).to_pylist()
    except EncodeError:
        return FAILED
    return bytes(ids)


def _pieces_of(encoding: Any) -> list[Piece]:
    tokens = zip(encoding.ids, encoding.offsets, encoding.word_ids, strict=True)
    pieces: list[Piece] = []
    for _, group in groupby(tokens, key=lambda token: token[2]):
        ids, offsets, _ = zip(*group, strict=True)
        piece, position, places = bytes(ids).decode(), 0, []
        for character in piece:
            end = position + len(character.encode())
            # All bytes of a character share their alignment: what `AlignedText` rests on.
            (place,) = set(offsets[position:end])
            places.append(place)
            position = end
        pieces.append((piece, places))
    return pieces


def our_pieces(file: str, text: str) -> list[Piece] | str:
    """Give our pieces on the aligned road; `FAILED` for an `EncodeError`."""
    normalizer, pre_tokenizer = components(file)
    places = DocumentOffsets(text)
    try:
        whole = normalizer.normalize_aligned(AlignedText.from_text(text))
        # The scan for added tokens cuts here, also where it finds none.
        pieces = [whole.slice(0, len(whole.text))] if whole.text else []
        pieces = pre_tokenizer.pre_tokenize_aligned(pieces)
    except EncodeError:
        return FAILED
    return [(p.text, [places.checked(*pair) for pair in zip(p.starts, p.ends, strict=True)]) for p in pieces]


def our_texts(file: str, text: str) -> list[str] | str | None:
    """Give our pieces on the string road; None where it says that it must not be taken."""
    normalizer, pre_tokenizer = components(file)
    if normalizer.needs_alignment:
        return None
    try:
        normalized = normalizer.normalize(text)
        if pre_tokenizer.needs_alignment:
            return None
        return pre_tokenizer.pre_tokenize([normalized] if normalized else [])
    except EncodeError:
        return FAILED


def check(oracle: ModuleType, file: str, text: str) -> None:
    """Hold both our roads, and those of the native engine where it is there, against the oracle on one text."""
    expected = oracle_pieces(oracle, file, text)
    assert our_pieces(file, text) == expected, (file, text)
    texts = our_texts(file, text)
    if texts is not None:
        assert texts == (expected if isinstance(expected, str) else [piece for piece, _ in expected]), (file, text)
    if native.why_unavailable() is None:
        assert native_pieces(file, text) == expected, (file, text)
        joined = expected if isinstance(expected, str) else "".join(piece for piece, _ in expected).encode()
        assert native_bytes(file, text) == joined, (file, text)


def scalar_values(every: int) -> Iterator[str]:
    """Give all Unicode scalar values, or one of `every`."""
    for code_point in range(0, 0x110000, every):
        if not 0xD800 <= code_point < 0xE000:
            yield chr(code_point)


def in_context(x: str) -> str:
    """Put a character beside letters, spaces, marks, digits and itself."""
    return f"{x}a {x}\u0301{x} 1{x}{x}中\n"


def all_code_points() -> Iterator[str]:
    """Give texts in which all code points occur in context, 256 in each."""
    for first in range(0, 0x110000, 256):
        if not 0xD800 <= first < 0xE000:
            yield "".join(in_context(chr(code_point)) for code_point in range(first, first + 256))


def check_code_points(oracle: ModuleType, file: str, every: int) -> None:
    """Check one code point of `every` in context; 256 of them in one text, each alone where one fails."""
    contexts = list(map(in_context, scalar_values(every)))
    for first in range(0, len(contexts), 256):
        block = contexts[first : first + 256]
        try:
            check(oracle, file, "".join(block))
        except AssertionError:
            for context in block:
                check(oracle, file, context)
            raise
