"""BPE: the symbols, the order of the merges, and what is odd about them. Each case is checked on the oracle too."""

import time
from types import ModuleType
from typing import Any

import pytest

from tokbatch.engine.reference.models import bpe
from tokbatch.errors import EncodeError, UnsupportedError
from tokbatch.spec import models as spec

BYTES = {f"<0x{byte:02X}>": 100 + byte for byte in range(256)}


def tokens_of(oracle: ModuleType, text: str, **fields: Any) -> list[tuple[str, int, int]]:
    """Give (token, start, end), after a look at whether the oracle says the same."""
    model = spec.BPE(**{"merges": [], **fields})
    tokens = bpe.BPE(model).tokenize(text)
    loaded = oracle.tokenizer({"version": "1.0", "model": {"type": "BPE", "merges": [], **fields}})
    assert [tuple(token) for token in tokens] == [
        (token.id, token.value, *token.offsets) for token in loaded.model.tokenize(text)
    ]
    assert bpe.BPE(model).token_ids(text) == tuple(token.id for token in tokens)
    return [(token.value, token.start, token.end) for token in tokens]


def test_the_lowest_rank_is_merged_first_and_of_equal_ranks_the_leftmost(oracle: ModuleType) -> None:
    vocab = {"a": 0, "b": 1, "aa": 2, "ab": 3, "aaa": 4}
    assert tokens_of(oracle, "aaab", vocab=vocab, merges=[("a", "a"), ("a", "b"), ("aa", "a")]) == [
        ("aa", 0, 2),
        ("ab", 2, 4),
    ]
    assert tokens_of(oracle, "aaa", vocab=vocab, merges=[("aa", "a"), ("a", "a")]) == [("aaa", 0, 3)]


def test_a_rank_is_not_an_id(oracle: ModuleType) -> None:
    vocab = {"a": 9, "b": 5, "c": 7, "bc": 0, "ab": 3}
    assert tokens_of(oracle, "abc", vocab=vocab, merges=[("a", "b"), ("b", "c")]) == [("ab", 0, 2), ("c", 2, 3)]


def test_of_a_merge_that_is_there_twice_the_last_one_counts(oracle: ModuleType) -> None:
    vocab = {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4}
    merges = [("a", "b"), ("b", "c"), ("a", "b")]
    assert tokens_of(oracle, "abc", vocab=vocab, merges=merges) == [("a", 0, 1), ("bc", 1, 3)]


def test_unknown_characters_are_dropped_where_there_is_no_unknown_token_and_the_rest_moves_up(
    oracle: ModuleType,
) -> None:
    assert tokens_of(oracle, "中a中b", vocab={"a": 0, "b": 1}) == [("a", 0, 1), ("b", 1, 2)]
    assert tokens_of(oracle, "中中", vocab={"a": 0}) == []


def test_unknown_tokens_are_fused_on_demand(oracle: ModuleType) -> None:
    fields = {"vocab": {"a": 0, "?": 1}, "unk_token": "?"}
    assert tokens_of(oracle, "中éa", **fields) == [("?", 0, 3), ("?", 3, 5), ("a", 5, 6)]
    assert tokens_of(oracle, "中éa", **fields, fuse_unk=True) == [("?", 0, 5), ("a", 5, 6)]


def test_bytes_overtake_an_unknown_token_that_waits(oracle: ModuleType) -> None:
    fields = {"vocab": {"a": 0, "?": 1, "<0x0A>": 2}, "unk_token": "?", "byte_fallback": True, "fuse_unk": True}
    assert tokens_of(oracle, "中\n中a", **fields) == [("<0x0A>", 0, 1), ("?", 1, 7), ("a", 7, 8)]


def test_byte_fallback_spells_prefix_and_suffix_too_and_places_run_past_the_end(oracle: ModuleType) -> None:
    fields = {"vocab": BYTES, "byte_fallback": True, "continuing_subword_prefix": "#", "end_of_word_suffix": "!"}
    values = [value for value, _, _ in tokens_of(oracle, "ab", **fields)]
    assert values == ["<0x61>", "<0x23>", "<0x62>", "<0x21>"]
    assert bpe.BPE(spec.BPE(merges=[], **fields)).tokenize("ab")[-1].end == 4


def test_unknown_and_byte_tokens_are_merged_like_others(oracle: ModuleType) -> None:
    vocab = {"a": 0, "?": 1, "?a": 2, "<0x0A>": 3, "a<0x0A>": 4}
    merges = [("?", "a"), ("a", "<0x0A>")]
    fields = {"vocab": vocab, "merges": merges, "unk_token": "?", "byte_fallback": True}
    assert tokens_of(oracle, "中aa\n", **fields) == [("?a", 0, 4), ("a<0x0A>", 4, 6)]


def test_the_right_side_of_a_merge_loses_the_length_of_the_prefix(oracle: ModuleType) -> None:
    vocab = {"a": 0, "##b": 1, "ab": 2, "##c": 3, "abc": 4}
    fields = {"vocab": vocab, "merges": [("a", "##b"), ("ab", "##c")], "continuing_subword_prefix": "##"}
    assert tokens_of(oracle, "abc", **fields) == [("abc", 0, 3)]


def test_the_suffix_stands_at_the_last_character_only(oracle: ModuleType) -> None:
    vocab = {"a": 0, "b</w>": 1, "ab</w>": 2, "a</w>": 3}
    fields = {"vocab": vocab, "merges": [("a", "b</w>")], "end_of_word_suffix": "</w>"}
    assert tokens_of(oracle, "ab", **fields) == [("ab</w>", 0, 2)]
    assert tokens_of(oracle, "aa", **fields) == [("a", 0, 1), ("a</w>", 1, 2)]


def test_ignore_merges_takes_a_whole_pretoken_out_of_the_vocabulary(oracle: ModuleType) -> None:
    fields = {"vocab": {"a": 0, "b": 1, "ab": 2}}
    assert tokens_of(oracle, "ab", **fields) == [("a", 0, 1), ("b", 1, 2)]
    assert tokens_of(oracle, "ab", **fields, ignore_merges=True) == [("ab", 0, 2)]
    assert tokens_of(oracle, "aba", **fields, ignore_merges=True) == [("a", 0, 1), ("b", 1, 2), ("a", 2, 3)]


@pytest.mark.parametrize(("dropout", "expected"), [(None, 1), (0.0, 1), (-0.0, 1), (1e-50, 1), (1.0, 2), (1 - 1e-9, 2)])
def test_dropout_is_all_or_nothing(oracle: ModuleType, dropout: float | None, expected: int) -> None:
    fields = {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [("a", "b")], "dropout": dropout}
    assert len(tokens_of(oracle, "ab", **fields)) == expected
    assert len(tokens_of(oracle, "ab", **fields, ignore_merges=True)) == expected


def test_any_other_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"dropout 0\.5") as caught:
        bpe.BPE(spec.BPE(vocab={"a": 0}, merges=[], dropout=0.5))
    assert caught.value.where == "$.model.dropout"


def test_an_unknown_token_that_is_not_in_the_vocabulary_is_an_error_only_when_it_is_needed() -> None:
    model = bpe.BPE(spec.BPE(vocab={"a": 0}, merges=[], unk_token="?"))
    assert model.unk_token_id is None
    assert model.token_ids("aa") == (0, 0)
    with pytest.raises(EncodeError, match="'中'") as caught:
        model.token_ids("a中")
    assert caught.value.where == "$.model.unk_token"


def test_a_pair_that_changed_but_merges_into_the_same_id_keeps_the_old_rank(oracle: ModuleType) -> None:
    # "wx" and "wxy" have one id. After x and y have merged, the pair (w, xy) is taken for the pair (w, x) that stood
    # there, and merged before (xy, z), whose rank is lower than the rank of (w, xy) itself.
    vocab = {"w": 0, "x": 1, "y": 2, "z": 3, "xy": 4, "wx": 5, "wxy": 5, "xyz": 6}
    merges = [("x", "y"), ("w", "x"), ("xy", "z"), ("w", "xy")]
    fields = {"vocab": vocab, "merges": merges}
    model = bpe.BPE(spec.BPE(**fields))
    assert model.token_ids("wxyz") == (5, 3)
    loaded = oracle.tokenizer({"version": "1.0", "model": {"type": "BPE", **fields}})
    assert [token.id for token in loaded.model.tokenize("wxyz")] == [5, 3]


def test_tokens_that_share_an_id_are_called_by_the_first_one() -> None:
    model = bpe.BPE(spec.BPE(vocab={"a": 0, "b": 1, "c": 1}, merges=[]))
    assert model.vocab_size == 3
    assert [token.value for token in model.tokenize("abc")] == ["a", "b", "b"]
    assert model.id_to_token(1) == "b"
    assert model.id_to_token(7) is None


def test_byte_token_ids_are_those_that_byte_fallback_can_give() -> None:
    vocab = {"a": 0, "<0x61>": 1, "<0xFF>": 2, "<0xff>": 3}
    assert bpe.BPE(spec.BPE(vocab=vocab, merges=[], byte_fallback=True)).byte_token_ids == {1, 2}
    assert bpe.BPE(spec.BPE(vocab=vocab, merges=[])).byte_token_ids == frozenset()


def _letters(n: int) -> float:
    vocab = {"a" * 2**i: i for i in range(12)}
    model = bpe.BPE(spec.BPE(vocab=vocab, merges=[("a" * 2**i, "a" * 2**i) for i in range(11)]))
    started = time.process_time()
    ids = model.token_ids("a" * n)
    assert ids == (11,) * (n // 2048) + tuple(i for i in range(10, -1, -1) if n >> i & 1)
    return time.process_time() - started


def test_both_algorithms_agree_on_both_sides_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    vocab = {"a": 0, "b": 1, "ab": 2, "ba": 3, "aba": 4, "abab": 5}
    model = bpe.BPE(spec.BPE(vocab=vocab, merges=[("a", "b"), ("ab", "a"), ("ab", "ab"), ("b", "a")]))
    texts = ["ab" * n + "b" * k for n in range(30) for k in range(3)]
    answers = [model.tokenize(text) for text in texts]
    for limit in (0, 10**9):
        monkeypatch.setattr(bpe, "SCAN_LIMIT", limit)
        assert [model.tokenize(text) for text in texts] == answers


def test_time_grows_no_faster_than_n_log_n() -> None:
    short = min(_letters(20_000) for _ in range(3))
    assert min(_letters(80_000) for _ in range(3)) < 9 * short


@pytest.mark.long
def test_a_million_equal_letters() -> None:
    assert _letters(1_000_000) < 60
