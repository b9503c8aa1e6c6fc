#!/usr/bin/env python3
"""Look for texts and files that break a property of the native engine, each for some time.

    fuzz.py                                     all properties, two minutes each, from a seed of the clock
    fuzz.py split_covers_input --seconds 600    one of them, for ten minutes
    fuzz.py load_never_panics --from 1234 --rounds 1    one seed again

A round is made of one seed, and the same seed makes the same round. What breaks a property is printed with its seed.
Exits 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests"))

from generate.source import Source, seeded  # noqa: E402
from generate.texts import random_text  # noqa: E402
from generate.tokenizers import contents_of, random_tokenizer, words_of  # noqa: E402
from tokbatch import sample  # noqa: E402
from tokbatch.engine import build_engine, native  # noqa: E402
from tokbatch.engine.columns import TextColumn  # noqa: E402
from tokbatch.engine.protocol import Engine  # noqa: E402
from tokbatch.engine.wire import components_to_wire  # noqa: E402
from tokbatch.engine.wire_options import options_to_wire  # noqa: E402
from tokbatch.errors import SpecError, TokbatchError, UnsupportedError  # noqa: E402
from tokbatch.spec import TokenizerSpec  # noqa: E402
from tokbatch.spec.lazy import LazySpec  # noqa: E402
from tokbatch.spec.read import load_spec, read_spec  # noqa: E402

MOST_MEMORY = 3 << 30
ROWS = 8
PIECES = "aaabbbccc  \n\n\t1²éßsSſ_-,.!'Àƒ中文かカк\u0301\u200d\u3000\ufffd▁Ġ😀\U00010400\x00\x7f\xa0"
PATTERNS = [
    r"\w+|[^\w\s]+",
    r"\s+(?!\S)|\s+",
    r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"a+b|c",
    r"(?:a|ab)*c",
    r"(a|a)*b",
    r"(?<=a)b|\Gc",
    r"(?<!\s.*)\d",
    r"a*?b*",
    r"\p{N}{1,3}",
    r"(?>a+)b|\b",
    r"",
    r"^|$",
    r"\K.",
    r"[^a]{2,}?",
    r"(?i:ss)|ſ",
]


class Broken(Exception):
    """A property does not hold."""


def outcome(call: Callable[[], Any]) -> Any:
    """Give what a call gives, or its error as the user sees it."""
    try:
        return call()
    except TokbatchError as error:
        if error.code == "native-fault":
            raise Broken(f"a panic: {error.message}") from None
        return error.to_dict()


def expect_equal(what: str, given: Any, expected: Any, about: Any) -> None:
    """Raise `Broken` where the two differ."""
    if given != expected:
        raise Broken(f"{what}: {given!r}\nexpected: {expected!r}\nof {about!r}")


def text_of(source: Source, value: dict[str, Any]) -> str:
    """Make a text: of the tokenizer's own words, of awkward characters, or the same again and again."""
    way = source.integer(0, 5)
    if way <= 2:
        return random_text(source, words_of(value), contents_of(value))
    if way <= 4:
        return "".join(source.several(lambda: source.choose(PIECES), 0, 40))
    unit = "".join(source.several(lambda: source.choose(PIECES), 1, 3))
    return unit * source.choose([2, 30, 300, 2000]) + source.choose(PIECES)


def built(value: dict[str, Any]) -> tuple[TokenizerSpec, Engine] | None:
    """Build the native engine of a tokenizer; None where it is refused."""
    try:
        spec = read_spec(json.dumps(value).encode())
        return spec, build_engine(spec, "native")
    except (SpecError, UnsupportedError):
        return None
    except TokbatchError as error:
        raise Broken(f"{type(error).__name__} {error.code} at load: {error}") from None


def ids_of(engine: Engine, texts: list[str], add_special_tokens: bool) -> Any:
    """Give all that `encode_batch` says."""
    ids = engine.encode_batch(TextColumn.from_texts(texts), add_special_tokens, keep_going=True)
    return list(ids), [(row, error.to_dict()) for row, error in ids.failures], list(ids.truncated_rows)


def encode_equals_reference(source: Source) -> None:
    """Hold columns, encodings, pairs and stages against the reference engine."""
    value = random_tokenizer(source)
    loaded = built(value)
    if loaded is None:
        return
    spec, fast = loaded
    reference = build_engine(spec, "reference")
    texts = [text_of(source, value) for _ in range(ROWS)]
    for add_special_tokens in (True, False):
        given = outcome(lambda: ids_of(fast, texts, add_special_tokens))  # noqa: B023 - called at once
        expected = outcome(lambda: ids_of(reference, texts, add_special_tokens))  # noqa: B023
        expect_equal("encode_batch", given, expected, (json.dumps(value), texts))
    for text, pair in zip(texts, [*texts[1:], None], strict=True):
        if len(text) > 2000:
            continue
        arguments = (text, pair if pair is not None and len(pair) < 300 else None, source.chance(50))
        given = outcome(lambda: fast.encode(*arguments))  # noqa: B023
        expect_equal("encode", given, outcome(lambda: reference.encode(*arguments)), (json.dumps(value), arguments))  # noqa: B023


def decode_inverts_encode(source: Source) -> None:
    """Take a text that is said to be exact, or that nothing rewrites, through its ids and back."""
    value = random_tokenizer(source)
    loaded = built(value)
    if loaded is not None:
        spec, fast = loaded
        texts = [text_of(source, value) for _ in range(ROWS)]
        column = TextColumn.from_texts(texts)
        ids = fast.encode_batch(column, False, keep_going=True)
        given = outcome(lambda: fast.verify_batch(column, ids, False))
        expected = outcome(lambda: build_engine(spec, "reference").verify_batch(column, ids, False))
        expect_equal("verify_batch", given, expected, (json.dumps(value), texts))
        if spec.padding is None and not isinstance(given, dict):
            for text, row, verdict in zip(texts, ids, given.verdicts, strict=True):
                is_back = outcome(lambda: fast.decode(row, False)) == text  # noqa: B023 - called at once
                if (verdict == 0) != is_back and not ids.failures:
                    raise Broken(f"verdict {verdict} of {text!r}, and decoded is {fast.decode(row, False)!r}: {value}")
    sample_engine = built_sample()
    texts = ["".join(source.several(lambda: source.choose(PIECES), 0, 60)) for _ in range(ROWS)]
    ids = sample_engine.encode_batch(TextColumn.from_texts(texts), False)
    expect_equal("decode_batch", list(sample_engine.decode_batch(ids, False)), texts, texts)


def built_sample() -> Engine:
    """Build, once, the engine of the sample tokenizer: byte-level, without a normalizer."""
    if "engine" not in _SAMPLE:
        _SAMPLE["engine"] = build_engine(load_spec(sample.tokenizer_path()), "native")
    return _SAMPLE["engine"]


_SAMPLE: dict[str, Engine] = {}


def split_covers_input(source: Source) -> None:
    """Join the pieces of Splits that drop nothing: they are the text, on all roads."""
    behaviors = ["Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    regexes = ["".join(source.several(lambda: source.choose("ab(|)*+?c\\s[^a]{2}.$"), 1, 9)), source.choose(PATTERNS)]
    splits = [
        {
            "type": "Split",
            "pattern": {"Regex": source.choose(regexes)} if source.chance(85) else {"String": source.choose(PIECES)},
            "behavior": source.choose(behaviors),
            "invert": source.chance(30),
        }
        for _ in range(source.integer(1, 3))
    ]
    value = {
        "model": {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"},
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
    }
    loaded = built(value)
    if loaded is None:
        return
    spec, fast = loaded
    reference = build_engine(spec, "reference")
    for _ in range(ROWS):
        text = text_of(source, value)
        if len(text) > 700:
            text = text[:700]
        stages = outcome(lambda: fast.trace(text, False))  # noqa: B023 - called at once
        expected = outcome(lambda: reference.trace(text, False))  # noqa: B023
        expect_equal("trace", stages, expected, (json.dumps(value), text))
        if isinstance(stages, dict):
            continue
        pieces = next(stage.pieces for stage in stages if stage.name == "pretokens")
        expect_equal("the pieces", "".join(pieces), text, (json.dumps(value), text))
        (ids,) = fast.encode_batch(TextColumn.from_texts([text]), False)
        expect_equal("the number of ids", len(ids), len(pieces), (json.dumps(value), text))


def load_never_panics(source: Source) -> None:
    """Load a file, and a message to the native engine, in which something is wrong."""
    value = random_tokenizer(source)
    text = json.dumps(value, ensure_ascii=source.chance(50))
    mutated = bytearray(text.encode())
    for _ in range(source.integer(1, 4)):
        mutate(source, mutated)
    try:
        engine = build_engine(read_spec(bytes(mutated)), "native")
        outcome(lambda: engine.encode("a b", None, True))
    except TokbatchError as error:
        if error.code == "native-fault":
            raise Broken(f"a panic: {error.message}: {bytes(mutated)!r}") from None
    try:
        spec = read_spec(text.encode())
        sent = components_to_wire(spec), options_to_wire(spec), LazySpec.of(spec).source.packed_entries()
    except TokbatchError:
        return
    messages = [bytearray(message) for message in sent]
    for _ in range(source.integer(1, 3)):
        mutate(source, source.choose(messages))
    try:
        engine = native._native.Engine(*map(bytes, messages))
        engine.encode_batch(*columns(["a b", "c"]), True, True)
        engine.encode("a b", None, True)
        engine.decode([0, 1, 2], False)
    except native._native.NativeError as error:
        if error.args[1] == "native-fault":
            raise Broken(f"a panic: {error.args[2]}: {list(map(bytes, messages))!r}") from None


def columns(texts: list[str]) -> tuple[Any, Any, int]:
    """Give a column as the extension module takes it."""
    column = TextColumn.from_texts(texts)
    return memoryview(column.data).cast("B"), memoryview(column.list_offsets), column.rows


def mutate(source: Source, data: bytearray) -> None:
    """Change a few bytes, take some out, or put some in."""
    at = source.integer(0, max(0, len(data) - 1))
    way = source.integer(0, 4)
    if way == 0:
        data[at : at + 1] = bytes([source.integer(0, 255)])
    elif way == 1:
        del data[at : at + source.integer(1, 8)]
    elif way == 2:
        data[at:at] = data[at : at + source.integer(1, 30)]
    elif way == 3:
        data[at : at + 1] = source.choose([b"\xff", b"\xcf", b"\x00", b"-1", b"999999999999", b"1e999", b"null"])
    else:
        data[at : at + 1] = bytes([(data[at] if data else 0) ^ 1 << source.integer(0, 7)])


PROPERTIES: dict[str, Callable[[Source], None]] = {
    prop.__name__: prop
    for prop in (encode_equals_reference, decode_inverts_encode, split_covers_input, load_never_panics)
}


def main() -> int:
    """Run the properties that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("properties", nargs="*", choices=[*PROPERTIES, []], help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=120, help="for each property")
    parser.add_argument("--rounds", type=int, default=None, help="at most so many rounds of each")
    parser.add_argument("--from", type=int, dest="first", default=None, help="the first seed")
    parser.add_argument("--most", type=int, default=5, help="stop a property after so many findings")
    arguments = parser.parse_args()
    missing = native.why_unavailable()
    if missing is not None:
        print(f"there is nothing to look at: the native engine is not installed: {missing}")
        return 2
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    first = random.SystemRandom().randrange(1 << 40) if arguments.first is None else arguments.first
    broken = 0
    for name in arguments.properties or PROPERTIES:
        broken += run(name, first, arguments.seconds, arguments.rounds, arguments.most)
    return int(broken > 0)


def run(name: str, first: int, seconds: float, rounds: int | None, most: int) -> int:
    """Run one property from a seed on; give how often it was broken."""
    broken, seed, end = 0, first, time.monotonic() + seconds
    while time.monotonic() < end and broken < most and (rounds is None or seed < first + rounds):
        try:
            PROPERTIES[name](seeded(seed))
        except Broken as error:
            broken += 1
            print(f"{name} is broken with seed {seed}: {error}\n", flush=True)
        except Exception:
            broken += 1
            print(f"{name}, seed {seed}: an error that is none of ours\n{traceback.format_exc()}", flush=True)
        seed += 1
    print(f"{name}: seeds {first} to {seed - 1}, broken {broken} times", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main())
