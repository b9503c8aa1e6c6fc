//! Cutting a text by its windows, and stepping through what they do not tell.

use super::super::scan::is_possible;
use super::super::windows::{Windows, AFTER, BEFORE};
use super::{synchronised_between, to_pairs, to_single, Lane, Run, Splitter, Stretch, MARGIN};

/// Pieces that are shorter on the average are not worth a look at their windows.
const WORTH_SCANNING: usize = 256;
/// Of a text, one byte in so many may be stepped through where windows do not tell,
const MOST_STEPPED: usize = 6;
/// where each time so many are added for the search of a place to begin.
const BEGINNING: usize = 16;
/// How far before a place that is not told its state is looked for, first; then four times as far, and so on.
const FIRST_BACK: usize = 16;
/// After scans in vain, so many texts at most are not scanned.
const LONGEST_REST: u32 = 63;

impl Splitter {
    /// Do all of it by windows, as far as they tell. False: that is not worth it, and no bit is set.
    pub(super) fn run_windows(&mut self, run: &Run, stretches: &[Stretch]) -> bool {
        let Some(windows) = &run.machine.windows else { return false };
        let length: usize = stretches.iter().map(|stretch| stretch.end - stretch.start).sum();
        if self.is_eager {
            return self.scan_and_step(run, windows, stretches, usize::MAX);
        }
        if length < WORTH_SCANNING * stretches.len() || !is_possible() {
            return false;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let is_done = self.scan_and_step(run, windows, stretches, length / MOST_STEPPED);
        if is_done {
            self.next_rest /= 2;
        } else {
            self.bits.fill(0);
            self.rest = self.next_rest;
            self.next_rest = (2 * self.next_rest + 1).min(LONGEST_REST);
        }
        is_done
    }

    /// False: more than `most` bytes would have to be stepped through.
    fn scan_and_step(&mut self, run: &Run, windows: &Windows, stretches: &[Stretch], most: usize) -> bool {
        let first = MARGIN / 64;
        let words = first..first + run.source.len().div_ceil(64);
        self.unknown.resize(self.bits.len(), 0);
        self.scanner.scan(windows, run.source, &mut self.bits[words.clone()], &mut self.unknown[words]);
        // No bit is set in it: `take_stepped` leaves none.
        self.stepped.resize(self.bits.len(), 0);
        let (mut done, mut left) = (0, most);
        for stretch in stretches.iter().filter(|stretch| stretch.start < stretch.end) {
            clear(&mut self.bits, MARGIN + done, MARGIN + stretch.start);
            done = stretch.end;
            if !self.step_unknown(run, stretch, &mut left) {
                return false;
            }
        }
        let end = 64 * self.bits.len();
        clear(&mut self.bits, MARGIN + done, end);
        true
    }

    /// Step through what the windows of a stretch do not tell. `left` is how many bytes may be stepped through.
    fn step_unknown(&mut self, run: &Run, stretch: &Stretch, left: &mut usize) -> bool {
        // The windows of the first and last places reach beyond it.
        let (inner_start, inner_end) = (stretch.start + BEFORE, stretch.end.saturating_sub(AFTER));
        let mut at = stretch.start;
        loop {
            let unknown = match at {
                at if at < inner_start => at,
                at => next_bit(&self.unknown, MARGIN + at, MARGIN + inner_end)
                    .map_or(inner_end.max(at), |bit| bit - MARGIN),
            };
            if unknown >= stretch.end {
                return true;
            }
            let (place, row) = known_before(run, stretch, unknown);
            std::mem::swap(&mut self.bits, &mut self.stepped);
            let next = self.step_until_closed(run, stretch, (place, row), unknown.max(inner_start - 1) + 1);
            std::mem::swap(&mut self.bits, &mut self.stepped);
            self.take_stepped(place, next);
            let Some(fewer) = left.checked_sub(next - place + BEGINNING) else { return false };
            *left = fewer;
            at = next;
        }
    }

    /// Step from a place to the first one from `least` on where nothing is open, or to the end. Gives where that is.
    fn step_until_closed(
        &mut self,
        run: &Run,
        stretch: &Stretch,
        (mut at, mut row): (usize, u32),
        least: usize,
    ) -> usize {
        let machine = run.machine;
        let lane = Lane { at, end: least.min(stretch.end), row: to_pairs(machine, row), is_last: false };
        let lane = self.finish_alone(run, lane);
        (at, row) = (lane.at, to_single(machine, lane.row));
        while at < stretch.end && !machine.is_closed(row) {
            let entry = machine.table[(row + u32::from(machine.symbol_of[run.source[at] as usize])) as usize];
            if entry >> 8 == machine.trap {
                row = self.step_slowly(machine, &run.source[at..=at], at, row);
            } else {
                self.tell(at, u64::from(entry & 255));
                row = entry >> 8;
            }
            at += 1;
        }
        if at == stretch.end && stretch.is_last {
            self.tell_end(machine, at, row);
        }
        at
    }

    /// Take over what was stepped through from a place where nothing was open to another one.
    fn take_stepped(&mut self, start: usize, end: usize) {
        let (first, last) = (MARGIN + start, MARGIN + end);
        for word in first / 64..=(last - 1) / 64 {
            let taken = bits_between(word, first, last);
            self.bits[word] = self.bits[word] & !taken | self.stepped[word] & taken;
        }
        // What is told at an end comes late.
        let last_word = (last.div_ceil(64) + 1).min(self.stepped.len());
        self.stepped[first / 64 - 1..last_word].fill(0);
    }
}

/// The bits of a word of a bitmap that lie from `first` on and before `last`.
fn bits_between(word: usize, first: usize, last: usize) -> u64 {
    let below = |bit: usize| match bit.saturating_sub(64 * word) {
        count if count >= 64 => u64::MAX,
        count => (1 << count) - 1,
    };
    below(last) & !below(first)
}

fn clear(bits: &mut [u64], first: usize, last: usize) {
    for (word, bits) in bits.iter_mut().enumerate().take(last.div_ceil(64)).skip(first / 64) {
        *bits &= !bits_between(word, first, last);
    }
}

/// The next bit that is set from `first` on and before `last`.
fn next_bit(bits: &[u64], first: usize, last: usize) -> Option<usize> {
    let mut word = first / 64;
    while 64 * word < last {
        let found = bits[word] & bits_between(word, first, last);
        if found != 0 {
            return Some(64 * word + found.trailing_zeros() as usize);
        }
        word += 1;
    }
    None
}

/// A place at or before `at` where the state is known and nothing is open, and the state.
fn known_before(run: &Run, stretch: &Stretch, at: usize) -> (usize, u32) {
    let mut back = FIRST_BACK;
    while at >= stretch.start + back {
        if let Some(known) = synchronised_between(run, at - back, at) {
            return known;
        }
        back *= 4;
    }
    (stretch.start, stretch.row)
}
