"""Truncation: which of one or two encodings is cut, and to what length. The cut itself is `Encoding.truncated`."""

from __future__ import annotations

from tokbatch.engine.encoding import Encoding
from tokbatch.errors import EncodeError
from tokbatch.spec import Truncation


def truncate_encodings(
    encoding: Encoding, pair: Encoding | None, truncation: Truncation, added_tokens: int = 0
) -> tuple[Encoding, Encoding | None]:
    """Cut so that with `added_tokens` tokens of the template no more than `max_length` are left.

    A `max_length` that has no room for the template cuts nothing: the oracle's difference wraps around below zero.
    """
    room = truncation.max_length - added_tokens
    total = len(encoding) + (0 if pair is None else len(pair))
    if room < 0 or 0 < total <= room:
        return encoding, pair
    first, second = _lengths(len(encoding), None if pair is None else len(pair), room, truncation)
    encoding = encoding.truncated(first, truncation.stride, truncation.direction)
    if pair is not None:
        pair = pair.truncated(second, truncation.stride, truncation.direction)
    return encoding, pair


def _lengths(first: int, second: int | None, room: int, truncation: Truncation) -> tuple[int, int]:
    """Give the lengths that two encodings are cut to (the second counts only where there is one)."""
    if room == 0:
        return 0, 0
    excess = first + (second or 0) - room
    if excess <= 0:
        return first, second or 0
    if truncation.strategy == "LongestFirst":
        return _longest_first(first, second, room)
    if truncation.strategy == "OnlySecond":
        if second is None:
            raise EncodeError("the text is too long, and only a pair's second text may be cut", where="$.truncation")
        return first, _shortened(second, excess)
    return _shortened(first, excess), second or 0


def _longest_first(first: int, second: int | None, room: int) -> tuple[int, int]:
    """Cut the longer one; where that is not enough, give each half of the room, the odd token to the longer one."""
    if second is None:
        return room, 0
    shorter = min(first, second)
    longer = shorter if shorter > room else max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room // 2 + room % 2
    return (longer, shorter) if first > second else (shorter, longer)


def _shortened(length: int, excess: int) -> int:
    if length <= excess:
        raise EncodeError(
            f"cannot cut {excess} tokens off a text of {length}",
            where="$.truncation",
            hint="only one of the two texts may be cut; the strategy LongestFirst may cut both",
        )
    return length - excess
