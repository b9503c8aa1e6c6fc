"""The oracle's tokenizers by name, and a truncation and a padding that can be put into each of them."""

import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent / "oracles" / "tokenizers"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
TRUNCATION = {"max_length": 6, "stride": 1, "strategy": "LongestFirst", "direction": "Left"}
PADDING = {
    "strategy": "BatchLongest",
    "direction": "Left",
    "pad_to_multiple_of": 4,
    "pad_id": 1,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
