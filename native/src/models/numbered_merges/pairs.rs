//! What pairs of numbers merge to: four of them lie in a bucket and are compared at once.

use bytemuck::{Pod, Zeroable};
use wide::u32x4;

use super::{BITS, NOTHING};
use crate::hash::{fold, prefetch, FIRST};
use crate::stored_struct;
use crate::tables::Table;

/// In the upper half of a slot, the bits of the key that the lower half has no room for.
const HIGH_SHIFT: u32 = 24;
/// In the last slot of a bucket: there was no room for all that belong here, and one has to look into the next one as well.
const IS_OVERFULL: u32 = 1 << (HIGH_SHIFT - 1);
/// Below it there is what lacks from `NOTHING` to what the pair merges to.
const LACKING: u32 = IS_OVERFULL - 1;
/// The key of a pair that nobody asks for.
const EMPTY: u64 = ((1 << BITS) - 2) << BITS;
/// Slots of a bucket.
const SLOTS: usize = 4;

/// See the module.
pub struct Pairs {
    buckets: Table<Bucket>,
    shift: u32,
}
stored_struct!(Pairs { buckets, shift });

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(32))]
struct Bucket {
    /// The lower halves of the keys.
    low: [u32; SLOTS],
    /// What is left of each key, and what it merges to.
    high: [u32; SLOTS],
}

impl Pairs {
    /// Build from left, right and merged. The numbers are below `NOBODY` - 1.
    pub fn build(merges: &[[u32; 3]]) -> Pairs {
        let size = merges.len().next_power_of_two().max(SLOTS * 2) * 2 / SLOTS;
        let shift = 64 - size.trailing_zeros();
        let mut buckets = vec![Bucket::EMPTY; size];
        for &[left, right, merged] in merges {
            let key = key(left, right);
            let mut bucket = bucket_of(key, shift);
            while !buckets[bucket].add(key, merged) {
                bucket = (bucket + 1) & (size - 1);
            }
        }
        Pairs { buckets: buckets.into(), shift }
    }

    /// What two tokens merge to, or `NOTHING`.
    #[inline(always)]
    pub fn merged(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let bucket = bucket_of(key, self.shift);
        let slots = &self.buckets[bucket];
        let lacking = slots.lacking(key);
        if slots.is_overfull() && lacking == 0 {
            return self.merged_further(key, bucket);
        }
        NOTHING - lacking
    }

    #[cold]
    #[inline(never)]
    fn merged_further(&self, key: u64, mut bucket: usize) -> u32 {
        loop {
            let slots = &self.buckets[bucket];
            let lacking = slots.lacking(key);
            if lacking != 0 || !slots.is_overfull() {
                return NOTHING - lacking;
            }
            bucket = (bucket + 1) & (self.buckets.len() - 1);
        }
    }

    /// Ask for the memory of a pair.
    #[inline(always)]
    pub fn ask(&self, left: u32, right: u32) {
        prefetch(&self.buckets, bucket_of(key(left, right), self.shift));
    }
}

impl Bucket {
    const EMPTY: Bucket = Bucket { low: [EMPTY as u32; SLOTS], high: [high_half(EMPTY); SLOTS] };

    /// What lacks from `NOTHING` to what the pair of a key merges to; 0 if it is not here.
    #[inline(always)]
    fn lacking(&self, key: u64) -> u32 {
        let (low, high) = (u32x4::new(self.low), u32x4::new(self.high));
        let is_low = low.cmp_eq(u32x4::splat(key as u32));
        let is_high = (high >> HIGH_SHIFT as i32).cmp_eq(u32x4::splat((key >> 32) as u32));
        let [first, second, third, fourth] = (is_low & is_high & high).to_array();
        ((first | second) | (third | fourth)) & LACKING
    }

    fn is_overfull(&self) -> bool {
        self.high[SLOTS - 1] & IS_OVERFULL != 0
    }

    /// Add a pair; false: there is no room, which is then written down.
    fn add(&mut self, key: u64, merged: u32) -> bool {
        let is_free = |at: &usize| {
            (self.low[*at], self.high[*at] >> HIGH_SHIFT) == (EMPTY as u32, high_half(EMPTY) >> HIGH_SHIFT)
        };
        let Some(at) = (0..SLOTS).find(is_free) else {
            self.high[SLOTS - 1] |= IS_OVERFULL;
            return false;
        };
        (self.low[at], self.high[at]) = (key as u32, high_half(key) | (NOTHING - merged));
        true
    }
}

/// The upper half of a slot with this key.
const fn high_half(key: u64) -> u32 {
    ((key >> 32) as u32) << HIGH_SHIFT
}

#[inline(always)]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << BITS | u64::from(right)
}

#[inline(always)]
fn bucket_of(key: u64, shift: u32) -> usize {
    (fold(key, FIRST) >> shift) as usize
}
