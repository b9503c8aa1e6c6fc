"""A column of ids in polars, eager and lazy: `map_batches` hands the column over as Arrow, and takes the ids back so.

python jobs/polars_column.py [TOKENIZER.json [FILE.parquet...]]
"""

import sys

import polars as pl

from tokbatch import Tokenizer, sample


def main(arguments: list[str]) -> None:
    """Tokenize while scanning, and count by document."""
    tokenizer = Tokenizer.from_file(arguments[0] if arguments else sample.tokenizer_path())
    files = arguments[1:] or [str(path) for path in sample.corpus_paths()]

    def encode(texts: pl.Series) -> pl.Series:
        return pl.Series(tokenizer.encode_batch(texts.to_arrow()))

    def count(texts: pl.Series) -> pl.Series:
        return pl.Series(tokenizer.count_batch(texts.to_arrow()))

    frame = pl.scan_parquet(files).select(
        "id",
        pl.col("text").map_batches(encode, return_dtype=pl.List(pl.Int32)).alias("input_ids"),
        pl.col("text").map_batches(count, return_dtype=pl.Int64).alias("tokens"),
    )
    print(frame.collect_schema())
    table = frame.collect()
    print(table.sort("tokens", descending=True).head(3))
    print(f"{table['tokens'].sum():,} tokens")


if __name__ == "__main__":
    main(sys.argv[1:])
