//! The merges of BPE for short pretokens: the same as `merges.rs`, with nothing in them that has to be foretold.
//!
//! A merge that ever has its turn, in whatever text, is the last one in the text of its token alone: up to it, what happens
//! there is what happens in the longer text, merge by merge. So each token has one merge at most that counts, and the
//! tokens are numbered here as those merges are ranked, behind the symbols that texts begin with. The number of what two
//! tokens merge to is then also the rank of the merge.
//!
//! What pretokens begin with is bytes (`byte_characters.rs`) or characters (`characters.rs`).

use bytemuck::{Pod, Zeroable};
use wide::{f32x4, u32x4};

use super::byte_characters::{ByteCharacters, Parts};
use super::characters::{CharacterNumbers, Numbering, NO_ID};
use super::merges::{Merges, NO_RANK};
use super::vocabulary::Vocabulary;
use crate::extensions::{self, Extensions, Work};
use crate::hash::{fold, prefetch, FastMap, FIRST};
use crate::stored_struct;
use crate::tables::Table;

/// Symbols of a row at most.
const SHORT: usize = 64;
/// Bytes of a pretoken at most, so that it makes no token of more symbols than are known here.
const LONGEST: usize = 256;
/// Work that a build may take for tokens that are odd: the squares of their lengths, added up.
const MOST_WORK: usize = 1 << 31;

/// Bits of a number.
const BITS: u32 = 20;
/// Stands for what is beyond the ends of a row.
const NOBODY: u32 = (1 << BITS) - 1;
/// In the upper half of a slot, the bits of the key that the lower half has no room for.
const HIGH_SHIFT: u32 = 24;
/// In the last slot of a bucket: there was no room for all that belong here, and one has to look into the next one as well.
const IS_OVERFULL: u32 = 1 << (HIGH_SHIFT - 1);
/// Below it there is what lacks from `NOTHING` to what the pair merges to.
const LACKING: u32 = IS_OVERFULL - 1;
/// The key of a pair that nobody asks for.
const EMPTY: u64 = ((1 << BITS) - 2) << BITS;
/// Pairs of lower numbers are in a table of their own.
const NEAR: u32 = 256;
/// What two tokens merge to that do not merge.
const NOTHING: u32 = 1 << (BITS + 1);
/// Slots that are looked at at once.
const BUCKET: usize = 4;
/// Rows that are merged side by side.
const LANES: usize = 8;

/// The last place of a row, which nobody ever has, as the first one.
const END: usize = SHORT + 1;
const PLACE_BITS: u32 = 7;
/// A pair of a row is a number with its place below it, plus this, so that it is neither zero nor tiny as a float. As floats
/// positive numbers have the same order, and of floats the machine finds the lowest at once.
const OFFSET: u32 = 1 << 23;
/// From here on there is no pair.
const NO_PAIR: u32 = NOTHING << PLACE_BITS;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(32))]
struct Bucket {
    /// The lower halves of the keys.
    low: [u32; BUCKET],
    /// What is left of each key, and what it merges to.
    high: [u32; BUCKET],
}

impl Bucket {
    const EMPTY: Bucket = Bucket { low: [EMPTY as u32; BUCKET], high: [high_half(EMPTY); BUCKET] };

    /// What lacks from `NOTHING` to what the pair of a key merges to; 0 if it is not here.
    #[inline(always)]
    fn lacking(&self, key: u64) -> u32 {
        let (low, high) = (u32x4::new(self.low), u32x4::new(self.high));
        let is_low = low.cmp_eq(u32x4::splat(key as u32));
        let is_high = (high >> HIGH_SHIFT as i32).cmp_eq(u32x4::splat((key >> 32) as u32));
        let [first, second, third, fourth] = (is_low & is_high & high).to_array();
        ((first | second) | (third | fourth)) & LACKING
    }

    fn is_overfull(&self) -> bool {
        self.high[BUCKET - 1] & IS_OVERFULL != 0
    }

    /// Add a pair; false: there is no room, which is then written down.
    fn add(&mut self, key: u64, merged: u32) -> bool {
        let is_free = |at: &usize| {
            (self.low[*at], self.high[*at] >> HIGH_SHIFT) == (EMPTY as u32, high_half(EMPTY) >> HIGH_SHIFT)
        };
        let Some(at) = (0..BUCKET).find(is_free) else {
            self.high[BUCKET - 1] |= IS_OVERFULL;
            return false;
        };
        (self.low[at], self.high[at]) = (key as u32, high_half(key) | (NOTHING - merged));
        true
    }
}

/// See the module.
pub struct NumberedMerges {
    buckets: Table<Bucket>,
    shift: u32,
    /// What each two symbols with numbers below `NEAR` merge to; the first one in the higher bits.
    of_near: Table<u32>,
    /// For each number, the id.
    ids: Table<u32>,
    /// What pretokens begin with, where it is bytes.
    bytes: Option<ByteCharacters>,
    /// What they begin with else.
    characters: Option<CharacterNumbers>,
    /// The tokens that their own bytes do not merge to, where a pretoken that is a token stays whole.
    pub unmerged: Option<Vocabulary>,
}
stored_struct!(NumberedMerges { buckets, shift, of_near, ids, bytes, characters, unmerged });

/// What pretokens begin with.
pub trait FirstSymbols {
    /// Hand over the numbers of the symbols of a pretoken, one after the other. False: it has some that have none.
    fn write(&self, pretoken: &[u8], each: impl FnMut(u32)) -> bool;
}

/// What one thread needs for it: the symbols of all rows, for each row where they are and which pretoken it is, and those at
/// work.
#[derive(Default)]
pub struct Rows {
    symbols: Vec<u32>,
    short: Vec<(u32, u32, u32)>,
    middle: Vec<(u32, u32, u32)>,
    long: Vec<(u32, u32, u32)>,
    lanes: [Row; LANES],
}

/// A row at work.
#[derive(Clone, Copy)]
struct Row {
    number: u32,
    place: u32,
    left: u32,
    right: u32,
    /// A bit for each symbol that is there, of place 1 first.
    alive: u64,
    /// Of the first and of the last place, `NOBODY`.
    symbols: [u32; SHORT + 2],
    pairs: [u32; SHORT + 2],
}

/// The tokens by number, and what merges to them.
struct Numbers {
    ids: Vec<u32>,
    of_id: FastMap<u32, u32>,
    /// Left, right and merged.
    merges: Vec<[u32; 3]>,
}

impl Numbers {
    /// Behind the symbols that texts begin with (`NO_ID` is none) come the tokens, by their last merges: rank, left, right
    /// and id. None: there are too many, or one has two.
    fn new(mut ids: Vec<u32>, mut last: Vec<[u32; 4]>) -> Option<Numbers> {
        if last.len() + ids.len() >= NOBODY as usize - 1 {
            return None;
        }
        last.sort_unstable();
        ids.extend(last.iter().map(|merge| merge[3]));
        let numbered = ids.iter().copied().zip(0..).filter(|(id, _)| *id != NO_ID);
        let of_id: FastMap<u32, u32> = numbered.clone().collect();
        if of_id.len() < numbered.count() {
            return None;
        }
        // The sides of a merge that has its turn come to be by merges that have theirs, or are there from the start.
        let merges = last.iter().map(|merge| [merge[1], merge[2], merge[3]].map(|id| of_id[&id])).collect();
        Some(Numbers { ids, of_id, merges })
    }

    fn into_merges(
        self,
        bytes: Option<ByteCharacters>,
        characters: Option<CharacterNumbers>,
        unmerged: Option<Vocabulary>,
    ) -> NumberedMerges {
        let size = self.merges.len().next_power_of_two().max(BUCKET * 2) * 2 / BUCKET;
        let shift = 64 - size.trailing_zeros();
        let mut buckets = vec![Bucket::EMPTY; size];
        let mut of_near = vec![NOTHING; (NEAR * NEAR) as usize];
        for [left, right, merged] in self.merges {
            if left < NEAR && right < NEAR {
                of_near[(left * NEAR + right) as usize] = merged;
            }
            let mut bucket = bucket_of(key(left, right), shift);
            while !buckets[bucket].add(key(left, right), merged) {
                bucket = (bucket + 1) & (size - 1);
            }
        }
        let (buckets, of_near, ids) = (buckets.into(), of_near.into(), self.ids.into());
        NumberedMerges { buckets, shift, of_near, ids, bytes, characters, unmerged }
    }
}

impl NumberedMerges {
    /// Build from the merges, the ids of bytes, and the tokens as bytes, of which pretokens may `stay_whole`. None: there are
    /// too many.
    pub fn of_bytes<'a>(
        merges: &Merges,
        bytes: &[u32; 256],
        tokens: impl Iterator<Item = (&'a [u8], u32)>,
        stay_whole: bool,
    ) -> Option<NumberedMerges> {
        let mut unmerged = vec![];
        let mut last = vec![];
        let mut symbols = vec![];
        let mut characters = vec![];
        let mut ends: FastMap<u32, (u8, u8)> = FastMap::default();
        let mut work = 0;
        for (token, id) in tokens.filter(|(token, _)| token.len() > 1) {
            symbols.clear();
            if token.len() <= LONGEST {
                symbols.extend(token.iter().map(|&byte| bytes[byte as usize]));
            }
            let Some(merge) = merge_of(merges, &mut symbols, id, &mut work)? else {
                unmerged.push((token, id));
                continue;
            };
            last.push(merge);
            ends.insert(id, (token[0], token[token.len() - 1]));
            let mut text = std::str::from_utf8(token).unwrap_or("").chars();
            if let (Some(character), None) = (text.next(), text.next()) {
                characters.push((character, id));
            }
        }
        let numbers = Numbers::new(bytes.to_vec(), last)?;
        let of_id = &numbers.of_id;
        let characters: Vec<(char, u32, Parts)> = characters
            .into_iter()
            .map(|(character, id)| {
                let (mut firsts, mut lasts, mut highest) = (vec![], vec![], 0);
                symbols.clear();
                symbols.extend(character.to_string().bytes().map(|byte| bytes[byte as usize]));
                last_merge(merges, &mut symbols, |symbols| {
                    let (first, last) = (of_id[&symbols[0]], of_id[&symbols[symbols.len() - 1]]);
                    firsts.push(first);
                    lasts.push(last);
                    highest = symbols.iter().map(|symbol| of_id[symbol]).fold(highest, u32::max);
                });
                let number = of_id[&id];
                (character, number, Parts { firsts, lasts, highest: highest.max(number) })
            })
            .collect();
        let ends = |number: u32| match u8::try_from(number) {
            Ok(byte) => (byte, byte),
            Err(_) => ends[&numbers.ids[number as usize]],
        };
        let characters = ByteCharacters::build(&numbers.merges, ends, &characters)?;
        let unmerged = stay_whole.then(|| Vocabulary::new(unmerged.into_iter()));
        Some(numbers.into_merges(Some(characters), None, unmerged))
    }

    /// Build from the merges and the numbers of characters. With `whole`, which has the pretokens that stay whole and their
    /// ids. None: there are too many, or one can be made in two ways.
    pub fn of_characters<'a>(
        merges: &Merges,
        Numbering { numbers: characters, ids, tokens }: Numbering,
        whole: Option<impl Iterator<Item = (&'a [u8], u32)>>,
    ) -> Option<NumberedMerges> {
        let mut last = vec![];
        let mut work = 0;
        for (mut symbols, id) in tokens.into_iter().filter(|(symbols, _)| (2..=LONGEST).contains(&symbols.len())) {
            last.extend(merge_of(merges, &mut symbols, id, &mut work)?);
        }
        let numbers = Numbers::new(ids, last)?;
        let mut built = numbers.into_merges(None, Some(characters), None);
        if let Some(whole) = whole {
            let (mut rows, mut ids, mut place) = (Rows::default(), vec![], [None]);
            let mut merges_to_itself = |token: &[u8], id: u32| {
                ids.clear();
                place[0] = None;
                built.merge(&[token], [0].into_iter(), &mut rows, &mut ids, &mut place);
                ids == [id]
            };
            let unmerged: Vec<(&[u8], u32)> = whole.filter(|&(token, id)| !merges_to_itself(token, id)).collect();
            built.unmerged = Some(Vocabulary::new(unmerged.into_iter()));
        }
        Some(built)
    }

    /// What two tokens merge to, or `NOTHING`.
    #[inline(always)]
    fn merged(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let bucket = bucket_of(key, self.shift);
        let slots = &self.buckets[bucket];
        let lacking = slots.lacking(key);
        if slots.is_overfull() && lacking == 0 {
            return self.merged_further(key, bucket);
        }
        NOTHING - lacking
    }

    #[cold]
    #[inline(never)]
    fn merged_further(&self, key: u64, mut bucket: usize) -> u32 {
        loop {
            let slots = &self.buckets[bucket];
            let lacking = slots.lacking(key);
            if lacking != 0 || !slots.is_overfull() {
                return NOTHING - lacking;
            }
            bucket = (bucket + 1) & (self.buckets.len() - 1);
        }
    }

    #[inline(always)]
    fn ask(&self, left: u32, right: u32) {
        prefetch(&self.buckets, bucket_of(key(left, right), self.shift));
    }

    /// Append the ids of pretokens, one of them after the other, and say where they are. Such as are too long get no place.
    pub fn merge(
        &self,
        pretokens: &[&[u8]],
        numbers: impl Iterator<Item = u32>,
        rows: &mut Rows,
        ids: &mut Vec<u32>,
        places: &mut [Option<(u32, u32)>],
    ) {
        let first = ids.len();
        match (&self.bytes, &self.characters) {
            (Some(bytes), _) => self.begin(bytes, pretokens, numbers, rows),
            (None, Some(characters)) => self.begin(characters, pretokens, numbers, rows),
            (None, None) => return,
        }
        let Rows { symbols, short, middle, long, lanes } = rows;
        let extensions = Extensions::detect();
        extensions::run(extensions, UpTo::<16> { merges: self, todo: short, symbols, rows: lanes, ids, places });
        extensions::run(extensions, UpTo::<32> { merges: self, todo: middle, symbols, rows: lanes, ids, places });
        extensions::run(extensions, UpTo::<SHORT> { merges: self, todo: long, symbols, rows: lanes, ids, places });
        // All at once, so that none of the looks into memory waits for another.
        for id in &mut ids[first..] {
            *id = self.ids[*id as usize];
        }
    }

    /// Write the symbols of all rows, and sort them by length.
    fn begin(
        &self,
        first_symbols: &impl FirstSymbols,
        pretokens: &[&[u8]],
        numbers: impl Iterator<Item = u32>,
        rows: &mut Rows,
    ) {
        let Rows { symbols, short, middle, long, .. } = rows;
        symbols.clear();
        [&mut *short, middle, long].into_iter().for_each(Vec::clear);
        for number in numbers {
            let pretoken = pretokens[number as usize];
            let start = symbols.len();
            if pretoken.len() > LONGEST {
                continue;
            }
            let mut before = 0;
            let is_known = first_symbols.write(pretoken, |symbol| {
                if before | symbol >= NEAR && symbols.len() > start {
                    self.ask(before, symbol);
                }
                symbols.push(symbol);
                before = symbol;
            });
            match symbols.len() - start {
                _ if !is_known => symbols.truncate(start),
                0..=16 => short.push((number, start as u32, symbols.len() as u32)),
                17..=32 => middle.push((number, start as u32, symbols.len() as u32)),
                33..=SHORT => long.push((number, start as u32, symbols.len() as u32)),
                _ => symbols.truncate(start),
            }
        }
        // So that as many symbols can be taken as a row has room for.
        symbols.resize(symbols.len() + SHORT, 0);
    }

    /// The same for such as have at most `N` symbols, with numbers instead of ids.
    ///
    /// Several rows are in work at a time. The table of pairs is larger than the nearer caches, so each look into it waits;
    /// a row asks for its memory and gives its turn to the others.
    #[inline(always)]
    fn merge_up_to<const N: usize>(
        &self,
        todo: &[(u32, u32, u32)],
        symbols: &[u32],
        rows: &mut [Row; LANES],
        ids: &mut Vec<u32>,
        places: &mut [Option<(u32, u32)>],
    ) {
        if todo.is_empty() {
            return;
        }
        let mut todo = todo.iter();
        let mut next = |row: &mut Row, ids: &mut Vec<u32>, places: &mut [Option<(u32, u32)>]| {
            for next in todo.by_ref() {
                if self.load::<N>(symbols, next, row) {
                    return true;
                }
                // There is nothing to merge.
                let &(number, start, end) = next;
                let first = ids.len() as u32;
                ids.extend_from_slice(&symbols[start as usize..end as usize]);
                places[number as usize] = Some((first, ids.len() as u32));
            }
            false
        };
        let mut count = 0;
        while count < LANES && next(&mut rows[count], ids, places) {
            count += 1;
        }
        while count > 0 {
            let mut lane = 0;
            while lane < count {
                let row = &mut rows[lane];
                if self.turn::<N>(row) {
                    lane += 1;
                    continue;
                }
                let first = ids.len() as u32;
                let mut alive = row.alive;
                while alive != 0 {
                    ids.push(row.symbols[alive.trailing_zeros() as usize + 1]);
                    alive &= alive - 1;
                }
                places[row.number as usize] = Some((first, ids.len() as u32));
                if next(row, ids, places) {
                    lane += 1;
                } else {
                    count -= 1;
                    rows[lane] = rows[count];
                }
            }
        }
    }

    /// Put symbols into a row. False: no two of them merge.
    #[inline(always)]
    fn load<const N: usize>(&self, symbols: &[u32], &(number, start, end): &(u32, u32, u32), row: &mut Row) -> bool {
        let symbols: &[u32; N] = symbols[start as usize..].first_chunk().expect("there is more behind the last ones");
        let count = (end - start).min(N as u32);
        row.number = number;
        row.alive = u64::MAX.checked_shr(64 - count).unwrap_or(0);
        row.symbols[1..=N].copy_from_slice(symbols);
        row.pairs[1..=N].fill(NO_PAIR);
        let mut least = NOTHING;
        for (place, (pair, two)) in (1..count).zip(row.pairs[1..].iter_mut().zip(symbols.windows(2))) {
            let merged = match two[0] | two[1] {
                0..NEAR => self.of_near[(two[0] * NEAR + two[1]) as usize],
                _ => self.merged(two[0], two[1]),
            };
            least = merged.min(least);
            *pair = packed(merged, place);
        }
        // Nothing has been asked for: what is looked up first has no consequence.
        (row.place, row.left, row.right) = (END as u32, 0, END as u32);
        least < NOTHING
    }

    /// Look up what was asked for; merge the leftmost pair of lowest rank, and ask for what is known of its new neighbours.
    /// False: there is no pair that merges.
    #[inline(always)]
    fn turn<const N: usize>(&self, row: &mut Row) -> bool {
        let [place, left, right] = [row.place, row.left, row.right].map(|place| place.min(END as u32));
        // Before the pairs are written: what is read in another size than it was written has to wait for that.
        let lowest = lowest::<N>(&row.pairs);
        let symbol = row.symbols[place as usize];
        let with_right = packed(self.merged(symbol, row.symbols[right as usize]), place);
        let with_left = packed(self.merged(row.symbols[left as usize], symbol), left);
        row.pairs[place as usize] = with_right;
        row.pairs[left as usize] = with_left;
        let lowest = lowest.min(with_right).min(with_left);
        if lowest >= NO_PAIR {
            return false;
        }
        // It has a right neighbour, so it is not the last place of all.
        let place = lowest & (SHORT as u32 - 1);
        let symbol = (lowest - OFFSET) >> PLACE_BITS;
        row.symbols[place as usize] = symbol;
        let after = row.alive & (u64::MAX << place);
        let gone = after.trailing_zeros() & 63;
        row.alive ^= 1 << gone;
        let after = after & after.wrapping_sub(1);
        let before = row.alive & ((1 << place) - 1) >> 1;
        row.place = place;
        row.right = after.trailing_zeros() + 1;
        row.left = u64::BITS - before.leading_zeros();
        row.pairs[place as usize] = NO_PAIR;
        row.pairs[gone as usize + 1] = NO_PAIR;
        row.pairs[row.left as usize] = NO_PAIR;
        self.ask(symbol, row.symbols[row.right as usize]);
        self.ask(row.symbols[row.left as usize], symbol);
        true
    }
}

/// See `NumberedMerges::merge_up_to`.
struct UpTo<'a, const N: usize> {
    merges: &'a NumberedMerges,
    todo: &'a [(u32, u32, u32)],
    symbols: &'a [u32],
    rows: &'a mut [Row; LANES],
    ids: &'a mut Vec<u32>,
    places: &'a mut [Option<(u32, u32)>],
}

impl<const N: usize> Work for UpTo<'_, N> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: Option<Extensions>) {
        self.merges.merge_up_to::<N>(self.todo, self.symbols, self.rows, self.ids, self.places);
    }
}

impl Default for Row {
    fn default() -> Row {
        let (symbols, pairs) = ([NOBODY; SHORT + 2], [NO_PAIR; SHORT + 2]);
        Row { number: 0, place: 0, left: 0, right: 0, alive: 0, symbols, pairs }
    }
}

/// The merge that makes a token of its symbols, if they make it: rank, left, right and id. None: that takes too much work.
#[allow(clippy::option_option)]
fn merge_of(merges: &Merges, symbols: &mut Vec<u32>, id: u32, work: &mut usize) -> Option<Option<[u32; 4]>> {
    *work += symbols.len() * symbols.len();
    if *work > MOST_WORK {
        return None;
    }
    let merge = last_merge(merges, symbols, |_| ());
    Some(merge.filter(|_| *symbols == [id]).map(|(rank, left, right)| [rank, left, right, id]))
}

/// The rank and the sides of the last merge of a row, which is worked off in place.
///
/// `before_each` sees the row before each of its merges.
fn last_merge(merges: &Merges, symbols: &mut Vec<u32>, mut before_each: impl FnMut(&[u32])) -> Option<(u32, u32, u32)> {
    let mut ranks: Vec<u32> = symbols.windows(2).map(|pair| merges.rank(pair[0], pair[1])).collect();
    let mut last = None;
    while let Some((place, &rank)) = ranks.iter().enumerate().min_by_key(|(_, &rank)| rank) {
        if rank == NO_RANK {
            break;
        }
        before_each(symbols);
        last = Some((rank, symbols[place], symbols[place + 1]));
        symbols[place] = merges.merged(rank);
        symbols.remove(place + 1);
        ranks.remove(place);
        if place < ranks.len() {
            ranks[place] = merges.rank(symbols[place], symbols[place + 1]);
        }
        if place > 0 {
            ranks[place - 1] = merges.rank(symbols[place - 1], symbols[place]);
        }
    }
    last
}

#[inline(always)]
fn packed(merged: u32, place: u32) -> u32 {
    (merged << PLACE_BITS | place) + OFFSET
}

/// The upper half of a slot with this key.
const fn high_half(key: u64) -> u32 {
    ((key >> 32) as u32) << HIGH_SHIFT
}

#[inline(always)]
fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << BITS | u64::from(right)
}

#[inline(always)]
fn bucket_of(key: u64, shift: u32) -> usize {
    (fold(key, FIRST) >> shift) as usize
}

/// The lowest of the pairs from place 1 on.
#[inline(always)]
fn lowest<const N: usize>(pairs: &[u32; SHORT + 2]) -> u32 {
    let mut least = f32x4::splat(f32::MAX);
    for four in pairs[1..=N].chunks_exact(4) {
        let four: [u32; 4] = four.try_into().expect("four");
        least = least.fast_min(bytemuck::cast(four));
    }
    let least = least.to_array();
    let of_two = |a: f32, b: f32| if a < b { a } else { b };
    of_two(of_two(least[0], least[1]), of_two(least[2], least[3])).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::merges::LongRow;
    use crate::random::Random;

    const CHARACTERS: [&str; 8] = ["a", "b", " ", "п", "о", "中", "丯", "😀"];

    /// Tokens of parts of characters and of several, by merges in an order that has nothing to do with how they are made.
    /// The bytes have the ids from 1000 on, downwards.
    fn hostile(random: &mut Random) -> (Merges, [u32; 256], FastMap<Vec<u8>, u32>) {
        let bytes: [u32; 256] = std::array::from_fn(|byte| 1000 - byte as u32);
        let mut tokens: FastMap<Vec<u8>, u32> = (0..=255u8).map(|byte| (vec![byte], bytes[byte as usize])).collect();
        let letters: Vec<u8> = CHARACTERS.concat().into_bytes();
        let mut known: Vec<Vec<u8>> = letters.iter().map(|&byte| vec![byte]).collect();
        let mut merges = vec![];
        let is_tame = random.below(2) == 0;
        for character in CHARACTERS.iter().filter(|_| is_tame) {
            for end in 2..=character.len() {
                let (left, right) =
                    (character.as_bytes()[..end - 1].to_vec(), character.as_bytes()[end - 1..end].to_vec());
                let token = [&left[..], &right[..]].concat();
                let next = tokens.len() as u32 + 2000;
                merges.push((tokens[&left], tokens[&right], *tokens.entry(token.clone()).or_insert(next)));
                known.push(token);
            }
        }
        let first = merges.len();
        for _ in 0..random.below(120) {
            let (left, right) = (known[random.below(known.len())].clone(), known[random.below(known.len())].clone());
            let token = [&left[..], &right[..]].concat();
            if token.len() <= 20 {
                let next = tokens.len() as u32 + 2000;
                merges.push((tokens[&left], tokens[&right], *tokens.entry(token.clone()).or_insert(next)));
                known.push(token);
            }
        }
        let shuffled = if random.below(2) == 0 { 0 } else { first };
        for place in (shuffled + 1..merges.len()).rev() {
            merges.swap(place, shuffled + random.below(place - shuffled + 1));
        }
        (Merges::new(&merges).unwrap(), bytes, tokens)
    }

    /// What the heap makes of a text.
    fn expected(merges: &Merges, bytes: &[u32; 256], text: &[u8]) -> Vec<u32> {
        let mut symbols: Vec<u32> = text.iter().map(|&byte| bytes[byte as usize]).collect();
        let mut row = LongRow::default();
        merges.merge_long(&mut symbols, &mut row);
        (0..text.len()).filter(|&at| row.is_first(at)).map(|at| symbols[at]).collect()
    }

    #[test]
    fn rows_of_bytes_are_merged_as_the_heap_does() {
        let mut random = Random(99);
        let mut whole_characters = 0;
        for _ in 0..if cfg!(miri) { 3 } else { 1500 } {
            let (merges, bytes, tokens) = hostile(&mut random);
            let entries = tokens.iter().map(|(token, &id)| (&token[..], id));
            let numbered = NumberedMerges::of_bytes(&merges, &bytes, entries, true).unwrap();
            let unmerged = numbered.unmerged.as_ref().expect("it was wanted");
            for (token, &id) in &tokens {
                let merged = expected(&merges, &bytes, token) == [id];
                assert_eq!(unmerged.id(token), (!merged).then_some(id), "{token:?}");
            }
            let texts: Vec<Vec<u8>> = (0..40)
                .map(|_| {
                    let mut text = vec![];
                    let most = if random.below(8) == 0 { 50 } else { 9 };
                    for _ in 0..random.below(most) {
                        let character = CHARACTERS[random.below(CHARACTERS.len())].as_bytes();
                        // Sometimes without its first or last byte.
                        let cut = if character.len() > 1 { random.below(12) } else { 2 };
                        text.extend(&character[usize::from(cut == 0)..character.len() - usize::from(cut == 1)]);
                    }
                    text
                })
                .collect();
            let pretokens: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
            let (mut ids, mut places) = (vec![], vec![None; pretokens.len()]);
            numbered.merge(&pretokens, 0..pretokens.len() as u32, &mut Rows::default(), &mut ids, &mut places);
            for (text, place) in texts.iter().zip(places) {
                let expected = expected(&merges, &bytes, text);
                match place {
                    Some((first, end)) => assert_eq!(ids[first as usize..end as usize], expected, "{text:?}"),
                    None => assert!(text.len() > SHORT),
                }
                let starts =
                    (0..text.len()).filter(|&at| numbered.bytes.as_ref().expect("it is of bytes").at(text, at).1 > 1);
                whole_characters += starts.count();
            }
        }
        assert!(cfg!(miri) || whole_characters > 10_000, "{whole_characters}");
    }
}
