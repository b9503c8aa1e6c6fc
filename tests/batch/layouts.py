"""Every way in which Arrow can hold the same column of texts."""

import pyarrow as pa
import pyarrow.compute as pc


class Tagged(pa.ExtensionType):
    """A column of strings with a name of its own."""

    def __init__(self):
        super().__init__(pa.string(), "tokbatch.tests.tagged")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def dictionary(texts, kind=None, index=None):
    distinct = sorted({text for text in texts if text is not None})
    indices = pa.array([None if t is None else distinct.index(t) for t in texts], index or pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, kind or pa.string()))


def dictionary_with_null(texts):
    distinct = [None, *sorted({text for text in texts if text is not None})]
    return pa.DictionaryArray.from_arrays(
        pa.array([distinct.index(t) for t in texts], pa.int8()), pa.array(distinct, pa.string())
    )


def run_ends(texts):
    ends = pa.array(range(1, len(texts) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(texts, pa.string()))


def in_null_parents(texts):
    """Put the texts into structs that are null where the text is, with bytes under the null that belong to nobody."""
    full = pa.array(["hidden \N{SNOWMAN}" if text is None else text for text in texts], pa.string())
    mask = pa.array([text is None for text in texts], pa.bool_())
    return pc.struct_field(pa.StructArray.from_arrays([full], ["text"], mask=mask), [0])


def chunks(texts):
    middle = len(texts) // 2
    return pa.chunked_array([pa.array(part, pa.string()) for part in (texts[:middle], [], texts[middle:])])


LAYOUTS = {
    "string": lambda texts: pa.array(texts, pa.string()),
    "large_string": lambda texts: pa.array(texts, pa.large_string()),
    "string_view": lambda texts: pa.array(texts, pa.string_view()),
    "dictionary": dictionary,
    "dictionary of large strings": lambda texts: dictionary(texts, pa.large_string(), pa.int8()),
    "dictionary of views": lambda texts: dictionary(texts, pa.string_view(), pa.uint16()),
    "dictionary with a null in it": dictionary_with_null,
    "run ends": run_ends,
    "extension": lambda texts: pa.ExtensionArray.from_storage(Tagged(), pa.array(texts, pa.string())),
    "null parents": in_null_parents,
    "sliced": lambda texts: pa.array(["x", None, *texts, "y"], pa.string()).slice(2, len(texts)),
    "sliced large": lambda texts: pa.array(["x", None, *texts, "y"], pa.large_string()).slice(2, len(texts)),
    "sliced view": lambda texts: pa.array(["x", None, *texts, "y"], pa.string_view()).slice(2, len(texts)),
    "sliced dictionary": lambda texts: dictionary(["x", None, *texts, "y"]).slice(2, len(texts)),
    "sliced null parents": lambda texts: in_null_parents(["x", None, *texts, "y"]).slice(2, len(texts)),
    "chunks": chunks,
}


def broken(rows, kind=None):
    """Give a column of strings whose rows are any bytes (None: null, with bytes that are not UTF-8 under it)."""
    data = [b"\xff" if row is None else row for row in rows]
    binary = pa.array(data, pa.large_binary() if kind == pa.large_string() else pa.binary())
    valid = pc.invert(pa.array([row is None for row in rows])).buffers()[1]
    return pa.Array.from_buffers(kind or pa.string(), len(rows), [valid, *binary.buffers()[1:]])
