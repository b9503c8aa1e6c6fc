"""Tokenize a Spark data frame, and gather the statistics from the executors.

python jobs/spark_frame.py [TOKENIZER.json [FILE.parquet...]]
"""

import sys

from pyspark.sql import SparkSession

from tokbatch import sample
from tokbatch.frontends.spark import tokenize


def main(arguments: list[str]) -> None:
    """Read, tokenize, count, and show the statistics."""
    tokenizer = arguments[0] if arguments else str(sample.tokenizer_path())
    files = arguments[1:] or [str(path) for path in sample.corpus_paths()]
    spark = SparkSession.builder.appName("tokbatch").getOrCreate()
    frame = spark.read.parquet(*files).select("id", "text")
    tokenized, stats = tokenize(frame, tokenizer, column="text", remove_columns=["text"])
    tokenized.printSchema()
    tokens = tokenized.selectExpr("sum(size(input_ids))").first()[0]
    print(f"{tokens:,} tokens")
    if stats is not None:
        found = stats.so_far()
        print(
            f"{found.exact_documents:,} exact, {found.stripped_documents:,} stripped of {found.documents:,} documents"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
