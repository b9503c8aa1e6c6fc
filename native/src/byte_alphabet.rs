//! The byte alphabet: the 256 printable characters that stand for bytes in byte-level tokenizers.
//!
//! Bytes that are printable in Latin-1 stand for themselves, the others for U+0100 onwards in order.

/// Whether the byte stands for itself.
const fn is_itself(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

const CHARACTERS: [u16; 256] = {
    let mut characters = [0u16; 256];
    let (mut byte, mut next) = (0, 256);
    while byte < 256 {
        if is_itself(byte as u8) {
            characters[byte] = byte as u16;
        } else {
            characters[byte] = next;
            next += 1;
        }
        byte += 1;
    }
    characters
};

/// The character that stands for a byte.
pub fn character_of(byte: u8) -> char {
    char::from_u32(u32::from(CHARACTERS[byte as usize])).expect("no surrogate is in the alphabet")
}

/// The byte that a character stands for.
pub fn byte_of(character: char) -> Option<u8> {
    match character as u32 {
        code @ 0..=0xFF => is_itself(code as u8).then_some(code as u8),
        code @ 0x100..=0x143 => (0..=255u8).find(|&byte| u32::from(CHARACTERS[byte as usize]) == code),
        _ => None,
    }
}

/// Write bytes in the alphabet.
pub fn write_into(bytes: &[u8], text: &mut String) {
    text.extend(bytes.iter().map(|&byte| character_of(byte)));
}

/// Read a string of the alphabet as bytes; None where it has another character.
pub fn read(text: &str) -> Option<Vec<u8>> {
    text.chars().map(byte_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_is_there_and_back() {
        assert_eq!(character_of(b' '), 'Ġ');
        for byte in 0..=255 {
            assert_eq!(byte_of(character_of(byte)), Some(byte));
        }
        assert_eq!(read("Ġa "), None);
    }
}
