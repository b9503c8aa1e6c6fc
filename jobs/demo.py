"""Tokenize the sample corpus that comes with tokbatch, and print what the ids cannot give back, file by file.

    python jobs/demo.py

The same by the command line: `tokbatch run configs/demo.toml --overwrite` and `tokbatch report out/demo`.
"""

from pathlib import Path

from tokbatch.job import load_config, render_report, run_job

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "demo.toml"


def main() -> None:
    """Run the job anew and print its report."""
    config = load_config(CONFIG)
    run_job(config, overwrite=True)
    print(render_report(config.output_path), end="")


if __name__ == "__main__":
    main()
