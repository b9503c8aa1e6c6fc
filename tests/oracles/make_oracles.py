#!/usr/bin/env python3
"""Freeze the oracle's answers: cases/*.jsonl in, answers/*.jsonl out.

    make_oracles.py            write the answers, and print how many there are of what
    make_oracles.py --check    ask again and compare with what is committed; exit 1 if anything differs

A pure function of the cases, the tokenizers beside them and the oracle's version, which `oracle.py` asserts.
An answer is its case, with shorthands written out, and what the oracle gave: a line each, keys sorted.
"""

from __future__ import annotations

import argparse
import difflib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from oracles import oracle  # noqa: E402
from oracles.answers import frozen  # noqa: E402
from oracles.cases import CASES, read_cases  # noqa: E402

ANSWERS = HERE / "answers"


def render(path: pathlib.Path) -> str:
    """Give the answers to a file of cases, as the text of its file of answers."""
    answers = [frozen(case) for case in read_cases(path)]
    names = [answer["name"] for answer in answers]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two groups have one name")
    return "".join(f"{json.dumps(answer, sort_keys=True)}\n" for answer in answers)


def main() -> int:
    """Write or check; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is committed, write nothing")
    arguments = parser.parse_args()
    status = 0
    with oracle.quiet():
        rendered = {path.stem: render(path) for path in sorted(CASES.glob("*.jsonl"))}
    for stem, text in rendered.items():
        target = ANSWERS / f"{stem}.jsonl"
        if not arguments.check:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or (committed := target.read_text(encoding="utf-8")) != text:
            status = 1
            committed = target.read_text(encoding="utf-8") if target.exists() else ""
            sys.stdout.writelines(
                difflib.unified_diff(
                    committed.splitlines(True), text.splitlines(True), f"committed {stem}", "asked now", n=0
                )
            )
    stray = {path.stem for path in ANSWERS.glob("*.jsonl")} - set(rendered)
    if stray:
        print(f"answers without cases: {', '.join(sorted(stray))}", file=sys.stderr)
        status = 1
    answers = [json.loads(line) for text in rendered.values() for line in text.splitlines()]
    errors = [answer["error"] for answer in answers if "error" in answer]
    print(
        f"{len(answers)} answers of tokenizers {oracle.VERSION}, of which {len(errors)} are errors "
        f"({sum(error['panicked'] for error in errors)} crashes)"
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
