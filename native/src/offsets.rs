//! From the bytes of a pretoken to the characters of the document: see `engine/reference/offsets.py` for the rules, and
//! for the three odd kinds of offsets that the oracle gives.

use crate::aligned_text::{AlignedText, CharacterIndex};

/// The characters and bytes of one document.
pub struct DocumentOffsets {
    index: CharacterIndex,
    bytes: usize,
    characters: usize,
}

impl DocumentOffsets {
    /// Look at a document.
    pub fn new(document: &str) -> DocumentOffsets {
        let index = CharacterIndex::of(document);
        DocumentOffsets { characters: index.character(document.len()), bytes: document.len(), index }
    }

    /// Turn byte offsets into character offsets, by the oracle's rule for those that are none.
    pub fn from_bytes(&self, start: usize, end: usize) -> (usize, usize) {
        if start >= self.bytes {
            return (start, end);
        }
        let first = self.index.character(start);
        if end < self.bytes {
            return (first, self.index.character(end));
        }
        let last = if end - 1 < self.bytes { self.index.character(end - 1) } else { first + 1 };
        (first, last + 1)
    }

    /// Character offsets, or byte offsets where they begin at the very end of the document.
    pub fn checked(&self, start: usize, end: usize) -> (usize, usize) {
        if start < self.characters {
            return (start, end);
        }
        (self.index.byte(start), self.index.byte(end))
    }
}

/// The offsets of tokens in one pretoken.
pub struct PretokenOffsets<'a> {
    document: &'a DocumentOffsets,
    piece: &'a AlignedText,
    index: CharacterIndex,
}

impl<'a> PretokenOffsets<'a> {
    /// Prepare the offsets of the tokens of one pretoken.
    pub fn new(document: &'a DocumentOffsets, piece: &'a AlignedText) -> PretokenOffsets<'a> {
        PretokenOffsets { document, piece, index: CharacterIndex::of(&piece.text) }
    }

    /// Turn a token's offsets in bytes of the pretoken into characters of the document.
    pub fn of_token(&self, start: usize, end: usize) -> (usize, usize) {
        if start == end {
            let place = self.document.index.byte(self.piece.start) + start;
            return self.document.from_bytes(place, place);
        }
        if start > end || end > self.piece.text.len() {
            return self.document.from_bytes(start, end);
        }
        let (first, last) = (self.index.character(start), self.index.character(end - 1));
        self.document.checked(self.piece.places[first].0, self.piece.places[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_characters() {
        let offsets = DocumentOffsets::new("aé文b");
        assert_eq!(offsets.from_bytes(1, 3), (1, 2));
        assert_eq!(offsets.from_bytes(3, 7), (2, 4));
        assert_eq!(offsets.from_bytes(3, 99), (2, 4));
        assert_eq!(offsets.from_bytes(9, 12), (9, 12));
        let piece = &AlignedText::of_text("aé文b", 0).slices([(1, 6)])[0];
        let places = PretokenOffsets::new(&offsets, piece);
        assert_eq!(places.of_token(0, 2), (1, 2));
        assert_eq!(places.of_token(1, 5), (1, 3));
        assert_eq!(places.of_token(2, 2), (2, 2));
    }
}
