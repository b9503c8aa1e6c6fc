"""`spark.tokenize` on a real Spark of this machine, by a session and by Spark Connect."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from clusters import need_spark, path_for_workers, spark_session
from tokbatch import sample
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
    options = {"prepend": [FromColumn("language")], "add_special_tokens": False}
    with pytest.raises(ConfigError, match="id_column: there is a column 'input_ids' already"):
        tokenize(frame, tokenizer, **options)
    tokenized, _ = tokenize(frame, tokenizer, remove_columns="input_ids", **options)
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


CONNECTED = """
import json, sys
from pyspark.sql import SparkSession
from tokbatch import TokbatchError
from tokbatch.frontends.spark import tokenize
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.memory", "512m").getOrCreate()
frame = spark.createDataFrame(list(enumerate(json.loads(sys.argv[2]))), "n long, text string").repartition(3)
tokenized, stats = tokenize(frame, sys.argv[1], remove_columns="text")
try:
    tokenize(frame, sys.argv[1], column="body")
except TokbatchError as error:
    refused = str(error)
rows = sorted(tokenized.collect(), key=lambda row: row["n"])
print(json.dumps([type(spark).__module__, tokenized.columns, [row["input_ids"] for row in rows], stats, refused]))
spark.stop()
"""


def test_spark_connect_gives_the_ids_and_no_statistics(tokenizer):
    """In an interpreter of its own: a process has the one kind of session or the other."""
    need_spark()
    for name in ("grpc", "grpc_status", "google.protobuf"):
        if not importlib.util.find_spec(name.split(".")[0]):
            pytest.skip(f"{name} is not installed: pip install 'pyspark[connect]'")
    variables = {"PYTHONPATH": path_for_workers(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONNECTED, sample.tokenizer_path(), json.dumps(TEXTS)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    module, columns, ids, stats, refused = json.loads(done.stdout.splitlines()[-1])
    assert module == "pyspark.sql.connect.session"
    assert columns == ["n", "input_ids"]
    assert ids == [None if text is None else tokenizer.encode(text).ids for text in TEXTS]
    assert stats is None
    assert "no column 'body'" in refused
