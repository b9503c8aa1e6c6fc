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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tokbatch.errors import SpecError, UnsupportedError
from tokbatch.spec import decoders, normalizers, post_processors, pre_tokenizers
from tokbatch.spec.fields import (
    REQUIRED,
    Fields,
    OracleCrash,
    Taker,
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
from tokbatch.spec.json_text import Members, member, pairs_of
from tokbatch.spec.pattern import Pattern
from tokbatch.spec.refusals import refuse
from tokbatch.spec.regex_syntax import parse as parse_regex


@dataclass(frozen=True, slots=True)
class Inner:
    """Stands in a table for a taker that needs the reader: it reads components, or finds keys that are ignored."""

    build: Callable[[ComponentReader, Section], Taker[Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """How a class stands in the file. `checks_type`: the class looks at the `type` when classes are tried in order."""

    of: type[msgspec.Struct]
    checks_type: bool
    fields: dict[str, tuple[Any, Any]]

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
            name: (taker.build(self, section) if isinstance(taker, Inner) else taker, default)
            for name, (taker, default) in form.fields.items()
        }
        taken = take_fields(members, fields, where, self.ignored, section.refuse_repeated)
        if form.of in (pre_tokenizers.Metaspace, decoders.Metaspace):
            _settle_prepend_scheme(taken, where)
        return form.of(**taken)


def _repeats_type(section: Section, members: dict[str, Any]) -> bool:
    return section.refuse_repeated and isinstance(members, Members) and "type" in members.repeated


def _settle_prepend_scheme(taken: dict[str, Any], where: str) -> None:
    """Fold the older `add_prefix_space` into `prepend_scheme`, and drop `str_rep`."""
    if taken.pop("add_prefix_space") is False and taken["prepend_scheme"] != "never":
        raise SpecError(f'`add_prefix_space` is false but `prepend_scheme` is "{taken["prepend_scheme"]}"', where=where)
    del taken["str_rep"]
    taken["split"] = taken["split"] is not False


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


def _components(reader: ComponentReader, section: Section) -> Taker[Any]:
    return array(lambda value, where: reader.read(section, value, where))


_SEQUENCE_PIECE: Fields = {"id": (one_of("A", "B"), REQUIRED), "type_id": (u32, REQUIRED)}
_SPECIAL_TOKEN_PIECE: Fields = {"id": (text, REQUIRED), "type_id": (u32, REQUIRED)}
_TEMPLATE_TOKEN: Fields = {"id": (text, REQUIRED), "ids": (array(u32), REQUIRED), "tokens": (array(text), REQUIRED)}


def _template(reader: ComponentReader, section: Section) -> Taker[Any]:
    """Build the taker of an array of `{"Sequence": {...}}` and `{"SpecialToken": {...}}`."""

    def take(value: Any, where: str) -> post_processors.TemplatePiece:
        if isinstance(value, dict) and len(pairs_of(value)) == 1:
            ((kind, content),) = value.items()
            place = f"{where}.{kind}"
            if kind == "Sequence":
                taken = take_fields(an_object(content, place), _SEQUENCE_PIECE, place, reader.ignored, True)
                return post_processors.SequencePiece(**taken)
            if kind == "SpecialToken":
                taken = take_fields(an_object(content, place), _SPECIAL_TOKEN_PIECE, place, reader.ignored, True)
                return post_processors.SpecialTokenPiece(**taken)
        raise wrong(value, 'an object with "Sequence" or "SpecialToken"', where)

    return array(take)


def _template_tokens(reader: ComponentReader, section: Section) -> Taker[Any]:
    """Build the taker of a template's special tokens. Of a repeated key the last counts, but all must be valid."""

    def take(value: Any, where: str) -> dict[str, post_processors.TemplateToken]:
        if not isinstance(value, dict):
            raise wrong(value, "an object", where)
        tokens = {}
        for key, item in pairs_of(value):
            place = member(where, key)
            taken = take_fields(an_object(item, place), _TEMPLATE_TOKEN, place, reader.ignored, True)
            tokens[key] = post_processors.TemplateToken(**taken)
        return tokens

    return take


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
    Form(normalizers.Sequence, False, {"normalizers": (Inner(_components), REQUIRED)}),
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
    Form(pre_tokenizers.Sequence, True, {"pretokenizers": (Inner(_components), REQUIRED)}),
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
                "single": (Inner(_template), REQUIRED),
                "pair": (Inner(_template), REQUIRED),
                "special_tokens": (Inner(_template_tokens), REQUIRED),
            },
        ),
        Form(post_processors.Sequence, True, {"processors": (Inner(_components), REQUIRED)}),
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
    Form(decoders.Sequence, True, {"decoders": (Inner(_components), REQUIRED)}),
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
