"""Columns by name and by dotted path."""

import pyarrow as pa
import pytest

from tokbatch.batch.fields import field_of, find_field, values_of
from tokbatch.errors import InputError

STRUCT = pa.struct([("body", pa.string()), ("meta.x", pa.struct([("k", pa.int64())]))])
SCHEMA = pa.schema([("id", pa.int64()), ("a.b", pa.string()), ("a", pa.struct([("b", pa.int8())])), ("m", STRUCT)])


def test_names_and_paths():
    assert find_field(SCHEMA, "id", "x") == (0,)
    assert find_field(SCHEMA, "a.b", "x") == (1,)
    assert find_field(SCHEMA, "m.body", "x") == (3, 0)
    assert find_field(SCHEMA, "m.meta.x", "x") == (3, 1)
    assert find_field(SCHEMA, "m.meta.x.k", "x") == (3, 1, 0)
    assert field_of(SCHEMA, (3, 1, 0)) == pa.field("k", pa.int64())


def test_the_longest_name_goes_first():
    in_dotted = pa.field("a.b", pa.struct([("c", pa.int8())]))
    in_plain = pa.field("a", pa.struct([("b.c", pa.int8())]))
    assert find_field(pa.schema([in_plain, in_dotted]), "a.b.c", "x") == (1, 0)
    assert find_field(pa.schema([in_plain]), "a.b.c", "x") == (0, 0)


def test_what_is_not_there():
    with pytest.raises(InputError, match=r"there is no column 'm\.bdy'") as caught:
        find_field(SCHEMA, "m.bdy", "text_column")
    assert (caught.value.where, caught.value.hint) == ("text_column", "did you mean 'm.body'?")
    for name in ("m.", ".m", "", "id.x", "m.body.x", "M"):
        with pytest.raises(InputError, match="there is no column"):
            find_field(SCHEMA, name, "text_column")
    with pytest.raises(InputError) as caught:
        find_field(pa.schema([("one", pa.int8()), ("two", pa.int8())]), "qqq", "text_column")
    assert caught.value.hint == "there are 'one', 'two'"
    with pytest.raises(InputError) as caught:
        find_field(pa.schema([]), "text", "text_column")
    assert caught.value.hint == "there are no columns at all"


def test_a_name_that_is_there_twice():
    with pytest.raises(InputError, match="there are 2 columns 'text'"):
        find_field(pa.schema([("text", pa.string()), ("text", pa.string())]), "text", "text_column")


def test_values_inside_of_null_structs_are_null():
    inner = pa.StructArray.from_arrays(
        [pa.array(["a", "b", "c", None])], ["t"], mask=pa.array([True, False, False, False])
    )
    outer = pa.StructArray.from_arrays([inner], ["s"], mask=pa.array([False, True, False, False]))
    batch = pa.record_batch([outer], ["o"])
    assert values_of(batch, (0, 0, 0)).to_pylist() == [None, None, "c", None]
    assert values_of(batch.slice(1, 2), (0, 0, 0)).to_pylist() == [None, "c"]
