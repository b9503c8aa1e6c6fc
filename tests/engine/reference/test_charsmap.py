"""Precompiled on small maps of our own; `test_normalizers.py` has it among the others, with real maps."""

import random

import pytest

import stations
from charsmaps import charsmap, precompiled
from tokbatch.engine.reference.charsmap import CharacterMap
from tokbatch.errors import EncodeError, SpecError

ENTRIES = {
    "a": "A",
    "ab": "never reached, because a is shorter",
    "é": "",
    "\u0301": "xyz",
    "\r": "",
    "\n": "NL",
    "\u0600": "P",
    "\u0903": "",
    "\u1100": "L",
    "©\ufe0f": "C",
    "☺": "s",
    "\u0915\u094d": "six bytes",
    "\u094d": "v",
}
PARTS = [
    *"aéb \r\n\0☺©ª\u0600\u0903\u0301\u200d\ufe0f\u1100\u1161\u11a8가각\u0915\u094d\u0e33",
    "\U0001f1e6",
    "\U0001f600",
]


def test_random_texts_are_changed_as_the_oracle_changes_them(oracle):
    file = stations.tokenizer_json(precompiled(charsmap(ENTRIES)))
    source = random.Random(5)

    for _ in range(1500):
        stations.check(oracle, file, "".join(source.choices(PARTS, k=source.randint(0, 9))))


def test_a_cluster_is_replaced_by_the_entry_of_its_shortest_prefix():
    character_map = CharacterMap(charsmap(ENTRIES))

    assert character_map.apply("ab") == "Ab"  # two clusters
    assert character_map.apply("a\u0903") == "A"  # one, of 4 bytes
    assert character_map.apply("a\u0903\u0903") == "A"  # one, of 7 bytes: character by character
    assert character_map.apply("a\u094d\u094d") == "Avv"


def test_a_removal_with_nothing_before_it_is_forgotten(oracle):
    file = stations.tokenizer_json(precompiled(charsmap(ENTRIES)))

    stations.check(oracle, file, "ébc")
    assert stations.our_pieces(file, "ébc") == [("bc", [(0, 1), (1, 2)])]


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "ends after 0 bytes"), (b"\x08\0\0\0abcd", "ends after 8 bytes"), (b"\0\0\0\0\xff", "not UTF-8")],
)
def test_a_broken_map_is_refused_as_in_the_oracle(oracle, data, reason):
    with pytest.raises(SpecError, match=reason):
        CharacterMap(data)
    with pytest.raises(oracle.OracleError):
        oracle.tokenizer(stations.tokenizer_json(precompiled(data)))


def test_a_map_that_leads_astray_fails_where_the_oracle_crashes(oracle):
    data = bytearray(charsmap({"a": "é", "b": "x"}))
    source = random.Random(7)
    failures = 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(source.randint(1, 3)):
            broken[source.randrange(4, 4 + 1024)] = source.randrange(256)
        file = stations.tokenizer_json(precompiled(bytes(broken)))
        for text in ("a", "b", "abc", "\0", "é"):
            stations.check(oracle, file, text)
            failures += stations.our_pieces(file, text) == stations.FAILED
    assert failures > 10


def test_an_empty_trie_fails_at_the_first_character():
    with pytest.raises(EncodeError, match="unit 0 of 0"):
        CharacterMap(b"\0\0\0\0").apply("a")
