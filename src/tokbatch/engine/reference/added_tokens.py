"""The added-token scanner: the one place where entries are matched in text before the model sees it.

It runs twice over a document. The first pass looks for the entries with `normalized: false` in the raw text; what lies
between the matches is then normalized, and the second pass looks there for the entries with `normalized: true`, whose
own content was normalized too. `special` plays no part in matching.

In each pass the leftmost match wins, of several the longest, and the search goes on after it. Only then
`single_word` may reject the match (its text is not searched again), and `lstrip` and `rstrip` widen it over the
whitespace around it. The search knows nothing of the widening, so a match can begin inside whitespace that the match
before it has already taken: see `AddedTokenMatcher.matches` for what comes of that.

The source of all of it is `tokenizers/src/tokenizer/added_vocabulary.rs` of the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tokbatch.errors import EncodeError, UnsupportedError
from tokbatch.spec import AddedToken, TokenizerSpec
from tokbatch.spec.added_token_ids import added_token_table
from tokbatch.spec.unicode import rust_regex_class

MOST_PREFIXES = 64  # more distinct prefixes than this make the candidate search slower than shorter ones do


class AddedMatch(NamedTuple):
    """A match, as character positions in the text that was searched.

    `start` and `end` are what the match consumed, absorbed whitespace included; `content_start` and `content_end` are
    what the content itself covers. `start` can lie before the end of the previous match (its blank is claimed twice).
    """

    token_id: int
    start: int
    end: int
    content_start: int
    content_end: int


class AddedTokenMatcher:
    """One pass: the entries that it looks for, by their pattern. Entries whose content is in `skipped` do not count."""

    def __init__(self, entries: Iterable[tuple[str, int, AddedToken]], skipped: frozenset[str] = frozenset()):
        self._entries: dict[str, list[tuple[int, AddedToken]]] = {}
        self._skipped = skipped
        for pattern, token_id, token in entries:
            self._entries.setdefault(pattern, []).append((token_id, token))
        self._candidates, self._prefix_length = _candidate_pattern(self._entries)
        lengths: dict[str, set[int]] = {}
        for pattern in self._entries:
            lengths.setdefault(pattern[: self._prefix_length], set()).add(len(pattern))
        self._lengths = {prefix: sorted(found, reverse=True) for prefix, found in lengths.items()}

    def _raw_matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield leftmost, then longest matches that do not overlap, as (start, end)."""
        position = 0
        while candidate := self._candidates.search(text, position):
            start = candidate.start()
            position = start + 1
            for length in self._lengths[candidate.group()]:
                end = start + length
                if end <= len(text) and text[start:end] in self._entries:
                    position = end
                    yield start, end
                    break

    def matches(self, text: str) -> list[AddedMatch]:
        """Find all entries in a text, in order.

        Where the text of a match was already consumed by the `rstrip` of the match before: without `lstrip` it
        counts again, and the text goes on after it; with `lstrip` nothing is left of it when the whole of it was
        consumed to the last character, and the oracle crashes when more than it was consumed.
        """
        found: list[AddedMatch] = []
        consumed = 0
        for start, end in self._raw_matches(text):
            pattern = text[start:end]
            entries = [entry for entry in self._entries[pattern] if self._counts(entry[1], text, start, end)]
            if not entries:
                continue
            if len(self._entries[pattern]) > 1:
                raise EncodeError(
                    f"several added tokens are {pattern!r} once normalized; which of them it is changes from run to "
                    "run in tokenizers",
                    code="ambiguous-added-token",
                    hint="remove all but one of them from added_tokens",
                )
            found.append(_widened(text, start, end, *entries[0], consumed))
            consumed = found[-1].end
        return found

    def _counts(self, token: AddedToken, text: str, start: int, end: int) -> bool:
        if token.content in self._skipped:
            return False
        return not (token.single_word and (_word_before(text, start) or _word_after(text, end)))


def _widened(text: str, start: int, end: int, token_id: int, token: AddedToken, consumed: int) -> AddedMatch:
    """Let a match absorb the whitespace around it, as far as the match before left it."""
    first = _whitespace_before(text, start, consumed) if token.lstrip else start
    last = _whitespace_after(text, max(end, consumed)) if token.rstrip else end
    if first > last:
        raise EncodeError(
            f"the whitespace that the added token {token.content!r} is made of was already consumed by the rstrip of "
            "the token before it (tokenizers crashes here)",
            where=f"character {start}",
            code="added-token-overlap",
            hint="an added token made of whitespace should not have lstrip beside one with rstrip",
        )
    return AddedMatch(token_id, first, last, start, end)


class AddedVocabulary:
    """The added tokens with the ids they really have, and the two passes over a text."""

    def __init__(self, spec: TokenizerSpec, normalize: Callable[[str], str]):
        table = added_token_table(spec)
        self.by_id = table.in_force
        self.ids = table.ids
        self.special_contents = frozenset(table.special_contents)
        self.stripping_ids = frozenset(i for i, token in self.by_id.items() if token.lstrip or token.rstrip)
        self._forms: dict[int, str] = {}
        for token_id, content in table.normalized_contents:
            form = normalize(content)
            if form != content:
                self._forms[token_id] = form
        skipped = self.special_contents if spec.encode_special_tokens else frozenset()
        raw = [(token.content, i, token) for i, token in self.by_id.items() if not token.normalized]
        normalized = [(self._forms.get(i, t.content), i, t) for i, t in self.by_id.items() if t.normalized]
        for form, _, token in normalized:
            if not form:
                raise UnsupportedError(
                    f"the normalizer leaves nothing of the added token {token.content!r}, and tokenizers then finds it "
                    "everywhere, crashes or does not end",
                    where=f"$.added_tokens[{spec.added_tokens.index(token)}].content",
                    code="added-token-normalized-away",
                    hint='set "normalized": false',
                )
        self.raw_pass = AddedTokenMatcher(raw, skipped)
        self.normalized_pass = AddedTokenMatcher(normalized, skipped)

    def token(self, token_id: int) -> str | None:
        """Give the string that a decoder sees for an added token: its normalized form, where it has one."""
        added = self.by_id.get(token_id)
        return None if added is None else self._forms.get(token_id, added.content)


def gaps(matches: list[AddedMatch], length: int) -> Iterator[tuple[AddedMatch | None, int, int]]:
    """Yield all of a text of this length in order: the matches, and (None, start, end) for what lies between."""
    position = 0
    for match in matches:
        if position < match.start:
            yield None, position, match.start
        yield match, match.start, match.end
        position = match.end
    if position < length or not length:
        yield None, position, length


def _candidate_pattern(patterns: Iterable[str]) -> tuple[re.Pattern[str], int]:
    """Build a search for the places where a match can begin, by the first few characters of the patterns."""
    patterns = list(patterns)
    if not patterns:
        return re.compile(r"(?!)"), 0
    shortest = min(map(len, patterns))
    for length in range(min(shortest, 4), 0, -1):
        prefixes = sorted({pattern[:length] for pattern in patterns})
        if len(prefixes) <= MOST_PREFIXES or length == 1:
            break
    if length == 1:
        return re.compile("[" + "".join(map(re.escape, prefixes)) + "]"), 1
    return re.compile("|".join(map(re.escape, prefixes))), length


_WORD = rust_regex_class("w")
_WHITESPACE = rust_regex_class("s")


def _word_before(text: str, position: int) -> bool:
    return position > 0 and ord(text[position - 1]) in _WORD


def _word_after(text: str, position: int) -> bool:
    return position < len(text) and ord(text[position]) in _WORD


def _whitespace_before(text: str, position: int, floor: int) -> int:
    """Where the whitespace before a position begins, not before `floor`, which can lie behind the position."""
    position = max(position, floor)
    while position > floor and ord(text[position - 1]) in _WHITESPACE:
        position -= 1
    return position


def _whitespace_after(text: str, position: int) -> int:
    while position < len(text) and ord(text[position]) in _WHITESPACE:
        position += 1
    return position
