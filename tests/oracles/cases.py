"""Cases: what the oracle is asked, read from `cases/*.jsonl`.

A line is a case or opens a group. A group line has `group` (its name), `why`, and defaults for the cases that
follow it. A case has `why` and `text` (or `decode_ids`), and any of:

    tokenizer               name of a file in tokenizers/, or "sample" for the one that comes with the package
    tokenizer_json          a whole tokenizer.json as a value, or as text where the text itself is the point
    added_tokens            entries; flags not named are false, a missing id is the next after the vocabulary
    normalizer, pre_tokenizer, post_processor, decoder, truncation, padding, version
                            put in the place of the tokenizer's own
    template                {"single": "<s> $A </s>", "pair": ...}: a TemplateProcessing, ids from the tokenizer
    model                   keys put over those of the tokenizer's model
    pair, add_special_tokens, encode_special_tokens, decode_ids
    unstable                fields in which the oracle's answer depends on the order of its hash tables

`answers.py` asks the oracle; `make_oracles.py` writes the answers down.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "cases"
TOKENIZERS = HERE / "tokenizers"
SAMPLE = HERE.parents[1] / "src" / "tokbatch" / "sample" / "tokenizer.json"

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
SECTIONS = (
    "added_tokens",
    "decoder",
    "normalizer",
    "padding",
    "post_processor",
    "pre_tokenizer",
    "truncation",
    "version",
)

Case = dict[str, Any]


def base_tokenizer(name: str) -> dict[str, Any]:
    """Read a named tokenizer."""
    path = SAMPLE if name == "sample" else TOKENIZERS / f"{name}.json"
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def tokenizer_text(case: Case) -> str:
    """Give the text of the tokenizer.json that a case (as `read_cases` gives it, or as frozen) is about."""
    if "tokenizer_json" in case:
        value = case["tokenizer_json"]
        return value if isinstance(value, str) else json.dumps(value)
    change = dict(case.get("change", {}))
    value = base_tokenizer(case["tokenizer"])
    value["model"] = {**value["model"], **change.pop("model", {})}
    return json.dumps({**value, **change})


def read_cases(path: pathlib.Path) -> Iterator[Case]:
    """Read a file of cases, with the defaults of their groups put in and the shorthands written out."""
    group: Case = {}
    number = 0
    for line_number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry: Case = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}:{line_number}: {error}") from None
        if "group" in entry:
            group, number = entry, 0
            continue
        number += 1
        yield _written_out({**group, **entry}, f"{group['group']}-{number:02}")


def _written_out(case: Case, name: str) -> Case:
    written: Case = {
        key: case[key]
        for key in ("why", "tokenizer_json", "text", "pair", "decode_ids", "encode_special_tokens", "unstable")
        if key in case
    }
    written["name"] = name
    written["add_special_tokens"] = case.get("add_special_tokens", True)
    written.setdefault("text", "")
    if "tokenizer_json" in case:
        return written
    written["tokenizer"] = case["tokenizer"]
    change = {key: case[key] for key in (*SECTIONS, "model") if key in case}
    base = base_tokenizer(case["tokenizer"])
    vocabulary = {**base["model"], **change.get("model", {})}["vocab"]
    if isinstance(vocabulary, list):
        vocabulary = {piece: token_id for token_id, (piece, _) in enumerate(vocabulary)}
    if "added_tokens" in change:
        change["added_tokens"] = [
            {"id": vocabulary.get(entry["content"], len(vocabulary) + position), **dict.fromkeys(FLAGS, False), **entry}
            for position, entry in enumerate(change["added_tokens"])
        ]
    if "template" in case:
        ids = {**vocabulary, **{entry["content"]: entry["id"] for entry in change.get("added_tokens", [])}}
        change["post_processor"] = template(case["template"], ids)
    if change:
        written["change"] = change
    return written


def template(short: dict[str, str], ids: dict[str, int]) -> dict[str, Any]:
    """Write a template out: pieces are set apart by spaces, a type id follows a colon (`$B:1`)."""
    used: set[str] = set()

    def piece(text: str) -> dict[str, Any]:
        name, _, type_id = text.partition(":")
        if name in ("$A", "$B"):
            return {"Sequence": {"id": name[1:], "type_id": int(type_id or 0)}}
        used.add(name)
        return {"SpecialToken": {"id": name, "type_id": int(type_id or 0)}}

    single, pair = ([piece(text) for text in short[key].split()] for key in ("single", "pair"))
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in sorted(used)},
    }
