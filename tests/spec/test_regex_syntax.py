"""What the parser takes, what it refuses and by which name, and what it makes of the odd corners of the syntax."""

# ruff: noqa: SIM905 - lists of patterns are easier to read without quotes

import pytest

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec.regex_syntax import parse
from tokbatch.spec.regex_tree import Alternation, Atomic, Repeat, Sequence, Set, maximum_length, minimum_length
from tokbatch.spec.unicode import ALL, CodePointSet

ACCEPTED = r"""
a|b a{,3} a{3}+ a{3}? a{3,2} a{3,2}? a{,} a{ a{1 {a a** a*+ a*+? a*?+ (?:a*)+ (^)* (?:^a)* | a||b (|a) () ] } a] a}
[]a] [^]] [a-] [-a] [a-c-e] [a-c--e] [--x] [!--] [a-[b]] [[b]-a] [a&&b] [a&&] [&&a] [a&&&b] [[:alpha:]] [[:^alpha:]]
[[:a]] [[:alpha]] [:alpha:] [\b] [\x41-\x43] [\xe3\x81\x82] [\101] [\u0041] [\p{^L}] [\pL] [\p] [\cA] [\M-A] [\q] [\R]
\pL \p{l_u} \P{^Lu} \x \x4 \x41 \x{} \x{41} \u \u0041 \uFFFF \o{101} \0 \012 \18 \k \g \cA \C-A \M-A \a \e \h
(?i)a (?i-m:a) (?x)a (?W)\w (?:) (?#c) (?#a\)b) (?=a) (?!a) (?>a) (?<=a) (?<!a) (?<a>b) (?'a'b) (?i) (?-) (?i)|a
(?<=a*) (?<=a|bc) (?<=a+b) (?<!(?:a)) (?<=(a)) (?<=(?<=a)b) (?<!(?<=a)b) (?<!(?<!a)b) (?<=a$) (?<=^a) (?<=\ba)
a{100000} a{0} (?:){3} \Q [\]] [a-z-\d] [\d-] \- \é [ab][^c]
""".split()
REFUSED = r"""
{2} *a a|* + ? ^* (?:^)* (?:a|^)* (?=a)* \b+ \K* [] [^] [a-\d] [\d-a] [[:foo:]] [[:a] [b-a] [ [a [\ [\u41] \p{ \p{L
\p{Foo} \x{41 \u12 \c \C \CA \M \ (?s)a (?u)a (? (?) (?: (?:a a) (a (?#c (?<a (?<1>b) (?P<a>b) (?R) (?|a) (?@a) (?i
(?<!(a)) (?<=(?=a)) (?<=(?!a)) (?<=(?<!a)b) (?<=a\z) (?<=a\Z) a{100001} a{0,100001} a{99999999999} [\p{}]
""".split()
UNSUPPORTED = {
    r"(a)\1": "backreference",
    r"(?<n>a)\k<n>": "backreference",
    r"(?<n>a)\g<n>": "call of a group",
    r"(a)(?(1)b|c)": "condition",
    r"(?{x})": "callout",
    r"(?~a)": "absent operator",
    r"\X": "text segments",
    r"a\y": "text segments",
    r"(?=\Ka)": r"\K in a look-around",
    r"(?L)a": "option (?L)",
    r"(?y{w})a": "option (?y)",
    r"(?<=\R)": "look-behind",
    r"(?<=a?+)b": "look-behind",
    r"(?<!(?<!a?))": "negative look-behind",
    r"(?:^a*){2}": "a count of something that can be empty",
    r"\ud800": "U+D800",
    r"(?P:\p{Alpha})": "option (?P)",
    "(" * 200 + ")" * 200: "nested more than",
    "[" * 200 + "a" + "]" * 200: "nested more than",
    "a" + "{2,3}" * 200: "quantifiers",
}


def accepts(oracle, pattern: str) -> bool:
    try:
        oracle.tokenizers.Regex(pattern)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_accepts_what_the_oracle_accepts(oracle, pattern: str):
    assert accepts(oracle, pattern)
    assert parse(pattern) is not None


@pytest.mark.parametrize("pattern", REFUSED)
def test_refuses_what_the_oracle_refuses(oracle, pattern: str):
    assert not accepts(oracle, pattern)
    with pytest.raises(SpecError) as caught:
        parse(pattern, "pre_tokenizer.pattern")
    assert not isinstance(caught.value, UnsupportedError)
    assert caught.value.where == "pre_tokenizer.pattern"


@pytest.mark.parametrize(("pattern", "name"), UNSUPPORTED.items(), ids=lambda value: value[:20])
def test_names_what_it_does_not_reproduce(oracle, pattern: str, name: str):
    with pytest.raises(UnsupportedError) as caught:
        parse(pattern, "normalizer.pattern")
    assert name in str(caught.value)
    assert caught.value.where == "normalizer.pattern"


def characters(pattern: str) -> str:
    tree = parse(pattern)
    assert isinstance(tree, Set)
    return "".join(map(chr, tree.members))


@pytest.mark.parametrize(
    ("pattern", "members"),
    [
        ("[a-c-e]", "-abce"),
        ("[a-c--/]", "-./abc"),
        ("[]a]", "]a"),
        ("[^\\x{0}-a\\x{c}-\\x{10ffff}]", ""),
        ("[a-z&&[^b-y]]", "az"),
        ("[a-[b]]", "b"),  # Oniguruma loses what stands before the nested class
        ("[a&&]", ""),
        ("[&&a]", ""),
        ("[a&&&b]", ""),
        ("(?i:[k])", "Kk\u212a"),
        ("(?i:s)", "Ss\u017f"),
        ("\\xe3\\x81\\x82", "あ"),
        ("\\h", "0123456789ABCDEFabcdef"),
        ("(?D:\\d)", "0123456789"),
        ("\\101", "A"),
        ("\\cA", "\x01"),
    ],
)
def test_classes(pattern: str, members: str):
    assert characters(pattern) == "".join(sorted(members))


def test_a_negated_class_folds_before_it_negates():
    assert parse("(?i:[^k])") == Set(~CodePointSet.from_characters("Kk\u212a"))


def test_the_dot_leaves_out_the_newline_only():
    assert parse(".") == Set(ALL - CodePointSet.from_characters("\n"))
    assert parse("(?m:.)") == Set(ALL)


def test_folding_takes_the_longest_sequence_from_the_left():
    tree = parse("(?i:sst)")

    assert isinstance(tree, Sequence)
    assert isinstance(tree.parts[0], Alternation)  # ss or ß or ẞ
    assert len(tree.parts) == 2


def test_a_quantifier_takes_the_last_character_of_a_string_and_all_of_a_group():
    assert parse("ab+") == Sequence((parse("a"), Repeat(parse("b"), 1, None, True)))
    assert parse("(?:ab)+") == Repeat(parse("ab"), 1, None, True)


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        ("a**", "a*"),
        ("(?:a+)?", "a*"),
        ("(?:a?)+", "a*"),
        ("a{2}{3}", "a{6}"),
        ("(?:a*){2,3}", "(?:a*){2,2}"),
        ("a{2}?", "(?:a{2})?"),
        ("a{,3}", "a{0,3}"),
        ("a{1}*", "a*"),
        ("a{3,2}", "(?>a{2,3})"),
        ("a*+", "(?>a*)"),
        ("(?:b|(?i)k|s)", "(?:b|(?i:k|s))"),
        ("(?x: a b # c\n c)", "abc"),
        ("(?<n>a)", "a"),
    ],
)
def test_spellings_of_the_same(pattern: str, same: str):
    assert parse(pattern) == parse(same)


def test_lengths():
    tree = parse(r"(?:ab|c{2,5})?\R(?=long)")

    assert (minimum_length(tree), maximum_length(tree)) == (1, 7)
    assert maximum_length(parse("a+")) is None
    assert isinstance(parse(r"\R"), Atomic)


def test_a_long_pattern_is_no_problem():
    assert minimum_length(parse("ab" * 20_000)) == 40_000
