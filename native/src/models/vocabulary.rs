//! The two directions between token strings and ids.
//!
//! Where two tokens have one id, that id's token is the first of them in the file, as in the reference engine.

use std::collections::HashSet;

use crate::hash::{hash_bytes, prefetch};
use crate::stored_struct;
use crate::tables::Table;

const NOWHERE: u32 = u32::MAX;

/// Byte strings with an id each.
#[derive(Default)]
pub struct Vocabulary {
    text: Table<u8>,
    /// Start and end in `text`, and the id.
    entries: Table<[u32; 3]>,
    /// Open addressing: entry numbers, with a few bits of the hash above them.
    slots: Table<u32>,
    shift: u32,
    number_bits: u32,
    /// For each id, its entry.
    entry_of_id: Table<u32>,
    /// The same for ids far beyond the number of entries: id and entry, ascending.
    far_entries: Table<[u32; 2]>,
    longest: usize,
}
stored_struct!(Vocabulary { text, entries, slots, shift, number_bits, entry_of_id, far_entries, longest });

impl Vocabulary {
    /// Build from the entries of a file, in its order.
    pub fn new<'a>(tokens: impl ExactSizeIterator<Item = (&'a [u8], u32)>) -> Vocabulary {
        let count = tokens.len();
        let size = (count * 2).next_power_of_two().max(2);
        let (shift, number_bits) = (64 - size.trailing_zeros(), size.trailing_zeros().min(31));
        let (mut text, mut entries, mut slots) = (vec![], Vec::with_capacity(count), vec![NOWHERE; size]);
        let (mut entry_of_id, mut far_entries, mut far_ids) = (vec![], vec![], HashSet::new());
        let mut longest = 0;
        for ((token, id), number) in tokens.zip(0..) {
            let start = text.len() as u32;
            text.extend_from_slice(token);
            entries.push([start, text.len() as u32, id]);
            longest = longest.max(token.len());
            let hash = hash_bytes(token);
            let mut slot = (hash >> shift) as usize;
            while slots[slot] != NOWHERE {
                slot = (slot + 1) & (size - 1);
            }
            slots[slot] = tag(hash, number_bits) << number_bits | number;
            if (id as usize) < 4 * count + 1024 {
                if entry_of_id.len() <= id as usize {
                    entry_of_id.resize(id as usize + 1, NOWHERE);
                }
                if entry_of_id[id as usize] == NOWHERE {
                    entry_of_id[id as usize] = number;
                }
            } else if far_ids.insert(id) {
                far_entries.push([id, number]);
            }
        }
        far_entries.sort_unstable();
        Vocabulary {
            text: text.into(),
            entries: entries.into(),
            slots: slots.into(),
            shift,
            number_bits,
            entry_of_id: entry_of_id.into(),
            far_entries: far_entries.into(),
            longest,
        }
    }

    /// The id of a token.
    pub fn id(&self, token: &[u8]) -> Option<u32> {
        if token.len() > self.longest {
            return None;
        }
        self.id_hashed(token, hash_bytes(token))
    }

    /// What `id_hashed` wants, while the memory that it will look at is asked for.
    pub fn hash(&self, token: &[u8]) -> u64 {
        let hash = hash_bytes(token);
        prefetch(&self.slots, (hash >> self.shift) as usize);
        hash
    }

    /// The id of a token whose hash is known.
    pub fn id_hashed(&self, token: &[u8], hash: u64) -> Option<u32> {
        let tag = tag(hash, self.number_bits);
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot];
            if found == NOWHERE {
                return None;
            }
            if found >> self.number_bits == tag {
                let [start, end, id] = self.entries[(found & ((1 << self.number_bits) - 1)) as usize];
                if &self.text[start as usize..end as usize] == token {
                    return Some(id);
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The token of an id.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        let number = match self.entry_of_id.get(id as usize) {
            Some(&number) if number != NOWHERE => number,
            _ => self.far_entries[self.far_entries.binary_search_by_key(&id, |entry| entry[0]).ok()?][1],
        };
        let [start, end, _] = self.entries[number as usize];
        Some(&self.text[start as usize..end as usize])
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The largest id; 0 where there is none.
    pub fn largest_id(&self) -> u32 {
        self.entries.iter().map(|entry| entry[2]).max().unwrap_or(0)
    }

    /// Whether some tokens have the same id.
    pub fn shares_ids(&self) -> bool {
        let ids = self.entry_of_id.iter().filter(|&&number| number != NOWHERE).count() + self.far_entries.len();
        ids < self.entries.len()
    }

    /// Length in bytes of the longest token.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// All entries in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.entries.iter().map(|&[start, end, id]| (&self.text[start as usize..end as usize], id))
    }
}

/// The bits of a hash that a slot has room for, never all of them set.
#[inline]
fn tag(hash: u64, number_bits: u32) -> u32 {
    hash as u32 & ((1 << (31 - number_bits)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions() {
        let tokens: [(&[u8], u32); 4] = [(b"a", 0), (b"bc", 7), (b"d", 7), (b"far", 4_000_000_000)];
        let vocabulary = Vocabulary::new(tokens.into_iter());
        assert_eq!(vocabulary.id(b"bc"), Some(7));
        assert_eq!(vocabulary.id(b"d"), Some(7));
        assert_eq!(vocabulary.id(b"x"), None);
        assert_eq!(vocabulary.token(7), Some(&b"bc"[..]));
        assert_eq!(vocabulary.token(4_000_000_000), Some(&b"far"[..]));
        assert_eq!(vocabulary.token(3), None);
        assert!(vocabulary.shares_ids());
    }
}
