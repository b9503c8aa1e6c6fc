"""Sentencepiece's compiled character map, read as the oracle reads it, and what it does to a text.

The data is the size of a trie in bytes (uint32, little-endian), the trie, and the replacements, each ended by a NUL.
The trie is a double array (Aoe 1989, in the layout of s-yata/darts-clone); its values are positions in the
replacements.

The oracle does not look for the longest entry at each place, as sentencepiece does. It takes each grapheme cluster of
fewer than 6 bytes as a whole, and replaces all of it by the entry of its shortest prefix that has one; failing that,
and for longer clusters, it takes the characters one by one. That is what we do, too.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterator

from tokbatch.engine.reference.character_patterns import LazyTable
from tokbatch.engine.reference.graphemes import are_single_characters, graphemes
from tokbatch.errors import EncodeError, SpecError

_LONGEST_CLUSTER = 5  # bytes


class CharacterMap:
    """A compiled character map."""

    def __init__(self, data: bytes, where: str = ""):
        size = int.from_bytes(data[:4], "little") // 4 * 4
        if len(data) < 4 + size or len(data) < 4:
            raise SpecError(f"the character map ends after {len(data)} bytes, before its trie does", where=where)
        self._units = array.array("I", data[4 : 4 + size])
        if sys.byteorder == "big":
            self._units.byteswap()
        self._replacements = data[4 + size :]
        try:
            self._replacements.decode()
        except UnicodeDecodeError as error:
            raise SpecError(f"the character map's replacements are not UTF-8: {error.reason}", where=where) from None
        self._of_character = LazyTable(self._character)
        self._of_cluster: dict[str, str] = {}

    def lookup(self, text: str) -> str | None:
        """Give the replacement of the shortest prefix that has an entry; None where no prefix has one."""
        position = self._shortest_prefix(text.encode())
        if position is None:
            return None
        end = self._replacements.find(b"\0", position)
        try:
            if position > len(self._replacements):
                raise ValueError(f"there are only {len(self._replacements)}")
            return self._replacements[position : end if end >= 0 else len(self._replacements)].decode()
        except ValueError as error:
            raise EncodeError(f"the character map sends {text!r} to byte {position} of its texts: {error}") from None

    def apply(self, text: str) -> str:
        """Give the normalized text."""
        if are_single_characters(text):
            return text.translate(self._of_character)
        return "".join(map(self._cluster, graphemes(text)))

    def changes(self, text: str) -> list[tuple[str, int]] | None:
        """Give the normalized characters, each with its change (see `AlignedText.transform`); None without a change.

        A replacement that is empty is charged to the character before it. At the start of a text there is none, and the
        oracle forgets it: all that follows is aligned too far to the left.
        """
        changes: list[tuple[str, int]] = []
        modified = False
        for part, replacement in self._parts(text):
            if replacement is None:
                changes.append((part, 0))
                continue
            modified = True
            changes += [(character, 0) for character in replacement]
            inserted = len(replacement) - len(part)
            if inserted > 0:
                changes[-inserted:] = [(character, 1) for character, _ in changes[-inserted:]]
            elif inserted < 0 and changes:
                character, change = changes[-1]
                changes[-1] = character, change + inserted
        return changes if modified else None

    def _parts(self, text: str) -> Iterator[tuple[str, str | None]]:
        for cluster in graphemes(text):
            replacement = self.lookup(cluster) if len(cluster.encode()) <= _LONGEST_CLUSTER else None
            if replacement is not None:
                yield cluster, replacement
            else:
                yield from ((character, self.lookup(character)) for character in cluster)

    def _shortest_prefix(self, key: bytes) -> int | None:
        """Walk the trie; the value, label, offset and leaf flag of a unit are bit fields, as in darts-clone.

        The walk goes on after the first entry, because a broken trie may lead it astray there.
        """
        units, node = self._units, 0
        found: int | None = None
        try:
            node ^= _offset(units[node])
            for byte in key:
                if byte == 0:
                    break
                node ^= byte
                unit = units[node]
                if unit & 0x800000FF != byte:
                    break
                node ^= _offset(unit)
                if unit >> 8 & 1 and found is None:
                    found = units[node] & 0x7FFFFFFF
        except IndexError:
            raise EncodeError(
                f"the character map's trie sends the bytes {key!r} to unit {node} of {len(units)}"
            ) from None
        return found

    def _character(self, character: str) -> str:
        replacement = self.lookup(character)
        return character if replacement is None else replacement

    def _cluster(self, cluster: str) -> str:
        known = self._of_cluster.get(cluster)
        if known is None:
            known = "".join(part if replacement is None else replacement for part, replacement in self._parts(cluster))
            if len(self._of_cluster) < 1 << 16:
                self._of_cluster[cluster] = known
        return known


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)
