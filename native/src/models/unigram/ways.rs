//! The best ways to all places of texts, found from left to right. Places are characters, as symbols of the trie.
//!
//! Where a walk in the trie ends nothing foretells, and its steps wait for memory, so a walk after another waits for nearly
//! each step. So all places of a stretch take their first step, then all take the second one, and so on. Up to `NEAR` steps
//! are taken without a look at whether the walk goes on; then only the walks that go on are left. All that leads to the next
//! `NEAR` places is held in registers, and no branch depends on which way is better.

use super::super::trie::{Next, Trie, BOUND, NOTHING, NOWHERE};
use super::{Last, UNKNOWN};

/// Places that are walked from at a time.
const STRETCH: usize = 256;
/// Characters of tokens that all places look for.
const NEAR: usize = 4;

/// The ways through texts.
#[derive(Default)]
pub struct Ways {
    /// The texts, each with `BOUND` behind it.
    pub symbols: Vec<u32>,
    /// How the best way to each place ends.
    pub lasts: Vec<Last>,
    /// The sums of the ways to places that a token of more than `NEAR` characters leads to.
    far_sums: Vec<f64>,
    stretch: Box<Stretch>,
}

/// What begins at the places of a stretch.
struct Stretch {
    near: [Near; STRETCH],
    steps: [Next; STRETCH],
    /// The walks that go on: their places and next steps.
    walks: [(u32, Next); STRETCH],
    /// How many steps beyond `NEAR` a walk takes.
    further: [u32; STRETCH],
    /// The scores and nodes at the ends of these, for each step those of all places together.
    far: Vec<(u64, u32)>,
    /// Where those of each step begin in it.
    firsts: Vec<usize>,
}

impl Default for Stretch {
    fn default() -> Stretch {
        Stretch {
            near: [Near::default(); STRETCH],
            steps: [Next::default(); STRETCH],
            walks: [(0, Next::default()); STRETCH],
            further: [0; STRETCH],
            far: vec![],
            firsts: vec![],
        }
    }
}

/// The bits of the scores of tokens of 1 to `NEAR` characters, or `NOTHING`, and their nodes.
#[derive(Clone, Copy, Default)]
struct Near {
    scores: [u64; NEAR],
    nodes: [u32; NEAR],
}

/// The best ways to the place where the next walk begins, and to the `NEAR` places behind it.
#[derive(Clone, Copy)]
struct Front {
    so_far: f64,
    sums: [f64; NEAR],
    lasts: [Last; NEAR],
}

impl Ways {
    /// Find them. `IS_EXTREME`: a sum may be too low for a number.
    pub fn find<const IS_EXTREME: bool>(&mut self, trie: &Trie, unknown_score: f64) {
        // NaN is below nothing, but that takes longer to tell.
        let unreached = if IS_EXTREME { f64::NAN } else { f64::NEG_INFINITY };
        let length = self.symbols.len();
        // What is beyond the end can be looked at.
        self.symbols.resize(length + NEAR, BOUND);
        self.far_sums.clear();
        self.far_sums.resize(length + NEAR + 1, unreached);
        self.lasts.resize(self.lasts.len().max(length + NEAR + 1), Last::default());
        let mut front = Front { so_far: 0.0, sums: [unreached; NEAR], lasts: [Last::default(); NEAR] };
        for from in (0..length).step_by(STRETCH) {
            let count = STRETCH.min(length - from);
            self.stretch.walk(&self.symbols[from..], count, trie, unknown_score);
            self.go_on::<IS_EXTREME>(from, count, &mut front);
        }
        self.symbols.truncate(length);
    }

    /// Find the best ways to the places behind those of a stretch.
    fn go_on<const IS_EXTREME: bool>(&mut self, from: usize, count: usize, front: &mut Front) {
        let improve = |sum: &mut f64, last: &mut Last, new: f64, new_last: Last| {
            let is_better = if IS_EXTREME { !(new <= *sum || new.is_nan()) } else { new > *sum };
            *sum = if is_better { new } else { *sum };
            last.replace(new_last, is_better);
        };
        let Stretch { near, further, far, firsts, .. } = &mut *self.stretch;
        let far_sums = &mut self.far_sums[from..];
        let all_lasts = &mut self.lasts[from..];
        let Front { mut so_far, mut sums, mut lasts } = *front;
        let symbols = &self.symbols[from..from + count];
        for (place, ((near, &further), &symbol)) in near.iter().zip(&*further).zip(symbols).enumerate() {
            let start = from + place;
            for step in 0..NEAR {
                let sum = so_far + f64::from_bits(near.scores[step]);
                improve(&mut sums[step], &mut lasts[step], sum, Last::new(start, near.nodes[step]));
            }
            let behind = place + NEAR + 1;
            if further > 0 {
                let ends = far_sums[behind..].iter_mut().zip(&mut all_lasts[behind..]);
                for ((sum, last), first) in ends.zip(&mut firsts[..further as usize]) {
                    let (score, node) = far[*first];
                    *first += 1;
                    improve(sum, last, so_far + f64::from_bits(score), Last::new(start, node));
                }
            }
            all_lasts[place + 1] = lasts[0];
            so_far = if symbol == BOUND { 0.0 } else { sums[0] };
            sums = [sums[1], sums[2], sums[3], far_sums[behind]];
            lasts = [lasts[1], lasts[2], lasts[3], all_lasts[behind]];
        }
        *front = Front { so_far, sums, lasts };
    }
}

impl Stretch {
    /// Find all tokens that begin at the first places of some symbols.
    fn walk(&mut self, symbols: &[u32], count: usize, trie: &Trie, unknown_score: f64) {
        let places = self.near[..count].iter_mut().zip(&mut self.steps[..count]);
        for ((near, step), symbols) in places.zip(symbols.windows(2)) {
            let (node, value) = (symbols[0], trie.value(symbols[0]));
            let is_token = value != NOTHING;
            near.scores[0] = if is_token { value } else { unknown_score.to_bits() };
            near.nodes[0] = if is_token { node } else { UNKNOWN };
            *step = trie.next(node, symbols[1]);
            trie.ask(*step);
        }
        self.step::<1>(symbols, count, trie);
        self.step::<2>(symbols, count, trie);
        self.step::<3>(symbols, count, trie);
        self.walk_far(symbols, count, trie);
    }

    /// Let all take the next step.
    fn step<const STEP: usize>(&mut self, symbols: &[u32], count: usize, trie: &Trie) {
        let places = self.near[..count].iter_mut().zip(&mut self.steps[..count]);
        for ((near, step), &symbol) in places.zip(&symbols[STEP + 1..]) {
            let node = trie.arrive(*step);
            near.scores[STEP] = trie.value(node);
            near.nodes[STEP] = node;
            *step = trie.next(node, symbol);
            trie.ask(*step);
        }
    }

    /// Let those that can go on do so.
    fn walk_far(&mut self, symbols: &[u32], count: usize, trie: &Trie) {
        let Stretch { steps, walks, further, far, firsts, .. } = self;
        further.fill(0);
        firsts.clear();
        far.clear();
        let mut left = 0;
        for (place, &step) in (0..).zip(&steps[..count]) {
            walks[left] = (place, step);
            left += usize::from(trie.goes_on(step.from()));
        }
        let mut symbols = &symbols[NEAR..];
        while left > 0 {
            symbols = &symbols[1..];
            let first = far.len();
            firsts.push(first);
            far.resize(first + left, (0, 0));
            let tokens = &mut far[first..];
            let (mut found, mut going) = (0, 0);
            for walk in 0..left {
                let (place, step) = walks[walk];
                let node = trie.arrive(step);
                tokens[found] = (trie.value(node), node);
                let is_there = node != NOWHERE;
                found += usize::from(is_there);
                further[place as usize] += u32::from(is_there);
                let step = trie.next(node, symbols[place as usize]);
                trie.ask(step);
                walks[going] = (place, step);
                going += usize::from(trie.goes_on(node));
            }
            far.truncate(first + found);
            left = going;
        }
    }
}
