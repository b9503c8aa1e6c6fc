"""The public Tokenizer: every way in gives the same ids, and nothing but our own exceptions comes out."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import tokbatch as tb
from tokbatch import sample
from tokbatch.engine.columns import TextColumn
from tokbatch.spec import Padding, Truncation

TEXTS = ["a <mask> b", "", None, "Hello  world\n", "naïve café 𝔘𝔫𝔦"]


@pytest.fixture(scope="module")
def tok(engine: str) -> tb.Tokenizer:
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine=engine)


@pytest.fixture(scope="module")
def expected(tok: tb.Tokenizer) -> list[list[int] | None]:
    return [None if text is None else tok.encode(text).ids for text in TEXTS]


def test_the_engine_is_the_one_that_was_asked_for(tok, engine):
    assert tok.engine_name == engine
    assert engine in repr(tok)


@pytest.mark.parametrize(
    "column",
    [
        TEXTS,
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(["before", *TEXTS, "after"]).slice(1, len(TEXTS)),
        pa.chunked_array([pa.array(TEXTS[:2]), pa.array([], pa.string()), pa.array(TEXTS[2:])]),
    ],
    ids=["list", "string", "large_string", "string_view", "dictionary", "slice", "chunks"],
)
def test_every_kind_of_column_gives_the_same_ids(tok, expected, column):
    ids = tok.encode_batch(column)

    ids.validate(full=True)
    assert ids.type == pa.list_(pa.int32())
    assert ids.to_pylist() == expected
    assert tok.count_batch(column).to_pylist() == [None if row is None else len(row) for row in expected]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_text_that_is_not_utf8_is_told_with_its_row(tok, kind):
    # Each by itself no text, although both together are one; and what lies under a null is nobody's text.
    texts = pa.array(
        [b"ok", b"\xff", b"\xe6\x97", b"\xa5"], pa.large_binary() if kind == pa.large_string() else pa.binary()
    )
    validity = pa.array([True, False, True, True]).buffers()[1]
    column = pa.Array.from_buffers(kind, 4, [validity, *texts.buffers()[1:]])

    for encode in (tok.encode_batch, tok.count_batch):
        with pytest.raises(tb.EncodeError, match=r"^row 2: byte 0 of the text") as caught:
            encode(column)
        assert caught.value.row == 2
        assert len(encode(column.slice(0, 2))) == 2


def test_a_null_costs_no_ids(tok):
    assert len(tok.encode_batch([None, None]).values) == 0


def test_no_rows_give_no_rows(tok):
    assert tok.encode_batch([]).to_pylist() == []
    assert tok.count_batch(pa.array([], pa.string())).to_pylist() == []
    assert tok.decode_batch(pa.array([], pa.list_(pa.int32()))).to_pylist() == []


def test_ids_as_uint16(tok, expected):
    ids = tok.encode_batch(TEXTS, id_type="uint16")

    assert ids.type == pa.list_(pa.uint16())
    assert ids.to_pylist() == expected


def test_an_id_that_does_not_fit_is_an_error(engine):
    value = {
        "model": {"type": "WordLevel", "vocab": {"a": 70000, "[UNK]": 0}, "unk_token": "[UNK]"},
        "added_tokens": [],
    }
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    assert tok.encode_batch(["a"]).to_pylist() == [[70000]]
    with pytest.raises(tb.EncodeError, match="uint16"):
        tok.encode_batch(["a"], id_type="uint16")


@pytest.mark.parametrize("token_id", [2**31, 2**32 - 1])
def test_an_id_beyond_31_bits_is_an_error_of_its_row(engine, token_id):
    """`encode` gives it, a column of int32 cannot. (Ids up to 32 bits load, as in the oracle.)"""
    value = {"model": {"type": "WordLevel", "vocab": {"a": token_id, "b": 1}, "unk_token": "b"}, "added_tokens": []}
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    assert tok.encode("a").ids == [token_id]
    for call in (tok.encode_batch, tok.count_batch):
        with pytest.raises(tb.EncodeError, match=f"^row 1: id {token_id} does not fit int32"):
            call(["b", "a"])
    column = tok.engine.encode_batch(TextColumn.from_texts(["a", "b"]), True, keep_going=True)
    assert [row for row, _ in column.failures] == [0]
    assert list(column) == [[], [1]]
    assert tok.verify_batch(["a", "b"], [[token_id], [1]]).field("verdict").to_pylist() == ["lossy", "exact"]


def test_decode_batch_knows_ids_beyond_31_bits(engine):
    vocabulary = {"a": 2**32 - 1, "b": 2**31 - 1, "c": 2**31, "?": 0}
    value = {"model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"}, "added_tokens": []}
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)
    ids = [[2**32 - 1, 2**31 - 1], None, [2**31, 2**31 + 1], []]

    assert tok.decode_batch(ids).to_pylist() == ["a b", None, "c", ""]
    assert tok.verify_batch(["b", "b"], [[2**31 - 1], [2**31 + 1]]).field("verdict").to_pylist() == ["exact", "lossy"]


def test_decode_batch_passes_over_ids_that_no_token_has(tok):
    assert tok.decode_batch([[2**32 - 1], [2**31]]).to_pylist() == ["", ""]


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
def test_a_negative_id_is_none(tok, kind, lists):
    ids = pa.array([[1], [2, -7], [-1]], lists(kind))
    for given in (ids, ids.slice(1), pa.chunked_array([ids, ids])):
        with pytest.raises(tb.DecodeError, match="ids: -7 is no id: ids are not negative"):
            tok.decode_batch(given)
        with pytest.raises(tb.DecodeError, match="ids: -7 is no id: ids are not negative"):
            tok.verify_batch(["a"] * len(given), given)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("texts", [["a", "", "some text"], ["a", None, "some text", None]])
def test_offsets_of_both_widths(tok, kind, texts):
    column = pa.array(["before", *texts, "behind"], kind).slice(1, len(texts))
    ids = tok.encode_batch(column)
    assert ids.equals(tok.encode_batch(texts))
    assert ids.type == pa.list_(pa.int32())
    assert tok.count_batch(column).to_pylist() == [None if row is None else len(row) for row in ids.to_pylist()]
    found = tok.verify_batch(texts, ids)
    for width in (pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.uint16())):
        assert tok.verify_batch(column, ids.cast(width)).equals(found)
        assert tok.decode_batch(ids.cast(width)).equals(tok.decode_batch(ids))


def test_decode_batch_is_decode(tok, expected):
    ids = pa.array(expected, pa.list_(pa.int32()))
    for skip in (True, False):
        assert tok.decode_batch(ids, skip_special_tokens=skip).to_pylist() == [
            None if row is None else tok.decode(row, skip_special_tokens=skip) for row in expected
        ]


@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_verify_batch_says_what_was_lost(tok, add_special_tokens):
    ids = tok.encode_batch(TEXTS, add_special_tokens)

    found = tok.verify_batch(TEXTS, ids, add_special_tokens).to_pylist()

    assert found[0] == {"verdict": "stripped", "lstrip_chars": 1, "rstrip_chars": 0, "unk_tokens": 0}
    assert found[2] is None
    assert [row["verdict"] for row in found if row][1:] == ["exact", "exact", "exact"]


def test_verify_batch_notices_ids_of_another_text(tok):
    ids = tok.encode_batch(["some text"])

    assert tok.verify_batch(["some test"], ids).to_pylist()[0]["verdict"] == "lossy"
    assert tok.verify_batch(["some text"], ids, add_special_tokens=False).to_pylist()[0]["verdict"] == "lossy"
    with pytest.raises(tb.InputError, match="2 texts, but 1"):
        tok.verify_batch(["some text", "more"], ids)


def test_the_row_of_an_error_counts_the_nulls(engine):
    value = {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}, "added_tokens": []}
    tok = tb.Tokenizer.from_json(json.dumps(value), engine=engine)

    with pytest.raises(tb.EncodeError) as caught:
        tok.encode_batch([None, "a", None, "b"])

    assert caught.value.row == 3
    assert "row 3" in str(caught.value)


def test_it_pickles_small_and_to_the_same_bytes(tok):
    pickled = pickle.dumps(tok)
    loaded = pickle.loads(pickled)

    assert loaded.encode("a <mask> b") == tok.encode("a <mask> b")
    assert (loaded.digest, loaded.engine_name) == (tok.digest, tok.engine_name)
    assert pickle.dumps(loaded) == pickled
    assert len(pickled) < sample.tokenizer_path().stat().st_size / 2


def test_another_process_pickles_to_the_same_bytes(engine):
    code = (
        "import pickle, hashlib, sys, tokbatch as tb\n"
        "tok = tb.Tokenizer.from_file(sys.argv[1], engine=sys.argv[2])\n"
        "print(hashlib.sha256(pickle.dumps(tok)).hexdigest(), tok.digest)"
    )
    command = [sys.executable, "-c", code, str(sample.tokenizer_path()), engine]
    runs = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }

    assert len(runs) == 1


def test_the_digest_knows_the_content_and_not_the_spelling(tok, engine):
    value = json.loads(sample.tokenizer_path().read_text(encoding="utf-8"))
    assert tb.Tokenizer.from_json(json.dumps(value, indent=3), engine=engine).digest == tok.digest

    value["added_tokens"][-1]["lstrip"] = False
    assert tb.Tokenizer.from_json(json.dumps(value), engine=engine).digest != tok.digest


def test_packed_files_and_folders(tok, engine, tmp_path):
    data = sample.tokenizer_path().read_bytes()
    (tmp_path / "tokenizer.json.gz").write_bytes(gzip.compress(data))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tokenizer.json").write_bytes(data)

    for path in (tmp_path / "tokenizer.json.gz", tmp_path / "folder"):
        assert tb.Tokenizer.from_file(path, engine=engine).digest == tok.digest
    assert tb.Tokenizer.from_pretrained(str(tmp_path / "folder"), engine=engine).digest == tok.digest


def test_options_can_be_changed(tok):
    short = tok.with_options(truncation=Truncation(max_length=3))

    assert len(short.encode_batch(["one two three four five"]).to_pylist()[0]) == 3
    assert tok.with_options() is tok
    assert short.with_options(truncation=None).digest == tok.digest


def test_special_tokens_as_ordinary_text(engine):
    plain = tb.Tokenizer.from_file(sample.tokenizer_path(), engine=engine, encode_special_tokens=True)

    assert plain.token_to_id("<mask>") not in plain.encode("a <mask> b").ids
    assert plain.decode(plain.encode("a <mask> b").ids) == "a <mask> b"


def test_threads_may_share_it(tok, expected):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: tok.encode_batch(TEXTS).to_pylist(), range(24)))

    assert results == [expected] * 24


def test_tokens_and_ids(tok):
    mask = tok.token_to_id("<mask>")

    assert tok.id_to_token(mask) == "<mask>"
    assert tok.token_to_id("no such token") is None
    assert tok.id_to_token(10**6) is None
    assert tok.vocab_size == 2000


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda t: t.encode(None), tb.EncodeError),
        (lambda t: t.encode("a", pair=3), tb.EncodeError),
        (lambda t: t.encode("\ud800"), tb.EncodeError),
        (lambda t: t.encode_batch(["a", "\ud800"]), tb.EncodeError),
        (lambda t: t.encode_batch("a text"), tb.InputError),
        (lambda t: t.encode_batch(pa.array([1, 2])), tb.InputError),
        (lambda t: t.encode_batch([1, 2]), tb.InputError),
        (lambda t: t.decode([-1]), tb.DecodeError),
        (lambda t: t.decode([2**40]), tb.DecodeError),
        (lambda t: t.decode(["a"]), tb.DecodeError),
        (lambda t: t.decode(7), tb.DecodeError),
        (lambda t: t.decode_batch(pa.array([[-1]])), tb.DecodeError),
        (lambda t: t.decode_batch(pa.array(["a"])), tb.InputError),
        (lambda t: t.decode_batch([[1, 2], "x"]), tb.InputError),
        (lambda t: t.encode_batch(["a"], id_type="float"), tb.ConfigError),
        (lambda t: t.token_to_id(3), tb.InputError),
        (lambda t: t.id_to_token("x"), tb.DecodeError),
        (lambda t: t.id_to_token(-1), tb.DecodeError),
        (lambda t: t.encode("a", add_special_tokens=None), tb.ConfigError),
        (lambda t: t.encode_batch(["a"], add_special_tokens=None), tb.ConfigError),
        (lambda t: t.count_batch(["a"], add_special_tokens="no"), tb.ConfigError),
        (lambda t: t.verify_batch(["a"], [[1]], add_special_tokens=None), tb.ConfigError),
        (lambda t: t.decode([1], skip_special_tokens=None), tb.ConfigError),
        (lambda t: t.decode_batch([[1]], skip_special_tokens="no"), tb.ConfigError),
        (lambda t: t.encode_batch(text for text in ("a", "\ud800")), tb.EncodeError),
        (lambda t: t.encode_batch([b"a", "\ud800"]), tb.EncodeError),
        (lambda t: t.encode_batch({"a": 1}), tb.InputError),
        (lambda t: t.decode([1.5]), tb.DecodeError),
        (lambda t: t.decode_batch([[1.5]]), tb.InputError),
        (lambda t: t.verify_batch(["a"], [["\ud800"]]), tb.InputError),
        (lambda t: t.with_options(truncation=5), tb.ConfigError),
        (lambda t: t.with_options(truncation=Truncation(-1)), tb.ConfigError),
        (lambda t: t.with_options(truncation=Truncation(4.5)), tb.ConfigError),
        (lambda t: t.with_options(truncation=Truncation(4, stride=-1)), tb.ConfigError),
        (lambda t: t.with_options(truncation=Truncation(4, direction="Up")), tb.ConfigError),
        (lambda t: t.with_options(truncation=Truncation(4, strategy="Best")), tb.ConfigError),
        (lambda t: t.with_options(padding=3), tb.ConfigError),
        (lambda t: t.with_options(padding=Padding(None, "Up", None, 0, 0, "p")), tb.ConfigError),
        (lambda t: t.with_options(padding=Padding(None, "Left", -1, 0, 0, "p")), tb.ConfigError),
        (lambda t: t.with_options(padding=Padding(None, "Left", None, 2**32, 0, "p")), tb.ConfigError),
        (lambda t: t.with_options(padding=Padding(None, "Left", None, 0, 0, "\ud800")), tb.ConfigError),
        (lambda t: t.with_options(encode_special_tokens="no"), tb.ConfigError),
        (lambda t: t.with_options(engine=3), tb.ConfigError),
        (lambda t: t.from_json({}), tb.InputError),
        (lambda t: t.from_json(10**10), tb.InputError),
        (lambda t: t.from_json("{}", encode_special_tokens="no"), tb.ConfigError),
        (lambda t: t.from_file(None), tb.InputError),
        (lambda t: t.from_file("a\0b"), tb.InputError),
        (lambda t: t.from_file("\ud800"), tb.InputError),
        (lambda t: t.from_pretrained(None), tb.InputError),
    ],
)
def test_misuse_is_told_and_nothing_else_escapes(tok, misuse: Any, error: type[Exception]):
    with pytest.raises(error) as caught:
        misuse(tok)

    assert str(caught.value)


def test_the_example_of_the_module_is_true():
    import doctest

    from tokbatch import tokenizer

    failed, attempted = doctest.testmod(tokenizer)
    assert (failed, attempted > 3) == (0, True)


def test_where_it_cannot_come_from(tmp_path):
    with pytest.raises(tb.TokbatchError, match=r"nowhere\.json"):
        tb.Tokenizer.from_file(tmp_path / "nowhere.json")
    with pytest.raises(tb.SpecError):
        tb.Tokenizer.from_json("no JSON")
    with pytest.raises(tb.ConfigError, match="'fast' is no engine"):
        tb.Tokenizer.from_file(sample.tokenizer_path(), engine="fast")


def test_lists_of_ids_may_be_python_lists(tok, expected):
    assert tok.decode_batch(expected).to_pylist() == tok.decode_batch(pa.array(expected)).to_pylist()
    assert tok.verify_batch(TEXTS, expected).to_pylist()[0]["verdict"] == "stripped"


@pytest.mark.parametrize("name", ["../none", "./none", "/none/at/all", "a b", "a\0b", ""])
def test_what_is_neither_a_path_nor_a_name_of_the_hub(name):
    with pytest.raises(tb.InputError, match="no such file or folder, and no name that a repository of the hub can"):
        tb.Tokenizer.from_pretrained(name)
