//! Long pretokens and their ids, one behind the other in an arena, and an index into it by hash.

use crate::hash::prefetch;

/// See the module.
pub struct LongTable {
    /// The lower half of the hash, and the place in the arena; 0 is none.
    index: Vec<(u32, u32)>,
    shift: u32,
    count: usize,
    /// For each: its length, the number of its ids, the ids, and its bytes in words.
    arena: Vec<u32>,
}

impl LongTable {
    /// An empty table.
    pub fn new() -> LongTable {
        const BITS: u32 = 12;
        LongTable { index: vec![(0, 0); 1 << BITS], shift: 32 - BITS, count: 0, arena: vec![0] }
    }

    /// Words in the arena.
    pub fn arena_length(&self) -> usize {
        self.arena.len()
    }

    /// Whether the index has room for so many more.
    pub fn has_room(&self, more: usize) -> bool {
        2 * (self.count + more) <= self.index.len()
    }

    /// Make room in the index for so many more.
    pub fn make_room(&mut self, more: usize) {
        if self.has_room(more) {
            return;
        }
        let old = std::mem::take(&mut self.index);
        let bits = old.len().trailing_zeros() + 1;
        self.shift = 32 - bits;
        self.index = vec![(0, 0); 1 << bits];
        for item in old.into_iter().filter(|item| item.1 != 0) {
            let mut slot = self.home(u64::from(item.0));
            while self.index[slot].1 != 0 {
                slot = (slot + 1) & (self.index.len() - 1);
            }
            self.index[slot] = item;
        }
    }

    /// Where the search for a hash begins: its lower half tells, which the index has too.
    fn home(&self, hash: u64) -> usize {
        (hash as u32 >> self.shift) as usize
    }

    /// Ask for the memory of the index for a hash.
    pub fn ask(&self, hash: u64) {
        prefetch(&self.index, self.home(hash));
    }

    /// Ask for the memory of what the index has there.
    pub fn ask_further(&self, hash: u64) {
        prefetch(&self.arena, self.index[self.home(hash)].1 as usize);
    }

    /// The place of a pretoken in the arena, or the slot of the index where it belongs.
    fn find(&self, pretoken: &[u8], hash: u64) -> Result<u32, usize> {
        let mut slot = self.home(hash);
        loop {
            let (tag, place) = self.index[slot];
            if place == 0 {
                return Err(slot);
            }
            if tag == hash as u32 {
                let (length, _, bytes) = self.entry(place);
                if length == pretoken.len() && &as_bytes(bytes)[..length] == pretoken {
                    return Ok(place);
                }
            }
            slot = (slot + 1) & (self.index.len() - 1);
        }
    }

    /// Add a pretoken, if it is not there yet.
    pub fn insert(&mut self, pretoken: &[u8], hash: u64, ids: &[u32]) {
        let Err(slot) = self.find(pretoken, hash) else { return };
        self.index[slot] = (hash as u32, self.arena.len() as u32);
        self.count += 1;
        self.arena.extend([pretoken.len() as u32, ids.len() as u32]);
        self.arena.extend_from_slice(ids);
        self.arena.extend(pretoken.chunks(4).map(|chunk| {
            let mut word = [0u8; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_ne_bytes(word)
        }));
    }

    /// Append the ids of a pretoken; false: it is not there.
    pub fn copy(&self, pretoken: &[u8], hash: u64, ids: &mut Vec<u32>) -> bool {
        let found = self.find(pretoken, hash);
        if let Ok(place) = found {
            copy_some(&self.arena, place as usize + 2, self.arena[place as usize + 1] as usize, ids);
        }
        found.is_ok()
    }

    /// A pretoken in the arena: its length in bytes, its ids, and the words that hold its bytes.
    fn entry(&self, place: u32) -> (usize, &[u32], &[u32]) {
        let place = place as usize;
        let (length, count) = (self.arena[place] as usize, self.arena[place + 1] as usize);
        let bytes = place + 2 + count;
        (length, &self.arena[place + 2..bytes], &self.arena[bytes..bytes + length.div_ceil(4)])
    }
}

/// Append some of the words.
pub fn copy_some(words: &[u32], place: usize, count: usize, ids: &mut Vec<u32>) {
    const AT_ONCE: usize = 16;
    match words[place..].first_chunk::<AT_ONCE>() {
        // A copy of a length that is known costs less than the call of a function that copies.
        Some(words) if count <= AT_ONCE => {
            let length = ids.len() + count;
            ids.extend_from_slice(words);
            ids.truncate(length);
        }
        _ => ids.extend_from_slice(&words[place..place + count]),
    }
}

/// Words as bytes.
fn as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any four bytes of a u32 are bytes, u8 has no alignment, and the length is that of the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 4) }
}
