#!/usr/bin/env python3
"""Make the sample: the corpus in src/tokbatch/sample/corpus and the tokenizer trained on it.

    make_sample.py            write the files
    make_sample.py --check    build them in memory and compare with what is committed; exit 1 if anything differs

No clock and no random number is involved: the files are the same at every run. (The Parquet files name the pyarrow
that wrote them, so --check compares tables; the tokenizer is compared byte by byte.)

The texts are in sample/prose.txt and sample/code.txt, and composed in sample/special_tokens.py.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SAMPLE = REPOSITORY / "src" / "tokbatch" / "sample"
sys.path[:0] = [str(REPOSITORY / "tests"), str(HERE / "sample")]

from special_tokens import special_token_documents  # noqa: E402

from oracles import oracle  # noqa: E402

VOCABULARY = 2000
ROW_GROUP_ROWS = 64
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("language", pa.string()),
        pa.field(
            "source",
            pa.struct([("title", pa.string()), ("part", pa.int32()), ("tags", pa.list_(pa.string()))]),
        ),
    ]
)

Document = tuple[str, str, str | None]  # language, title, text


def read_documents(path: pathlib.Path) -> list[Document]:
    """Read a file of texts: `%% language | title`, and the text up to the next such line."""
    documents: list[Document] = []
    for block in path.read_text(encoding="utf-8").split("%% ")[1:]:
        head, text = block.split("\n", 1)
        language, title = head.split(" | ")
        documents.append((language, title, text.removesuffix("\n")))
    return documents


def prose() -> Iterator[Document]:
    """Each text alone, then chapters of a few of them, with paragraphs set apart in different ways."""
    texts = [
        (language, title, unicodedata.normalize("NFD", str(text)) if title.endswith("(décomposé)") else text)
        for language, title, text in read_documents(HERE / "sample" / "prose.txt")
    ]
    yield from texts
    yield "mix", "an empty page", ""
    yield "mix", "a page that was lost", None
    for size, between in ((2, "\n\n"), (3, "\n"), (5, "\r\n\r\n"), (8, "\n\n\t"), (len(texts), "\n\n* * *\n\n")):
        for start in range(0, len(texts), size):
            chapter = texts[start : start + size]
            language = chapter[0][0] if len({text[0] for text in chapter}) == 1 else "mix"
            yield (
                language,
                f"Chapter of {len(chapter)}: {chapter[0][1]}",
                between.join(str(text[2]) for text in chapter),
            )


def code() -> Iterator[Document]:
    """Each program as it is, then as other editors leave it: tabs for blanks, CR LF, blanks at the ends of lines."""
    programs = read_documents(HERE / "sample" / "code.txt")
    yield from ((language, title, f"{text}\n") for language, title, text in programs)
    yield "text", "an empty file", ""
    for language, title, text in programs:
        source = str(text)
        yield language, f"{title}, tabs", source.replace("    ", "\t")
        yield language, f"{title}, CR LF", source.replace("\n", "\r\n") + "\r\n"
        if "    " in source:
            yield language, f"{title}, blanks at line ends", source.replace("\n", "  \n")


def tables() -> dict[str, pa.Table]:
    """Build the three files of the corpus, by name."""
    built = {}
    for name, documents in (("prose", prose()), ("code", code()), ("special-tokens", special_token_documents())):
        rows = [
            {
                "id": f"{name}-{number:03}",
                "text": text,
                "language": language,
                # A null struct, an empty list and a null list are all ordinary in a nested column.
                "source": None
                if number % 29 == 28
                else {"title": title, "part": number, "tags": [[name], [name, language], [], None][number % 4]},
            }
            for number, (language, title, text) in enumerate(documents)
        ]
        built[name] = pa.Table.from_pylist(rows, schema=SCHEMA)
    return built


def tokenizer_json(texts: list[str]) -> str:
    """Train roberta's shape on the texts: a byte-level BPE, five added tokens, `<s> ... </s>` around a text."""
    alphabet = sorted(oracle.pre_tokenizers.ByteLevel.alphabet())
    trained = oracle.Tokenizer(oracle.models.BPE())
    trained.pre_tokenizer = oracle.pre_tokenizers.ByteLevel(add_prefix_space=False)
    # Roberta's first four entries come before everything else and `<mask>` after everything else.
    trainer = oracle.trainers.BpeTrainer(
        vocab_size=VOCABULARY - 1,
        min_frequency=2,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    model = json.loads(trained.to_str())["model"]
    mask = max(model["vocab"].values()) + 1
    model["vocab"]["<mask>"] = mask

    def added(token_id: int, content: str) -> dict[str, Any]:
        return {
            "id": token_id,
            "content": content,
            "single_word": False,
            "lstrip": content == "<mask>",
            "rstrip": False,
            "normalized": False,
            "special": True,
        }

    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    value = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            *(added(number, content) for number, content in enumerate(("<s>", "<pad>", "</s>", "<unk>"))),
            added(mask, "<mask>"),
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 0],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        "decoder": byte_level,
        "model": model,
    }
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    oracle.tokenizer(text)
    return text


def main() -> int:
    """Write or check; give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is committed, write nothing")
    arguments = parser.parse_args()
    built = tables()
    # Byte-level BPE learns from texts without the special tokens: they never reach the model.
    tokenizer = tokenizer_json([t for name in ("prose", "code") for t in built[name]["text"].to_pylist() if t])
    differing = []
    for name, table in built.items():
        path = SAMPLE / "corpus" / f"{name}.parquet"
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, row_group_size=ROW_GROUP_ROWS, compression="zstd")
        elif not path.exists() or not pq.read_table(path).equals(table):
            differing.append(path)
    path = SAMPLE / "tokenizer.json"
    if not arguments.check:
        path.write_text(tokenizer, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != tokenizer:
        differing.append(path)
    for path in differing:
        print(f"{path} is not what this script makes", file=sys.stderr)
    rows = {name: table.num_rows for name, table in built.items()}
    print(f"{sum(rows.values())} documents {rows}, {len(json.loads(tokenizer)['model']['vocab'])} tokens")
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
