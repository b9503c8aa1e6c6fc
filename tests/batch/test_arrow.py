"""The Arrow boundary: every layout of texts and ids gives the same columns, and nothing is copied without need."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch.layouts import LAYOUTS, broken
from tokbatch.batch import arrow
from tokbatch.batch.arrow import as_array, id_array, id_column, string_array, text_column
from tokbatch.engine.columns import IdColumn, TextColumn, offsets_view
from tokbatch.errors import DecodeError, EncodeError, InputError

TEXTS = ["", "a", None, "日本語の長いテキスト, longer than twelve bytes", "𐐀", None, "", "b\x00c"]


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(deadline=None, max_examples=30)
@given(texts=st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20), max_size=6))
def test_every_layout_gives_the_same_texts(layout, texts):
    read = text_column(LAYOUTS[layout](texts))

    assert list(read.texts) == [text or "" for text in texts]
    assert (read.nulls or pa.array([False] * len(texts), pa.bool_())).to_pylist() == [text is None for text in texts]
    assert string_array(read.texts, read.nulls).to_pylist() == texts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_lies_between_the_texts(layout):
    read = text_column(LAYOUTS[layout](TEXTS))
    offsets = offsets_view(read.texts.list_offsets).tolist()
    assert offsets[-1] - offsets[0] == sum(len(text.encode()) for text in TEXTS if text)


def test_columns_without_rows_or_texts():
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null(), pa.dictionary(pa.int32(), pa.string())):
        for empty in (pa.nulls(0, kind), pa.chunked_array([], kind)):
            read = text_column(empty)
            assert (list(read.texts), read.nulls) == ([], None)
        read = text_column(pa.nulls(3, kind))
        assert (list(read.texts), read.nulls.to_pylist()) == ([""] * 3, [True] * 3)


def address(buffer) -> int:
    return pa.py_buffer(buffer).address


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_the_text_is_not_copied(kind):
    values = pa.array(["one", "two", None, "three"], kind)
    for array in (values, values.slice(1), values.slice(0, 2), pa.chunked_array([values])):
        assert address(text_column(array).texts.data) == values.buffers()[2].address
    assert string_array(text_column(values.slice(0, 2)).texts).buffers()[2].address == values.buffers()[2].address


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_bytes_that_are_not_utf8_are_noticed(kind):
    values = broken([b"ok", None, b"\xe6\x97", b"\xa5", b"fine", b"\xed\xa0\x80"], kind)

    with pytest.raises(EncodeError, match="row 2: byte 0 of the text") as caught:
        text_column(values)
    assert caught.value.row == 2
    unchecked = text_column(values, check_utf8=False)
    assert (unchecked.failures, unchecked.nulls.to_pylist()) == ([], [row == 1 for row in range(6)])
    read = text_column(values, keep_going=True)
    assert [row for row, _ in read.failures] == [2, 3, 5]
    assert read.nulls.to_pylist() == [False, True, True, True, False, True]
    assert list(read.texts) == ["ok", "", "", "", "fine", ""]


def of_buffers(kind, rows, *buffers, children=None):
    return pa.Array.from_buffers(kind, rows, [None, *map(pa.py_buffer, buffers)], children=children)


TWO_RUNS = pa.array([2, 3], pa.int32())
BROKEN_TEXTS = {
    "offsets backwards": of_buffers(pa.string(), 2, struct.pack("<3i", 0, 5, 2), b"hello"),
    "64-bit offsets backwards": of_buffers(pa.large_string(), 3, struct.pack("<4q", 0, 5, 2, 5), b"hello"),
    "backwards, and not UTF-8": of_buffers(pa.string(), 3, struct.pack("<4i", 0, 5, 2, 5), b"hell\xff"),
    "view of no buffer": of_buffers(pa.string_view(), 1, struct.pack("<i4s2i", 20, b"abcd", 7, 3)),
    "index too large": pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["a"]), safe=False),
    "in a dictionary": pa.DictionaryArray.from_arrays(
        pa.array([1, 0]), of_buffers(pa.string(), 2, struct.pack("<3i", 0, 5, 2), b"hello"), safe=False
    ),
    "index below zero": pa.DictionaryArray.from_arrays(pa.array([0, -1], pa.int8()), pa.array(["a"]), safe=False),
}
BROKEN_TEXTS["in runs"] = of_buffers(
    pa.run_end_encoded(pa.int32(), pa.string()), 3, children=[TWO_RUNS, BROKEN_TEXTS["offsets backwards"]]
)


@pytest.mark.parametrize("name", BROKEN_TEXTS)
@pytest.mark.parametrize("keep_going", [True, False])
def test_broken_arrays_of_texts_are_refused(name, keep_going):
    with pytest.raises(InputError, match=r"^column: a broken Arrow array"):
        text_column(BROKEN_TEXTS[name], "column", keep_going)
    with pytest.raises(InputError, match=r"^column: a broken Arrow array"):
        text_column(pa.chunked_array([BROKEN_TEXTS[name]] * 2), "column", keep_going)
    with pytest.raises(InputError, match=r"^column: a broken Arrow array"):
        text_column(BROKEN_TEXTS[name], "column", keep_going, check_utf8=False)


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32())], ids=str)
def test_broken_arrays_of_ids_are_refused(kind):
    form = "<3q" if pa.types.is_large_list(kind) else "<3i"
    ids = of_buffers(kind, 2, struct.pack(form, 0, 5, 2), children=[pa.array([1, 2, 3, 4, 5], pa.int32())])
    with pytest.raises(InputError, match=r"^ids: a broken Arrow array"):
        id_column(ids)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None]).dictionary_encode(),
        pa.array(["a", None], pa.string_view()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None], pa.string_view())),
    ],
    ids=["dictionary", "string_view", "dictionary of views"],
)
def test_runs_of_every_kind_of_text(values):
    runs = pa.RunEndEncodedArray.from_arrays(TWO_RUNS, values)
    for array, expected in ((runs, ["a", "a", None]), (runs.slice(1), ["a", None]), (runs.slice(2, 0), [])):
        read = text_column(array)
        assert [text or None for text in read.texts] == expected
        assert (read.nulls is not None) == (None in expected)


def test_runs_that_are_not_utf8():
    values = pa.array([b"a", b"\xff"]).view(pa.string())
    runs = of_buffers(pa.run_end_encoded(pa.int32(), pa.string()), 3, children=[TWO_RUNS, values])
    with pytest.raises(EncodeError, match="not UTF-8") as caught:
        text_column(runs)
    assert caught.value.row == 2


def test_bytes_that_are_not_utf8_behind_other_layouts():
    values = broken([b"a", b"\xff"])
    for array in (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), values),
        pa.chunked_array([pa.array(["x"]), values]),
        values.cast(pa.string_view()),
    ):
        with pytest.raises(EncodeError, match="not UTF-8"):
            text_column(array)
    assert list(text_column(values.slice(0, 1)).texts) == ["a"]


@pytest.mark.parametrize("kind", [pa.int64(), pa.binary(), pa.large_binary(), pa.list_(pa.string()), pa.bool_()])
def test_columns_that_are_no_texts(kind):
    with pytest.raises(InputError, match="a column of texts expected, found") as caught:
        text_column(pa.nulls(2, kind), where="column 'x'")
    assert caught.value.where == "column 'x'"
    assert ("cast it to string" in (caught.value.hint or "")) == ("binary" in str(kind))


def test_lists_of_python_texts():
    array = pa.array(["a"])
    assert as_array(array) is array
    assert as_array(["a", None, ""]).to_pylist() == ["a", None, ""]
    assert list(text_column(as_array([None])).texts) == [""]
    assert list(text_column(as_array([])).texts) == []
    with pytest.raises(EncodeError, match=r"row 2: a lone surrogate U\+D800 at character 1"):
        as_array(["a", None, "b\ud800"])
    for wrong in ("text", b"text", ["a", 1], [b"a", 2], 5):
        with pytest.raises(InputError, match="a list of texts expected"):
            as_array(wrong)


# -- ids --------------------------------------------------------------------------------------------------------------

LISTS = [[1, 2], [], None, [70_000], None, [3, 0, 5]]
LIST_TYPES = {
    "list": pa.list_(pa.int32()),
    "not null": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "large_list": pa.large_list(pa.int64()),
    "unsigned": pa.list_(pa.uint32()),
    "list_view": pa.list_view(pa.int32()),
    "large_list_view": pa.large_list_view(pa.uint64()),
}


@pytest.mark.parametrize("kind", LIST_TYPES.values(), ids=LIST_TYPES)
def test_every_layout_gives_the_same_ids(kind):
    values = pa.array([[9], None, *LISTS, [8, 8]], kind)
    plain = pa.array(LISTS, kind)
    for array in (plain, values.slice(2, len(LISTS)), pa.chunked_array([plain.slice(0, 2), plain.slice(2)])):
        rows = id_column(array)
        assert list(rows.ids) == [ids or [] for ids in LISTS]
        assert rows.nulls.to_pylist() == [ids is None for ids in LISTS]
        assert id_array(rows.ids, rows.nulls).to_pylist() == LISTS
    assert id_column(pa.array([[1], [2, 3]], kind)).nulls is None


def test_rare_layouts_of_ids():
    assert list(id_column(pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int16(), 2))).ids) == [[1, 2], [], [3, 4]]
    assert list(id_column(pa.nulls(2)).ids) == [[], []]
    assert list(id_column(pa.array([[], []])).ids) == [[], []]
    assert list(id_column(pa.chunked_array([], pa.list_(pa.int32()))).ids) == []
    assert list(id_column(pa.chunked_array([pa.array([[1]]), pa.array([[2], None])])).ids) == [[1], [2], []]
    assert id_column(pa.chunked_array([pa.array([[1]]), pa.array([[2], [3]])])).nulls is None
    hidden = pa.Array.from_buffers(
        pa.list_(pa.int32()),
        3,
        [pa.array([True, False, True]).buffers()[1], pa.array([0, 1, 3, 4], pa.int32()).buffers()[1]],
        children=[pa.array([1, -2, -3, 4], pa.int32())],
    )
    assert list(id_column(hidden).ids) == [[1], [], [4]]


def test_ids_are_not_copied():
    column = IdColumn.from_lists([[1, 2], [3]])
    array = id_array(column)
    assert array.values.buffers()[1].address == address(column.ids)
    assert address(id_column(array).ids.ids) == address(column.ids)


def test_types_of_the_column_of_ids():
    column = IdColumn.from_lists([[1, 65_535], []])
    assert id_array(column).type == pa.list_(pa.int32())
    assert id_array(column, id_type="uint16").type == pa.list_(pa.uint16())
    assert id_array(column, id_type="uint16").to_pylist() == [[1, 65_535], []]
    large = id_array(column, pa.array([False, True]), list_type=pa.large_list(pa.int32()))
    assert (large.type, large.to_pylist()) == (pa.large_list(pa.int32()), [[1, 65_535], None])
    assert id_array(column, pa.array([False, True])).to_pylist() == [[1, 65_535], None]
    assert id_array(IdColumn.from_lists([])).type == pa.list_(pa.int32())
    with pytest.raises(EncodeError, match="does not fit into uint16"):
        id_array(IdColumn.from_lists([[65_536]]), id_type="uint16")


def test_more_than_32_bit_offsets_hold(monkeypatch):
    monkeypatch.setattr(arrow, "MAXIMUM_OFFSET", 3)
    column = IdColumn.from_lists([[1, 2], [3, 4]])
    assert id_array(column).type == pa.large_list(pa.int32())
    assert id_array(column).to_pylist() == [[1, 2], [3, 4]]
    with pytest.raises(EncodeError, match=r"4 ids in 2 rows, while a batch of list<item: int32> holds 3"):
        id_array(column, list_type=pa.list_(pa.int32()))
    assert string_array(TextColumn.from_texts(["ab", "c"])).type == pa.string()
    assert string_array(TextColumn.from_texts(["ab", "cd"])).type == pa.large_string()


def test_what_is_no_id():
    for values, message in (
        ([[1], [-1]], "-1 is no id"),
        ([[2**32]], "ids have 32 bits"),
        ([[1, None]], "a null among"),
    ):
        with pytest.raises(DecodeError, match=message):
            id_column(pa.array(values, pa.list_(pa.int64())))
    for wrong in (pa.array([1, 2]), pa.array([["a"]]), pa.array([[1.0]])):
        with pytest.raises(InputError, match="a column of lists of ids expected"):
            id_column(wrong, "column 'ids'")


def test_ids_beyond_every_vocabulary_stay_ids_of_no_token():
    assert list(id_column(pa.array([[7, 2**31, 2**32 - 1]], pa.list_(pa.int64()))).ids) == [[7, -1, -1]]


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.integers(0, 2**31 - 1))), st.integers(0, 3))
def test_ids_come_back(lists, start):
    rows = id_column(pa.array(lists, pa.list_(pa.int32())).slice(start))
    assert id_array(rows.ids, rows.nulls).to_pylist() == lists[start:]


@pytest.mark.long
def test_more_than_2_gib_of_text():
    """Dictionary, chunks and views: each is small in parts and beyond 32-bit offsets as a whole."""
    text = "x" * 2**26
    rows = 33  # 2.06 GiB
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    views = pa.concat_arrays([pa.array([text], pa.string_view())] * rows)
    chunks = pa.chunked_array([pa.array([text])] * rows)
    for values in (dictionary, views, chunks):
        read = text_column(values)
        assert (read.texts.rows, len(memoryview(read.texts.data))) == (rows, rows * 2**26)
        assert read.texts.text(rows - 1) == text
    assert string_array(read.texts).type == pa.large_string()
