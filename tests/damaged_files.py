"""Small good files in every format that a job reads, and ways to damage them. All of it by seeds."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpora import TEXTS

STRING = pa.string()
ROWS = 53
GROUP = 20
DOCUMENTS: list[str | None] = [None if TEXTS[i % 7] is None else f"{TEXTS[i % 7]} {i}" for i in range(ROWS)]

Damage = Callable[[random.Random, bytes], bytes]


def table(text: pa.DataType = STRING) -> pa.Table:
    """Give the documents with a number each, in a column whose type has no nulls, and lists in another."""
    numbers = pa.array(range(ROWS), pa.int64())
    lists = pa.array([list(range(i % 4)) or None for i in range(ROWS)], pa.list_(pa.int32()))
    return pa.table({"id": numbers, "text": pa.array(DOCUMENTS, text), "list": lists})


def parquet(text: pa.DataType = STRING, **options: Any) -> bytes:
    """Give a Parquet file of three row groups."""
    sink = io.BytesIO()
    pq.write_table(table(text), sink, row_group_size=GROUP, **options)
    return sink.getvalue()


def arrow(form: str, compression: str | None = None, text: pa.DataType = STRING) -> bytes:
    """Give an Arrow IPC file or stream of three record batches."""
    sink = io.BytesIO()
    content = table(text)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    new = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with new(sink, content.schema, options=options) as writer:
        writer.write_table(content, max_chunksize=GROUP)
    return sink.getvalue()


def lines() -> bytes:
    """Give the documents as JSON lines."""
    return "".join(json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate(DOCUMENTS)).encode()


def compressed(codec: str, content: bytes) -> bytes:
    """Compress in two members, or frames."""
    half = len(content) // 2
    if codec == "gzip":
        return b"".join(gzip.compress(piece, mtime=0) for piece in (content[:half], content[half:]))
    return b"".join(pa.compress(piece, codec, asbytes=True) for piece in (content[:half], content[half:]))


GOOD: dict[str, Callable[[], bytes]] = {
    "plain.parquet": lambda: parquet(compression="none", use_dictionary=False),
    "dictionary.parquet": lambda: parquet(compression="snappy"),
    "checksums.parquet": lambda: parquet(compression="zstd", write_page_checksum=True),
    "plain-checksums.parquet": lambda: parquet(compression="none", use_dictionary=False, write_page_checksum=True),
    "second.parquet": lambda: parquet(compression="lz4", data_page_version="2.0", write_page_index=True),
    "delta.parquet": lambda: parquet(
        pa.large_string(),
        compression="gzip",
        use_dictionary=False,
        column_encoding={"id": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"},
    ),
    "lengths.parquet": lambda: parquet(
        pa.string_view(),
        compression="brotli",
        use_dictionary=False,
        column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"},
    ),
    "pages.parquet": lambda: parquet(compression="none", data_page_size=64, write_batch_size=4),
    "file.arrow": lambda: arrow("file"),
    "stream.arrows": lambda: arrow("stream", text=pa.large_string()),
    "zstd.arrow": lambda: arrow("file", "zstd"),
    "lz4.arrows": lambda: arrow("stream", "lz4"),
    "view.arrow": lambda: arrow("file", text=pa.string_view()),
    "dictionary.arrows": lambda: arrow("stream", text=pa.dictionary(pa.int32(), pa.string())),
    "lines.jsonl.gz": lambda: compressed("gzip", lines()),
    "lines.jsonl.zst": lambda: compressed("zstd", lines()),
}


def flip_a_bit(rng: random.Random, data: bytes) -> bytes:
    content = bytearray(data)
    content[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(content)


def other_bytes(rng: random.Random, data: bytes) -> bytes:
    content = bytearray(data)
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice([1, 2, 4, 8, 64]))
    content[start:stop] = rng.choice([b"\x00", b"\xff", b"\x7f", b"\x80"])[0:1] * (stop - start)
    return bytes(content)


def random_bytes(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.randint(1, 16))
    return data[:start] + rng.randbytes(stop - start) + data[stop:]


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_out(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.choice([1, 4, 8, 100]) :]


def put_in(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + rng.randbytes(rng.choice([1, 4, 8, 100])) + data[start:]


def swap_pieces(rng: random.Random, data: bytes) -> bytes:
    size = rng.choice([4, 8, 64])
    content = bytearray(data)
    a, b = (rng.randrange(max(1, len(data) - size)) for _ in range(2))
    content[a : a + size], content[b : b + size] = data[b : b + size], data[a : a + size]
    return bytes(content)


DAMAGES: list[Damage] = [flip_a_bit, other_bytes, random_bytes, cut, cut_out, put_in, swap_pieces]
# only for Parquet


def footer_of(data: bytes) -> tuple[int, int]:
    """Give where the footer of a Parquet file starts and ends."""
    stop = len(data) - 8
    return stop - int.from_bytes(data[-8:-4], "little"), stop


def in_the_footer(rng: random.Random, data: bytes) -> bytes:
    start, stop = footer_of(data)
    return data[:start] + rng.choice(DAMAGES)(rng, data[start:stop]) + data[stop:]


def footer_of_another_length(rng: random.Random, data: bytes) -> bytes:
    start, stop = footer_of(data)
    length = rng.choice([0, 1, stop - start - 1, stop - start + 1, len(data), 2**31 - 1, 2**31, 2**32 - 1])
    return data[:-8] + length.to_bytes(4, "little") + data[-4:]


def counts_that_lie(rng: random.Random, data: bytes) -> bytes:
    """Change one of the footer's 64-bit fields that say a number of rows or values.

    The compact protocol writes one as 0x16 (the next field but one, i64) and twice the number; all are below 64 here.
    """
    start, stop = footer_of(data)
    places = [i + 1 for i in range(start, stop - 1) if data[i] == 0x16 and data[i + 1] in (2 * ROWS, 2 * GROUP, 26)]
    place = rng.choice(places)
    return data[:place] + bytes([rng.choice([0, 1, 2, 2 * GROUP - 2, 2 * GROUP + 2, 126])]) + data[place + 1 :]


PARQUET_DAMAGES: list[Damage] = [in_the_footer, footer_of_another_length, counts_that_lie]


def damaged(seeds: Iterator[int] | range) -> Iterator[tuple[str, bytes]]:
    """Give (name, content) of a damaged file for each seed; the name says what was done to which file."""
    for seed in seeds:
        rng = random.Random(seed)
        name = list(GOOD)[seed % len(GOOD)]
        damages = DAMAGES + (2 * PARQUET_DAMAGES if name.endswith(".parquet") else [])
        damage = rng.choice(damages)
        stem, suffix = name.split(".", 1)
        yield f"{seed:06d}-{stem}-{damage.__name__}.{suffix}", damage(rng, GOOD[name]())
