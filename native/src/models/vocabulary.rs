//! The two directions between token strings and ids.
//!
//! Where two tokens have one id, that id's token is the first of them in the file, as in the reference engine.

use crate::hash::{hash_bytes, FastMap};

const NOWHERE: u32 = u32::MAX;

/// Byte strings with an id each.
#[derive(Default)]
pub struct Vocabulary {
    text: Vec<u8>,
    /// Start and end in `text`, and the id.
    entries: Vec<(u32, u32, u32)>,
    /// Open addressing: entry numbers.
    slots: Vec<u32>,
    shift: u32,
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
        let mut slot = (hash_bytes(token) >> self.shift) as usize;
        while self.slots[slot] != NOWHERE {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = number;
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
        let mut slot = (hash_bytes(token) >> self.shift) as usize;
        loop {
            let number = self.slots[slot];
            if number == NOWHERE {
                return None;
            }
            let (start, end, id) = self.entries[number as usize];
            if &self.text[start as usize..end as usize] == token {
                return Some(id);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
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
