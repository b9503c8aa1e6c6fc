//! Equivalence classes: the code points that a pattern cannot tell apart, and the fast way from text to classes.

use std::collections::BTreeSet;

use crate::hash::FastMap as HashMap;
use crate::stored_struct;
use crate::tables::Table;

use super::tree::CodePointSet;

/// Most classes that a transducer can have: a bit each in 64, and one symbol for the bytes that continue a character.
pub const MOST_CLASSES: usize = 63;
/// The code points that are no characters, end exclusive.
const SURROGATES: (u32, u32) = (0xD800, 0xE000);

/// A partition of the code points into classes, numbered from 0.
#[derive(Debug)]
pub struct Classes {
    /// Number of classes.
    pub count: usize,
    /// For each set, a bit a class.
    pub members: Table<u64>,
    /// The classes of the basic plane.
    first: Table<u8>,
    pages: Table<u16>,
    leaves: Table<u8>,
}
stored_struct!(Classes { count, members, first, pages, leaves });

impl Classes {
    /// Part the code points by what sets they are in. None where there are too many classes.
    pub fn of_sets(sets: &[CodePointSet]) -> Option<Classes> {
        let mut cuts: Vec<u32> =
            sets.iter().flat_map(|set| set.0.iter().copied()).chain([0, 0x80, 0x11_0000]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut numbers: HashMap<Vec<u64>, u8> = HashMap::default();
        let mut signatures: Vec<Vec<u64>> = vec![];
        let mut class_of = vec![0u8; 0x11_0000];
        for range in cuts.windows(2) {
            if range[0] >= SURROGATES.0 && range[1] <= SURROGATES.1 {
                // No text has them, so they need no class of their own.
                continue;
            }
            let mut signature = vec![0u64; sets.len().div_ceil(64)];
            for (index, set) in sets.iter().enumerate() {
                signature[index / 64] |= u64::from(set.contains(range[0])) << (index % 64);
            }
            let next = signatures.len() as u8;
            let number = *numbers.entry(signature.clone()).or_insert(next);
            if number == next {
                signatures.push(signature);
                if signatures.len() > MOST_CLASSES {
                    return None;
                }
            }
            class_of[range[0] as usize..range[1] as usize].fill(number);
        }
        let members: Vec<u64> = (0..sets.len())
            .map(|set| {
                let has = |signature: &Vec<u64>| signature[set / 64] >> (set % 64) & 1;
                signatures.iter().enumerate().map(|(class, signature)| has(signature) << class).sum()
            })
            .collect();
        let (mut pages, mut leaves) = (vec![], vec![]);
        let mut known: HashMap<&[u8], u16> = HashMap::default();
        for page in class_of.chunks(64) {
            let next = known.len() as u16;
            pages.push(*known.entry(page).or_insert_with(|| {
                leaves.extend_from_slice(page);
                next
            }));
        }
        let first = class_of[..0x1_0000].to_vec();
        Some(Classes {
            count: signatures.len(),
            members: members.into(),
            first: first.into(),
            pages: pages.into(),
            leaves: leaves.into(),
        })
    }

    /// The class of a code point; of what is none, some class.
    #[inline]
    pub fn of(&self, code_point: u32) -> u8 {
        match self.first.get(code_point as usize) {
            Some(&class) => class,
            None => {
                let page = self.pages[(code_point >> 6) as usize % self.pages.len()] as usize;
                self.leaves[page * 64 + (code_point & 63) as usize]
            }
        }
    }

    /// The classes that have characters beyond ASCII, a bit each.
    pub fn beyond_ascii(&self) -> u64 {
        let of_basic_plane = self.first[0x80..].iter();
        let pages = self.pages[self.first.len() / 64..].iter().collect::<BTreeSet<_>>().into_iter();
        let others = pages.flat_map(|&page| &self.leaves[usize::from(page) * 64..][..64]);
        of_basic_plane.chain(others).fold(0, |all, &class| all | 1 << class)
    }

    /// Copy a text, with each character beyond ASCII overwritten by 128 + its class and, for its other bytes, by
    /// `continuation`. A text that is not UTF-8 gives some symbols, and no fault.
    pub fn symbols_into(&self, text: &[u8], continuation: u8, symbols: &mut Vec<u8>) {
        symbols.clear();
        symbols.extend_from_slice(text);
        let symbols = &mut symbols[..text.len()];
        let low = |byte: u8| u32::from(byte & 63);
        let mut i = 0;
        while i < text.len() {
            let first = text[i];
            if first < 128 {
                i += ascii_prefix(&text[i..]);
                continue;
            }
            // The commonest lengths by themselves: what decides about the speed of other scripts.
            if first & 0xF0 == 0xE0 && i + 2 < text.len() {
                let code_point = (u32::from(first) & 15) << 12 | low(text[i + 1]) << 6 | low(text[i + 2]);
                symbols[i] = 128 + self.of(code_point);
                symbols[i + 1] = continuation;
                symbols[i + 2] = continuation;
                i += 3;
            } else if first < 0xE0 && i + 1 < text.len() {
                symbols[i] = 128 + self.of((u32::from(first) & 31) << 6 | low(text[i + 1]));
                symbols[i + 1] = continuation;
                i += 2;
            } else {
                let at = |k: usize| text.get(i + k).map_or(0, |&byte| low(byte));
                symbols[i] = 128 + self.of((u32::from(first) & 7) << 18 | at(1) << 12 | at(2) << 6 | at(3));
                let end = text.len().min(i + 4);
                symbols[i + 1..end].fill(continuation);
                i = end;
            }
        }
    }
}

/// Number of bytes before the first one that is not ASCII.
pub fn ascii_prefix(text: &[u8]) -> usize {
    let mut i = 0;
    // Between the words of another script there is one space.
    if text.len() > 1 && text[1] >= 128 {
        return usize::from(text[0] < 128);
    }
    while let Some(chunk) = text.get(i..i + 16) {
        let word = u128::from_le_bytes(chunk.try_into().expect("16 bytes")) & (0x80 * (u128::MAX / 255));
        if word != 0 {
            return i + word.trailing_zeros() as usize / 8;
        }
        i += 16;
    }
    i + text[i..].iter().take_while(|byte| byte.is_ascii()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_part_the_code_points() {
        let classes =
            Classes::of_sets(&[CodePointSet(vec![97, 123, 0xE0, 0x100]), CodePointSet(vec![97, 98])]).unwrap();
        assert_eq!(classes.count, 3);
        assert_eq!(classes.of(97), classes.of(97));
        assert_eq!(classes.of(98), classes.of(0xE9));
        assert_ne!(classes.of(97), classes.of(98));
        assert_eq!(classes.members[1], 1 << classes.of(97));
        let mut symbols = vec![];
        classes.symbols_into("aé!".as_bytes(), 200, &mut symbols);
        assert_eq!(symbols, [97, 128 + classes.of(98), 200, 33]);
        classes.symbols_into(b"\xF0\x90", 200, &mut symbols);
        assert_eq!(symbols.len(), 2);
    }
}
