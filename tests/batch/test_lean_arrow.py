"""What a process of a job loads, and that pyarrow does all we ask of it without numpy and pandas."""

import subprocess
import sys

from tokbatch import job, sample

LOADED = "import sys; print(sorted(name for name in ('numpy', 'pandas', 'pyarrow', 'datasets') if name in sys.modules))"
TRANSFORM = """
from tokbatch.batch.lean_arrow import import_lean_arrow
assert import_lean_arrow()
assert not import_lean_arrow()
import io, sys
import pyarrow as pa, pyarrow.parquet as pq
from tokbatch.batch.stats import to_table
from tokbatch.batch.transform import Transform, TransformOptions
from tokbatch.tokenizer import Tokenizer
transform = Transform(TransformOptions(keep_columns="all"), Tokenizer.from_file(sys.argv[1]))
batch = pa.record_batch({"id": [1, 2, 3], "text": ["a <mask> b", None, "c"]})
output, stats = transform.transform(batch, 5)
pq.write_table(to_table(["f"], [stats]), io.BytesIO())
print(output.to_pylist(), stats.to_json())
"""


def run(code, *arguments):
    """Run in a new process; warnings stay out of it."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_lean_process_gives_the_same():
    plain = TRANSFORM.replace("assert import_lean_arrow()\nassert not import_lean_arrow()", "import numpy, pandas")
    tokenizer = str(sample.tokenizer_path())
    lean = run(TRANSFORM + LOADED, tokenizer)
    assert lean[0] == run(plain, tokenizer)[0]
    assert lean[1] == "['pyarrow']"


def test_numpy_and_pandas_are_there_for_others_afterwards():
    code = """
from tokbatch.batch.lean_arrow import import_lean_arrow
assert import_lean_arrow()
import numpy, pandas
print(numpy.arange(3).sum(), pandas.Series([1, 2]).sum())
"""
    assert run(code) == ["3 3"]


def test_where_they_are_already_nothing_is_hidden():
    code = """
import numpy
from tokbatch.batch.lean_arrow import import_lean_arrow
assert not import_lean_arrow()
import pyarrow
print(pyarrow.array(numpy.arange(2)).to_pylist())
"""
    assert run(code) == ["[0, 1]"]


def test_what_is_loaded_before_there_is_work():
    """The command line shows its help, and reads a config, without pyarrow."""
    code = "import tokbatch, tokbatch.frontends.cli, tokbatch.job.config, tokbatch.job.worker_process\n"
    assert run(code + LOADED) == ["[]"]
    assert all(callable(getattr(job, name)) for name in job.__all__)
