"""Decoders: token strings become text.

Every decoder takes a list of strings to a list of strings, of any length, and the list is joined at the end. So they
can follow each other in a Sequence, and "the first token" of the second is whatever the first one left in first place.

Not here: which ids have which tokens, and which of them are skipped (`pipeline.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

from tokbatch.engine.reference.byte_alphabet import CHARACTER_TO_BYTE
from tokbatch.engine.reference.patterns import compile_pattern
from tokbatch.errors import DecodeError
from tokbatch.spec import decoders as spec

Step = Callable[[list[str]], list[str]]

# Rust reads a plus sign before a hexadecimal number.
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
_CLEAN_UPS = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


class Decoder:
    """What the pipeline calls, around the decoder of the file. Without one (None), tokens are joined by spaces."""

    def __init__(self, step: Step | None):
        self.step = step

    def decode(self, tokens: list[str]) -> str:
        """Give the text of token strings."""
        return " ".join(tokens) if self.step is None else "".join(self.step(tokens))


def build_decoder(decoder: spec.Decoder | None) -> Decoder:
    """Build the decoder that the spec describes."""
    return Decoder(None if decoder is None else _build_step(decoder, "$.decoder"))


def _build_step(decoder: spec.Decoder, where: str) -> Step:
    if isinstance(decoder, spec.Sequence):
        return _sequence([_build_step(step, f"{where}.decoders[{i}]") for i, step in enumerate(decoder.decoders)])
    if isinstance(decoder, spec.Replace):
        return _replace(decoder, where)
    if isinstance(decoder, spec.BPEDecoder):
        return lambda tokens: _bpe(tokens, decoder.suffix)
    if isinstance(decoder, spec.WordPiece):
        return lambda tokens: _word_piece(tokens, decoder)
    if isinstance(decoder, spec.Metaspace):
        return lambda tokens: _metaspace(tokens, decoder)
    if isinstance(decoder, spec.CTC):
        return lambda tokens: _ctc(tokens, decoder)
    if isinstance(decoder, spec.Strip):
        return lambda tokens: [_strip(token, decoder) for token in tokens]
    if isinstance(decoder, spec.ByteLevel):
        return _byte_level
    if isinstance(decoder, spec.ByteFallback):
        return _byte_fallback
    return _fuse


def _sequence(steps: list[Step]) -> Step:
    def decode(tokens: list[str]) -> list[str]:
        for step in steps:
            tokens = step(tokens)
        return tokens

    return decode


def _replace(decoder: spec.Replace, where: str) -> Step:
    pattern = compile_pattern(decoder.pattern, f"{where}.pattern")

    def replaced(token: str) -> str:
        # No pattern matches in an empty token, not even one that matches nothing.
        parts, end_of_last = [], 0
        for start, end in pattern.spans(token) if token else ():
            parts += [token[end_of_last:start], decoder.content]
            end_of_last = end
        return "".join([*parts, token[end_of_last:]])

    return lambda tokens: [replaced(token) for token in tokens]


def _fuse(tokens: list[str]) -> list[str]:
    return ["".join(tokens)]


def _bpe(tokens: list[str], suffix: str) -> list[str]:
    """Write the suffix as a space, but not in the last token."""
    return [token.replace(suffix, " " if i < len(tokens) else "") for i, token in enumerate(tokens, 1)]


def _word_piece(tokens: list[str], decoder: spec.WordPiece) -> list[str]:
    """Put a space before each token but the first that has not the prefix. Each token is cleaned up by itself."""
    decoded = []
    for i, token in enumerate(tokens):
        if i > 0:
            token = token[len(decoder.prefix) :] if token.startswith(decoder.prefix) else f" {token}"
        decoded.append(_clean_up(token) if decoder.cleanup else token)
    return decoded


def _clean_up(text: str) -> str:
    for artifact, plain in _CLEAN_UPS:
        text = text.replace(artifact, plain)
    return text


def _metaspace(tokens: list[str], decoder: spec.Metaspace) -> list[str]:
    """Write the replacement as a space. In the first token it is dropped, every time, unless none was prepended."""
    in_first = " " if decoder.prepend_scheme == "never" else ""
    return [token.replace(decoder.replacement, " " if i else in_first) for i, token in enumerate(tokens)]


def _ctc(tokens: list[str], decoder: spec.CTC) -> list[str]:
    """Collapse repeats, then drop padding. The word delimiter becomes a space only where `cleanup` is on."""
    decoded = []
    for token, _ in groupby(tokens):
        text = token.replace(decoder.pad_token, "")
        if decoder.cleanup:
            text = _clean_up(text).replace(decoder.word_delimiter_token, " ")
        if text:
            decoded.append(text)
    return decoded


def _strip(token: str, decoder: spec.Strip) -> str:
    """Cut off up to `start` characters at the beginning and up to `stop` at the end.

    Both ends are looked at in the whole token. Where they would meet, the oracle crashes.
    """
    from_start = min(decoder.start, len(token) - len(token.lstrip(decoder.content)))
    at_end = len(token) - len(token.rstrip(decoder.content))
    if (at_end == len(token) and decoder.stop > at_end) or from_start + min(decoder.stop, at_end) > len(token):
        raise DecodeError(
            f"cannot strip {decoder.start} and {decoder.stop} times {decoder.content!r} from {token!r}",
            where="$.decoder",
            hint="the oracle crashes here; a Fuse before the Strip often is what was meant",
        )
    return token[from_start : len(token) - min(decoder.stop, at_end)]


def _byte_level(tokens: list[str]) -> list[str]:
    """Read the byte alphabet back. A token with any other character stands for its own UTF-8."""
    decoded = bytearray()
    for token in tokens:
        try:
            decoded += bytes([CHARACTER_TO_BYTE[character] for character in token])
        except KeyError:
            decoded += token.encode()
    return [decoded.decode(errors="replace")]


def _byte_fallback(tokens: list[str]) -> list[str]:
    """Read runs of byte tokens as UTF-8. In a run that is not UTF-8 every byte becomes a replacement character."""
    decoded: list[str] = []
    run = bytearray()
    for token in [*tokens, ""]:
        match = _BYTE_TOKEN.fullmatch(token)
        if match is not None:
            run.append(int(match[1], 16))
            continue
        if run:
            try:
                decoded.append(run.decode())
            except UnicodeDecodeError:
                decoded += ["\N{REPLACEMENT CHARACTER}"] * len(run)
            run.clear()
        decoded.append(token)
    return decoded[:-1]
