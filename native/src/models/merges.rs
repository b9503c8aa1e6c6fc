//! The merges of BPE: the table of pairs, and the two ways of working them off.
//!
//! A merge's rank is its position in the file and has nothing to do with its id. Short rows of symbols look for the lowest
//! rank again and again, in registers as far as the machine can; longer ones keep a heap, n log n. The two agree where
//! a merge makes a longer token that is both its sides put together (see `engine/reference/models/bpe.py`, `_is_odd`);
//! elsewhere only the heap is right.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};

/// Above every rank.
pub const NO_RANK: u32 = u32::MAX;
/// Rows of up to so many symbols are scanned.
pub const SHORT: usize = 32;

const ID_BITS: u32 = 22;
const RANK_BITS: u32 = 20;
const EMPTY: u64 = u64::MAX;

/// All merges of a model.
pub struct Merges {
    /// Open addressing: left id, right id and rank in one word.
    slots: Vec<u64>,
    shift: u32,
    /// For each rank, the id that it leads to.
    merged: Vec<u32>,
}

/// A heap and a linked list for long rows.
#[derive(Default)]
pub struct LongRow {
    heap: BinaryHeap<Reverse<u64>>,
    ranks: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Merges {
    /// Build from (left, right, merged), by rank. The last merge of a pair counts.
    pub fn new(merges: &[(u32, u32, u32)]) -> Result<Merges> {
        let too_large = merges.iter().any(|&(left, right, _)| left.max(right) >= (1 << ID_BITS) - 1);
        if merges.len() >= 1 << RANK_BITS || too_large {
            return Err(Error::unsupported("more than a million merges, or ids beyond four million", "$.model.merges"));
        }
        let size = (merges.len() * 3 / 2).next_power_of_two().max(16);
        let mut table = Merges {
            slots: vec![EMPTY; size],
            shift: 64 - size.trailing_zeros(),
            merged: merges.iter().map(|merge| merge.2).collect(),
        };
        for (rank, &(left, right, _)) in merges.iter().enumerate() {
            let key = key(left, right);
            let mut slot = table.slot(key);
            while table.slots[slot] != EMPTY && table.slots[slot] >> RANK_BITS != key {
                slot = (slot + 1) & (size - 1);
            }
            table.slots[slot] = key << RANK_BITS | rank as u64;
        }
        Ok(table)
    }

    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// The rank of a pair.
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let mut slot = self.slot(key);
        loop {
            let found = self.slots[slot];
            if found >> RANK_BITS == key {
                return found as u32 & ((1 << RANK_BITS) - 1);
            }
            if found == EMPTY {
                return NO_RANK;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The id that a rank leads to.
    #[inline(always)]
    pub fn merged(&self, rank: u32) -> u32 {
        self.merged[rank as usize]
    }

    /// Number of merges.
    pub fn len(&self) -> usize {
        self.merged.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.merged.is_empty()
    }

    /// Merge a row of at most `SHORT` symbols and append what is left. `ranks[i]` is the rank of symbols i and i + 1.
    #[inline]
    pub fn merge_short(&self, ids: &mut [u32; SHORT], ranks: &[u32; SHORT], length: usize, out: &mut Vec<u32>) {
        debug_assert!(0 < length && length <= SHORT);
        // The rank and the place in one number: its minimum is the leftmost pair of lowest rank.
        let mut pairs = [u32::MAX >> 1; SHORT];
        for (place, (pair, &rank)) in pairs.iter_mut().zip(ranks).enumerate().take(length - 1) {
            *pair = packed(rank, place);
        }
        let mut alive: u32 = if length == SHORT { u32::MAX } else { (1 << length) - 1 };
        loop {
            let lowest = match length {
                0..=8 => minimum::<8>(&pairs),
                9..=16 => minimum::<16>(&pairs),
                _ => minimum::<SHORT>(&pairs),
            };
            if lowest == u32::MAX >> 1 {
                break;
            }
            let place = (lowest & 31) as usize;
            let id = self.merged(lowest >> 5);
            ids[place] = id;
            let after = alive & !((2u32 << place).wrapping_sub(1));
            let gone = after.trailing_zeros() as usize;
            alive &= !(1 << gone);
            pairs[gone] = u32::MAX >> 1;
            let after = after & (after - 1);
            let before = alive & ((1 << place) - 1);
            pairs[place] = if after == 0 {
                u32::MAX >> 1
            } else {
                packed(self.rank(id, ids[after.trailing_zeros() as usize]), place)
            };
            if before != 0 {
                let left = 31 - before.leading_zeros() as usize;
                pairs[left] = packed(self.rank(ids[left], id), left);
            }
        }
        while alive != 0 {
            out.push(ids[alive.trailing_zeros() as usize]);
            alive &= alive - 1;
        }
    }

    /// Merge a row of any length in place, as the oracle does (models/bpe/word.rs). Afterwards symbol i is alive where
    /// `is_first` says so.
    pub fn merge_long(&self, ids: &mut [u32], row: &mut LongRow) {
        let length = ids.len();
        let LongRow { heap, ranks, next, previous } = row;
        ranks.clear();
        next.clear();
        previous.clear();
        ranks.extend(ids.windows(2).map(|pair| self.rank(pair[0], pair[1])));
        ranks.push(NO_RANK);
        next.extend(1..=length as u32);
        previous.extend((0..length as u32).map(|place| place.wrapping_sub(1)));
        let mut entries = std::mem::take(heap).into_vec();
        entries.clear();
        let known = ranks.iter().enumerate().filter(|(_, &rank)| rank != NO_RANK);
        entries.extend(known.map(|(place, &rank)| Reverse(u64::from(rank) << 32 | place as u64)));
        *heap = BinaryHeap::from(entries);
        while let Some(Reverse(entry)) = heap.pop() {
            let (rank, place) = ((entry >> 32) as u32, entry as u32 as usize);
            // The pair may have changed since. The oracle compares the ids that both lead to, and no more.
            if ranks[place] == NO_RANK || self.merged(ranks[place]) != self.merged(rank) {
                continue;
            }
            let right = next[place] as usize;
            ids[place] = self.merged(rank);
            ranks[right] = NO_RANK;
            let after = next[right] as usize;
            next[place] = after as u32;
            next[right] = u32::MAX;
            ranks[place] = NO_RANK;
            if after < length {
                previous[after] = place as u32;
                ranks[place] = self.rank(ids[place], ids[after]);
                if ranks[place] != NO_RANK {
                    heap.push(Reverse(u64::from(ranks[place]) << 32 | place as u64));
                }
            }
            if previous[place] != u32::MAX {
                let before = previous[place] as usize;
                ranks[before] = self.rank(ids[before], ids[place]);
                if ranks[before] != NO_RANK {
                    heap.push(Reverse(u64::from(ranks[before]) << 32 | before as u64));
                }
            }
        }
    }
}

impl LongRow {
    /// Whether the symbol at this place is the first of those that it was made of, after `merge_long`.
    pub fn is_first(&self, place: usize) -> bool {
        self.next[place] != u32::MAX
    }
}

#[inline(always)]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}

#[inline(always)]
fn packed(rank: u32, place: usize) -> u32 {
    if rank == NO_RANK {
        u32::MAX >> 1
    } else {
        rank << 5 | place as u32
    }
}

#[inline(always)]
fn minimum<const N: usize>(pairs: &[u32; SHORT]) -> u32 {
    // Signed, since the baseline of x86-64 compares no unsigned ones.
    let mut lanes = [i32::MAX; 4];
    for chunk in pairs[..N].chunks_exact(4) {
        for (lane, &pair) in lanes.iter_mut().zip(chunk) {
            *lane = (*lane).min(pair as i32);
        }
    }
    lanes[0].min(lanes[1]).min(lanes[2].min(lanes[3])) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_rows_agree() {
        // Ids 0 to 3 are letters; each pair of letters merges, and some of the results do.
        let mut merges = vec![];
        let mut next = 4;
        for round in 0..3u32 {
            for left in 0..next.min(12) {
                let right = (left * 7 + round * 5) % next.min(12);
                merges.push((left, right, next));
                next += 1;
            }
        }
        let table = Merges::new(&merges).unwrap();
        let mut state = 1u32;
        for length in 1..=SHORT {
            for _ in 0..50 {
                let mut ids = [0u32; SHORT];
                for id in &mut ids[..length] {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *id = (state >> 16) % 4;
                }
                let mut long_ids = ids[..length].to_vec();
                let mut row = LongRow::default();
                table.merge_long(&mut long_ids, &mut row);
                let expected: Vec<u32> = (0..length).filter(|&i| row.is_first(i)).map(|i| long_ids[i]).collect();
                let mut ranks = [NO_RANK; SHORT];
                for place in 0..length - 1 {
                    ranks[place] = table.rank(ids[place], ids[place + 1]);
                }
                let mut found = vec![];
                table.merge_short(&mut ids, &ranks, length, &mut found);
                assert_eq!(found, expected);
            }
        }
    }
}
