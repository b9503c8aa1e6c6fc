import pyarrow as pa
import pytest

from tokbatch.errors import InputError
from tokbatch.job.schema import SchemaUnion, common_type, fit

IDS = pa.list_(pa.int32())


def union(*schemas):
    found = SchemaUnion()
    for name, schema in schemas:
        found.add(name, schema)
    return found


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (pa.int64(), pa.int64(), pa.int64()),
        (pa.null(), pa.string(), pa.string()),
        (pa.string(), pa.large_string(), pa.large_string()),
        (pa.string(), pa.string_view(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), pa.string()),
        (pa.dictionary(pa.int32(), pa.large_string()), pa.string(), pa.large_string()),
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.uint8(), pa.uint16(), pa.uint16()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.uint32(), None),
        (pa.int64(), pa.float64(), None),
        (pa.string(), pa.binary(), None),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int16())]), None),
    ],
)
def test_types_meet_only_without_a_loss(left, right, expected):
    assert common_type(left, right) == expected
    assert common_type(right, left) == expected


def test_columns_join_in_order_with_the_ids_last():
    first = pa.schema([("a", pa.string()), ("input_ids", IDS)], metadata={"huggingface": "x"})
    second = pa.schema([("b", pa.int8()), ("a", pa.large_string()), ("input_ids", IDS)])
    schema = union(("one", first), ("two", second)).schema(last="input_ids")
    assert schema == pa.schema([("a", pa.large_string()), ("b", pa.int8()), ("input_ids", IDS)])
    assert schema.metadata is None


def test_types_that_do_not_meet_name_both_files():
    found = union(("one", pa.schema([("a", pa.string())])))
    with pytest.raises(InputError, match=r'two: the column "a" is int8 here, and string in one'):
        found.add("two", pa.schema([("b", pa.int8()), ("a", pa.int8())]))
    assert found.schema(last="input_ids") == pa.schema([("a", pa.string())])


def test_fit_fills_and_casts():
    schema = pa.schema([("a", pa.large_string()), ("b", pa.int8()), ("c", pa.list_(pa.string()))])
    batch = pa.record_batch({"b": pa.array([1, None], pa.int8()), "a": ["x", None]})
    assert fit(batch, schema).to_pylist() == [{"a": "x", "b": 1, "c": None}, {"a": None, "b": None, "c": None}]
    assert fit(batch, schema).schema == schema
