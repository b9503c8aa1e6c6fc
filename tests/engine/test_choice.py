"""Which engine "auto" is, and what is said where it is not the native one."""

import pickle
import warnings

import pyarrow as pa
import pytest

import tokbatch as tb
from corpora import write_config
from tokbatch import sample
from tokbatch.batch.transform import Transform
from tokbatch.engine import build_engine, engine_told, native
from tokbatch.engine.columns import IdColumn
from tokbatch.errors import ConfigError, EngineUnavailableError, UnsupportedError, VerifyError
from tokbatch.job import load_config
from tokbatch.job.prepare import build_transform, load_tokenizer
from tokbatch.spec.read import load_spec

needs_native = pytest.mark.skipif(native.why_unavailable() is not None, reason="there is no native engine")
UNSUPPORTED = UnsupportedError("too odd", where="$.model", code="native-unsupported")


def load(engine="auto"):
    return tb.Tokenizer.from_file(sample.tokenizer_path(), engine=engine)


@pytest.fixture
def missing(monkeypatch):
    """The native engine is not installed."""
    monkeypatch.setattr(native, "_why_not", "no such module")


@pytest.fixture
def refusing(monkeypatch):
    """The native engine is there, and refuses every tokenizer."""
    monkeypatch.setattr(native, "_why_not", None)
    monkeypatch.setattr(native.NativeEngine, "__init__", raising(UNSUPPORTED))


def raising(error):
    def fail(*_):
        raise error

    return fail


@needs_native
def test_auto_is_native_and_quiet():
    tok = load()
    assert (tok.engine_name, tok.why_reference) == ("native", None)


@pytest.mark.filterwarnings("error")
def test_the_reference_engine_that_was_asked_for_is_no_warning():
    tok = load("reference")
    assert (tok.engine_name, tok.why_reference) == ("reference", None)


def test_a_missing_engine_is_a_warning(missing):
    with pytest.warns(tb.EngineWarning, match="^the native engine is not installed: no such module; the reference"):
        tok = load()
    assert (tok.engine_name, tok.why_reference) == ("reference", "the native engine is not installed: no such module")
    assert tok.encode_batch(["a"]).to_pylist() == load("reference").encode_batch(["a"]).to_pylist()
    with pytest.raises(EngineUnavailableError, match="not installed: no such module"):
        load("native")


def test_a_refusal_is_a_warning(refusing):
    with pytest.warns(tb.EngineWarning, match=r"^the native engine refuses this tokenizer: \$.model: too odd; the"):
        tok = load()
    assert tok.engine_name == "reference"
    assert tok.why_reference == "the native engine refuses this tokenizer: $.model: too odd"
    with pytest.raises(UnsupportedError, match="too odd"):
        load("native")


def test_only_what_the_other_engine_can_do_falls_to_it(refusing, monkeypatch):
    for error in (UnsupportedError("dropout"), tb.SpecError("a broken file"), RuntimeError("a fault")):
        monkeypatch.setattr(native.NativeEngine, "__init__", raising(error))
        with pytest.raises(type(error), match=str(error)):
            load()


def test_the_warning_comes_once_and_not_once_a_batch(missing):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            tok = pickle.loads(pickle.dumps(load()))
            tok.encode_batch(["a"])
            tok.encode_batch(["b"])
    assert [warning.category for warning in caught] == [tb.EngineWarning]


@pytest.mark.filterwarnings("error")
def test_callers_that_say_it_themselves(missing):
    with engine_told():
        assert build_engine(load_spec(sample.tokenizer_path())).name == "reference"


def test_a_choice_can_be_kept(missing, monkeypatch):
    """A job chooses once: its workers do not find another engine than the manifest names."""
    with engine_told():
        tok = load()
    kept = tok.with_options(engine=tok.engine_name)
    assert kept.engine is tok.engine
    assert kept.why_reference == tok.why_reference
    assert kept.with_options(engine="reference") is kept
    monkeypatch.undo()
    assert pickle.loads(pickle.dumps(kept)).engine_name == "reference"


def test_no_such_engine():
    with pytest.raises(ConfigError, match="'fast' is no engine"):
        load("fast")


# -- the crosscheck: the native engine against the reference engine ---------------------------------------------------


class OffByOne:
    """The native engine, with the last id of the one text "b" wrong."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def encode_batch(self, texts, *arguments, **named):
        lists = list(self._engine.encode_batch(texts, *arguments, **named))
        for ids, text in zip(lists, texts, strict=True):
            ids[-1] += text == "b"
        return IdColumn.from_lists(lists)


@needs_native
def test_the_crosscheck_catches_a_wrong_engine(tmp_path):
    config = load_config(write_config(tmp_path, check__crosscheck=1.0))
    tokenizer = load_tokenizer(config)
    assert tokenizer.engine_name == "native"
    texts = pa.record_batch({"text": ["a", None, "b", "c"]})
    transform = build_transform(config, tokenizer)
    assert (transform.engine.name, transform.second_engine.name) == ("native", "reference")
    assert transform.transform(texts)[1].crosschecked_documents == 3

    tokenizer.engine = OffByOne(tokenizer.engine)
    wrong = Transform(transform.options, tokenizer, tokenizer.with_options(engine="reference"))
    with pytest.raises(VerifyError, match=r"the native engine gives .* and the reference engine") as caught:
        wrong.transform(texts, first_row=40)
    assert caught.value.where == "row 42"


def test_a_crosscheck_of_the_reference_engine_with_itself_is_refused(tmp_path, missing):
    for engine, why in (("reference", ""), ("auto", " (the native engine is not installed: no such module)")):
        config = load_config(write_config(tmp_path, tokenizer__engine=engine, check__crosscheck=0.1))
        with engine_told():
            tokenizer = load_tokenizer(config)
        with pytest.raises(ConfigError) as caught:
            build_transform(config, tokenizer)
        assert caught.value.where == "check.crosscheck"
        assert caught.value.message.endswith(f"it cannot fail{why}")
        assert caught.value.hint
