import pytest

from tokbatch.engine.reference.character_patterns import CharacterPattern
from tokbatch.spec.unicode import EMPTY, CodePointSet

ODD = CodePointSet.from_ranges([(0x41, 0x43), (0xE9, 0xE9), (0x4E00, 0x4E02), (0x1F600, 0x1F602)])


@pytest.mark.parametrize("text", ["xAByC", "xéAy", "x中丁A", "x\U0001f600\U0001f603A中é"])
def test_all_widths_find_the_members(text):
    inside = CharacterPattern("[{odd}]", odd=ODD)
    outside = CharacterPattern("[^{odd}]", odd=ODD)

    assert inside.texts(text) == [character for character in text if ord(character) in ODD]
    assert outside.texts(text) == [character for character in text if ord(character) not in ODD]
    assert inside.occurs_in(text)
    assert not inside.occurs_in("xyz")


def test_a_set_without_members_matches_nothing():
    assert CharacterPattern("[{none}]", none=EMPTY).texts("aé中") == []
    assert CharacterPattern("[^{none}]+", none=EMPTY).texts("aé中\n") == ["aé中\n"]


def test_characters_that_mean_something_in_a_bracket_are_only_themselves():
    special = CodePointSet.from_characters("^]\\-[")

    assert CharacterPattern("[{special}]", special=special).texts("a^b]c\\d-e[") == ["^", "]", "\\", "-", "["]
