"""How the oracle is asked, and how its answer is written down."""

from __future__ import annotations

from typing import Any

from oracles import oracle
from oracles.cases import Case, tokenizer_text

FIELDS = ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask", "attention_mask")
# The oracle's hash tables are seeded anew for each tokenizer that is loaded: what depends on their order shows here.
LOADS = 4


def plain(encoding: Any) -> dict[str, Any]:
    """Give the fields of an encoding, of the oracle's or of ours, as plain lists."""
    return {field: [list(x) if isinstance(x, tuple) else x for x in getattr(encoding, field)] for field in FIELDS}


def ask(case: Case) -> dict[str, Any]:
    """Ask once: the fields of the encoding, the overflowing ones, both decodings; or `error` with its stage."""
    answer: dict[str, Any] = {}
    stage = "load"
    try:
        loaded = oracle.tokenizer(tokenizer_text(case), case.get("encode_special_tokens", False))
        stage = "encode"
        ids = case.get("decode_ids")
        if ids is None:
            encoding = oracle.encode(loaded, case["text"], case.get("pair"), case["add_special_tokens"])
            answer |= plain(encoding)
            answer["overflowing"] = [plain(part) for part in encoding.overflowing]
            ids = answer["ids"]
        stage = "decode"
        answer["decoded"] = oracle.decode(loaded, ids, skip_special_tokens=False)
        answer["decoded_skip_special"] = oracle.decode(loaded, ids, skip_special_tokens=True)
    except oracle.OracleError as error:
        answer["error"] = {"stage": stage, "message": str(error), "panicked": error.panicked}
    return answer


def frozen(case: Case) -> Case:
    """Ask several tokenizers loaded from the same file; give the case with its answer, without the unstable fields."""
    answers = [ask(case) for _ in range(LOADS)]
    unstable = {key for answer in answers for key in answer if any(other.get(key) != answer[key] for other in answers)}
    declared = set(case.get("unstable", []))
    if not unstable <= declared:
        raise ValueError(f"{case['name']}: the oracle gives different {sorted(unstable - declared)} at each load")
    return {**case, **{key: value for key, value in answers[0].items() if key not in declared}}
