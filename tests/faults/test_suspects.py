import math

from hypothesis import given
from hypothesis import strategies as st

from tokbatch.job.suspects import Hunt


def follow(hunt, kills):
    """Let a hunt go to its end; `kills(first, stop)` says whether these rows end a worker. Gives the deaths."""
    probes = deaths = 0
    while not hunt.is_over:
        probes += 1
        assert probes < 200
        low, stop = hunt.probe
        assert hunt.rows[0] <= low <= stop <= hunt.rows[1]
        if kills(low, stop):
            deaths += 1
            hunt.died("killed by SIGSEGV")
        else:
            hunt.passed()
    return deaths


@given(st.data())
def test_one_of_the_rows_that_kill_is_found_in_few_deaths(data):
    first = data.draw(st.integers(0, 50))
    rows = data.draw(st.integers(1, 5000))
    bad = data.draw(st.sets(st.integers(first, first + rows - 1), min_size=1, max_size=4))
    # What a worker had told before it died: never more than there is before the first bad row.
    guess = data.draw(st.none() | st.integers(first, min(bad)))
    hunt = Hunt((first, first + rows), "killed by SIGKILL", guess)
    deaths = follow(hunt, lambda low, stop: any(low <= row < stop for row in bad))
    assert hunt.found in bad
    assert hunt.reason == "killed by SIGSEGV"
    assert deaths <= math.ceil(math.log2(rows)) + 2


@given(st.integers(1, 300), st.none() | st.integers(0, 300))
def test_rows_that_kill_only_together_are_not_blamed_one_by_one(rows, guess):
    hunt = Hunt((0, rows + 1), "killed by SIGKILL", guess)
    follow(hunt, lambda low, stop: stop - low == rows + 1)
    assert hunt.found is None


def test_a_worker_that_dies_of_no_rows_at_all_is_no_reason_to_blame_one():
    hunt = Hunt((10, 20), "killed by SIGKILL", 15)
    assert follow(hunt, lambda low, stop: True) == 1
    assert hunt.found is None
