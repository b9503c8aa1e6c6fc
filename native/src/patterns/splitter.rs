//! Run a transducer over texts: the result is a bitmap of where pieces begin.
//!
//! What the neighbours of a place tell (`windows.rs`) is found without the machine, which is then run only around the places
//! that are left, from a place before them where its state is known whatever came before, to one behind them where nothing is
//! open. Where too many are left, or pieces are short, it is run over all of the text, as follows.
//!
//! Four segments run side by side, since each step waits for the one before it. Segments are pieces of text; where there
//! are no more of them for a lane, the longest at work is cut in two, where the machine's state is known whatever came before.
//! Within a burst of 48 bytes nothing is checked; a burst that ended in the trap is done again, slowly. What is left at the
//! end of a segment is stepped through alone, so that the others need not stop there.

mod beginnings;
mod by_windows;

use super::classes::ascii_prefix;
use super::scan::Scanner;
use super::transducer::{Transducer, LONGEST_DELAY};
use crate::extensions::{self, Extensions, Work};

/// Bytes a burst: what fits into 64 bits together with the longest delay.
const BURST: usize = 48;
/// Bits before position 0 of the bitmap: beginnings are told late.
const MARGIN: usize = 64;
const LANES: usize = 4;
/// What is longer is cut in two for a lane that has nothing to do.
const WORTH_CUTTING: usize = 8 * BURST;

/// What all lanes of a run have in common.
struct Run<'a> {
    machine: &'a Transducer,
    source: &'a [u8],
    /// The row of `pair_table` of the trap.
    trap: u32,
}

/// A segment at work: how far it is, where it ends, in what state it is, and whether a piece ends with it.
#[derive(Clone, Copy)]
struct Lane {
    at: usize,
    end: usize,
    /// Row of `pair_table`.
    row: u32,
    is_last: bool,
}

impl Lane {
    fn has_burst(&self) -> bool {
        self.end - self.at >= BURST
    }
}

/// A piece of the text that is cut by itself; `row` is the state at its start (for a whole piece `Transducer::start`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First byte.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
    /// State at the start.
    pub row: u32,
    /// Whether the piece ends here (false: it goes on in another text, see `Splitter::cut_point`).
    pub is_last: bool,
}

/// The scratch memory of one thread, and the bitmap of the last run.
#[derive(Default)]
pub struct Splitter {
    symbols: Vec<u8>,
    bits: Vec<u64>,
    scanner: Scanner,
    /// Where windows do not tell.
    unknown: Vec<u64>,
    /// A second bitmap, for what is stepped through after a scan; otherwise no bit is set in it.
    stepped: Vec<u64>,
    /// How many texts are not scanned now, and how many it will be after the next scan in vain.
    rest: u32,
    next_rest: u32,
    is_eager: bool,
    was_scanned: bool,
}

impl Splitter {
    /// One that looks at windows wherever it can, worth it or not.
    pub fn eager() -> Splitter {
        Splitter { is_eager: true, ..Splitter::default() }
    }

    /// Whether the last text was done by its windows.
    pub fn was_scanned(&self) -> bool {
        self.was_scanned
    }

    /// Cut the stretches of a text. What is between the stretches is not looked at, and keeps no bits.
    ///
    /// A bit is set where a piece begins; also at the start of each stretch that begins in `Transducer::start`.
    pub fn run(&mut self, machine: &Transducer, text: &[u8], stretches: &[Stretch]) {
        self.bits.clear();
        self.bits.resize((text.len() + MARGIN) / 64 + 3, 0);
        let mut symbols = std::mem::take(&mut self.symbols);
        let source = if ascii_prefix(text) == text.len() {
            text
        } else {
            machine.classes.symbols_into(text, machine.continuation, &mut symbols);
            &symbols
        };
        let run = &Run { machine, source, trap: to_pairs(machine, machine.trap) };
        self.was_scanned = self.run_windows(run, stretches);
        if !self.was_scanned {
            extensions::run(Extensions::detect(), RunLanes(self, run, stretches));
        }
        for stretch in stretches {
            if stretch.start < stretch.end && stretch.row == machine.start {
                self.set(MARGIN + stretch.start);
            }
        }
        self.symbols = symbols;
    }

    /// Find a place at or after `from` where the state is known whatever came before; the text is read as it is.
    /// Gives the place and the row. None where there is no such place before the end.
    pub fn cut_point(machine: &Transducer, text: &[u8], from: usize) -> Option<(usize, u32)> {
        // A character boundary, so that the machine sees whole characters.
        let mut at = from;
        while at < text.len() && text[at] & 0xC0 == 0x80 {
            at += 1;
        }
        let mut set = 0usize;
        let mut symbols = vec![];
        while at < text.len() {
            let mut end = (at + 64).min(text.len());
            while end < text.len() && text[end] & 0xC0 == 0x80 {
                end += 1;
            }
            machine.classes.symbols_into(&text[at..end], machine.continuation, &mut symbols);
            for (k, &symbol) in symbols.iter().enumerate() {
                set = machine.synchronising[set + machine.symbol_of[symbol as usize] as usize] as usize;
                let place = at + k + 1;
                if place < text.len() && text[place] & 0xC0 != 0x80 {
                    if let Some(row) = machine.synchronised(set) {
                        return Some((place, row));
                    }
                }
            }
            at = end;
        }
        None
    }

    /// Tell what the end of a piece tells.
    fn tell_end(&mut self, machine: &Transducer, end: usize, row: u32) {
        let [mask, retracted] = machine.ends[row as usize / machine.symbols];
        self.retract(end, retracted);
        self.tell(end, u64::from(mask));
    }

    #[inline(always)]
    fn run_lanes(&mut self, run: &Run, stretches: &[Stretch]) {
        let (machine, source) = (run.machine, run.source);
        let mut queue = stretches.iter();
        let mut lanes: [Option<Lane>; LANES] = std::array::from_fn(|_| self.next_lane(run, &mut queue));
        loop {
            for at in 0..LANES {
                if lanes[at].is_none() {
                    lanes[at] = halve_longest(run, &mut lanes);
                }
            }
            let [Some(first), Some(second), Some(third), Some(fourth)] = &mut lanes else { break };
            let mut all = [first, second, third, fourth];
            let mut is_short = false;
            while !is_short {
                let texts = all
                    .each_ref()
                    .map(|lane| <&[u8; BURST]>::try_from(&source[lane.at..lane.at + BURST]).expect("a burst"));
                let mut rows = all.each_ref().map(|lane| lane.row);
                let told = burst(machine, texts.map(|text| &text[..]), &mut rows, BURST);
                for ((lane, told), row) in all.iter_mut().zip(told).zip(rows) {
                    self.after_burst(run, lane, BURST, told, row);
                    is_short |= !lane.has_burst();
                }
            }
            for lane in &mut lanes {
                if let Some(short) = lane.take_if(|lane| !lane.has_burst()) {
                    self.finish_alone(run, short);
                    *lane = self.next_lane(run, &mut queue);
                }
            }
        }
        for lane in lanes.into_iter().flatten() {
            self.finish_alone(run, lane);
        }
    }

    /// The next segment that is worth a lane; shorter ones before it are done at once.
    fn next_lane(&mut self, run: &Run, queue: &mut std::slice::Iter<Stretch>) -> Option<Lane> {
        for &Stretch { start, end, row, is_last } in queue {
            if start >= end {
                continue;
            }
            let lane = Lane { at: start, end, row: to_pairs(run.machine, row), is_last };
            if lane.has_burst() {
                return Some(lane);
            }
            self.finish_alone(run, lane);
        }
        None
    }

    /// Go to the end of a segment, and give the lane there.
    fn finish_alone(&mut self, run: &Run, mut lane: Lane) -> Lane {
        let Lane { end, is_last, .. } = lane;
        while lane.at < end {
            let length = BURST.min(end - lane.at);
            let mut rows = [lane.row];
            let [told] = burst(run.machine, [&run.source[lane.at..lane.at + length]], &mut rows, length);
            self.after_burst(run, &mut lane, length, told, rows[0]);
        }
        if is_last {
            self.tell_end(run.machine, end, to_single(run.machine, lane.row));
        }
        lane
    }

    /// Take over what a burst has come to.
    #[inline(always)]
    fn after_burst(&mut self, run: &Run, lane: &mut Lane, length: usize, told: u64, row: u32) {
        if row == run.trap {
            let text = &run.source[lane.at..lane.at + length];
            let slow = self.step_slowly(run.machine, text, lane.at, to_single(run.machine, lane.row));
            lane.row = to_pairs(run.machine, slow);
        } else {
            self.tell(lane.at, told);
            lane.row = row;
        }
        lane.at += length;
    }

    /// Bit k of `told`: a piece begins at `at` + k - 7.
    #[inline]
    fn tell(&mut self, at: usize, told: u64) {
        let bit = MARGIN + at - LONGEST_DELAY as usize;
        let (word, shift) = (bit >> 6, bit & 63);
        self.bits[word] |= told << shift;
        // Two shifts, since one by 64 is none.
        self.bits[word + 1] |= told >> 1 >> (63 - shift);
    }

    /// Set the bit of a place, as if a piece began there.
    pub fn mark(&mut self, at: usize) {
        self.set(MARGIN + at);
    }

    fn set(&mut self, bit: usize) {
        self.bits[bit >> 6] |= 1 << (bit & 63);
    }

    fn retract(&mut self, at: usize, retracted: u32) {
        if retracted == 0 {
            return;
        }
        let mut bit = MARGIN + at;
        for k in 0..32 - retracted.leading_zeros() {
            loop {
                bit -= 1;
                if self.bits[bit >> 6] >> (bit & 63) & 1 == 1 {
                    break;
                }
            }
            if retracted >> k & 1 == 1 {
                self.bits[bit >> 6] &= !(1 << (bit & 63));
            }
        }
    }

    #[cold]
    fn step_slowly(&mut self, machine: &Transducer, text: &[u8], at: usize, mut row: u32) -> u32 {
        for (k, &byte) in text.iter().enumerate() {
            let cell = row + u32::from(machine.symbol_of[byte as usize]);
            let entry = machine.table[cell as usize];
            if entry >> 8 == machine.trap {
                let retraction = machine.retraction(cell).expect("nothing else leads into the trap");
                self.retract(at + k, retraction.retracted);
                self.tell(at + k, u64::from(retraction.mask));
                row = retraction.row;
            } else {
                self.tell(at + k, u64::from(entry & 255));
                row = entry >> 8;
            }
        }
        row
    }

    /// Put where the pieces of the last run begin in place of what is in `starts`.
    pub fn starts_into(&self, starts: &mut Vec<u32>) {
        beginnings::numbers_into(&self.bits, MARGIN, starts);
    }
}

struct RunLanes<'a, 'b>(&'a mut Splitter, &'a Run<'b>, &'a [Stretch]);

impl Work for RunLanes<'_, '_> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: Option<Extensions>) {
        self.0.run_lanes(self.1, self.2);
    }
}

/// The first place in the middle of a certain piece whatever came before `start`, behind it and not behind `end`.
fn synchronised_between(run: &Run, start: usize, end: usize) -> Option<(usize, u32)> {
    let mut set = 0usize;
    for at in start..end {
        let symbol = run.machine.symbol_of[run.source[at] as usize] as usize;
        set = run.machine.synchronising[set + symbol] as usize;
        if let Some(row) = run.machine.synchronised(set) {
            return Some((at + 1, row));
        }
    }
    None
}

/// Cut the longest segment at work in two, and give its second half. None: none is worth it, or there is no place.
fn halve_longest(run: &Run, lanes: &mut [Option<Lane>; LANES]) -> Option<Lane> {
    let longest = lanes.iter_mut().flatten().max_by_key(|lane| lane.end - lane.at)?;
    let length = longest.end - longest.at;
    if length < WORTH_CUTTING {
        return None;
    }
    let (place, row) = synchronised_between(run, longest.at + length / 2, longest.end - BURST)?;
    let second = Lane { at: place, row: to_pairs(run.machine, row), ..*longest };
    (longest.end, longest.is_last) = (place, false);
    Some(second)
}

/// The row of `pair_table` for one of `table`.
#[inline(always)]
fn to_pairs(machine: &Transducer, row: u32) -> u32 {
    let symbols = machine.symbols as u32;
    row / symbols * (symbols * symbols)
}

/// The row of `table` for one of `pair_table`.
fn to_single(machine: &Transducer, row: u32) -> u32 {
    let symbols = machine.symbols as u32;
    row / (symbols * symbols) * symbols
}

/// Step some lanes through `length` bytes. Gives, for each, the beginnings told as bits.
#[inline(always)]
fn burst<const COUNT: usize>(
    machine: &Transducer,
    texts: [&[u8]; COUNT],
    rows: &mut [u32; COUNT],
    length: usize,
) -> [u64; COUNT] {
    let mut told = [0u64; COUNT];
    for pair in 0..length / 2 {
        for lane in 0..COUNT {
            let first = machine.pair_symbol_of[texts[lane][2 * pair] as usize] as usize;
            let second = machine.symbol_of[texts[lane][2 * pair + 1] as usize] as usize;
            let cell = rows[lane] as usize + first + second;
            debug_assert!(cell < machine.pair_table.len());
            // SAFETY: `rows` holds a row of `pair_table`: `Stretch::row`, the row of a place where a segment was cut, and
            // every entry of the table are states of this machine, times `symbols` squared, and `first + second` is less
            // than `symbols` squared. Of a machine from a file that is checked (`Transducer::is_sound`).
            // Measured: the check costs a quarter of the speed of this loop.
            let entry = unsafe { *machine.pair_table.get_unchecked(cell) };
            rows[lane] = entry >> 9;
            told[lane] |= u64::from(entry & 0x1FF) << (2 * pair);
        }
    }
    if length % 2 == 1 {
        for lane in 0..COUNT {
            let row = to_single(machine, rows[lane]);
            let entry = machine.table[(row + u32::from(machine.symbol_of[texts[lane][length - 1] as usize])) as usize];
            rows[lane] = to_pairs(machine, entry >> 8);
            told[lane] |= u64::from(entry & 0xFF) << (length - 1);
        }
    }
    told
}
