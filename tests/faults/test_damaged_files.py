"""Files that are damaged: a job reads what is in one, or says that it cannot; it does not end by it, or lose rows."""

import gzip
import json
import random
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora import write_config
from damaged_files import DOCUMENTS, GOOD, GROUP, ROWS, damaged, footer_of, parquet
from tokbatch import Tokenizer, sample
from tokbatch.errors import InputError, located
from tokbatch.job import load_config, read_manifest, run_job, verify_output
from tokbatch.job.inputs import Input, kind_of
from tokbatch.job.sources import ReadOptions, RowCursor, open_source, rows_of

OPTIONS = ReadOptions("text", ("id",))
CHECKED = ("checksums.parquet", "plain-checksums.parquet", "lines.jsonl.gz")  # files whose every text has a checksum


def read_texts(path, name):
    """Read a file as a job does: its texts, None for a row without one."""
    source = open_source(Input(kind_of(name), name, str(path)), OPTIONS)
    if "text" not in source.schema.names:  # its name is damaged; the transform says the same
        raise InputError("no column of texts", where=name)
    units, bad = source.units(), {}
    count = rows_of(units)
    batches = source.batches(units, ["id", "text"], 300, 0, bad.__setitem__)
    texts = [text for batch in RowCursor(batches, 0, count).rows(0, count) for text in as_texts(batch.column("text"))]
    assert len(texts) == count
    return [None if row in bad else text for row, text in enumerate(texts)]


def plain_texts(path):
    """Read the same by the shortest way there is."""
    name = path.name
    if name.endswith(".parquet"):
        return as_texts(pq.ParquetFile(path, page_checksum_verification=True).read(["text"])["text"].combine_chunks())
    if (
        ".arrow" in name
    ):  # A file is a stream after its magic word; its footer may be damaged where its batches are not.
        content = path.read_bytes()
        opened = pa.ipc.open_stream(content[8:] if content[:6] == b"ARROW1" else content)
        return [text for batch in opened.read_all().to_batches() for text in as_texts(batch.column("text"))]
    content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else pa.input_stream(path).read()
    texts = []
    for line in content.split(b"\n")[: content.count(b"\n") + (not content.endswith(b"\n"))]:
        try:
            record = json.loads(line.decode())
            fits = isinstance(record, dict) and isinstance(record.get("text", 0), str | None)
            texts.append(record["text"] if fits and isinstance(record.get("id"), int | None) else None)
        except (ValueError, RecursionError):
            texts.append(None)
    return texts


def as_texts(column):
    """Give a column's texts, None for nulls and for what is no UTF-8."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_dictionary(column.type):
        column = column.dictionary.view(binary(kind)).take(column.indices)
    else:
        column = column.view(binary(kind))
    return [as_text(value) for value in column.to_pylist()]


def binary(kind):
    if pa.types.is_string_view(kind):
        return pa.binary_view()
    return pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()


def as_text(value):
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def write_damaged(folder, seeds):
    folder.mkdir()
    for name, content in damaged(seeds):
        (folder / name).write_bytes(content)


def seeds(fast, long, each):
    """Give runs of seeds: the first `fast` runs are in every test run."""
    return [
        pytest.param(range(each * i, each * (i + 1)), id=str(i), marks=pytest.mark.long if i >= fast else ())
        for i in range(fast + long)
    ]


@pytest.mark.parametrize("run", seeds(fast=1, long=20, each=96))
def test_a_job_reads_what_is_there_or_skips_the_file_by_name(tmp_path, run):
    write_damaged(tmp_path / "in", run)
    config = write_config(
        tmp_path,
        input__files=["in"],
        input__keep_columns=["id"],
        run__on_bad_file="skip",
        run__on_bad_row="null",
        run__shard_bytes=500,
        run__batch_bytes=300,
    )
    result = run_job(load_config(config))
    manifest = read_manifest(tmp_path / "out")
    assert manifest["run"]["retries"] == []
    skipped = {entry["input"]: entry["reason"] for entry in manifest["quarantine"]["files"]}
    assert skipped == dict(result.skipped)
    names = {f"in/{path.name}" for path in (tmp_path / "in").iterdir()}
    read = [entry["name"] for entry in manifest["inputs"]]
    assert sorted([*read, *skipped]) == sorted(names)
    assert all(reason and "\n" not in reason and "Traceback" not in reason for reason in skipped.values())
    tokenizer = Tokenizer.from_file(sample.tokenizer_path())
    for name in read:
        parts = [pq.read_table(tmp_path / "out" / part["path"]) for part in manifest["parts"] if part["input"] == name]
        texts = plain_texts(tmp_path / name)
        assert pa.concat_tables(parts)["input_ids"].to_pylist() == [
            None if text is None else tokenizer.encode(text).ids for text in texts
        ], name
        if damaged_one(name) in CHECKED:
            assert texts == DOCUMENTS, name
    found = verify_output(tmp_path / "out", 1.0)
    assert found.problems == []
    assert sorted(found.skipped) == sorted(skipped)
    assert found.quarantined_rows == result.stats.failed_documents


def damaged_one(name):
    """Tell which of the good files a damaged one was, by its name."""
    stem, suffix = name.rsplit("/", 1)[-1].split(".", 1)
    return f"{stem[7:].rsplit('-', 1)[0]}.{suffix}"


@pytest.mark.parametrize("run", seeds(fast=1, long=10, each=320))
def test_what_cannot_be_read_is_one_clear_error(tmp_path, run):
    write_damaged(tmp_path / "in", run)
    refused = []
    for path in (tmp_path / "in").iterdir():
        try:
            texts = read_texts(path, path.name)
        except InputError as error:
            refused.append((path.name, located(error, path.name)))
        else:
            assert texts == plain_texts(path), path.name
    assert len(refused) > len(run) // 3
    for name, error in refused:
        assert error.where.startswith(name)
        assert "\n" not in error.message
        assert error.hint is None or "writer" in error.hint


@pytest.mark.parametrize("step", [31, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", GOOD)
def test_no_cut_is_taken_for_the_end(tmp_path, name, step):
    content = GOOD[name]()
    whole = tmp_path / name
    whole.write_bytes(content)
    assert read_texts(whole, name) == DOCUMENTS
    cut = tmp_path / f"cut-{name}"
    lengths = {*range(0, len(content), step), *range(len(content) - 40, len(content))}
    if name.endswith((".gz", ".zst")):
        # Between two members (or frames), where the second begins as the first, nothing tells that there is another.
        lengths -= {content.rindex(content[:4])}
    for length in sorted(lengths):
        cut.write_bytes(content[:length])
        with pytest.raises(InputError) as caught:
            read_texts(cut, cut.name)
        assert caught.value.where.startswith(cut.name)


def changed_footer(data, function):
    """Rewrite the footer; gives the file with the footer's new length."""
    start, stop = footer_of(data)
    footer = function(data[start:stop])
    return data[:start] + footer + len(footer).to_bytes(4, "little") + data[stop + 4 :]


def say_rows(rows, said):
    """Let the footer say another number wherever it says `rows` (as a 64-bit field of the compact protocol)."""
    return lambda footer: footer.replace(bytes([0x16, 2 * rows]), bytes([0x16, 2 * said]))


def last_group(said):
    """Let the last row group, and the file, have other numbers of rows; its columns keep theirs."""

    def change(footer):
        assert footer.count(bytes([0x16, 2 * ROWS])) == 1
        footer = footer.replace(bytes([0x16, 2 * ROWS]), bytes([0x16, 2 * (ROWS - 13 + said)]))
        place = footer.rindex(bytes([0x16, 26]))  # the rows of a row group come after its columns
        return footer[:place] + bytes([0x16, 2 * said]) + footer[place + 2 :]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (say_rows(ROWS, ROWS - 1), "the footer says 52 rows, and 53 in its row groups"),
        (say_rows(13, 12), "the footer says 53 rows, and 52 in its row groups"),
        (say_rows(GROUP, GROUP + 1), "the footer says 53 rows, and 55 in its row groups"),
        (last_group(12), "row group 2: cannot be read: the footer says 13 values of id in 12 rows"),
        (last_group(0), "row group 2: cannot be read: the footer says 13 values of id in 0 rows"),
        (last_group(14), "row group 2: cannot be read: the footer says 13 values of id in 14 rows"),
    ],
)
def test_a_footer_that_lies_about_rows(tmp_path, change, said):
    (tmp_path / "a.parquet").write_bytes(changed_footer(parquet(compression="none"), change))
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path / "a.parquet", "a.parquet")
    assert said.replace(" of id ", " of text ") in str(caught.value).replace(" of id ", " of text ")


def test_a_page_whose_checksum_is_wrong(tmp_path):
    content = bytearray(GOOD["plain-checksums.parquet"]())
    content[content.index(b"Hello, world!")] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    (tmp_path / "b.parquet").write_bytes(parquet())
    config = write_config(tmp_path)
    with pytest.raises(
        InputError, match=r"^a\.parquet: row group 0: cannot be read: .*CRC checksum verification failed"
    ):
        run_job(load_config(config))
    result = run_job(load_config(config, ["run.on_bad_file=skip"]), resume=True)
    assert list(result.skipped) == ["a.parquet"]
    assert (result.stats.documents, verify_output(tmp_path / "out", 1.0).problems) == (ROWS, [])


def test_statistics_of_sizes_that_would_end_the_process(tmp_path):
    """pyarrow ends the process where a histogram in the footer has another length than it must have."""
    content = parquet(compression="none")
    start, stop = footer_of(content)
    for seed in range(400):
        rng = random.Random(seed)
        footer = bytearray(content[start:stop])
        # In the compact protocol 0x19 or 0x29 begins a list, and the next byte has its length and the type of int64.
        places = [i for i in range(len(footer) - 1) if footer[i] in (0x19, 0x29) and footer[i + 1] & 0x0F == 6]
        place = rng.choice(places) + 1
        footer[place] = (rng.randrange(1, 9) << 4) | 6
        (tmp_path / "a.parquet").write_bytes(content[:start] + footer + content[stop:])
        try:
            assert read_texts(tmp_path / "a.parquet", "a.parquet") == DOCUMENTS
        except InputError as error:
            if "histogram size mismatch" in str(error):
                return
    raise AssertionError("no such footer was made")


@pytest.mark.parametrize("name", ["dictionary.parquet", "plain.parquet"])
def test_a_path_of_a_column_that_is_damaged_where_a_row_group_repeats_it(tmp_path, name):
    content = GOOD[name]()
    start, stop = footer_of(content)
    head, *groups = content[start:stop].split(b"\x04text")  # the schema has the first one
    assert len(groups) > 3
    footer = head + b"\x04text" + b"\x04te\xec\xf4".join(groups)
    (tmp_path / name).write_bytes(content[:start] + footer + content[stop:])
    assert read_texts(tmp_path / name, name) == DOCUMENTS


def test_offsets_that_lead_out_of_a_column(tmp_path):
    """pyarrow does not look at the offsets of an Arrow file; what follows them reads other memory, or ends."""
    schema = pa.schema([("text", pa.string()), ("id", pa.int64())])
    batch = pa.record_batch([pa.array(["first", "second", "third"]), pa.array([1, 2, 3])], schema=schema)
    with pa.ipc.new_stream(tmp_path / "a.arrows", schema) as writer:
        writer.write_batch(batch)
    content = (tmp_path / "a.arrows").read_bytes()
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 5, 11, 16))
    assert content.count(offsets) == 1
    for wrong in ((0, 5, 11, 2**30), (0, 2**30, 11, 16), (0, 11, 5, 16), (2**31, 5, 11, 16)):
        bad = b"".join(number.to_bytes(4, "little") for number in wrong)
        (tmp_path / "a.arrows").write_bytes(content.replace(offsets, bad))
        with pytest.raises(InputError, match=r"^a\.arrows: not an Arrow file or stream, or cut short: "):
            read_texts(tmp_path / "a.arrows", "a.arrows")


def test_a_checksum_of_gzip_that_is_wrong(tmp_path):
    content = bytearray(gzip.compress(b'{"text": "a"}\n', mtime=0))
    assert int.from_bytes(content[-8:-4], "little") == zlib.crc32(b'{"text": "a"}\n')
    content[-8] ^= 1
    (tmp_path / "a.jsonl.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"^a\.jsonl\.gz: cannot be read: CRC check failed"):
        read_texts(tmp_path / "a.jsonl.gz", "a.jsonl.gz")


def test_nothing_at_all_and_what_is_no_file(tmp_path):
    (tmp_path / "in/folder.parquet").mkdir(parents=True)
    for name in GOOD:
        (tmp_path / f"in/empty-{name}").touch()
    (tmp_path / "in/good.parquet").write_bytes(parquet())
    result = run_job(load_config(write_config(tmp_path, input__files=["in/*"], run__on_bad_file="skip")))
    assert sorted(result.skipped) == sorted([*(f"in/empty-{name}" for name in GOOD), "in/folder.parquet"])
    assert all("empty file" in reason for name, reason in result.skipped.items() if "/empty" in name)
    assert result.skipped["in/folder.parquet"] == "a folder, and no file"
    assert result.stats.documents == ROWS


def test_a_saved_dataset_whose_offsets_lead_out_of_a_column(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"text": ["first", "second", "third"]}).save_to_disk(tmp_path / "saved")
    (data,) = (tmp_path / "saved").glob("*.arrow")
    content = data.read_bytes()
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 5, 11, 16))
    assert content.count(offsets) == 1
    config = load_config(write_config(tmp_path, input__files=[], input__dataset="saved"))
    for wrong in ((0, 2**30, 11, 16), (0, 5, 11, 2**30)):
        bad = b"".join(number.to_bytes(4, "little") for number in wrong)
        data.write_bytes(content.replace(offsets, bad))
        with pytest.raises(InputError, match=r"^saved: .*cannot be read: .*(offset|Offset)"):
            run_job(config, overwrite=True)
