"""Make an indexed dataset of Megatron-LM, and print the prefixes to give to its `--data-path`, weighted by tokens.

python jobs/megatron_export.py [CONFIG]
"""

import sys
from pathlib import Path

from tokbatch.job import load_config, read_manifest, run_job

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "megatron.toml"


def main(config_path: str) -> None:
    """Run the job anew and print weight and prefix of each part that has ids."""
    config = load_config(config_path)
    run_job(config, overwrite=True)
    for part in read_manifest(config.output_path)["parts"]:
        if part["tokens"]:
            print(part["tokens"], (config.output_path / part["path"]).with_suffix(""))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(CONFIG))
