"""Read the ids of a finished job for the training of a language model, without copying them: a batch is a view.

python jobs/training_batches.py [OUT]

The ids of all documents of a part lie end to end in one buffer of Arrow. A batch is `rows` blocks of `length` ids of
that buffer; numpy sees it, and torch takes it over as it is.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tokbatch.job import load_config, read_manifest, run_job

CONFIG = Path(__file__).resolve().parent.parent / "configs" / "corpus_to_parquet.toml"


class Batches:
    """Batches of shape (rows, length), each a view of its part; what is left over at the end of a part is not used."""

    def __init__(self, out: Path, rows: int, length: int, id_column: str = "input_ids"):
        self.shape, self.views = (rows, length), []
        for part in read_manifest(out)["parts"]:
            column = pq.read_table(out / part["path"], columns=[id_column])[id_column]
            for chunk in column.chunks:
                ids = chunk.values.slice(chunk.offsets[0].as_py(), chunk.offsets[-1].as_py() - chunk.offsets[0].as_py())
                self.views.append(ids.to_numpy(zero_copy_only=True))
        self.starts = [(v, s) for v in self.views for s in range(0, len(v) - rows * length + 1, rows * length)]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> np.ndarray:
        view, start = self.starts[index]
        return view[start : start + self.shape[0] * self.shape[1]].reshape(self.shape)


def main(arguments: list[str]) -> None:
    """Make the ids where there are none, and go through them once."""
    config = load_config(CONFIG, ["output.id_type=int32", "output.path=../out/training_batches"])
    out = Path(arguments[0]) if arguments else run_job(config, resume=True).job.config.output_path
    batches = Batches(out, rows=4, length=128)
    print(f"{len(batches)} batches of {batches.shape}, {sum(batch.size for batch in batches):,} tokens")
    try:
        from torch.utils.data import DataLoader
    except ImportError:
        return
    warnings.filterwarnings("ignore", message=".*not writable.*")  # Arrow's memory is read-only, and stays so
    print(sum(int(batch.numel()) for batch in DataLoader(batches, batch_size=None, shuffle=True)), "by torch")


if __name__ == "__main__":
    main(sys.argv[1:])
