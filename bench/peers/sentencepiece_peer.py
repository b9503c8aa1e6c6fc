"""sentencepiece: reads its own models; the one of a Unigram tokenizer.json is built here from its pieces and scores."""

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
    """Build a model of a Unigram tokenizer.json with a precompiled normalizer or none."""
    from sentencepiece import sentencepiece_model_pb2 as format

    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    model, normalizer = content["model"], content.get("normalizer") or {}
    if model.get("type") != "Unigram":
        raise Unfit("only Unigram")
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    charsmaps = [step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled"]
    if len(charsmaps) != len(steps):
        raise Unfit("a normalizer other than Precompiled")
    proto = format.ModelProto()
    special = {token["content"] for token in content["added_tokens"]}
    kinds = format.ModelProto.SentencePiece
    for index, (piece, score) in enumerate(model["vocab"]):
        kind = kinds.UNKNOWN if index == model["unk_id"] else kinds.CONTROL if piece in special else kinds.NORMAL
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = format.TrainerSpec.UNIGRAM
    proto.trainer_spec.unk_id, proto.trainer_spec.bos_id = model["unk_id"], -1
    proto.trainer_spec.eos_id = proto.trainer_spec.pad_id = -1
    proto.trainer_spec.unk_piece = model["vocab"][model["unk_id"]][0]
    proto.normalizer_spec.precompiled_charsmap = base64.b64decode(charsmaps[0]) if charsmaps else b""
    return Sentencepiece(proto.SerializeToString())
