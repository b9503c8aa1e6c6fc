//! The symbols that characters are at the beginning: as ids, and as numbers for `numbered_merges.rs`.

use super::bpe::Input;
use super::numbered_merges::{FirstSymbols, Room, LONGEST};
use super::sure_pairs::{AllFound, Class, SurePairs};
use super::vocabulary::Vocabulary;
use crate::byte_alphabet;
use crate::hash::FastMap;
use crate::stored_struct;
use crate::tables::Table;

/// No id, and no number.
pub const NO_ID: u32 = u32::MAX;
/// Numbers of these are in one table by pairs: ASCII, and ASCII at the end of a pretoken where that makes other symbols.
const NEAR: usize = 256;
/// The class of all that have none of their own.
const SHARED: u8 = 255;
/// The page of what has no number.
const NOWHERE: u16 = 2;

/// The symbols of characters: at the start or later, at the end or before it.
pub struct CharacterSymbols {
    /// Before a character that is not the first one.
    pub prefix: String,
    /// Behind the last one.
    pub suffix: String,
    /// Index: 1 later + 2 at the end. One table where there is neither prefix nor suffix.
    tables: Vec<CharacterTable>,
}
stored_struct!(CharacterSymbols { prefix, suffix, tables });

/// From characters to ids in two steps.
struct CharacterTable {
    pages: Table<u16>,
    ids: Table<u32>,
}
stored_struct!(CharacterTable { pages, ids });

impl CharacterTable {
    fn new(entries: &[(char, u32)]) -> CharacterTable {
        let (mut pages, mut ids) = (vec![0u16; 0x11_0000 >> 8], vec![NO_ID; 256]);
        for &(character, id) in entries {
            let code = character as usize;
            if pages[code >> 8] == 0 {
                pages[code >> 8] = (ids.len() >> 8) as u16;
                ids.resize(ids.len() + 256, NO_ID);
            }
            ids[(pages[code >> 8] as usize) << 8 | (code & 255)] = id;
        }
        CharacterTable { pages: pages.into(), ids: ids.into() }
    }

    #[inline]
    fn id(&self, character: char) -> u32 {
        let code = character as usize;
        self.ids[(self.pages[code >> 8] as usize) << 8 | (code & 255)]
    }
}

impl CharacterSymbols {
    /// Find them in a vocabulary.
    pub fn new(vocabulary: &Vocabulary, prefix: &str, suffix: &str) -> CharacterSymbols {
        let variants: &[(&str, &str)] = match (prefix, suffix) {
            ("", "") => &[("", "")],
            _ => &[("", ""), (prefix, ""), ("", suffix), (prefix, suffix)],
        };
        let table = |&(before, after): &(&str, &str)| {
            let character = |token: &[u8]| {
                let token = std::str::from_utf8(token).ok()?.strip_prefix(before)?.strip_suffix(after)?;
                let mut characters = token.chars();
                characters.next().filter(|_| characters.next().is_none())
            };
            let entries: Vec<(char, u32)> =
                vocabulary.iter().filter_map(|(token, id)| Some((character(token)?, id))).collect();
            CharacterTable::new(&entries)
        };
        CharacterSymbols {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            tables: variants.iter().map(table).collect(),
        }
    }

    /// Whether symbols depend on their place in a pretoken.
    pub fn depend_on_place(&self) -> bool {
        self.tables.len() > 1
    }

    /// The id of a character at a place, or `NO_ID`.
    #[inline]
    pub fn id_at(&self, character: char, is_later: bool, is_last: bool) -> u32 {
        let table = if self.depend_on_place() { usize::from(is_later) + 2 * usize::from(is_last) } else { 0 };
        self.tables[table].id(character)
    }

    /// The id of a character by itself, or `NO_ID`.
    #[inline]
    pub fn id(&self, character: char) -> u32 {
        self.tables[0].id(character)
    }

    /// The symbols of a token that comes about within a pretoken, or at its end. None: of these it cannot be made.
    fn of_token(&self, token: &str, is_last: bool) -> Option<Vec<u32>> {
        let stem = if is_last { token.strip_suffix(&*self.suffix)? } else { token };
        let mut rest = stem.chars().peekable();
        let mut symbols = Vec::with_capacity(stem.len());
        while let Some(character) = rest.next() {
            symbols.push(self.id_at(character, false, is_last && rest.peek().is_none()));
        }
        (!symbols.contains(&NO_ID)).then_some(symbols)
    }
}

/// What becomes of characters that are not in the vocabulary.
pub struct Unknown {
    /// They fall back to bytes, all of which have an id.
    pub bytes: Option<Box<[u32; 256]>>,
    /// The unknown token, where there is one; else they are dropped. `NO_ID`: the vocabulary does not have it, so they fail.
    pub token: Option<u32>,
    /// Several of them are one unknown token.
    pub fuses: bool,
}
stored_struct!(Unknown { bytes, token, fuses });

/// The numbers of the symbols that pretokens begin with. There is no prefix here.
pub struct CharacterNumbers {
    /// Pretokens are bytes, which stand for the byte alphabet.
    are_bytes: bool,
    /// For each 64 code points, where their numbers begin, in 64s. ASCII comes first.
    pages: Table<u16>,
    /// The number of a character, and of one at the end of its pretoken; `NO_ID` where it has none.
    numbers: Table<[u32; 2]>,
    /// The same for each byte, where pretokens are bytes and all of these numbers are there and differ; else empty.
    pub of_bytes: Table<[u32; 2]>,
    /// The classes of ASCII, and behind them those of ASCII at the end of a pretoken: `SHARED` where it has none of its own.
    of_ascii: Box<[u8; 256]>,
    /// In numbers.
    unknown: Unknown,
}
stored_struct!(CharacterNumbers { are_bytes, pages, numbers, of_bytes, of_ascii, unknown });

/// The numbers, and what goes with them.
pub struct Numbering {
    /// See the struct.
    pub numbers: CharacterNumbers,
    /// For each number, the id.
    pub ids: Vec<u32>,
    /// For each token of the vocabulary that characters can make, the ids of these, and its own.
    pub tokens: Vec<(Vec<u32>, u32)>,
}

impl CharacterNumbers {
    /// Number the symbols. None: a token can be made in two ways.
    pub fn build(
        symbols: &CharacterSymbols,
        vocabulary: &Vocabulary,
        input: Input,
        mut unknown: Unknown,
        merges: impl Iterator<Item = (u32, u32, u32)>,
    ) -> Option<Numbering> {
        let has_suffix = !symbols.suffix.is_empty();
        let are_bytes = input == Input::ByteAlphabet;
        let mark = match input {
            Input::Spaces(mark) => Some(mark),
            _ => None,
        };
        let is_unwritten = has_suffix || are_bytes || mark.is_some_and(|mark| symbols.id(mark) == NO_ID);
        if !symbols.prefix.is_empty() || unknown.bytes.is_some() && is_unwritten {
            return None;
        }
        let mut ids = vec![NO_ID; NEAR];
        // Behind those of ASCII come 64 that have none.
        let mut cells = vec![[NO_ID; 2]; 3 << 6];
        let mut pages = vec![NOWHERE; 0x11_0000 >> 6];
        pages[..2].copy_from_slice(&[0, 1]);
        let mut known: FastMap<u32, u32> = FastMap::default();
        let single = |token: &str| token.chars().next().filter(|first| first.len_utf8() == token.len());
        let texts = vocabulary.iter().filter_map(|(token, _)| std::str::from_utf8(token).ok());
        let mut characters: Vec<char> = texts
            .flat_map(|token| {
                [Some(token), token.strip_suffix(&*symbols.suffix)].into_iter().flatten().filter_map(single)
            })
            .chain(mark.map(|_| ' '))
            .collect();
        characters.sort_unstable();
        characters.dedup();
        for code in characters {
            let written = match mark {
                Some(mark) if code == ' ' => mark,
                _ => code,
            };
            let found = [false, true].map(|is_last| symbols.id_at(written, false, is_last));
            if found == [NO_ID; 2] {
                continue;
            }
            let page = &mut pages[code as usize >> 6];
            if *page == NOWHERE {
                *page = (cells.len() >> 6) as u16;
                cells.resize(cells.len() + 64, [NO_ID; 2]);
            }
            let cell = &mut cells[usize::from(*page) << 6 | code as usize & 63];
            for (is_last, &id) in found.iter().enumerate().filter(|(_, &id)| id != NO_ID) {
                cell[is_last] = *known.entry(id).or_insert_with(|| {
                    let near = code as usize + 128 * is_last;
                    if code.is_ascii() && ids[near] == NO_ID {
                        ids[near] = id;
                        near as u32
                    } else {
                        ids.push(id);
                        ids.len() as u32 - 1
                    }
                });
            }
        }
        // Symbols that stand for no character of their own: a token with their strings must be no merge of them.
        let mut apart: FastMap<u32, ()> = FastMap::default();
        if let Some(token) = unknown.token.as_mut().filter(|token| **token != NO_ID) {
            *token = *known.entry(*token).or_insert_with(|| {
                apart.insert(*token, ());
                // There are often many of them side by side.
                let near = ids[..usize::from(SHARED)].iter().rposition(|&id| id == NO_ID).unwrap_or(ids.len());
                ids.resize(ids.len().max(near + 1), NO_ID);
                ids[near] = *token;
                near as u32
            });
        }
        for id in unknown.bytes.iter_mut().flat_map(|bytes| bytes.iter_mut()) {
            *id = *known.entry(*id).or_insert_with(|| {
                apart.insert(*id, ());
                ids.push(*id);
                ids.len() as u32 - 1
            });
        }
        for (left, right, merged) in merges {
            if apart.contains_key(&left) || apart.contains_key(&right) || known.contains_key(&merged) {
                return None;
            }
        }
        let mut tokens = vec![];
        for (token, id) in vocabulary.iter() {
            let Ok(token) = std::str::from_utf8(token) else { continue };
            let ways = [false, true].into_iter().filter(|is_last| !is_last || has_suffix);
            let symbols = ways.filter_map(|is_last| symbols.of_token(token, is_last));
            let of_known = symbols.filter(|symbols| symbols.iter().all(|id| known.contains_key(id)));
            tokens.extend(of_known.map(|symbols| (symbols, id)));
        }
        let mut of_bytes = vec![];
        if are_bytes {
            let cell = |code: usize| cells[usize::from(pages[code >> 6]) << 6 | code & 63];
            of_bytes.extend((0..=u8::MAX).map(|byte| cell(byte_alphabet::character_of(byte) as usize)));
            let mut all = of_bytes.concat();
            all.sort_unstable();
            if all.windows(2).any(|two| two[0] == two[1]) || all.contains(&NO_ID) {
                of_bytes.clear();
            }
        }
        let class = |number: u32| if are_bytes { SHARED } else { class_of(number) };
        let of_ascii = Box::new(std::array::from_fn(|at| class(cells[at % 128][at / 128])));
        let (pages, numbers) = (pages.into(), cells.into());
        let numbers = CharacterNumbers { are_bytes, pages, numbers, of_bytes: of_bytes.into(), of_ascii, unknown };
        Some(Numbering { numbers, ids, tokens })
    }
}

impl CharacterNumbers {
    /// What is sure of symbols, by their classes: bytes, or else numbers.
    pub fn sure_pairs(&self, merges: &[[u32; 3]], ends: impl Fn(u32) -> (u32, u32)) -> SurePairs {
        if !self.are_bytes {
            let class = |number| u8::try_from(number).ok().filter(|&class| class != SHARED);
            let class = |number| class(number).map(|number| Class { number, is_end: false });
            return SurePairs::build(merges, ends, class, false);
        }
        if self.of_bytes.is_empty() {
            return SurePairs::unknown();
        }
        let mut classes: FastMap<u32, Class> = FastMap::default();
        for (number, cell) in (0..=u8::MAX).zip(self.of_bytes.iter()) {
            classes.extend(cell.iter().zip([false, true]).map(|(&symbol, is_end)| (symbol, Class { number, is_end })));
        }
        SurePairs::build(merges, ends, |symbol| classes.get(&symbol).copied(), true)
    }

    /// Hand over the numbers of bytes.
    #[inline(always)]
    fn write_bytes(&self, pretoken: &[u8], sure: &SurePairs, room: &mut Room, mut each: impl FnMut(u32, bool)) {
        sure.find(pretoken, true, &mut room.found);
        let mut place = 0;
        while place < pretoken.len() {
            let is_last = place + 1 == pretoken.len();
            let symbol = self.of_bytes[usize::from(pretoken[place])][usize::from(is_last)];
            let may_cross = room.found[place].may_cross();
            let (symbol, length) = match room.found[place + 1].merged() {
                Some(merged) => (merged, 2),
                None => (symbol, 1),
            };
            each(symbol, may_cross);
            place += length;
        }
    }
}

impl CharacterNumbers {
    /// Write the classes of a pretoken that is ASCII, of which each has one of its own, so that they are its numbers. False:
    /// it is something else.
    #[inline(always)]
    fn are_ascii(&self, pretoken: &[u8], classes: &mut [u8; LONGEST]) -> bool {
        let [first, inner @ .., last] = pretoken else { return false };
        // Most texts of other scripts are done with that.
        if !(first | last).is_ascii() || pretoken.len() > LONGEST {
            return false;
        }
        let (mut all, mut has_own) = (0, true);
        for (class, &byte) in classes.iter_mut().zip([first].into_iter().chain(inner)) {
            *class = self.of_ascii[usize::from(byte & 0x7F)];
            all |= byte;
            has_own &= *class != SHARED;
        }
        let end = self.of_ascii[usize::from(last | 0x80)];
        classes[pretoken.len() - 1] = end;
        all.is_ascii() & has_own & (end != SHARED)
    }
}

/// The class of a number: one of its own, which is the same, or `SHARED`.
#[inline(always)]
fn class_of(number: u32) -> u8 {
    number.min(u32::from(SHARED)) as u8
}

impl FirstSymbols for CharacterNumbers {
    #[inline(always)]
    fn write(&self, pretoken: &[u8], sure: &SurePairs, room: &mut Room, mut each: impl FnMut(u32, bool)) -> bool {
        if !self.of_bytes.is_empty() {
            self.write_bytes(pretoken, sure, room, each);
            return true;
        }
        let Room { numbers, classes, found } = room;
        if self.are_ascii(pretoken, classes) {
            let classes = &classes[..pretoken.len()];
            sure.find(classes, false, found);
            hand_over(found, classes, |&class| u32::from(class), each);
            return true;
        }
        let (mut count, mut own) = (0, 0);
        let mut push = |number: u32| {
            let class = class_of(number);
            (numbers[count % LONGEST], classes[count % LONGEST]) = (number, class);
            count += 1;
            own += u32::from(class != SHARED);
        };
        let mut at = 0;
        let mut is_fusing = false;
        while at < pretoken.len() {
            let (code, length) = match self.are_bytes {
                true => (byte_alphabet::character_of(pretoken[at]) as u32, 1),
                false => code_point(&pretoken[at..]),
            };
            let Some(&page) = self.pages.get((code >> 6) as usize) else { return false };
            let is_last = at + length >= pretoken.len();
            let number = self.numbers[usize::from(page) << 6 | (code & 63) as usize][usize::from(is_last)];
            let spelled = at;
            at += length;
            if number != NO_ID {
                is_fusing = false;
                push(number);
                continue;
            }
            match (&self.unknown.bytes, self.unknown.token) {
                (Some(bytes), _) => {
                    let Some(spelled) = pretoken.get(spelled..at) else { return false };
                    for number in spelled.iter().map(|&byte| bytes[usize::from(byte)]) {
                        push(number);
                    }
                }
                (None, Some(NO_ID)) => return false,
                (None, Some(token)) => {
                    if !(is_fusing && self.unknown.fuses) {
                        push(token);
                    }
                    is_fusing = true;
                }
                (None, None) => {}
            }
        }
        if own < 2 {
            // The classes of two side by side tell nothing.
            numbers[..count].iter().for_each(|&number| each(number, true));
            return true;
        }
        sure.find(&classes[..count], false, found);
        hand_over(found, &numbers[..count], |&number| number, each);
        true
    }
}

/// Hand over symbols, those that surely merge as one.
#[inline(always)]
fn hand_over<T>(found: &AllFound, symbols: &[T], number: impl Fn(&T) -> u32, mut each: impl FnMut(u32, bool)) {
    let mut place = 0;
    while let Some(symbol) = symbols.get(place) {
        let (symbol, length) = match found[place + 1].merged() {
            Some(merged) => (merged, 2),
            None => (number(symbol), 1),
        };
        each(symbol, found[place].may_cross());
        place += length;
    }
}

/// The first code point of a text that is UTF-8 and not empty, and its length.
#[inline(always)]
pub fn code_point(text: &[u8]) -> (u32, usize) {
    let more = |byte: u8| u32::from(byte & 0x3F);
    match *text {
        [first @ ..=0x7F, ..] => (u32::from(first), 1),
        [first @ ..=0xDF, a, ..] => (u32::from(first & 0x1F) << 6 | more(a), 2),
        [first @ ..=0xEF, a, b, ..] => (u32::from(first & 0xF) << 12 | more(a) << 6 | more(b), 3),
        [first, a, b, c, ..] => (u32::from(first & 7) << 18 | more(a) << 12 | more(b) << 6 | more(c), 4),
        _ => (char::REPLACEMENT_CHARACTER as u32, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_read_as_the_standard_library_does() {
        for character in '\0'..=char::MAX {
            let mut room = [0; 5];
            let length = character.encode_utf8(&mut room).len();
            assert_eq!(code_point(&room), (character as u32, length));
            assert_eq!(code_point(&room[..length]), (character as u32, length));
        }
    }
}
