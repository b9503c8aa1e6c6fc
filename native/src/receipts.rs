//! What the engine remembers of its last encodings: that a text has these ids, and what their marks say (`witness.rs`).
//!
//! So verification need not encode a text again to know that these are its ids. A receipt is a hash of text and ids, of
//! 124 bits, with random keys; two documents of which one was encoded and the other has another hash are never
//! taken for each other, and two with the same hash are not to be expected before the sun goes out.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering as Order};
use std::sync::Mutex;

use crate::columns::{IdColumn, TextColumn};
use crate::hash::fold;
use crate::locks::taken;
use crate::witness::MARKS;

/// Receipts that are kept: a later one takes the place of an earlier one. 16 bytes each.
pub const KEPT: usize = 1 << 16;

/// The receipts of an engine.
pub struct Receipts {
    /// Whether somebody wants them.
    are_wanted: AtomicBool,
    keys: [u64; 8],
    /// A hash with four marks in its lowest bits; 0: none.
    table: Mutex<Vec<u128>>,
}

impl Default for Receipts {
    fn default() -> Receipts {
        let random = RandomState::new();
        let key = |number: usize| {
            let mut hasher = random.build_hasher();
            hasher.write_usize(number);
            hasher.finish() | 1
        };
        Receipts { are_wanted: AtomicBool::new(false), keys: std::array::from_fn(key), table: Mutex::default() }
    }
}

impl Receipts {
    /// From now on, remember.
    pub fn want(&self) {
        self.are_wanted.store(true, Order::Release);
    }

    /// Whether somebody wants receipts.
    pub fn are_wanted(&self) -> bool {
        self.are_wanted.load(Order::Acquire)
    }

    /// Remember the rows of a column that were encoded whole, with their marks. Where there are none, they are remembered
    /// only `if_unmarked`, with marks that say nothing.
    pub fn add(&self, texts: TextColumn, column: &IdColumn, add_special_tokens: bool, if_unmarked: bool) {
        let is_marked = !column.marks.is_empty() && column.marks.len() == texts.rows();
        if !self.are_wanted() || !is_marked && !if_unmarked {
            return;
        }
        let mut left_out: Vec<usize> = column.failures.iter().map(|(row, _)| *row).collect();
        left_out.extend(column.truncated_rows.iter().map(|&row| row as usize));
        left_out.sort_unstable();
        let Some(mut table) = taken(&self.table) else { return };
        table.resize(KEPT, 0);
        for row in 0..texts.rows() {
            let marks = if is_marked { column.marks[row] } else { MARKS };
            if left_out.binary_search(&row).is_err() {
                let ids = &column.ids[column.list_offsets[row] as usize..column.list_offsets[row + 1] as usize];
                let text = texts.bytes(texts.offset(row), texts.offset(row + 1));
                let hash = self.hash(text, ids, add_special_tokens);
                table[(hash >> 64) as usize % KEPT] = hash & !0xF | u128::from(marks >> MARKS.trailing_zeros());
            }
        }
    }

    /// The marks of a text, if it is known to have these ids.
    pub fn marks(&self, text: &[u8], ids: &[u32], add_special_tokens: bool) -> Option<u32> {
        if taken(&self.table)?.is_empty() {
            return None;
        }
        let hash = self.hash(text, ids, add_special_tokens);
        let known = *taken(&self.table)?.get((hash >> 64) as usize % KEPT)?;
        (known != 0 && known & !0xF == hash & !0xF).then(|| ((known & 0xF) as u32) << MARKS.trailing_zeros())
    }

    fn hash(&self, text: &[u8], ids: &[u32], add_special_tokens: bool) -> u128 {
        let keys = &self.keys;
        let mut lanes = [keys[4], keys[5], keys[6], keys[7] ^ u64::from(add_special_tokens)];
        let mut mix = |words: [u64; 4]| {
            for ((lane, word), key) in lanes.iter_mut().zip(words).zip(keys) {
                *lane = fold(*lane ^ word, *key);
            }
        };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let mut blocks = text.chunks_exact(32);
        for block in &mut blocks {
            mix([word(&block[..8]), word(&block[8..16]), word(&block[16..24]), word(&block[24..])]);
        }
        let mut last = [0; 32];
        last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
        mix([word(&last[..8]), word(&last[8..16]), word(&last[16..24]), word(&last[24..])]);
        let pair = |ids: &[u32]| u64::from(ids[0]) | u64::from(ids[1]) << 32;
        let mut blocks = ids.chunks_exact(8);
        for block in &mut blocks {
            mix([pair(&block[..2]), pair(&block[2..4]), pair(&block[4..6]), pair(&block[6..])]);
        }
        let mut last = [0; 8];
        last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
        mix([pair(&last[..2]), pair(&last[2..4]), pair(&last[4..6]), pair(&last[6..])]);
        mix([text.len() as u64, ids.len() as u64, 0, 0]);
        let low = fold(lanes[0] ^ keys[5], lanes[1] ^ keys[6]) ^ fold(lanes[2] ^ keys[7], lanes[3] ^ keys[4]);
        let high = fold(lanes[0] ^ keys[6], lanes[2] ^ keys[5]) ^ fold(lanes[1] ^ keys[4], lanes[3] ^ keys[7]);
        u128::from(low) | u128::from(high) << 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::witness::DIRTY;

    #[test]
    fn only_what_was_encoded_has_a_receipt() {
        let receipts = Receipts::default();
        let data = "onetwothree".repeat(20);
        let texts = TextColumn::new(data.as_bytes(), &[0, 3, 6, 6, 200][..]).expect("in order");
        let long: Vec<u32> = (0..50).collect();
        let column = IdColumn {
            ids: [&[1, 2, 3][..], &long].concat(),
            list_offsets: vec![0, 2, 3, 3, 53],
            failures: vec![(2, Error::encode("no"))],
            truncated_rows: vec![1],
            marks: vec![0, 0, 0, DIRTY],
        };
        assert_eq!(receipts.marks(b"one", &[1, 2], true), None);
        receipts.add(texts, &column, true, false);
        assert_eq!(receipts.marks(b"one", &[1, 2], true), None, "nobody has asked");
        receipts.want();
        receipts.add(texts, &IdColumn { marks: vec![], ..column.clone() }, true, false);
        assert_eq!(receipts.marks(b"one", &[1, 2], true), None, "it has no marks");
        receipts.add(texts, &IdColumn { marks: vec![], ..column.clone() }, true, true);
        assert_eq!(receipts.marks(b"one", &[1, 2], true), Some(MARKS));
        assert_eq!(receipts.marks(b"two", &[3], true), None, "it was truncated");
        receipts.add(texts, &column, true, false);
        assert_eq!(receipts.marks(b"one", &[1, 2], true), Some(0));
        assert_eq!(receipts.marks(b"one", &[1, 2], false), None);
        assert_eq!(receipts.marks(b"one", &[2, 1], true), None);
        assert_eq!(receipts.marks(b"onf", &[1, 2], true), None);
        assert_eq!(receipts.marks(b"two", &[3], true), None, "it was truncated");
        assert_eq!(receipts.marks(b"", &[], true), None, "it failed");
        let text = &data.as_bytes()[6..200];
        assert_eq!(receipts.marks(text, &long, true), Some(DIRTY));
        for at in 0..long.len() {
            let mut other = long.clone();
            other[at] ^= 1 << (at % 32);
            assert_eq!(receipts.marks(text, &other, true), None);
        }
        for at in 0..text.len() {
            let mut other = text.to_vec();
            other[at] ^= 1;
            assert_eq!(receipts.marks(&other, &long, true), None);
        }
    }
}
