"""The reader is as strict and as lenient as the oracle: on some 50,000 broken and odd texts both load, or neither.

The one difference that is allowed is a refusal by name (`UnsupportedError`) of what the oracle loads, for one of the
reasons in `REFUSALS` or for a pattern that cannot be given exactly. Where both load, what they loaded is compared
through the oracle's own writing of it.
"""

from __future__ import annotations

import itertools
import json
from types import ModuleType
from typing import Any

import msgspec
import pytest
from documents import WHOLE, document, sections, without_type
from mutations import mutations

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec import TokenizerSpec
from tokbatch.spec.added_token_ids import added_token_ids
from tokbatch.spec.read import read_spec
from tokbatch.spec.refusals import REFUSALS

DOCUMENTS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    *(
        (f"{section} {component['type']} {position}{suffix}", document(**{section: form}), (section,))
        for section, components in sections()
        for position, component in enumerate(components)
        for suffix, form in (("", component), (" without type", without_type(component)))
    ),
    *((f"whole {position}", whole, ()) for position, whole in enumerate(WHOLE)),
]
IDS = [name for name, _, _ in DOCUMENTS]
EVERY = 97  # the fast tier takes one mutation in so many, starting at another one for each document


def _loads(oracle: ModuleType, text: str) -> Any:
    try:
        return oracle.tokenizer(text)
    except oracle.OracleError:
        return None


def _reads(text: str) -> TokenizerSpec | SpecError:
    try:
        return read_spec(text)
    except SpecError as error:
        return error


def _difference(oracle: ModuleType, text: str) -> str | None:
    """Say in what the oracle and the reader differ about a text; None: in nothing that is not allowed."""
    theirs, ours = _loads(oracle, text), _reads(text)
    if isinstance(ours, SpecError):
        if theirs is None:
            return None
        if isinstance(ours, UnsupportedError) and any((ours.hint or "").startswith(why) for why in REFUSALS.values()):
            return None
        return f"the oracle loads it, the reader says: {ours}"
    if theirs is None:
        return "the oracle refuses it, the reader reads it"
    return _difference_of_values(theirs, ours)


def _difference_of_values(theirs: Any, ours: TokenizerSpec) -> str | None:
    vocab = getattr(ours.model, "vocab", None)
    if isinstance(vocab, dict) and (len(set(vocab.values())) < len(vocab) or max(vocab.values(), default=0) > 10_000):
        return (
            None  # The oracle writes the vocabulary by id: it loses tokens that share one, and counts up to the last.
        )
    written = theirs.to_str()
    ids = [{"id": token_id, **_flags(entry)} for token_id, entry in added_token_ids(ours)]
    if ids != json.loads(written)["added_tokens"]:
        return f"added tokens: {ids}, oracle: {json.loads(written)['added_tokens']}"
    expected = read_spec(written)
    for field in ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding"):
        if getattr(ours, field) != getattr(expected, field):
            return f"{field}: {getattr(ours, field)}, oracle: {getattr(expected, field)}"
    model, expected_model = map(msgspec.to_builtins, (ours.model, expected.model))
    if model["type"] == "Unigram":  # Read back, a score may lose its last bit once more.
        model["vocab"] = list(map(list, model["vocab"]))
        expected_model["vocab"] = json.loads(written)["model"]["vocab"]
    if "merges" in model:  # The oracle keeps of a repeated merge the last.
        model["merges"] = list(dict.fromkeys(reversed(model["merges"])))[::-1]
    return None if model == expected_model else f"model: {model}, oracle: {expected_model}"


def _flags(entry: Any) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(entry).items() if name != "id"}


def _check(oracle: ModuleType, name: str, whole: dict[str, Any], within: tuple[str, ...], every: int) -> None:
    share = itertools.islice(mutations(whole, within), IDS.index(name) % every, None, every)
    differences = {}
    for mutation, text in share:
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        difference = _difference(oracle, text)
        if difference is not None:
            differences[mutation] = difference

    assert differences == {}


@pytest.mark.parametrize(("name", "whole", "within"), DOCUMENTS, ids=IDS)
def test_unchanged_documents_are_read_as_the_oracle_reads_them(
    oracle: ModuleType, name: str, whole: dict[str, Any], within: tuple[str, ...]
) -> None:
    _, text = next(mutations(whole, within))

    assert _difference(oracle, text) is None


@pytest.mark.parametrize(("name", "whole", "within"), DOCUMENTS, ids=IDS)
def test_a_share_of_the_mutations(
    oracle: ModuleType, name: str, whole: dict[str, Any], within: tuple[str, ...]
) -> None:
    _check(oracle, name, whole, within, EVERY)


@pytest.mark.long
@pytest.mark.parametrize(("name", "whole", "within"), DOCUMENTS, ids=IDS)
def test_all_mutations(oracle: ModuleType, name: str, whole: dict[str, Any], within: tuple[str, ...]) -> None:
    _check(oracle, name, whole, within, 1)


MODEL = '"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"a"}'
TRUNCATION = '"max_length":1,"strategy":"OnlyFirst","stride":0'


def _nested(depth: int, opening: str, closing: str, middle: str = "") -> str:
    return opening * depth + middle + closing * depth


TEXTS: dict[str, str] = {
    "empty": "",
    "blank": " ",
    "null": "null",
    "an array": "[]",
    "a string": '"a"',
    "a byte order mark": "\ufeff{" + MODEL + "}",
    "whitespace after": "{" + MODEL + "} \t\r\n",
    "a letter after": "{" + MODEL + "}x",
    "a NUL after": "{" + MODEL + "}\0",
    "a no-break space after": "{" + MODEL + "}\u00a0",
    "a form feed after": "{" + MODEL + "}\f",
    "a comment after": "{" + MODEL + "}//",
    "two documents": "{" + MODEL + "}{" + MODEL + "}",
    "no model": "{}",
    "an escaped key": '{"\\u006dodel"' + MODEL[7:] + "}",
    "a broken model and a whole one": '{"model":{},' + MODEL + "}",
    "a whole model and a broken one": "{" + MODEL + ',"model":{}}',
    "a wrong version and a right one": "{" + MODEL + ',"version":"2.0","version":"1.0"}',
    "an unknown section": "{" + MODEL + ',"extra":null}',
    "a half pair in a skipped value": "{" + MODEL + ',"truncation":{' + TRUNCATION + ',"x":"\\ud800"}}',
    "a half pair in a key": '{"model":{"type":"WordLevel","vocab":{"\\udc00":0},"unk_token":"a"}}',
    "a pair in a key": '{"model":{"type":"WordLevel","vocab":{"\\ud83d\\ude00":0},"unk_token":"a"}}',
    "a repeated token": '{"model":{"type":"WordLevel","vocab":{"a":5,"a":0},"unk_token":"a"}}',
    "a repeated token that is wrong first": '{"model":{"type":"WordLevel","vocab":{"a":-1,"a":0},"unk_token":"a"}}',
    **{f"cut at {end}": ("{" + MODEL + "}")[:end] for end in range(len(MODEL) + 2)},
    **{
        f"{what} {depth} deep": text
        for depth in (60, 61, 62, 63, 64, 123, 124, 125, 126, 127, 128, 1000)
        for what, text in (
            ("arrays", _nested(depth, "[", "]")),
            ("an ignored array", "{" + MODEL[:-1] + ',"x":' + _nested(depth, "[", "]") + "}}"),
            ("an ignored object", "{" + MODEL[:-1] + ',"x":' + _nested(depth, '{"a":', "}", "1") + "}}"),
            ("a vocabulary", '{"model":{"type":"WordLevel","unk_token":"a","vocab":' + _nested(depth, "[", "]") + "}}"),
            *(
                (key, "{" + MODEL + f',"{key}":' + _nested(depth, f'{{"type":"Sequence","{items}":[', "]}") + "}")
                for key, items in (
                    ("normalizer", "normalizers"),
                    ("pre_tokenizer", "pretokenizers"),
                    ("post_processor", "processors"),
                    ("decoder", "decoders"),
                )
            ),
        )
    },
    "a skipped value 126 deep": "{" + MODEL + ',"truncation":{' + TRUNCATION + ',"x":' + _nested(126, "[", "]") + "}}",
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts(oracle: ModuleType, what: str) -> None:
    assert _difference(oracle, TEXTS[what]) is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"model":{"type":"WordLevel","vocab":{"\xff":0},"unk_token":"a"}}',
        b'{"model":{"type":"WordLevel","vocab":{"\xc0\x80":0},"unk_token":"a"}}',
        b'{"model":{"type":"WordLevel","vocab":{"\xed\xa0\x80":0},"unk_token":"a"}}',
        ("{" + MODEL + "}").encode("utf-16"),
        ("{" + MODEL + "}").encode("utf-32"),
        b"\x1f\x8b\x08\x00",
    ],
)
def test_bytes_that_are_not_utf8_are_refused_by_both(oracle: ModuleType, data: bytes) -> None:
    with pytest.raises(oracle.OracleError), oracle.guard():
        oracle.Tokenizer.from_buffer(data)
    with pytest.raises(SpecError):
        read_spec(data)
