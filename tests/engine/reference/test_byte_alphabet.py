from tokbatch.engine.reference.byte_alphabet import BYTE_TO_CHARACTER, CHARACTER_TO_BYTE, to_byte_alphabet


def test_alphabet_is_that_of_the_oracle(oracle):
    assert set(BYTE_TO_CHARACTER.values()) == set(oracle.pre_tokenizers.ByteLevel.alphabet())


def test_each_byte_has_a_character_of_its_own():
    assert sorted(BYTE_TO_CHARACTER) == list(range(256))
    assert {character: byte for byte, character in BYTE_TO_CHARACTER.items()} == CHARACTER_TO_BYTE
    assert len(CHARACTER_TO_BYTE) == 256


def test_texts_are_written_as_the_oracle_writes_them(oracle):
    normalizer = oracle.normalizers.ByteLevel()
    # Every byte that UTF-8 uses occurs in one of these.
    texts = [
        chr(point)
        for point in (
            *range(0x900),
            *range(0x900, 0xD800, 64),
            *range(0xE000, 0x10000, 64),
            *range(0x10000, 0x110000, 4096),
        )
    ]
    text = "".join(texts)
    used = set(text.encode())

    assert used == set(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}
    assert to_byte_alphabet(text) == normalizer.normalize_str(text)
    assert to_byte_alphabet("") == ""
