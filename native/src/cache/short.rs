//! Short pretokens and their ids: a table by hash, in pairs of entries that share a line of memory.
//!
//! An entry is 32 bytes: the key, and up to four ids with their number; more ids lie in an arena. A pretoken lies in
//! the pair where its hash leads to, or, if that is full, in the next one that is not. Nothing is ever taken out but all
//! at once, so a pair with room ends the search.

use bytemuck::{Pod, Zeroable};
use wide::u32x4;

use super::key::Key;
use super::lists::{self, AT_ONCE};
use crate::extensions::{self, Extensions, Work};
use crate::hash::prefetch;
use crate::pages::{Pages, Words};

/// Ids in an entry.
const INLINE: usize = 4;
/// Entries that make no large table.
const SMALL: usize = 1 << 17;
/// The second id has the number of ids above it.
const COUNT_SHIFT: u32 = 28;
const ID_MASK: u32 = (1 << COUNT_SHIFT) - 1;
/// What is taken of the ids of an entry.
const WITHOUT_COUNT: u32x4 = u32x4::new([u32::MAX, ID_MASK, u32::MAX, u32::MAX]);
/// What is taken of four words where this number of them are ids.
const IDS: [[u32; INLINE]; INLINE + 1] = {
    const ALL: u32 = u32::MAX;
    [[0; 4], [ALL, 0, 0, 0], [ALL, ALL, 0, 0], [ALL, ALL, ALL, 0], [ALL; 4]]
};
/// In place of the number: the first id is a place in the arena, where the number comes first.
const ELSEWHERE: u32 = INLINE as u32 + 1;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    key: Key,
    ids: [u32; INLINE],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Pair([Entry; 2]);

/// See the module.
pub struct ShortTable {
    /// A power of two of them, and an empty one at the end (where large pages end, so that it takes none), for what is
    /// nothing.
    pairs: Pages<Pair>,
    shift: u32,
    count: usize,
    arena: Words,
    extensions: Option<Extensions>,
}

/// Where keys belong.
pub struct Homes<'a> {
    pairs: &'a [Pair],
    shift: u32,
    extensions: Option<Extensions>,
}

impl Homes<'_> {
    /// The number of the pair where a key belongs; its memory is asked for.
    #[inline(always)]
    pub fn ask(&self, key: Key) -> u32 {
        let home = (key.hash(self.extensions) >> self.shift) as usize;
        prefetch(self.pairs, home);
        home as u32
    }
}

impl ShortTable {
    /// An empty table with room for three quarters of this number of pretokens, which is a power of two from 4 on, and for
    /// so many words in the arena.
    pub fn new(slots: usize, room: usize, extensions: Option<Extensions>) -> ShortTable {
        let pairs = slots / 2;
        let shift = 64 - pairs.trailing_zeros();
        ShortTable { pairs: Pages::new(pairs + 1), shift, count: 0, arena: Words::with_room(room), extensions }
    }

    /// What it is built for.
    pub fn extensions(&self) -> Option<Extensions> {
        self.extensions
    }

    /// How many entries it has, used or not.
    pub fn slots(&self) -> usize {
        2 * self.pairs.items().len() - 2
    }

    /// Whether so many more would fit without the search becoming long.
    pub fn has_room(&self, more: usize) -> bool {
        4 * (self.count + more) <= 3 * self.slots()
    }

    /// Words in the arena.
    pub fn arena_length(&self) -> usize {
        self.arena.count()
    }

    /// Move to a table with twice as many entries, or four times as many while it is small, but no more than `most`.
    pub fn grow(&mut self, most: usize) {
        let slots = if self.slots() < SMALL { 4 * self.slots() } else { 2 * self.slots() };
        // The arena is handed over.
        let larger = ShortTable::new(slots.min(most), 1, self.extensions);
        *self = extensions::run(self.extensions, Move { table: self, larger });
    }

    /// Where keys belong, to ask for many of them. `extensions` are those of the table.
    #[inline(always)]
    pub fn homes(&self, extensions: Option<Extensions>) -> Homes<'_> {
        Homes { pairs: self.pairs.items(), shift: self.shift, extensions }
    }

    /// The number of a pair that has nothing but `Key::NOTHING`.
    pub fn nothing(&self) -> u32 {
        self.pairs.items().len() as u32 - 1
    }

    /// Where a key belongs.
    pub fn home(&self, key: Key) -> usize {
        struct Home<'a>(&'a ShortTable, Key);
        impl Work for Home<'_> {
            type Result = usize;
            #[inline(always)]
            fn run(self, extensions: Option<Extensions>) -> usize {
                (self.1.hash(extensions) >> self.0.shift) as usize
            }
        }
        extensions::run(self.extensions, Home(self, key))
    }

    fn at(&mut self, place: usize) -> &mut Entry {
        &mut self.pairs.items_mut()[place / 2].0[place % 2]
    }

    /// The place of a key that belongs at `home`.
    #[inline(always)]
    fn find(&self, key: Key, home: usize) -> Option<usize> {
        let pairs = self.pairs.items();
        let mut pair = home;
        loop {
            let [first, second] = &pairs[pair].0;
            if first.key == key || second.key == key {
                return Some(2 * pair + usize::from(second.key == key));
            }
            if second.key.is_nothing() {
                return None;
            }
            pair = (pair + 1) & (pairs.len() - 2);
        }
    }

    /// The first free place for a key that belongs at `home` and is not there.
    #[inline(always)]
    fn free_place(&self, home: usize) -> usize {
        let pairs = self.pairs.items();
        let mut pair = home;
        loop {
            let [first, second] = &pairs[pair].0;
            if second.key.is_nothing() {
                return 2 * pair + usize::from(!first.key.is_nothing());
            }
            pair = (pair + 1) & (pairs.len() - 2);
        }
    }

    /// Ask for the memory where the search for some keys goes on: their pair is full and has none with their first half. At
    /// most 256 of them; what their own pairs have is looked at.
    pub fn ask_further(&self, keys: impl Iterator<Item = (Key, u32)>) {
        let pairs = self.pairs.items();
        let (mut others, mut count) = ([0; 256], 0);
        for (key, home) in keys {
            let [first, second] = &pairs[home as usize].0;
            let half = key.first_half();
            others[count % 256] = home;
            // Nothing to foretell here either.
            let is_other = (first.key.first_half() != half) & (second.key.first_half() != half);
            count += usize::from(is_other & !second.key.is_nothing());
        }
        for &home in &others[..count] {
            prefetch(pairs, (home as usize + 1) & (pairs.len() - 2));
        }
    }

    /// Ask for the memory of a pair once more.
    #[inline(always)]
    pub fn ask_again(&self, home: u32) {
        prefetch(self.pairs.items(), home as usize);
    }

    /// Add a pretoken that is not there yet, with `count` ids that lie at a place among words; `home` is where it belongs.
    pub fn insert(&mut self, key: Key, home: u32, words: &[u32], place: usize, count: usize) {
        let list = self.arena.count();
        let room = self.arena.behind(lists::room(count));
        lists::write(room, words, place, count);
        let ids: [u32; INLINE] = *room[1..].first_chunk().expect("there is room for more");
        // Nothing foretells how many ids there are, so what may be needed is done in any case.
        let is_inline = (count <= INLINE) & ((count < 2) | (ids[1] <= ID_MASK));
        self.arena.keep(if is_inline { 0 } else { 1 + count });
        let ids = u32x4::new(ids) & u32x4::new(IDS[count.min(INLINE)]);
        let inline = u32x4::splat(0u32.wrapping_sub(u32::from(is_inline)));
        let elsewhere = u32x4::new([list as u32, ELSEWHERE << COUNT_SHIFT, 0, 0]);
        let number = u32x4::new([0, (count.min(INLINE) as u32) << COUNT_SHIFT, 0, 0]);
        let ids = ((ids | number) & inline) | (elsewhere & !inline);
        let place = self.free_place(home as usize);
        *self.at(place) = Entry { key, ids: ids.to_array() };
        self.count += 1;
    }

    /// Append the ids of a pretoken, wherever it is. It changes places with one in the pair where it belongs, which is then
    /// found where this one was: all pairs between them are full. So what is frequent comes to lie where it belongs.
    pub fn copy(&mut self, key: Key, home: u32, ids: &mut Vec<u32>) -> bool {
        let home = home as usize;
        let Some(mut place) = self.find(key, home) else { return false };
        if place / 2 != home {
            let nearer = 2 * home + place % 2;
            let entry = *self.at(place);
            *self.at(place) = std::mem::replace(self.at(nearer), entry);
            place = nearer;
        }
        let entry = &self.pairs.items()[place / 2].0[place % 2];
        match entry.ids[1] >> COUNT_SHIFT {
            ELSEWHERE => lists::append(self.arena.all(), entry.ids[0] as usize, ids),
            number => {
                let length = ids.len() + number as usize;
                ids.extend_from_slice(&(u32x4::new(entry.ids) & WITHOUT_COUNT).to_array());
                ids.truncate(length);
            }
        }
        true
    }

    /// Append the ids of pretokens, as long as they lie in the pair where they belong (`ask`) and have at most `AT_ONCE`
    /// ids. Gives how many these are.
    pub fn copy_run(&self, keys: &[Key], homes: &[u32], ids: &mut Vec<u32>) -> usize {
        extensions::run(self.extensions, CopyRun { table: self, keys, homes, ids })
    }
}

/// See `ShortTable::grow`.
struct Move<'a> {
    table: &'a mut ShortTable,
    larger: ShortTable,
}

impl Work for Move<'_> {
    type Result = ShortTable;

    #[inline(always)]
    fn run(self, extensions: Option<Extensions>) -> ShortTable {
        let Move { table, mut larger } = self;
        for entry in table.pairs.items().iter().flat_map(|pair| pair.0).filter(|entry| !entry.key.is_nothing()) {
            let home = (entry.key.hash(extensions) >> larger.shift) as usize;
            let place = larger.free_place(home);
            *larger.at(place) = entry;
        }
        larger.count = table.count;
        std::mem::swap(&mut larger.arena, &mut table.arena);
        larger
    }
}

/// See `ShortTable::copy_run`.
struct CopyRun<'a> {
    table: &'a ShortTable,
    keys: &'a [Key],
    homes: &'a [u32],
    ids: &'a mut Vec<u32>,
}

impl Work for CopyRun<'_> {
    type Result = usize;

    #[inline(always)]
    fn run(self, _: Option<Extensions>) -> usize {
        let CopyRun { table, keys, homes, ids } = self;
        ids.reserve(AT_ONCE * keys.len());
        let mut length = ids.len();
        let room = ids.as_mut_ptr();
        let pairs = table.pairs.items();
        let arena = table.arena.all();
        let mut run = 0;
        for (key, &home) in keys.iter().zip(homes) {
            let pair = &pairs[home as usize].0;
            // As an index, since there is nothing to foretell which one it is. Two with the same first half are found later.
            let entry = &pair[usize::from(pair[1].key.first_half() == key.first_half())];
            if entry.key != *key {
                break;
            }
            let mut count = entry.ids[1] >> COUNT_SHIFT;
            if count == ELSEWHERE {
                let place = entry.ids[0] as usize;
                let list: Option<&[u32; AT_ONCE + 1]> = arena[place..].first_chunk();
                let Some([number, words @ ..]) = list.filter(|list| list[0] as usize <= AT_ONCE) else { break };
                // Most have no more than half of them.
                let words: &[[u32; AT_ONCE / 2]; 2] = bytemuck::cast_ref(words);
                let halves = if *number as usize <= AT_ONCE / 2 { &words[..1] } else { &words[..] };
                for (half, words) in halves.iter().enumerate() {
                    let place = length + half * AT_ONCE / 2;
                    // SAFETY: room was made for `AT_ONCE` ids of each pretoken, and each so far took at most as many of it;
                    // so as many fit behind `length`.
                    unsafe { room.add(place).cast::<[u32; AT_ONCE / 2]>().write_unaligned(*words) };
                }
                count = *number;
            } else {
                // SAFETY: as above.
                unsafe {
                    room.add(length)
                        .cast::<[u32; INLINE]>()
                        .write_unaligned((u32x4::new(entry.ids) & WITHOUT_COUNT).to_array())
                };
            }
            length += count as usize;
            run += 1;
        }
        // SAFETY: the ids up to `length` were written above, within the room that was made.
        unsafe { ids.set_len(length) };
        run
    }
}
