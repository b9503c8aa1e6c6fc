"""Patterns against the oracle: real ones, random ones, every code point; and that none of them takes forever."""

import contextlib
import gzip
import json
import time
from itertools import islice

import pytest
from hypothesis import example, given, settings

from pattern_strategies import pattern_texts, patterns
from tokbatch.engine.reference import pattern_source
from tokbatch.engine.reference.patterns import LiteralPattern, TreePattern, compile_pattern
from tokbatch.errors import EncodeError, SpecError, UnsupportedError
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.regex_syntax import parse
from tokbatch.spec.unicode import ALL

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI = (
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
REAL = {"gpt2": GPT2, "llama3": LLAMA3, "gpt4o": GPT4O, "kimi_k2": KIMI, "deepseek_v3": DEEPSEEK, "clip": CLIP}
REAL |= {"spaces": r"\s+", "two spaces": " {2,}", "numbers": r"\p{N}{1,3}", "falcon": "[0-9][0-9][0-9]"}


def pieces_of_oracle(oracle, regex: str, text: str) -> tuple[list, list]:
    """The pieces of Split "Isolated", and the matches alone (the empty ones are in neither)."""
    made = [
        oracle.pre_tokenizers.Split(oracle.tokenizers.Regex(regex), "isolated"),
        oracle.pre_tokenizers.Split(oracle.tokenizers.Regex(regex), "removed", invert=True),
    ]
    with oracle.guard(), oracle.quiet():
        isolated, matches = ([span for _, span in split.pre_tokenize_str(text)] for split in made)
    return isolated, matches


def pieces_of_spans(spans: list[tuple[int, int]], text: str) -> tuple[list, list]:
    pieces, matches, end_before = [], [], 0
    for start, end in [*spans, (len(text), len(text))]:
        pieces += [span for span in ((end_before, start), (start, end)) if span[0] < span[1]]
        matches += [(start, end)] if start < end else []
        end_before = end
    return pieces, matches


def check_random_pattern(oracle, regex: str, text: str) -> None:
    try:
        oracle.tokenizers.Regex(regex)
    except Exception:
        with pytest.raises(SpecError):
            compile_pattern(Pattern(regex=regex))
        return
    try:
        compiled = compile_pattern(Pattern(regex=regex))
    except UnsupportedError:
        return
    assert isinstance(compiled, TreePattern)
    spans = compiled.spans(text)
    assert pieces_of_spans(spans, text) == pieces_of_oracle(oracle, regex, text)
    assert compiled._machine.spans(text) == spans
    if compiled.covers:
        assert "".join(compiled.findall(text)) == text


@example(r"(?:a|b|ab)*?c", "abababc")
@example(r"(?:|a)+", "aab")
@example(r"(?:a??)*b", "aab")
@example(r"(?<=a|bc)\b", "a bc")
@example(r"\Ga", "aaba")
@example(r"a\Kb", "abab")
@example(r"(?i:ss)", "ßẞsSſſ")
@example(r"[\w]", "²x")
@example(r"\w", "²x")
@example(r"^", "\na\n")
@example(r"$", "\na\n")
@example(r"\Z", "a\n")
@given(patterns(), pattern_texts())
@settings(max_examples=250, deadline=None)
def test_a_random_pattern_splits_a_random_text_as_the_oracle_does(oracle, regex: str, text: str):
    check_random_pattern(oracle, regex, text)


@pytest.mark.parametrize("regex", [r"(?>a+)b|c", r"\p{L}++\d?+|\s", r"(?:ab?+|[^a])x", r"(?i:(?>st?))|[\p{Lu}-]"])
def test_where_re_has_no_atomic_groups_the_module_regex_finds_the_same(oracle, monkeypatch, regex: str):
    monkeypatch.setattr(pattern_source, "HAS_ATOMIC_GROUPS", False)
    compiled = TreePattern(parse(regex))

    assert type(compiled._python).__module__ == "_regex"
    for text in ("aab aac b", "aaé1²x SſsÉ-", "xababax\U00010400b\n"):
        assert pieces_of_spans(compiled.spans(text), text) == pieces_of_oracle(oracle, regex, text)


@pytest.mark.long
@given(patterns(), pattern_texts())
@settings(max_examples=20_000, deadline=None)
def test_many_random_patterns(oracle, regex: str, text: str):
    check_random_pattern(oracle, regex, text)


def texts_of_all_code_points(every: int) -> list[str]:
    """Each code point between letters, digits, spaces, marks and newlines, joined into some hundred texts."""
    chosen = map(chr, islice(ALL, 0, None, every))
    parts = [f"a{c}b {c}A1{c} {c}{c}\u0301e{c}'s\n{c}\u4e00 " for c in chosen]
    return ["".join(parts[at : at + 2_000]) for at in range(0, len(parts), 2_000)]


def check_on_all_code_points(oracle, regex: str, every: int) -> None:
    compiled = compile_pattern(Pattern(regex=regex))
    for text in texts_of_all_code_points(every):
        assert pieces_of_spans(compiled.spans(text), text) == pieces_of_oracle(oracle, regex, text)


@pytest.mark.parametrize("name", REAL)
def test_real_patterns_on_many_code_points(oracle, name: str):
    check_on_all_code_points(oracle, REAL[name], every=397)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", REAL)
def test_real_patterns_on_all_code_points(oracle, name: str):
    check_on_all_code_points(oracle, REAL[name], every=1)


def regexes_in(value) -> set[str]:
    if isinstance(value, dict):
        found = {value["Regex"]} if isinstance(value.get("Regex"), str) else set()
        return found.union(*(regexes_in(inner) for key, inner in value.items() if key not in ("vocab", "merges")))
    return set().union(*map(regexes_in, value)) if isinstance(value, list) else set()


@pytest.mark.long
def test_every_pattern_of_the_real_tokenizers_is_reproduced_and_quick(shared):
    found = set()
    for path in sorted((shared / "tokenizers").glob("*.json.gz")):
        with gzip.open(path) as file:
            found |= regexes_in(json.load(file))
    assert len(found) >= 10
    for regex in found:
        compiled = compile_pattern(Pattern(regex=regex))
        assert compiled._is_linear, regex
        assert compiled._python is not None, regex


def test_which_real_patterns_cover_every_text():
    covering = {name for name, regex in REAL.items() if compile_pattern(Pattern(regex=regex)).covers}

    assert covering == {"gpt2", "llama3", "gpt4o", "kimi_k2"}


@pytest.mark.parametrize("text", ["Hello  world's 123\n", "Größe 中文 ё²", ""])
def test_findall_of_a_covering_pattern_gives_the_pieces(text: str):
    compiled = compile_pattern(Pattern(regex=GPT4O))

    assert compiled.findall(text) == [text[start:end] for start, end in compiled.spans(text)]
    assert "".join(compiled.findall(text)) == text


RUNS = [" ", "a", "A", "\n", "1", "!", "é", "中", "\u0301", " a", "\n ", "Aa", "\r\n", "!\n"]


@pytest.mark.parametrize("name", REAL)
def test_real_patterns_take_time_in_proportion_to_long_runs(name: str):
    compiled = compile_pattern(Pattern(regex=REAL[name]))

    def seconds(run: str, size: int) -> float:
        text = (run * size)[:size] + "x \n"
        start = time.process_time()
        compiled.spans(text)
        return time.process_time() - start

    for run in RUNS:
        # A quadratic matcher would take minutes on the longer one.
        assert seconds(run, 200_000) < 3 + 10 * seconds(run, 50_000), run


@pytest.mark.parametrize(
    ("regex", "run"),
    [("(a+) ", "a"), ("a*b|a", "a"), ("(?=.*b)a", "a"), ("(?<=a.*)b", "ab"), (r"(\w+\s*)+:", "a "), ("a*a*$", "a")],
)
def test_hard_patterns_take_time_in_proportion_too(regex: str, run: str):
    compiled = compile_pattern(Pattern(regex=regex))

    def seconds(size: int) -> float:
        text = run * size + "c"
        start = time.process_time()
        with contextlib.suppress(EncodeError):
            compiled.spans(text)
        return time.process_time() - start

    assert seconds(8_000) < 1 + 10 * seconds(2_000)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("regex", ["a*a*a*a*c", "a*a*a*a*a*a*b|d"])
def test_a_short_text_takes_no_long_time_either(regex: str):
    """399 letters can be shared among the loops of these in some 10^11 ways and more, 20 in few."""
    compiled = compile_pattern(Pattern(regex=regex))

    assert compiled.spans("a" * 20) == []
    assert compiled._is_quick("a" * 20)
    assert not compiled._is_quick("a" * 399)
    with pytest.raises(EncodeError, match="went back"):
        compiled.spans("a" * 399)


@pytest.mark.parametrize(
    ("regex", "text"),
    [("(a+)+$", "{}b"), ("(a+)+b", "{}"), ("(a+)+b", "{}cb"), ("(a|a)+$", "{}b")],
)
def test_gives_up_where_the_oracle_gives_up(oracle, regex: str, text: str):
    compiled = compile_pattern(Pattern(regex=regex))
    outcomes = set()
    for size in range(21, 25):
        try:
            wanted = pieces_of_oracle(oracle, regex, text.format("a" * size))
        except oracle.OracleError:
            with pytest.raises(EncodeError, match="went back"):
                compiled.spans(text.format("a" * size))
            outcomes.add("gave up")
        else:
            assert pieces_of_spans(compiled.spans(text.format("a" * size)), text.format("a" * size)) == wanted
            outcomes.add("answered")
    assert outcomes == {"gave up", "answered"}


@pytest.mark.parametrize("string", ["ab", "a", ".", "(", "\\", "é", "-#&~ ", "aa"])
def test_a_string_is_searched_for_as_it_is(oracle, string: str):
    text = "aaab.(\\é-#&~ aba"
    split = oracle.pre_tokenizers.Split(string, "removed", invert=True)
    compiled = compile_pattern(Pattern(string=string))

    assert isinstance(compiled, LiteralPattern)
    assert compiled.spans(text) == [span for _, span in split.pre_tokenize_str(text)]


def test_the_empty_string_and_the_empty_pattern_are_found_everywhere():
    assert compile_pattern(Pattern(string="")).spans("ab") == [(0, 0), (1, 1), (2, 2)]
    assert compile_pattern(Pattern(regex="")).spans("ab") == [(0, 0), (1, 1), (2, 2)]


def test_an_empty_match_right_after_a_match_does_not_count():
    assert compile_pattern(Pattern(regex="a*")).spans("baac") == [(0, 0), (1, 3), (4, 4)]


def test_a_program_that_grows_too_large_is_refused_with_its_place():
    with pytest.raises(UnsupportedError) as caught:
        compile_pattern(Pattern(regex=r"(?:(?:a\Kb{,1000}){1000}c){1000}"), "pre_tokenizer.pattern")
    assert caught.value.where == "pre_tokenizer.pattern"
