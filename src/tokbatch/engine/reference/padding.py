"""Padding: how long the encodings of a batch are made. The filling itself is `Encoding.pad`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokbatch.engine.encoding import Encoding
from tokbatch.errors import EncodeError
from tokbatch.spec import Padding

# Some 2 GB as an encoding. A file may ask for any number, and the oracle dies of the larger ones.
LONGEST = 1 << 25


def padded_length(lengths: Iterable[int], padding: Padding) -> int:
    """Give the length that encodings of these lengths are filled up to; those that are longer stay as they are."""
    length = max(lengths, default=0) if padding.fixed_length is None else padding.fixed_length
    if padding.pad_to_multiple_of:
        length += -length % padding.pad_to_multiple_of
    if length > LONGEST:
        raise EncodeError(
            f"cannot pad to {length} tokens: the limit is {LONGEST}",
            where="$.padding",
            hint="correct `strategy` or `pad_to_multiple_of` in the file",
        )
    return length


def pad_encodings(encodings: Sequence[Encoding], padding: Padding) -> None:
    """Fill up the encodings of a batch, and their overflowing pieces."""
    if not encodings:
        return
    length = padded_length(map(len, encodings), padding)
    for encoding in encodings:
        encoding.pad(length, padding.direction, padding.pad_id, padding.pad_type_id, padding.pad_token)
