//! A backtracking machine for patterns, or texts, on which a backtracking matcher would not come to an end: see
//! `engine/reference/pattern_machine.py`, of which this is the counterpart.
//!
//! It tries what `backtrack.rs` tries, in the same order, but remembers at which (instruction, place) it failed, so that
//! its time grows with the length of the text. It knows how often a backtracker would have gone back, and gives up where
//! the reference engine does.

use super::backtrack::{holds, successive_matches, FastSet};
use super::machine_program::{Compiled, Instruction, Program, SHORT_REACH};
use super::tree::{AnchorKind, Tree};
use crate::error::{Error, Result};
use crate::hash::FastMap;

/// One attempt goes back so often at most.
pub const RETRY_LIMIT: u64 = 10_000_000;
/// One text takes so many steps at most, and so many more a character.
const STEP_LIMIT: u64 = 50_000_000;
const STEPS_A_CHARACTER: u64 = 1_000;
/// States that are remembered before those that lie behind the search are forgotten.
const MANY_STATES: usize = 1 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Machine {
    compiled: Compiled,
    sets: Vec<FastSet>,
    /// What a match begins with; none: it can be empty.
    first: Option<FastSet>,
}

/// Instruction, place, and the loops in whose round nothing was matched yet (see `Rounds`).
type State = (u32, usize, u32);

/// What one program is known to do in one text.
#[derive(Default)]
struct Memory {
    /// How often a backtracker goes back from a state before it has failed there.
    failed: FastMap<State, u64>,
    /// Where the match ends to which a state leads, and how often a backtracker goes back before.
    succeeded: FastMap<State, (usize, u64)>,
    /// For programs that run as a whole: what they found at a place.
    results: FastMap<usize, Whole>,
}

/// What came of a program that ran as a whole: how its match ended, and how often it went back.
#[derive(Clone, Copy)]
struct Whole {
    found: Found,
    cost: u64,
}

/// Where a match ends, and the place of its last `\K`.
type Found = Option<(usize, Option<usize>)>;

/// A way that was not taken.
struct Pending {
    at: u32,
    place: usize,
    rounds: u32,
    kept: Option<usize>,
    /// How much of the trail lies before.
    mark: usize,
}

impl Machine {
    /// Compile a tree. What gets too long is an error of the class that the reference engine raises.
    pub fn build(tree: &Tree) -> Result<Machine> {
        let sets = tree.sets.iter().map(FastSet::new).collect();
        Ok(Machine { compiled: Compiled::build(tree)?, sets, first: tree.first.as_ref().map(FastSet::new) })
    }

    /// All matches as the oracle finds them. With `gives_up`, too many retries are an error.
    pub fn matches(&self, text: &str, gives_up: bool) -> Result<Vec<(usize, usize)>> {
        let characters = text.chars().count() as u64;
        let mut run = Run {
            machine: self,
            text,
            memories: self.compiled.programs.iter().map(|_| Memory::default()).collect(),
            swept: vec![None; self.compiled.programs.len()],
            rounds: Rounds::default(),
            search_start: 0,
            retries: 0,
            steps: 0,
            step_limit: STEP_LIMIT + STEPS_A_CHARACTER * characters,
            gives_up,
        };
        successive_matches(text, |at| run.find(at))
    }
}

/// The machine at work on one text.
struct Run<'a> {
    machine: &'a Machine,
    text: &'a str,
    memories: Vec<Memory>,
    /// For look-behinds that reach far, by program: whether a match ends at a place.
    swept: Vec<Option<Vec<bool>>>,
    rounds: Rounds,
    search_start: usize,
    retries: u64,
    steps: u64,
    step_limit: u64,
    gives_up: bool,
}

impl Run<'_> {
    /// The first match from a place on.
    fn find(&mut self, at: usize) -> Result<Option<(usize, usize)>> {
        self.search_start = at;
        if self.machine.compiled.has_search_start {
            self.memories.iter_mut().for_each(|memory| *memory = Memory::default());
        }
        let main = self.machine.compiled.main;
        let mut memory = std::mem::take(&mut self.memories[main]);
        if memory.failed.len() > MANY_STATES {
            memory.failed.retain(|state, _| state.1 >= at);
        }
        let mut outcome = Ok(None);
        let mut start = at;
        loop {
            self.retries = 0;
            let may_begin = self
                .machine
                .first
                .as_ref()
                .is_none_or(|first| self.character(start).is_some_and(|character| first.contains(character)));
            let found = if may_begin { self.run(main, &mut memory, start, None) } else { Ok(None) };
            match found {
                Ok(None) => {}
                Ok(Some((end, kept))) => {
                    outcome = Ok(Some((kept.unwrap_or(start), end)));
                    break;
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            match self.text[start..].chars().next() {
                Some(character) => start += character.len_utf8(),
                None => break,
            }
        }
        self.memories[main] = memory;
        outcome
    }

    /// Run a program from a place. With a `target` only a match that ends there counts.
    fn run(&mut self, number: usize, memory: &mut Memory, start: usize, target: Option<usize>) -> Result<Found> {
        let machine = self.machine;
        let program = &machine.compiled.programs[number];
        let keeps_successes = program.is_inner && !program.keeps && target.is_none();
        let mut pending: Vec<Pending> = vec![];
        // States gone through that have not failed yet, each with the number of retries at that time.
        let mut trail: Vec<(State, u64)> = vec![];
        let (mut at, mut place, mut rounds) = (0u32, start, Rounds::NONE);
        let mut kept = None;
        let end = loop {
            self.steps += 1;
            let goes_on = match &program.code[at as usize] {
                Instruction::Set(set) => match self.character(place) {
                    Some(character) if machine.sets[*set].contains(character) => {
                        place += character.len_utf8();
                        rounds = Rounds::NONE;
                        at += 1;
                        true
                    }
                    _ => false,
                },
                &Instruction::Split { first, second, head } => {
                    let looks_in = head.is_none_or(|head| {
                        self.character(place).is_some_and(|character| machine.sets[head].contains(character))
                    });
                    let state = (at, place, rounds);
                    if !looks_in {
                        at = second;
                        true
                    } else if let Some(&known) = memory.failed.get(&state) {
                        self.retries = self.retries.saturating_add(known.saturating_sub(1));
                        false
                    } else if let Some(&(end, cost)) = memory.succeeded.get(&state).filter(|_| keeps_successes) {
                        self.retries = self.retries.saturating_add(cost);
                        break end;
                    } else {
                        trail.push((state, self.retries));
                        pending.push(Pending { at: second, place, rounds, kept, mark: trail.len() });
                        at = first;
                        true
                    }
                }
                Instruction::Jump(to) => {
                    at = *to;
                    true
                }
                Instruction::Match if target.is_none_or(|target| target == place) => break place,
                Instruction::Match => false,
                Instruction::EnterRound(number) => {
                    rounds = self.rounds.with(rounds, *number);
                    at += 1;
                    true
                }
                Instruction::EndRound { number, exit } => {
                    let is_empty = self.rounds.has(rounds, *number);
                    rounds = self.rounds.without(rounds, *number);
                    at = if is_empty { *exit } else { at + 1 };
                    true
                }
                Instruction::Keep => {
                    kept = Some(place);
                    at += 1;
                    true
                }
                Instruction::Atomic(inner) => {
                    let whole = self.whole(*inner, place)?;
                    self.retries = self.retries.saturating_add(whole.cost);
                    match whole.found {
                        Some((inner_end, inner_kept)) => {
                            kept = inner_kept.or(kept);
                            rounds = if inner_end > place { Rounds::NONE } else { rounds };
                            place = inner_end;
                            at += 1;
                            true
                        }
                        None => false,
                    }
                }
                Instruction::Look { program, reach, negated } => {
                    let goes_on = self.looks(*program, *reach, place)? != *negated;
                    at += u32::from(goes_on);
                    goes_on
                }
                Instruction::Anchor { kind, word } => {
                    let goes_on = self.holds(*kind, *word, place);
                    at += u32::from(goes_on);
                    goes_on
                }
            };
            if goes_on {
                continue;
            }
            // Failed here: go back.
            self.retries = self.retries.saturating_add(1);
            if self.gives_up && (self.retries > RETRY_LIMIT || self.steps > self.step_limit) {
                return Err(gave_up());
            }
            let mark = pending.last().map_or(0, |pending| pending.mark);
            let retries = self.retries;
            memory.failed.extend(trail.drain(mark..).map(|(state, before)| (state, retries - before)));
            let Some(back) = pending.pop() else { return Ok(None) };
            (at, place, rounds, kept) = (back.at, back.place, back.rounds, back.kept);
        };
        if keeps_successes {
            let retries = self.retries;
            memory.succeeded.extend(trail.iter().map(|&(state, before)| (state, (end, retries - before))));
        }
        Ok(Some((end, kept)))
    }

    /// Run a program as a whole, once a place.
    fn whole(&mut self, number: usize, place: usize) -> Result<Whole> {
        if let Some(&known) = self.memories[number].results.get(&place) {
            return Ok(known);
        }
        let before = self.retries;
        // A program does not run inside itself.
        let mut memory = std::mem::take(&mut self.memories[number]);
        let outcome = self.run(number, &mut memory, place, None);
        let result = outcome.map(|found| Whole { found, cost: self.retries - before });
        if let Ok(result) = result {
            memory.results.insert(place, result);
        }
        self.memories[number] = memory;
        self.retries = before;
        result
    }

    /// Whether a look-around finds its body. A look-behind has a reach: from how far to how far away.
    fn looks(&mut self, number: usize, reach: Option<(u64, Option<u64>)>, place: usize) -> Result<bool> {
        let Some((shortest, longest)) = reach else {
            let whole = self.whole(number, place)?;
            self.retries = self.retries.saturating_add(whole.cost);
            return Ok(whole.found.is_some());
        };
        let Some(longest) = longest.filter(|&longest| longest <= SHORT_REACH) else {
            if self.swept[number].is_none() {
                let ends = self.sweep(number)?;
                self.swept[number] = Some(ends);
            }
            return Ok(self.swept[number].as_ref().is_some_and(|ends| ends[place]));
        };
        let text = self.text;
        let places = text[..place].char_indices().rev().map(|(start, _)| start);
        let near = std::iter::once(place).chain(places).take(longest as usize + 1).skip(shortest as usize);
        let mut here = Memory::default();
        for start in near {
            if self.run(number, &mut here, start, Some(place))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// At which places a match ends that begins anywhere: all threads of a program at once.
    fn sweep(&mut self, number: usize) -> Result<Vec<bool>> {
        let machine = self.machine;
        let program: &Program = &machine.compiled.programs[number];
        let mut ends = vec![false; self.text.len() + 1];
        let mut threads: Vec<u32> = vec![];
        let mut reached = vec![usize::MAX; program.code.len()];
        let places = self.text.char_indices().map(|(place, character)| (place, Some(character)));
        for (place, character) in places.chain([(self.text.len(), None)]) {
            let mut waiting: Vec<(u32, usize)> = vec![];
            let mut pending = vec![0];
            pending.append(&mut threads);
            while let Some(at) = pending.pop() {
                if std::mem::replace(&mut reached[at as usize], place) == place {
                    continue;
                }
                self.steps += 1;
                match &program.code[at as usize] {
                    Instruction::Set(set) => waiting.push((at, *set)),
                    Instruction::Split { first, second, .. } => pending.extend([*first, *second]),
                    Instruction::Jump(to) => pending.push(*to),
                    Instruction::Match => ends[place] = true,
                    Instruction::Anchor { kind, word } => {
                        if self.holds(*kind, *word, place) {
                            pending.push(at + 1);
                        }
                    }
                    Instruction::Look { program, reach, negated } => {
                        if self.looks(*program, *reach, place)? != *negated {
                            pending.push(at + 1);
                        }
                    }
                    _ => pending.push(at + 1),
                }
            }
            if let Some(character) = character {
                let moves = |&(_, set): &(u32, usize)| machine.sets[set].contains(character);
                threads.extend(waiting.iter().filter(|thread| moves(thread)).map(|(at, _)| at + 1));
            }
        }
        Ok(ends)
    }

    fn character(&self, place: usize) -> Option<char> {
        self.text[place..].chars().next()
    }

    fn holds(&self, kind: AnchorKind, word: Option<usize>, place: usize) -> bool {
        let is_word = |character| word.is_some_and(|word| self.machine.sets[word].contains(character));
        holds(kind, is_word, self.text, self.search_start, place)
    }
}

fn gave_up() -> Error {
    Error::encode("a regular expression went back 10,000,000 times on this text without an answer")
        .coded("pattern-gave-up")
        .hinted("tokenizers may answer or fail; a pattern without nested repeats has no such limit")
}

/// Sets of loops, each with a number. 0 is the empty one.
struct Rounds {
    sets: Vec<Vec<u32>>,
    numbers: FastMap<Vec<u32>, u32>,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds { sets: vec![vec![]], numbers: FastMap::from_iter([(vec![], Rounds::NONE)]) }
    }
}

impl Rounds {
    const NONE: u32 = 0;

    fn has(&self, set: u32, member: u32) -> bool {
        self.sets[set as usize].binary_search(&member).is_ok()
    }

    fn with(&mut self, set: u32, member: u32) -> u32 {
        let mut members = self.sets[set as usize].clone();
        match members.binary_search(&member) {
            Ok(_) => set,
            Err(at) => {
                members.insert(at, member);
                self.number(members)
            }
        }
    }

    fn without(&mut self, set: u32, member: u32) -> u32 {
        let mut members = self.sets[set as usize].clone();
        match members.binary_search(&member) {
            Err(_) => set,
            Ok(at) => {
                members.remove(at);
                self.number(members)
            }
        }
    }

    fn number(&mut self, members: Vec<u32>) -> u32 {
        *self.numbers.entry(members).or_insert_with_key(|members| {
            self.sets.push(members.clone());
            self.sets.len() as u32 - 1
        })
    }
}
