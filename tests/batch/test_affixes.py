"""Tokens around the ids: checked before any work, and put there in one go."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batch.fake_engine import VOCAB, FakeEngine
from tokbatch.batch.affixes import TOKENS_SHOWN, Affixes, build_affixes, ids_in_column, put_around
from tokbatch.batch.token_source import FromColumn
from tokbatch.engine.columns import IdColumn
from tokbatch.errors import ConfigError, InputError


def build(prepend=(), append=(), template=None, add_special_tokens=True, engine=None):
    return build_affixes(engine or FakeEngine(), add_special_tokens, prepend, append, template or {})


def test_tokens_become_ids():
    assert build() == Affixes((), (), True)
    assert build(["en", "fr"], ["<eot>"]) == Affixes((6, 7), (8,), True)
    assert build([FromColumn("lang")], add_special_tokens=False) == Affixes((FromColumn("lang"),), (), False)


def test_all_problems_at_once():
    with pytest.raises(ConfigError) as caught:
        build(["nope", "<s>"], ["</s>", "en"], {"gone": "en", "<s>": "what"})

    assert caught.value.problems == [
        "template.gone: the tokenizer's template has no token 'gone'",
        "template.<s>: 'what' is not in the vocabulary",
        "prepend.0: 'nope' is not in the vocabulary",
        "append.0: the tokenizer's template already adds '</s>'",
    ]
    tokens, template = caught.value.hint.split("; ")
    assert tokens.startswith("its special tokens are ")
    assert template == "add_special_tokens = false leaves the template out"


def test_tokens_to_choose_from_are_named_the_nearest_first():
    with pytest.raises(ConfigError) as caught:
        build(["<eos>"])
    assert caught.value.hint == "its special tokens are '<s>', '</s>', '<mask>'"
    many = FakeEngine(special_ids=frozenset(VOCAB.values()))
    with pytest.raises(ConfigError, match=rf"'.*' and {len(VOCAB) - TOKENS_SHOWN} more$"):
        build(["none like it"], engine=many)
    with pytest.raises(ConfigError, match="the tokenizer has no special tokens"):
        build(["<eos>"], engine=FakeEngine(special_ids=frozenset()))


def test_what_the_template_adds_is_refused_only_where_it_does():
    assert build(["<s>"], ["</s>"], add_special_tokens=False) == Affixes((1,), (2,), False)
    assert build(["<s>"], engine=FakeEngine(single_template=(None,))) == Affixes((1,), (), True)
    with pytest.raises(ConfigError, match="already adds '<s>'"):
        build(append=["<s>"])


def test_other_tokens_in_the_template():
    assert build(template={"<s>": "fr"}) == Affixes((7,), (2,), False)
    assert build(["<eot>"], ["a"], {"</s>": FromColumn("lang")}) == Affixes((8, 1), (FromColumn("lang"), 10), False)
    nllb = FakeEngine(single_template=(None, 2, 6))
    assert build(template={"en": "fr"}, engine=nllb) == Affixes((), (2, 7), False)
    with pytest.raises(ConfigError, match=r"template\.<s>: the tokenizer's template has no token"):
        build(template={"<s>": "fr"}, add_special_tokens=False)
    with pytest.raises(ConfigError, match="already adds 'fr'"):
        build(["fr"], template={"<s>": "fr"})
    with pytest.raises(ConfigError, match="the text in exactly one place"):
        build(template={"<s>": "fr"}, engine=FakeEngine(single_template=(None, 1, None)))


ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1)))
AFFIX = st.integers(0, 2**31 - 1) | st.sampled_from([FromColumn("x"), FromColumn("y")])


@settings(deadline=None)
@given(ROWS, st.lists(AFFIX, max_size=3), st.lists(AFFIX, max_size=3), st.data())
def test_affixes_around_each_row(rows, before, after, data):
    columns = {
        name: data.draw(st.lists(st.integers(0, 2**31 - 1), min_size=len(rows), max_size=len(rows))) for name in "xy"
    }

    def values(affixes, row):
        return [columns[affix.column][row] if isinstance(affix, FromColumn) else affix for affix in affixes]

    arrays = {name: pa.array([0, *column], pa.int32()).slice(1) for name, column in columns.items()}
    got = put_around(IdColumn.from_lists(rows), Affixes(tuple(before), tuple(after), True), arrays)

    assert list(got) == [values(before, i) + row + values(after, i) for i, row in enumerate(rows)]


def test_list_offsets_that_do_not_start_at_zero_are_none_of_ours():
    column = IdColumn.from_lists([[1], [2, 3]])
    assert put_around(column, Affixes((), (), True), {}) is column


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_tokens_in_a_column(kind):
    values = pa.array(["fr", None, "en", "xx", "fr"], pa.string()).cast(kind)

    ids, is_none = ids_in_column(values, "lang", pa.array([0, 1, 3, 4], pa.int64()), FakeEngine())

    assert ids.to_pylist() == [7, 0, 0, 7]
    assert is_none.to_pylist() == [False, True, True, False]


def test_a_column_of_tokens_must_be_text():
    with pytest.raises(InputError, match="column 'lang': a column of texts expected"):
        ids_in_column(pa.array([1]), "lang", pa.array([0], pa.int64()), FakeEngine())
