//! The two directions between token strings and ids.
//!
//! Where two tokens have one id, that id's token is the first of them in the file, as in the reference engine.

use crate::hash::{hash_bytes, prefetch, FastMap};

const NOWHERE: u32 = u32::MAX;

/// Byte strings with an id each.
#[derive(Default)]
pub struct Vocabulary {
    text: Vec<u8>,
    /// Start and end in `text`, and the id.
    entries: Vec<(u32, u32, u32)>,
    /// Open addressing: entry numbers, with a few bits of the hash above them.
    slots: Vec<u32>,
    shift: u32,
    number_bits: u32,
    /// For each id, its entry.
    entry_of_id: Vec<u32>,
    /// The same for ids far beyond the number of entries.
    far_entries: FastMap<u32, u32>,
    longest: usize,
}

impl Vocabulary {
    /// Build from the entries of a file, in its order.
    pub fn new<'a>(tokens: impl ExactSizeIterator<Item = (&'a [u8], u32)>) -> Vocabulary {
        let count = tokens.len();
        let size = (count * 2).next_power_of_two().max(2);
        let mut vocabulary = Vocabulary {
            entries: Vec::with_capacity(count),
            slots: vec![NOWHERE; size],
            shift: 64 - size.trailing_zeros(),
            number_bits: size.trailing_zeros().min(31),
            ..Vocabulary::default()
        };
        for (token, id) in tokens {
            vocabulary.insert(token, id, count);
        }
        vocabulary
    }

    fn insert(&mut self, token: &[u8], id: u32, count: usize) {
        let number = self.entries.len() as u32;
        let start = self.text.len() as u32;
        self.text.extend_from_slice(token);
        self.entries.push((start, self.text.len() as u32, id));
        self.longest = self.longest.max(token.len());
        let hash = hash_bytes(token);
        let mut slot = (hash >> self.shift) as usize;
        while self.slots[slot] != NOWHERE {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = self.tag(hash) << self.number_bits | number;
        if (id as usize) < 4 * count + 1024 {
            if self.entry_of_id.len() <= id as usize {
                self.entry_of_id.resize(id as usize + 1, NOWHERE);
            }
            if self.entry_of_id[id as usize] == NOWHERE {
                self.entry_of_id[id as usize] = number;
            }
        } else {
            self.far_entries.entry(id).or_insert(number);
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
        let tag = self.tag(hash);
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let found = self.slots[slot];
            if found == NOWHERE {
                return None;
            }
            if found >> self.number_bits == tag {
                let (start, end, id) = self.entries[(found & ((1 << self.number_bits) - 1)) as usize];
                if &self.text[start as usize..end as usize] == token {
                    return Some(id);
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The bits of a hash that a slot has room for, never all of them set.
    fn tag(&self, hash: u64) -> u32 {
        let bits = 31 - self.number_bits;
        hash as u32 & ((1 << bits) - 1)
    }

    /// The token of an id.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        let number = match self.entry_of_id.get(id as usize) {
            Some(&number) if number != NOWHERE => number,
            _ => *self.far_entries.get(&id)?,
        };
        let (start, end, _) = self.entries[number as usize];
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
        self.entries.iter().map(|entry| entry.2).max().unwrap_or(0)
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
        self.entries.iter().map(|&(start, end, id)| (&self.text[start as usize..end as usize], id))
    }
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
