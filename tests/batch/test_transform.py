"""The one transform: nothing depends on how rows are cut into batches, and nothing is lost or changed on the way."""

import datetime
import decimal
import functools
import itertools
import pickle
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch.fake_engine import FakeEngine, FakeTokenizer, ids_of_text
from batch.layouts import LAYOUTS, Tagged, broken
from tokbatch.batch.stats import Stats
from tokbatch.batch.token_source import FromColumn
from tokbatch.batch.transform import Transform, TransformOptions
from tokbatch.engine.columns import IdColumn
from tokbatch.errors import ConfigError, EncodeError, InputError, VerifyError
from tokbatch.spec import Padding, TokenizerSpec, Truncation
from tokbatch.spec.models import WordLevel


def transform_of(tokenizer=None, second=None, **options):
    return Transform(TransformOptions(**options), tokenizer or FakeTokenizer(), second)


def batch_of(texts, **columns):
    return pa.record_batch({"text": pa.array(texts, pa.string()), **columns})


def test_a_batch_by_hand():
    batch = batch_of(["a b", None, "", "the <mask> zzz !"], id=pa.array([7, 8, None, 9]))

    output, stats = transform_of(keep_columns=("id",), append=("<eot>",)).transform(batch, first_row=100)

    assert output.to_pydict() == {
        "id": [7, 8, None, 9],
        "input_ids": [[1, 10, 11, 2, 8], None, [1, 2, 8], [1, 13, 3, 0, 4, 2, 8]],
    }
    assert output.schema == pa.schema([("id", pa.int64()), ("input_ids", pa.list_(pa.int32()))])
    assert stats == Stats(
        documents=4,
        null_documents=1,
        empty_documents=1,
        bytes=19,
        characters=19,
        tokens=15,
        added_tokens=9,
        special_tokens=7,
        unknown_tokens=1,
        byte_fallback_tokens=1,
        longest_document_tokens=7,
        longest_document_bytes=16,
        document_lengths={2: 1, 4: 2},
        verified_documents=3,
        exact_documents=2,
        lossy_documents=1,
        lossy_first_rows=(103,),
        lstrip_documents=1,
        lstrip_chars=1,
        lstrip_documents_by_token={"<mask>": 1},
        lstrip_documents_by_whitespace={"U+0020": 1},
        lstrip_chars_by_token={"<mask>": 1},
        lstrip_chars_by_whitespace={"U+0020": 1},
        lstrip_chars_by_token_and_whitespace={"<mask>": {"U+0020": 1}},
        lstrip_first_rows=(103,),
    )


WORDS = st.sampled_from(["a", "b", "the", "<mask>", "!", "zzz", "日本", "boom", "<unk>"])
DOCUMENTS = st.none() | st.lists(WORDS, max_size=6).map(" ".join)
LANGUAGES = st.sampled_from(["en", "fr", "xx", None])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(DOCUMENTS, LANGUAGES), max_size=30), st.data())
@pytest.mark.parametrize("options", [{}, {"round_trip": "sample", "sample_rate": 0.4, "crosscheck": 0.5}], ids=str)
def test_batches_do_not_matter(options, rows, data):
    truncation = Truncation(max_length=7)
    engine = FakeEngine(spec=TokenizerSpec(WordLevel({}, "<unk>"), truncation=truncation))
    transform = transform_of(
        FakeTokenizer(engine),
        FakeTokenizer(engine),
        keep_columns="all",
        on_bad_row="null",
        prepend=(FromColumn("lang"),),
        append=("<eot>",),
        **options,
    )
    texts, languages = [text for text, _ in rows], [language for _, language in rows]
    batch = batch_of(texts, lang=pa.array(languages, pa.string()))
    whole, stats = transform.transform(batch)

    cuts = sorted(data.draw(st.sets(st.integers(0, len(rows)), max_size=6)) | {0, len(rows)})
    pieces = [transform.transform(batch.slice(a, b - a), a) for a, b in itertools.pairwise(cuts)]

    assert [row for output, _ in pieces for row in output.to_pylist()] == whole.to_pylist()
    assert all(output.schema == whole.schema for output, _ in pieces)
    shuffled = [counted for _, counted in pieces]
    random.Random(0).shuffle(shuffled)
    assert functools.reduce(Stats.merge, shuffled, Stats()) == stats
    for (text, language), row in zip(rows, whole.to_pylist(), strict=True):
        if text is None or "boom" in text or language not in ("en", "fr"):
            assert row["input_ids"] is None
        else:
            expected = [{"en": 6, "fr": 7}[language], 1, *ids_of_text(text)[:3], 2, 8]
            assert row["input_ids"] == expected
    good = [text for (text, language) in rows if text is not None and "boom" not in text and language in ("en", "fr")]
    assert stats.documents == len(rows)
    assert stats.null_documents == texts.count(None)
    assert stats.failed_documents == len(rows) - texts.count(None) - len(good)
    assert stats.truncated_documents == sum(len(ids_of_text(text)) > 3 for text in good)
    assert stats.bytes == sum(len(text.encode()) for text in texts if text)
    if not options:
        assert stats.verified_documents == len(good) - stats.truncated_documents
    assert (
        stats.exact_documents + stats.stripped_documents + stats.normalized_documents + stats.lossy_documents
        == stats.verified_documents
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_texts(layout):
    texts = ["a", None, "", "b <mask> c", "zzz"]
    column = LAYOUTS[layout](texts)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    output, stats = transform_of().transform(pa.record_batch({"text": column}))
    expected, expected_stats = transform_of().transform(batch_of(texts))
    assert (output.to_pylist(), stats) == (expected.to_pylist(), expected_stats)
    assert output.schema == expected.schema


# -- columns ----------------------------------------------------------------------------------------------------------

COLUMNS = {
    "null": pa.nulls(3),
    "bool": pa.array([True, None, False]),
    "int": pa.array([1, None, 3], pa.uint8()),
    "half": pa.array([1.5, None, 2.0], pa.float32()),
    "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], pa.decimal128(9, 2)),
    "date": pa.array([datetime.date(2020, 1, 1), None, datetime.date(1, 1, 1)]),
    "time": pa.array([1, None, 3], pa.timestamp("ns", "Europe/Zurich")),
    "duration": pa.array([1, None, 3], pa.duration("ms")),
    "interval": pa.array([None, (1, 2, 3), None], pa.month_day_nano_interval()),
    "binary": pa.array([b"\xff", None, b""]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "view": pa.array(["a longer string than twelve", None, ""], pa.string_view()),
    "list": pa.array([[1], None, []], pa.list_(pa.field("element", pa.int16(), nullable=True))),
    "large_list": pa.array([["x"], None, []], pa.large_list(pa.string())),
    "list_view": pa.array([[1], None, []], pa.list_view(pa.int32())),
    "fixed_list": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
    "struct": pa.array([{"k": 1}, None, {"k": None}]),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "run_ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])),
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    ),
    "extension": pa.ExtensionArray.from_storage(Tagged(), pa.array(["a", None, "b"])),
}
if hasattr(pa, "uuid"):  # pyarrow 18
    COLUMNS["uuid"] = pa.array([b"0123456789abcdef", None, b"fedcba9876543210"], pa.uuid())


@pytest.mark.parametrize("name", COLUMNS)
def test_kept_columns_come_through_unchanged(name):
    column = COLUMNS[name]
    field = pa.field(name, column.type, metadata={"note": "kept"})
    schema = pa.schema([pa.field("text", pa.string()), field], {"pandas": "stale", "huggingface": '{"info": {}}'})
    batch = pa.RecordBatch.from_arrays([pa.array(["a", None, "b"]), column], schema=schema)
    transform = transform_of(keep_columns="all")
    for part in (batch, batch.slice(1, 2), batch.slice(3)):
        output, _ = transform.transform(part)
        assert output.schema.names == [name, "input_ids"]
        assert output.column(0).equals(part.column(1))
        assert output.schema.field(0).equals(field, check_metadata=True)
        assert output.schema.metadata == {b"huggingface": b'{"info": {}}'}
        assert output.schema.equals(transform.output_schema(schema), check_metadata=True)


def test_metadata_are_those_of_the_batch():
    transform = transform_of(keep_columns="all")
    for note in ("one", "two"):
        schema = pa.schema([pa.field("text", pa.string()), pa.field("id", pa.int64(), metadata={"note": note})])
        output, _ = transform.transform(pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array([1])], schema=schema))
        assert output.schema.field("id").metadata == {b"note": note.encode()}


def test_non_nullable_fields_stay_so():
    schema = pa.schema([pa.field("text", pa.string(), False), pa.field("id", pa.int64(), False)])
    batch = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array([1])], schema=schema)
    output, _ = transform_of(keep_columns=("text", "id")).transform(batch)
    assert output.schema == pa.schema([*schema, ("input_ids", pa.list_(pa.int32()))])


def test_which_columns_are_kept():
    batch = batch_of(["a"], id=pa.array([1]), Text=pa.array(["b"]))
    for keep, names in (((), []), ("all", ["id", "Text"]), (("Text", "text"), ["Text", "text"])):
        transform = transform_of(keep_columns=keep)
        assert transform.transform(batch)[0].schema.names == [*names, "input_ids"]
        assert transform.input_columns(batch.schema) == [n for n in batch.schema.names if n in {*names, "text"}]


def test_nested_texts():
    texts = pa.StructArray.from_arrays(
        [pa.array(["a", "hidden", None]), pa.array([1, 2, 3])], ["body", "n"], mask=pa.array([False, True, False])
    )
    batch = pa.record_batch({"message": texts, "lang": pa.array(["en", "fr", "fr"])})
    transform = transform_of(text_column="message.body", keep_columns="all", prepend=(FromColumn("lang"),))
    output, stats = transform.transform(batch)
    assert output["input_ids"].to_pylist() == [[6, 1, 10, 2], None, None]
    assert output["message"].equals(batch["message"])
    assert (stats.null_documents, stats.bytes) == (2, 1)
    assert transform_of(text_column="message.body").input_columns(batch.schema) == ["message"]


def test_the_schema_does_not_depend_on_the_batch():
    transform = transform_of(id_type="uint16")
    for texts in ([], [None], [""], ["a"]):
        output, stats = transform.transform(batch_of(texts))
        assert output.schema == pa.schema([("input_ids", pa.list_(pa.uint16()))])
        assert output.num_rows == stats.documents == len(texts)


def test_columns_that_are_wrong():
    schema = batch_of([], id=pa.array([], pa.int64())).schema
    for options, error, message in (
        ({"text_column": "txt"}, InputError, "text_column: there is no column 'txt'"),
        ({"text_column": "id"}, InputError, "column 'id': a column of texts expected, found int64"),
        ({"keep_columns": ("id", "x")}, InputError, "keep_columns: there is no column 'x'"),
        ({"keep_columns": ("id", "id")}, ConfigError, "named twice"),
        ({"keep_columns": ("id",), "id_column": "id"}, ConfigError, "id_column: the ids are to be called 'id'"),
        ({"keep_columns": "all", "id_column": "id"}, ConfigError, "the name of a kept column"),
        ({"keep_columns": ("text",), "id_column": "text"}, ConfigError, "the name of a kept column"),
        ({"prepend": (FromColumn("id"),)}, InputError, "column 'id': a column of texts expected"),
        ({"prepend": (FromColumn("lang"),)}, InputError, "there is no column 'lang'"),
    ):
        with pytest.raises(error, match=message):
            transform_of(**options).output_schema(schema)
    assert transform_of(id_column="text").output_schema(schema).names == ["text"]
    nested = pa.schema([("text", pa.string()), ("s", pa.struct([("x", pa.int8())]))])
    with pytest.raises(InputError, match=r"'s\.x' is a field inside of a column"):
        transform_of(keep_columns=("s.x",)).output_schema(nested)


def test_kept_columns_of_one_name_are_refused():
    schema = pa.schema([("text", pa.string()), ("k", pa.int64()), ("k", pa.int64())])
    with pytest.raises(InputError, match="keep_columns: there are 2 columns 'k'"):
        transform_of(keep_columns="all").output_schema(schema)
    assert transform_of(keep_columns=()).output_schema(schema).names == ["input_ids"]


# -- options ----------------------------------------------------------------------------------------------------------


def test_all_problems_of_the_options_at_once():
    with pytest.raises(ConfigError) as caught:
        transform_of(
            id_type="int8", round_trip="some", sample_rate=1.5, crosscheck=0.1, keep_columns="id", append=("no",)
        )
    assert caught.value.problems == [
        "id_type: 'int8' is none of 'int32', 'uint16'",
        "round_trip: 'some' is none of 'all', 'sample', 'off'",
        "sample_rate: 1.5 is no share, which is 0 to 1",
        "crosscheck: there is no second tokenizer to encode again with",
        "keep_columns: 'id' is neither a list of names nor \"all\"",
        "append.0: 'no' is not in the vocabulary",
    ]


def test_16_bits_are_decided_by_the_largest_id():
    assert transform_of(FakeTokenizer(FakeEngine(max_id=65_535)), id_type="uint16")
    with pytest.raises(ConfigError, match="the largest id is 65,536, and uint16 holds 65,535"):
        transform_of(FakeTokenizer(FakeEngine(max_id=65_536)), id_type="uint16")


def test_padding_is_left_out_and_truncation_counts_affixes():
    padding = Padding(8, "Right", None, 0, 0, "<unk>")
    spec = TokenizerSpec(WordLevel({}, "<unk>"), truncation=Truncation(max_length=5), padding=padding)
    tokenizer = FakeTokenizer(FakeEngine(spec=spec))
    transform = transform_of(tokenizer, append=("<eot>",))
    assert transform.engine.spec.padding is None
    output, stats = transform.transform(batch_of(["a b c a b c", "a"]))
    assert output["input_ids"].to_pylist() == [[1, 10, 11, 2, 8], [1, 10, 2, 8]]
    assert (stats.truncated_documents, stats.truncated_first_rows, stats.verified_documents) == (1, (0,), 1)
    with pytest.raises(ConfigError, match="truncation leaves 5 tokens, and 8 are put around each document"):
        transform_of(tokenizer, append=("<eot>",) * 6)


def test_a_truncation_without_room_for_affixes_and_template_is_refused():
    """Three affixes and the two tokens of the template: a truncation to 4 would cut nothing, in silence."""

    def with_truncation(**truncation):
        spec = TokenizerSpec(WordLevel({}, "<unk>"), truncation=Truncation(**truncation))
        return transform_of(FakeTokenizer(FakeEngine(spec=spec)), append=("<eot>",) * 3)

    for truncation, said in (
        ({"max_length": 4}, r"^tokenizer\.truncation\.max_length: truncation leaves 4 tokens, and 5 are put"),
        ({"max_length": 7, "stride": 2}, r"^tokenizer\.truncation\.stride: a stride of 2 tokens, while 2 are left"),
    ):
        with pytest.raises(ConfigError, match=said):
            with_truncation(**truncation)
    for truncation, length in (({"max_length": 5}, 5), ({"max_length": 8, "stride": 2}, 8)):
        output, stats = with_truncation(**truncation).transform(batch_of(["a b c a b c"]))
        assert len(output["input_ids"][0]) == length
        assert stats.truncated_documents == 1


def test_a_language_in_the_template_by_row():
    tokenizer = FakeTokenizer(FakeEngine(single_template=(None, 2, 6)))
    batch = batch_of(["a", None, "b"], lang=pa.array(["fr", "en", "en"]))
    output, stats = transform_of(tokenizer, template={"en": FromColumn("lang")}).transform(batch)
    assert output["input_ids"].to_pylist() == [[10, 2, 7], None, [11, 2, 6]]
    assert (stats.added_tokens, stats.tokens, stats.exact_documents) == (4, 6, 2)
    output, _ = transform_of(tokenizer, template={"en": "fr"}).transform(batch)
    assert output["input_ids"].to_pylist() == [[10, 2, 7], None, [11, 2, 7]]


def test_it_pickles():
    transform = transform_of(FakeTokenizer(), FakeTokenizer(), append=("<eot>",), crosscheck=0.5)
    again = pickle.loads(pickle.dumps(transform))
    assert again.options == transform.options
    assert again.transform(batch_of(["a"]))[0].to_pylist() == [{"input_ids": [1, 10, 2, 8]}]


# -- checks -----------------------------------------------------------------------------------------------------------


def test_which_documents_are_verified():
    texts = ["a"] * 1000
    for options, expected in (
        ({"round_trip": "off"}, 0),
        ({"round_trip": "all"}, 1000),
        ({"round_trip": "sample", "sample_rate": 0.1}, pytest.approx(100, abs=35)),
        ({"round_trip": "sample", "sample_rate": 1.0}, 1000),
        ({"round_trip": "sample", "sample_rate": 0.0}, 0),
    ):
        _, stats = transform_of(**options).transform(batch_of(texts))
        assert stats.verified_documents == stats.exact_documents == expected


def test_the_crosscheck_finds_a_difference():
    second = FakeTokenizer(FakeEngine(name="other", wrong_rows=frozenset({"b"})))
    transform = transform_of(None, second, crosscheck=1.0)
    assert transform.transform(batch_of(["a", None, "c"]))[1].crosschecked_documents == 2
    with pytest.raises(
        VerifyError, match=r"row 52: from id 2 on, the fake engine gives \[2\] and the other engine \[15, 2\]"
    ):
        transform.transform(batch_of(["a", None, "b"]), first_row=50)
    assert transform_of(None, second).transform(batch_of(["b"]))[1].crosschecked_documents == 0


def test_the_crosscheck_finds_ids_in_another_row():
    class Shifted(FakeEngine):
        def encode_batch(self, texts, add_special_tokens, keep_going=False):
            return IdColumn.from_lists([[10, 11], [12]])

    plain = FakeTokenizer(FakeEngine(single_template=(None,)))
    transform = transform_of(plain, FakeTokenizer(Shifted(name="other")), crosscheck=1.0)
    assert transform.transform(batch_of(["a b", "c"]))[1].crosschecked_documents == 2
    with pytest.raises(
        VerifyError, match=r"row 0: from id 1 on, the fake engine gives \[\] and the other engine \[11\]"
    ):
        transform.transform(batch_of(["a", "b c"]))


def test_the_crosscheck_finds_a_refusal():
    class Refusing(FakeEngine):
        def encode_batch(self, texts, add_special_tokens, keep_going=False):
            return super().encode_batch(type(texts).from_texts(["boom"] * texts.rows), add_special_tokens, keep_going)

    with pytest.raises(VerifyError, match="row 1: the fake engine encoded a text that the other engine refuses: boom"):
        transform_of(None, FakeTokenizer(Refusing(name="other")), crosscheck=1.0).transform(batch_of(["a"]), 1)


# -- bad rows ---------------------------------------------------------------------------------------------------------


def test_bad_rows_fail_with_their_place_in_the_file():
    with pytest.raises(EncodeError, match=r"^row 1003: boom") as caught:
        transform_of().transform(batch_of(["a", None, None, "boom"]), first_row=1000)
    assert caught.value.row == 1003
    batch = pa.record_batch({"text": broken([None, b"a", b"\xff"])})
    with pytest.raises(EncodeError, match=r"^row 1002: byte 0 of the text \(0xFF\) is not UTF-8"):
        transform_of().transform(batch, first_row=1000)
    batch = batch_of(["a", None, "b"], lang=pa.array(["en", "xx", "xx"]))
    with pytest.raises(EncodeError, match=r"^row 1002: column 'lang' names no token of the vocabulary"):
        transform_of(prepend=(FromColumn("lang"),)).transform(batch, first_row=1000)


def test_bad_rows_become_null():
    texts = broken([b"a", b"\xff", None, b"boom", b"b", b"\xc3\xa9"])
    languages = pa.array(["en", "en", None, "fr", None, "fr"])
    transform = transform_of(on_bad_row="null", prepend=(FromColumn("lang"),), keep_columns=("lang",))
    output, stats = transform.transform(pa.record_batch({"text": texts, "lang": languages}), 10)
    assert output["input_ids"].to_pylist() == [[6, 1, 10, 2], None, None, None, None, [7, 1, 15, 2]]
    assert output["lang"].equals(languages)
    assert output["input_ids"].flatten().to_pylist() == [6, 1, 10, 2, 7, 1, 15, 2]
    assert (stats.failed_documents, stats.failed_first_rows, stats.null_documents) == (3, (11, 13, 14), 1)
    assert (stats.bytes, stats.characters, stats.tokens, stats.verified_documents) == (8, 7, 8, 2)


# -- memory -----------------------------------------------------------------------------------------------------------


def test_ids_and_kept_columns_are_not_copied():
    class Watched(FakeEngine):
        def encode_batch(self, texts, add_special_tokens, keep_going=False):
            self.text_address = pa.py_buffer(texts.data).address
            ids = super().encode_batch(texts, add_special_tokens, keep_going)
            self.id_address = pa.py_buffer(ids.ids).address
            return ids

    engine = Watched()
    batch = batch_of(["a", None, "b"], id=pa.array([1, 2, 3])).slice(0, 3)
    output, _ = transform_of(FakeTokenizer(engine), keep_columns=("id",)).transform(batch)
    assert engine.text_address == batch["text"].buffers()[2].address
    assert output["input_ids"].values.buffers()[1].address == engine.id_address
    assert output["id"].buffers()[1].address == batch["id"].buffers()[1].address


def test_nulls_reach_no_engine():
    engine = FakeEngine()
    transform_of(FakeTokenizer(engine)).transform(batch_of([None, "a", None, ""]))
    assert engine.calls == [("encode", 2), ("verify", 2)]


def test_rows_given_up_have_failed_and_are_no_empty_documents():
    """What could not be read as a text comes as an empty one."""
    batch = batch_of(["a b", "", "", None])
    seen = {}

    transform = transform_of(on_bad_row="null")
    output, stats = transform.transform(batch, 10, given_up={11: "no JSON"}, on_failure=seen.__setitem__)

    assert [row is None for row in output["input_ids"].to_pylist()] == [False, True, False, True]
    assert (stats.documents, stats.failed_documents, stats.empty_documents, stats.null_documents) == (4, 1, 1, 1)
    assert seen == {11: "no JSON"}
