"""Verifications as a column, and as statistics."""

import array

import pyarrow as pa

from tokbatch.batch.round_trip import VERIFICATION_TYPE, count_verification, verification_array
from tokbatch.batch.stats import Stats
from tokbatch.engine.protocol import Absorbed, Verification

VERIFICATION = Verification(
    array.array("b", [0, 1, 2, 3, 3, 1]),
    array.array("q", [0, 2, 0, 0, 1, 1]),
    array.array("q", [0, 0, 0, 5, 0, 1]),
    array.array("q", [0, 0, 0, 7, 0, 0]),
    Absorbed(
        counts={
            ("lstrip", "<mask>", " "): 2,
            ("lstrip", "<mask>", "\n"): 1,
            ("lstrip", "<sep>", " "): 1,
            ("rstrip", "<sep>", "\u00a0"): 6,
        },
        documents={("lstrip", "<mask>"): 2, ("lstrip", "<sep>"): 1, ("rstrip", "<sep>"): 2},
        documents_by_whitespace={("lstrip", " "): 2, ("lstrip", "\n"): 1, ("rstrip", "\u00a0"): 2},
    ),
)


def test_as_a_column():
    column = verification_array(VERIFICATION)

    assert column.type == VERIFICATION_TYPE
    assert column.field("verdict").to_pylist() == ["exact", "stripped", "normalized", "lossy", "lossy", "stripped"]
    assert column[3].as_py() == {"verdict": "lossy", "lstrip_chars": 0, "rstrip_chars": 5, "unk_tokens": 7}


def test_as_a_column_with_nulls():
    column = verification_array(VERIFICATION, pa.array([False, True, False, False, False, True]))
    assert [row is None for row in column.to_pylist()] == [False, True, False, False, False, True]
    assert column.field("verdict").to_pylist() == ["exact", None, "normalized", "lossy", "lossy", None]
    assert column.field("rstrip_chars").null_count == 2
    empty = Verification(array.array("b"), array.array("q"), array.array("q"), array.array("q"), Absorbed())
    assert verification_array(empty).to_pylist() == []


def test_as_statistics():
    rows = pa.array([10, 11, 12, 20, 21, 22], pa.int64())

    assert count_verification(VERIFICATION, rows) == Stats(
        verified_documents=6,
        exact_documents=1,
        stripped_documents=2,
        normalized_documents=1,
        lossy_documents=2,
        lossy_first_rows=(20, 21),
        lstrip_documents=3,
        lstrip_chars=4,
        lstrip_documents_by_token={"<mask>": 2, "<sep>": 1},
        lstrip_documents_by_whitespace={"U+0020": 2, "U+000A": 1},
        lstrip_chars_by_token={"<mask>": 3, "<sep>": 1},
        lstrip_chars_by_whitespace={"U+0020": 3, "U+000A": 1},
        lstrip_chars_by_token_and_whitespace={"<mask>": {"U+0020": 2, "U+000A": 1}, "<sep>": {"U+0020": 1}},
        lstrip_first_rows=(11, 21, 22),
        rstrip_documents=2,
        rstrip_chars=6,
        rstrip_documents_by_token={"<sep>": 2},
        rstrip_documents_by_whitespace={"U+00A0": 2},
        rstrip_chars_by_token={"<sep>": 6},
        rstrip_chars_by_whitespace={"U+00A0": 6},
        rstrip_chars_by_token_and_whitespace={"<sep>": {"U+00A0": 6}},
        rstrip_first_rows=(20, 22),
    )


def test_only_the_first_rows_are_kept():
    many = Verification(
        array.array("b", [3] * 30), array.array("q", [1] * 30), array.array("q", [0] * 30), array.array("q", [0] * 30),
        Absorbed(),
    )  # fmt: skip
    stats = count_verification(many, pa.array(range(100, 130), pa.int64()))
    assert stats.lossy_first_rows == stats.lstrip_first_rows == tuple(range(100, 110))
    assert stats.rstrip_first_rows == ()
