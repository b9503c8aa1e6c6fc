"""The whole road from a text to its encoding, and back.

    text -> added tokens -> normalizer -> added tokens again -> pre-tokenizer -> model -> truncation -> template

There are two roads with the same stations. On the plain road a piece of text is a `str`: it is the one for columns of
documents, where only ids are wanted. On the aligned road a piece is an `AlignedText`, which knows where in the document
it comes from: it is the one for `encode`, which gives offsets. A test holds the two against each other.

What is not here: Arrow and nulls (`batch/arrow.py`), the verdicts of the round trip (`round_trip.py`).
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import Any, Generic, TypeVar

from tokbatch.engine.columns import IdColumn, TextColumn, int32_ids
from tokbatch.engine.encoding import Encoding
from tokbatch.engine.protocol import Stage, Verification
from tokbatch.engine.reference.added_tokens import AddedMatch, AddedVocabulary, gaps
from tokbatch.engine.reference.aligned_text import AlignedText
from tokbatch.engine.reference.decoders import build_decoder
from tokbatch.engine.reference.models import build_model
from tokbatch.engine.reference.normalizers import build_normalizer
from tokbatch.engine.reference.offsets import DocumentOffsets
from tokbatch.engine.reference.padding import pad_encodings, padded_length
from tokbatch.engine.reference.post_processors import build_post_processor
from tokbatch.engine.reference.pre_tokenizers import build_pre_tokenizer
from tokbatch.engine.reference.truncation import truncate_encodings
from tokbatch.errors import EncodeError, TokbatchError
from tokbatch.spec import TokenizerSpec

CACHED_PRETOKENS = 1 << 18  # entries; some 60 MB with the ids of English text
CACHED_LENGTH = 64  # characters; longer pretokens seldom come twice

Text = TypeVar("Text", str, AlignedText)


@dataclass(frozen=True)
class Road(Generic[Text]):
    """How the stations handle a piece of text: as `str`, or as `AlignedText`.

    `pre_tokenize_first` is for the piece at the very start of a document, `pre_tokenize` for all others.
    """

    begin: Callable[[str], Text]
    text_of: Callable[[Text], str]
    cut: Callable[[Text, int, int], Text]
    normalize: Callable[[Text], Text]
    pre_tokenize_first: Callable[[list[Text]], list[Text]]
    pre_tokenize: Callable[[list[Text]], list[Text]]


class ReferenceEngine:
    """The definition of what a tokenizer.json means. See `engine/protocol.py` for the methods."""

    name = "reference"

    def __init__(self, spec: TokenizerSpec):
        self.spec = spec
        self.truncation, self.padding = spec.truncation, spec.padding
        self.normalizer = build_normalizer(spec.normalizer)
        self.pre_tokenizer = build_pre_tokenizer(spec.pre_tokenizer)
        self.model = build_model(spec.model)
        self.post_processor = build_post_processor(spec.post_processor)
        self.decoder = build_decoder(spec.decoder)
        self.added_vocabulary = AddedVocabulary(spec, self.normalizer.normalize)
        self._cache: dict[str, tuple[int, ...]] = {}
        # Without a normalizer, the first piece of a document is the one at its start.
        first, others = (spec.normalizer is None and self.pre_tokenizer.by_place) or (self.pre_tokenizer,) * 2
        self._plain = Road[str](
            str,
            str,
            lambda text, start, end: text[start:end],
            self.normalizer.normalize,
            first.pre_tokenize,
            others.pre_tokenize,
        )
        self._aligned = Road[AlignedText](
            AlignedText.from_text,
            lambda piece: piece.text,
            AlignedText.slice,
            self.normalizer.normalize_aligned,
            self.pre_tokenizer.pre_tokenize_aligned,
            self.pre_tokenizer.pre_tokenize_aligned,
        )
        self._id_road: Road[Any] = (
            self._aligned if others.needs_alignment or self.normalizer.needs_alignment else self._plain
        )

    # -- the road -----------------------------------------------------------------------------------------------------

    def _pieces(self, document: str, road: Road[Text]) -> Iterator[tuple[AddedMatch | None, Text]]:
        """Yield the document in order: added tokens with their match, and normalized text between them with None."""
        whole = road.begin(document)
        for match, start, end in gaps(self.added_vocabulary.raw_pass.matches(document), len(document)):
            piece = road.cut(whole, start, end)
            if match is not None:
                if road.text_of(piece):
                    yield match, piece
                continue
            piece = road.normalize(piece)
            text = road.text_of(piece)
            for inner_match, start, end in gaps(self.added_vocabulary.normalized_pass.matches(text), len(text)):
                inner = road.cut(piece, start, end)
                if road.text_of(inner):
                    yield inner_match, inner

    def _pretokens(self, document: str, road: Road[Text]) -> Iterator[tuple[AddedMatch | None, Text]]:
        """Yield added tokens with their match, and pretokens with None."""
        pre_tokenize = road.pre_tokenize_first
        for match, piece in self._pieces(document, road):
            if match is not None:
                yield match, piece
            else:
                for pretoken in pre_tokenize([piece]):
                    yield None, pretoken
            pre_tokenize = road.pre_tokenize

    def pieces(self, document: str) -> Iterator[tuple[AddedMatch | None, str]]:
        """Yield a document's added tokens with their match, and the normalized text between them with None."""
        return self._pieces(document, self._plain)

    def pretokens(self, document: str) -> Iterator[tuple[AddedMatch | None, str, tuple[int, ...]]]:
        """Yield a document's added tokens with their match, and its pretokens with None; each with its ids."""
        road = self._id_road
        for match, piece in self._pretokens(document, road):
            text = road.text_of(piece)
            yield match, text, self._token_ids(text) if match is None else (match.token_id,)

    def _model_ids(self, document: str) -> list[int]:
        """Give the ids of a document before truncation and template, on the plain road where that is possible."""
        road = self._id_road
        ids: list[int] = []
        cached, text_of = self._cache.get, road.text_of
        pre_tokenize = road.pre_tokenize_first
        for match, piece in self._pieces(document, road):
            if match is not None:
                ids.append(match.token_id)
            else:
                for pretoken in pre_tokenize([piece]):
                    text = text_of(pretoken)
                    ids += cached(text) or self._encode_pretoken(text)
            pre_tokenize = road.pre_tokenize
        return ids

    def _token_ids(self, pretoken: str) -> tuple[int, ...]:
        return self._cache.get(pretoken) or self._encode_pretoken(pretoken)

    def _encode_pretoken(self, pretoken: str) -> tuple[int, ...]:
        if len(pretoken) > CACHED_LENGTH:
            parts = self.model.parts(pretoken)
            if len(parts) > 1:
                return tuple(token_id for part in parts for token_id in self._token_ids(part))
            return self.model.token_ids(pretoken)
        if len(self._cache) >= CACHED_PRETOKENS:
            self._cache.clear()
        token_ids = self._cache[pretoken] = self.model.token_ids(pretoken)
        return token_ids

    def _model_encoding(self, document: str, type_id: int) -> Encoding:
        """Encode a document with tokens and offsets, before truncation and template."""
        ids: list[int] = []
        tokens: list[str] = []
        offsets: list[tuple[int, int]] = []
        word_ids: list[int | None] = []
        places = DocumentOffsets(document)
        for index, (match, piece) in enumerate(self._pretokens(document, self._aligned)):
            if match is not None:
                ids.append(match.token_id)
                tokens.append(piece.text)
                offsets.append(places.checked(piece.starts[0], piece.ends[-1]))
                word_ids.append(index)
                continue
            place = places.of_pretoken(piece)
            for token in self.model.tokenize(piece.text):
                ids.append(token.id)
                tokens.append(token.value)
                offsets.append(place.of_token(token.start, token.end))
                word_ids.append(index)
        return Encoding.of_text(ids, tokens, offsets, word_ids, type_id)

    # -- encode -------------------------------------------------------------------------------------------------------

    def encode(self, text: str, pair: str | None, add_special_tokens: bool) -> Encoding:
        """Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks."""
        encoding = self._post_processed(
            self._model_encoding(text, 0), None if pair is None else self._model_encoding(pair, 1), add_special_tokens
        )
        if self.spec.padding is not None:
            pad_encodings([encoding], self.spec.padding)
        return encoding

    def _post_processed(self, encoding: Encoding, pair: Encoding | None, add_special_tokens: bool) -> Encoding:
        if self.spec.truncation is not None:
            added = self.post_processor.added_tokens(pair is not None) if add_special_tokens else 0
            encoding, pair = truncate_encodings(encoding, pair, self.spec.truncation, added)
        return self.post_processor.process(encoding, pair, add_special_tokens)

    def _ids(self, text: str, add_special_tokens: bool) -> tuple[list[int], bool]:
        """Give the ids of one text, template and truncation included, padding not; and whether it was truncated."""
        ids = self._model_ids(text)
        affixes = self.post_processor.single_affixes(add_special_tokens)
        if affixes is not None and self._fits(len(ids), add_special_tokens):
            prefix, suffix = affixes
            return ([*prefix, *ids, *suffix] if prefix or suffix else ids), False
        n = len(ids)
        encoding = self._post_processed(
            Encoding.of_text(ids, [""] * n, [(0, 0)] * n, [None] * n), None, add_special_tokens
        )
        return encoding.ids, bool(encoding.overflowing)

    def _fits(self, length: int, add_special_tokens: bool) -> bool:
        if self.spec.truncation is None:
            return True
        added = self.post_processor.added_tokens(False) if add_special_tokens else 0
        return length + added <= self.spec.truncation.max_length

    def encode_batch(self, texts: TextColumn, add_special_tokens: bool, keep_going: bool = False) -> IdColumn:
        """Give the ids of a column. A row that fails raises its error, or with `keep_going` lands in `failures`."""
        rows: list[array.array[int]] = []
        failures: list[tuple[int, TokbatchError]] = []
        truncated_rows: list[int] = []
        for row in range(texts.rows):
            try:
                ids, is_truncated = self._ids(texts.text(row), add_special_tokens)
                rows.append(int32_ids(ids, row))
                truncated_rows += [row] if is_truncated else []
            except EncodeError as error:
                error.row = row
                error.where = f"row {row}" if error.where in (None, f"row {row}") else f"row {row}, {error.where}"
                if not keep_going:
                    raise
                failures.append((row, error))
                rows.append(array.array("i"))
        padding = self.spec.padding
        if padding is not None and rows:
            length = padded_length(map(len, rows), padding)
            for row, row_ids in enumerate(rows):
                fill = int32_ids([padding.pad_id] * (length - len(row_ids)), row)
                rows[row] = row_ids + fill if padding.direction == "Right" else fill + row_ids
        column = IdColumn.from_lists(rows)
        return replace(column, failures=failures, truncated_rows=truncated_rows)

    def count_batch(self, texts: TextColumn, add_special_tokens: bool) -> array.array[int]:
        """Give the number of ids of each row ("q")."""
        offsets = self.encode_batch(texts, add_special_tokens).list_offsets
        return array.array("q", [end - start for start, end in pairwise(offsets)])

    # -- decode -------------------------------------------------------------------------------------------------------

    def id_to_token(self, token_id: int) -> str | None:
        """Give the token of an id; None where there is none."""
        token = self.added_vocabulary.token(token_id)
        return self.model.id_to_token(token_id) if token is None else token

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a token; None where there is none."""
        token_id = self.added_vocabulary.ids.get(token)
        return self.model.token_to_id(token) if token_id is None else token_id

    @property
    def vocab_size(self) -> int:
        """Number of distinct tokens, added ones included."""
        added = self.added_vocabulary.ids
        return self.model.vocab_size + sum(self.model.token_to_id(content) is None for content in added)

    @cached_property
    def max_id(self) -> int:
        """The largest id that an encoding can contain."""
        template = (token_id for token_id in self.single_template if token_id is not None)
        vocab = self.spec.model.vocab
        model_ids = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
        return max((*model_ids, *self.added_vocabulary.by_id, *template), default=0)

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the added tokens with `special = true`."""
        return frozenset(token_id for token_id, token in self.added_vocabulary.by_id.items() if token.special)

    @property
    def unk_id(self) -> int | None:
        """The id that the model gives for what it does not know; None where it has no such token."""
        return self.model.unk_token_id

    @property
    def byte_token_ids(self) -> frozenset[int]:
        """The ids of the tokens `<0x00>` to `<0xFF>` where the model falls back to bytes; else empty."""
        return self.model.byte_token_ids

    @cached_property
    def single_template(self) -> tuple[int | None, ...]:
        """What the post-processor makes of a single text: ids, and None in the place of the text."""
        text = Encoding.of_text([-1], [""], [(0, 0)], [0])
        return tuple(None if i == -1 else i for i in self.post_processor.process(text, None, True).ids)

    def tokens_of(self, ids: Sequence[int], skip_special_tokens: bool) -> list[str]:
        """Give the token strings that the decoder sees."""
        skipped = self.added_vocabulary.special_contents if skip_special_tokens else frozenset()
        tokens = (self.id_to_token(token_id) for token_id in ids)
        return [token for token in tokens if token is not None and token not in skipped]

    def decode(self, ids: Sequence[int], skip_special_tokens: bool) -> str:
        """Give the text of ids. Ids that no token has are passed over, as in the oracle."""
        return self.decoder.decode(self.tokens_of(ids, skip_special_tokens))

    def decode_batch(self, ids: IdColumn, skip_special_tokens: bool) -> TextColumn:
        """Give the texts of a column of ids."""
        ids.refuse_negative_ids()
        return TextColumn.from_texts(self.decode(row, skip_special_tokens) for row in ids)

    # -- the record ---------------------------------------------------------------------------------------------------

    def verify_batch(self, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
        """Hold the ids of a column against its texts."""
        ids.refuse_negative_ids()
        from tokbatch.engine.reference.round_trip import verify_column

        return verify_column(self, texts, ids, add_special_tokens)

    def trace(self, text: str, add_special_tokens: bool) -> list[Stage]:
        """Encode one text and keep what every stage made of it."""
        raw = [
            (m and m.token_id, text[a:b]) for m, a, b in gaps(self.added_vocabulary.raw_pass.matches(text), len(text))
        ]
        pieces = [(m and m.token_id, piece.text) for m, piece in self._pieces(text, self._aligned)]
        pretokens = [(m and m.token_id, piece.text) for m, piece in self._pretokens(text, self._aligned)]
        model = self._model_encoding(text, 0)
        final = self._post_processed(self._model_encoding(text, 0), None, add_special_tokens)
        # A special token of a template may have more ids than tokens, or fewer.
        stages: list[tuple[str, list[tuple[Any, str]]]] = [
            ("added tokens", raw),
            ("normalized", pieces),
            ("pretokens", pretokens),
            ("model", list(zip(model.ids, model.tokens, strict=True))),
            ("post-processed", [(i, t or "") for i, t in zip_longest(final.ids, final.tokens)]),
        ]
        return [
            Stage(name, [piece for _, piece in found], [token_id for token_id, _ in found]) for name, found in stages
        ]
