import subprocess
import sys

import datasets
import pyarrow as pa
import pytest
from datasets.fingerprint import Hasher

from tokbatch import sample
from tokbatch.batch.token_source import FromColumn
from tokbatch.errors import ConfigError, InputError
from tokbatch.frontends.hf_datasets import map_function

pytestmark = pytest.mark.usefixtures("quiet_datasets")


def test_the_default_format(dataset, tokenizer, expected):
    function = map_function(tokenizer)
    mapped = dataset.map(function, batched=True, batch_size=7, features=function.features(dataset))
    assert mapped["input_ids"] == expected
    assert mapped.column_names == ["text", "n", "input_ids"]
    assert mapped.features["input_ids"] == datasets.List(datasets.Value("int32"))


def test_the_types_do_not_depend_on_the_first_rows(tokenizer):
    function = map_function(tokenizer)
    dataset = datasets.Dataset.from_dict({"text": [None, None, "", "a"]})
    mapped = dataset.map(function, batched=True, batch_size=1, features=function.features(dataset))
    assert mapped.features["input_ids"] == datasets.List(datasets.Value("int32"))
    arrow = dataset.with_format("arrow").map(function, batched=True, batch_size=1)
    assert arrow.features["input_ids"] == datasets.List(datasets.Value("int32"))
    assert (
        arrow.with_format(None)["input_ids"] == mapped["input_ids"] == [None, None, [0, 2], tokenizer.encode("a").ids]
    )


def test_columns_can_be_removed(dataset, tokenizer, expected):
    function = map_function(tokenizer)
    features = function.features(dataset, remove_columns="text")
    mapped = dataset.map(function, batched=True, remove_columns="text", features=features)
    assert mapped.column_names == ["n", "input_ids"]
    assert mapped["input_ids"] == expected


def test_the_arrow_format(dataset, tokenizer, expected):
    mapped = dataset.with_format("arrow").map(map_function(tokenizer), batched=True, batch_size=7)
    assert mapped.features["input_ids"] == datasets.List(datasets.Value("int32"))
    assert mapped.with_format(None)["input_ids"] == expected
    assert mapped.column_names == ["text", "n", "input_ids"]
    without = mapped.remove_columns("input_ids")
    again = without.map(map_function(tokenizer, add_special_tokens=False), batched=True).with_format(None)
    assert again["input_ids"] == [None if ids is None else ids[1:-1] for ids in expected]


@pytest.mark.parametrize("format_name", [None, "arrow"])
@pytest.mark.parametrize("options", [{}, {"id_column": "ids", "round_trip_column": "n"}], ids=["ids", "round trip"])
def test_no_column_is_overwritten(tokenizer, format_name, options):
    name, option = ("n", "round_trip_column") if options else ("input_ids", "id_column")
    dataset = datasets.Dataset.from_dict({"text": ["a"], name: [7]}).with_format(format_name)
    function = map_function(tokenizer, **options)
    for attempt in (lambda: dataset.map(function, batched=True), lambda: function.features(dataset)):
        with pytest.raises(ConfigError, match=f"{option}: there is a column '{name}' already") as caught:
            attempt()
        assert "remove" in caught.value.hint
    assert function.features(dataset, remove_columns=name)[name] is not None


@pytest.mark.parametrize("format_name", [None, "arrow"])
def test_two_processes(dataset, tokenizer, expected, format_name):
    mapped = dataset.with_format(format_name).map(map_function(tokenizer), batched=True, num_proc=2)
    assert mapped.with_format(None)["input_ids"] == expected


def test_options(dataset, tokenizer):
    function = map_function(
        str(sample.tokenizer_path()), id_column="ids", id_type="uint16", add_special_tokens=False, prepend=["<mask>"]
    )
    mapped = dataset.map(function, batched=True, features=function.features(dataset))
    assert mapped.features["ids"] == datasets.List(datasets.Value("uint16"))
    assert mapped[2]["ids"] == [tokenizer.token_to_id("<mask>")]
    by_row = map_function(tokenizer, add_special_tokens=False, append=[FromColumn("token")])
    rows = datasets.Dataset.from_dict({"text": ["", ""], "token": ["<s>", "</s>"]})
    assert rows.map(by_row, batched=True)["input_ids"] == [[0], [2]]
    with pytest.raises(ConfigError, match="<none>"):
        map_function(tokenizer, append=["<none>"])


FINGERPRINT = """
from datasets.fingerprint import Hasher
from tokbatch import sample
from tokbatch.frontends.hf_datasets import map_function
print(Hasher.hash(map_function(sample.tokenizer_path())))
"""


def test_the_fingerprint_is_the_same_everywhere_and_follows_the_options(dataset, tokenizer):
    function = map_function(tokenizer)
    before = Hasher.hash(function)
    dataset.map(function, batched=True)
    assert Hasher.hash(function) == before == Hasher.hash(map_function(sample.tokenizer_path()))
    other = subprocess.run([sys.executable, "-c", FINGERPRINT], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == before
    assert Hasher.hash(map_function(tokenizer, add_special_tokens=False)) != before
    assert Hasher.hash(map_function(tokenizer.with_options(encode_special_tokens=True))) != before


def test_what_is_no_batch_of_texts(tokenizer):
    function = map_function(tokenizer)
    with pytest.raises(InputError, match="batched=True"):
        function(["a"])
    with pytest.raises(InputError):
        function({"text": [1, 2]})
    with pytest.raises(InputError, match="no column 'text'"):
        function({"txt": ["a"]})
    with pytest.raises(InputError, match="no column of texts"):
        function({"text": ["a", 3]})
    with pytest.raises(InputError, match="no column of texts"):
        function({"text": ["\ud800"]})
    assert function(pa.table({"text": pa.array([], pa.string())})).num_rows == 0
