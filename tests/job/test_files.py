import pyarrow as pa
import pytest

from tokbatch.job.files import unreadable


def test_memory_that_no_machine_has_is_the_fault_of_the_file():
    error = unreadable(pa.ArrowMemoryError("malloc of size 3819052484010180800 failed"), "a.parquet")
    assert str(error) == "a.parquet: cannot be read: malloc of size 3819052484010180800 failed"
    for text in ("malloc of size 4096 failed", ""):
        with pytest.raises(MemoryError):
            unreadable(pa.ArrowMemoryError(text), "a.parquet")
