"""From a `TokenizerSpec` to the message that the native engine is built from: msgpack, read by native/src/spec.rs.

The fields are the spec's own. Resolved here is what only one place may decide: the ids that added tokens really have
(`spec/added_token_ids.py`), and the trees of regular expressions (`spec/regex_syntax.py`), whose sets of code points
come from the pinned tables. Not here: what any of it means.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tokbatch.spec import TokenizerSpec, regex_tree
from tokbatch.spec.added_token_ids import added_token_table
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.pre_tokenizers import GPT2_PATTERN
from tokbatch.spec.regex_syntax import parse

WIRE_VERSION = 2  # the same number stands in native/src/spec.rs


def to_wire(spec: TokenizerSpec) -> bytes:
    """Write a spec as the message."""
    model = {key: getattr(spec.model, key) for key in spec.model.__struct_fields__}
    message = {
        "wire_version": WIRE_VERSION,
        "model": {type(spec.model).__name__: model},
        "added_tokens": _added_tokens(spec),
        "normalizer": _component(spec.normalizer, "$.normalizer"),
        "pre_tokenizer": _component(spec.pre_tokenizer, "$.pre_tokenizer"),
        "post_processor": _component(spec.post_processor, "$.post_processor"),
        "decoder": _component(spec.decoder, "$.decoder"),
        "truncation": _component(spec.truncation, "$.truncation"),
        "padding": _component(spec.padding, "$.padding"),
        "encode_special_tokens": spec.encode_special_tokens,
    }
    return msgspec.msgpack.encode(message)


def _added_tokens(spec: TokenizerSpec) -> dict[str, Any]:
    """Write the table of added tokens; the entries in force have their place in the file, for errors."""
    table = added_token_table(spec)
    places = {id(entry): index for index, entry in enumerate(spec.added_tokens)}
    return {
        "in_force": [
            {**msgspec.to_builtins(token), "id": token_id, "place": places[id(token)]}
            for token_id, token in sorted(table.in_force.items())
        ],
        "ids": list(table.ids.items()),
        "special_contents": sorted(table.special_contents),
        "normalized_contents": table.normalized_contents,
    }


def _component(value: Any, where: str) -> Any:
    """Write a component: a struct as a map with its tag, a pattern as what it matches."""
    if isinstance(value, Pattern):
        return {"string": value.string} if value.regex is None else {"regex": _tree(parse(value.regex, where))}
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        fields = {key: _component(getattr(value, key), f"{where}.{key}") for key in value.__struct_fields__}
        if config.tag == "ByteLevel" and where.startswith("$.pre_tokenizer"):
            fields["pattern"] = {"regex": _tree(parse(GPT2_PATTERN))} if fields["use_regex"] else None
        return fields if config.tag is None else {config.tag_field: config.tag, **fields}
    if isinstance(value, tuple):
        return [_component(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        return [(key, _component(item, f"{where}.{key}")) for key, item in value.items()]
    return value


def _tree(root: regex_tree.Node) -> dict[str, Any]:
    """Write a tree, each set of characters once."""
    numbers: dict[Any, int] = {}

    def number(members: Any) -> int:
        return numbers.setdefault(members, len(numbers))

    def write(node: regex_tree.Node) -> Any:
        match node:
            case regex_tree.Set(members):
                return {"set": number(members)}
            case regex_tree.Sequence(parts):
                return {"sequence": [write(part) for part in parts]}
            case regex_tree.Alternation(branches):
                return {"alternation": [write(branch) for branch in branches]}
            case regex_tree.Repeat(body, minimum, maximum, greedy):
                fields = {"body": write(body), "minimum": minimum, "maximum": maximum, "greedy": greedy}
                return {"repeat": fields}
            case regex_tree.Atomic(body):
                return {"atomic": write(body)}
            case regex_tree.Look(body, behind, negated):
                return {"look": {"body": write(body), "behind": behind, "negated": negated}}
            case regex_tree.Anchor(kind, word):
                return {"anchor": {"kind": kind, "word": None if word is None else number(word)}}
            case regex_tree.Keep():
                return {"keep": None}

    written = write(root)
    return {"sets": [members.bounds for members in numbers], "root": written}
