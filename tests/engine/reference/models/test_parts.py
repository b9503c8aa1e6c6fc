"""A pretoken cut into parts has the ids of its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbatch.engine.reference.models import build_model
from tokbatch.spec.models import BPE, WordLevel

LETTERS = "ab▁é"


@st.composite
def bpe_with_marks(draw: st.DrawFn) -> BPE:
    """A vocabulary of random merges over a few letters and the word mark; some letters may be missing."""
    tokens = draw(st.lists(st.sampled_from(LETTERS), min_size=1, unique=True))
    merges: list[tuple[str, str]] = []
    for _ in range(draw(st.integers(0, 8))):
        left, right = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if left + right not in tokens:
            tokens.append(left + right)
        if (left, right) not in merges:
            merges.append((left, right))
    vocab = {token: token_id for token_id, token in enumerate(["<unk>", *tokens])}
    return BPE(vocab, merges, unk_token="<unk>", fuse_unk=draw(st.booleans()), ignore_merges=draw(st.booleans()))


@given(bpe_with_marks(), st.text(LETTERS + "z", max_size=30))
def test_the_ids_of_the_parts_are_the_ids_of_the_whole(model: BPE, pretoken: str):
    built = build_model(model)

    parts = built.parts(pretoken)

    assert "".join(parts) == pretoken
    assert tuple(i for part in parts for i in built.token_ids(part)) == built.token_ids(pretoken)


def test_a_document_of_words_is_cut_at_every_word():
    model = build_model(BPE({"a": 0, "b": 1, "▁": 2, "▁a": 3}, [("▁", "a")]))

    assert model.parts("▁ab▁b▁a") == ["▁ab", "▁b", "▁a"]


def test_there_is_no_cut_where_a_merge_could_cross_it():
    model = build_model(BPE({"a": 0, "b": 1, "▁": 2, "a▁": 3}, [("a", "▁")]))

    assert model.parts("ba▁b▁b") == ["ba▁b", "▁b"]


def test_there_is_no_cut_beside_an_unknown_character():
    model = build_model(BPE({"<unk>": 0, "a": 1, "▁": 2}, [], unk_token="<unk>", fuse_unk=True))

    assert model.parts("z▁a▁z") == ["z▁a", "▁z"]


@pytest.mark.parametrize("option", [{"continuing_subword_prefix": "##"}, {"end_of_word_suffix": "</w>"}])
def test_a_prefix_or_a_suffix_keeps_a_pretoken_whole(option: dict[str, str]):
    vocab = {"a": 0, "▁": 1, "##a": 2, "##▁": 3, "a</w>": 4}

    assert build_model(BPE(vocab, [], **option)).parts("a▁a▁a") == ["a▁a▁a"]


def test_other_models_keep_a_pretoken_whole():
    assert build_model(WordLevel({"[UNK]": 0}, "[UNK]")).parts("a▁b") == ["a▁b"]
