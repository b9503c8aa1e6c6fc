"""Sets of code points, the files of tables, and the tables held against the oracle."""

import pathlib
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokbatch.spec import unicode
from tokbatch.spec.unicode import ALL, EMPTY, CodePointSet
from tokbatch.spec.unicode.tables import Tables, load_tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
EDGES = [0, 5, 0x7F, 0xD7F8, 0xD800, 0xDFFA, 0xE000, 0x10FFF0]
SETS = st.lists(st.tuples(st.sampled_from(EDGES), st.integers(0, 9), st.integers(0, 6))).map(
    lambda parts: CodePointSet.from_ranges((edge + shift, edge + shift + size) for edge, shift, size in parts)
)


@given(SETS, SETS)
def test_sets_of_code_points_are_sets(one: CodePointSet, other: CodePointSet):
    assert set(one | other) == set(one) | set(other)
    assert set(one & other) == set(one) & set(other)
    assert set(one - other) == set(one) - set(other)
    assert len(one) == len(set(one))
    members = set(one)
    assert all((code in one) == (code in members) for code in range(0xD7F0, 0xE010))


@given(SETS)
def test_equal_sets_are_equal_however_they_were_made(one: CodePointSet):
    assert CodePointSet.from_ranges((code, code) for code in reversed(list(one))) == one
    assert CodePointSet.union([one, one, EMPTY]) == one
    assert ~~one == one


@given(SETS)
def test_a_complement_has_all_other_scalar_values_and_no_surrogate(one: CodePointSet):
    rest = ~one

    assert len(one) + len(rest) == len(ALL) == 1_112_064
    assert not one & rest
    assert not any(code in rest for code in range(0xD800, 0xE000))


@given(st.dictionaries(st.integers(0, 0xD7FF), st.text(min_size=1, max_size=3)), SETS)
def test_tables_come_back_as_they_were_written(mapping: dict[int, str], members: CodePointSet):
    tables = Tables(facts={"a": 1})
    tables.put_mapping("mapping", mapping)
    tables.put_set("set", members)

    again = Tables.from_bytes(tables.to_bytes())

    assert (again.mapping_named("mapping"), again.set_named("set"), again.facts) == (mapping, members, {"a": 1})
    assert again.to_bytes() == tables.to_bytes()


@pytest.mark.parametrize("name", ["oniguruma", "rust", "normalization", "graphemes"])
def test_tables_name_the_oracle_they_come_from(name: str, oracle):
    assert load_tables(name).facts["tokenizers"] == oracle.VERSION


def test_names_of_properties_are_read_as_oniguruma_reads_them():
    assert unicode.oniguruma_class("Uppercase_Letter") == unicode.oniguruma_class("u p-percase letter")
    assert unicode.oniguruma_class("Lu") == unicode.oniguruma_class("LU")
    assert unicode.oniguruma_class("posix:alpha") != unicode.oniguruma_class("L")
    assert unicode.oniguruma_class("Klingon") is None


def test_the_general_categories_share_out_all_code_points():
    names = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()  # noqa: SIM905
    members = [unicode.oniguruma_class(name) for name in names]

    assert sum(map(len, members)) == len(ALL)
    assert CodePointSet.union(members) == ALL


def test_the_two_word_classes_of_oniguruma_differ_by_the_superscripts_and_fractions_of_latin_1():
    alone, bracketed = unicode.oniguruma_class("escape:w"), unicode.oniguruma_class("bracket:w")

    assert "".join(map(chr, alone - bracketed)) == "²³¹¼½¾"
    assert not bracketed - alone


def test_every_set_that_is_described_is_there():
    assert all(unicode.set_named(name) for name in unicode.SETS)


def test_folding_is_an_equivalence():
    peers = unicode.fold_peers()

    assert all(peers[ord(peer)] == group for group in peers.values() for peer in group)
    assert all(chr(code) in group for code, group in peers.items())
    assert unicode.fold_sequences()[0xDF] == "ss"


def test_compositions_are_decompositions_read_backwards():
    full = unicode.decomposition(compatible=False)
    for pair, composite in unicode.composition().items():
        assert "".join(full.get(ord(part), part) for part in pair) == full[ord(composite)]


def test_whitespace_is_the_same_for_the_regex_crate_and_for_rust():
    assert unicode.rust_regex_class("s") == unicode.set_named("whitespace")


def test_scripts_are_disjoint_and_ascending():
    ranges = unicode.script_ranges()

    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert {script for first, last, script in ranges if first <= ord("か") <= last} == {"Han"}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_tables_are_what_the_oracle_says():
    script = ROOT / "scripts" / "make_unicode_tables.py"
    answer = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count(" 0 differ") == 4
