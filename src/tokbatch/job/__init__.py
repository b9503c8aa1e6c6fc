"""A corpus: from a config file to parts, statistics and a manifest, in as many processes as there are cores.

    from tokbatch.job import load_config, render_report, run_job

    result = run_job(load_config("configs/demo.toml"))

Importing `tokbatch.job` itself is cheap: its names are loaded at their first use.

Reading order: `config.py`, `inputs.py`, `sources.py`, `plan.py`, `prepare.py`, `estimate.py` (all of these only look),
then `storage.py`, `lock.py`, `sinks/`, `parts.py`, `reading.py`, `worker.py`, `workers.py`, `pool.py`, `run.py` (these
do), and `manifest.py`, `report.py`, `verify.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokbatch.job.config import JobConfig, load_config, read_config
    from tokbatch.job.manifest import read_manifest, read_stats
    from tokbatch.job.prepare import prepare_job
    from tokbatch.job.report import render_report
    from tokbatch.job.run import JobResult, run_job
    from tokbatch.job.verify import verify_output

__all__ = [
    "JobConfig",
    "JobResult",
    "load_config",
    "prepare_job",
    "read_config",
    "read_manifest",
    "read_stats",
    "render_report",
    "run_job",
    "verify_output",
]

_HOMES = {
    "JobConfig": "config",
    "JobResult": "run",
    "load_config": "config",
    "prepare_job": "prepare",
    "read_config": "config",
    "read_manifest": "manifest",
    "read_stats": "manifest",
    "render_report": "report",
    "run_job": "run",
    "verify_output": "verify",
}


if not TYPE_CHECKING:  # to a type checker, a name that is not there would be there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'tokbatch.job' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"tokbatch.job.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
