"""A tokenizer whose tables were in the cache is the one built anew, and what is no sound file is never used."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
import pytest

import tokbatch as tb
from sections import FOLDER, NAMES, PADDING, TRUNCATION
from tokbatch.engine import native, table_cache
from tokbatch.spec import Padding, Truncation, lazy
from tokbatch.spec.describe import describe

pytestmark = pytest.mark.skipif(native.why_unavailable() is not None, reason="no native engine")

TEXTS = ["", " ", "the lower <mask> é中😀", "  [MASK] a\n\nb's  low 12345", "<s>a</s> \u3000 <0x41>▁##er" * 20]
HEADER = 128


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of the cache, empty, for tokenizers of any size."""
    monkeypatch.setenv(table_cache.SETTING, str(tmp_path / "cache"))
    monkeypatch.setattr(table_cache, "LEAST_BYTES", 0)
    return tmp_path / "cache" / "tables"


def text_of(name: str, **sections: Any) -> str:
    return json.dumps(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) | sections)


def load(text: str | bytes, **options: Any) -> tb.Tokenizer:
    return tb.Tokenizer.from_json(text, engine="native", **options)


def outcome(call: Any) -> Any:
    """Give what comes out, an error as a value."""
    try:
        return call()
    except tb.TokbatchError as error:
        return error.to_dict()


def all_that_shows(tok: tb.Tokenizer) -> dict[str, Any]:
    """Give what can be seen of a tokenizer from outside; the spec last, since asking for it may change what is held."""
    ids = outcome(lambda: tok.encode_batch(TEXTS))
    given = pa.array([[*range(0, 60, 3)], [2**31 - 1, 5], []], pa.list_(pa.int32()))
    return {
        "digest": tok.digest,
        "pickle": pickle.dumps(tok),
        "repr": repr(tok),
        "sizes": (tok.vocab_size, tok.engine.max_id, tok.engine.unk_id, tok.engine.single_template),
        "classes of ids": (tok.engine.special_ids, tok.engine.byte_token_ids),
        "ids": ids,
        "plain ids": outcome(lambda: tok.encode_batch(TEXTS, add_special_tokens=False)),
        "encodings": [outcome(lambda text=text: tok.encode(text)) for text in TEXTS],
        "pairs": [outcome(lambda text=text: tok.encode(text, "low er")) for text in TEXTS],
        "texts": [outcome(lambda skip=skip: tok.decode_batch(given, skip).to_pylist()) for skip in (True, False)],
        "verdicts": outcome(lambda: tok.verify_batch(TEXTS, ids).to_pylist()) if isinstance(ids, pa.Array) else ids,
        "stages": [outcome(lambda text=text: tok.engine.trace(text, True)) for text in TEXTS],
        "tokens": [tok.id_to_token(token_id) for token_id in range(tok.engine.max_id + 2)],
        "options": (tok.engine.truncation, tok.engine.padding),
        "facts": describe(tok.spec),
        "spec": tok.spec,
        "order": list(tok.spec.model.vocab),
    }


def assert_it_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("the text of the file is read")

    monkeypatch.setattr("tokbatch.tokenizer.read_spec", refuse)


@pytest.mark.parametrize("sections", [{}, {"truncation": TRUNCATION, "padding": PADDING}], ids=["plain", "cut"])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_shows_that_tables_were_in_the_cache(cache, monkeypatch, name, sections):
    text = text_of(name, **sections)
    monkeypatch.setenv(table_cache.SETTING, "off")
    expected = all_that_shows(load(text))
    monkeypatch.setenv(table_cache.SETTING, str(cache.parent))
    first = load(text)
    (file,) = cache.iterdir()
    written = file.read_bytes()
    assert_it_reads_nothing(monkeypatch)

    assert all_that_shows(first) == expected
    assert all_that_shows(load(text)) == expected
    assert all_that_shows(pickle.loads(expected["pickle"])) == expected
    assert file.read_bytes() == written
    assert list(cache.iterdir()) == [file]


@pytest.mark.parametrize("name", NAMES)
def test_other_options_share_the_tables(cache, monkeypatch, name):
    text = text_of(name, truncation=TRUNCATION)
    options: list[dict[str, Any]] = [
        {"truncation": None},
        {"truncation": Truncation(4), "padding": Padding(9, "Right", None, 0, 0, "a")},
        {"encode_special_tokens": True},
    ]
    fresh = load(text)
    expected = [all_that_shows(fresh.with_options(**changes)) for changes in options]
    assert_it_reads_nothing(monkeypatch)

    assert [all_that_shows(load(text).with_options(**changes)) for changes in options] == expected
    assert all_that_shows(load(text, encode_special_tokens=True)) == expected[2]
    assert [all_that_shows(pickle.loads(shown["pickle"])) for shown in expected] == expected
    assert all_that_shows(load(text).with_options(truncation=None).with_options(**options[1])) == expected[1]
    assert (
        load(text).with_options(truncation=None).with_options(truncation=fresh.spec.truncation).digest == fresh.digest
    )
    assert len(list(cache.iterdir())) == 1


def test_a_spec_and_a_file_are_the_same_to_the_engine(cache):
    spec = load(text_of("llama")).spec
    first, second = tb.Tokenizer(spec, "native"), tb.Tokenizer(spec, "native")

    assert all_that_shows(first) == all_that_shows(second)
    assert len(list(cache.iterdir())) == 2  # the one of the text, and the one of the spec


def test_the_spec_can_be_had_when_the_file_is_gone(cache, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(text_of("unigram"), encoding="utf-8")
    spec = tb.Tokenizer.from_file(path, engine="native").spec
    tok = tb.Tokenizer.from_file(path, engine="native")
    path.write_text("{}", encoding="utf-8")
    for file in cache.iterdir():
        file.unlink()

    assert tok.spec == spec
    assert (
        tok.encode_batch(["a low"]).to_pylist() == tb.Tokenizer(spec, "reference").encode_batch(["a low"]).to_pylist()
    )


def test_a_file_that_changes_while_it_is_read_is_kept_as_what_was_read(cache, tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.json"
    path.write_text(text_of("llama"), encoding="utf-8")
    monkeypatch.setattr("tokbatch.tokenizer.load_text", lambda path: text_of("unigram").encode())
    changed = tb.Tokenizer.from_file(path, engine="native")

    assert changed.spec == load(text_of("unigram")).spec
    assert len(list(cache.iterdir())) == 1
    monkeypatch.undo()
    monkeypatch.setenv(table_cache.SETTING, str(cache.parent))
    assert tb.Tokenizer.from_file(path, engine="native").digest == load(text_of("llama")).digest != changed.digest


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_a_pipe_is_read_once(cache, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    code = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "pipe.json"], stdin=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        writer.stdin.write(text_of("llama"))
        writer.stdin.close()
        tok = tb.Tokenizer.from_file(tmp_path / "pipe.json", engine="native")

    assert pickle.dumps(tok) == pickle.dumps(load(text_of("llama")))


def sections_of(data: bytes) -> list[tuple[int, int]]:
    """Give start and end of all tables and documents, the directory too."""
    directory, tables, documents = struct.unpack_from("=QII", data, 72)
    places = [struct.unpack_from("=QQ", data, directory + 16 * number) for number in range(tables + documents)]
    return [(0, HEADER), *places, (directory, directory + 16 * len(places))]


@pytest.mark.parametrize("name", ["byte_level_bpe", "llama", "unigram", "bert"])
def test_a_flipped_bit_in_any_part_is_noticed_and_the_file_made_again(cache, name):
    text = text_of(name)
    expected = all_that_shows(load(text))
    (file,) = cache.iterdir()
    good = file.read_bytes()
    parts = [(start, end) for start, end in sections_of(good) if start < end]
    assert len(parts) >= 20
    for start, end in parts:
        for place, bit in ((start, 0), ((start + end) // 2, 3), (end - 1, 7)):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            file.write_bytes(bad)
            tok = load(text)
            assert file.read_bytes() == good, (place, bit)
            assert tok.encode_batch(TEXTS).equals(expected["ids"])
            assert (tok.digest, tok.spec) == (expected["digest"], expected["spec"])


def other_version(data: bytes, at: int, value: bytes) -> bytes:
    changed = bytearray(data)
    changed[at : at + len(value)] = value
    return bytes(changed)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: b"",
        lambda good: good[:HEADER],
        lambda good: good[: HEADER - 1],
        lambda good: good[: len(good) // 2],
        lambda good: good[:-1],
        lambda good: good + b"\0",
        lambda good: good + good,
        lambda good: bytes(len(good)),
        lambda good: b"\x80\x04K\x01." + good[5:],  # a pickle is not even looked at
        lambda good: text_of("llama").encode(),
        lambda good: other_version(good, 8, struct.pack(">I" if sys.byteorder == "little" else "<I", 0x01020304)),
        lambda good: other_version(good, 12, struct.pack("=I", 2)),
        lambda good: other_version(good, 16, b"0123456789abcdef"),
        lambda good: other_version(good, 32, bytes(32)),
    ],
    ids=[
        "empty",
        "header",
        "half a header",
        "half",
        "one byte less",
        "one more",
        "twice",
        "zeros",
        "pickle",
        "json",
        "other byte order",
        "other format",
        "other sources",
        "other key",
    ],
)
def test_what_is_no_such_file_is_noticed_and_made_again(cache, spoil, caplog):
    text = text_of("byte_level_bpe")
    expected = all_that_shows(load(text))
    (file,) = cache.iterdir()
    good = file.read_bytes()
    file.write_bytes(spoil(good))

    with caplog.at_level(logging.DEBUG):
        tok = load(text)

    assert "not the file of tables that is wanted" in caplog.text
    assert all_that_shows(tok) == expected
    assert file.read_bytes() == good


def test_the_file_of_another_tokenizer_is_noticed(cache):
    load(text_of("llama"))
    (other,) = cache.iterdir()
    text = text_of("unigram")
    expected = all_that_shows(load(text))
    (file,) = set(cache.iterdir()) - {other}
    file.write_bytes(other.read_bytes())

    assert all_that_shows(load(text)) == expected


def test_a_version_has_files_of_its_own(cache, monkeypatch):
    text = text_of("llama")
    load(text)
    before = set(cache.iterdir())
    monkeypatch.setattr(table_cache, "__version__", "0.0.0")
    load(text)

    assert len(set(cache.iterdir()) - before) == 1


def test_a_folder_in_the_place_of_a_file_is_no_obstacle(cache):
    text = text_of("llama")
    expected = all_that_shows(load(text))
    (file,) = cache.iterdir()
    file.unlink()
    file.mkdir()

    assert all_that_shows(load(text)) == expected
    assert list(cache.iterdir()) == [file]


@pytest.mark.parametrize("why", ["a file", "not writable", "disk full", "others can write", "off", "no home"])
def test_it_works_without_a_cache(cache, monkeypatch, caplog, why):
    text = text_of("llama")
    expected = load(text).encode_batch(TEXTS)
    for file in cache.iterdir():
        file.unlink()
    if why == "a file":
        cache.rmdir()
        cache.write_bytes(b"")
    elif why == "not writable":
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    elif why == "disk full":

        def full(file: int, data: Any) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
    elif why == "others can write":
        cache.chmod(0o777)
    elif why == "off":
        monkeypatch.setenv(table_cache.SETTING, "Off")
    else:
        monkeypatch.delenv(table_cache.SETTING)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

        def homeless() -> pathlib.Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(pathlib.Path, "home", homeless)

    with caplog.at_level(logging.DEBUG, "tokbatch"):
        assert load(text).encode_batch(TEXTS).equals(expected)
        assert load(text).encode_batch(TEXTS).equals(expected)

    assert all(record.levelno == logging.DEBUG for record in caplog.records)
    assert caplog.records or why in ("off", "not writable")
    assert cache.is_file() or not list(cache.iterdir())


def test_files_are_their_users_alone(cache):
    load(text_of("llama"))
    (file,) = cache.iterdir()

    assert (cache.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_is_refused_is_refused_again_and_leaves_nothing(cache):
    broken = json.loads(text_of("byte_level_bpe"))
    broken["model"]["merges"].append(["nothing", "there"])
    refused = json.loads(text_of("byte_level_bpe"))
    refused["model"]["dropout"] = 0.5
    gone = json.loads(text_of("bert"))
    gone["normalizer"] = {"type": "Replace", "pattern": {"String": "x"}, "content": ""}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    gone["added_tokens"] = [{"id": 99999, "content": "x", "normalized": True, **flags}]

    for value in (broken, refused, gone):
        errors = [outcome(lambda value=value: load(json.dumps(value))) for _ in range(2)]
        assert isinstance(errors[0], dict)
        assert errors[0] == errors[1]
    assert not cache.exists() or not list(cache.iterdir())


def test_the_reference_engine_has_no_use_for_it(cache):
    tb.Tokenizer.from_json(text_of("llama"), engine="reference")

    assert not cache.exists()


def test_small_tokenizers_are_not_kept(cache, monkeypatch):
    monkeypatch.setattr(table_cache, "LEAST_BYTES", 1 << 20)
    load(text_of("llama"))

    assert not cache.exists()


def test_processes_may_write_at_once(cache, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(text_of("llama"), encoding="utf-8")
    code = (
        "import sys, tokbatch as tb\n"
        "from tokbatch.engine import table_cache\n"
        "table_cache.LEAST_BYTES = 0\n"
        "for _ in range(20):\n"
        "    tok = tb.Tokenizer.from_file(sys.argv[1], engine='native')\n"
        "    print(tok.digest, tok.encode_batch(['a low <s>']).to_pylist())\n"
        "    for file in table_cache.folder().glob('*.tables'):\n"
        "        file.unlink(missing_ok=True)\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    lines = [line for process in processes for line in process.communicate()[0].splitlines()]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert (len(lines), len(set(lines))) == (60, 1)
    assert [file.suffix for file in cache.iterdir()] in ([], [".tables"])


def test_the_cache_is_bounded(cache, monkeypatch):
    monkeypatch.setattr(table_cache, "MOST_BYTES", 250)
    cache.mkdir(parents=True, mode=0o700)
    now = time.time()
    for age, name in enumerate(["b.tables", "a.tables", "c.tables", "of another.txt", "d.1.ab.unfinished"]):
        (cache / name).write_bytes(bytes(100))
        os.utime(cache / name, (now, now - 100 * age))
    os.utime(cache / "d.1.ab.unfinished", (now, now - 100_000))
    table_cache.keep(cache / "new.tables", bytes(100))

    assert sorted(file.name for file in cache.iterdir()) == ["b.tables", "new.tables", "of another.txt"]


def test_what_is_used_stays_young(cache):
    text = text_of("llama")
    load(text)
    (file,) = cache.iterdir()
    os.utime(file, (0, 0))
    load(text)

    assert file.stat().st_mtime > time.time() - 3600


def test_processes_share_tables_through_a_folder_where_there_is_no_cache(cache, monkeypatch, tmp_path):
    monkeypatch.setenv(table_cache.SETTING, "off")
    tok = load(text_of("llama"))
    expected, pickled = all_that_shows(tok), pickle.dumps(tok)
    assert tok.engine.share_tables(tmp_path / "job")
    monkeypatch.setattr(table_cache, "_folder_of_process", None)  # and back again at the end
    table_cache.use_folder(tmp_path / "job")
    with monkeypatch.context() as patch:
        patch.setattr(lazy, "unpack", lambda outline, entries: 1 / 0)
        loaded = pickle.loads(pickled)
        assert loaded.encode_batch(TEXTS).equals(expected["ids"])

    assert all_that_shows(loaded) == expected
    assert not loaded.engine.share_tables(tmp_path / "job")
    assert not cache.exists()


def test_a_pickle_of_another_content_is_not_taken_for_the_one_in_the_cache(cache):
    tok = load(text_of("llama"))
    source = tok._lazy_spec.source
    other = load(text_of("unigram"))._lazy_spec.source
    claimed = lazy.Source.packed(other.packed_outline(), other.packed_entries, source.content)
    loaded = tb.Tokenizer(lazy.LazySpec(claimed), "native")

    assert loaded.spec == other.spec
    assert loaded.encode_batch(TEXTS).equals(tb.Tokenizer(other.spec, "native").encode_batch(TEXTS))
