"""The reference engine: pure Python, written to be read. It is the definition of what tokbatch does.

Reading order: `pipeline.py` (the whole road), `added_tokens.py`, `normalizers.py`, `pre_tokenizers.py`, `models/`,
`post_processors.py`, `decoders.py`.
"""
