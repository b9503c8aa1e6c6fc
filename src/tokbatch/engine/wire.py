"""From a `TokenizerSpec` to the messages that the native engine is built from: msgpack, read by native/src/spec.rs.

The fields are the spec's own. Resolved here is what only one place may decide: the ids that added tokens really have
(`spec/added_token_ids.py`), and the trees of regular expressions (`spec/regex_syntax.py`), whose sets of code points
come from the pinned tables, with a word on when a search for them is given up (`engine/reference/pattern_analysis.py`).
Not here: what any of it means. There are three messages, since an engine can come from a file of tables (`native.py`):
that has the components, does without the entries, and depends on no option (`wire_options.py`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from tokbatch.engine.reference.pattern_alphabet import Alphabet
from tokbatch.engine.reference.pattern_analysis import (
    EXPONENTIAL,
    attempts_in_vain,
    degree,
    fits_re,
    longest_short_text,
    may_begin,
)
from tokbatch.engine.reference.pattern_program import compile_program
from tokbatch.engine.wire_options import WIRE_VERSION
from tokbatch.errors import TokbatchError, UnsupportedError
from tokbatch.spec import TokenizerSpec, regex_tree
from tokbatch.spec.added_token_ids import added_token_table
from tokbatch.spec.lazy import ENTRIES
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.pre_tokenizers import GPT2_PATTERN
from tokbatch.spec.regex_syntax import parse

# A pattern of more nodes, counts written out, would take hundreds of megabytes.
LARGEST_PATTERN = 1_000_000


def components_to_wire(spec: TokenizerSpec) -> bytes:
    """Write all of a spec but its options and the entries of its model (`spec/lazy.py` packs those)."""
    model = {key: getattr(spec.model, key) for key in spec.model.__struct_fields__ if key not in ENTRIES}
    message = {
        "wire_version": WIRE_VERSION,
        "model": {type(spec.model).__name__: model},
        "added_tokens": _added_tokens(spec),
        "normalizer": _component(spec.normalizer, "$.normalizer"),
        "pre_tokenizer": _component(spec.pre_tokenizer, "$.pre_tokenizer"),
        "post_processor": _component(spec.post_processor, "$.post_processor"),
        "decoder": _component(spec.decoder, "$.decoder"),
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
        return {"string": value.string} if value.regex is None else {"regex": _tree(parse(value.regex, where), where)}
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        fields = {key: _component(getattr(value, key), f"{where}.{key}") for key in value.__struct_fields__}
        if config.tag == "ByteLevel" and where.startswith("$.pre_tokenizer"):
            fields["pattern"] = {"regex": _tree(parse(GPT2_PATTERN), where)} if fields["use_regex"] else None
        return fields if config.tag is None else {config.tag_field: config.tag, **fields}
    if isinstance(value, tuple):
        return [_component(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, dict):
        return [(key, _component(item, f"{where}.{key}")) for key, item in value.items()]
    return value


def _tree(root: regex_tree.Node, where: str) -> dict[str, Any]:
    """Write a tree, each set of characters once."""
    if _written_out(root) > LARGEST_PATTERN:
        raise UnsupportedError(
            f"the native engine has no regular expression of more than {LARGEST_PATTERN} steps, counts written out",
            where=where,
            code="native-unsupported",
            hint='engine="reference" may have it',
        )
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
    alphabet = Alphabet(root)
    first = None if regex_tree.minimum_length(root) == 0 else alphabet.members_of(may_begin(root, alphabet)).bounds
    return {
        "sets": [members.bounds for members in numbers],
        "root": written,
        "retries": _retries(root, alphabet, where),
        "short_text": longest_short_text(degree(root)),
        "first": first,
    }


def _retries(root: regex_tree.Node, alphabet: Alphabet, where: str) -> str:
    """Say in which texts the reference engine may give up a search: where it does not use Python's `re`."""
    work = degree(root)
    if not fits_re(root) or work >= EXPONENTIAL:
        try:
            compile_program(root, alphabet)  # what is too large is refused in the same words
        except TokbatchError as error:
            error.where = error.where or where
            raise
        return "counted"
    return "free" if work <= 1 and not attempts_in_vain(root, alphabet) else "free_in_short_texts"


def _written_out(node: regex_tree.Node) -> int:
    """Count the nodes of a tree, with counted repeats written out."""
    nodes = sum(map(_written_out, regex_tree.children(node)))
    if isinstance(node, regex_tree.Repeat):
        nodes *= node.minimum + 1 if node.maximum is None else node.maximum
    return nodes + 1
