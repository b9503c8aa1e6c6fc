//! Texts in which each character is mapped by itself: kept, dropped, set apart by spaces, or replaced.
//!
//! One table serves Lowercase, StripAccents, Nmt and all steps of BertNormalizer at once. Runs of ASCII go through
//! a table of bytes.

use crate::character_table::CharacterTable;
use crate::hash::FastMap;
use crate::models::characters::code_point;
use crate::patterns::classes::ascii_prefix;

const KEPT: u32 = 0;
const DROPPED: u32 = 1;
const APART: u32 = 2;
/// The table does not know: the text has to go another way.
const STRANGE: u32 = 3;
/// It stays, where its neighbours have three bytes, too.
const LONG: u32 = 4;
const FIRST_TEXT: u32 = 5;

/// Of a byte: its character has to be looked up in the table.
const NO_BYTE: u8 = 0xFF;
/// Of a character: what becomes of it has to be looked up elsewhere.
const NO_FEW: u8 = 0xFF;
const BLOCK: usize = 64;
/// Bytes of a short text.
const SHORT: usize = 128;

/// What becomes of a character that does not stay as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became<'a> {
    /// A text, which can be empty.
    Text(&'a str),
    /// The character with a space on both sides.
    Apart,
    /// The table does not know.
    Strange,
}

/// A map of single characters to texts.
#[derive(Clone)]
pub struct Mapping {
    table: CharacterTable<u32>,
    texts: Vec<String>,
    known: FastMap<String, u32>,
    /// What becomes of a byte that is a character, if that is one, too; else `NO_BYTE`.
    ascii: [u8; 256],
    /// What becomes of the characters of two bytes, by their code points, if that has three bytes at most, and behind these
    /// their number; else that is `NO_FEW`. Empty until the table is ready.
    few: Vec<[u8; 4]>,
}

impl Default for Mapping {
    fn default() -> Mapping {
        let ascii = std::array::from_fn(|byte| if byte < 0x80 { byte as u8 } else { NO_BYTE });
        Mapping { table: CharacterTable::new(KEPT), texts: vec![], known: FastMap::default(), ascii, few: vec![] }
    }
}

impl Mapping {
    fn set(&mut self, code: u32, value: u32) {
        self.table.update(code, |_| value);
        if let Some(byte) = self.ascii[..0x80].get_mut(code as usize) {
            let single = value.checked_sub(FIRST_TEXT).map(|number| self.texts[number as usize].as_bytes());
            *byte = match (value, single) {
                (KEPT, _) => code as u8,
                (_, Some(&[single])) if single < 0x80 => single,
                _ => NO_BYTE,
            };
        }
    }

    /// Drop these code points.
    pub fn drop_all(&mut self, codes: impl IntoIterator<Item = u32>) {
        codes.into_iter().for_each(|code| self.set(code, DROPPED));
    }

    /// Put a space on both sides of these code points.
    pub fn set_apart(&mut self, codes: impl IntoIterator<Item = u32>) {
        codes.into_iter().for_each(|code| self.set(code, APART));
    }

    /// Texts with these code points are not to be mapped.
    pub fn refuse(&mut self, codes: impl IntoIterator<Item = u32>) {
        codes.into_iter().for_each(|code| self.set(code, STRANGE));
    }

    /// Texts with these code points, of three or four bytes, are to be mapped only where no character of two bytes stands
    /// beside them, and in front of them, if not a space at the start, one of three or four. They stay then.
    pub fn keep_among_long(&mut self, codes: impl IntoIterator<Item = u32>) {
        codes.into_iter().for_each(|code| self.set(code, LONG));
    }

    /// Replace a code point by a text.
    pub fn replace(&mut self, code: u32, text: &str) {
        if text.is_empty() {
            return self.set(code, DROPPED);
        }
        if char::from_u32(code).is_some_and(|character| text.strip_prefix(character) == Some("")) {
            return self.set(code, KEPT);
        }
        let next = self.texts.len() as u32 + FIRST_TEXT;
        let number = *self.known.entry(text.to_owned()).or_insert(next);
        if number == next {
            self.texts.push(text.to_owned());
        }
        self.set(code, number);
    }

    /// The characters that do not stay as they are, ascending, and what becomes of them.
    pub fn changed(&self) -> impl Iterator<Item = (char, Became<'_>)> {
        let became = |value| match value {
            DROPPED => Became::Text(""),
            APART => Became::Apart,
            STRANGE | LONG => Became::Strange,
            number => Became::Text(&self.texts[(number - FIRST_TEXT) as usize]),
        };
        let entries = self.table.others(KEPT);
        entries.filter_map(move |(code, value)| Some((char::from_u32(code)?, became(value))))
    }

    /// Let the table be smaller; it cannot be changed any more.
    pub fn share_pages(&mut self) {
        self.table.share_pages();
        let few = |code: u32| {
            let mut few = [0, 0, 0, NO_FEW];
            let Some(character) = char::from_u32(code).filter(|_| code >= 0x80) else { return few };
            let mut text = String::new();
            self.of_character(character, |part| text.push_str(part));
            let is_known = !matches!(self.table.get(character), STRANGE | LONG);
            if let Some(bytes) = few.get_mut(..text.len()).filter(|bytes| is_known && bytes.len() < 4) {
                bytes.copy_from_slice(text.as_bytes());
                few[3] = text.len() as u8;
            }
            few
        };
        self.few = (0..0x800).map(few).collect();
    }

    /// What a character becomes is handed over, in one part or three.
    #[inline(always)]
    pub fn of_character(&self, character: char, mut part: impl FnMut(&str)) {
        let mut room = [0; 4];
        match self.table.get(character) {
            KEPT | STRANGE | LONG => part(character.encode_utf8(&mut room)),
            DROPPED => {}
            APART => {
                part(" ");
                part(character.encode_utf8(&mut room));
                part(" ");
            }
            number => part(&self.texts[(number - FIRST_TEXT) as usize]),
        }
    }

    /// Whether a character is dropped.
    #[inline(always)]
    pub fn drops(&self, character: char) -> bool {
        self.table.get(character) == DROPPED
    }

    /// Whether a character stays as it is.
    #[inline(always)]
    pub fn keeps(&self, character: char) -> bool {
        self.table.get(character) == KEPT
    }

    /// What becomes of a byte that is a character, if that is one, too.
    #[inline(always)]
    pub fn of_byte(&self, byte: u8) -> Option<u8> {
        Some(self.ascii[usize::from(byte)]).filter(|&byte| byte != NO_BYTE)
    }

    /// The last character of what a character becomes; None where that is nothing, or the table does not know.
    pub fn last_of(&self, character: char) -> Option<char> {
        match self.table.get(character) {
            KEPT => Some(character),
            APART => Some(' '),
            DROPPED | STRANGE | LONG => None,
            number => self.texts[(number - FIRST_TEXT) as usize].chars().next_back(),
        }
    }

    /// Whether a text changes.
    pub fn changes(&self, text: &str) -> bool {
        text.chars().any(|character| !self.keeps(character))
    }

    /// Append what becomes of a short text, which is UTF-8. False: it has a character that the table does not know, or it is
    /// not short; nothing is appended then.
    pub fn apply_short(&self, text: &[u8], result: &mut Vec<u8>) -> bool {
        if text.len() > SHORT {
            return false;
        }
        let begun = result.len();
        if matches!(text, [first, .., last] if (first | last).is_ascii()) {
            let mut odd = 0;
            result.extend(text.iter().map(|&byte| {
                let new = self.ascii[usize::from(byte)];
                odd |= new;
                new
            }));
            if odd < 0x80 {
                return true;
            }
        }
        // For what becomes of few bytes, and one store of four bytes behind it.
        let room = |text: &[u8]| 2 * text.len() + 4;
        result.resize(begun + 3 * text.len() + room(text), 0);
        let (mut at, mut to) = (0, begun);
        while at < text.len() {
            let byte = self.ascii[usize::from(text[at])];
            if byte < 0x80 {
                result[to] = byte;
                (at, to) = (at + 1, to + 1);
                continue;
            }
            let (code, length) = code_point(&text[at..]);
            if let Some(few) = self.few.get(code as usize).filter(|few| few[3] != NO_FEW) {
                result[to..to + 4].copy_from_slice(few);
                (at, to) = (at + 2, to + usize::from(few[3]));
                continue;
            }
            let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            let here = at;
            at = text.len().min(at + length);
            let mut apart = [b' '; 6];
            let new = match self.table.get(character) {
                KEPT => &text[here..at],
                LONG if is_among_long(text, here, at) => &text[here..at],
                STRANGE | LONG => {
                    result.truncate(begun);
                    return false;
                }
                DROPPED => &[],
                APART => {
                    apart[1..1 + at - here].copy_from_slice(&text[here..at]);
                    &apart[..2 + at - here]
                }
                number => self.texts[(number - FIRST_TEXT) as usize].as_bytes(),
            };
            let end = to + new.len();
            if result.len() < end + room(&text[at..]) {
                result.resize(end + room(&text[here..]), 0);
            }
            result[to..end].copy_from_slice(new);
            to = end;
        }
        result.truncate(to);
        true
    }

    /// Append the mapped text. False: it has a character that the table does not know; nothing is appended then.
    pub fn apply(&self, text: &str, result: &mut String) -> bool {
        let begun = result.len();
        result.reserve(text.len() + text.len() / 8);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] < 0x80 {
                let end = at + ascii_prefix(&bytes[at..]);
                match bytes[at..end] {
                    // Between words of other scripts.
                    [byte] if self.ascii[usize::from(byte)] < 0x80 => result.push(self.ascii[usize::from(byte)].into()),
                    _ => self.apply_ascii(&text[at..end], result),
                }
                at = end;
                continue;
            }
            // Characters that stay are copied together.
            let mut kept = at;
            for character in text[at..].chars() {
                if character.is_ascii() {
                    break;
                }
                let here = at;
                at += character.len_utf8();
                let value = self.table.get(character);
                if value == KEPT {
                    continue;
                }
                if value == STRANGE || value == LONG {
                    result.truncate(begun);
                    return false;
                }
                result.push_str(&text[kept..here]);
                kept = at;
                match value {
                    DROPPED => {}
                    APART => {
                        result.push(' ');
                        result.push_str(&text[here..at]);
                        result.push(' ');
                    }
                    number => result.push_str(&self.texts[(number - FIRST_TEXT) as usize]),
                }
            }
            result.push_str(&text[kept..at]);
        }
        true
    }

    fn apply_ascii(&self, text: &str, result: &mut String) {
        let mut at = 0;
        while at < text.len() {
            let block = &text[at..text.len().min(at + BLOCK)];
            at += block.len();
            let mut mapped = [0u8; BLOCK];
            let mut odd = 0;
            for (new, &byte) in mapped.iter_mut().zip(block.as_bytes()) {
                *new = self.ascii[usize::from(byte & 0x7F)];
                odd |= *new;
            }
            match std::str::from_utf8(&mapped[..block.len()]) {
                Ok(mapped) if odd < 0x80 => result.push_str(mapped),
                _ => block.chars().for_each(|character| self.of_character(character, |part| result.push_str(part))),
            }
        }
    }
}

/// Whether the characters beside a part of a text are long: see `Mapping::keep_among_long`.
fn is_among_long(text: &[u8], start: usize, end: usize) -> bool {
    let is_long = |before: &[u8]| matches!(before, [.., 0x80..=0xBF, 0x80..=0xBF] | b" ");
    is_long(&text[..start]) && text.get(end).is_none_or(|byte| !(0x80..0xE0).contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_mapped_as_others() {
        let mut mapping = Mapping::default();
        [("A", "a"), ("B", "ß"), ("É", "é"), ("é", "e"), ("ß", "ss"), ("中", "一"), ("C", "😀"), ("😀", "x")]
            .iter()
            .for_each(|(character, text)| mapping.replace(character.chars().next().unwrap() as u32, text));
        mapping.drop_all([0, 0x301]);
        mapping.set_apart(0x4E00..0x4E10);
        mapping.refuse([0x302E, 0x345]);
        mapping.replace(0x23A, "ⱥ");
        mapping.replace(0x390, "ΐ12");
        mapping.share_pages();
        let characters = [
            "A", "B", "C", "a", "É", "é", "ß", "中", "一", "文", "😀", "🙂", "\0", "\u{301}", "\u{302e}", "ö",
            "\u{345}", "Ⱥ", "ΐ", " ",
        ];
        let texts = characters.iter().flat_map(|one| characters.iter().map(move |two| [*one, *two]));
        for [one, two] in texts {
            for text in [one.to_owned(), format!("{one}{two}"), format!("{two}x{one}{two}{one}"), two.repeat(200)] {
                let mut expected = String::from("é");
                let is_mapped = mapping.apply(&text, &mut expected) && text.len() <= SHORT;
                let mut found = "é".as_bytes().to_vec();
                assert_eq!(mapping.apply_short(text.as_bytes(), &mut found), is_mapped, "{text:?}");
                let expected = if is_mapped { expected } else { "é".to_owned() };
                assert_eq!(std::str::from_utf8(&found), Ok(&expected[..]), "{text:?}");
            }
        }
    }
}
