"""Extended grapheme clusters, by the rules of Unicode Standard Annex 29 over the oracle's tables.

Only the normalizer `Precompiled` asks for them. The rules are written as one regular expression; its parts carry the
numbers that the annex gives them.
"""

from __future__ import annotations

from functools import cache

from tokbatch.engine.reference.character_patterns import CharacterPattern
from tokbatch.spec.unicode import CodePointSet, set_named

_SETS = {
    "control": "grapheme_control",  # CR and LF included
    "prepend": "grapheme_prepend",
    "spacing": "grapheme_spacing_mark",
    "pictographic": "grapheme_pictographic",
    "l": "grapheme_hangul_l",
    "v": "grapheme_hangul_v",
    "t": "grapheme_hangul_t",
    "lv": "grapheme_hangul_lv",
    "lvt": "grapheme_hangul_lvt",
    "flag": "grapheme_regional_indicator",
    "consonant": "grapheme_conjunct_consonant",
    "linker": "grapheme_conjunct_linker",
}
_JOINER = CodePointSet.from_characters("\u200d")

_CORE = "|".join(
    (
        "[{l}]*(?:[{v}]+|[{lv}][{v}]*|[{lvt}])[{t}]*|[{l}]+|[{t}]+",  # GB6 to GB8: Hangul
        "[{flag}][{flag}]",  # GB12, GB13
        "[{pictographic}](?:[{extend}]*\u200d[{pictographic}])*",  # GB11
        "[{consonant}](?:[{conjunct}]*[{linker}][{conjunct}{linker}]*[{consonant}])*",  # GB9c
        "[^{control}]",  # GB999
    )
)
# GB3 to GB5: nothing joins a control character but CR LF. GB9b, GB9, GB9a: what joins any core.
_CLUSTER = f"\r\n|[{{control}}]|[{{prepend}}]*(?:{_CORE})[{{extend}}\u200d{{spacing}}]*"


@cache
def _patterns() -> tuple[CharacterPattern, CharacterPattern]:
    sets = {name: set_named(section) for name, section in _SETS.items()}
    sets["extend"] = set_named("grapheme_extend") - _JOINER
    sets["conjunct"] = set_named("grapheme_conjunct_extend") - sets["linker"]
    return (
        CharacterPattern(_CLUSTER, **sets),
        CharacterPattern("\r\n|\u200d|[{extend}{spacing}{prepend}{l}{v}{t}{flag}]", **sets),
    )


def are_single_characters(text: str) -> bool:
    """Say whether each character is a cluster of its own. A quick look: it may say no without need."""
    return not _patterns()[1].occurs_in(text)


def graphemes(text: str) -> list[str]:
    r"""Cut a text into its clusters.

    >>> [len(cluster) for cluster in graphemes("e\u0301\r\n!")]
    [2, 2, 1]
    """
    return _patterns()[0].texts(text)
