"""A tiny engine for the tests of the batch layer: words between spaces, ids by a table, everything in plain sight.

``<mask>`` absorbs one blank to its left. ``boom`` in a text cannot be encoded. ``!`` and ``?`` fall back to bytes, and
other words outside of the table are unknown.
"""

from __future__ import annotations

import array
from dataclasses import dataclass, field

import msgspec

from tokbatch.engine.columns import IdColumn, TextColumn
from tokbatch.engine.protocol import VERDICTS, Absorbed, Verification
from tokbatch.errors import EncodeError
from tokbatch.spec import Padding, TokenizerSpec, Truncation
from tokbatch.spec.models import WordLevel

VOCAB = {"<unk>": 0, "<s>": 1, "</s>": 2, "<mask>": 3, "<0x21>": 4, "<0x3F>": 5, "en": 6, "fr": 7, "<eot>": 8}
VOCAB |= {word: 10 + index for index, word in enumerate(["a", "b", "c", "the", "日本", "é"])}


def ids_of_text(text: str) -> list[int]:
    """Say what the fake engine gives for a text, without template and truncation."""
    if "boom" in text:
        raise EncodeError("boom")
    words = [word for word in text.split(" ") if word]
    return [{"!": 4, "?": 5}.get(word, VOCAB.get(word, 0)) for word in words]


@dataclass
class FakeEngine:
    name: str = "fake"
    spec: TokenizerSpec = field(default_factory=lambda: TokenizerSpec(model=WordLevel(VOCAB, "<unk>")))
    single_template: tuple[int | None, ...] = (1, None, 2)
    max_id: int = 15
    unk_id: int | None = 0
    special_ids: frozenset[int] = frozenset({1, 2, 3})
    byte_token_ids: frozenset[int] = frozenset({4, 5})
    wrong_rows: frozenset[str] = frozenset()
    calls: list[tuple[str, int]] = field(default_factory=list)

    @property
    def truncation(self) -> Truncation | None:
        return self.spec.truncation

    @property
    def padding(self) -> Padding | None:
        return self.spec.padding

    def token_to_id(self, token: str) -> int | None:
        return VOCAB.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return next((token for token, known in VOCAB.items() if known == token_id), None)

    def encode_batch(self, texts: TextColumn, add_special_tokens: bool, keep_going: bool = False) -> IdColumn:
        self.calls.append(("encode", texts.rows))
        lists: list[list[int]] = []
        failures, cut = [], []
        for row, text in enumerate(texts):
            try:
                ids = ids_of_text(text)
            except EncodeError:
                error = EncodeError("boom", where=f"row {row}", row=row)
                if not keep_going:
                    raise error from None
                failures.append((row, error))
                lists.append([])
                continue
            if text in self.wrong_rows:
                ids = [*ids, 15]
            before = (
                [token_id for token_id in self.single_template if token_id is not None] if add_special_tokens else []
            )
            truncation = self.spec.truncation
            if truncation is not None and len(ids) > truncation.max_length - len(before):
                ids = ids[: truncation.max_length - len(before)]
                cut.append(row)
            around = self.single_template if add_special_tokens else (None,)
            lists.append([i for part in around for i in (ids if part is None else [part])])
        column = IdColumn.from_lists(lists)
        return IdColumn(column.ids, column.list_offsets, column.rows, failures, cut)

    def verify_batch(self, texts: TextColumn, ids: IdColumn, add_special_tokens: bool) -> Verification:
        self.calls.append(("verify", texts.rows))
        verdicts, absorbed = array.array("b"), array.array("q")
        counts: dict[tuple[str, str, str], int] = {}
        documents: dict[tuple[str, str], int] = {}
        for text, row in zip(texts, ids, strict=True):
            inner = row[1:-1] if add_special_tokens and self.single_template == (1, None, 2) else row
            assert inner == ids_of_text(text)
            blanks = text.count(" <mask>")
            absorbed.append(blanks)
            if blanks:
                counts["lstrip", "<mask>", " "] = counts.get(("lstrip", "<mask>", " "), 0) + blanks
                documents["lstrip", "<mask>"] = documents.get(("lstrip", "<mask>"), 0) + 1
            verdicts.append(VERDICTS.index("lossy" if 0 in inner else "stripped" if blanks else "exact"))
        by_whitespace = {("lstrip", " "): documents["lstrip", "<mask>"]} if documents else {}
        zeros = array.array("q", bytes(8 * len(absorbed)))
        return Verification(verdicts, absorbed, zeros, zeros, Absorbed(counts, documents, by_whitespace))


@dataclass
class FakeTokenizer:
    engine: FakeEngine = field(default_factory=FakeEngine)

    def with_options(self, *, truncation: object, padding: object) -> FakeTokenizer:
        spec = msgspec.structs.replace(self.engine.spec, truncation=truncation, padding=padding)
        return FakeTokenizer(FakeEngine(spec=spec, single_template=self.engine.single_template))
