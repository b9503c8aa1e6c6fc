"""One measurement, in this process: the first pass is cold, the second warm. Prints one line of JSON.

    python bench/measure.py MEASUREMENT     (JSON of `definitions.Measurement`; `run.py` calls this)

Times are those of the stage alone: reading the corpus, loading the tokenizer and looking at the answer are not in
them. Wall time and the processor time of this process, in seconds.
"""

from __future__ import annotations

import io
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from definitions import Measurement, answer_of, place_of, read_texts, split_only
from peers import Unfit, first_line, load_peer


def measure(wanted: Measurement) -> dict[str, Any]:
    """Measure, and give times, answer and where the right answer has to be looked up."""
    tokenizer = pathlib.Path(wanted.tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        used = split_only(tokenizer, pathlib.Path(folder)) if wanted.stage == "split" else tokenizer
        start = time.perf_counter()
        peer = load_peer(wanted.peer, used)
        load_seconds = time.perf_counter() - start
    texts, size = read_texts(wanted, peer.share)
    prepared = peer.prepare(texts)
    passes: dict[str, Any] = {}
    encoded = None
    for name in ("cold", "warm"):
        if wanted.stage in ("encode", "split"):
            passes[name], encoded = _timed(lambda: peer.encode(prepared))
        else:
            encoded = peer.encode(prepared) if encoded is None else encoded
            passes[name], _ = _timed(lambda ids=encoded: _stage(peer, wanted.stage, prepared, ids))
    return {
        "version": peer.version,
        "bytes": size,
        "rows": len(texts),
        "load_seconds": load_seconds,
        "place": place_of(tokenizer, texts, wanted.stage),
        "answer": asdict(answer_of(peer.ids(encoded))),
        **passes,
    }


def _timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}, result


def _stage(peer: Any, stage: str, prepared: Any, encoded: Any) -> Any:
    """Do a stage that only tokbatch has."""
    if stage == "count":
        return peer.count(prepared)
    if stage == "verify":
        return peer.verify(prepared, encoded)
    if stage == "decode":
        return peer.decode(encoded)
    return _write(encoded)


def _write(encoded: Any) -> int:
    """Write a part into memory, with the settings of a job."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tokbatch.job.sinks.parquet import id_list_type

    kind = id_list_type("int32")
    sink = io.BytesIO()
    settings = {"compression": "zstd", "compression_level": 1, "use_dictionary": False, "write_statistics": False}
    with pq.ParquetWriter(
        sink,
        pa.schema([("input_ids", kind)]),
        column_encoding={"input_ids.list.element": "BYTE_STREAM_SPLIT"},
        **settings,
    ) as writer:
        for array in encoded:
            writer.write_batch(pa.record_batch([array.cast(kind)], names=["input_ids"]))
    return sink.tell()


if __name__ == "__main__":
    try:
        outcome = measure(Measurement.from_json(sys.argv[1]))
    except Unfit as unfit:
        outcome = {"unfit": str(unfit)}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in a library is no Exception
        outcome = {"unfit": f"failed: {type(error).__name__}: {first_line(error)}"}
    print(json.dumps(outcome))
