//! The merges of BPE: the table of pairs, and how they are worked off in rows of any length, with a heap, n log n.
//!
//! A merge's rank is its position in the file and has nothing to do with its id. Short rows have a faster way
//! (`numbered_merges.rs`). The two agree where a merge makes a longer token that is both its sides put together (see
//! `engine/reference/models/bpe.py`, `_is_odd`); elsewhere only the heap is right.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};
use crate::hash::{fold, FIRST};
use crate::stored_struct;
use crate::tables::Table;

/// Above every rank.
pub const NO_RANK: u32 = u32::MAX;

const ID_BITS: u32 = 32;
/// A rank has so many at most.
const RANK_BITS: u32 = 25;
const EMPTY: u64 = u64::MAX;

/// All merges of a model.
pub struct Merges {
    /// Open addressing. A slot is 16 bytes, so that rank and result come with one look into memory.
    slots: Table<Slot>,
    shift: u32,
    /// For each rank, the id that it leads to.
    merged: Table<u32>,
}
stored_struct!(Merges { slots, shift, merged });

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Slot {
    /// Left and right id.
    key: u64,
    rank: u32,
    merged: u32,
}

/// A heap and a linked list for long rows.
#[derive(Default)]
pub struct LongRow {
    heap: BinaryHeap<Reverse<u64>>,
    /// The rank of each symbol and the next one.
    pub ranks: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
}

impl Merges {
    /// Build from (left, right, merged), by rank. The last merge of a pair counts.
    pub fn new(merges: &[(u32, u32, u32)]) -> Result<Merges> {
        if merges.len() >= 1 << RANK_BITS {
            return Err(Error::unsupported("more than 33 million merges", "$.model.merges"));
        }
        let size = (merges.len() * 3 / 2).next_power_of_two().max(16);
        let shift = 64 - size.trailing_zeros();
        let mut slots = vec![Slot { key: EMPTY, rank: NO_RANK, merged: 0 }; size];
        for (rank, &(left, right, merged)) in merges.iter().enumerate() {
            let key = key(left, right);
            let mut slot = slot_of(key, shift);
            while slots[slot].key != EMPTY && slots[slot].key != key {
                slot = (slot + 1) & (size - 1);
            }
            slots[slot] = Slot { key, rank: rank as u32, merged };
        }
        let merged = merges.iter().map(|merge| merge.2).collect::<Vec<u32>>().into();
        Ok(Merges { slots: slots.into(), shift, merged })
    }

    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        slot_of(key, self.shift)
    }

    /// The rank of a pair; `NO_RANK` where there is no such merge.
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let mut slot = self.slot(key);
        loop {
            let found = self.slots[slot];
            if found.key == key {
                return found.rank;
            }
            if found.key == EMPTY {
                return NO_RANK;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// All merges that count: left, right and merged, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        let used = self.slots.iter().filter(|slot| slot.key != EMPTY);
        used.map(|slot| ((slot.key >> ID_BITS) as u32, slot.key as u32, slot.merged))
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

    /// Merge a row of any length in place, as the oracle does (models/bpe/word.rs). Afterwards symbol i is alive where
    /// `is_first` says so.
    pub fn merge_long(&self, ids: &mut [u32], row: &mut LongRow) {
        self.rank_all(ids, row);
        self.merge_ranked(ids, row);
    }

    /// Find the ranks of a row.
    pub fn rank_all(&self, ids: &[u32], row: &mut LongRow) {
        row.ranks.clear();
        row.ranks.extend(ids.windows(2).map(|pair| self.rank(pair[0], pair[1])));
    }

    /// The same where `row.ranks` has the rank of each symbol and the next one.
    pub fn merge_ranked(&self, ids: &mut [u32], row: &mut LongRow) {
        let length = ids.len();
        let LongRow { heap, ranks, next, previous } = row;
        next.clear();
        previous.clear();
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
fn slot_of(key: u64, shift: u32) -> usize {
    (fold(key, FIRST) >> shift) as usize
}

#[inline(always)]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}
