//! Long pretokens and their ids, one behind the other in an arena, and an index into it by hash.

use super::lists;
use crate::hash::prefetch;
use crate::pages::{Pages, Words};

/// Slots of an index that is new.
const FIRST_SLOTS: usize = 1 << 12;
/// Slots that make no large index.
const SMALL: usize = 1 << 16;

/// See the module.
pub struct LongTable {
    /// The lower half of the hash, and the place in the arena; 0 is none.
    index: Pages<[u32; 2]>,
    shift: u32,
    count: usize,
    /// For each: its length, the number of its ids, the ids, and its bytes in words.
    arena: Words,
}

impl LongTable {
    /// An empty table, with room in the arena for so many words.
    pub fn new(room: usize) -> LongTable {
        let mut arena = Words::with_room(room);
        // No place is 0.
        arena.behind(1);
        arena.keep(1);
        LongTable { index: Pages::new(FIRST_SLOTS), shift: 32 - FIRST_SLOTS.trailing_zeros(), count: 0, arena }
    }

    /// Words in the arena.
    pub fn arena_length(&self) -> usize {
        self.arena.count()
    }

    /// Whether the index has room for so many more.
    pub fn has_room(&self, more: usize) -> bool {
        2 * (self.count + more) <= self.index.items().len()
    }

    /// Make room in the index for so many more.
    pub fn make_room(&mut self, more: usize) {
        if self.has_room(more) {
            return;
        }
        let old = std::mem::replace(&mut self.index, Pages::new(1));
        let slots = old.items().len();
        let slots = if slots < SMALL { 4 * slots } else { 2 * slots };
        self.shift = 32 - slots.trailing_zeros();
        self.index = Pages::new(slots);
        for item in old.items().iter().filter(|item| item[1] != 0) {
            let slot = self.free_slot(u64::from(item[0]));
            self.index.items_mut()[slot] = *item;
        }
    }

    /// The slot of the index for a hash that is not there.
    fn free_slot(&self, hash: u64) -> usize {
        let index = self.index.items();
        let mut slot = self.home(hash);
        while index[slot][1] != 0 {
            slot = (slot + 1) & (index.len() - 1);
        }
        slot
    }

    /// Where the search for a hash begins: its lower half tells, which the index has too.
    fn home(&self, hash: u64) -> usize {
        (hash as u32 >> self.shift) as usize
    }

    /// Ask for the memory of the index for a hash.
    pub fn ask(&self, hash: u64) {
        prefetch(self.index.items(), self.home(hash));
    }

    /// Ask for the memory of what the index has there.
    pub fn ask_further(&self, hash: u64) {
        prefetch(self.arena.all(), self.index.items()[self.home(hash)][1] as usize);
    }

    /// The place of a pretoken in the arena.
    fn find(&self, pretoken: &[u8], hash: u64) -> Option<usize> {
        let index = self.index.items();
        let mut slot = self.home(hash);
        loop {
            let [tag, place] = index[slot];
            if place == 0 {
                return None;
            }
            if tag == hash as u32 {
                let (length, _, bytes) = self.entry(place);
                if length == pretoken.len() && &as_bytes(bytes)[..length] == pretoken {
                    return Some(place as usize);
                }
            }
            slot = (slot + 1) & (index.len() - 1);
        }
    }

    /// Add a pretoken that is not there yet, with `count` ids that lie at a place among words.
    pub fn insert(&mut self, pretoken: &[u8], hash: u64, words: &[u32], place: usize, count: usize) {
        let slot = self.free_slot(hash);
        self.index.items_mut()[slot] = [hash as u32, self.arena.count() as u32];
        self.count += 1;
        let length = 2 + count + pretoken.len().div_ceil(4);
        let room = self.arena.behind(length.max(1 + lists::room(count)));
        room[0] = pretoken.len() as u32;
        lists::write(&mut room[1..], words, place, count);
        let (chunks, bytes) = (pretoken.chunks_exact(4), &mut room[2 + count..length]);
        if let Some(last) = bytes.last_mut() {
            // It is written again where it is a whole one.
            let mut word = [0u8; 4];
            word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
            *last = u32::from_ne_bytes(word);
        }
        for (word, chunk) in bytes.iter_mut().zip(chunks) {
            *word = u32::from_ne_bytes(chunk.try_into().expect("4 bytes"));
        }
        self.arena.keep(length);
    }

    /// Append the ids of a pretoken; false: it is not there.
    pub fn copy(&self, pretoken: &[u8], hash: u64, ids: &mut Vec<u32>) -> bool {
        let found = self.find(pretoken, hash);
        if let Some(place) = found {
            lists::append(self.arena.all(), place + 1, ids);
        }
        found.is_some()
    }

    /// A pretoken in the arena: its length in bytes, its ids, and the words that hold its bytes.
    fn entry(&self, place: u32) -> (usize, &[u32], &[u32]) {
        let (arena, place) = (self.arena.all(), place as usize);
        let (length, count) = (arena[place] as usize, arena[place + 1] as usize);
        let bytes = place + 2 + count;
        (length, &arena[place + 2..bytes], &arena[bytes..bytes + length.div_ceil(4)])
    }
}

/// Words as bytes.
fn as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any four bytes of a u32 are bytes, u8 has no alignment, and the length is that of the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 4) }
}
