import gzip
import hashlib
import json
import random

import pyarrow as pa
import pytest

from tokbatch.errors import EncodeError, InputError
from tokbatch.job import line_input
from tokbatch.job.inputs import Input, list_files
from tokbatch.job.sources import ReadOptions, open_source

TEXTS = ["a <mask> b", "", "naïve – 日本語 🙂", "two\ttabs", "x" * 500, "\x00\x7f", "  "]


def zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


def opened(path, kind="jsonl", **options):
    return open_source(Input(kind, path.name, str(path)), ReadOptions(**options))


def read(source, batch_bytes=1000, first=0, units=None, bad=None):
    on_bad_row = None if bad is None else bad.__setitem__
    batches = list(source.batches(units or source.units(), None, batch_bytes, first, on_bad_row))
    return pa.Table.from_batches(batches, source.schema)


def lines(rows, seed=3):
    rng = random.Random(seed)
    return [rng.choice(TEXTS) + (f" {i}" if i % 3 else "") for i in range(rows)]


def as_json(texts):
    return "".join(json.dumps({"id": i, "text": t}, ensure_ascii=i % 2 == 0) + "\n" for i, t in enumerate(texts))


@pytest.mark.parametrize("kind", ["jsonl", "text"])
@pytest.mark.parametrize("batch_bytes", [1, 37, 100_000])
def test_units_can_be_read_from_any_of_them_on(tmp_path, monkeypatch, kind, batch_bytes):
    monkeypatch.setattr(line_input, "UNIT_BYTES", 1000)
    monkeypatch.setattr(line_input, "BLOCK_BYTES", 128)
    texts = lines(150)
    path = tmp_path / "a"
    path.write_text(as_json(texts) if kind == "jsonl" else "\n".join(texts))
    source = opened(path, kind)
    units = source.units()
    assert len(units) > 5
    assert [unit.place[0] for unit in units[1:]] == [unit.place[1] for unit in units[:-1]]
    assert sum(unit.rows for unit in units) == 150
    assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    row = 0
    for index, unit in enumerate(units):
        assert read(source, batch_bytes, row, units[index:])["text"].to_pylist() == texts[row:]
        row += unit.rows


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\rc\r\n", ["a", "b\rc"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", [""]),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_what_a_line_is(tmp_path, content, texts, suffix):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".zst": zstd}[suffix](content))
    source = opened(path, "text")
    assert sum(unit.rows for unit in source.units()) == len(texts)
    assert read(source)["text"].to_pylist() == texts


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files(tmp_path, suffix):
    pack = gzip.compress if suffix == ".gz" else zstd
    texts = lines(200)
    data = as_json(texts).encode()
    half = data.index(b"\n", len(data) // 2) + 1
    for name, content in (("one", pack(data)), ("two", pack(data[:half]) + pack(data[half:]))):
        path = tmp_path / f"{name}.jsonl{suffix}"
        path.write_bytes(content)
        source = opened(path)
        (unit,) = source.units()
        assert unit.rows == 200
        assert read(source)["text"].to_pylist() == texts
    if suffix == ".gz":  # zeros behind it are padding
        for zeros in (1, 512, 100_000):
            path.write_bytes(pack(data[:half]) + pack(data[half:]) + b"\0" * zeros)
            source = opened(path)
            assert [unit.rows for unit in source.units()] == [200]
            assert read(source)["text"].to_pylist() == texts
            assert source.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    broken = pack(data)
    for content in (broken[:-1], broken[: len(broken) // 2], broken + b"garbage", b"", data):
        (tmp_path / f"bad.jsonl{suffix}").write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.jsonl"):
            opened(tmp_path / f"bad.jsonl{suffix}").units()


def test_a_file_that_changes_after_the_plan_is_noticed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    planned = opened(path, "text")
    units, size, digest = planned.units(), planned.size, planned.digest
    path.write_text("one\ntwo\nthreE\n")
    again = opened(path, "text")
    assert again.is_still(size, digest)  # of the same size: only who reads it can tell
    with pytest.raises(InputError, match="has changed since the job was planned"):
        read(again, units=units)
    path.write_text("one\n")
    assert not opened(path, "text").is_still(size, digest)


BAD_LINES = [
    ("", "an empty line"),
    ("{", "not JSON"),
    ('{"text": "a"} x', "not JSON"),
    ("[1]", "not as the columns are: Expected `object`"),
    ("{}", "not as the columns are: Object missing required field `text`"),
    ('{"text": 1}', "not as the columns are: Expected `str | null`, got `int`"),
    ('{"text": "\\ud800 "}', r"\\ud800 is half a surrogate pair, and no character"),
    ('{"text": "\\ud800 ', "not JSON"),
    ('{"text": NaN}', "not JSON"),
    ('{"text": 1, "text": "y"}', "not as the columns are: Expected `str | null`, got `int`"),
    ('{"text": "a", "n": "one"}', "not as the columns are: Expected `int | null`"),
    ('{"text": "a", "n": 9223372036854775808}', "not as the columns are"),
    ('{"text": "a", "deep": ' + "[" * 5000 + "]" * 5000 + "}", "not JSON|nested too deeply"),
    (b'{"text": "a\xff"}', r"not JSON: byte 11 \(0xFF\) is not UTF-8"),
    (b'{"text": "a", "unknown": "\xff"}', r"not JSON: byte 26 \(0xFF\) is not UTF-8"),
]


@pytest.mark.parametrize(("line", "said"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named_or_becomes_a_row_that_has_failed(tmp_path, line, said):
    path = tmp_path / "a.jsonl"
    line = line.encode() if isinstance(line, str) else line
    path.write_bytes(b'{"text": "first", "n": 1}\n' + line + b'\n{"text": "last"}\n')
    source = opened(path, columns=("n",), types={"n": "int64"})
    with pytest.raises(EncodeError, match=said) as caught:
        read(source)
    assert (caught.value.where, caught.value.row) == ("line 2", 1)
    assert "run.on_bad_row" in caught.value.hint
    bad = {}
    table = read(source, bad=bad)
    assert table.to_pydict() == {"text": ["first", "", "last"], "n": [1, None, None]}
    assert list(bad) == [1]
    assert bad[1].startswith("line 2: ")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('{"id": "4", "n": 4, "x": {"k": 4}}', ("4", 4, '{"k": 4}')),
        ('{"id": "4", "text": 7, "x": "\\ud83d\\ude00"}', ("4", None, '"\\ud83d\\ude00"')),
        ('{"id": "4", "n": "four", "text": "a", "x": null}', ("4", None, None)),
        ('{"id": "4", "id": "5", "text": []}', ("5", None, None)),
        ('{"id": "\\\\ud800", "text": "\\ud800", "n": 4}', ("\\ud800", 4, None)),
        ('{"id": "\\udc00", "text": "a", "n": 4, "x": ["\\ud800\\ud83d\\ude00"]}', (None, 4, None)),
        ('{"id": "4", "text": 7', (None, None, None)),
        ('["4"]', (None, None, None)),
        (b'{"id": "4", "text": "\xff"}', (None, None, None)),
    ],
)
def test_of_a_bad_line_is_kept_what_can_be_read(tmp_path, line, kept):
    path = tmp_path / "a.jsonl"
    line = line.encode() if isinstance(line, str) else line
    path.write_bytes(b'{"id": "0", "text": "a"}\n' + line + b"\n")
    bad = {}
    columns, types = ("id", "n", "x"), {"id": "string", "n": "int64", "x": "json"}
    table = read(opened(path, columns=columns, types=types), bad=bad)
    table.validate(full=True)
    assert list(bad) == [1]
    assert table.to_pylist()[1] == {"text": "", **dict(zip(columns, kept, strict=True))}


def test_bytes_that_are_not_utf8(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nb\xffd\ngood\n\xe4\xbd")
    with pytest.raises(EncodeError, match=r"line 2: byte 1 \(0xFF\) is not UTF-8"):
        read(opened(path, "text"))
    bad = {}
    assert read(opened(path, "text"), bad=bad)["text"].to_pylist() == ["good", "", "good", ""]
    assert sorted(bad) == [1, 3]


def test_json_that_is_passed_on_is_utf8(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a", "x": {"k": 1}}\n{"text": "b", "x": {"k":"\xff"}}\n')
    bad = {}
    table = read(opened(path, columns=("x",)), bad=bad)
    table.validate(full=True)
    assert table.to_pydict() == {"text": ["a", ""], "x": ['{"k": 1}', None]}
    assert list(bad) == [1]


def test_an_integer_that_no_double_holds_is_a_bad_row(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "a", "x": {x}}}\n' for x in (0.5, -(2**53), 2**53 + 1, "null")))
    bad = {}
    table = read(opened(path, columns=("x",)), bad=bad)
    assert table["x"].to_pylist() == [0.5, -(2.0**53), None, None]
    assert list(bad) == [2]


def test_types_of_columns(tmp_path):
    rows = [
        {"text": "a", "i": None, "f": 1, "b": True, "s": "x", "list": [1, {"k": None}], "mixed": 1, "big": 2**70},
        {"text": None, "i": 3, "f": 1.5, "mixed": "two", "later": None},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    table = read(opened(path, columns="all"))
    assert [str(field.type) for field in table.schema][1:] == [
        *("int64", "double", "bool", "string", "string", "string", "string", "null")
    ]
    assert table.to_pylist()[0] == {
        "text": "a",
        "i": None,
        "f": 1.0,
        "b": True,
        "s": "x",
        "list": '[1, {"k": null}]',
        "mixed": "1",
        "big": str(2**70),
        "later": None,
    }
    assert table.to_pylist()[1]["mixed"] == '"two"'
    assert read(opened(path, columns=("i",), types={"i": "double"}))["i"].to_pylist() == [None, 3.0]
    assert opened(path).schema.names == ["text"]
    with pytest.raises(InputError, match='no line has "none"'):
        opened(path, columns=("none",))
    with path.open("a") as file:
        file.write('\n{"text": "c", "new": 1}')
    assert read(opened(path, columns=("i",))).num_rows == 3
    assert opened(path, columns="all").schema.names[-1] == "new"


def test_a_column_that_comes_after_the_first_lines(tmp_path, monkeypatch):
    from tokbatch.job import json_input

    monkeypatch.setattr(json_input, "HEAD_BYTES", 20)
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "n": null}\n' * 20 + '{"text": "a", "n": 7, "new": 1}\n')
    assert read(opened(path, columns=("n",)))["n"].to_pylist()[-1] == 7
    with pytest.raises(EncodeError, match=r"line 21: .*unknown field"):
        read(opened(path, columns="all", types={"n": "int64"}))


def test_a_text_inside_of_an_object(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"m": {"t": "a", "u": 1}}\n{"m": {"t": null}}\n{"m": null}\n{"m": {}}\n')
    bad = {}
    assert read(opened(path, text_column="m.t"), bad=bad)["m.t"].to_pylist() == ["a", None, None, ""]
    assert list(bad) == [3]
    path.write_text('{"m.t": "dotted", "m": {"t": "nested"}}\n')
    assert read(opened(path, text_column="m.t"))["m.t"].to_pylist() == ["dotted"]


def test_files_that_are_a_document_each(tmp_path, monkeypatch):
    from tokbatch.job import text_input

    monkeypatch.setattr(text_input, "UNIT_BYTES", 30)
    texts = {f"d/{i % 3}/{i:02d}.txt": f"document {i}\nof two lines\r\n" for i in range(9)}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "d/2/bad.txt").write_bytes(b"\xff")
    (tmp_path / "d/2/packed.txt.gz").write_bytes(gzip.compress(b"packed"))
    from tokbatch.job.config import InputConfig

    (found,) = list_files(["d"], str(tmp_path), None, InputConfig(document="file")).inputs
    assert (found.kind, found.name) == ("documents", "d")
    source = open_source(found)
    assert len(source.units()) > 2
    bad = {}
    table = read(source, 25, bad=bad)
    rows = dict(zip(table["path"].to_pylist(), table["text"].to_pylist(), strict=True))
    assert rows == {name[2:]: text for name, text in texts.items()} | {"2/bad.txt": "", "2/packed.txt.gz": "packed"}
    assert list(rows) == sorted(rows)
    assert [table["path"][row].as_py() for row in bad] == ["2/bad.txt"]
    (tmp_path / "d/0/00.txt").write_text("another")
    with pytest.raises(InputError, match="has changed"):
        read(open_source(found), units=source.units(), bad={})


def test_of_a_key_that_stands_twice_the_last_counts(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a", "n": 1, "text": "b", "n": 2}\n')
    assert read(opened(path, columns=("n",))).to_pydict() == {"text": ["b"], "n": [2]}
