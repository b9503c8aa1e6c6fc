//! Metaspace for columns: a space stands for the replacement, so that texts stay short, and pretokens begin at spaces.
//!
//! What the text itself has of the replacement becomes a space, too: for Metaspace they are the same. Models read spaces
//! as the replacement (`Input::Spaces`).

use crate::character_table::{set_named, CharacterSet};
use crate::spec::PrependScheme;

/// A Metaspace that cuts, alone or behind a WhitespaceSplit.
pub struct Marks {
    mark: String,
    finder: memchr::memmem::Finder<'static>,
    scheme: PrependScheme,
    /// With a WhitespaceSplit before it, each word is a piece, and the scheme is `Always`.
    words: Option<&'static CharacterSet>,
}

impl Marks {
    /// Build for a replacement other than a space. `splits_words`: behind a WhitespaceSplit.
    pub fn new(replacement: char, scheme: PrependScheme, splits_words: bool) -> Marks {
        let mark = replacement.to_string();
        let finder = memchr::memmem::Finder::new(mark.as_bytes()).into_owned();
        Marks { finder, mark, scheme, words: splits_words.then(|| set_named("whitespace")) }
    }

    /// Write a piece with spaces for marks, and with those that are put in front.
    pub fn write_piece(&self, piece: &str, is_at_start: bool, buffer: &mut Vec<u8>) {
        let Some(whitespace) = self.words else {
            let is_prepended = match self.scheme {
                PrependScheme::Always => true,
                PrependScheme::First => is_at_start,
                PrependScheme::Never => false,
            };
            if is_prepended && !piece.starts_with(' ') && !piece.starts_with(&self.mark) {
                buffer.push(b' ');
            }
            return self.write(piece, buffer);
        };
        buffer.reserve(piece.len() + piece.len() / 8);
        let has_marks = self.finder.find(piece.as_bytes()).is_some();
        let mut at = 0;
        while at < piece.len() {
            let end = at + word_length(&piece[at..], whitespace);
            if at < end {
                let word = &piece[at..end];
                if !word.starts_with(&self.mark) {
                    buffer.push(b' ');
                }
                if has_marks {
                    self.write(word, buffer);
                } else {
                    buffer.extend_from_slice(word.as_bytes());
                }
            }
            at = end + piece[end..].chars().next().map_or(1, char::len_utf8);
        }
    }

    fn write(&self, text: &str, buffer: &mut Vec<u8>) {
        let bytes = text.as_bytes();
        let mut done = 0;
        for place in self.finder.find_iter(bytes) {
            buffer.extend_from_slice(&bytes[done..place]);
            buffer.push(b' ');
            done = place + self.mark.len();
        }
        buffer.extend_from_slice(&bytes[done..]);
    }

    /// Find where pretokens begin: at pieces, which follow each other without gaps, and at spaces.
    pub fn cut(text: &[u8], pieces: &[(usize, usize)], starts: &mut Vec<u32>) {
        starts.clear();
        for &(start, end) in pieces {
            if text[start] != b' ' {
                starts.push(start as u32);
            }
            starts.extend(memchr::memchr_iter(b' ', &text[start..end]).map(|place| (start + place) as u32));
        }
    }
}

/// Bytes up to the next whitespace.
fn word_length(text: &str, whitespace: &CharacterSet) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            // No ASCII character above the space is whitespace.
            0x21..=0x7F => at += 1,
            _ => match text[at..].chars().next() {
                Some(character) if !whitespace.contains(character) => at += character.len_utf8(),
                _ => break,
            },
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(marks: &Marks, pieces: &[&str]) -> Vec<String> {
        let (mut buffer, mut places, mut starts) = (vec![], vec![], vec![]);
        for (number, piece) in pieces.iter().enumerate() {
            let start = buffer.len();
            marks.write_piece(piece, number == 0, &mut buffer);
            if start < buffer.len() {
                places.push((start, buffer.len()));
            }
        }
        Marks::cut(&buffer, &places, &mut starts);
        starts.push(buffer.len() as u32);
        let text = |bounds: &[u32]| String::from_utf8(buffer[bounds[0] as usize..bounds[1] as usize].to_vec()).unwrap();
        starts.windows(2).map(text).collect()
    }

    #[test]
    fn spaces_stand_for_marks() {
        let always = Marks::new('▁', PrependScheme::Always, false);
        assert_eq!(written(&always, &["a b▁c", "▁d"]), [" a", " b", " c", " d"]);
        let first = Marks::new('▁', PrependScheme::First, false);
        assert_eq!(written(&first, &["a  b", "c"]), [" a", " ", " b", "c"]);
    }

    #[test]
    fn words() {
        let words = Marks::new('▁', PrependScheme::Always, true);
        assert_eq!(written(&words, &[" a\n\u{2003}é▁b ▁c ", " \n", "d"]), [" a", " é", " b", " c", " d"]);
    }
}
