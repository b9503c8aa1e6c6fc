"""Puts this folder's helpers (`documents.py`, `mutations.py`) within reach."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
