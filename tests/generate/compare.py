"""One tokenizer and some texts, asked of the oracle and of an engine: what differs.

What the oracle refuses or crashes on must be a TokbatchError here, and nothing else may be one. Where the oracle
does not agree with itself (some answers depend on the order of its hash tables, which changes at every load), nothing
can differ.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tokbatch as tb
from oracles import oracle
from oracles.answers import plain

Value = dict[str, Any]
ORACLE_LOADS = 24


@dataclass(frozen=True)
class Question:
    """What is asked of a tokenizer: a text or a pair, or ids to decode."""

    text: str
    pair: str | None = None
    add_special_tokens: bool = True
    encode_special_tokens: bool = False
    decode_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Difference:
    """One thing that differs: `what` is a field, "load", "encode", "decode", "refused" or "crash"."""

    what: str
    expected: Any
    given: Any


def _oracle_answer(loaded: Any, question: Question) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        encoding = oracle.encode(loaded, question.text, question.pair, question.add_special_tokens)
        answer |= plain(encoding)
        answer["overflowing"] = [plain(part) for part in encoding.overflowing]
    except oracle.OracleError:
        answer["encode"] = "an error"
    for name, ids in (("decoded", answer.get("ids")), ("decoded_ids", question.decode_ids)):
        for skip in (False, True):
            if ids is not None:
                try:
                    answer[f"{name}_{skip}"] = oracle.decode(loaded, ids, skip)
                except oracle.OracleError:
                    answer[f"{name}_{skip}"] = "an error"
    return answer


def _our_answer(tok: tb.Tokenizer, question: Question) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    special = question.add_special_tokens
    try:
        encoding = tok.encode(question.text, question.pair, add_special_tokens=special)
        answer |= plain(encoding)
        answer["overflowing"] = [plain(part) for part in encoding.overflowing]
    except tb.TokbatchError:
        answer["encode"] = "an error"
    if question.pair is None:
        try:
            (ids,) = tok.encode_batch([question.text], add_special_tokens=special).to_pylist()
            if ids != answer.get("ids"):
                answer["encode_batch"] = ids
            (count,) = tok.count_batch([question.text], add_special_tokens=special).to_pylist()
            if count != len(ids):
                answer["count_batch"] = count
        except tb.TokbatchError:
            if "encode" not in answer:
                answer["encode_batch"] = "an error"
    for name, ids in (("decoded", answer.get("ids")), ("decoded_ids", question.decode_ids)):
        for skip in (False, True):
            if ids is not None:
                try:
                    answer[f"{name}_{skip}"] = tok.decode(list(ids), skip_special_tokens=skip)
                except tb.TokbatchError:
                    answer[f"{name}_{skip}"] = "an error"
    return answer


def _load_oracle(value: Value, question: Question) -> Any | None:
    try:
        return oracle.tokenizer(json.dumps(value), question.encode_special_tokens)
    except oracle.OracleError:
        return None


def hangs_the_oracle(value: Value) -> bool:
    """Tell whether the normalizer leaves nothing of an added token that it is applied to.

    The oracle then searches for the empty string: it splits ASCII text everywhere, crashes on other text, and on some
    texts (an empty entry and "cb", in "c c") goes on until the memory is full.
    """
    in_force = {entry["content"]: entry for entry in value["added_tokens"]}  # of two with one content the last counts
    contents = [content for content, entry in in_force.items() if entry["normalized"] and content]
    if not contents or value["normalizer"] is None:
        return False
    try:
        normalizer = oracle.component("normalizer", value["normalizer"])
        with oracle.guard():
            return any(normalizer.normalize_str(content) == "" for content in contents)
    except oracle.OracleError:
        return False


def differences(value: Value, question: Question, engine: str) -> list[Difference]:
    """Ask both; give what differs, nothing if all is equal."""
    hangs = hangs_the_oracle(value)
    loaded = None if hangs else _load_oracle(value, question)
    try:
        tok = tb.Tokenizer.from_json(
            json.dumps(value), engine=engine, encode_special_tokens=question.encode_special_tokens
        )
    except tb.UnsupportedError as error:
        return [Difference("refused", "an answer", str(error))] if loaded is not None else []
    except tb.TokbatchError as error:
        return [Difference("load", "an answer", str(error))] if loaded is not None else []
    except Exception as error:
        return [Difference("crash", "an answer or a TokbatchError", repr(error))]
    if loaded is None:
        return [Difference("load", "a refusal" if hangs else "an error", "an answer")]
    expected = _oracle_answer(loaded, question)
    try:
        given = _our_answer(tok, question)
    except Exception as error:
        return [Difference("crash", "an answer or a TokbatchError", repr(error))]
    if given == expected:
        return []
    for _ in range(ORACLE_LOADS):
        if _oracle_answer(_load_oracle(value, question), question) != expected:
            return []
    keys = [*expected, *(key for key in given if key not in expected)]
    return [Difference(k, expected.get(k), given.get(k)) for k in keys if expected.get(k) != given.get(k)]
