"""The counts of texts and ids against a recount in plain Python."""

from hypothesis import given, settings
from hypothesis import strategies as st

from batch.fake_engine import FakeEngine
from tokbatch.batch.count import IdClasses, count_ids, count_texts
from tokbatch.batch.stats import Stats
from tokbatch.engine.columns import IdColumn, TextColumn

ENGINE = FakeEngine(unk_id=2, special_ids=frozenset({1, 2}), byte_token_ids=frozenset({4, 5}))


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"))))
def test_texts(texts):
    sizes = [len(text.encode()) for text in texts]
    assert count_texts(TextColumn.from_texts(texts)) == Stats(
        empty_documents=texts.count(""),
        bytes=sum(sizes),
        characters=sum(map(len, texts)),
        longest_document_bytes=max(sizes, default=0),
    )


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 20), max_size=20)))
def test_ids(lists):
    flat = [token_id for ids in lists for token_id in ids]

    def bucket(length):
        return max((2**k for k in range(10) if 2**k <= length), default=0)

    buckets = [bucket(len(ids)) for ids in lists]
    # 15 is the largest id of the engine: with larger ones the counting takes another road.
    assert count_ids(IdColumn.from_lists(lists), IdClasses(ENGINE), 3) == Stats(
        tokens=len(flat),
        added_tokens=3 * len(lists),
        special_tokens=flat.count(1) + flat.count(2),
        unknown_tokens=flat.count(2),
        byte_fallback_tokens=flat.count(4) + flat.count(5),
        longest_document_tokens=max(map(len, lists), default=0),
        document_lengths={b: buckets.count(b) for b in sorted(set(buckets))},
    )


def test_powers_of_two():
    lengths = [0, 1, 2, 3, 4, 7, 8, 1023, 1024]
    stats = count_ids(IdColumn.from_lists([[0] * n for n in lengths]), IdClasses(ENGINE), 0)
    assert stats.document_lengths == {0: 1, 1: 1, 2: 2, 4: 2, 8: 1, 512: 1, 1024: 1}


def test_ids_far_apart():
    engine = FakeEngine(unk_id=2**31 - 1, special_ids=frozenset({1}), byte_token_ids=frozenset(), max_id=2**31 - 1)
    stats = count_ids(IdColumn.from_lists([[1, 2**31 - 1, 5], [1]]), IdClasses(engine), 0)
    assert (stats.special_tokens, stats.unknown_tokens, stats.tokens) == (2, 1, 4)


def test_an_engine_without_special_or_unknown_tokens():
    engine = FakeEngine(unk_id=None, special_ids=frozenset(), byte_token_ids=frozenset())
    stats = count_ids(IdColumn.from_lists([[0, 1, 2]]), IdClasses(engine), 0)
    assert (stats.special_tokens, stats.unknown_tokens, stats.byte_fallback_tokens) == (0, 0, 0)
