//! A text that knows where each of its characters comes from: see `engine/reference/aligned_text.py`, oddities included.
//!
//! Positions in the document are characters, as there; positions in `text` are bytes. Where nobody wants offsets a text
//! is not tracked (`AlignedText::untracked`): the same stations, without the bookkeeping.

use crate::error::{Error, Result};

/// A piece of a document after some changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedText {
    /// The text.
    pub text: String,
    /// For each of its characters, where in the document what it comes from begins and ends. Empty where the text is not
    /// tracked.
    pub places: Vec<(usize, usize)>,
    /// Where what the piece covers of the document begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    is_tracked: bool,
}

/// What a change says of a character (see `AlignedText::transform`).
pub type Change = (char, isize);

impl AlignedText {
    /// Begin with an unchanged text that stands at character `start` of its document.
    pub fn of_text(text: &str, start: usize) -> AlignedText {
        let places: Vec<(usize, usize)> = text.chars().enumerate().map(|(i, _)| (start + i, start + i + 1)).collect();
        AlignedText { text: text.to_owned(), end: start + places.len(), places, start, is_tracked: true }
    }

    /// Begin with a text whose places nobody wants.
    pub fn untracked(text: String) -> AlignedText {
        AlignedText { text, places: vec![], start: 0, end: 0, is_tracked: false }
    }

    /// Whether places are kept.
    pub fn is_tracked(&self) -> bool {
        self.is_tracked
    }

    /// Whether none of the oddities of empty alignments applies.
    pub fn has_plain_start(&self) -> bool {
        self.start < self.end && self.places.first().is_some_and(|(start, end)| start < end)
    }

    /// Cut out pieces, given in bytes, with the original that they cover.
    pub fn slices(&self, spans: impl IntoIterator<Item = (usize, usize)>) -> Vec<AlignedText> {
        let index = CharacterIndex::new(self);
        spans.into_iter().map(|(first, last)| self.slice(&index, first, last)).collect()
    }

    fn slice(&self, index: &CharacterIndex, first: usize, last: usize) -> AlignedText {
        if !self.is_tracked {
            // Where it begins is not known, but whether that is the start of the document.
            let start = self.start + first;
            return AlignedText { start, ..AlignedText::untracked(self.text[first..last].to_owned()) };
        }
        let (from, to) = (index.character(first), index.character(last));
        let text = self.text[first..last].to_owned();
        match self.places[from..to] {
            [] => {
                AlignedText { text, places: vec![], start: self.start + from, end: self.start + from, is_tracked: true }
            }
            [..] => {
                let places = self.places[from..to].to_vec();
                let (start, end) = (places[0].0, places[places.len() - 1].1);
                AlignedText { text, places, start, end, is_tracked: true }
            }
        }
    }

    /// The whole as a slice of itself.
    pub fn whole(&self) -> AlignedText {
        self.slice(&CharacterIndex::new(self), 0, self.text.len())
    }

    /// Replace the text by (character, change) pairs, after dropping its first `initial_removed` characters.
    ///
    /// A change of 0 replaces the next character, 1 inserts one, which takes the alignment of the one before, and -n
    /// replaces the next character and drops the n that follow it.
    pub fn transform(self, changes: impl IntoIterator<Item = Change>, initial_removed: usize) -> Result<AlignedText> {
        let count = self.places.len();
        if !self.is_tracked {
            let text = changes.into_iter().map(|(character, _)| character).collect();
            return Ok(AlignedText { text, ..self });
        }
        let (first, last) = if self.has_plain_start() {
            (0, count)
        } else if self.start == self.end {
            (0, 0)
        } else if self.text.is_empty() {
            return Ok(self);
        } else {
            // The oracle asks which part of the text comes from the whole original, and overlooks empty alignments.
            (self.places.iter().position(|(start, end)| start < end).unwrap_or(count), count)
        };
        let mut making = Making::new(&self);
        making.copy(first);
        making.apply(last, changes, initial_removed)?;
        Ok(making.finished())
    }

    /// Put a text in front, which takes the alignment of the first character. An empty text stays empty.
    pub fn prepend(self, prefix: &str) -> Result<AlignedText> {
        let Some(first) = self.text.chars().next() else { return Ok(self) };
        if !self.is_tracked {
            return Ok(AlignedText { text: format!("{prefix}{}", self.text), ..self });
        }
        if prefix.is_empty() {
            let mut making = Making::new(&self);
            making.apply(1, [(first, 1)], 0)?;
            return Ok(making.finished());
        }
        let place = self.places[0];
        let mut places = vec![place; prefix.chars().count()];
        places.extend_from_slice(&self.places);
        Ok(AlignedText { text: format!("{prefix}{}", self.text), places, ..self })
    }

    /// Replace each of the spans (in bytes, in order, disjoint) by `content`.
    ///
    /// All of the content takes the alignment of the last character that it replaces; for an empty span, of the
    /// character before it.
    pub fn replace(self, spans: impl IntoIterator<Item = (usize, usize)>, content: &str) -> AlignedText {
        let index = CharacterIndex::new(&self);
        let mut making = Making::new(&self);
        for (first, last) in spans {
            making.copy_to(index.character(first), first);
            making.put(index.character(last), last, content);
        }
        making.finished()
    }

    /// Transform only the runs (first, last, changes), in bytes, in order and disjoint; each accounts for all that it
    /// replaces. The text must have a plain start.
    pub fn transform_runs<C>(self, runs: impl IntoIterator<Item = (usize, usize, C)>) -> Result<AlignedText>
    where
        C: IntoIterator<Item = Change>,
    {
        let index = CharacterIndex::new(&self);
        let mut making = Making::new(&self);
        for (first, last, changes) in runs {
            making.copy_to(index.character(first), first);
            making.apply(index.character(last), changes, 0)?;
        }
        Ok(making.finished())
    }
}

/// From bytes of a text to its characters.
pub struct CharacterIndex {
    /// Where characters begin, and the length; None: the text is ASCII, or nobody asks.
    starts: Option<Vec<usize>>,
}

impl CharacterIndex {
    fn new(text: &AlignedText) -> CharacterIndex {
        CharacterIndex::of(if text.is_tracked { &text.text } else { "" })
    }

    /// Index a text.
    pub fn of(text: &str) -> CharacterIndex {
        let starts = || text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
        CharacterIndex { starts: (!text.is_ascii()).then(starts) }
    }

    /// The character that has this byte; for the length of the text, the number of characters.
    pub fn character(&self, byte: usize) -> usize {
        self.starts.as_ref().map_or(byte, |starts| starts.partition_point(|&start| start <= byte) - 1)
    }

    /// The byte at which a character begins; for the number of characters, the length of the text.
    pub fn byte(&self, character: usize) -> usize {
        self.starts.as_ref().map_or(character, |starts| starts[character])
    }
}

/// A changed text in the making, from left to right.
struct Making<'a> {
    old: &'a AlignedText,
    /// The next character of the old text, and its byte.
    done: usize,
    done_bytes: usize,
    text: String,
    places: Vec<(usize, usize)>,
}

impl<'a> Making<'a> {
    fn new(old: &'a AlignedText) -> Making<'a> {
        Making { old, done: 0, done_bytes: 0, text: String::with_capacity(old.text.len()), places: vec![] }
    }

    fn byte_after(&self, characters: usize) -> usize {
        let rest = &self.old.text[self.done_bytes..];
        self.done_bytes + rest.char_indices().nth(characters).map_or(rest.len(), |(place, _)| place)
    }

    /// Keep the characters up to `last`.
    fn copy(&mut self, last: usize) {
        let end = self.byte_after(last - self.done);
        self.copy_to(last, end);
    }

    fn copy_to(&mut self, last: usize, end: usize) {
        if self.done_bytes < end {
            self.text.push_str(&self.old.text[self.done_bytes..end]);
            if self.old.is_tracked {
                self.places.extend_from_slice(&self.old.places[self.done..last]);
            }
            (self.done, self.done_bytes) = (last, end);
        }
    }

    /// Replace the characters up to `last` by what the changes say.
    fn apply(&mut self, last: usize, changes: impl IntoIterator<Item = Change>, initial_removed: usize) -> Result<()> {
        let old = &self.old.places;
        let mut position = (self.done + initial_removed).min(last);
        for (character, change) in changes {
            self.text.push(character);
            if change > 0 {
                self.places.push(if position > 0 { old[position - 1] } else { (self.old.start, self.old.start) });
                continue;
            }
            let Some(&place) = old.get(position) else {
                let error = Error::encode(
                    "text was put in front of everything, and a later step finds nothing to align it with",
                );
                return Err(
                    error.hinted("the oracle crashes here; look at a Replace whose pattern can match the empty text")
                );
            };
            self.places.push(place);
            if position < last {
                position = (position + 1 + change.unsigned_abs()).min(last);
            }
        }
        (self.done_bytes, self.done) = (self.byte_after(last - self.done), last);
        Ok(())
    }

    /// Replace the characters up to `last` by the content, aligned with the last character before `last`.
    fn put(&mut self, last: usize, end: usize, content: &str) {
        self.text.push_str(content);
        if self.old.is_tracked && !content.is_empty() {
            let place = if last > 0 { self.old.places[last - 1] } else { (self.old.start, self.old.start) };
            self.places.extend(std::iter::repeat_n(place, content.chars().count()));
        }
        (self.done, self.done_bytes) = (last, end);
    }

    /// Keep the rest, and give the text.
    fn finished(mut self) -> AlignedText {
        self.copy_to(self.old.places.len(), self.old.text.len());
        let AlignedText { start, end, is_tracked, .. } = *self.old;
        AlignedText { text: self.text, places: self.places, start, end, is_tracked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_text_keeps_its_place() {
        let text = AlignedText::of_text("aé b", 10).replace([(1, 3), (3, 4)], "xy");
        assert_eq!(text.text, "axyxyb");
        assert_eq!(text.places, [(10, 11), (11, 12), (11, 12), (12, 13), (12, 13), (13, 14)]);
        let slice = &text.slices([(1, 3)])[0];
        assert_eq!((slice.text.as_str(), slice.start, slice.end), ("xy", 11, 12));
    }

    #[test]
    fn changes_drop_and_insert() {
        let text = AlignedText::of_text("abcd", 0).transform([('x', -2), ('y', 1), ('d', 0)], 0).unwrap();
        assert_eq!((text.text.as_str(), &text.places[..]), ("xyd", &[(0, 1), (2, 3), (3, 4)][..]));
        assert!(AlignedText::of_text("a", 0).replace([(0, 0)], "z").transform([('z', 0), ('a', 0)], 0).is_err());
    }
}
