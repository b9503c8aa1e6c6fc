//! The pretoken cache: ids of the pretokens seen so far.
//!
//! Short pretokens are found by a key of 16 bytes (`cache/key.rs`) in a table of 32 bytes each (`cache/short.rs`), longer ones
//! by a hash in an arena (`cache/long.rs`). What is longer than `LONGEST` is not kept. All of it is bounded: when it is
//! full, it is forgotten, and begins anew.
//!
//! Pretokens are looked up in batches: first the memory of all of them is asked for, then they are looked at, so that the
//! waits for memory overlap. The first one that is not there lets the model encode all the new ones of its batch at
//! once. Nothing grows or is forgotten within a batch.

mod key;
mod long;
mod short;

use crate::error::{Error, Result};
use crate::hash::hash_bytes;
use crate::models::PretokenModel;
use key::{Key, SHORT};
use long::LongTable;
use short::ShortTable;

/// Pretokens a batch.
const BATCH: usize = 128;
/// Longer pretokens are not kept: they seldom come twice.
const LONGEST: usize = 1024;
/// Room for short pretokens in a cache that is new.
const FIRST_SLOTS: usize = 1 << 12;
/// A span with this bit is passed over.
pub const SKIP: u32 = 1 << 31;

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
    short: ShortTable,
    long: LongTable,
    /// What the model made of new pretokens, and where.
    ids: Vec<u32>,
    places: Vec<Option<(u32, u32)>>,
    scratch: S,
    most_slots: usize,
    most_arena: usize,
}

/// The ids of a run of spans with the failures among them.
pub struct Output<'a> {
    /// Ids of all documents.
    pub ids: &'a mut Vec<u32>,
    /// The first failure since the last document ended.
    pub failure: Option<Error>,
}

/// A batch of spans, and what is known of them.
struct Batch<'a> {
    text: &'a [u8],
    /// The beginnings of the spans, and the end of the last one.
    spans: &'a [u32],
    keys: [Key; BATCH],
    homes: [u32; BATCH],
    /// Whether the new ones are in the cache by now, as far as the model could encode them.
    is_complete: bool,
}

impl Batch<'_> {
    fn pretoken(&self, at: usize) -> &[u8] {
        &self.text[(self.spans[at] & !SKIP) as usize..(self.spans[at + 1] & !SKIP) as usize]
    }
}

impl<S: Default> Cache<S> {
    /// An empty cache with room for three quarters of so many short pretokens, in entries of 32 bytes, and as many words
    /// of four bytes, times four, for longer ones.
    pub fn new(most_entries: usize) -> Cache<S> {
        Cache {
            short: ShortTable::new(FIRST_SLOTS),
            long: LongTable::new(),
            ids: vec![],
            places: vec![],
            scratch: S::default(),
            most_slots: most_entries.next_power_of_two().clamp(FIRST_SLOTS, 1 << 30),
            most_arena: most_entries.saturating_mul(4).clamp(1 << 16, 1 << 30),
        }
    }

    fn forget(&mut self) {
        self.short = ShortTable::new(FIRST_SLOTS);
        self.long = LongTable::new();
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
        let (keys, homes) = ([Key::NOTHING; BATCH], [0; BATCH]);
        let mut batch = Batch { text, spans: &[], keys, homes, is_complete: false };
        while first < count {
            self.make_room();
            let size = (count - first).min(BATCH);
            batch.spans = &starts[first..first + size + 1];
            batch.is_complete = false;
            self.ask(&mut batch);
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
                    at += self.short.copy_run(&batch.keys[at..next_event], &batch.homes[at..next_event], output.ids);
                    if at < next_event {
                        if let Err(error) = self.look_further(model, &mut batch, at, output.ids) {
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

    /// Make the keys of a batch, and ask for the memory where they lead.
    #[inline(always)]
    fn ask(&self, batch: &mut Batch) {
        let Batch { text, spans, keys, homes, .. } = batch;
        let mut others = [0u8; BATCH];
        let mut other_count = 0;
        for (at, ((bounds, key), home)) in spans.windows(2).zip(&mut *keys).zip(&mut *homes).enumerate() {
            let start = (bounds[0] & !SKIP) as usize;
            // What is passed over is very long here, so that there is nothing to foretell.
            let length = (bounds[1] & !SKIP).wrapping_sub(bounds[0]) as usize;
            *key = match text.get(start..start + 16) {
                Some(bytes) => Key::new(bytes.try_into().expect("16 bytes"), length),
                None => Key::of(&text[start..start + length.min(text.len() - start)]),
            };
            *home = self.short.ask(*key);
            others[other_count] = at as u8;
            other_count += usize::from(length > SHORT);
        }
        for &at in &others[..other_count] {
            let at = at as usize;
            if spans[at] & SKIP != 0 {
                (keys[at], homes[at]) = (Key::NOTHING, self.short.nothing());
            } else {
                let hash = hash_bytes(&text[spans[at] as usize..(spans[at + 1] & !SKIP) as usize]);
                keys[at] = Key::of_long(hash);
                self.long.ask(hash);
            }
        }
        for &at in &others[..other_count] {
            if let Some(hash) = keys[at as usize].long_hash() {
                self.long.ask_further(hash);
            }
        }
    }

    /// Append the ids of a pretoken that is not where it should be.
    #[inline(never)]
    fn look_further<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        batch: &mut Batch,
        at: usize,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if batch.keys[at] == Key::NOTHING {
            return Ok(());
        }
        if self.copy(batch.keys[at], batch.pretoken(at), ids) {
            return Ok(());
        }
        if !batch.is_complete {
            batch.is_complete = true;
            self.add_new(model, batch, at);
            if self.copy(batch.keys[at], batch.pretoken(at), ids) {
                return Ok(());
            }
        }
        // It is not kept, or it fails.
        let first = ids.len();
        model.encode(batch.pretoken(at), &mut self.scratch, ids).inspect_err(|_| ids.truncate(first))
    }

    fn copy(&mut self, key: Key, pretoken: &[u8], ids: &mut Vec<u32>) -> bool {
        match key.long_hash() {
            None => self.short.copy(key, ids),
            Some(hash) => pretoken.len() <= LONGEST && self.long.copy(pretoken, hash, ids),
        }
    }

    /// Encode the pretokens of a batch from one on that are not there yet, all at once, and add them.
    fn add_new<M: PretokenModel<Scratch = S>>(&mut self, model: &M, batch: &Batch, from: usize) {
        let mut pretokens: [&[u8]; BATCH] = [&[]; BATCH];
        let mut keys = [Key::NOTHING; BATCH];
        let mut count = 0;
        for at in from..batch.spans.len() - 1 {
            let (key, pretoken) = (batch.keys[at], batch.pretoken(at));
            let is_new = match key.long_hash() {
                None => key != Key::NOTHING && !self.short.has(key),
                Some(hash) => pretoken.len() <= LONGEST && !self.long.has(pretoken, hash),
            };
            if is_new {
                (pretokens[count], keys[count]) = (pretoken, key);
                count += 1;
            }
        }
        let mut ids = std::mem::take(&mut self.ids);
        let mut places = std::mem::take(&mut self.places);
        ids.clear();
        model.encode_many(&pretokens[..count], &mut self.scratch, &mut ids, &mut places);
        for ((place, &key), pretoken) in places.iter().zip(&keys).zip(&pretokens) {
            // One that comes twice is added once.
            if let Some((first, end)) = *place {
                self.insert(key, pretoken, &ids[first as usize..end as usize]);
            }
        }
        self.ids = ids;
        self.places = places;
    }

    fn insert(&mut self, key: Key, pretoken: &[u8], ids: &[u32]) {
        match key.long_hash() {
            None => self.short.insert(key, ids),
            Some(hash) => self.long.insert(pretoken, hash, ids),
        }
    }

    /// Grow or forget, between batches only, so that a whole batch of new pretokens fits.
    fn make_room(&mut self) {
        let is_full = !self.short.has_room(BATCH) && self.short.slots() >= self.most_slots;
        if is_full || self.short.arena_length() + self.long.arena_length() > self.most_arena {
            return self.forget();
        }
        if !self.short.has_room(BATCH) {
            self.short.grow();
        }
        self.long.make_room(BATCH);
    }

    /// Encode one pretoken that is not in a text of its own, through the cache.
    pub fn encode_one<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        pretoken: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        self.make_room();
        let key = if pretoken.len() > SHORT { Key::of_long(hash_bytes(pretoken)) } else { Key::of(pretoken) };
        if pretoken.is_empty() || self.copy(key, pretoken, ids) {
            return Ok(());
        }
        let first = ids.len();
        model.encode(pretoken, &mut self.scratch, ids).inspect_err(|_| ids.truncate(first))?;
        if pretoken.len() <= LONGEST {
            self.insert(key, pretoken, &ids[first..]);
        }
        Ok(())
    }

    /// What the model needs for its work.
    pub fn scratch(&mut self) -> &mut S {
        &mut self.scratch
    }
}
