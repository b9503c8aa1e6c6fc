//! From a program to a machine that reads a text once, symbol by symbol, and says where tokens begin.
//!
//! A state is a chain of hypotheses. The first is the token that the text is in for certain; each further one is a token
//! that is assumed to begin at the last place where the one before it could end. When a token can end (at a
//! later place), what was assumed after it is dropped and a fresh one begins; when it cannot go on, the next one in
//! the chain takes its place and the beginnings that depended on it become certain.
//!
//! A beginning is told `delay` bytes late, as a bit of a mask: bit 7 - d says that a token begins d bytes before this one.
//! What is not certain after seven bytes is told on suspicion. The rare transition that retracts such a beginning leads
//! into a trap state; the caller notices, goes back to the start of its burst, and steps slowly through `retractions`.
//!
//! After a step of a gap the next token begins a piece only if it is not a step of the same gap; until that is known
//! its beginning is `own`, and depends on the kind that the token turns out to have.

use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::hash::FastMap as HashMap;
use crate::table_file::{damaged, TableWriter};
use crate::tables::{Stored, Table, TableReader};

use super::classes::Classes;
use super::cover::MOST_CODES;
use super::program::{First, Kind, Program, Threads, MATCH, NONE};
use super::tree::CodePointSet;
use super::windows::Windows;
use crate::character_table::members;

/// The longest delay in bytes.
pub const LONGEST_DELAY: u8 = 7;
const SUSPECTED: u8 = 255;
const MOST_STATES: usize = 6000;
const MOST_SYNCHRONISING_SETS: usize = 2000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hypothesis {
    threads: u32,
    kind: Kind,
    /// Delays of beginnings that are certain once this token is.
    begun: Vec<u8>,
    /// Delay of its own beginning, which counts unless the token turns out to be of this kind.
    own: Option<(u8, Kind)>,
}

/// A transition that takes back beginnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Retraction {
    /// Where in the table it stands: row + symbol.
    pub cell: u32,
    /// The row of the next state.
    pub row: u32,
    /// The beginnings told, a byte of them.
    pub mask: u32,
    /// Bit k: the k-th last beginning told so far is none.
    pub retracted: u32,
}

/// The machine. Rows are state numbers times `symbols`.
pub struct Transducer {
    /// The classes of its symbols.
    pub classes: Classes,
    /// Number of symbols: the classes and the continuation of a character.
    pub symbols: usize,
    /// Number of states, without the trap.
    pub states: usize,
    /// The row at the start of a text.
    pub start: u32,
    /// The row of the trap.
    pub trap: u32,
    /// At row + symbol: the next row << 8 | mask.
    pub table: Table<u32>,
    /// The same for two symbols at a time: row of pairs << 9 | mask of both. Rows are states times `symbols` squared.
    pub pair_table: Table<u32>,
    /// The transitions that lead into the trap in `table`, by cell.
    retractions: Table<Retraction>,
    /// For each state, mask and retracted beginnings at the end of a text.
    pub ends: Table<[u32; 2]>,
    /// For each byte of a classified text, its symbol.
    pub symbol_of: [u8; 256],
    /// The same times `symbols`.
    pub pair_symbol_of: [u16; 256],
    /// The byte that continues a character in a classified text.
    pub continuation: u8,
    /// For each class, whether a piece that begins with it is a match (false: a gap); None where that is not decided by
    /// the first character.
    pub is_match: Option<Vec<bool>>,
    /// What state a text is in whatever came before: at set row + symbol, the next set row.
    pub synchronising: Table<u32>,
    /// What is told without a state; after `find_windows`.
    pub windows: Option<Windows>,
    /// For each row, whether it is the state in the middle of a certain token; found from `synchronised`.
    closed: Vec<bool>,
    /// For each set, the row of the one state that is left, if it is in the middle of a certain token; else `NO_ROW`.
    synchronised: Table<u32>,
}

const NO_ROW: u32 = u32::MAX;

struct Determinizer<'a> {
    program: &'a Program,
    lists: HashMap<Threads, u32>,
    threads: Vec<Threads>,
    steps: HashMap<(u32, usize), (Kind, u32)>,
    fresh: Vec<u32>,
    classes: usize,
}

const NO_THREADS: u32 = 0;

impl Determinizer<'_> {
    fn list(&mut self, threads: Threads) -> u32 {
        let next = self.threads.len() as u32;
        let number = *self.lists.entry(threads.clone()).or_insert(next);
        if number == next {
            self.threads.push(threads);
        }
        number
    }

    fn advance(&mut self, threads: u32, symbol: usize) -> (Kind, u32) {
        if let Some(&known) = self.steps.get(&(threads, symbol)) {
            return known;
        }
        let shown = (symbol < self.classes).then_some(symbol);
        let (kind, next) = self.program.advance(&self.threads[threads as usize], shown);
        let result = (kind, self.list(next));
        self.steps.insert((threads, symbol), result);
        result
    }

    /// Show a chain the next symbol (`self.classes`: the end). Gives the chain after it, the delays of the beginnings
    /// that are certain now, and for each suspected beginning of the old chain, in order, whether it is retracted.
    fn step(&mut self, chain: &[Hypothesis], symbol: usize) -> (Vec<Hypothesis>, Vec<u8>, Vec<bool>) {
        let (head, rest) = chain.split_first().expect("a chain is never empty");
        let at_end = symbol == self.classes;
        let (kind, next) = self.advance(head.threads, symbol);
        let own_suspected = head.own.is_some_and(|(delay, _)| delay == SUSPECTED);
        if kind != NONE {
            let mut certain = vec![];
            let mut own = head.own;
            let mut retracted = vec![];
            // A step of a gap is a whole token: nothing can follow it in its list, so its kind is decided here too.
            let decided = kind == MATCH || next == NO_THREADS;
            if let (true, Some((delay, unless))) = (decided, own) {
                own = None;
                if kind != unless {
                    certain.push(delay);
                    retracted.extend(own_suspected.then_some(false));
                } else {
                    retracted.extend(own_suspected.then_some(true));
                }
            } else {
                retracted.extend(own_suspected.then_some(false));
            }
            retracted.extend(suspected(rest).map(|_| true));
            let follower = |begun: bool| -> Option<Hypothesis> {
                (!at_end).then(|| Hypothesis {
                    threads: self.fresh[symbol],
                    kind: NONE,
                    begun: if kind == MATCH && !begun { vec![0] } else { vec![] },
                    own: (kind != MATCH).then_some((0, kind)),
                })
            };
            if next == NO_THREADS {
                let chain: Vec<Hypothesis> = follower(true).into_iter().collect();
                if kind == MATCH && !at_end {
                    certain.push(0);
                }
                return (chain, certain, retracted);
            }
            let head = Hypothesis { threads: next, kind, begun: vec![], own };
            return (std::iter::once(head).chain(follower(false)).collect(), certain, retracted);
        }
        if next == NO_THREADS {
            // It ended at its last accept. A match has decided about its own beginning at that accept.
            let mut certain = vec![];
            let mut retracted = vec![];
            if let Some((delay, unless)) = head.own {
                let is_dropped = head.kind == unless;
                if !is_dropped {
                    certain.push(delay);
                }
                retracted.extend(own_suspected.then_some(is_dropped));
            }
            let (chain, later, more) = self.step(rest, symbol);
            retracted.extend(rest[0].begun.iter().filter(|&&delay| delay == SUSPECTED).map(|_| false));
            retracted.extend(more);
            certain.extend(&rest[0].begun);
            certain.extend(later);
            return (chain, certain, retracted);
        }
        let mut chain = vec![Hypothesis { threads: next, kind: head.kind, begun: vec![], own: head.own }];
        let mut retracted: Vec<bool> = own_suspected.then_some(false).into_iter().collect();
        if !rest.is_empty() {
            let (mut tail, later, more) = self.step(rest, symbol);
            retracted.extend(rest[0].begun.iter().filter(|&&delay| delay == SUSPECTED).map(|_| false));
            retracted.extend(more);
            if let Some(first) = tail.first_mut() {
                first.begun = rest[0].begun.iter().copied().chain(later).collect();
                chain.extend(tail);
            } else {
                // At the end of the text: what is assumed after this token ends there too.
                debug_assert!(at_end);
            }
        }
        (chain, vec![], retracted)
    }
}

fn suspected(chain: &[Hypothesis]) -> impl Iterator<Item = ()> + '_ {
    let delays = chain.iter().flat_map(|h| h.begun.iter().copied().chain(h.own.map(|(delay, _)| delay)));
    delays.filter(|&delay| delay == SUSPECTED).map(|_| ())
}

fn each_delay(chain: &mut [Hypothesis], mut change: impl FnMut(&mut u8)) {
    for hypothesis in chain {
        hypothesis.begun.iter_mut().for_each(&mut change);
        if let Some((delay, _)) = &mut hypothesis.own {
            change(delay);
        }
    }
}

/// A transition before the states are numbered: next state, mask, retracted beginnings.
type Move = (u32, u8, u32);

impl Transducer {
    /// Make a program deterministic. The error says why that is not possible.
    pub fn build(program: &Program, classes: Classes) -> std::result::Result<Transducer, &'static str> {
        let count = classes.count;
        let mut machine = Determinizer {
            program,
            lists: std::iter::once((vec![], NO_THREADS)).collect(),
            threads: vec![vec![]],
            steps: HashMap::default(),
            fresh: vec![],
            classes: count,
        };
        for class in 0..count {
            let fresh = machine.list(program.fresh(class));
            machine.fresh.push(fresh);
        }
        let (moves, ends, is_certain) = explore(&mut machine)?;
        let first: Vec<First> = (0..count).map(|class| program.first(class)).collect();
        let is_match = (!first.contains(&First::Either)).then(|| first.iter().map(|&f| f == First::Match).collect());
        minimized(classes, moves, ends, is_certain, is_match)
    }
}

type Explored = (Vec<Vec<Move>>, Vec<(u8, u32)>, Vec<bool>);

/// Find all states, with their transitions for every symbol, and what happens at the end.
fn explore(machine: &mut Determinizer) -> std::result::Result<Explored, &'static str> {
    let continuation = machine.classes;
    let mut numbers: HashMap<Vec<Hypothesis>, u32> = HashMap::default();
    // State 0 is the start of a text: an empty chain.
    let mut chains: Vec<Vec<Hypothesis>> = vec![vec![]];
    let (mut moves, mut ends, mut is_certain) = (vec![], vec![], vec![]);
    while moves.len() < chains.len() {
        let old = chains[moves.len()].clone();
        let mut aged = old.clone();
        each_delay(&mut aged, |delay| {
            if *delay != SUSPECTED {
                *delay += 1;
            }
        });
        let mut row: Vec<Move> = vec![];
        for symbol in 0..=continuation {
            let (mut chain, certain, retracted) = if symbol == continuation {
                (aged.clone(), vec![], vec![])
            } else if old.is_empty() {
                (
                    vec![Hypothesis { threads: machine.fresh[symbol], kind: NONE, begun: vec![], own: None }],
                    vec![],
                    vec![],
                )
            } else {
                machine.step(&aged, symbol)
            };
            if suspected(&chain).count() + suspected(&old).count() > 24 {
                return Err("the pattern leaves too much open");
            }
            let mut mask = mask_of(&certain);
            each_delay(&mut chain, |delay| {
                if *delay == LONGEST_DELAY {
                    mask |= 1;
                    *delay = SUSPECTED;
                }
            });
            let next = numbers.len() as u32 + 1;
            let number = if chain.is_empty() {
                0
            } else {
                *numbers.entry(chain.clone()).or_insert_with(|| {
                    chains.push(chain);
                    next
                })
            };
            row.push((number, mask, bits_of(&retracted)));
            if chains.len() > MOST_STATES {
                return Err("the pattern has too many states");
            }
        }
        moves.push(row);
        ends.push(if old.is_empty() {
            (0, 0)
        } else {
            let (_, certain, retracted) = machine.step_to_end(&aged);
            (mask_of(&certain), bits_of(&retracted))
        });
        is_certain.push(old.len() == 1 && old[0].own.is_none());
    }
    Ok((moves, ends, is_certain))
}

impl Determinizer<'_> {
    fn step_to_end(&mut self, chain: &[Hypothesis]) -> (Vec<Hypothesis>, Vec<u8>, Vec<bool>) {
        self.step(chain, self.classes)
    }
}

fn mask_of(delays: &[u8]) -> u8 {
    delays.iter().filter(|&&delay| delay != SUSPECTED).fold(0, |mask, delay| mask | 1 << (LONGEST_DELAY - delay))
}

/// From "is it retracted" in the order of the text to bits counted from the last.
fn bits_of(retracted: &[bool]) -> u32 {
    retracted.iter().rev().enumerate().map(|(k, &is)| u32::from(is) << k).sum()
}

/// Merge the states that do the same on every continuation (Moore's algorithm), and lay out the tables.
fn minimized(
    classes: Classes,
    moves: Vec<Vec<Move>>,
    ends: Vec<(u8, u32)>,
    is_certain: Vec<bool>,
    is_match: Option<Vec<bool>>,
) -> std::result::Result<Transducer, &'static str> {
    let symbols = classes.count + 1;
    let mut part_of = vec![0u32; moves.len()];
    let mut parts = 0;
    loop {
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::default();
        let next: Vec<u32> = (0..moves.len())
            .map(|state| {
                // The first round compares what is told, the further ones where that leads.
                let signature = if parts == 0 {
                    let told = moves[state].iter().flat_map(|&(_, mask, retracted)| [u32::from(mask), retracted]);
                    told.chain([u32::from(ends[state].0), ends[state].1, u32::from(is_certain[state])]).collect()
                } else {
                    let to = moves[state].iter().map(|&(to, ..)| part_of[to as usize]);
                    to.chain([part_of[state]]).collect()
                };
                let new = numbers.len() as u32;
                *numbers.entry(signature).or_insert(new)
            })
            .collect();
        let count = numbers.len();
        part_of = next;
        if count == parts {
            break;
        }
        parts = count;
    }
    let square = symbols * symbols;
    if (parts + 1) * square >= 1 << 23 {
        return Err("the pattern has too many states");
    }
    let trap = (parts * symbols) as u32;
    let mut table = vec![trap << 8; (parts + 1) * symbols];
    let mut machine_ends = vec![[0, 0]; parts];
    let mut certain = vec![false; parts];
    let mut retractions: Vec<Retraction> = vec![];
    for (state, row) in moves.iter().enumerate() {
        let part = part_of[state] as usize;
        machine_ends[part] = [u32::from(ends[state].0), ends[state].1];
        certain[part] = is_certain[state];
        for (symbol, &(to, mask, retracted)) in row.iter().enumerate() {
            let cell = part * symbols + symbol;
            let next = part_of[to as usize] * symbols as u32;
            if retracted == 0 {
                table[cell] = next << 8 | u32::from(mask);
            } else {
                let cell = cell as u32;
                retractions.push(Retraction { cell, row: next, mask: u32::from(mask), retracted });
            }
        }
    }
    let mut pair_table = Vec::with_capacity((parts + 1) * square);
    for row in table.chunks(symbols) {
        for &first in row {
            let from = (first >> 8) as usize;
            for &second in &table[from..from + symbols] {
                let next = (second >> 8) / symbols as u32 * square as u32;
                pair_table.push(next << 9 | (first & 255) | (second & 255) << 1);
            }
        }
    }
    let mut symbol_of = [0u8; 256];
    for byte in 0..128 {
        symbol_of[byte] = classes.of(byte as u32);
        symbol_of[128 + byte] = if byte < symbols { byte as u8 } else { 0 };
    }
    // States that were merged have the same transitions.
    retractions.sort_unstable_by_key(|retraction| retraction.cell);
    retractions.dedup();
    let mut transducer = Transducer {
        continuation: 128 + classes.count as u8,
        classes,
        symbols,
        states: parts,
        start: part_of[0] * symbols as u32,
        trap,
        table: table.into(),
        pair_table: pair_table.into(),
        retractions: retractions.into(),
        ends: machine_ends.into(),
        pair_symbol_of: pair_symbols(&symbol_of, symbols),
        symbol_of,
        is_match,
        synchronising: Table::default(),
        synchronised: Table::default(),
        closed: vec![],
        windows: None,
    };
    transducer.find_synchronisation(&certain);
    Ok(transducer)
}

impl Transducer {
    /// Where a symbol leads from a state, and the beginnings that are told.
    pub fn step(&self, state: usize, symbol: usize) -> (usize, u32) {
        let cell = state * self.symbols + symbol;
        let entry = self.table[cell];
        let (row, mask) = match self.retraction(cell as u32).filter(|_| entry >> 8 == self.trap) {
            Some(retraction) => (retraction.row, retraction.mask),
            None => (entry >> 8, entry & 255),
        };
        (row as usize / self.symbols, mask)
    }

    /// Whether each text of characters of a set is one piece.
    pub fn keeps_whole(&self, set: &CodePointSet) -> bool {
        // Symbols of characters, each with how many bytes continue it.
        let mut characters: Vec<(usize, usize)> = vec![];
        for character in members(set).filter_map(char::from_u32) {
            let found = (usize::from(self.classes.of(character as u32)), character.len_utf8() - 1);
            if !characters.contains(&found) {
                characters.push(found);
            }
        }
        let continuation = self.symbols - 1;
        let mut is_known = vec![false; self.states];
        let mut todo = vec![self.start as usize / self.symbols];
        while let Some(from) = todo.pop() {
            for &(class, more) in &characters {
                let mut state = from;
                for symbol in std::iter::once(class).chain(std::iter::repeat_n(continuation, more)) {
                    let entry = self.table[state * self.symbols + symbol];
                    // A beginning is told, or taken back.
                    if entry & 255 != 0 || entry >> 8 == self.trap {
                        return false;
                    }
                    state = (entry >> 8) as usize / self.symbols;
                }
                if self.ends[state] != [0, 0] {
                    return false;
                }
                if !std::mem::replace(&mut is_known[state], true) {
                    todo.push(state);
                }
            }
        }
        true
    }

    /// Find out what can be told without a state.
    pub fn find_windows(&mut self) {
        self.windows = Windows::build(self);
    }

    /// The transition that leads into the trap in `table`.
    pub fn retraction(&self, cell: u32) -> Option<Retraction> {
        let place = self.retractions.binary_search_by_key(&cell, |retraction| retraction.cell).ok()?;
        Some(self.retractions[place])
    }

    /// The row of the one state that is left in a set (given by its row), if it is in the middle of a certain token.
    #[inline]
    pub fn synchronised(&self, set: usize) -> Option<u32> {
        Some(self.synchronised[set / self.symbols]).filter(|&row| row != NO_ROW)
    }

    /// The subset automaton from "any state": after some symbols there is often one state left, whatever came before.
    fn find_synchronisation(&mut self, certain: &[bool]) {
        let all: Vec<u32> =
            (0..self.states as u32).filter(|&state| state * self.symbols as u32 != self.start).collect();
        let mut numbers: HashMap<Vec<u32>, u32> = std::iter::once((all.clone(), 0)).collect();
        let mut sets = vec![all];
        let (mut synchronised, mut synchronising) = (vec![], vec![]);
        let mut done = 0;
        while done < sets.len() {
            let set = sets[done].clone();
            let is_one = set.len() == 1 && certain[set[0] as usize];
            synchronised.push(if is_one { set[0] * self.symbols as u32 } else { NO_ROW });
            for symbol in 0..self.symbols as u32 {
                if done >= MOST_SYNCHRONISING_SETS {
                    synchronising.push(0);
                    continue;
                }
                let step = |&state: &u32| self.step(state as usize, symbol as usize).0 as u32;
                let mut next: Vec<u32> = set.iter().map(step).collect();
                next.sort_unstable();
                next.dedup();
                let new = sets.len() as u32;
                let number = *numbers.entry(next.clone()).or_insert_with(|| {
                    sets.push(next);
                    new
                });
                synchronising.push(number * self.symbols as u32);
            }
            done += 1;
        }
        (self.synchronised, self.synchronising) = (synchronised.into(), synchronising.into());
        self.find_closed();
    }

    fn find_closed(&mut self) {
        self.closed = vec![false; self.table.len()];
        self.synchronised.iter().filter(|&&row| row != NO_ROW).for_each(|&row| self.closed[row as usize] = true);
    }

    /// Whether nothing is open in a state that is given by its row: it is in the middle of a certain token. Of some such
    /// states this may not be known.
    #[inline(always)]
    pub fn is_closed(&self, row: u32) -> bool {
        self.closed[row as usize]
    }

    /// Whether every row that can be stepped from is one of `pair_table`, with all of its cells; what the loop over
    /// bursts (`splitter.rs`) takes for granted.
    fn is_sound(&self) -> bool {
        if !(1..=64).contains(&self.symbols) {
            return false;
        }
        let (symbols, square) = (self.symbols, self.symbols * self.symbols);
        let states = (self.table.len() / symbols).min(self.pair_table.len() / square);
        let is_row = |row: u32| (row as usize) / symbols < states;
        // Many, and looked at without a division each: as numbers that lie before the last row.
        let largest_pair = self.pair_table.iter().fold(0, |largest, &entry| largest.max(entry >> 9)) as usize;
        let largest = self.table.iter().fold(0, |largest, &entry| largest.max(entry >> 8));
        let others = self.retractions.iter().map(|retraction| retraction.row);
        let others = others.chain(self.synchronised.iter().copied().filter(|&row| row != NO_ROW));
        states > 0
            && largest_pair <= self.pair_table.len() - square
            && others.chain([largest, self.start, self.trap]).all(is_row)
            && self.symbol_of.iter().all(|&symbol| usize::from(symbol) < symbols)
            && self.windows.iter().all(|windows| windows.codes.iter().all(|&code| usize::from(code) < MOST_CODES))
    }
}

fn pair_symbols(symbol_of: &[u8; 256], symbols: usize) -> [u16; 256] {
    symbol_of.map(|symbol| u16::from(symbol) * symbols as u16)
}

impl Stored for Transducer {
    fn put(&self, tables: &mut TableWriter) {
        self.classes.put(tables);
        (self.symbols, self.states).put(tables);
        [self.start, self.trap].put(tables);
        self.table.put(tables);
        self.pair_table.put(tables);
        self.retractions.put(tables);
        self.ends.put(tables);
        self.symbol_of.put(tables);
        self.continuation.put(tables);
        self.is_match.put(tables);
        self.synchronising.put(tables);
        self.synchronised.put(tables);
        self.windows.put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Transducer> {
        let classes = Classes::take(tables)?;
        let (symbols, states) = Stored::take(tables)?;
        let [start, trap] = Stored::take(tables)?;
        let mut transducer = Transducer {
            classes,
            symbols,
            states,
            start,
            trap,
            table: Stored::take(tables)?,
            pair_table: Stored::take(tables)?,
            retractions: Stored::take(tables)?,
            ends: Stored::take(tables)?,
            symbol_of: Stored::take(tables)?,
            pair_symbol_of: [0; 256],
            continuation: Stored::take(tables)?,
            is_match: Stored::take(tables)?,
            synchronising: Stored::take(tables)?,
            synchronised: Stored::take(tables)?,
            closed: vec![],
            windows: Stored::take(tables)?,
        };
        if !transducer.is_sound() {
            return Err(damaged("a machine leads out of its table"));
        }
        transducer.pair_symbol_of = pair_symbols(&transducer.symbol_of, symbols);
        transducer.find_closed();
        Ok(transducer)
    }
}
