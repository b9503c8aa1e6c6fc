"""A corpus: from a config file to parts, statistics and a manifest, in as many processes as there are cores.

    from tokbatch.job import load_config, render_report, run_job

    result = run_job(load_config("configs/demo.toml"))

Reading order: `config.py`, `inputs.py`, `sources.py`, `plan.py`, `prepare.py` (all of these only look), then
`storage.py`, `lock.py`, `sinks/`, `parts.py`, `worker.py`, `workers.py`, `pool.py`, `run.py` (these do), and
`manifest.py`, `report.py`, `verify.py`.
"""

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
