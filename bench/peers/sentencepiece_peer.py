"""sentencepiece: reads its own models; here one is built of a tokenizer.json that came from such a model.

Unigram has pieces and scores. BPE has merges, and sentencepiece scores of pieces: here the place of the first merge
that makes a piece. Of what normalizers do, a model can say some; whether that is the same, the ids tell.
"""

import base64
import json

import numpy as np
import sentencepiece

from peers import Unfit


class Sentencepiece:
    """See `Peer`."""

    version = sentencepiece.__version__
    share = 1.0

    def __init__(self, model):
        self.model = sentencepiece.SentencePieceProcessor(model_proto=model)

    def prepare(self, texts):
        return texts.to_pylist()

    def encode(self, texts):
        return self.model.encode(texts, num_threads=1)

    def ids(self, encoded):
        return np.concatenate([np.array(ids, np.int32) for ids in encoded] or [np.zeros(0, np.int32)])


def load(tokenizer):
    """Build a model of a Unigram, or of a BPE that falls back to bytes. Raises `Unfit` for what a model cannot say."""
    from sentencepiece import sentencepiece_model_pb2 as format

    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    model = content["model"]
    proto = format.ModelProto()
    # Special tokens are control pieces, which sentencepiece does not look for in a text; other added ones it does.
    if isinstance(model["vocab"], list):
        _add_unigram(proto, model, {token["content"] for token in content["added_tokens"]})
    elif model.get("byte_fallback"):
        _add_bpe(proto, model, content["added_tokens"])
    else:
        raise Unfit("neither Unigram nor a BPE that falls back to bytes")
    _add_normalizer(proto.normalizer_spec, content)
    proto.trainer_spec.bos_id = proto.trainer_spec.eos_id = proto.trainer_spec.pad_id = -1
    return Sentencepiece(proto.SerializeToString())


def _add_unigram(proto, model, special):
    kinds = proto.SentencePiece
    for index, (piece, score) in enumerate(model["vocab"]):
        kind = kinds.UNKNOWN if index == model["unk_id"] else kinds.CONTROL if piece in special else kinds.NORMAL
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    proto.trainer_spec.unk_id = model["unk_id"]
    proto.trainer_spec.unk_piece = model["vocab"][model["unk_id"]][0]


def _add_bpe(proto, model, added):
    kinds = proto.SentencePiece
    special = {token["content"]: token["special"] for token in added}
    ids = {**model["vocab"], **{token["content"]: token["id"] for token in added}}
    pieces = sorted(ids, key=ids.__getitem__)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise Unfit("ids with gaps")
    ranks = {}
    for merge in model["merges"]:
        ranks.setdefault("".join(merge.split(" ") if isinstance(merge, str) else merge), len(ranks))
    bytes_ = {f"<0x{byte:02X}>" for byte in range(256)}
    for piece in pieces:
        kind = kinds.NORMAL if piece in ranks or len(piece) == 1 else kinds.UNUSED
        if piece in bytes_:
            kind = kinds.BYTE
        elif piece in special:
            kind = kinds.CONTROL if special[piece] else kinds.USER_DEFINED
        if piece == model["unk_token"]:
            kind = kinds.UNKNOWN
        proto.pieces.add(piece=piece, score=-ranks.get(piece, len(ranks)), type=kind)
    proto.trainer_spec.model_type = proto.trainer_spec.BPE
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.unk_id, proto.trainer_spec.unk_piece = ids[model["unk_token"]], model["unk_token"]


def _add_normalizer(spec, content):
    """Say in a model what normalizers and pre-tokenizers do: a map of characters, a space in front, spaces joined."""
    normalizer, pre_tokenizer = content.get("normalizer") or {}, content.get("pre_tokenizer") or {}
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    parts = pre_tokenizer.get("pretokenizers", [pre_tokenizer] if pre_tokenizer else [])
    charsmaps = [step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled"]
    joins = [step for step in steps if step["type"] == "Replace" and step["pattern"] == {"Regex": " {2,}"}]
    strips = [step for step in steps if step["type"] == "Strip"]
    marks = [step for step in steps if step["type"] == "Replace" and step["pattern"] == {"String": " "}]
    prefixes = [step for step in steps if step["type"] == "Prepend"]
    prefixes += [part for part in parts if part["type"] == "Metaspace" and part.get("prepend_scheme") != "never"]
    for step in steps:
        if step not in (*joins, *strips, *marks, *prefixes) and step["type"] != "Precompiled":
            raise Unfit(f"a normalizer that no model has: {step['type']}")
    splits = any(part["type"] == "WhitespaceSplit" for part in parts)
    spec.precompiled_charsmap = base64.b64decode(charsmaps[0]) if charsmaps else b""
    spec.add_dummy_prefix, spec.escape_whitespaces = bool(prefixes), True
    spec.remove_extra_whitespaces = bool(joins or splits)
