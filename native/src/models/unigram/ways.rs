//! The best ways to all places of texts, found from left to right. Places are characters, as symbols of the automaton.
//!
//! The tokens that end at a place are looked at there, the longest first, so that a way is written down once and in order.

use super::super::trie::BOUND;
use super::automaton::{Automaton, Walk};

/// The ways through texts.
#[derive(Default)]
pub struct Ways {
    /// The texts, each with `BOUND` behind it.
    symbols: Vec<u32>,
    /// Where the texts begin and end.
    bounds: Vec<(usize, usize)>,
    walks: Vec<Walk>,
    /// For each symbol the number of the token with which the best way to the place behind it ends.
    lasts: Vec<u32>,
    /// The sums of the ways to the places before the symbols.
    sums: Vec<f64>,
}

impl Ways {
    /// Forget all texts.
    pub fn clear(&mut self) {
        self.symbols.clear();
        self.bounds.clear();
    }

    /// How many symbols there are.
    pub fn length(&self) -> usize {
        self.symbols.len()
    }

    /// Where a text begins and ends.
    pub fn bounds(&self, text: usize) -> (usize, usize) {
        self.bounds[text]
    }

    /// Some symbols.
    pub fn symbols(&self, start: usize, end: usize) -> &[u32] {
        &self.symbols[start..end]
    }

    /// Add a text: `write` appends its symbols.
    #[inline(always)]
    pub fn add(&mut self, write: impl FnOnce(&mut Vec<u32>)) {
        let start = self.symbols.len();
        write(&mut self.symbols);
        self.bounds.push((start, self.symbols.len()));
        self.symbols.push(BOUND);
    }

    /// The number of the token with which the best way to the place behind a symbol ends.
    #[inline(always)]
    pub fn last(&self, symbol: usize) -> u32 {
        self.lasts[symbol]
    }

    /// Find them.
    pub fn find(&mut self, automaton: &Automaton) {
        let Ways { symbols, bounds, walks, lasts, sums } = self;
        walks.clear();
        bounds.iter().for_each(|&bounds| automaton.begin(symbols, bounds, walks));
        let length = symbols.len();
        lasts.resize(length.max(lasts.len()), 0);
        sums.resize(length.max(sums.len()), 0.0);
        automaton.walk(symbols, walks, lasts);
        for &(start, end) in &*bounds {
            find_best(automaton, &mut lasts[start..end], &mut sums[start..=end]);
        }
    }
}

/// Find the best ways through a text; `lasts` has the longest tokens.
fn find_best(automaton: &Automaton, lasts: &mut [u32], sums: &mut [f64]) {
    let entries = automaton.entries();
    sums[0] = 0.0;
    for (behind, last) in (1..).zip(lasts) {
        let mut number = *last;
        let mut entry = &entries[number as usize];
        let (mut best, mut best_number) = (sums[behind - entry.length as usize] + entry.score, number);
        // Most have one or two. Of equal sums the first counts, whose last token begins further left.
        loop {
            number = entry.shorter;
            entry = &entries[number as usize];
            let sum = sums[behind - entry.length as usize] + entry.score;
            let is_better = sum > best;
            best = if is_better { sum } else { best };
            best_number ^= (best_number ^ number) & 0u32.wrapping_sub(u32::from(is_better));
            if entry.length < 2 {
                break;
            }
        }
        sums[behind] = best;
        *last = best_number;
    }
}
