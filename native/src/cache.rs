//! The pretoken cache: ids of the pretokens seen so far, in the order of first appearance.
//!
//! A u32 index (linear probing, at most half full) leads into dense entries of 32 bytes: up to 15 bytes of text with their
//! length, and three ids with their count. More ids, and the bytes of longer pretokens, lie in an arena, which a
//! second index serves. What is longer than `LONGEST` is not kept. All of it is bounded: when it is full, it is
//! forgotten, and begins anew.
//!
//! Pretokens are looked up in batches, in three loops (hash; index; entry), so that the waits for memory overlap. What the
//! index does not know goes to the model all at once, before the third loop. Within a batch nothing may grow or be
//! forgotten that the batch has already looked up; hence new entries are only added.

use crate::error::{Error, Result};
use crate::hash::{hash_bytes, prefetch};
use crate::models::PretokenModel;

/// Pretokens a batch.
const BATCH: usize = 128;
/// Bytes of text in an entry.
const SHORT: usize = 15;
/// Longer pretokens are not kept: they seldom come twice.
const LONGEST: usize = 1024;
/// Ids that are copied at once, without a look at how many there are.
const AT_ONCE: usize = 8;
/// In place of a place in the arena: the index has another pretoken there.
const ANOTHER: u32 = u32::MAX;
/// A span with this bit is passed over.
pub const SKIP: u32 = 1 << 31;

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Entry {
    key: [u64; 2],
    /// Ids, and their number at the end; with more than three, the place of all of them in the arena comes first.
    ids: [u32; 4],
}

/// What happens between two spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An id comes here.
    Id(u32),
    /// A document ends here.
    EndOfDocument,
}

/// The cache of one thread, for one model.
pub struct Cache<S> {
    index: Vec<u32>,
    shift: u32,
    entries: Vec<Entry>,
    long_index: Vec<(u32, u32)>,
    long_shift: u32,
    long_count: usize,
    arena: Vec<u32>,
    /// What the model made of new pretokens, and where.
    ids: Vec<u32>,
    places: Vec<Option<(u32, u32)>>,
    scratch: S,
    most_entries: usize,
    most_arena: usize,
}

/// Masks for the bytes of a key, by length; lengths above 15 get a tag that no entry has.
const KEYS: [[u64; 3]; 17] = {
    let mut masks = [[0u64; 3]; 17];
    let mut length = 0;
    while length < 17 {
        masks[length][0] = if length >= 8 { u64::MAX } else { (1 << (8 * length)) - 1 };
        masks[length][1] = match length {
            0..=8 => 0,
            9..=14 => (1 << (8 * (length - 8))) - 1,
            _ => (1 << 56) - 1,
        };
        masks[length][2] = (length as u64) << 56;
        length += 1;
    }
    masks
};

#[inline(always)]
fn key_of(bytes: &[u8; 16], length: usize) -> [u64; 2] {
    let masks = &KEYS[length.min(16)];
    let word = u128::from_le_bytes(*bytes);
    [word as u64 & masks[0], (word >> 64) as u64 & masks[1] | masks[2]]
}

#[inline(always)]
fn hash_of(key: [u64; 2]) -> u64 {
    key[0].wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(key[1].wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
}

/// The ids of a run of spans with the failures among them.
pub struct Output<'a> {
    /// Ids of all documents.
    pub ids: &'a mut Vec<u32>,
    /// The first failure since the last document ended.
    pub failure: Option<Error>,
}

impl<S: Default> Cache<S> {
    /// An empty cache that keeps at most so many short pretokens, and as many words of four bytes in its arena times four.
    pub fn new(most_entries: usize) -> Cache<S> {
        let mut cache = Cache {
            index: vec![],
            shift: 0,
            entries: vec![],
            long_index: vec![],
            long_shift: 0,
            long_count: 0,
            arena: vec![],
            ids: vec![],
            places: vec![],
            scratch: S::default(),
            most_entries: most_entries.next_power_of_two().clamp(1 << 12, 1 << 30),
            most_arena: most_entries.saturating_mul(4).clamp(1 << 16, 1 << 30),
        };
        cache.forget();
        cache
    }

    fn forget(&mut self) {
        let bits = 15;
        self.index.clear();
        self.index.resize(1 << bits, 0);
        self.shift = 64 - bits;
        self.entries.clear();
        // Entry 0 is what an empty slot of the index leads to; it is the empty pretoken, which has no ids.
        self.entries.push(Entry { key: [0; 2], ids: [0; 4] });
        self.long_index.clear();
        self.long_index.resize(1 << 12, (0, 0));
        self.long_shift = 64 - 12;
        self.long_count = 0;
        self.arena.clear();
        self.arena.push(0);
    }

    /// Append the ids of spans, and let `on_event` write between them.
    ///
    /// Span i is `text[starts[i]..starts[i + 1]]`, so `starts` has one number more than there are spans; a span whose
    /// start has the bit `SKIP` has no ids. `events` are (span, event), ascending: the event happens before that span.
    pub fn encode<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        text: &[u8],
        starts: &[u32],
        events: &[(u32, Event)],
        output: &mut Output,
        mut on_event: impl FnMut(Event, &mut Output),
    ) {
        let count = starts.len().saturating_sub(1);
        let mut events = events.iter().peekable();
        let mut first = 0;
        let mut keys = [[0u64; 2]; BATCH];
        // Entry numbers, and for long pretokens places in the arena.
        let mut found = [0u32; BATCH];
        let mut long_found = [0u32; BATCH];
        while first < count {
            self.make_room();
            let size = (count - first).min(BATCH);
            let spans = &starts[first..first + size + 1];
            for ((bounds, key), slot) in spans.windows(2).zip(&mut keys).zip(&mut found) {
                *key = self.key_of_span(text, bounds[0], bounds[1]);
                if key[1] >> 56 > SHORT as u64 {
                    key[0] = hash_bytes(&text[bounds[0] as usize..(bounds[1] & !SKIP) as usize]);
                    prefetch(&self.long_index, (key[0] >> self.long_shift) as usize);
                } else {
                    *slot = (hash_of(*key) >> self.shift) as u32;
                    prefetch(&self.index, *slot as usize);
                }
            }
            let mut has_new = false;
            for ((key, slot), long) in keys[..size].iter().zip(&mut found).zip(&mut long_found) {
                if key[1] >> 56 > SHORT as u64 {
                    *slot = 0;
                    let (tag, place) = self.long_index[(key[0] >> self.long_shift) as usize];
                    *long = if place != 0 && tag != key[0] as u32 { ANOTHER } else { place };
                    has_new |= *long == 0;
                    prefetch(&self.arena, *long as usize);
                } else {
                    *slot = self.index[*slot as usize];
                    has_new |= *slot == 0 && key[1] != 0;
                    prefetch(&self.entries, *slot as usize);
                }
            }
            if has_new {
                self.add_new(model, text, spans, &keys, &mut found, &long_found);
            }
            let mut at = 0;
            while at < size {
                let next_event = loop {
                    match events.peek() {
                        Some(&&(span, event)) if span as usize <= first + at => {
                            on_event(event, output);
                            events.next();
                        }
                        Some(&&(span, _)) => break (span as usize - first).min(size),
                        None => break size,
                    }
                };
                while at < next_event {
                    output.ids.reserve(AT_ONCE * (next_event - at));
                    at = self.copy_known(&keys, &found, at, next_event, output.ids);
                    if at < next_event {
                        let (start, end) = ((spans[at] & !SKIP) as usize, (spans[at + 1] & !SKIP) as usize);
                        if let Err(error) = self.look_further(model, &text[start..end], keys[at], output.ids) {
                            output.failure.get_or_insert(error);
                        }
                        at += 1;
                    }
                }
            }
            first += size;
        }
        for &(_, event) in events {
            on_event(event, output);
        }
    }

    /// Encode the pretokens of a batch that are not there yet, all at once, and add them.
    #[inline(never)]
    fn add_new<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        text: &[u8],
        spans: &[u32],
        keys: &[[u64; 2]; BATCH],
        found: &mut [u32; BATCH],
        long_found: &[u32; BATCH],
    ) {
        let mut pretokens: [&[u8]; BATCH] = [&[]; BATCH];
        let mut which = [0u8; BATCH];
        let mut count = 0;
        for (at, bounds) in spans.windows(2).enumerate() {
            let (start, end) = (bounds[0] as usize, (bounds[1] & !SKIP) as usize);
            let is_long = keys[at][1] >> 56 > SHORT as u64;
            let is_new = match (is_long, if is_long { long_found[at] } else { found[at] }) {
                // What is skipped has no key, and a start that is no place.
                _ if keys[at][1] == 0 || end - start > LONGEST => false,
                (_, 0) => true,
                // Another one is where it should be; it may be next to it.
                (true, ANOTHER) => self.long_slot(&text[start..end], keys[at][0]).is_err(),
                (true, _) => false,
                (false, number) => {
                    self.entries[number as usize].key != keys[at]
                        && self.short_slot(keys[at]).map(|number| found[at] = number).is_err()
                }
            };
            if is_new {
                pretokens[count] = &text[start..end];
                which[count] = at as u8;
                count += 1;
            }
        }
        let mut ids = std::mem::take(&mut self.ids);
        let mut places = std::mem::take(&mut self.places);
        ids.clear();
        model.encode_many(&pretokens[..count], &mut self.scratch, &mut ids, &mut places);
        for ((place, &at), pretoken) in places.iter().zip(&which).zip(&pretokens) {
            let (Some((first, end)), at) = (*place, at as usize) else { continue };
            let ids = &ids[first as usize..end as usize];
            if pretoken.len() > SHORT {
                // Where it comes twice in the batch the second one finds the first.
                if let Err(slot) = self.long_slot(pretoken, keys[at][0]) {
                    self.insert_long(slot, pretoken, keys[at][0], ids);
                }
            } else {
                found[at] = match self.short_slot(keys[at]) {
                    Ok(number) => number,
                    Err(slot) => self.insert_short(slot, keys[at], ids),
                };
            }
        }
        self.ids = ids;
        self.places = places;
    }

    /// The entry of a short pretoken, or the slot of the index where it belongs.
    fn short_slot(&self, key: [u64; 2]) -> std::result::Result<u32, usize> {
        let mut slot = (hash_of(key) >> self.shift) as usize;
        loop {
            match self.index[slot] {
                0 => return Err(slot),
                number if self.entries[number as usize].key == key => return Ok(number),
                _ => slot = (slot + 1) & (self.index.len() - 1),
            }
        }
    }

    fn insert_short(&mut self, slot: usize, key: [u64; 2], ids: &[u32]) -> u32 {
        let mut entry = Entry { key, ids: [0, 0, 0, ids.len() as u32] };
        if ids.len() <= 3 {
            entry.ids[..ids.len()].copy_from_slice(ids);
        } else {
            entry.ids[0] = self.arena.len() as u32;
            self.arena.extend_from_slice(ids);
        }
        self.index[slot] = self.entries.len() as u32;
        self.entries.push(entry);
        self.index[slot]
    }

    /// The place of a long pretoken in the arena, or the slot of the index where it belongs.
    fn long_slot(&self, pretoken: &[u8], hash: u64) -> std::result::Result<usize, usize> {
        let mut slot = (hash >> self.long_shift) as usize;
        loop {
            let (tag, place) = self.long_index[slot];
            if place == 0 {
                return Err(slot);
            }
            if tag == hash as u32 {
                let (length, _, bytes) = self.long_entry(place as usize);
                if length == pretoken.len() && &as_bytes(bytes)[..length] == pretoken {
                    return Ok(place as usize);
                }
            }
            slot = (slot + 1) & (self.long_index.len() - 1);
        }
    }

    fn insert_long(&mut self, slot: usize, pretoken: &[u8], hash: u64, ids: &[u32]) {
        self.long_index[slot] = (hash as u32, self.arena.len() as u32);
        self.long_count += 1;
        self.arena.extend([pretoken.len() as u32, ids.len() as u32]);
        self.arena.extend_from_slice(ids);
        self.arena.extend(pretoken.chunks(4).map(|chunk| {
            let mut word = [0u8; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_ne_bytes(word)
        }));
    }

    #[inline(always)]
    fn key_of_span(&self, text: &[u8], start: u32, end: u32) -> [u64; 2] {
        if start & SKIP != 0 {
            return [0; 2];
        }
        let (start, end) = (start as usize, (end & !SKIP) as usize);
        match text.get(start..start + 16) {
            Some(bytes) => key_of(bytes.try_into().expect("16 bytes"), end - start),
            None => {
                let mut bytes = [0u8; 16];
                let rest = &text[start..];
                bytes[..rest.len()].copy_from_slice(rest);
                key_of(&bytes, end - start)
            }
        }
    }

    /// Copy the ids of spans that were found, as long as they have at most `AT_ONCE`. Gives the first span that is not so.
    #[inline(always)]
    fn copy_known(
        &self,
        keys: &[[u64; 2]; BATCH],
        found: &[u32; BATCH],
        mut at: usize,
        end: usize,
        ids: &mut Vec<u32>,
    ) -> usize {
        debug_assert!(ids.capacity() - ids.len() >= AT_ONCE * (end - at));
        let mut length = ids.len();
        let room = ids.as_mut_ptr();
        while at < end {
            let entry = &self.entries[found[at] as usize];
            let count = entry.ids[3] as usize;
            if entry.key != keys[at] {
                break;
            }
            if count <= 3 {
                // SAFETY: the caller has reserved `AT_ONCE` ids for each of the spans up to `end`, and each span so far
                // took at most as many of them; so as many fit behind `length`.
                unsafe { room.add(length).cast::<[u32; 4]>().write_unaligned(entry.ids) };
            } else {
                let place = entry.ids[0] as usize;
                let words: Option<&[u32; AT_ONCE]> = self.arena[place..].first_chunk();
                let Some(words) = words.filter(|_| count <= AT_ONCE) else { break };
                // SAFETY: as above.
                unsafe { room.add(length).cast::<[u32; AT_ONCE]>().write_unaligned(*words) };
            }
            length += count;
            at += 1;
        }
        // SAFETY: the ids up to `length` were written above, within what is reserved.
        unsafe { ids.set_len(length) };
        at
    }

    /// Grow or forget, between batches only, so that a whole batch of new pretokens fits.
    fn make_room(&mut self) {
        if 2 * (self.entries.len() + BATCH) > self.index.len() {
            if self.entries.len() + BATCH > self.most_entries {
                return self.forget();
            }
            let bits = self.index.len().trailing_zeros() + 1;
            self.shift = 64 - bits;
            self.index = vec![0; 1 << bits];
            for number in 1..self.entries.len() {
                let slot = self.free_slot(self.entries[number].key);
                self.index[slot] = number as u32;
            }
        }
        if self.arena.len() > self.most_arena {
            return self.forget();
        }
        if 2 * (self.long_count + BATCH) > self.long_index.len() {
            let old = std::mem::take(&mut self.long_index);
            let bits = old.len().trailing_zeros() + 1;
            self.long_shift = 64 - bits;
            self.long_index = vec![(0, 0); 1 << bits];
            for entry in old.into_iter().filter(|entry| entry.1 != 0) {
                let (length, _, bytes) = self.long_entry(entry.1 as usize);
                let mut slot = (hash_bytes(&as_bytes(bytes)[..length]) >> self.long_shift) as usize;
                while self.long_index[slot].1 != 0 {
                    slot = (slot + 1) & (self.long_index.len() - 1);
                }
                self.long_index[slot] = entry;
            }
        }
    }

    fn free_slot(&self, key: [u64; 2]) -> usize {
        let mut slot = (hash_of(key) >> self.shift) as usize;
        while self.index[slot] != 0 {
            slot = (slot + 1) & (self.index.len() - 1);
        }
        slot
    }

    /// A long pretoken in the arena: its length in bytes, its ids, and the words that hold its bytes.
    fn long_entry(&self, place: usize) -> (usize, &[u32], &[u32]) {
        let (length, count) = (self.arena[place] as usize, self.arena[place + 1] as usize);
        let bytes = place + 2 + count;
        (length, &self.arena[place + 2..bytes], &self.arena[bytes..bytes + length.div_ceil(4)])
    }

    #[inline(always)]
    fn copy_from_arena(&self, place: usize, count: usize, ids: &mut Vec<u32>) {
        match self.arena[place..].first_chunk::<{ 2 * AT_ONCE }>() {
            // A copy of a length that is known costs less than the call of a function that copies.
            Some(words) if count <= words.len() => {
                let length = ids.len() + count;
                ids.extend_from_slice(words);
                ids.truncate(length);
            }
            _ => ids.extend_from_slice(&self.arena[place..place + count]),
        }
    }

    #[inline(never)]
    fn look_further<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        pretoken: &[u8],
        key: [u64; 2],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if pretoken.is_empty() || key == [0; 2] {
            return Ok(());
        }
        if pretoken.len() > SHORT {
            return self.look_further_long(model, pretoken, key[0], ids);
        }
        match self.short_slot(key) {
            Ok(number) => {
                let entry = &self.entries[number as usize];
                let count = entry.ids[3] as usize;
                match count {
                    0..=3 => ids.extend_from_slice(&entry.ids[..count]),
                    _ => self.copy_from_arena(entry.ids[0] as usize, count, ids),
                }
            }
            Err(slot) => {
                let first = ids.len();
                model.encode(pretoken, &mut self.scratch, ids).inspect_err(|_| ids.truncate(first))?;
                self.insert_short(slot, key, &ids[first..]);
            }
        }
        Ok(())
    }

    fn look_further_long<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        pretoken: &[u8],
        hash: u64,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let first = ids.len();
        if pretoken.len() > LONGEST {
            return model.encode(pretoken, &mut self.scratch, ids).inspect_err(|_| ids.truncate(first));
        }
        match self.long_slot(pretoken, hash) {
            Ok(place) => self.copy_from_arena(place + 2, self.arena[place + 1] as usize, ids),
            Err(slot) => {
                model.encode(pretoken, &mut self.scratch, ids).inspect_err(|_| ids.truncate(first))?;
                self.insert_long(slot, pretoken, hash, &ids[first..]);
            }
        }
        Ok(())
    }

    /// Encode one pretoken that is not in a text of its own, through the cache.
    pub fn encode_one<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        pretoken: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if pretoken.len() > LONGEST {
            return model.encode(pretoken, &mut self.scratch, ids);
        }
        self.make_room();
        let mut key = self.key_of_span(pretoken, 0, pretoken.len() as u32);
        if pretoken.len() > SHORT {
            key[0] = hash_bytes(pretoken);
        }
        self.look_further(model, pretoken, key, ids)
    }

    /// What the model needs for its work.
    pub fn scratch(&mut self) -> &mut S {
        &mut self.scratch
    }
}

/// Words as bytes.
fn as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any four bytes of a u32 are bytes, u8 has no alignment, and the length is that of the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 4) }
}
