//! The pretoken cache: ids of the pretokens seen so far.
//!
//! Short pretokens are found by a key of 16 bytes (`cache/key.rs`) in a table of 32 bytes each (`cache/short.rs`), longer ones
//! by a hash in an arena (`cache/long.rs`). What is longer than `LONGEST` is not kept. Both are bounded: what is full
//! is forgotten, and begins anew.
//!
//! Pretokens are looked up in batches: first the memory of all of them is asked for, then they are looked at, so that the
//! waits for memory overlap. Those that are not there wait until there are enough of them, so that the model can encode them at
//! once, and with them the ends of documents (`cache/waiting.rs`). Nothing grows or is forgotten within a batch.

mod key;
mod lists;
mod long;
mod short;
mod waiting;

use crate::error::{Error, Result};
use crate::extensions::{self, Extensions, Work};
use crate::hash::hash_bytes;
use crate::models::PretokenModel;
use key::{Key, SHORT};
use lists::{copy_some, AT_ONCE};
use long::LongTable;
use short::ShortTable;
use waiting::{Distinct, Released, Waiting, ENOUGH, MOST_WAITING};

/// Pretokens a batch.
const BATCH: usize = 128;
/// New pretokens in a batch, and those that wait.
const MOST_NEW: usize = BATCH + MOST_WAITING;
/// Longer pretokens are not kept: they seldom come twice.
const LONGEST: usize = 1024;
/// Room for short pretokens in a cache that is new.
const FIRST_SLOTS: usize = 1 << 12;
/// Address space for an arena is set aside for at most so many words.
const MOST_SET_ASIDE: usize = 1 << 24;
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
    waiting: Waiting,
    settling: Settling,
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

/// Room for the work of `Cache::settle`.
#[derive(Default)]
struct Settling {
    /// What the model made of new pretokens, and where.
    ids: Vec<u32>,
    places: Vec<Option<(u32, u32)>>,
    /// For each one that waits its number among those that are distinct.
    numbers: Vec<usize>,
}

/// A batch of spans, and what is known of them.
struct Batch<'a> {
    text: &'a [u8],
    /// The beginnings of the spans, and the end of the last one.
    spans: &'a [u32],
    keys: [Key; BATCH],
    homes: [u32; BATCH],
}

impl<'a> Batch<'a> {
    fn pretoken(&self, at: usize) -> &'a [u8] {
        &self.text[(self.spans[at] & !SKIP) as usize..(self.spans[at + 1] & !SKIP) as usize]
    }
}

/// See `Cache::ask`.
struct Ask<'a, 'b, const HAS_SKIPPED: bool> {
    short: &'a ShortTable,
    long: &'a LongTable,
    batch: &'a mut Batch<'b>,
}

impl<const HAS_SKIPPED: bool> Work for Ask<'_, '_, HAS_SKIPPED> {
    type Result = ();

    #[inline(always)]
    fn run(self, extensions: Option<Extensions>) {
        let Ask { short, long, batch: Batch { text, spans, keys, homes } } = self;
        let place = |bound: u32| if HAS_SKIPPED { bound & !SKIP } else { bound };
        // What is passed over is very long here, so that there is nothing to foretell.
        let mut lengths = [0u8; BATCH];
        for (length, bounds) in lengths.iter_mut().zip(spans.windows(2)) {
            *length = place(bounds[1]).wrapping_sub(bounds[0]).min(SHORT as u32 + 1) as u8;
        }
        let homes_of = short.homes(extensions);
        for (((&bound, &length), key), home) in spans.iter().zip(&lengths).zip(&mut *keys).zip(&mut *homes) {
            let start = place(bound) as usize;
            *key = match text.get(start..start + 16) {
                Some(bytes) => Key::new(bytes.try_into().expect("16 bytes"), length),
                None => Key::at_end(&text[start.min(text.len())..], length),
            };
            *home = homes_of.ask(*key);
        }
        let is_other = |length: u8| length > SHORT as u8;
        // As long as a byte counts, so that no index is out of it.
        let mut others = [0u8; 256];
        let mut other_count = 0u8;
        if lengths.iter().fold(false, |any, &length| any | is_other(length)) {
            for (at, &length) in lengths.iter().enumerate() {
                others[usize::from(other_count)] = at as u8;
                other_count += u8::from(is_other(length));
            }
        }
        let others = &others[..usize::from(other_count)];
        for &at in others {
            let at = usize::from(at);
            if spans[at] & SKIP != 0 {
                (keys[at], homes[at]) = (Key::NOTHING, short.nothing());
            } else {
                let hash = hash_bytes(&text[spans[at] as usize..(spans[at + 1] & !SKIP) as usize]);
                (keys[at], homes[at]) = (Key::of_long(hash), short.nothing());
                long.ask(hash);
            }
        }
        for &at in others {
            if let Some(hash) = keys[usize::from(at)].long_hash() {
                long.ask_further(hash);
            }
        }
    }
}

impl<S: Default> Cache<S> {
    /// An empty cache with room for three quarters of so many short pretokens, in entries of 32 bytes, and for each of them 16
    /// bytes for ids that have no room there, and 32 for longer pretokens.
    pub fn new(most_entries: usize) -> Cache<S> {
        let most_arena = most_entries.saturating_mul(4).clamp(1 << 16, 1 << 30);
        Cache {
            short: ShortTable::new(FIRST_SLOTS, most_arena.min(MOST_SET_ASIDE), Extensions::detect()),
            long: LongTable::new((2 * most_arena).min(MOST_SET_ASIDE)),
            waiting: Waiting::default(),
            settling: Settling::default(),
            scratch: S::default(),
            most_slots: most_entries.next_power_of_two().clamp(FIRST_SLOTS, 1 << 30),
            most_arena,
        }
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
        let has_skipped = starts.iter().fold(0, |all, start| all | start) & SKIP != 0;
        let mut events = events.iter().peekable();
        let mut first = 0;
        let (keys, homes) = ([Key::NOTHING; BATCH], [0; BATCH]);
        let mut batch = Batch { text, spans: &[], keys, homes };
        while first < count {
            let has_room = self.has_room();
            if !has_room || self.waiting.len() >= ENOUGH {
                // What waits knows where it belongs, so it goes before anything grows.
                self.settle(model, text, output, &mut on_event);
            }
            if !has_room {
                self.make_room();
            }
            let size = (count - first).min(BATCH);
            batch.spans = &starts[first..first + size + 1];
            match has_skipped {
                true => self.ask::<true>(&mut batch),
                false => self.ask::<false>(&mut batch),
            }
            let mut at = 0;
            while at < size {
                let next_event = loop {
                    match events.peek() {
                        Some(&&(span, event)) if span as usize <= first + at => {
                            match event {
                                Event::EndOfDocument if !self.waiting.is_empty() => self.waiting.end(output.ids.len()),
                                _ => on_event(event, output),
                            }
                            events.next();
                        }
                        Some(&&(span, _)) => break (span as usize - first).min(size),
                        None => break size,
                    }
                };
                while at < next_event {
                    let (keys, homes) = (&batch.keys[at..next_event], &batch.homes[at..next_event]);
                    at += self.short.copy_run(keys, homes, output.ids);
                    if at < next_event {
                        self.look_further(model, &batch, at, output, &mut on_event);
                        at += 1;
                    }
                }
            }
            first += size;
        }
        self.settle(model, text, output, &mut on_event);
        for &(_, event) in events {
            on_event(event, output);
        }
    }

    /// Make the keys of a batch, and ask for the memory where they lead. `HAS_SKIPPED`: some span may be passed over.
    // A function of its own has enough registers.
    #[inline(never)]
    fn ask<const HAS_SKIPPED: bool>(&self, batch: &mut Batch) {
        extensions::run(self.short.extensions(), Ask::<HAS_SKIPPED> { short: &self.short, long: &self.long, batch });
    }

    /// Append the ids of a pretoken that is not where it should be, or let it wait.
    #[inline(never)]
    fn look_further<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        batch: &Batch,
        at: usize,
        output: &mut Output,
        on_event: &mut impl FnMut(Event, &mut Output),
    ) {
        let (key, home, pretoken) = (batch.keys[at], batch.homes[at], batch.pretoken(at));
        if key == Key::NOTHING || self.copy(key, home, pretoken, output.ids) {
            return;
        }
        if pretoken.len() <= LONGEST {
            let place = (batch.spans[at], batch.spans[at + 1] & !SKIP);
            return self.waiting.push(key, home, place, output.ids.len());
        }
        // It is not kept.
        self.settle(model, batch.text, output, on_event);
        self.encode_alone(model, pretoken, output);
    }

    fn encode_alone<M: PretokenModel<Scratch = S>>(&mut self, model: &M, pretoken: &[u8], output: &mut Output) {
        let first = output.ids.len();
        if let Err(error) = model.encode(pretoken, &mut self.scratch, output.ids) {
            output.ids.truncate(first);
            output.failure.get_or_insert(error);
        }
    }

    fn copy(&mut self, key: Key, home: u32, pretoken: &[u8], ids: &mut Vec<u32>) -> bool {
        match key.long_hash() {
            None => self.short.copy(key, home, ids),
            Some(hash) => pretoken.len() <= LONGEST && self.long.copy(pretoken, hash, ids),
        }
    }

    /// Encode all that waits at once, add it, put the ids where they belong, and let the documents end.
    #[inline(never)]
    fn settle<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        text: &[u8],
        output: &mut Output,
        on_event: &mut impl FnMut(Event, &mut Output),
    ) {
        if self.waiting.is_empty() {
            return;
        }
        let Settling { mut ids, mut places, mut numbers } = std::mem::take(&mut self.settling);
        let mut distinct = Distinct::new();
        self.waiting.numbers(text, &mut distinct, &mut numbers);
        ids.clear();
        model.encode_many(distinct.pretokens(), &mut self.scratch, &mut ids, &mut places);
        // Then all few ids are copied in a length that is known.
        ids.extend([0; AT_ONCE]);
        for &(key, home) in distinct.keys() {
            match key.long_hash() {
                None => self.short.ask_again(home),
                Some(hash) => self.long.ask(hash),
            }
        }
        self.short.ask_further(distinct.keys().iter().copied());
        for ((place, &(key, home)), pretoken) in places.iter().zip(distinct.keys()).zip(distinct.pretokens()) {
            if let Some((first, end)) = *place {
                self.insert(key, home, pretoken, &ids, first as usize, (end - first) as usize);
            }
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.release(output, |released, output| match released {
            Released::End => on_event(Event::EndOfDocument, output),
            Released::Pretoken(at) => match places[numbers[at]] {
                Some((first, end)) => copy_some(&ids, first as usize, (end - first) as usize, output.ids),
                None => self.encode_alone(model, distinct.pretokens()[numbers[at]], output),
            },
        });
        self.waiting = waiting;
        self.settling = Settling { ids, places, numbers };
    }

    /// Add a pretoken that is not there yet, with `count` ids that lie at a place among words.
    fn insert(&mut self, key: Key, home: u32, pretoken: &[u8], words: &[u32], place: usize, count: usize) {
        match key.long_hash() {
            None => self.short.insert(key, home, words, place, count),
            Some(hash) => self.long.insert(pretoken, hash, words, place, count),
        }
    }

    /// Whether a whole batch of new pretokens fits, with what waits.
    fn has_room(&self) -> bool {
        self.short.has_room(MOST_NEW)
            && self.long.has_room(MOST_NEW)
            && self.short.arena_length() <= self.most_arena
            && self.long.arena_length() <= 2 * self.most_arena
    }

    /// Grow or forget, between batches only.
    fn make_room(&mut self) {
        let is_full = !self.short.has_room(MOST_NEW) && self.short.slots() >= self.most_slots;
        if is_full || self.short.arena_length() > self.most_arena {
            let room = self.most_arena.min(MOST_SET_ASIDE);
            self.short = ShortTable::new(FIRST_SLOTS, room, self.short.extensions());
        } else if !self.short.has_room(MOST_NEW) {
            self.short.grow(self.most_slots);
        }
        if self.long.arena_length() > 2 * self.most_arena {
            self.long = LongTable::new((2 * self.most_arena).min(MOST_SET_ASIDE));
        }
        self.long.make_room(MOST_NEW);
    }

    /// Encode one pretoken that is not in a text of its own, through the cache.
    pub fn encode_one<M: PretokenModel<Scratch = S>>(
        &mut self,
        model: &M,
        pretoken: &[u8],
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if !self.has_room() {
            self.make_room();
        }
        let key = if pretoken.len() > SHORT { Key::of_long(hash_bytes(pretoken)) } else { Key::of(pretoken) };
        let home = self.short.home(key) as u32;
        if pretoken.is_empty() || self.copy(key, home, pretoken, ids) {
            return Ok(());
        }
        let first = ids.len();
        model.encode(pretoken, &mut self.scratch, ids).inspect_err(|_| ids.truncate(first))?;
        if pretoken.len() <= LONGEST {
            self.insert(key, home, pretoken, ids, first, ids.len() - first);
        }
        Ok(())
    }

    /// What the model needs for its work.
    pub fn scratch(&mut self) -> &mut S {
        &mut self.scratch
    }
}
