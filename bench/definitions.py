"""What is measured, and what the right answer is.

A measurement is one library in one stage on one slice of a corpus. Its answer is the number of ids and their SHA-256.
The right ones stand in `answers.json`, by the digests of tokenizer, slice and stage; where they do not, `tokenizers` is
asked. A measurement with another answer is WRONG, and its time is of no interest.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from dataclasses import asdict, dataclass
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parent
ANSWERS = FOLDER / "answers.json"

STAGES = {
    "encode": "text to ids",
    "split": "text to pretokens: the same file with a WordLevel model that knows no word gives an id a pretoken",
    "count": "number of ids of each document",
    "verify": "ids held against the texts, documents as in `encode`",
    "decode": "ids to text",
    "write": "ids to a part: Parquet, as a job writes them",
}
TOKBATCH_ONLY = ("count", "verify", "decode", "write")
"""Stages that peers have no like of; they are timed after an untimed encode."""


@dataclass(frozen=True)
class Measurement:
    """What one fresh process measures: `megabytes` of text from the beginning of the corpus, at whole documents.

    A library gets its share of that (see `Peer`). `rows`, where given, is the number of documents instead.
    """

    peer: str
    stage: str
    tokenizer: str
    corpus: tuple[str, ...]
    column: str
    megabytes: float
    rows: int | None = None

    def to_json(self) -> str:
        """Give it as the argument of another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Measurement:
        """Read what `to_json` gave."""
        fields = json.loads(text)
        return cls(**{**fields, "corpus": tuple(fields["corpus"])})


@dataclass(frozen=True)
class Answer:
    """How many ids there are, and the SHA-256 of all of them as little-endian int32."""

    tokens: int
    sha256: str


def read_texts(wanted: Measurement, share: float) -> tuple[Any, int]:
    """Give the first documents of the corpus, nulls left out, and their bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables = [pq.read_table(file, columns=[wanted.column]) for file in wanted.corpus]
    texts = pa.concat_tables(tables)[wanted.column].combine_chunks().drop_null()
    if isinstance(texts, pa.ChunkedArray):
        texts = pa.concat_arrays(texts.chunks)
    ends = pc.cumulative_sum(pc.cast(pc.binary_length(texts), pa.int64()))
    enough = (pc.sum(pc.less(ends, int(wanted.megabytes * share * 1e6))).as_py() or 0) + 1
    rows = min(len(texts), enough if wanted.rows is None else wanted.rows)
    texts = pa.concat_arrays([texts.slice(0, rows)])  # a copy: libraries that take slices badly are not to suffer
    return texts, ends[rows - 1].as_py() if rows else 0


def place_of(tokenizer: pathlib.Path, texts: Any, stage: str) -> str:
    """Give the key of an answer. Stages that start from ids have the answer of `encode`."""
    digest = hashlib.sha256(str(texts.type).encode())
    for text in texts:
        digest.update(len(text.as_buffer()).to_bytes(8, "little"))
        digest.update(text.as_buffer())
    of_stage = "split" if stage == "split" else "encode"
    return f"{hashlib.sha256(tokenizer.read_bytes()).hexdigest()[:16]}:{digest.hexdigest()[:16]}:{of_stage}"


def answer_of(ids: Any) -> Answer:
    """Give the answer that some ids are: a numpy array of int32."""
    return Answer(len(ids), hashlib.sha256(ids.astype("<i4", copy=False).tobytes()).hexdigest())


def known_answers() -> dict[str, Answer]:
    """Read the answers that are on record."""
    return (
        {key: Answer(**answer) for key, answer in json.loads(ANSWERS.read_text()).items()} if ANSWERS.exists() else {}
    )


def keep_answer(key: str, answer: Answer) -> None:
    """Put an answer of the oracle on record."""
    answers = {**known_answers(), key: answer}
    lines = (f"{json.dumps(key)}: {json.dumps(asdict(answer))}" for key, answer in sorted(answers.items()))
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def split_only(tokenizer: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Write the same tokenizer with a WordLevel model that knows no word, and without added tokens."""
    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    content["model"] = {"type": "WordLevel", "vocab": {"\0": 0}, "unk_token": "\0"}
    content.update(added_tokens=[], post_processor=None, decoder=None)
    path = folder / f"{tokenizer.stem}.split.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path
