"""Post-processors, together with truncation and padding: random ones against the oracle, and some by hand.

The texts are given as words of a WordLevel vocabulary with a space between them, so that their encodings before
truncation are plain to see and no other station is needed.
"""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tokbatch.engine.encoding import Encoding
from tokbatch.engine.reference.padding import pad_encodings
from tokbatch.engine.reference.post_processors import build_post_processor
from tokbatch.engine.reference.truncation import truncate_encodings
from tokbatch.errors import EncodeError
from tokbatch.spec import Padding, Truncation
from tokbatch.spec import post_processors as spec

RANDOM = settings(deadline=None, suppress_health_check=list(HealthCheck))

WORDS = ["u", "a", "Ġb", "cĠ", "Ġ", "ĠĠd", "é\u3000", "\xa0f", "\x1cg"]
VOCAB = {word: word_id for word_id, word in enumerate(WORDS)}
TEXTS = st.lists(st.sampled_from(WORDS), max_size=9)
SPECIAL_TOKENS = {
    "<s>": {"id": "<s>", "ids": [20], "tokens": ["<s>"]},
    "</s>": {"id": "</s>", "ids": [21], "tokens": ["</s>"]},
    "two": {"id": "two", "ids": [22, 23], "tokens": ["Ġ", "two"]},
    "none": {"id": "none", "ids": [], "tokens": []},
}

TYPE_IDS = st.integers(0, 3)
ENDS = st.sampled_from([["<s>", 20], ["</s>", 21], ["Ġx", 3]])
SPECIAL_PIECES = st.builds(
    lambda name, type_id: {"SpecialToken": {"id": name, "type_id": type_id}},
    st.sampled_from([*SPECIAL_TOKENS, *SPECIAL_TOKENS, "<s>", "absent"]),
    TYPE_IDS,
)


def _sequence_pieces(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda name, type_id: {"Sequence": {"id": name, "type_id": type_id}}, st.sampled_from(names), TYPE_IDS
    )


TEMPLATES = st.fixed_dictionaries(
    {
        "type": st.just("TemplateProcessing"),
        "single": st.lists(SPECIAL_PIECES | _sequence_pieces(["A", "A", "A", "B"]), max_size=4),
        "pair": st.lists(SPECIAL_PIECES | _sequence_pieces(["A", "B"]), max_size=5),
        "special_tokens": st.just(SPECIAL_TOKENS),
    }
)
BERT = st.fixed_dictionaries({"type": st.just("BertProcessing"), "sep": ENDS, "cls": ENDS})
TRIMMING = {"trim_offsets": st.booleans(), "add_prefix_space": st.booleans()}
ROBERTA = st.fixed_dictionaries({"type": st.just("RobertaProcessing"), "sep": ENDS, "cls": ENDS, **TRIMMING})
BYTE_LEVEL = st.fixed_dictionaries({"type": st.just("ByteLevel"), "use_regex": st.booleans(), **TRIMMING})
POST_PROCESSORS = st.recursive(
    st.one_of(TEMPLATES, BERT, ROBERTA, BYTE_LEVEL),
    lambda inner: st.fixed_dictionaries({"type": st.just("Sequence"), "processors": st.lists(inner, max_size=3)}),
    max_leaves=3,
)
TRUNCATIONS = st.fixed_dictionaries(
    {
        "max_length": st.integers(0, 10),
        "stride": st.sampled_from([0, 0, 1, 2]),
        "strategy": st.sampled_from(["LongestFirst", "LongestFirst", "OnlyFirst", "OnlySecond"]),
        "direction": st.sampled_from(["Left", "Right"]),
    }
)
PADDINGS = st.fixed_dictionaries(
    {
        "strategy": st.just("BatchLongest") | st.builds(lambda n: {"Fixed": n}, st.integers(0, 12)),
        "direction": st.sampled_from(["Left", "Right"]),
        "pad_to_multiple_of": st.sampled_from([None, 0, 3, 8]),
        "pad_id": st.integers(0, 9),
        "pad_type_id": TYPE_IDS,
        "pad_token": st.just("[PAD]"),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "post_processor": st.none() | POST_PROCESSORS,
        "truncation": st.none() | TRUNCATIONS,
        "padding": st.none() | PADDINGS,
    }
)


def spec_of(processor: dict[str, Any]) -> spec.PostProcessor:
    """Build the spec's value from the file's."""
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in processor.items()}
    kind = fields.pop("type")
    if kind == "Sequence":
        return spec.Sequence(tuple(map(spec_of, fields["processors"])))
    if kind != "TemplateProcessing":
        return getattr(spec, kind)(**fields)
    for name in ("single", "pair"):
        fields[name] = tuple(
            spec.SequencePiece(**piece["Sequence"])
            if "Sequence" in piece
            else spec.SpecialTokenPiece(**piece["SpecialToken"])
            for piece in fields[name]
        )
    fields["special_tokens"] = {
        name: spec.TemplateToken(token["id"], tuple(token["ids"]), tuple(token["tokens"]))
        for name, token in fields["special_tokens"].items()
    }
    return spec.TemplateProcessing(**fields)


def padding_of(padding: dict[str, Any]) -> Padding:
    """Build the spec's value from the file's."""
    fields = dict(padding)
    strategy = fields.pop("strategy")
    return Padding(fixed_length=strategy["Fixed"] if isinstance(strategy, dict) else None, **fields)


def encoding_of(words: list[str], type_id: int) -> Encoding:
    """Encode words with a space between them."""
    offsets, place = [], 0
    for word in words:
        offsets.append((place, place + len(word)))
        place += len(word) + 1
    return Encoding.of_text([VOCAB[word] for word in words], list(words), offsets, list(range(len(words))), type_id)


def encode(values: dict[str, Any], text: list[str], pair: list[str] | None, add_special_tokens: bool) -> Encoding:
    """Put the encodings of words through truncation, post-processor and padding."""
    value = values["post_processor"]
    processor = build_post_processor(None if value is None else spec_of(value))
    encoding, second = encoding_of(text, 0), None if pair is None else encoding_of(pair, 1)
    if values["truncation"] is not None:
        added_tokens = processor.added_tokens(pair is not None) if add_special_tokens else 0
        encoding, second = truncate_encodings(encoding, second, Truncation(**values["truncation"]), added_tokens)
    encoding = processor.process(encoding, second, add_special_tokens)
    if values["padding"] is not None:
        pad_encodings([encoding], padding_of(values["padding"]))
    return encoding


def plain(encoding: Any) -> dict[str, Any]:
    """Give an encoding, ours or the oracle's, as plain data, its overflowing pieces and theirs included."""
    names = ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask", "attention_mask", "word_ids")
    return {
        **{name: list(getattr(encoding, name)) for name in (*names, "sequence_ids")},
        "overflowing": [plain(piece) for piece in encoding.overflowing],
    }


def compare(
    oracle: ModuleType, values: dict[str, Any], text: list[str], pair: list[str] | None, add_special_tokens: bool
) -> None:
    """Hold one encoding against the oracle's, and the affixes of a single text against what is around it."""
    loaded = oracle.tokenizer(
        {
            "version": "1.0",
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "Removed",
                "invert": False,
            },
            "model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "u"},
            **values,
        }
    )
    second = None if pair is None else " ".join(pair)
    try:
        with oracle.quiet():
            expected = plain(oracle.encode(loaded, " ".join(text), second, add_special_tokens))
    except oracle.OracleError:
        with pytest.raises(EncodeError):
            encode(values, text, pair, add_special_tokens)
        return
    assert plain(encode(values, text, pair, add_special_tokens)) == expected
    if pair is None and values["truncation"] is None and values["padding"] is None and values["post_processor"]:
        affixes = build_post_processor(spec_of(values["post_processor"])).single_affixes(add_special_tokens)
        if affixes is not None:
            assert [*affixes[0], *(VOCAB[word] for word in text), *affixes[1]] == expected["ids"]


@settings(RANDOM, max_examples=300)
@given(values=SETTINGS, text=TEXTS, pair=st.none() | TEXTS, add_special_tokens=st.sampled_from([True, True, False]))
def test_random_post_processors(
    oracle: ModuleType, values: dict[str, Any], text: list[str], pair: list[str] | None, add_special_tokens: bool
) -> None:
    compare(oracle, values, text, pair, add_special_tokens)


@pytest.mark.long
@settings(RANDOM, max_examples=5_000)
@given(values=SETTINGS, text=TEXTS, pair=st.none() | TEXTS, add_special_tokens=st.booleans())
def test_many_random_post_processors(
    oracle: ModuleType, values: dict[str, Any], text: list[str], pair: list[str] | None, add_special_tokens: bool
) -> None:
    compare(oracle, values, text, pair, add_special_tokens)


A, B = spec.SequencePiece("A", 0), spec.SequencePiece("B", 1)
CLS, SEP = spec.SpecialTokenPiece("<s>", 0), spec.SpecialTokenPiece("</s>", 0)
TOKENS = {
    "<s>": spec.TemplateToken("<s>", (20,), ("<s>",)),
    "</s>": spec.TemplateToken("</s>", (21, 22), ("</s>", "!")),
}


@pytest.mark.parametrize(
    ("processor", "with_special_tokens", "without"),
    [
        (None, ((), ()), ((), ())),
        (spec.BertProcessing(("</s>", 21), ("<s>", 20)), ((20,), (21,)), ((), ())),
        (spec.RobertaProcessing(("</s>", 21), ("<s>", 20), True, True), ((20,), (21,)), ((), ())),
        (spec.ByteLevel(True, True), ((), ()), ((), ())),
        (spec.TemplateProcessing((CLS, A, SEP), (), TOKENS), ((20,), (21, 22)), ((), ())),
        (spec.TemplateProcessing((A, SEP, CLS), (), TOKENS), ((), (21, 22, 20)), ((), ())),
        (spec.TemplateProcessing((CLS, SEP), (), TOKENS), None, None),
        (spec.TemplateProcessing((A, A), (), TOKENS), None, None),
        (spec.TemplateProcessing((A, B), (), TOKENS), None, None),
        (spec.TemplateProcessing((A, spec.SpecialTokenPiece("x", 0)), (), TOKENS), None, ((), ())),
        (
            spec.Sequence(
                (spec.ByteLevel(True, True), spec.TemplateProcessing((CLS, A), (), TOKENS)),
            ),
            ((20,), ()),
            ((), ()),
        ),
    ],
)
def test_affixes_of_a_single_text(processor: Any, with_special_tokens: Any, without: Any) -> None:
    built = build_post_processor(processor)
    assert built.single_affixes() == built.single_affixes(True) == with_special_tokens
    assert built.single_affixes(False) == without


def test_added_tokens_are_what_truncation_makes_room_for() -> None:
    bert = spec.BertProcessing(("</s>", 21), ("<s>", 20))
    template = spec.TemplateProcessing((CLS, A, SEP), (A, SEP, B), TOKENS)
    roberta = spec.RobertaProcessing(("</s>", 21), ("<s>", 20), True, True)
    built = [None, bert, roberta, spec.ByteLevel(True, True), template, spec.Sequence((bert, template))]
    counts = [[build_post_processor(each).added_tokens(is_pair) for is_pair in (False, True)] for each in built]
    assert counts == [[0, 0], [2, 3], [2, 4], [0, 0], [3, 2], [5, 5]]


@pytest.mark.parametrize(
    ("processor", "message"),
    [
        (spec.TemplateProcessing((A, B), (), TOKENS), "place for text B"),
        (spec.TemplateProcessing((A, spec.SpecialTokenPiece("x", 0)), (), TOKENS), "no special token 'x'"),
        (
            spec.Sequence(
                (spec.TemplateProcessing((CLS, A, SEP), (), TOKENS), spec.TemplateProcessing((A,), (), TOKENS))
            ),
            "not 3",
        ),
    ],
)
def test_where_the_oracle_crashes_there_is_an_error(processor: spec.PostProcessor, message: str) -> None:
    with pytest.raises(EncodeError, match=message) as caught:
        build_post_processor(processor).process(encoding_of(["a"], 0), None, True)
    assert caught.value.where is not None
    assert caught.value.where.startswith("$.post_processor")


@pytest.mark.parametrize(
    ("token", "add_prefix_space", "offsets", "expected"),
    [
        ("Ġab", False, (4, 7), (5, 7)),
        ("Ġab", True, (4, 7), (5, 7)),
        ("Ġab", True, (0, 3), (0, 3)),
        ("ĠĠab", True, (0, 4), (2, 4)),
        ("abĠ", True, (4, 7), (4, 6)),
        ("ĠĠ", True, (4, 6), (6, 6)),
        ("ĠĠĠ", False, (1, 2), (2, 2)),
        ("\u2003ab", False, (4, 7), (5, 7)),
        ("\x1fab", False, (4, 7), (4, 7)),
    ],
)
def test_trimming(token: str, add_prefix_space: bool, offsets: Any, expected: Any) -> None:
    first = Encoding.of_text([1, 2], ["x", token], [(0, 0), offsets], [0, 1])
    processed = build_post_processor(spec.ByteLevel(add_prefix_space, True)).process(first, None, True)
    assert processed.offsets[1] == expected
