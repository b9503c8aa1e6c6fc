"""JSON as serde_json reads it: numbers to the last bit, nesting, repeated keys, and errors that say where."""

from __future__ import annotations

import json
import random
from types import ModuleType

import pytest

from tokbatch.errors import SpecError
from tokbatch.spec.json_text import Members, parse_float, parse_json
from tokbatch.spec.read import read_spec

NUMBERS = [
    "0",
    "-0",
    "1",
    "0.1",
    "-0.0",
    "1e0",
    "1E+2",
    "5e-324",
    "2.5e-324",
    "1e-323",
    "4.9406564584124654e-324",
    "1.7976931348623157e308",
    "123456789012345678901234567890",
    "18446744073709551615",
    "18446744073709551616",
    "184467440737095516150",
    "0.18446744073709551616",
    "1.8446744073709551616",
    "0.1234567890123456789012345678901234567890",
    "12345678901234567890123.456",
    "1e-400",
    "0e99999999999999999999",
    "1e-99999999999999999999",
    "1234567890123456789e-30",
    "0.000000000000000000000000000000000001e30",
    "9007199254740993",
    "9007199254740993.0",
    "-9223372036854775809",
    "100000000000000000000000e-320",
]


def _random_numbers(count: int) -> list[str]:
    rng = random.Random(7)
    numbers = []
    for _ in range(count):
        whole = str(rng.randrange(10 ** rng.randint(1, 22)))
        fraction = "." + "".join(rng.choices("0123456789", k=rng.randint(1, 25))) if rng.random() < 0.8 else ""
        exponent = f"e{rng.randint(-330, 280)}" if rng.random() < 0.3 else ""
        numbers.append(rng.choice(["", "-"]) + whole + fraction + exponent)
    return numbers + [repr(-rng.random() * 20) for _ in range(count)]


def test_numbers_have_the_oracles_last_bit(oracle: ModuleType) -> None:
    numbers = NUMBERS + _random_numbers(2000)
    scores = ",".join(f'["{position}",{number}]' for position, number in enumerate(numbers))
    text = f'{{"model":{{"type":"Unigram","unk_id":null,"vocab":[{scores}]}}}}'
    theirs = json.loads(oracle.tokenizer(text).to_str())["model"]["vocab"]
    ours = read_spec(text).model.vocab

    assert [score for _, score in ours] == [score for _, score in theirs]
    assert [parse_float(number) for number in numbers] == [score for _, score in theirs]
    # Else this test would not show that the rounding matters.
    assert sum(float(number) != score for number, (_, score) in zip(numbers, theirs, strict=True)) > 100


@pytest.mark.parametrize("number", ["1e309", "-1e400", "1e99999999999999999999", "9" * 400, "1.8e308"])
def test_numbers_beyond_the_doubles_are_refused_with_their_place(oracle: ModuleType, number: str) -> None:
    text = f'{{"model":{{"type":"Unigram","vocab":[["a",0],["b",{number}]]}}}}'
    with pytest.raises(oracle.OracleError):
        oracle.tokenizer(text)
    with pytest.raises(SpecError, match="out of range") as caught:
        read_spec(text)

    assert caught.value.where == "$.model.vocab[1][1]"


def test_repeated_keys_are_kept() -> None:
    value = parse_json('{"a": 1, "b": 2, "a": 3}')

    assert isinstance(value, Members)
    assert value == {"a": 3, "b": 2}
    assert value.pairs == [("a", 1), ("b", 2), ("a", 3)]
    assert value.repeated == {"a"}
    assert type(parse_json('{"a": 1}')) is dict


def test_integers_keep_64_bits_and_become_fractions_beyond() -> None:
    value = parse_json("[18446744073709551615, 18446744073709551616, -9223372036854775808, -9223372036854775809, -0]")

    assert [type(item) for item in value] == [int, float, int, float, float]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('{"a": 1\n,}', "line 2 column 2", "not JSON"),
        ("[" * 128 + "]" * 128, None, "nested more than 127 deep"),
        ("[" * 100_000, None, "nested more than 127 deep"),
        ('{"a": [0, {"b": "\\ud800"}]}', "$.a[1].b", "half of a surrogate pair"),
        ('{"a": {"\\udfff": 0}}', "$.a", "half of a surrogate pair"),
        ('{"a": [1e999]}', "$.a[0]", "the number 1e999 is out of range"),
        ("1e999", "$", "the number 1e999 is out of range"),
        ("[NaN]", None, "`NaN` is not JSON"),
    ],
)
def test_errors_say_where(text: str, where: str | None, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_json(text)

    if where is not None:
        assert caught.value.where == where


def test_127_levels_are_read() -> None:
    assert parse_json("[" * 127 + "]" * 127) is not None
