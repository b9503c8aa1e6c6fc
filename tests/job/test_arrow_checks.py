import decimal

import pyarrow as pa
import pytest

from tokbatch.job.arrow_checks import check_offsets, plain_type

NO_TEXT = pa.array([b"\xff", None, b"ok"], pa.binary())
GOOD = {
    "string": NO_TEXT.view(pa.string()),
    "large_string": NO_TEXT.cast(pa.large_binary()).view(pa.large_string()),
    "string_view": NO_TEXT.cast(pa.binary_view()).view(pa.string_view()),
    "dictionary": pa.DictionaryArray.from_arrays(pa.array([2, None, 0], pa.int8()), NO_TEXT.view(pa.string())),
    "list": pa.array([["a"], None, []], pa.list_(pa.string())),
    "large_list": pa.array([["a"], None, []], pa.large_list(pa.string())),
    "list_view": pa.array([["a"], None, []], pa.list_view(pa.string())),
    "large_list_view": pa.array([["a"], None, []], pa.large_list_view(pa.string_view())),
    "fixed_size_list": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string(), 2)),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "struct": pa.array([{"a": "x", "b": [1]}, None, {"a": None, "b": None}]),
    "dense_union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array(["a", "b"]), pa.array([1])]
    ),
    "sparse_union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], pa.int8()), [pa.array(["a", "b", "c"]), pa.array([1, 2, 3])]
    ),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])),
    "date64": pa.array([1, None, 86_400_001], pa.int64()).view(pa.date64()),  # no whole days
    "time32": pa.array([-1, None, 10**9], pa.int32()).view(pa.time32("s")),  # no times of a day
    "time64": pa.array([-1, None, 2**60], pa.int64()).view(pa.time64("ns")),
    "date32": pa.array([1, None, 3], pa.date32()),
    "timestamp": pa.array([1, None, 3], pa.timestamp("us", "UTC")),
    "decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2")], pa.decimal128(5, 2)),
    "wide decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2")], pa.decimal256(50, 2)),
    "bool": pa.array([True, None, False]),
    "null": pa.nulls(3),
    "half": pa.array([1.5, None, 2], pa.float16()),
    "fixed_size_binary": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "extension": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None, "not judged"])),
    "interval": pa.array([(1, 2, 3), None, (4, 5, 6)], pa.month_day_nano_interval()),
}


@pytest.mark.parametrize("name", GOOD)
def test_values_are_not_judged(name):
    array = GOOD[name]
    batch = pa.record_batch([array], schema=pa.schema([pa.field("a", array.type, metadata={"k": "v"})]))
    check_offsets(batch)
    check_offsets(batch.slice(1))
    check_offsets(batch.slice(1, 0))


@pytest.mark.parametrize(
    "array",
    [
        pa.Array.from_buffers(
            pa.string(), 2, [None, pa.array([0, 9, 1], pa.int32()).buffers()[1], pa.py_buffer(b"abc")]
        ),
        pa.Array.from_buffers(
            pa.list_(pa.int8()),
            2,
            [None, pa.array([0, 9, 1], pa.int32()).buffers()[1]],
            children=[pa.array([1], pa.int8())],
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["a"]), safe=False),
        pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x03"), pa.py_buffer(bytes(16))], null_count=1),
        pa.Array.from_buffers(pa.binary_view(), 1, [None, pa.array([2**40 + 100, 0], pa.int64()).buffers()[1]]),
    ],
    ids=["string", "list", "dictionary", "nulls", "view"],
)
def test_what_leads_out_of_a_column_is_refused(array):
    with pytest.raises((pa.ArrowException, IndexError)):
        check_offsets(pa.record_batch([array], names=["a"]))


def test_plain_types_have_the_same_buffers():
    for array in GOOD.values():
        if not pa.types.is_map(array.type):
            assert pa.field("a", plain_type(array.type)).type.num_fields == array.type.num_fields
