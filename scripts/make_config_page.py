"""Write docs/config.md from the definitions of the settings in `tokbatch.job.config`.

python scripts/make_config_page.py [--check]
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
from typing import Any

from tokbatch.job import config

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "config.md"
SECTIONS = {
    "tokenizer": config.TokenizerConfig,
    "tokenizer.truncation": config.TruncationConfig,
    "input": config.InputConfig,
    "output": config.OutputConfig,
    "output.packing": config.PackingConfig,
    "check": config.CheckConfig,
    "run": config.RunConfig,
}
HEAD = """# The config of a job

A TOML file; `scripts/make_config_page.py` made this page from the settings' definitions. An unknown key is an error
that names the nearest known one, and all mistakes are reported at once. Relative paths start from the folder of the
config file.

On the command line, `--set a.b=value` lays a value over the file's. The value is TOML (`--set run.workers=4`, `--set
'tokenizer.append=["<|endoftext|>"]'`); what is not TOML is a string, so that `--set output.path=out/a` needs no quotes.

Exit status of every command: 0 done; 1 what was begun failed, found a loss that the policy forbids, or is not right;
2 the command or the config is wrong: a mistake in it, a tokenizer file that is missing or is none, `input.files` that
match nothing, a column or a split that is not there or not given; 130 interrupted. Each mistake is a line that begins
with `error:`, where there is something to do about it with a line `hint:` after it.

What is finished of an interrupted or failed job stays, and `--resume` goes on from there: with the same settings,
except for `run.workers`, `run.retries`, `run.max_memory`, `run.cached_pretokens`, `run.on_bad_file`, `run.on_bad_row`
and `check.on_lossy`, which may change: shards with failed or lossy documents are then made again. The unit of resuming
is the shard; `run.shard_bytes` makes shards smaller.

A worker takes some 270 MB with the default `run.batch_bytes`, however large files, row groups and columns are. A
document that is longer than a batch takes 12 bytes of memory for each of its own (6 GB for one of 500 MB): up to 16
where tokens are short, and 6 in the formats `"megatron"` and `"bin"`. `run.max_memory` bounds the whole job: first by
the number of workers, and a worker that passes its share ends, so that the document is found that needs so much. The
report has the measured peak.
"""


def default_of(field: dataclasses.Field[Any]) -> str:
    """Give the default as it would stand in the file."""
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    if value is None:
        return "not set"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def page() -> str:
    """Give the text of the page."""
    parts = [HEAD]
    for name, section in SECTIONS.items():
        parts.append(f"\n## [{name}]\n\n{section.__doc__}\n\n| key | default | what it is |\n|---|---|---|\n")
        for field in dataclasses.fields(section):
            text = field.metadata["help"].replace("|", "\\|")
            parts.append(f"| `{field.name}` | {default_of(field)} | {text} |\n")
    return "".join(parts)


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/config.md is not what scripts/make_config_page.py makes of the settings")
