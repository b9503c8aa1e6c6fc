"""`spark.tokenize` on a real Spark of this machine."""

import pytest

from clusters import spark_session
from tokbatch import Tokenizer, sample
from tokbatch.batch.stats import Stats
from tokbatch.errors import ConfigError, InputError
from tokbatch.frontends.hf_datasets import tokenize as tokenize_dataset

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

TEXTS = [None, "a <mask> b", "", "Hello, world!", "x\t<mask>"] * 40


@pytest.fixture(scope="module")
def spark():
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(sample.tokenizer_path())


@pytest.fixture(scope="module")
def frame(spark):
    rows = [(number, text, {"en": "x"}) for number, text in enumerate(TEXTS)]
    return spark.createDataFrame(rows, "n long, text string, extra map<string, string>").repartition(3)


def without_rows(stats):
    return Stats.total([stats])


def test_ids_schema_and_statistics(frame, tokenizer, tmp_path):
    import datasets

    from tokbatch.frontends.spark import tokenize

    tokenized, stats = tokenize(frame, tokenizer, remove_columns="text", round_trip_column="found")
    assert tokenized.columns == ["n", "extra", "input_ids", "found"]
    assert tokenized.schema["input_ids"].dataType.simpleString() == "array<int>"
    assert stats.so_far() == Stats()
    rows = sorted(tokenized.collect(), key=lambda row: row["n"])
    expected = [None if text is None else tokenizer.encode(text).ids for text in TEXTS]
    assert [row["input_ids"] for row in rows] == expected
    assert rows[1]["found"]["verdict"] == "stripped"
    assert rows[0]["found"] is None
    assert rows[0]["extra"] == {"en": "x"}
    dataset = datasets.Dataset.from_dict({"text": TEXTS})
    known = without_rows(tokenize_dataset(dataset, tokenizer).stats)
    assert stats.so_far() == known
    # Another action, and one that needs only some rows, do not count again.
    tokenized.write.parquet(str(tmp_path / "out"))
    tokenized.limit(1).collect()
    assert stats.so_far() == known
    assert sorted(frame.sparkSession.read.parquet(str(tmp_path / "out")).collect(), key=lambda r: r["n"]) == rows


def test_a_column_of_languages_and_an_older_column_of_ids(spark, tokenizer):
    from tokbatch import FromColumn
    from tokbatch.frontends.spark import tokenize

    frame = spark.createDataFrame(
        [("a", "<mask>", "old"), ("b", "<s>", "old")], "text string, language string, input_ids string"
    )
    tokenized, _ = tokenize(frame, tokenizer, prepend=[FromColumn("language")], add_special_tokens=False)
    assert tokenized.columns == ["text", "language", "input_ids"]
    assert [row["input_ids"][0] for row in tokenized.collect()] == [tokenizer.token_to_id(t) for t in ("<mask>", "<s>")]


def test_mistakes(frame, tokenizer):
    from tokbatch.frontends.spark import tokenize

    with pytest.raises(InputError, match="no column 'body'"):
        tokenize(frame, tokenizer, column="body")
    with pytest.raises(InputError, match="a column of texts expected"):
        tokenize(frame, tokenizer, column="n")
    with pytest.raises(InputError, match="no column 'm'"):
        tokenize(frame, tokenizer, remove_columns=["m"])
    with pytest.raises(ConfigError, match="unsigned"):
        tokenize(frame, tokenizer, id_type="uint16")
