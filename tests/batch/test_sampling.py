"""Samples depend on the row's number and on nothing else."""

import pyarrow as pa
import pytest

from tokbatch.batch.sampling import in_sample
from tokbatch.batch.views import row_numbers


def test_rows_are_chosen_as_by_chance_and_in_the_right_number():
    for rate in (0.01, 0.5, 0.9):
        chosen = in_sample(row_numbers(20_000), rate, 0).to_pylist()
        assert sum(chosen) == pytest.approx(20_000 * rate, rel=0.15)
        in_thirds = [sum(chosen[start::3]) for start in range(3)]
        assert max(in_thirds) < 1.4 * min(in_thirds)


def test_all_and_none():
    assert in_sample(row_numbers(100), 1.0, 0).to_pylist() == [True] * 100
    assert in_sample(row_numbers(100), 0.0, 0).to_pylist() == [False] * 100


def test_batches_do_not_matter_and_purposes_do():
    whole = in_sample(row_numbers(1000), 0.3, 0).to_pylist()
    assert (
        whole == in_sample(row_numbers(300), 0.3, 0).to_pylist() + in_sample(row_numbers(700, 300), 0.3, 0).to_pylist()
    )
    assert whole != in_sample(row_numbers(1000), 0.3, 1).to_pylist()


def test_the_choice_is_pinned():
    """A resumed job of another day, or of another version of pyarrow, must choose the same rows."""
    rows = pa.array([0, 1, 2, 3, 10**12, 2**62], pa.int64())

    def scrambled(number: int, purpose: int) -> int:
        mask = 2**64 - 1
        z = (number + (purpose + 1) * 0x9E3779B97F4A7C15) * 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31

    for purpose in (0, 1):
        for rate in (0.25, 0.5, 0.75):
            expected = [scrambled(row, purpose) < rate * 2**64 for row in rows.to_pylist()]
            assert in_sample(rows, rate, purpose).to_pylist() == expected
