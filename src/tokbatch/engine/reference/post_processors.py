"""Post-processors: the encodings of one text or two become one, with the tokens of the template around them.

Every post-processor takes a list of encodings to a list of encodings, and the list is joined at the end (see
`process`): so they can follow each other in a Sequence, where the second sees the pieces that the first one left.
Bert and Roberta count the pieces only: the first one is text A to them, and every other one text B.

The rules for overflowing pieces and type ids are the oracle's (processors/*.rs), and uneven: a Template numbers the
type ids of a text but not those of its overflowing pieces, Bert writes the special-tokens mask anew, and neither looks
at the overflowing pieces of overflowing pieces.
"""

from __future__ import annotations

from typing import Protocol

from tokbatch.engine.encoding import Encoding, merge_encodings
from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER
from tokbatch.errors import EncodeError
from tokbatch.spec import post_processors as spec
from tokbatch.spec.unicode import set_named

Affixes = tuple[tuple[int, ...], tuple[int, ...]]


class Step(Protocol):
    """One of the post-processors."""

    def added_tokens(self, is_pair: bool) -> int:
        """Give the number of tokens that it adds, as far as truncation makes room for them."""

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Give the pieces that the final encoding is joined from. The encodings given may be changed."""


class PostProcessor:
    """What the pipeline calls, around the post-processor of the file (None: there is none)."""

    def __init__(self, step: Step | None):
        self.step = step
        self._affixes = {add: self._find_affixes(add) for add in (False, True)}

    def added_tokens(self, is_pair: bool) -> int:
        """Give the number of tokens that truncation makes room for."""
        return 0 if self.step is None else self.step.added_tokens(is_pair)

    def process(self, encoding: Encoding, pair: Encoding | None, add_special_tokens: bool) -> Encoding:
        """Give the final encoding. Those given may be changed."""
        encodings = [encoding] if pair is None else [encoding, pair]
        if self.step is None:
            if pair is None:
                return encoding
            for i, each in enumerate(encodings):
                each.set_sequence_id(i)
            return merge_encodings(encodings)
        for i, each in enumerate(encodings):
            each.set_sequence_id(i)
            for piece in each.overflowing:
                piece.set_sequence_id(i)
            each.set_type_id(i)
        return merge_encodings(self.step.process_encodings(encodings, add_special_tokens))

    def single_affixes(self, add_special_tokens: bool = True) -> Affixes | None:
        """Give the ids before and after a single text; None where its ids do not stand there once and whole."""
        return self._affixes[add_special_tokens]

    def _find_affixes(self, add_special_tokens: bool) -> Affixes | None:
        marker = -1
        probe = Encoding.of_text([marker], [""], [(0, 0)], [0])
        try:
            ids = self.process(probe, None, add_special_tokens).ids
        except EncodeError:
            return None
        if ids.count(marker) != 1:
            return None
        place = ids.index(marker)
        return tuple(ids[:place]), tuple(ids[place + 1 :])


class Template:
    """Puts the texts and the special tokens in the order of a template."""

    def __init__(self, template: spec.TemplateProcessing):
        self.single = template.single
        self.pair = template.pair
        self.special_tokens = template.special_tokens

    def added_tokens(self, is_pair: bool) -> int:
        """Count the special tokens of the template."""
        pieces = self.pair if is_pair else self.single
        special = [piece.id for piece in pieces if isinstance(piece, spec.SpecialTokenPiece)]
        return sum(len(self.special_tokens[name].ids) for name in special if name in self.special_tokens)

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Give a piece for each piece of the template."""
        if len(encodings) not in (1, 2):
            raise EncodeError(f"a template is for one text or two, not {len(encodings)}", where="$.post_processor")
        pieces = []
        for piece in self.single if len(encodings) == 1 else self.pair:
            if isinstance(piece, spec.SequencePiece):
                sequence_id = 0 if piece.id == "A" else 1
                if sequence_id >= len(encodings):
                    raise EncodeError("the template for one text has a place for text B", where="$.post_processor")
                encoding = encodings[sequence_id]
                encoding.set_type_id(piece.type_id)
                encoding.set_sequence_id(sequence_id)
                pieces.append(encoding.copy())
            elif add_special_tokens:
                token = self.special_tokens.get(piece.id)
                if token is None:
                    raise EncodeError(
                        f"the template has no special token {piece.id!r}", where="$.post_processor.special_tokens"
                    )
                pieces.append(Encoding.of_special_tokens(token.ids, token.tokens, piece.type_id))
        return pieces


class Frame:
    """Puts tokens around each text, as Bert and Roberta do.

    The type id of the tokens around text B is `type_id_b`; None means that all type ids become 0.
    """

    def __init__(self, cls: tuple[str, int], sep: tuple[str, int], opens_b: bool, type_id_b: int | None):
        self.around_a = ([cls], [sep])
        self.around_b = ([sep] if opens_b else [], [sep])
        self.type_id_b = type_id_b

    def added_tokens(self, is_pair: bool) -> int:
        """Count the tokens around one text or two."""
        texts = [self.around_a, self.around_b] if is_pair else [self.around_a]
        return sum(len(before) + len(after) for before, after in texts)

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Give each text with the tokens around it."""
        if not add_special_tokens:
            return encodings
        return [self._framed(encoding, int(i > 0), True) for i, encoding in enumerate(encodings)]

    def _framed(self, encoding: Encoding, sequence_id: int, with_overflowing: bool) -> Encoding:
        before, after = self.around_b if sequence_id else self.around_a
        type_id = (self.type_id_b or 0) if sequence_id else 0
        text = encoding.part(0, len(encoding))
        text.special_tokens_mask = [0] * len(text)
        framed = Encoding.of_special_tokens(
            [token_id for _, token_id in before], [token for token, _ in before], type_id
        )
        framed.append(text)
        framed.append(
            Encoding.of_special_tokens([token_id for _, token_id in after], [token for token, _ in after], type_id)
        )
        framed.attention_mask = [1] * len(framed)
        if self.type_id_b is None:
            framed.set_type_id(0)
        framed.sequence_ranges = {sequence_id: (len(before), len(framed) - len(after))}
        if with_overflowing:
            framed.overflowing = [self._framed(piece, sequence_id, False) for piece in encoding.overflowing]
        return framed


class TrimOffsets:
    """Takes whitespace at the ends of byte-level tokens out of their offsets."""

    def __init__(self, trim_offsets: bool, add_prefix_space: bool):
        self.trim_offsets = trim_offsets
        self.add_prefix_space = add_prefix_space
        self.spaces = BYTE_TO_CHARACTER[ord(" ")] + "".join(map(chr, set_named("whitespace")))

    def added_tokens(self, is_pair: bool) -> int:
        """Give none."""
        return 0

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Trim the texts and their overflowing pieces."""
        if self.trim_offsets:
            for encoding in encodings:
                for piece in (encoding, *encoding.overflowing):
                    self._trim(piece)
        return encodings

    def _trim(self, encoding: Encoding) -> None:
        spaces = self.spaces
        for i, token in enumerate(encoding.tokens):
            leading = len(token) - len(token.lstrip(spaces))
            trailing = len(token) - len(token.rstrip(spaces))
            if not leading and not trailing:
                continue
            start, end = encoding.offsets[i]
            # One space at the very beginning is taken for the prefix space, which is not in the text.
            is_prefix_space = self.add_prefix_space and leading == 1 and (i == 0 or start == 0)
            if leading and not is_prefix_space:
                start = min(start + leading, end)
            if trailing and end >= trailing:
                end = max(end - trailing, start)
            encoding.offsets[i] = (start, end)


class ByteLevel(TrimOffsets):
    """Trims offsets, and counts the pieces as texts: after a Template the first one is text 0, the second text 1."""

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Trim, and number the pieces."""
        encodings = super().process_encodings(encodings, add_special_tokens)
        for i, encoding in enumerate(encodings):
            encoding.set_sequence_id(i)
        return encodings


class Roberta(Frame):
    """Trims offsets, sets the type ids of the texts to 0, then puts tokens around."""

    def __init__(self, roberta: spec.RobertaProcessing):
        super().__init__(roberta.cls, roberta.sep, opens_b=True, type_id_b=None)
        self.trim = TrimOffsets(roberta.trim_offsets, roberta.add_prefix_space)

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Trim, and give each text with the tokens around it."""
        encodings = self.trim.process_encodings(encodings, add_special_tokens)
        for encoding in encodings:
            encoding.set_type_id(0)
        return super().process_encodings(encodings, add_special_tokens)


class Sequence:
    """One after the other."""

    def __init__(self, steps: list[Step]):
        self.steps = steps

    def added_tokens(self, is_pair: bool) -> int:
        """Add up the tokens of the steps."""
        return sum(step.added_tokens(is_pair) for step in self.steps)

    def process_encodings(self, encodings: list[Encoding], add_special_tokens: bool) -> list[Encoding]:
        """Give what the last step makes of the pieces."""
        for step in self.steps:
            encodings = step.process_encodings(encodings, add_special_tokens)
        return encodings


def build_post_processor(processor: spec.PostProcessor | None) -> PostProcessor:
    """Build the post-processor that the spec describes."""
    return PostProcessor(None if processor is None else _build_step(processor))


def _build_step(processor: spec.PostProcessor) -> Step:
    if isinstance(processor, spec.BertProcessing):
        return Frame(processor.cls, processor.sep, opens_b=False, type_id_b=1)
    if isinstance(processor, spec.RobertaProcessing):
        return Roberta(processor)
    if isinstance(processor, spec.ByteLevel):
        return ByteLevel(processor.trim_offsets, processor.add_prefix_space)
    if isinstance(processor, spec.TemplateProcessing):
        return Template(processor)
    return Sequence([_build_step(step) for step in processor.processors])
