#!/usr/bin/env python3
"""Hold an engine against the oracle on random tokenizers and texts, and print what differs as small cases.

    differential.py 20000                 20,000 (tokenizer, text) pairs, seeds 0, 1, 2, ...
    differential.py 20000 --from 50000    ... other seeds
    differential.py 1 --from 1234         one seed again

A tokenizer is asked several texts. Each difference is made as small as it goes, and printed once a kind. Exits 1 if
there is any.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import resource
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests"))

from generate.compare import Difference, Question, differences  # noqa: E402
from generate.shrink import Case, smallest  # noqa: E402
from generate.source import seeded  # noqa: E402
from generate.tokenizers import random_tokenizer  # noqa: E402
from oracles import oracle  # noqa: E402
from strategies import random_question  # noqa: E402

TEXTS_PER_TOKENIZER = 4
MOST_MEMORY = 6 << 30  # some files make the oracle allocate without end


def kind(found: list[Difference]) -> str:
    """Name what a reader would call the same difference."""
    first = found[0]
    if first.what in ("load", "refused", "crash"):
        return f"{first.what}: {str(first.given).splitlines()[0][:60]}"
    return first.what


def show(case: Case, found: list[Difference], seed: int) -> None:
    """Print a case and its differences."""
    value, question = case
    print(f"DIFFERS seed {seed}\n  tokenizer {json.dumps(value)}\n  {question}")
    for difference in found:
        print(f"    {difference.what}: expected {difference.expected!r}\n      given {difference.given!r}"[:1500])
    sys.stdout.flush()


def main() -> int:
    """Run; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=int)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--engine", default="reference")
    parser.add_argument("--show", type=int, default=3, help="how many cases of a kind are made small and printed")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    kinds: collections.Counter[str] = collections.Counter()
    pairs, seed, started = 0, arguments.first, time.monotonic()
    with oracle.quiet():
        while pairs < arguments.pairs:
            source = seeded(seed)
            value = random_tokenizer(source)
            for _ in range(TEXTS_PER_TOKENIZER):
                question = random_question(source, value)
                pairs += 1
                found = differences(value, question, arguments.engine)
                if not found:
                    continue
                name = kind(found)
                kinds[name] += 1
                if kinds[name] <= arguments.show:

                    def fails(case: Case, name: str = name) -> bool:
                        again = differences(*case, arguments.engine)
                        return bool(again) and kind(again) == name

                    small: tuple[dict[str, object], Question] = smallest((value, question), fails)
                    show(small, differences(*small, arguments.engine), seed)
            seed += 1
    print(
        f"{pairs} pairs of a tokenizer and a text (seeds {arguments.first} to {seed - 1}), "
        f"{sum(kinds.values())} differ, {time.monotonic() - started:.0f} s"
    )
    for name, count in kinds.most_common():
        print(f"{count:>8} {name}")
    return bool(kinds)


if __name__ == "__main__":
    sys.exit(main())
