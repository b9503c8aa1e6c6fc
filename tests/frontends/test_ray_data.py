"""`ray_data.Tokenize`, as a plain callable and in a real Ray Data pipeline."""

import os

import pyarrow as pa
import pytest

from clusters import ray_cluster
from tokbatch import Tokenizer, sample
from tokbatch.errors import ConfigError, InputError
from tokbatch.frontends.ray_data import Tokenize

TEXTS = [None, "a <mask> b", "", "Hello, world!"] * 10


def test_a_table_by_hand(engine):
    tokenizer = Tokenizer.from_file(sample.tokenizer_path(), engine=engine)
    table = pa.table({"text": pa.chunked_array([TEXTS[:3], TEXTS[3:]]), "n": range(len(TEXTS))})
    output = Tokenize(tokenizer, remove_columns="text", append=["<mask>"], round_trip_column="found")(table)
    assert output.column_names == ["n", "input_ids", "found"]
    assert output.schema.field("input_ids").type == pa.list_(pa.int32())
    mask = tokenizer.token_to_id("<mask>")
    assert output["input_ids"].to_pylist() == [
        None if text is None else [*tokenizer.encode(text).ids, mask] for text in TEXTS
    ]
    assert output["found"][1].as_py()["lstrip_chars"] == 1
    assert Tokenize(tokenizer)(table.slice(0, 0)).column_names == ["text", "n", "input_ids"]


def test_no_column_is_overwritten():
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    table = pa.table({"text": ["a"], "input_ids": [7]})
    with pytest.raises(ConfigError, match="id_column: there is a column 'input_ids' already"):
        Tokenize(tokenizer)(table)
    output = Tokenize(tokenizer, remove_columns=["input_ids"])(table)
    assert output.to_pydict() == {"text": ["a"], "input_ids": [tokenizer.encode("a").ids]}


def test_mistakes():
    with pytest.raises(ConfigError, match="no option 'text_colum'"):
        Tokenize(sample.tokenizer_path(), text_colum="a")
    with pytest.raises(ConfigError, match="append: expected a list"):
        Tokenize(sample.tokenizer_path(), append="<mask>")
    with pytest.raises(InputError, match="batch_format"):
        Tokenize(sample.tokenizer_path())({"text": ["a"]})


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_with_two_actors():
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    with ray_cluster(cores=3) as ray:
        data = ray.data.from_arrow([pa.table({"text": TEXTS, "n": range(i, i + len(TEXTS))}) for i in (0, 100, 200)])
        options = {"tokenizer": str(sample.tokenizer_path()), "remove_columns": ["text"]}
        out = data.map_batches(Tokenize, fn_constructor_kwargs=options, batch_format="pyarrow", concurrency=2)
        rows = sorted(out.take_all(), key=lambda row: row["n"])
        assert out.schema().base_schema.field("input_ids").type == pa.list_(pa.int32())

        class Told(Tokenize):
            """Says with each row which process made it, and how many tokenizers were made there."""

            made = 0

            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                type(self).made += 1

            def __call__(self, table):
                table = super().__call__(table)
                table = table.append_column("process", pa.array([os.getpid()] * table.num_rows))
                return table.append_column("made", pa.array([self.made] * table.num_rows))

        told = data.map_batches(
            Told, fn_constructor_kwargs=options, batch_format="pyarrow", batch_size=10, concurrency=2
        ).take_all()
        assert {row["made"] for row in told} == {1}
        assert len({row["process"] for row in told}) <= 2
        assert os.getpid() not in {row["process"] for row in told}
    expected = [None if text is None else tokenizer.encode(text).ids for text in TEXTS] * 3
    assert [None if row["input_ids"] is None else list(row["input_ids"]) for row in rows] == expected
