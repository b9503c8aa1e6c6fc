"""The digest changes when and only when the meaning does; the facts name what a reader would not expect."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from documents import FLAGS, MODELS, PADDING, TRUNCATION, document, sections
from mutations import changed, places, write

from tokbatch.errors import SpecError
from tokbatch.spec import TokenizerSpec
from tokbatch.spec import digest as digest_module
from tokbatch.spec.added_token_ids import added_token_ids
from tokbatch.spec.byte_alphabet import BYTE_TO_CHARACTER
from tokbatch.spec.describe import describe
from tokbatch.spec.digest import digest
from tokbatch.spec.read import read_spec

BPE = MODELS[1]


def _digest(whole: dict[str, Any], **options: Any) -> str:
    return digest(read_spec(json.dumps(whole), **options))


def test_spacing_key_order_ignored_keys_and_older_spellings_do_not_count() -> None:
    whole = document(model=BPE, truncation=TRUNCATION)
    expected = _digest(whole)

    assert digest(read_spec(json.dumps(whole, indent=3, sort_keys=True))) == expected
    assert _digest({**whole, "model": {**BPE, "merges": ["a b"], "extra": 1}}) == expected
    assert _digest({**whole, "padding": None, "added_tokens": []}) == expected
    assert _digest({**whole, "model": {key: value for key, value in BPE.items() if key != "type"}}) == expected
    assert len(expected) == 64


def test_every_value_that_is_not_ignored_counts() -> None:
    """Each value of each document is replaced by others; what then can be read differs in its digest."""
    wholes = [
        document(**{section: form}) for section, forms in sections() for form in forms if form["type"] != "Delimiter"
    ]
    wholes.append(document(truncation=TRUNCATION, padding=PADDING, added_tokens=[{"id": 5, "content": "s", **FLAGS}]))
    compared = 0
    for whole in wholes:
        spec = read_spec(json.dumps(whole))
        for path in places(whole):
            for new in (True, False, 3, 0.25, "q", "Left", "never", "Removed"):
                try:
                    other = _without_ignored_keys(read_spec(write(changed(whole, path, _setting(new)))))
                except SpecError:
                    continue
                compared += 1
                assert (other == spec) == (digest(other) == digest(spec)), path

    assert compared > 200


def _without_ignored_keys(spec: TokenizerSpec) -> TokenizerSpec:
    return msgspec.structs.replace(spec, ignored_keys=())


def _setting(new: Any) -> Any:
    def change(container: Any, step: Any) -> Any:
        if container is None:
            return new
        container[step] = new
        return container

    return change


def test_special_tokens_as_text_and_the_format_count(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = document()
    expected = _digest(whole)

    assert _digest(whole, encode_special_tokens=True) != expected
    monkeypatch.setattr(digest_module, "FORMAT", b"tokbatch spec 2\n")
    assert _digest(whole) != expected


def _entry(content: str, token_id: int = 0, **flags: bool) -> dict[str, Any]:
    return {"id": token_id, "content": content, **FLAGS, **flags}


def test_added_tokens_get_the_ids_that_the_oracle_gives(oracle: Any) -> None:
    whole = document(
        model={"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 7, "b": 3}, "unk_token": "[UNK]"},
        added_tokens=[
            _entry("x", 90),  # gets the vocabulary's size, 3, and shares it with b
            _entry("a", 1),
            _entry("", 2),
            _entry("y", 4),
            _entry("b", 5),  # takes 3 over from x
            _entry("y", 6, normalized=True),
        ],
    )
    theirs = json.loads(oracle.tokenizer(json.dumps(whole)).to_str())["added_tokens"]
    ours = added_token_ids(read_spec(json.dumps(whole)))

    assert [(token_id, entry.content, entry.normalized) for token_id, entry in ours] == [
        (3, "b", False),
        (4, "y", True),
        (7, "a", False),
    ]
    assert [(entry["id"], entry["content"], entry["normalized"]) for entry in theirs] == [
        (token_id, entry.content, entry.normalized) for token_id, entry in ours
    ]


def test_facts_say_what_is_dropped_where_there_is_no_unknown_token() -> None:
    letters = {letter: number for number, letter in enumerate(BYTE_TO_CHARACTER.values())}
    bytes_of = {f"<0x{byte:02X}>": byte for byte in range(256)}
    some = {letter: number for letter, number in letters.items() if letter != "a"}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    steps = {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, byte_level]}
    plain = {**BPE, "unk_token": None, "merges": []}

    def note(vocab: dict[str, int], **changes: object) -> str:
        model = {**plain, "vocab": vocab, "byte_fallback": changes.pop("byte_fallback", False)}
        facts = describe(read_spec(json.dumps(document(model=model, **changes))))
        return next(fact.note for fact in facts if fact.name == "unk_token")

    assert note(letters, pre_tokenizer=steps) == "no character is unknown: each of the 256 bytes has a token"
    assert note(letters, normalizer={"type": "ByteLevel"}) == note(letters, pre_tokenizer=byte_level)
    assert note(bytes_of, byte_fallback=True) == note(letters, pre_tokenizer=byte_level)
    assert note(some, pre_tokenizer=steps).startswith("1 of the 256 bytes have no token")
    assert note(letters) == note({"é": 0}, byte_fallback=True) == "an unknown character is dropped"


def test_facts_name_what_one_would_not_expect() -> None:
    whole = document(
        model={**BPE, "unk_token": "?", "vocab": {**BPE["vocab"], "c": 1, "d": 900}, "merges": [["a", "b"]] * 2},
        added_tokens=[_entry("<m>", 950, lstrip=True), _entry("", 3), _entry("d", 901)],
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Whitespace", "extra": 1}]},
        post_processor={"type": "Sequence", "processors": [sections()[2][1][3]]},
        truncation=TRUNCATION,
        padding=PADDING,
    )
    facts = {(fact.section, fact.name): fact for fact in describe(read_spec(json.dumps(whole)))}

    assert facts["added tokens", "number"].value == "2"
    assert facts["added tokens", "special, lstrip"].value == "1"
    assert "the file says 901" in facts["added tokens", '"d"'].note
    assert facts["added tokens", '""'].note == "an empty entry is dropped"
    assert "950" in facts["added tokens", '"<m>"'].note
    assert facts["model", "shared ids"].value == "1"
    assert facts["model", "unused ids"].value.startswith("894")
    assert facts["model", "repeated merges"].value == "1"
    assert "not in the vocabulary" in facts["model", "unk_token"].note
    assert facts["pre-tokenizer", "Whitespace"].value == ""
    assert "single=a:0 $A:0, pair=$A:0 $B:1" in facts["post-processor", "TemplateProcessing"].value
    assert facts["truncation", "max_length"].value == "8"
    assert "does not pad" in facts["padding", "fixed_length"].note
    assert facts["file", "ignored key"].value == "$.pre_tokenizer.pretokenizers[0].extra"


@pytest.mark.parametrize("section", [name for name, _ in sections()])
def test_each_component_has_facts(section: str) -> None:
    for form in dict(sections())[section]:
        try:
            spec = read_spec(json.dumps(document(**{section: form})))
        except SpecError:
            continue
        facts = [fact for fact in describe(spec) if fact.section == section.replace("_", "-")]
        assert facts
        assert all(isinstance(text, str) for fact in facts for text in fact)
