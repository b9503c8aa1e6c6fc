//! The characters of a vocabulary by number: symbols for a trie.
//!
//! What many tokens have has a low number, so that in the trie the children of a node that texts often have lie together.

use std::cmp::Reverse;

use super::characters::code_point;
use super::trie::{FIRST_SYMBOL, NO_SYMBOL};
use crate::stored_struct;
use crate::tables::Table;

const PAGE_BITS: u32 = 6;
const PAGE: usize = 1 << PAGE_BITS;
const CODE_POINTS: usize = 0x11_0000;

/// See the module.
pub struct Alphabet {
    /// For each page of code points its number among those that are there. The first one has no character.
    pages: Table<u16>,
    symbols: Table<u32>,
    /// All symbols are below.
    end: u32,
}
stored_struct!(Alphabet { pages, symbols, end });

impl Alphabet {
    /// The characters of all tokens.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a str>) -> Alphabet {
        let mut counts = vec![0u32; CODE_POINTS];
        tokens.flat_map(str::chars).for_each(|character| counts[character as usize] += 1);
        let mut characters: Vec<usize> = (0..CODE_POINTS).filter(|&code| counts[code] > 0).collect();
        characters.sort_by_key(|&code| Reverse(counts[code]));
        let (mut pages, mut symbols) = (vec![0; CODE_POINTS >> PAGE_BITS], vec![NO_SYMBOL; PAGE]);
        let end = FIRST_SYMBOL + characters.len() as u32;
        for (symbol, code) in (FIRST_SYMBOL..).zip(characters) {
            let page = &mut pages[code >> PAGE_BITS];
            if *page == 0 {
                // There are less than 2^15 pages.
                *page = (symbols.len() >> PAGE_BITS) as u16;
                symbols.resize(symbols.len() + PAGE, NO_SYMBOL);
            }
            symbols[usize::from(*page) * PAGE + code % PAGE] = symbol;
        }
        Alphabet { pages: pages.into(), symbols: symbols.into(), end }
    }

    /// All symbols are below.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The symbol of a code point, or `NO_SYMBOL`.
    #[inline(always)]
    pub fn symbol(&self, code_point: u32) -> u32 {
        let page = self.pages[(code_point >> PAGE_BITS) as usize];
        self.symbols[usize::from(page) * PAGE + code_point as usize % PAGE]
    }

    /// The symbol of the first character of a text that is not empty, and the length of the character in bytes.
    #[inline(always)]
    pub fn first(&self, text: &[u8]) -> (u32, usize) {
        let (code_point, length) = code_point(text);
        (self.symbol(code_point), length)
    }

    /// The symbols of all characters of a text.
    pub fn symbols_of<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        let mut rest = text;
        std::iter::from_fn(move || {
            let (symbol, length) = (!rest.is_empty()).then(|| self.first(rest))?;
            rest = &rest[length..];
            Some(symbol)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_frequent_is_low() {
        let alphabet = Alphabet::new(["▁a", "▁", "é▁a", "😀"].into_iter());
        let symbols = |text: &str| -> Vec<u32> { alphabet.symbols_of(text.as_bytes()).collect() };
        let [mark, a, e, face] = [0, 1, 2, 3].map(|number| FIRST_SYMBOL + number);
        assert_eq!(symbols("▁aé😀b中"), [mark, a, e, face, NO_SYMBOL, NO_SYMBOL]);
        assert!(symbols("").is_empty());
    }
}
