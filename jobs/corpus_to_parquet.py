"""Tokenize Parquet files: the whole job, its verification, and what it says of each file.

python jobs/corpus_to_parquet.py [CONFIG.toml [section.key=value...]]

The same by the command line: `tokbatch run`, `tokbatch verify`, `tokbatch report`. It goes on where it was stopped.
"""

import sys
from pathlib import Path

from tokbatch.job import load_config, read_stats, run_job, verify_output

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "corpus_to_parquet.toml"


def main(arguments: list[str]) -> None:
    """Run, verify, and print a line a file."""
    config = load_config(arguments[0] if arguments else CONFIG, arguments[1:])
    result = run_job(config, resume=True)
    print(f"{result.stats.documents:,} documents, {result.stats.tokens:,} tokens in {result.seconds:.1f} s")

    problems = verify_output(config.output_path, sample_rate=0.1).problems
    print(f"{len(problems)} problems", *problems, sep="\n")

    files, _ = read_stats(config.output_path)
    for name, stats in files:
        per_token = stats.bytes / max(1, stats.tokens)
        print(f"{name}: {stats.tokens:,} tokens of {per_token:.2f} bytes, {stats.lossy_documents} lossy documents")


if __name__ == "__main__":
    main(sys.argv[1:])
