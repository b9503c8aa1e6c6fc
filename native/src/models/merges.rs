//! The merges of BPE: the table of pairs, and the two ways of working them off.
//!
//! A merge's rank is its position in the file and has nothing to do with its id. Short rows of symbols look for the lowest
//! rank again and again, in registers as far as the machine can; longer ones keep a heap, n log n. The two agree where
//! a merge makes a longer token that is both its sides put together (see `engine/reference/models/bpe.py`, `_is_odd`);
//! elsewhere only the heap is right.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};
use crate::hash::{fold, prefetch};
use crate::stored_struct;
use crate::tables::Table;

/// Above every rank.
pub const NO_RANK: u32 = u32::MAX;
/// Rows of up to so many symbols are scanned.
pub const SHORT: usize = 64;

const ID_BITS: u32 = 32;
/// Bits of a place in a short row.
const PLACE_BITS: u32 = 6;
/// A rank and a place fit into 31 bits.
const RANK_BITS: u32 = 31 - PLACE_BITS;
const EMPTY: u64 = u64::MAX;
/// What stands for no pair in a row: above every packed rank.
const NO_PAIR: u32 = u32::MAX >> 1;
/// Short rows that are merged side by side.
const LANES: usize = 8;

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

    /// The rank of a pair and the id that it leads to; `NO_RANK` where there is no such merge.
    #[inline(always)]
    fn find(&self, left: u32, right: u32) -> (u32, u32) {
        let key = key(left, right);
        let mut slot = self.slot(key);
        loop {
            let found = self.slots[slot];
            if found.key == key {
                return (found.rank, found.merged);
            }
            if found.key == EMPTY {
                return (NO_RANK, 0);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The rank of a pair.
    #[inline(always)]
    pub fn rank(&self, left: u32, right: u32) -> u32 {
        self.find(left, right).0
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

    /// Merge the short rows of `work`.
    ///
    /// Several rows are in work at a time. The table of pairs is larger than the nearer caches, so each look into it waits;
    /// a row asks for its memory and gives its turn to the others.
    pub fn merge_rows(&self, work: &mut impl RowWork) {
        let mut rows = [Row::default(); LANES];
        let mut count = 0;
        while count < LANES && work.load(&mut rows[count]) {
            count += 1;
        }
        while count > 0 {
            let mut lane = 0;
            while lane < count {
                let row = &mut rows[lane];
                self.answer(row);
                if self.ask(row) {
                    lane += 1;
                    continue;
                }
                work.done(row);
                if work.load(row) {
                    // It has asked for nothing yet, and is looked at in the next round.
                    lane += 1;
                } else {
                    count -= 1;
                    rows[lane] = rows[count];
                }
            }
        }
    }

    /// Merge one short row.
    pub fn merge_row(&self, row: &mut Row) {
        while self.ask(row) {
            self.answer(row);
        }
    }

    /// Merge the leftmost pair of lowest rank, and ask for what is known of its new neighbours. False: there is none.
    #[inline(always)]
    fn ask(&self, row: &mut Row) -> bool {
        let lowest = row.lowest();
        if lowest == NO_PAIR {
            return false;
        }
        let place = (lowest & (SHORT as u32 - 1)) as usize;
        row.ids[place] = match row.merged[place] {
            BY_RANK => self.merged(lowest >> PLACE_BITS),
            merged => merged,
        };
        let after = row.alive & !((2u64 << place).wrapping_sub(1));
        let gone = after.trailing_zeros() as usize;
        row.alive &= !(1 << gone);
        row.pairs[gone] = NO_PAIR;
        row.pairs[place] = NO_PAIR;
        let after = after & (after - 1);
        let before = row.alive & ((1 << place) - 1);
        row.place = place as u8;
        row.right = if after == 0 { ALONE } else { after.trailing_zeros() as u8 };
        row.left = if before == 0 { ALONE } else { 63 - before.leading_zeros() as u8 };
        if row.right != ALONE {
            prefetch(&self.slots, self.slot(key(row.ids[place], row.ids[row.right as usize])));
        }
        if row.left != ALONE {
            prefetch(&self.slots, self.slot(key(row.ids[row.left as usize], row.ids[place])));
        }
        true
    }

    /// Look up what was asked for.
    #[inline(always)]
    fn answer(&self, row: &mut Row) {
        let place = row.place as usize;
        if row.right != ALONE {
            let (rank, merged) = self.find(row.ids[place], row.ids[row.right as usize]);
            row.set_pair(place, rank, merged);
            row.right = ALONE;
        }
        if row.left != ALONE {
            let left = row.left as usize;
            let (rank, merged) = self.find(row.ids[left], row.ids[place]);
            row.set_pair(left, rank, merged);
            row.left = ALONE;
        }
    }

    /// Merge a row of any length in place, as the oracle does (models/bpe/word.rs). Afterwards symbol i is alive where
    /// `is_first` says so.
    pub fn merge_long(&self, ids: &mut [u32], row: &mut LongRow) {
        row.ranks.clear();
        row.ranks.extend(ids.windows(2).map(|pair| self.rank(pair[0], pair[1])));
        self.merge_ranked(ids, row);
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

/// Rows to be merged, one after the other.
pub trait RowWork {
    /// Put the next row there; false: there is none.
    fn load(&mut self, row: &mut Row) -> bool;

    /// Take a row that is merged. They come in any order.
    fn done(&mut self, row: &Row);
}

const ALONE: u8 = u8::MAX;
/// In place of the id that a pair leads to: its rank tells.
const BY_RANK: u32 = u32::MAX;

/// A row of at most `SHORT` symbols at work.
#[derive(Clone, Copy)]
pub struct Row {
    /// Which row it is, for whoever loads it.
    pub number: usize,
    ids: [u32; SHORT],
    /// The rank of each symbol and the next one, with the place below it: the minimum is the leftmost of lowest rank.
    pairs: [u32; SHORT],
    /// The id that each pair leads to.
    merged: [u32; SHORT],
    /// A bit for each symbol that is there.
    alive: u64,
    length: u8,
    place: u8,
    left: u8,
    right: u8,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            number: 0,
            ids: [0; SHORT],
            pairs: [NO_PAIR; SHORT],
            merged: [0; SHORT],
            alive: 0,
            length: 0,
            place: 0,
            left: ALONE,
            right: ALONE,
        }
    }
}

impl Row {
    /// Begin with these symbols, without any pair.
    #[inline(always)]
    pub fn begin(&mut self, number: usize, symbols: impl Iterator<Item = u32>) {
        let mut length = 0;
        for symbol in symbols.take(SHORT) {
            self.ids[length] = symbol;
            length += 1;
        }
        self.number = number;
        self.length = length as u8;
        self.alive = if length == SHORT { u64::MAX } else { (1 << length) - 1 };
        let looked_at = match length {
            0..=8 => 8,
            9..=16 => 16,
            17..=32 => 32,
            _ => SHORT,
        };
        self.pairs[..looked_at].fill(NO_PAIR);
        (self.left, self.right) = (ALONE, ALONE);
    }

    /// Say at which rank the symbol at a place and the next one merge.
    #[inline(always)]
    pub fn set_rank(&mut self, place: usize, rank: u32) {
        self.set_pair(place, rank, BY_RANK);
    }

    #[inline(always)]
    fn set_pair(&mut self, place: usize, rank: u32, merged: u32) {
        self.pairs[place] = if rank == NO_RANK { NO_PAIR } else { rank << PLACE_BITS | place as u32 };
        self.merged[place] = merged;
    }

    /// The symbols that are left.
    #[inline(always)]
    pub fn append_to(&self, out: &mut Vec<u32>) {
        let mut alive = self.alive;
        while alive != 0 {
            out.push(self.ids[alive.trailing_zeros() as usize]);
            alive &= alive - 1;
        }
    }

    #[inline(always)]
    fn lowest(&self) -> u32 {
        match self.length {
            0..=8 => minimum::<8>(&self.pairs),
            9..=16 => minimum::<16>(&self.pairs),
            17..=32 => minimum::<32>(&self.pairs),
            _ => minimum::<SHORT>(&self.pairs),
        }
    }
}

#[inline(always)]
fn slot_of(key: u64, shift: u32) -> usize {
    (fold(key, 0x9E37_79B9_7F4A_7C15) >> shift) as usize
}

#[inline(always)]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
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
                let mut row = Row::default();
                let load = |row: &mut Row, number| {
                    row.begin(number, ids[..length].iter().copied());
                    for place in 0..length - 1 {
                        let (rank, merged) = table.find(ids[place], ids[place + 1]);
                        row.set_pair(place, rank, merged);
                    }
                };
                load(&mut row, 0);
                table.merge_row(&mut row);
                let mut found = vec![];
                row.append_to(&mut found);
                assert_eq!(found, expected);
                struct Same<'a>(&'a dyn Fn(&mut Row, usize), usize, Vec<Vec<u32>>);
                impl RowWork for Same<'_> {
                    fn load(&mut self, row: &mut Row) -> bool {
                        self.1 += 1;
                        (self.0)(row, self.1);
                        self.1 <= 20
                    }
                    fn done(&mut self, row: &Row) {
                        let mut found = vec![];
                        row.append_to(&mut found);
                        self.2.push(found);
                    }
                }
                let mut work = Same(&load, 0, vec![]);
                table.merge_rows(&mut work);
                assert_eq!(work.2, vec![expected; 20]);
            }
        }
    }
}
