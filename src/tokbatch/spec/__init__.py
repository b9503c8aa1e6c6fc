"""What a tokenizer is: the typed content of a tokenizer.json, its reader and its digest.

Reading order: `tokenizer_spec.py` (the whole), then one module a section of the file (`normalizers.py`,
`pre_tokenizers.py`, `models.py`, `post_processors.py`, `decoders.py`).
"""

from tokbatch.spec.tokenizer_spec import AddedToken, Direction, Padding, TokenizerSpec, Truncation

__all__ = ["AddedToken", "Direction", "Padding", "TokenizerSpec", "Truncation"]
