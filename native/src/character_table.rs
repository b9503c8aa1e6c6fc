//! Tables over code points in two steps, and the sets of the pinned tables in that form.
//!
//! `CharacterTable` answers "what about this character" with two loads; sets of the Unicode tables are tables of flags.
//! Patterns have tables of their own (`patterns/classes.rs`).

use std::hash::Hash;
use std::sync::OnceLock;

use crate::hash::FastMap;
use crate::locks::made_once;
use crate::patterns::tree::CodePointSet;
use crate::unicode;

const PAGE_BITS: usize = 7;
const PAGE: usize = 1 << PAGE_BITS;

/// A value for each code point.
#[derive(Clone, Debug)]
pub struct CharacterTable<T> {
    pages: Vec<u16>,
    cells: Vec<T>,
}

impl<T: Copy> CharacterTable<T> {
    /// A table in which all code points have the same value.
    pub fn new(default: T) -> CharacterTable<T> {
        CharacterTable { pages: vec![0; 0x11_0000 >> PAGE_BITS], cells: vec![default; PAGE] }
    }

    /// The value of a character.
    #[inline(always)]
    pub fn get(&self, character: char) -> T {
        let code = character as usize;
        self.cells[(self.pages[code >> PAGE_BITS] as usize) << PAGE_BITS | (code & (PAGE - 1))]
    }

    /// Change the value of a code point.
    pub fn update(&mut self, code_point: u32, change: impl FnOnce(T) -> T) {
        let code = code_point as usize;
        let page = &mut self.pages[code >> PAGE_BITS];
        if *page == 0 {
            // Page 0 is shared by all that has the default.
            *page = (self.cells.len() >> PAGE_BITS) as u16;
            self.cells.extend_from_within(..PAGE);
        }
        let cell = &mut self.cells[(*page as usize) << PAGE_BITS | (code & (PAGE - 1))];
        *cell = change(*cell);
    }
}

impl<T: Copy + Eq + Hash> CharacterTable<T> {
    /// The code points, ascending, that have another value than this one, with what they have.
    pub fn others(&self, value: T) -> impl Iterator<Item = (u32, T)> + '_ {
        let is_plain: Vec<bool> = self.cells.chunks_exact(PAGE).map(|page| page.iter().all(|&v| v == value)).collect();
        let pages = (0..).zip(&self.pages).filter(move |(_, &page)| !is_plain[usize::from(page)]);
        let cells = pages.flat_map(|(number, &page)| {
            (number << PAGE_BITS..).zip(&self.cells[usize::from(page) << PAGE_BITS..][..PAGE])
        });
        cells.map(|(code, &found)| (code, found)).filter(move |(_, found)| *found != value)
    }

    /// Let equal pages be one, so that less of the table has to be near: all Chinese characters are alike to most.
    ///
    /// A page that others share cannot be changed any more, so this comes last.
    pub fn share_pages(&mut self) {
        let mut numbers: FastMap<&[T], u16> = FastMap::default();
        let mut cells = vec![];
        let numbers: Vec<u16> = self
            .cells
            .chunks_exact(PAGE)
            .map(|page| {
                *numbers.entry(page).or_insert_with(|| {
                    cells.extend_from_slice(page);
                    (cells.len() / PAGE - 1) as u16
                })
            })
            .collect();
        self.pages.iter_mut().for_each(|page| *page = numbers[usize::from(*page)]);
        self.cells = cells;
    }
}

/// A set of code points that is asked often.
pub type CharacterSet = CharacterTable<bool>;

impl CharacterTable<bool> {
    /// The members of a set.
    pub fn of_set(set: &CodePointSet) -> CharacterSet {
        let mut table = CharacterTable { pages: vec![0; 0x11_0000 >> PAGE_BITS], cells: vec![false; PAGE] };
        table.cells.extend([true; PAGE]);
        for range in set.0.chunks_exact(2) {
            let mut code = range[0];
            while code < range[1] {
                if code as usize % PAGE == 0 && code as usize + PAGE <= range[1] as usize {
                    table.pages[code as usize >> PAGE_BITS] = 1;
                    code += PAGE as u32;
                } else {
                    table.update(code, |_| true);
                    code += 1;
                }
            }
        }
        table
    }

    /// Whether it has a character.
    #[inline(always)]
    pub fn contains(&self, character: char) -> bool {
        self.get(character)
    }
}

/// What Rust's standard library takes for whitespace.
pub fn whitespace() -> &'static CharacterSet {
    static SET: OnceLock<CharacterSet> = OnceLock::new();
    made_once(&SET, || CharacterSet::of_set(&unicode::rust().set("whitespace")))
}

/// What `\s` of Rust's crate `regex` has.
pub fn pattern_whitespace() -> &'static CharacterSet {
    static SET: OnceLock<CharacterSet> = OnceLock::new();
    made_once(&SET, || CharacterSet::of_set(&unicode::rust().set("regex_s")))
}

/// What `\w` of Rust's crate `regex` has.
pub fn pattern_word() -> &'static CharacterSet {
    static SET: OnceLock<CharacterSet> = OnceLock::new();
    made_once(&SET, || CharacterSet::of_set(&unicode::rust().set("regex_w")))
}

/// The code points of a set, ascending.
pub fn members(set: &CodePointSet) -> impl Iterator<Item = u32> + '_ {
    set.0.chunks_exact(2).flat_map(|range| range[0]..range[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_its_ranges_have() {
        let ranges = CodePointSet(vec![5, 6, 100, 1000, 0x10FFFF, 0x110000]);
        let set = CharacterSet::of_set(&ranges);
        for code in 0..0x11_0000 {
            if let Some(character) = char::from_u32(code) {
                assert_eq!(set.contains(character), ranges.contains(code), "{code:x}");
            }
        }
    }

    #[test]
    fn others_are_those_that_differ() {
        let mut table = CharacterTable::new(0);
        let codes = [0, 127, 128, 0x4E00, 0x4E01, 0x10_FFFF];
        codes.iter().for_each(|&code| table.update(code, |_| 5));
        table.update(7, |_| 0);
        table.share_pages();
        assert_eq!(table.others(0).collect::<Vec<_>>(), codes.map(|code| (code, 5)));
        assert_eq!(table.others(5).count(), 0x11_0000 - codes.len());
    }

    #[test]
    fn shared_pages_have_the_same_values() {
        let mut table = CharacterTable::new(0);
        (0x4E00..0xA000).chain(0x61..0x64).for_each(|code| table.update(code, |_| 7));
        table.update(0x1F600, |_| 8);
        let mut shared = table.clone();
        shared.share_pages();
        assert_eq!(shared.cells.len(), 4 * PAGE);
        assert!((0..0x11_0000)
            .filter_map(char::from_u32)
            .all(|character| table.get(character) == shared.get(character)));
    }
}
