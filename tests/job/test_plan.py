import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbatch.job.plan import LARGEST, MOST_PIECES, SMALL, SMALLEST, Shard, plan_shards, shard_size
from tokbatch.job.sources import Unit

units = st.lists(st.builds(Unit, st.integers(0, 1000), st.integers(0, 100_000), by_rows=st.booleans()), max_size=30)


@given(st.lists(units, min_size=1, max_size=5), st.integers(1, 30_000))
def test_shards_cover_every_input_once_and_in_order(inputs, size):
    shards = plan_shards(inputs, size)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    for number, own_units in enumerate(inputs):
        own = [shard for shard in shards if shard.input == number]
        assert own, "an input without rows has a shard too"
        assert [shard.number for shard in own] == list(range(len(own)))
        assert (own[0].start, own[0].skip, own[0].first_row) == (0, 0, 0)
        assert own[-1].stop == len(own_units)
        for before, after in itertools.pairwise(own):
            assert before.file_rows[1] == after.first_row
            # A unit that two shards share is one that may be read by rows.
            assert before.stop == after.start or (before.stop == after.start + 1 and own_units[after.start].by_rows)
        assert sum(shard.rows for shard in own) == sum(unit.rows for unit in own_units)
        assert sum(shard.text_bytes for shard in own) == sum(unit.text_bytes for unit in own_units)
        for shard in own:
            begin = sum(unit.rows for unit in own_units[: shard.start])
            assert begin + shard.skip == shard.first_row
            assert shard.skip + shard.rows <= sum(unit.rows for unit in own_units[shard.start : shard.stop])
            assert shard.stop > shard.start or not own_units


@given(st.lists(st.integers(900, 1100), min_size=20, max_size=200), st.integers(3_000, 20_000))
def test_even_row_groups_give_even_shards(sizes, wanted):
    shards = plan_shards([[Unit(10, size) for size in sizes]], wanted)
    largest, smallest = max(s.text_bytes for s in shards), min(s.text_bytes for s in shards)
    assert largest - smallest <= 3 * 1100
    assert len(shards) == max(1, round(sum(sizes) / wanted))


def test_a_huge_row_group_stands_alone():
    shards = plan_shards([[Unit(10, 10), Unit(1, 1000), Unit(10, 10)]], 300)
    assert [(shard.start, shard.stop) for shard in shards] in (
        [(0, 1), (1, 2), (2, 3)],
        [(0, 1), (1, 3)],
        [(0, 2), (2, 3)],
    )


def test_a_huge_row_group_that_can_be_read_by_rows_is_cut_evenly():
    shards = plan_shards([[Unit(10, 1000, by_rows=True)]], 300)
    assert [(shard.start, shard.stop, shard.skip, shard.rows) for shard in shards] == [
        (0, 1, 0, 3),
        (0, 1, 3, 3),
        (0, 1, 6, 4),
    ]
    assert len(plan_shards([[Unit(1000, 1 << 30, by_rows=True)]], 1 << 20)) == MOST_PIECES


@pytest.mark.parametrize(
    ("total", "wanted", "expected"),
    [
        (0, 0, SMALLEST),
        (1 << 28, 0, 1 << 23),
        (1 << 30, 0, SMALL),
        (1 << 50, 0, LARGEST),
        (1 << 34, 0, 1 << 25),
        (1 << 50, 77, 77),
    ],
)
def test_the_size_of_a_shard_follows_the_corpus(total, wanted, expected):
    assert shard_size([[Unit(1, total)]], wanted) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("data/books.parquet", "00002-books-00003"),
        ("s3://bucket/a b/ü?.pq", "00002-input-00003"),
        ("c4:en:train", "00002-c4_en_train-00003"),
        ("../.hidden.parquet", "00002-hidden-00003"),
        ("a" * 300 + ".parquet", "00002-" + "a" * 80 + "-00003"),
        ("folder/", "00002-folder-00003"),
    ],
)
def test_names_of_parts(name, expected):
    assert Shard(9, 2, 3, 0, 1, 0, 1, 1).part_name(name) == expected
