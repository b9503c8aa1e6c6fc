"""Tokenize for NLLB, with the language of each document from a column: its token takes the place of the template's.

python jobs/languages_nllb.py [CONFIG.toml [section.key=value...]]
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq

from tokbatch import Tokenizer
from tokbatch.job import load_config, read_manifest, run_job

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "languages_nllb.toml"


def main(arguments: list[str]) -> None:
    """Run the job, and show what stands around the first document of each part."""
    config = load_config(arguments[0] if arguments else CONFIG, arguments[1:])
    run_job(config, overwrite=True)
    if config.tokenizer.file:
        tokenizer = Tokenizer.from_file(config.resolve(config.tokenizer.file))
    else:
        tokenizer = Tokenizer.from_pretrained(config.tokenizer.name or "", config.tokenizer.revision)
    for part in read_manifest(config.output_path)["parts"]:
        row = pq.read_table(config.output_path / part["path"]).slice(0, 1).to_pylist()[0]
        ids = row[config.output.id_column]
        print(row["language"], tokenizer.id_to_token(ids[0]), "...", tokenizer.id_to_token(ids[-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
