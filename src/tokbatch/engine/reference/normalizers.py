"""What each normalizer of tokenizer.json does to a text, on two roads.

`normalize` gives the text alone, fast. `normalize_aligned` is the definition: it also says which characters of the
document each character comes from. Each class has both; a test holds the two together for all of them.

The larger ones have a module of their own: `normal_forms.py` (NFC and its kind) and `charsmap.py` (Precompiled).
Which sets of characters are meant stands in `spec/unicode/`. Next: `pre_tokenizers.py`.
"""

# What the methods do is said once, in the base class.
# ruff: noqa: D102

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokbatch.engine.reference.aligned_text import AlignedText
from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER, to_byte_alphabet
from tokbatch.engine.reference.character_patterns import CharacterPattern, LazyTable
from tokbatch.engine.reference.charsmap import CharacterMap
from tokbatch.engine.reference.normal_forms import NormalForm, normal_form
from tokbatch.engine.reference.patterns import compile_pattern
from tokbatch.spec import normalizers as specs
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.regex_syntax import parse
from tokbatch.spec.regex_tree import minimum_length
from tokbatch.spec.unicode import CodePointSet, combining_classes, mapping_named, set_named


class Normalizer:
    """A normalizer at work; this one, for a file that has none, changes nothing."""

    needs_alignment = False
    """Whether what comes after may depend on alignments, so that the string road must not be taken from here on.

    It is so where text can be put in front of the first character of the document (see `aligned_text.py`).
    """

    def normalize(self, text: str) -> str:
        """Give the normalized text."""
        return text

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        """Give the normalized text with its alignments."""
        return text


class _Characterwise(Normalizer):
    """Replace each character by a text of its own, which is never empty."""

    def __init__(self, function: Callable[[str], str]):
        self._table = LazyTable(function)

    def normalize(self, text: str) -> str:
        return text.translate(self._table)

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        table = self._table
        normalized = text.text.translate(table)
        if len(normalized) == len(text.text):
            return text.with_text(normalized)
        replacements = (table[ord(character)] for character in text.text)
        return text.transform(
            (part, 1 if index else 0) for replacement in replacements for index, part in enumerate(replacement)
        )


class Lowercase(_Characterwise):
    """Lower each character by itself: a final sigma is like any other."""

    def __init__(self) -> None:
        mapping = mapping_named("lowercase")
        super().__init__(lambda character: mapping.get(ord(character), character))

    def normalize(self, text: str) -> str:
        return text.lower() if text.isascii() else text.translate(self._table)


class ByteLevel(_Characterwise):
    """Write each byte of a character as a character of the byte alphabet."""

    def __init__(self) -> None:
        super().__init__(lambda character: "".join(BYTE_TO_CHARACTER[byte] for byte in character.encode()))

    def normalize(self, text: str) -> str:
        return to_byte_alphabet(text)


class _SetApart(_Characterwise):
    """Put a space on both sides of each character of a set (BertNormalizer, for Chinese)."""

    def __init__(self, points: CodePointSet):
        super().__init__(lambda character: f" {character} " if ord(character) in points else character)
        self._pattern = CharacterPattern("[{points}]", points=points)

    def normalize(self, text: str) -> str:
        return text.translate(self._table) if self._pattern.occurs_in(text) else text


class _Drop(Normalizer):
    """Drop the characters of a set, which are charged to the character before them."""

    def __init__(self, points: CodePointSet):
        self._one = CharacterPattern("[{points}]", points=points)
        self._run = CharacterPattern("[{points}]+", points=points)

    def normalize(self, text: str) -> str:
        return self._run.for_text(text).sub("", text)

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        old = text.text
        if text.has_plain_start:
            spans = self._run.spans(old)
            return text.replace(spans, "") if spans else text
        dropped = [start for start, _ in self._one.spans(old)]
        kept = sorted(set(range(len(old))).difference(dropped))
        if not kept:
            # The oracle counts what it drops at the start only once something follows.
            return text.transform(())
        following = [*kept[1:], len(old)]
        changes = [(old[at], at + 1 - after) for at, after in zip(kept, following, strict=True)]
        return text.transform(changes, kept[0])


class _Map(Normalizer):
    """Replace characters one for one."""

    def __init__(self, table: dict[int, str]):
        self._table = table

    def normalize(self, text: str) -> str:
        return text.translate(self._table)

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        return text.with_text(text.text.translate(self._table))


class UnicodeForm(Normalizer):
    """NFC, NFD, NFKC or NFKD."""

    def __init__(self, form: NormalForm):
        self._form = form

    def normalize(self, text: str) -> str:
        return self._form.apply(text)

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        if not text.has_plain_start:
            return text.transform(self._form.changes(text.text))
        runs = self._form.unstable_runs(text.text)
        return text.transform_runs((a, b, self._form.changes(text.text[a:b])) for a, b in runs) if runs else text


class Strip(Normalizer):
    """Remove whitespace at the ends."""

    def __init__(self, left: bool, right: bool):
        self._left, self._right = left, right
        self._whitespace = "".join(map(chr, set_named("whitespace")))

    def normalize(self, text: str) -> str:
        if self._left:
            text = text.lstrip(self._whitespace)
        return text.rstrip(self._whitespace) if self._right else text

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        if self._left and self._right:
            return self._stripped(text, True, True)
        if self._left:
            return self._stripped(text, True, False)
        return self._stripped(text, False, True) if self._right else text

    def _stripped(self, text: AlignedText, left: bool, right: bool) -> AlignedText:
        old = text.text
        leading = len(old) - len(old.lstrip(self._whitespace)) if left else 0
        trailing = len(old) - len(old.rstrip(self._whitespace)) if right else 0
        if not leading and not trailing:
            return text
        return text.transform([(character, 0) for character in old[leading : len(old) - trailing]], leading)


class Prepend(Normalizer):
    """Put a text in front of a text that is not empty."""

    def __init__(self, prefix: str):
        self._prefix = prefix
        # The first character loses its alignment then.
        self.needs_alignment = not prefix

    def normalize(self, text: str) -> str:
        return self._prefix + text if text else text

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        return text.prepend(self._prefix)


class Replace(Normalizer):
    """Replace each match of a pattern by a text."""

    def __init__(self, spec: specs.Replace, where: str):
        self._content = spec.content
        self._literal = spec.pattern.string
        self._pattern = compile_pattern(spec.pattern, where)
        self.needs_alignment = spec.content != "" and _can_be_empty(spec.pattern, where)

    def normalize(self, text: str) -> str:
        if self._literal:
            return text.replace(self._literal, self._content)
        parts: list[str] = []
        done = 0
        for start, end in self._spans(text):
            parts += (text[done:start], self._content)
            done = end
        return "".join(parts) + text[done:]

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        spans = self._spans(text.text)
        return text.replace(spans, self._content) if spans else text

    def _spans(self, text: str) -> Sequence[tuple[int, int]]:
        # An empty text is left alone, also by a pattern that would match it.
        return self._pattern.spans(text) if text else ()


def _can_be_empty(pattern: Pattern, where: str) -> bool:
    return not pattern.string if pattern.regex is None else minimum_length(parse(pattern.regex, where)) == 0


class Precompiled(Normalizer):
    """Apply sentencepiece's character map."""

    def __init__(self, character_map: CharacterMap):
        self._map = character_map

    def normalize(self, text: str) -> str:
        return self._map.apply(text)

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        changes = self._map.changes(text.text)
        return text if changes is None else text.transform(changes)


class Chain(Normalizer):
    """One after the other."""

    def __init__(self, parts: Sequence[Normalizer]):
        self._parts = parts
        self.needs_alignment = any(part.needs_alignment for part in parts)

    def normalize(self, text: str) -> str:
        if self.needs_alignment:
            return self.normalize_aligned(AlignedText.from_text(text)).text
        for part in self._parts:
            text = part.normalize(text)
        return text

    def normalize_aligned(self, text: AlignedText) -> AlignedText:
        for part in self._parts:
            text = part.normalize_aligned(text)
        return text


class BertNormalizer(Chain):
    """Clean, set Chinese apart, strip accents, lowercase: steps that mostly look at one character at a time.

    So the string road does them all in one pass over a table. That is right unless two marks that are kept could
    change places under NFD; then it takes step after step.
    """

    def __init__(self, spec: specs.BertNormalizer):
        parts: list[Normalizer] = []
        self._kept_marks: CharacterPattern | None = None
        if spec.clean_text:
            parts += (_Drop(set_named("bert_control")), _Map(dict.fromkeys(set_named("whitespace"), " ")))
        if spec.handle_chinese_chars:
            parts.append(_SetApart(set_named("chinese")))
        if spec.lowercase if spec.strip_accents is None else spec.strip_accents:
            form, accents = normal_form(compatible=False, composed=False), set_named("mark_nonspacing")
            parts += (UnicodeForm(form), _Drop(accents))
            marks = CodePointSet.from_ranges((code_point, code_point) for code_point in combining_classes())
            self._kept_marks = CharacterPattern("[{marks}]", marks=marks - accents)
        if spec.lowercase:
            parts.append(Lowercase())
        super().__init__(parts)
        self._table = LazyTable(super().normalize)

    def normalize(self, text: str) -> str:
        if self._kept_marks is not None and not text.isascii() and self._kept_marks.occurs_in(text):
            return super().normalize(text)
        return text.translate(self._table)


# Sentencepiece's nmt rule, as the oracle has it: 0x8F and 0x9F of all the C1 controls, and no U+00A0.
_NMT_DROPPED = CodePointSet.from_ranges(
    [(0x01, 0x08), (0x0B, 0x0B), (0x0E, 0x1F), (0x7F, 0x7F), (0x8F, 0x8F), (0x9F, 0x9F)]
)
_NMT_SPACES = CodePointSet.from_ranges([(0x1680, 0x1680), (0x200B, 0x200F), (0x2028, 0x2029), (0x2581, 0x2581)])
_NMT_SPACES |= CodePointSet.from_characters("\t\n\f\r\ufeff\ufffd")


def build_normalizer(spec: specs.Normalizer | None, where: str = "normalizer") -> Normalizer:
    """Build the normalizer of a spec. `where` is its JSON path, for errors."""
    match spec:
        case None:
            return Normalizer()
        case specs.BertNormalizer():
            return BertNormalizer(spec)
        case specs.Strip(strip_left, strip_right):
            return Strip(strip_left, strip_right)
        case specs.StripAccents():
            return _Drop(set_named("combining_mark"))
        case specs.NFC() | specs.NFD() | specs.NFKC() | specs.NFKD():
            compatible = isinstance(spec, specs.NFKC | specs.NFKD)
            return UnicodeForm(normal_form(compatible, composed=isinstance(spec, specs.NFC | specs.NFKC)))
        case specs.Lowercase():
            return Lowercase()
        case specs.Nmt():
            return Chain([_Drop(_NMT_DROPPED), _Map(dict.fromkeys(_NMT_SPACES, " "))])
        case specs.Precompiled(charsmap):
            return Precompiled(CharacterMap(charsmap, where))
        case specs.Replace():
            return Replace(spec, where)
        case specs.Prepend(prefix):
            return Prepend(prefix)
        case specs.ByteLevel():
            return ByteLevel()
        case specs.Sequence(parts):
            return Chain([build_normalizer(part, f"{where}.normalizers[{index}]") for index, part in enumerate(parts)])
