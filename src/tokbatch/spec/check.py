"""What only the whole of a section, or of the file, can show: broken merges, and settings that are refused by name.

Not here: what needs a normalizer at work, such as an added token that normalizes to nothing. The engines find that
when they are built.
"""

from __future__ import annotations

from itertools import chain

from tokbatch.errors import SpecError
from tokbatch.spec import models, pre_tokenizers
from tokbatch.spec.fields import OracleCrash, show
from tokbatch.spec.refusals import refuse
from tokbatch.spec.tokenizer_spec import TokenizerSpec


def check_spec(spec: TokenizerSpec) -> None:
    """Refuse by name what is valid and cannot be equal. Patterns have been looked at when they were read."""
    model = spec.model
    if isinstance(model, models.BPE) and model.dropout not in (None, 0.0, 1.0):
        raise refuse("dropout", f"a dropout of {model.dropout:.6g}", "$.model.dropout")
    if spec.pre_tokenizer is not None:
        _check_pre_tokenizer(spec.pre_tokenizer, "$.pre_tokenizer")


def _check_pre_tokenizer(pre_tokenizer: pre_tokenizers.PreTokenizer, where: str) -> None:
    if isinstance(pre_tokenizer, pre_tokenizers.Sequence):
        for position, step in enumerate(pre_tokenizer.pretokenizers):
            _check_pre_tokenizer(step, f"{where}.pretokenizers[{position}]")
    elif isinstance(pre_tokenizer, pre_tokenizers.FixedLength) and pre_tokenizer.length == 0:
        raise refuse("length of zero", "pieces of 0 characters", f"{where}.length")


def check_merges(model: models.BPE, where: str) -> None:
    """Refuse merges that name a token, or make one, that the vocabulary does not have."""
    vocab, merges = model.vocab, model.merges
    cut = len((model.continuing_subword_prefix or "").encode())
    # Three million look-ups for the largest files, and a set answers them a quarter quicker than a dict.
    has_all = set(vocab).issuperset
    if not cut and has_all(map("".join, merges)) and has_all(chain.from_iterable(merges)):
        return
    longest = max((len(token.encode()) for token in vocab), default=0)
    for rank, (left, right) in enumerate(merges):
        place = f"{where}.merges[{rank}]"
        for token in (left, right):
            if token not in vocab:
                raise SpecError(f"the token {show(token)} is not in the vocabulary", where=place)
        # The right side loses as many bytes as the prefix has, whether it begins with the prefix or not. The oracle
        # joins the two in a buffer as long as the longest token, and crashes when they do not fit.
        merged = left.encode() + right.encode()[cut:]
        if len(right.encode()) < cut or len(merged) > longest:
            raise OracleCrash(
                SpecError(f"the merge of {show(left)} and {show(right)} gives no token of the vocabulary", where=place)
            )
        if not _in_vocabulary(merged, vocab):
            raise SpecError(
                f"the merge of {show(left)} and {show(right)} gives a token that is not in the vocabulary", where=place
            )


def _in_vocabulary(token: bytes, vocab: dict[str, int]) -> bool:
    try:
        return token.decode() in vocab
    except UnicodeDecodeError:  # the prefix ended within a character
        return False
