"""A corpus: config, plan, storage, worker, run, manifest, report."""
