//! Metaspace for columns: a space stands for the replacement, so that texts stay short, and pretokens begin at spaces.
//!
//! What the text itself has of the replacement becomes a space, too: for Metaspace they are the same. Models read spaces
//! as the replacement (`Input::Spaces`).

use crate::spec::PrependScheme;

/// A Metaspace that cuts.
pub struct Marks {
    mark: String,
    finder: memchr::memmem::Finder<'static>,
    scheme: PrependScheme,
}

impl Marks {
    /// Build for a replacement other than a space.
    pub fn new(replacement: char, scheme: PrependScheme) -> Marks {
        let mark = replacement.to_string();
        Marks { finder: memchr::memmem::Finder::new(mark.as_bytes()).into_owned(), mark, scheme }
    }

    /// Write a piece with spaces for marks, and with the one that is put in front.
    pub fn write_piece(&self, piece: &str, is_at_start: bool, buffer: &mut Vec<u8>) {
        let is_prepended = match self.scheme {
            PrependScheme::Always => true,
            PrependScheme::First => is_at_start,
            PrependScheme::Never => false,
        };
        if is_prepended && !piece.starts_with(' ') && !piece.starts_with(&self.mark) {
            buffer.push(b' ');
        }
        write_spaces(&self.finder, piece, buffer);
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

/// Write a text with a space for each mark, which the finder looks for.
pub fn write_spaces(mark: &memchr::memmem::Finder, text: &str, buffer: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut done = 0;
    for place in mark.find_iter(bytes) {
        buffer.extend_from_slice(&bytes[done..place]);
        buffer.push(b' ');
        done = place + mark.needle().len();
    }
    buffer.extend_from_slice(&bytes[done..]);
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
        let always = Marks::new('▁', PrependScheme::Always);
        assert_eq!(written(&always, &["a b▁c", "▁d"]), [" a", " b", " c", " d"]);
        let first = Marks::new('▁', PrependScheme::First);
        assert_eq!(written(&first, &["a  b", "c"]), [" a", " ", " b", "c"]);
    }
}
