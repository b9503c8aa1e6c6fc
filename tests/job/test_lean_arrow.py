"""What a process of a job loads, and that pyarrow does all we ask of it without numpy and pandas."""

import subprocess
import sys

from tokbatch import job, sample

NAMES = ("numpy", "pandas", "dill", "pyarrow", "datasets")
LOADED = f"import sys; print(sorted(name for name in {NAMES} if name in sys.modules))"
TRANSFORM = """
from tokbatch.job.lean_arrow import import_lean_arrow
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
from tokbatch.job.lean_arrow import import_lean_arrow
assert import_lean_arrow()
import numpy, pandas
print(numpy.arange(3).sum(), pandas.Series([1, 2]).sum())
"""
    assert run(code) == ["3 3"]


def test_the_functions_of_pyarrow_are_all_there():
    """Also where they want more of their documentation than there is for them."""
    code = """
import inspect, sys, types
from tokbatch.job import lean_arrow
if sys.argv[1] == "demanding":
    class Reader(types.ModuleType):
        @property
        def NumpyDocString(self):
            raise AttributeError
    lean_arrow.types = types.SimpleNamespace(ModuleType=Reader)
if sys.argv[1] == "plain":
    import numpy, pandas
    import pyarrow.compute as pc
else:
    assert lean_arrow.import_lean_arrow()
    pc = sys.modules["pyarrow.compute"]
print(sorted(name for name in dir(pc) if callable(getattr(pc, name))))
times = pc.strptime(pc.utf8_lower(["A", "1970"]), format="%Y", unit="s", error_is_null=True)
print(times.to_pylist(), inspect.signature(pc.strptime))
print("Parameters" in pc.strptime.__doc__ and "error_is_null :" in pc.strptime.__doc__)
"""
    plain, demanding, lean = (run(code, how) for how in ("plain", "demanding", "lean"))
    assert demanding == plain
    assert lean[:2] == plain[:2]
    assert (plain[2], lean[2]) == ("True", "False")


def test_nothing_is_collected_while_modules_load():
    code = """
import gc
from tokbatch.collector import without_collecting
for was_enabled in (True, False):
    (gc.enable if was_enabled else gc.disable)()
    try:
        with without_collecting(for_good=True):
            assert not gc.isenabled()
            raise ImportError
    except ImportError:
        print(gc.isenabled(), gc.get_freeze_count() > 0)
"""
    assert run(code) == ["True True", "False True"]


def test_where_they_are_already_nothing_is_hidden():
    code = """
import numpy
from tokbatch.job.lean_arrow import import_lean_arrow
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
