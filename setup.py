"""The one part of the build that pyproject.toml cannot say: the native engine.

It is built where cargo is. Where it is not, the package installs all the same, without it (`optional`), and the
reference engine does the work; `tokbatch --version` and every run say so.
"""

import sys

from setuptools import setup
from setuptools_rust import Binding, RustExtension

# Buffers belong to Python's stable interface from 3.11 on: there one wheel serves all versions.
HAS_STABLE_BUFFERS = sys.version_info >= (3, 11)

setup(
    rust_extensions=[
        RustExtension(
            "tokbatch._native",
            path="native/Cargo.toml",
            binding=Binding.PyO3,
            features=["python", "abi3"] if HAS_STABLE_BUFFERS else ["python"],
            args=["--locked"],
            debug=False,
            optional=True,
            py_limited_api=HAS_STABLE_BUFFERS,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HAS_STABLE_BUFFERS else {},
)
