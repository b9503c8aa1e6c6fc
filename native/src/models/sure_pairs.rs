//! Pairs of symbols that merge whatever else does: where a row can begin with what they merge to.
//!
//! A pretoken has the symbols x, a, b, y one behind the other. As long as `a` and `b` are there, so is their merge, and
//! nothing with a higher number has its turn. Only a merge of something that ends with x can take `a` away from the left,
//! and only one of something that begins with y can take `b` away from the right. Where all of these have higher numbers, `a`
//! and `b` merge, and what happens before that happens elsewhere. If whatever the two of them merge with comes later still,
//! it makes no difference that they are one from the start.

use super::numbered_merges::LONGEST;
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

/// See the module.
pub struct SurePairs {
    /// For two classes one behind the other what they merge to; above it the lowest number of a merge of something that
    /// ends with the first and of the second; above that of a merge of the first and of something that begins with the
    /// second.
    entries: Table<u64>,
}
stored_struct!(SurePairs { entries });

/// Room for what is found in a pretoken.
pub type Found = [u32; LONGEST + 1];

impl SurePairs {
    /// Build from all merges that count (left, right, merged), the first and the last symbol of each number, and the
    /// classes of symbols; those without one of their own have the last one.
    pub fn build(
        merges: &[[u32; 3]],
        ends: impl Fn(u32) -> (u32, u32),
        class: impl Fn(u32) -> Option<u8>,
    ) -> SurePairs {
        let count = merges.iter().map(|merge| merge[2] as usize + 1).max().unwrap_or(0);
        let mut lowest_with = vec![u32::MAX; count];
        for &[left, right, merged] in merges {
            for side in [left, right] {
                lowest_with[side as usize] = merged.min(lowest_with[side as usize]);
            }
        }
        let mut entries = vec![APART; CLASSES * CLASSES];
        let mut lower = |left: u32, right: u32, part: u32, number: u32| {
            let class = |symbol: u32| class(symbol).map_or(CLASSES - 1, usize::from);
            let entry = &mut entries[class(left) * CLASSES + class(right)];
            let lowest = (*entry >> (part * BITS) & NOTHING).min(u64::from(number));
            *entry = *entry & !(NOTHING << (part * BITS)) | lowest << (part * BITS);
        };
        for &[left, right, merged] in merges {
            let (is_left, is_right) = (class(left).is_some(), class(right).is_some());
            if is_left && is_right && merged < lowest_with[merged as usize] {
                lower(left, right, 0, merged);
            }
            if is_right {
                lower(ends(left).1, right, 1, merged);
            }
            if is_left {
                lower(left, ends(right).0, 2, merged);
            }
        }
        SurePairs { entries: entries.into() }
    }

    /// For each symbol of a pretoken, by its class, what the one before and it surely merge to, else 0; behind them 0.
    #[inline(always)]
    pub fn find(&self, classes: &[u8], found: &mut Found) {
        let Some((&first, rest)) = classes.split_first() else { return };
        let (mut before, mut this, mut class) = (APART, APART, first);
        for (&next_class, found) in rest.iter().zip(&mut *found) {
            let next = self.entries[usize::from(class) * CLASSES + usize::from(next_class)];
            *found = sure(before, this, next);
            (before, this, class) = (this, next, next_class);
        }
        found[rest.len()] = sure(before, this, APART);
        found[classes.len()] = 0;
    }
}

/// What the two symbols of an entry merge to if they do so surely between those of two others, else 0.
#[inline(always)]
fn sure(before: u64, this: u64, behind: u64) -> u32 {
    let merged = this & NOTHING;
    let bound = (before >> BITS & NOTHING).min(behind >> (2 * BITS));
    if merged < bound {
        merged as u32
    } else {
        0
    }
}
