"""Normalizers, pre-tokenizers, post-processors and decoders, read as the oracle reads them.

The oracle tries classes in a fixed order when the `type` does not settle the matter: when there is none, when it is
repeated, for all post-processors, and for two types whose spelling its own table does not have (`BertNormalizer`,
`CharDelimiterSplit`). Then the first class whose fields fit wins, and many classes do not look at the `type` at all:
`{"type": "BertProcessing", "sep": ..., "cls": ..., "trim_offsets": ..., "add_prefix_space": ...}` is a
`RobertaProcessing`. That is copied here. A `type` that no class of the section has is refused by name, although the
oracle would load it when the fields happen to fit some class.

The tables below are the whole format of the four sections, but for the values' types, which `fields.py` has.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import msgspec

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec import decoders, normalizers, post_processors, pre_tokenizers
from tokbatch.spec.fields import (
    REQUIRED,
    Fields,
    OracleCrash,
    an_object,
    array,
    boolean,
    character,
    one_of,
    optional,
    show,
    take_fields,
    text,
    token_and_id,
    u32,
    usize,
    wrong,
)
from tokbatch.spec.json_text import Members, pairs_of
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.refusals import refuse
from tokbatch.spec.regex_syntax import parse as parse_regex


@dataclass(frozen=True, slots=True)
class Form:
    """How a class stands in the file. `checks_type`: the class looks at the `type` when classes are tried in order."""

    of: type[msgspec.Struct]
    checks_type: bool
    fields: Fields

    @property
    def name(self) -> str:
        """The `type` of the class."""
        return str(self.of.__struct_config__.tag)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the file. `settled` maps the types that decide alone to their class."""

    name: str
    forms: tuple[Form, ...]
    settled: dict[str, Form]
    refuse_repeated: bool = False

    def known_types(self) -> set[str]:
        """All the types that a file may name here."""
        return {form.name for form in self.forms} | self.settled.keys()


class ComponentReader:
    """Reads components; collects the JSON paths of the keys that are ignored."""

    def __init__(self) -> None:
        self.ignored: list[str] = []

    def read(self, section: Section, value: Any, where: str) -> Any:
        """Read one component, those nested in it included."""
        members = an_object(value, where)
        given = members.get("type")
        if "type" in members and (type(given) is not str or given not in section.known_types()):
            raise refuse(
                "unknown type",
                f"no {section.name} has the type {show(given)}",
                f"{where}.type",
                f"known are {', '.join(sorted(section.known_types()))}",
            )
        repeated = isinstance(members, Members) and "type" in members.repeated
        settled = None if repeated or given is None else section.settled.get(given)
        if settled is not None:
            return self._read_form(section, settled, members, where)
        return self._read_first_that_fits(section, members, given, where)

    def _read_first_that_fits(self, section: Section, members: dict[str, Any], given: str | None, where: str) -> Any:
        problem = None
        for form in section.forms:
            if form.checks_type and (given != form.name or _repeats_type(section, members)):
                continue
            if form.of is normalizers.Precompiled:
                continue  # The oracle asks for a borrowed string there, which these values never are.
            ignored_before = len(self.ignored)
            try:
                return self._read_form(section, form, members, where)
            except UnsupportedError:
                raise
            except SpecError as error:
                del self.ignored[ignored_before:]
                if form.name == given:
                    problem = error
        if problem is not None:
            raise problem
        keys = ", ".join(f"`{key}`" for key in members) or "none"
        raise SpecError(f"no {section.name} has these fields: {keys}", where=where, hint="give it a `type`")

    def _read_form(self, section: Section, form: Form, members: dict[str, Any], where: str) -> Any:
        fields = {
            name: (self._items(section) if taker is _nested else taker, default)
            for name, (taker, default) in form.fields.items()
        }
        taken = take_fields(members, fields, where, self.ignored, section.refuse_repeated)
        if form.of in (pre_tokenizers.Metaspace, decoders.Metaspace):
            _settle_prepend_scheme(taken, where)
        return form.of(**taken)

    def _items(self, section: Section) -> Any:
        return array(lambda value, where: self.read(section, value, where))


def _repeats_type(section: Section, members: dict[str, Any]) -> bool:
    return section.refuse_repeated and isinstance(members, Members) and "type" in members.repeated


def _settle_prepend_scheme(taken: dict[str, Any], where: str) -> None:
    """Fold the older `add_prefix_space` into `prepend_scheme`, and drop `str_rep`."""
    if taken.pop("add_prefix_space") is False and taken["prepend_scheme"] != "never":
        raise SpecError(f'`add_prefix_space` is false but `prepend_scheme` is "{taken["prepend_scheme"]}"', where=where)
    del taken["str_rep"]
    taken["split"] = taken["split"] is not False


def _nested(value: Any, where: str) -> Any:
    raise AssertionError("replaced by a reader of the section")


def pattern(value: Any, where: str) -> Pattern:
    """Take `{"String": ...}` or `{"Regex": ...}`; the expression must be one that can be compiled exactly."""
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= {"String", "Regex"}:
        raise wrong(value, 'an object with "String" or "Regex"', where)
    ((kind, content),) = value.items()
    content = text(content, f"{where}.{kind}")
    if kind == "String":
        return Pattern(string=content)
    parse_regex(content, f"{where}.Regex")  # An expression is refused by name now, not at the first text.
    return Pattern(regex=content)


def charsmap(value: Any, where: str) -> bytes:
    """Take sentencepiece's character map: the trie's size in bytes (u32), the trie (u32 each), texts in UTF-8."""
    problem = None
    content = b""
    try:
        content = base64.b64decode(text(value, where).encode("ascii"), validate=True)
        size = int.from_bytes(content[:4], "little") // 4 * 4
        if len(content) < 4 or len(content) < 4 + size:
            problem = "it is shorter than it says"
        content[4 + size :].decode()
    except (binascii.Error, UnicodeError) as error:
        problem = str(error)
    except SpecError as error:
        raise OracleCrash(error) from None
    if problem is not None:
        raise OracleCrash(SpecError(f"{show(value)} is no character map: {problem}", where=where))
    return content


def _sequence_piece(value: Any, where: str) -> post_processors.SequencePiece:
    fields: Fields = {"id": (one_of("A", "B"), REQUIRED), "type_id": (u32, REQUIRED)}
    return post_processors.SequencePiece(**take_fields(an_object(value, where), fields, where, [], True))


def _special_token_piece(value: Any, where: str) -> post_processors.SpecialTokenPiece:
    fields: Fields = {"id": (text, REQUIRED), "type_id": (u32, REQUIRED)}
    return post_processors.SpecialTokenPiece(**take_fields(an_object(value, where), fields, where, [], True))


def template_piece(value: Any, where: str) -> post_processors.TemplatePiece:
    """Take `{"Sequence": {...}}` or `{"SpecialToken": {...}}`."""
    if isinstance(value, dict) and len(pairs_of(value)) == 1:
        ((kind, content),) = value.items()
        if kind == "Sequence":
            return _sequence_piece(content, f"{where}.Sequence")
        if kind == "SpecialToken":
            return _special_token_piece(content, f"{where}.SpecialToken")
    raise wrong(value, 'an object with "Sequence" or "SpecialToken"', where)


def template_tokens(value: Any, where: str) -> dict[str, post_processors.TemplateToken]:
    """Take the special tokens of a template. Where a key is repeated the last one counts, but all must be valid."""
    if not isinstance(value, dict):
        raise wrong(value, "an object", where)
    fields: Fields = {"id": (text, REQUIRED), "ids": (array(u32), REQUIRED), "tokens": (array(text), REQUIRED)}
    taken = {}
    for key, item in pairs_of(value):
        place = f"{where}[{show(key)}]"
        taken[key] = post_processors.TemplateToken(**take_fields(an_object(item, place), fields, place, [], True))
    return taken


_behavior = one_of("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_byte_level: Fields = {
    "add_prefix_space": (boolean, REQUIRED),
    "trim_offsets": (boolean, REQUIRED),
    "use_regex": (boolean, True),
}
_metaspace: Fields = {
    "replacement": (character, REQUIRED),
    "add_prefix_space": (optional(boolean), None),
    "prepend_scheme": (one_of("first", "never", "always"), "always"),
    "split": (optional(boolean), None),
    "str_rep": (optional(text), None),
}
_replace: Fields = {"pattern": (pattern, REQUIRED), "content": (text, REQUIRED)}

_normalizer_forms = (
    Form(
        normalizers.BertNormalizer,
        False,
        {
            "clean_text": (boolean, REQUIRED),
            "handle_chinese_chars": (boolean, REQUIRED),
            "strip_accents": (optional(boolean), None),
            "lowercase": (boolean, REQUIRED),
        },
    ),
    Form(normalizers.Strip, False, {"strip_left": (boolean, REQUIRED), "strip_right": (boolean, REQUIRED)}),
    Form(normalizers.StripAccents, True, {}),
    Form(normalizers.NFC, True, {}),
    Form(normalizers.NFD, True, {}),
    Form(normalizers.NFKC, True, {}),
    Form(normalizers.NFKD, True, {}),
    Form(normalizers.Sequence, False, {"normalizers": (_nested, REQUIRED)}),
    Form(normalizers.Lowercase, True, {}),
    Form(normalizers.Nmt, True, {}),
    Form(normalizers.Precompiled, False, {"precompiled_charsmap": (charsmap, REQUIRED)}),
    Form(normalizers.Replace, False, _replace),
    Form(normalizers.Prepend, False, {"prepend": (text, REQUIRED)}),
    Form(normalizers.ByteLevel, True, {}),
)
NORMALIZERS = Section(
    "normalizer",
    _normalizer_forms,
    {form.name if form.name != "BertNormalizer" else "Bert": form for form in _normalizer_forms},
)

_pre_tokenizer_forms = (
    Form(pre_tokenizers.BertPreTokenizer, True, {}),
    Form(pre_tokenizers.ByteLevel, True, _byte_level),
    Form(pre_tokenizers.CharDelimiterSplit, True, {"delimiter": (character, REQUIRED)}),
    Form(pre_tokenizers.Metaspace, True, _metaspace),
    Form(pre_tokenizers.Whitespace, True, {}),
    Form(pre_tokenizers.Sequence, True, {"pretokenizers": (_nested, REQUIRED)}),
    Form(
        pre_tokenizers.Split,
        True,
        {"pattern": (pattern, REQUIRED), "behavior": (_behavior, REQUIRED), "invert": (boolean, REQUIRED)},
    ),
    Form(pre_tokenizers.Punctuation, True, {"behavior": (_behavior, "Isolated")}),
    Form(pre_tokenizers.WhitespaceSplit, True, {}),
    Form(pre_tokenizers.Digits, True, {"individual_digits": (boolean, REQUIRED)}),
    Form(pre_tokenizers.UnicodeScripts, True, {}),
    Form(pre_tokenizers.FixedLength, True, {"length": (usize, 5)}),
)
PRE_TOKENIZERS = Section(
    "pre-tokenizer",
    _pre_tokenizer_forms,
    {form.name: form for form in _pre_tokenizer_forms if form.of is not pre_tokenizers.CharDelimiterSplit},
)

_sep_and_cls: Fields = {"sep": (token_and_id, REQUIRED), "cls": (token_and_id, REQUIRED)}
POST_PROCESSORS = Section(
    "post-processor",
    (
        Form(
            post_processors.RobertaProcessing,
            False,
            {**_sep_and_cls, "trim_offsets": (boolean, REQUIRED), "add_prefix_space": (boolean, REQUIRED)},
        ),
        Form(post_processors.BertProcessing, False, _sep_and_cls),
        Form(post_processors.ByteLevel, True, _byte_level),
        Form(
            post_processors.TemplateProcessing,
            False,
            {
                "single": (array(template_piece), REQUIRED),
                "pair": (array(template_piece), REQUIRED),
                "special_tokens": (template_tokens, REQUIRED),
            },
        ),
        Form(post_processors.Sequence, True, {"processors": (_nested, REQUIRED)}),
    ),
    {},
    refuse_repeated=True,
)

_decoder_forms = (
    Form(decoders.BPEDecoder, False, {"suffix": (text, REQUIRED)}),
    Form(decoders.ByteLevel, True, _byte_level),
    Form(decoders.WordPiece, False, {"prefix": (text, REQUIRED), "cleanup": (boolean, REQUIRED)}),
    Form(decoders.Metaspace, True, _metaspace),
    Form(
        decoders.CTC,
        False,
        {"pad_token": (text, REQUIRED), "word_delimiter_token": (text, REQUIRED), "cleanup": (boolean, REQUIRED)},
    ),
    Form(decoders.Sequence, True, {"decoders": (_nested, REQUIRED)}),
    Form(decoders.Replace, False, _replace),
    Form(decoders.Fuse, True, {}),
    Form(
        decoders.Strip,
        False,
        {"content": (character, REQUIRED), "start": (usize, REQUIRED), "stop": (usize, REQUIRED)},
    ),
    Form(decoders.ByteFallback, True, {}),
)
DECODERS = Section("decoder", _decoder_forms, {form.name: form for form in _decoder_forms})
