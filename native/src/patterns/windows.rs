//! Where pieces begin as far as the neighbours tell: the part of a machine that needs no state.
//!
//! Whether a piece begins at a character mostly depends on that character, on three before it and on one after it, whatever
//! state the machine was in. What it says for each such window of ASCII is found by letting it run from all states at once
//! (`verdicts`). Symbols that are alike in all windows share a code. The windows in which a piece begins, and those that do not tell,
//! are written as unions of products of codes (`cover.rs`), so that 32 places at once can be looked at (`scan.rs`). Where
//! the window does not tell, the machine does (`splitter.rs`).

use crate::hash::FastMap as HashMap;
use crate::stored_struct;

use super::cover::{Product, WindowSet, MOST_CODES, WIDTH};
use super::transducer::{Transducer, LONGEST_DELAY};

/// Symbols of a window before the one it is about.
pub const BEFORE: usize = 3;
/// Symbols of a window after the one it is about.
pub const AFTER: usize = WIDTH - 1 - BEFORE;
/// Products are looked at in groups, a bit each in a byte.
pub const GROUPS: usize = 3;
/// The groups of the windows in which a piece begins; the last one is of those that do not tell.
pub const GROUPS_OF_BEGINNINGS: usize = 2;
/// With more symbols the windows are too many.
const MOST_SYMBOLS: usize = 24;
/// With more sets of states they do not tell enough.
const MOST_SETS: usize = 20_000;

/// See the module.
pub struct Windows {
    /// For each character of ASCII, its code.
    pub codes: [u8; 128],
    /// For each group, place of a window and code, the products that allow it there, a bit each.
    pub products: [u8; GROUPS * WIDTH * MOST_CODES],
}
stored_struct!(Windows { codes, products });

/// What a window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// No piece begins.
    None,
    /// A piece begins.
    Begins,
    /// It does not tell.
    Unknown,
}

impl Windows {
    /// Find what the windows of a machine tell. None: too little, or it takes too long to say.
    pub fn build(machine: &Transducer) -> Option<Windows> {
        let mut symbols: Vec<u8> = machine.symbol_of[..128].to_vec();
        symbols.sort_unstable();
        symbols.dedup();
        if symbols.len() > MOST_SYMBOLS {
            return None;
        }
        let verdicts = verdicts(machine, &symbols)?;
        let (code_of, count, of_code) = merged(verdicts, symbols.len());
        let at = |window: [usize; WIDTH]| of_code[index_of(window, count)];
        let beginnings = WindowSet::of(count, |window| at(window) == Verdict::Begins);
        let others = WindowSet::of(count, |window| at(window) == Verdict::None);
        let (products, left) = beginnings.cover(&others, 8 * GROUPS_OF_BEGINNINGS);
        let untold = WindowSet::of(count, |window| at(window) == Verdict::Unknown || left.contains(window));
        let told = WindowSet::of(count, |window| !untold.contains(window));
        let unknown = untold.cover_all(&told, 8 * (GROUPS - GROUPS_OF_BEGINNINGS));
        let mut windows = Windows { codes: [0; 128], products: [0; GROUPS * WIDTH * MOST_CODES] };
        for (code, symbol) in windows.codes.iter_mut().zip(machine.symbol_of) {
            *code = code_of[symbols.binary_search(&symbol).expect("it is one of them")];
        }
        for (number, product) in products.iter().enumerate() {
            windows.allow(number, product);
        }
        for (number, product) in unknown.iter().enumerate() {
            windows.allow(8 * GROUPS_OF_BEGINNINGS + number, product);
        }
        Some(windows)
    }

    fn allow(&mut self, number: usize, product: &Product) {
        for (place, allowed) in product.iter().enumerate() {
            for code in (0..MOST_CODES).filter(|code| allowed >> code & 1 == 1) {
                self.products[((number / 8) * WIDTH + place) * MOST_CODES + code] |= 1 << (number % 8);
            }
        }
    }

    /// The products of a group that allow a code at a place of a window, for all codes.
    pub fn allowing(&self, group: usize, place: usize) -> &[u8; MOST_CODES] {
        let first = (group * WIDTH + place) * MOST_CODES;
        self.products[first..first + MOST_CODES].try_into().expect("as many as there are codes")
    }
}

fn index_of(window: [usize; WIDTH], count: usize) -> usize {
    window.iter().fold(0, |index, &symbol| index * count + symbol)
}

/// Bytes that continue a character, at most.
const MOST_CONTINUING: usize = 3;

/// For each state and each number of bytes that may continue the character, something for each number of bytes since a place.
type ByDelay = [[u8; LONGEST_DELAY as usize + 2]; MOST_CONTINUING + 1];

/// A piece may begin.
const YES: u8 = 1;
/// It may be that none begins.
const NO: u8 = 2;

/// Sets of states, each with whether a beginning was told, and where symbols lead from them.
struct Runs<'a> {
    machine: &'a Transducer,
    /// What may be said in the end about a place of which nothing was told yet.
    outcomes: Vec<ByDelay>,
    numbers: HashMap<Vec<u32>, usize>,
    sets: Vec<Vec<u32>>,
    /// For each set and symbol, before the one that the window is about, at it, and after it: the next set.
    next: Vec<Vec<u32>>,
}

const NOT_YET: u32 = u32::MAX;

/// What the machine says about each window of some symbols, by `index_of`. None: the sets of states are too many.
fn verdicts(machine: &Transducer, symbols: &[u8]) -> Option<Vec<Verdict>> {
    let text = TextSymbols { machine, goes_on: machine.classes.beyond_ascii() };
    let mut runs = Runs {
        machine,
        outcomes: text.outcomes(),
        numbers: HashMap::default(),
        sets: vec![],
        next: vec![vec![]; 1 + WIDTH - BEFORE],
    };
    let first = runs.number(text.reachable().into_iter().map(|state| (state as u32) << 1).collect());
    // The sets of states after each choice of the symbols so far.
    let mut sets = vec![first];
    for place in 0..WIDTH {
        let mut longer = Vec::with_capacity(sets.len() * symbols.len());
        for set in sets {
            longer.extend(symbols.iter().map(|&symbol| runs.step(set, usize::from(symbol), place)));
            if runs.sets.len() > MOST_SETS {
                return None;
            }
        }
        sets = longer;
    }
    let of_set: Vec<Verdict> = (0..runs.sets.len()).map(|set| runs.verdict(set)).collect();
    Some(sets.into_iter().map(|set| of_set[set]).collect())
}

/// The symbols of texts: what continues a character comes after one beyond ASCII, and no more than three times.
struct TextSymbols<'a> {
    machine: &'a Transducer,
    /// The classes with characters beyond ASCII, a bit each.
    goes_on: u64,
}

impl TextSymbols<'_> {
    /// The symbols that may come where so many bytes may continue the character, with how many may then.
    fn after(&self, more: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of_class = |class: usize| if self.goes_on >> class & 1 == 1 { MOST_CONTINUING } else { 0 };
        let classes = (0..self.machine.classes.count).map(move |class| (class, of_class(class)));
        classes.chain(more.checked_sub(1).map(|fewer| (self.machine.classes.count, fewer)))
    }

    /// The states in which texts get.
    fn reachable(&self) -> Vec<usize> {
        let start = self.machine.start as usize / self.machine.symbols;
        let mut is_seen = vec![[false; MOST_CONTINUING + 1]; self.machine.states];
        is_seen[start][0] = true;
        let mut left = vec![(start, 0)];
        while let Some((state, more)) = left.pop() {
            for (symbol, more) in self.after(more) {
                let (next, _) = self.machine.step(state, symbol);
                if !std::mem::replace(&mut is_seen[next][more], true) {
                    left.push((next, more));
                }
            }
        }
        (0..self.machine.states).filter(|&state| is_seen[state].contains(&true)).collect()
    }

    /// What may be said in the end about a place so many bytes before the next symbol, of which nothing was told yet.
    fn outcomes(&self) -> Vec<ByDelay> {
        // Nothing is told after the longest delay; and what is told then may be taken back.
        let mut outcomes: Vec<ByDelay> =
            vec![[[NO; LONGEST_DELAY as usize + 2]; MOST_CONTINUING + 1]; self.machine.states];
        for delay in (0..=LONGEST_DELAY as usize).rev() {
            let of_mask = |mask: u32, otherwise: u8| match mask >> (LONGEST_DELAY as usize - delay) & 1 {
                0 => otherwise,
                _ if delay == LONGEST_DELAY as usize => YES | NO,
                _ => YES,
            };
            for state in 0..self.machine.states {
                for more in 0..=MOST_CONTINUING {
                    let at_end = of_mask(self.machine.ends[state][0], NO);
                    outcomes[state][more][delay] = self.after(more).fold(at_end, |all, (symbol, more)| {
                        let (next, mask) = self.machine.step(state, symbol);
                        all | of_mask(mask, outcomes[next][more][delay + 1])
                    });
                }
            }
        }
        outcomes
    }
}

impl Runs<'_> {
    fn number(&mut self, set: Vec<u32>) -> usize {
        let next = self.sets.len();
        *self.numbers.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            next
        })
    }

    fn step(&mut self, set: usize, symbol: usize, place: usize) -> usize {
        let delay = place.checked_sub(BEFORE);
        let phase = delay.map_or(0, |delay| delay + 1);
        let cell = set * self.machine.symbols + symbol;
        if self.next[phase].len() <= cell {
            self.next[phase].resize((set + 1) * self.machine.symbols, NOT_YET);
        }
        if self.next[phase][cell] == NOT_YET {
            let told = |mask: u32| delay.map_or(0, |delay| mask >> (LONGEST_DELAY as usize - delay) & 1);
            let after = self.sets[set].iter().map(|&run| {
                let (next, mask) = self.machine.step(run as usize >> 1, symbol);
                (next as u32) << 1 | run & 1 | told(mask)
            });
            let mut after: Vec<u32> = after.collect();
            after.sort_unstable();
            after.dedup();
            self.next[phase][cell] = self.number(after) as u32;
        }
        self.next[phase][cell] as usize
    }

    fn verdict(&self, set: usize) -> Verdict {
        // The window's last character is one of ASCII.
        let outcomes = self.sets[set].iter().map(|&run| match run & 1 {
            1 => YES,
            _ => self.outcomes[run as usize >> 1][0][AFTER + 1],
        });
        match outcomes.fold(0, |all, outcomes| all | outcomes) {
            YES => Verdict::Begins,
            NO => Verdict::None,
            _ => Verdict::Unknown,
        }
    }
}

/// Let symbols share codes: those that are alike in all windows, and, as long as there are too many, the two that differ
/// in the fewest windows, which then do not tell. Gives the code of each symbol, their number, and the verdicts by codes.
fn merged(verdicts: Vec<Verdict>, symbols: usize) -> (Vec<u8>, usize, Vec<Verdict>) {
    let mut kept: Vec<usize> = vec![];
    let mut code_of = vec![];
    for symbol in 0..symbols {
        let alike = kept.iter().position(|&other| differences(&verdicts, symbols, (other, symbol), 0).is_some());
        code_of.push(alike.unwrap_or(kept.len()) as u8);
        if alike.is_none() {
            kept.push(symbol);
        }
    }
    let mut count = kept.len();
    let of_kept = |window: [usize; WIDTH]| verdicts[index_of(window.map(|code| kept[code]), symbols)];
    let mut of_code: Vec<Verdict> = windows_of(count).map(of_kept).collect();
    while count > MOST_CODES {
        let pairs = (0..count).flat_map(|second| (0..second).map(move |first| (first, second)));
        let by_differences = |&pair: &(usize, usize)| differences(&of_code, count, pair, usize::MAX);
        let (first, second) = pairs.min_by_key(by_differences).expect("there are many");
        // The second one becomes the first, and those after it move up.
        let old = |code: usize| if code < second { code } else { code + 1 };
        let joined = |window: [usize; WIDTH]| joined_verdict(&of_code, count, window.map(old), (first, second));
        of_code = windows_of(count - 1).map(joined).collect();
        count -= 1;
        for code in &mut code_of {
            if usize::from(*code) >= second {
                *code = if usize::from(*code) == second { first as u8 } else { *code - 1 };
            }
        }
    }
    (code_of, count, of_code)
}

/// All windows of so many codes, in the order of `index_of`.
fn windows_of(count: usize) -> impl Iterator<Item = [usize; WIDTH]> {
    (0..count.pow(WIDTH as u32)).map(move |index| {
        let mut window = [0; WIDTH];
        let mut rest = index;
        for code in window.iter_mut().rev() {
            *code = rest % count;
            rest /= count;
        }
        window
    })
}

/// In how many windows two codes differ, if in no more than `most`.
fn differences(of_code: &[Verdict], count: usize, (first, second): (usize, usize), most: usize) -> Option<usize> {
    let mut differences = 0;
    for place in 0..WIDTH {
        let stride = count.pow((WIDTH - 1 - place) as u32);
        for block in of_code.chunks_exact(stride * count) {
            let of = |code: usize| &block[code * stride..(code + 1) * stride];
            differences += of(first).iter().zip(of(second)).filter(|(&one, &other)| one != other).count();
            if differences > most {
                return None;
            }
        }
    }
    Some(differences)
}

/// The verdict about a window in which the first of two codes stands for both of them.
fn joined_verdict(
    of_code: &[Verdict],
    count: usize,
    window: [usize; WIDTH],
    (first, second): (usize, usize),
) -> Verdict {
    let verdict = of_code[index_of(window, count)];
    for choice in 1..1usize << WIDTH {
        let mut other = window;
        for (place, code) in other.iter_mut().enumerate() {
            if choice >> place & 1 == 1 && *code == first {
                *code = second;
            }
        }
        if of_code[index_of(other, count)] != verdict {
            return Verdict::Unknown;
        }
    }
    verdict
}
