//! The merges of BPE for short pretokens: the same as `merges.rs`, with nothing in them that has to be foretold.
//!
//! A merge that ever has its turn, in whatever text, is the last one in the text of its token alone: up to it, what happens
//! there is what happens in the longer text, merge by merge. So each token has one merge at most that counts, and the
//! tokens are numbered here as those merges are ranked, behind the symbols that texts begin with. The number of what two
//! tokens merge to is then also the rank of the merge.
//!
//! What pretokens begin with is bytes (`byte_characters.rs`) or characters (`characters.rs`), and pairs of them that surely
//! merge (`sure_pairs.rs`). Where nothing ever merges across the border between two of them, a row ends and another one
//! begins; most symbols of other scripts are rows of their own. How it is built is in `build.rs`, the table of pairs in
//! `pairs.rs`.

mod build;
mod pairs;

use wide::f32x4;

use super::byte_characters::ByteCharacters;
use super::characters::CharacterNumbers;
use super::sure_pairs::{AllFound, Found, SurePairs};
use super::vocabulary::Vocabulary;
use crate::extensions::{self, Extensions, Work};
use crate::stored_struct;
use crate::tables::Table;
use pairs::Pairs;

/// Symbols of a row at most.
const SHORT: usize = 64;
/// Rows are of three sizes: most of them have so many symbols at most,
const SMALL: usize = 8;
/// and most of the others so many.
const MIDDLE: usize = 32;
/// Rows are told apart by so many lengths.
const LENGTHS: usize = 16;
/// In the place of a symbol that has become part of another one.
const GONE: u32 = u32::MAX;
/// Bytes of a pretoken at most, so that it makes no token of more symbols than are known here.
pub const LONGEST: usize = 256;

/// Bits of a number.
const BITS: u32 = 20;
/// Stands for what is beyond the ends of a row.
const NOBODY: u32 = (1 << BITS) - 1;
/// What two tokens merge to that do not merge.
const NOTHING: u32 = 1 << (BITS + 1);
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

/// See the module.
pub struct NumberedMerges {
    pairs: Pairs,
    sure: SurePairs,
    ids: Ids,
    /// What pretokens begin with, where it is bytes.
    bytes: Option<ByteCharacters>,
    /// What they begin with else.
    pub characters: Option<CharacterNumbers>,
    /// The tokens that their own bytes do not merge to, where a pretoken that is a token stays whole.
    pub unmerged: Option<Vocabulary>,
}
stored_struct!(NumberedMerges { pairs, sure, ids, bytes, characters, unmerged });

/// The ids of numbers.
struct Ids {
    /// Those of the first numbers.
    first: Table<u32>,
    /// What is to be added to the others: tokens are mostly in the order of their merges.
    added: u32,
}
stored_struct!(Ids { first, added });

impl Ids {
    /// In the places of numbers.
    #[inline(always)]
    fn put(&self, numbers: &mut [u32]) {
        // All at once, so that none of the looks into memory waits for another.
        let last = self.first.len() - 1;
        for number in numbers {
            let first = self.first[(*number as usize).min(last)];
            *number = if *number as usize <= last { first } else { number.wrapping_add(self.added) };
        }
    }
}

/// What pretokens begin with.
pub trait FirstSymbols {
    /// Hand over the numbers of the symbols of a pretoken, one after the other, pairs that surely merge as one, and whether
    /// something may merge across the border before each. False: it has some that have no number.
    fn write(&self, pretoken: &[u8], sure: &SurePairs, room: &mut Room, each: impl FnMut(u32, bool)) -> bool;
}

/// Room to find pairs that surely merge.
pub struct Room {
    /// The numbers of characters.
    pub numbers: [u32; LONGEST],
    /// Their classes.
    pub classes: [u8; LONGEST],
    /// See `SurePairs::find`.
    pub found: AllFound,
}

/// What one thread needs for it: the pretokens and the symbols of all of them, the rows by length, and those at work.
pub struct Rows {
    extensions: Option<Extensions>,
    room: Room,
    pretokens: Vec<Symbols>,
    symbols: Vec<u32>,
    /// Rows of two symbols.
    twos: Vec<u32>,
    todo: [Vec<Todo>; LENGTHS],
    lanes: [Row; LANES],
}

/// Where the symbols of a pretoken are.
#[derive(Clone, Copy)]
struct Symbols {
    number: u32,
    start: u32,
    end: u32,
}

/// Where the symbols of a row are.
#[derive(Clone, Copy)]
struct Todo {
    start: u32,
    count: u32,
}

/// A row at work.
#[derive(Clone, Copy)]
struct Row {
    /// Where its symbols come from.
    start: u32,
    place: u32,
    left: u32,
    right: u32,
    /// How many symbols it has at the beginning.
    count: u32,
    /// A bit for each symbol that is there, of place 1 first.
    alive: u64,
    /// Of the first and of the last place, `NOBODY`.
    symbols: [u32; SHORT + 2],
    pairs: [u32; SHORT + 2],
}

impl NumberedMerges {
    /// Append the ids of pretokens, one of them after the other, and say where they are. Such as are too long get no place.
    pub fn merge(
        &self,
        pretokens: &[&[u8]],
        numbers: impl Iterator<Item = u32>,
        rows: &mut Rows,
        ids: &mut Vec<u32>,
        places: &mut [Option<(u32, u32)>],
    ) {
        match (&self.bytes, &self.characters) {
            (Some(first_symbols), _) => self.merge_with(first_symbols, pretokens, numbers, rows, ids, places),
            (None, Some(first_symbols)) => self.merge_with(first_symbols, pretokens, numbers, rows, ids, places),
            (None, None) => numbers.for_each(|number| places[number as usize] = None),
        }
    }

    fn merge_with(
        &self,
        first_symbols: &impl FirstSymbols,
        pretokens: &[&[u8]],
        numbers: impl Iterator<Item = u32>,
        rows: &mut Rows,
        ids: &mut Vec<u32>,
        places: &mut [Option<(u32, u32)>],
    ) {
        let count = match self.sure.tells_borders() {
            true => self.begin::<true>(first_symbols, pretokens, numbers, rows, places),
            false => self.begin::<false>(first_symbols, pretokens, numbers, rows, places),
        };
        let first = ids.len();
        ids.resize(first + count + 1, 0);
        let extensions = rows.extensions;
        let merging = Merging { merges: self, rows, ids: &mut ids[first..], places, first };
        let end = extensions::run(extensions, merging);
        ids.truncate(end);
    }

    /// Write the symbols of all pretokens, and sort their rows by length. Gives how many symbols there are. Pretokens that
    /// have too long a row get no place. `MAY_END`: a row may end within a pretoken.
    fn begin<const MAY_END: bool>(
        &self,
        first_symbols: &impl FirstSymbols,
        pretokens: &[&[u8]],
        numbers: impl Iterator<Item = u32>,
        rows: &mut Rows,
        places: &mut [Option<(u32, u32)>],
    ) -> usize {
        let Rows { room, pretokens: known, symbols, twos, todo, .. } = rows;
        todo.iter_mut().for_each(Vec::clear);
        twos.clear();
        known.clear();
        let mut start = 0;
        for number in numbers {
            let pretoken = pretokens[number as usize];
            // A pretoken has no more symbols than bytes; and as many can be taken as a row has room for.
            if symbols.len() < start + LONGEST + SHORT {
                symbols.resize(2 * (start + LONGEST + SHORT), 0);
            }
            let all = &mut symbols[start..start + LONGEST];
            let mut count = 0;
            let mut first_of_row = 0;
            let mut longest = 0;
            let mut end_row = |first: usize, end: usize| match end - first {
                0 | 1 => {}
                2 => twos.push((start + first) as u32),
                count => {
                    longest = count.max(longest);
                    let of_length = &mut todo[((count - 1) * LENGTHS / SHORT).min(LENGTHS - 1)];
                    of_length.push(Todo { start: (start + first) as u32, count: count.min(SHORT) as u32 });
                }
            };
            let mut before = NOBODY;
            let is_known = pretoken.len() <= LONGEST
                && first_symbols.write(pretoken, &self.sure, room, |symbol, may_cross| {
                    if may_cross || !MAY_END {
                        self.pairs.ask(before, symbol);
                    } else {
                        end_row(first_of_row, count);
                        first_of_row = count;
                    }
                    all[count % LONGEST] = symbol;
                    count += 1;
                    before = symbol;
                });
            end_row(first_of_row, count);
            if is_known && longest <= SHORT {
                known.push(Symbols { number, start: start as u32, end: (start + count) as u32 });
            } else {
                // Its other rows are merged for nothing.
                places[number as usize] = None;
            }
            start += count;
        }
        start
    }

    /// Merge the rows of two symbols.
    #[inline(always)]
    fn merge_twos(&self, symbols: &mut [u32], twos: &[u32]) {
        for &start in twos {
            let [left, right] = &mut symbols[start as usize..start as usize + 2] else { continue };
            let merged = self.pairs.merged(*left, *right);
            if merged < NOTHING {
                (*left, *right) = (merged, GONE);
            }
        }
    }

    /// Put symbols into a row. False: no two of them merge.
    #[inline(always)]
    fn load(&self, symbols: &[u32], todo: Todo, row: &mut Row) -> bool {
        row.start = todo.start;
        row.count = todo.count;
        row.alive = u64::MAX.checked_shr(64 - todo.count).unwrap_or(0);
        // Nothing has been asked for: what is looked up first has no consequence.
        (row.place, row.left, row.right) = (END as u32, 0, END as u32);
        let symbols = &symbols[todo.start as usize..];
        if todo.count as usize <= SMALL {
            self.fill::<SMALL>(symbols, row)
        } else if todo.count as usize <= MIDDLE {
            self.fill::<MIDDLE>(symbols, row)
        } else {
            self.fill::<SHORT>(symbols, row)
        }
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, symbols: &[u32], row: &mut Row) -> bool {
        let symbols: &[u32; N] = symbols.first_chunk().expect("there is room behind the last ones");
        row.symbols[1..=N].copy_from_slice(symbols);
        row.pairs[1..=N].fill(NO_PAIR);
        let mut least = NOTHING;
        let count = row.count.min(N as u32);
        for (place, (pair, two)) in (1..count).zip(row.pairs[1..].iter_mut().zip(symbols.windows(2))) {
            let merged = self.pairs.merged(two[0], two[1]);
            least = merged.min(least);
            *pair = packed(merged, place);
        }
        least < NOTHING
    }

    /// Look up what was asked for; merge the leftmost pair of lowest rank, also where its symbols come from, and ask for what
    /// is known of its new neighbours. False: there is no pair that merges.
    #[inline(always)]
    fn turn(&self, row: &mut Row, symbols: &mut [u32]) -> bool {
        let [place, left, right] = [row.place, row.left, row.right].map(|place| place.min(END as u32));
        // Before the pairs are written: what is read in another size than it was written has to wait for that.
        let lowest = lowest(row);
        let symbol = row.symbols[place as usize];
        let with_right = packed(self.pairs.merged(symbol, row.symbols[right as usize]), place);
        let with_left = packed(self.pairs.merged(row.symbols[left as usize], symbol), left);
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
        symbols[row.start as usize + place as usize - 1] = symbol;
        let after = row.alive & (u64::MAX << place);
        let gone = after.trailing_zeros() & 63;
        symbols[row.start as usize + gone as usize] = GONE;
        row.alive ^= 1 << gone;
        let after = after & after.wrapping_sub(1);
        let before = row.alive & ((1 << place) - 1) >> 1;
        row.place = place;
        row.right = after.trailing_zeros() + 1;
        row.left = u64::BITS - before.leading_zeros();
        row.pairs[place as usize] = NO_PAIR;
        row.pairs[gone as usize + 1] = NO_PAIR;
        row.pairs[row.left as usize] = NO_PAIR;
        self.pairs.ask(symbol, row.symbols[row.right as usize]);
        self.pairs.ask(row.symbols[row.left as usize], symbol);
        true
    }
}

/// Merge all rows, and write the ids of what is left of all pretokens one after the other.
///
/// Several rows are in work at a time. The table of pairs is larger than the nearer caches, so each look into it waits;
/// a row asks for its memory and gives its turn to the others. The longest come first, so that no lane is left alone for
/// long.
struct Merging<'a> {
    merges: &'a NumberedMerges,
    rows: &'a mut Rows,
    /// Room for all symbols, and one more.
    ids: &'a mut [u32],
    places: &'a mut [Option<(u32, u32)>],
    /// The place of `ids` in all ids.
    first: usize,
}

impl Work for Merging<'_> {
    /// Where the ids end, in all ids.
    type Result = usize;

    #[inline(always)]
    fn run(self, _: Option<Extensions>) -> usize {
        let Merging { merges, rows, ids, places, first } = self;
        let Rows { pretokens, symbols, twos, todo, lanes, .. } = rows;
        merges.merge_twos(symbols, twos);
        merges.merge_rows(symbols, todo.iter().rev().flatten(), lanes);
        let mut end = 0;
        for pretoken in pretokens {
            let start = end;
            for &symbol in &symbols[pretoken.start as usize..pretoken.end as usize] {
                ids[end] = symbol;
                end += usize::from(symbol != GONE);
            }
            places[pretoken.number as usize] = Some(((first + start) as u32, (first + end) as u32));
        }
        merges.ids.put(&mut ids[..end]);
        first + end
    }
}

impl NumberedMerges {
    /// Merge rows where their symbols are.
    #[inline(always)]
    fn merge_rows<'t>(&self, symbols: &mut [u32], mut todo: impl Iterator<Item = &'t Todo>, lanes: &mut [Row; LANES]) {
        let mut count = 0;
        let mut lane = 0;
        loop {
            // A row for this lane.
            let is_free = loop {
                let Some(&next) = todo.next() else { break true };
                // Else there is nothing to merge.
                if self.load(symbols, next, &mut lanes[lane]) {
                    break false;
                }
            };
            match is_free {
                false if lane == count => {
                    count += 1;
                    lane += 1;
                    if count < LANES {
                        continue;
                    }
                }
                false => lane += 1,
                true if lane < count => {
                    count -= 1;
                    lanes[lane] = lanes[count];
                }
                true => {}
            }
            // Turns, until a row ends.
            loop {
                if count == 0 {
                    return;
                }
                if lane >= count {
                    lane = 0;
                }
                if !self.turn(&mut lanes[lane], symbols) {
                    break;
                }
                lane += 1;
            }
        }
    }
}

impl Default for Rows {
    fn default() -> Rows {
        let room = Room { numbers: [0; LONGEST], classes: [0; LONGEST], found: [Found::default(); LONGEST + 1] };
        let (pretokens, symbols, twos, todo, lanes) = Default::default();
        Rows { extensions: Extensions::detect(), room, pretokens, symbols, twos, todo, lanes }
    }
}

impl Default for Row {
    fn default() -> Row {
        let (symbols, pairs) = ([NOBODY; SHORT + 2], [NO_PAIR; SHORT + 2]);
        Row { start: 0, place: 0, left: 0, right: 0, count: 0, alive: 0, symbols, pairs }
    }
}

#[inline(always)]
fn packed(merged: u32, place: u32) -> u32 {
    (merged << PLACE_BITS | place) + OFFSET
}

/// The lowest of the pairs of a row.
#[inline(always)]
fn lowest(row: &Row) -> u32 {
    let of_some = |mut least: f32x4, pairs: &[u32]| {
        for four in pairs.chunks_exact(4) {
            let four: [u32; 4] = four.try_into().expect("four");
            least = least.fast_min(bytemuck::cast(four));
        }
        least
    };
    let mut least = of_some(f32x4::splat(f32::MAX), &row.pairs[1..=SMALL]);
    if row.count as usize > SMALL {
        least = of_some(least, &row.pairs[SMALL + 1..=MIDDLE]);
    }
    if row.count as usize > MIDDLE {
        least = of_some(least, &row.pairs[MIDDLE + 1..=SHORT]);
    }
    let least = least.to_array();
    let of_two = |a: f32, b: f32| if a < b { a } else { b };
    of_two(of_two(least[0], least[1]), of_two(least[2], least[3])).to_bits()
}

#[cfg(test)]
mod tests;
