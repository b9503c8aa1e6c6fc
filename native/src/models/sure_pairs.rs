//! Pairs of symbols that merge whatever else does: where a row can begin with what they merge to.
//!
//! A pretoken has the symbols x, a, b, y one behind the other. As long as `a` and `b` are there, so is their merge, and
//! nothing with a higher number has its turn. Only a merge of something that ends with x can take `a` away from the left,
//! and only one of something that begins with y can take `b` away from the right. Where all of these have higher numbers, `a`
//! and `b` merge, and what happens before that happens elsewhere. If whatever the two of them merge with comes later still,
//! it makes no difference that they are one from the start.
//!
//! And borders across which nothing merges: where no merge is of something that ends with the symbol on the left and of
//! something that begins with the one on the right. What stands on one side has nothing to do with what stands on the other.

use super::numbered_merges::LONGEST;
use crate::hash::FastMap;
use crate::stored_struct;
use crate::tables::Table;

/// Symbols have a class each, most of them one of their own, their number. The last class may be that of all others.
const CLASSES: usize = 256;
/// An entry has three numbers of so many bits.
const BITS: u32 = 21;
/// Above all numbers.
const NOTHING: u64 = (1 << BITS) - 1;
/// The entry of two that have nothing to do with each other.
const APART: u64 = NOTHING << (2 * BITS) | NOTHING << BITS | NOTHING;
/// Above the numbers: something merges across the border between the two.
const IS_CROSSED: u64 = 1 << (3 * BITS);
/// So many borders may be crossed at most: see `SurePairs::tells_borders`.
const MOST_CROSSED: usize = 1 << 12;

/// The class of a symbol, and whether it is one that only stands at the end of a row and has a table of its own.
#[derive(Clone, Copy)]
pub struct Class {
    /// See `CLASSES`.
    pub number: u8,
    /// See the struct.
    pub is_end: bool,
}

/// See the module.
pub struct SurePairs {
    /// For two classes one behind the other, the place of their entry; behind them the same, where the second is at the end
    /// of a row. Small, since all of it is used.
    places: Table<u16>,
    /// The entries that differ: what two classes merge to; above it the lowest number of a merge of something that ends
    /// with the first and of the second; above that of a merge of the first and of something that begins with the second.
    entries: Table<u64>,
    tells_borders: bool,
}
stored_struct!(SurePairs { places, entries, tells_borders });

/// What is found of a symbol of a pretoken: a number, and whether something may merge across the border before it.
#[derive(Clone, Copy, Default)]
pub struct Found(u32);

const MAY_CROSS: u32 = 1 << 31;

impl Found {
    /// What the symbol before and this one surely merge to, if anything.
    #[inline(always)]
    pub fn merged(self) -> Option<u32> {
        let number = self.0 & !MAY_CROSS;
        (number != 0).then_some(number)
    }

    /// Whether something may merge across the border before it.
    #[inline(always)]
    pub fn may_cross(self) -> bool {
        self.0 & MAY_CROSS != 0
    }
}

/// Room for what is found in a pretoken.
pub type AllFound = [Found; LONGEST + 1];

impl SurePairs {
    /// Build from all merges that count (left, right, merged), the first and the last symbol of each number, and the
    /// classes of symbols; those without one of their own have the last one. `has_ends`: some are of the end.
    pub fn build(
        merges: &[[u32; 3]],
        ends: impl Fn(u32) -> (u32, u32),
        class: impl Fn(u32) -> Option<Class>,
        has_ends: bool,
    ) -> SurePairs {
        // Nobody stands behind a symbol of the end.
        let is_end = |symbol: u32| class(symbol).is_some_and(|class| class.is_end);
        let merges: Vec<[u32; 3]> = merges.iter().copied().filter(|merge| !is_end(ends(merge[0]).1)).collect();
        let count = merges.iter().map(|merge| merge[2] as usize + 1).max().unwrap_or(0);
        let mut lowest_with = vec![u32::MAX; count];
        for &[left, right, merged] in &merges {
            for side in [left, right] {
                lowest_with[side as usize] = merged.min(lowest_with[side as usize]);
            }
        }
        let mut entries = vec![APART; CLASSES * CLASSES * (1 + usize::from(has_ends))];
        let shared = Class { number: (CLASSES - 1) as u8, is_end: false };
        let place = |left: u32, right: u32| {
            let [left, right] = [left, right].map(|symbol| class(symbol).unwrap_or(shared));
            place(left.number, right)
        };
        let mut lower = |place: usize, part: u32, number: u32| {
            let entry = &mut entries[place];
            let lowest = (*entry >> (part * BITS) & NOTHING).min(u64::from(number));
            *entry = *entry & !(NOTHING << (part * BITS)) | lowest << (part * BITS);
        };
        for &[left, right, merged] in &merges {
            let (is_left, is_right) = (class(left).is_some(), class(right).is_some());
            if is_left && is_right && merged < lowest_with[merged as usize] {
                lower(place(left, right), 0, merged);
            }
            if is_right {
                lower(place(ends(left).1, right), 1, merged);
            }
            if is_left {
                lower(place(left, ends(right).0), 2, merged);
            }
        }
        for &[left, right, _] in &merges {
            entries[place(ends(left).1, ends(right).0)] |= IS_CROSSED;
        }
        let crossed = entries.iter().filter(|&entry| entry & IS_CROSSED != 0).count();
        let mut known: FastMap<u64, u16> = FastMap::default();
        let mut distinct = vec![];
        let mut places = Vec::with_capacity(entries.len());
        for entry in entries {
            let Ok(next) = u16::try_from(distinct.len()) else { return SurePairs::unknown() };
            places.push(*known.entry(entry).or_insert_with(|| {
                distinct.push(entry);
                next
            }));
        }
        SurePairs { places: places.into(), entries: distinct.into(), tells_borders: crossed <= MOST_CROSSED }
    }

    /// For symbols whose classes tell nothing.
    pub fn unknown() -> SurePairs {
        let places = vec![0; CLASSES * CLASSES * 2];
        SurePairs { places: places.into(), entries: vec![APART].into(), tells_borders: false }
    }

    /// Whether rows should end at borders that nothing crosses. Where much may be crossed they seldom end, and to look
    /// for that costs more than it saves.
    pub fn tells_borders(&self) -> bool {
        self.tells_borders
    }

    /// Let rows be whole pretokens.
    #[cfg(test)]
    pub fn forget_borders(&mut self) {
        self.tells_borders = false;
    }

    #[inline(always)]
    fn entry(&self, left: u8, right: Class) -> u64 {
        self.entries[usize::from(self.places[place(left, right)])]
    }

    /// For each symbol of a pretoken, by its class, what the one before and it surely merge to, and whether something may
    /// merge across the border between them; behind them nothing. With `has_end` the last one is a symbol of the end.
    #[inline(always)]
    pub fn find(&self, classes: &[u8], has_end: bool, found: &mut AllFound) {
        let Some((&last, classes)) = classes.split_last() else { return };
        let end = Class { number: last, is_end: has_end };
        let Some((&first, rest)) = classes.split_first() else {
            (found[0], found[1]) = (Found(0), Found(0));
            return;
        };
        let (mut before, mut this, mut class) = (APART, APART, first);
        for (&next_class, found) in rest.iter().zip(&mut *found) {
            let next = self.entry(class, Class { number: next_class, is_end: false });
            *found = told(before, this, next);
            (before, this, class) = (this, next, next_class);
        }
        let next = self.entry(class, end);
        found[rest.len()] = told(before, this, next);
        found[rest.len() + 1] = told(this, next, APART);
        found[rest.len() + 2] = Found(0);
    }
}

/// Where the entry of two classes is.
#[inline(always)]
fn place(left: u8, right: Class) -> usize {
    (usize::from(right.is_end) * CLASSES + usize::from(left)) * CLASSES + usize::from(right.number)
}

/// What is told of the two symbols of an entry, where the border to one before them and that to one behind them have
/// these.
#[inline(always)]
fn told(before: u64, this: u64, behind: u64) -> Found {
    let merged = this & NOTHING;
    let bound = (before >> BITS & NOTHING).min(behind >> (2 * BITS) & NOTHING);
    let merged = if merged < bound { merged as u32 } else { 0 };
    Found(merged | (this >> 32) as u32 & MAY_CROSS)
}
