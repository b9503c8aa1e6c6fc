import errno
import os
import random

import pytest

from corpora import files_below, write_config, write_corpus
from faulty_file_systems import FailsOnce
from tokbatch.errors import OutputError
from tokbatch.job import load_config, run_job, verify_output

SMALL = {"run__shard_bytes": 700, "run__batch_bytes": 300, "run__workers": 1}


def seeded(seeds):
    """Give (call, nth, number) of failures, each from its seed."""
    for seed in seeds:
        rng = random.Random(seed)
        call = rng.choice(["open", "write", "sync", "rename"])
        yield pytest.param(call, rng.randint(1, 5), rng.choice([errno.EIO, errno.ENOSPC, errno.EDQUOT]), id=str(seed))


@pytest.mark.parametrize(
    ("call", "nth", "number"),
    [
        ("write", 2, errno.ENOSPC),
        *(pytest.param(*p.values, id=p.id, marks=pytest.mark.long) for p in seeded(range(12))),
    ],
)
def test_a_call_that_fails_ends_the_job_clearly_and_nothing_is_lost_or_changed(tmp_path, call, nth, number):
    write_corpus(tmp_path, "a.parquet", 120, 30)
    config = write_config(tmp_path, **SMALL)
    run_job(load_config(config, ["output.path=undisturbed"]))
    failing = FailsOnce(call, nth, str(tmp_path / "marks"), number)
    with pytest.raises(OutputError) as caught:
        run_job(load_config(config), file_system=failing)
    assert os.strerror(number) in caught.value.message
    assert caught.value.where.startswith(str(tmp_path / "out"))
    assert (caught.value.hint is not None) == (number != errno.EIO)
    assert not (tmp_path / "out/manifest.json").exists()
    run_job(load_config(config), resume=True)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "undisturbed")
    assert verify_output(tmp_path / "out", 0.0).problems == []
    assert not [path for path in (tmp_path / "out").rglob("*") if "partial" in path.name]
