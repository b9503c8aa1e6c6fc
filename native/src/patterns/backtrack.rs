//! A backtracking matcher over the same tree: the meaning of a pattern, spelled out.
//!
//! It serves the patterns that have no transducer, and it is what the tests hold the transducer against. A pattern is
//! compiled into `Step`s; matching keeps its own stack, so that a long text does not overflow the thread's. Repetition of
//! a single set, the bulk of every real pattern, is one step, with one entry on the stack.
//!
//! It is told how much work it may do. What needs more goes to `machine.rs`, which remembers where it failed, and is
//! slower where that is no help.

use std::sync::OnceLock;

use super::tree::{AnchorKind, CodePointSet, Node, Tree};
use crate::character_table::CharacterSet;
use crate::locks::made_once;

/// One instruction of the matcher.
#[derive(Clone, Debug)]
enum Step {
    /// One character of a set.
    Set(usize),
    /// A set again and again: minimum, maximum, greedy, possessive.
    Run {
        set: usize,
        minimum: u32,
        maximum: u32,
        greedy: bool,
        possessive: bool,
    },
    /// Try the first, then the second.
    Split(usize, usize),
    Jump(usize),
    /// Run a part of the program by itself; go on after it where it matches (or not).
    Look {
        end: usize,
        negated: bool,
    },
    /// The next characters are of these sets (or not all of them).
    LookAt {
        sets: Vec<usize>,
        negated: bool,
    },
    /// The character before is of a set (or not).
    LookBack {
        set: usize,
        negated: bool,
    },
    /// The same backwards: it has to match from some place before up to here, so many characters away.
    Behind {
        end: usize,
        negated: bool,
        shortest: u64,
        longest: Option<u64>,
    },
    Atomic {
        end: usize,
    },
    Anchor {
        kind: AnchorKind,
        word: usize,
    },
    Keep,
    /// Remember the place in a slot, and leave a loop whose round was empty.
    Mark(usize),
    LeaveIfEmpty {
        slot: usize,
        exit: usize,
    },
    /// The end of the program, or of a part.
    Accept,
}

/// A set with a table for ASCII.
#[derive(Clone, Debug)]
pub(super) struct FastSet {
    ascii: [bool; 128],
    all: CodePointSet,
    /// The same as a table, which is made when it is asked for the first time.
    table: OnceLock<CharacterSet>,
}

impl FastSet {
    pub(super) fn new(set: &CodePointSet) -> FastSet {
        FastSet {
            ascii: std::array::from_fn(|code| set.contains(code as u32)),
            all: set.clone(),
            table: OnceLock::new(),
        }
    }

    pub(super) fn contains(&self, character: char) -> bool {
        match self.ascii.get(character as usize) {
            Some(&is_in) => is_in,
            None => made_once(&self.table, || CharacterSet::of_set(&self.all)).contains(character),
        }
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Matcher {
    steps: Vec<Step>,
    sets: Vec<FastSet>,
    slots: usize,
    /// What a match begins with, where that is known.
    first: Option<FastSet>,
}

/// The work that was allowed is done, and the matcher has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfWork;

/// How much work is left: steps, and characters that a repeated set takes.
struct Work(u64);

impl Work {
    #[inline(always)]
    fn spend(&mut self, amount: u64) -> Result<(), OutOfWork> {
        self.0 = self.0.checked_sub(amount).ok_or(OutOfWork)?;
        Ok(())
    }
}

/// Where a match ends, and where it begins if a `\K` was passed.
type Found = Option<(Option<usize>, usize)>;

#[derive(Clone)]
enum Choice {
    /// Go on at this step and place.
    At(usize, usize),
    /// A greedy run that may give back down to the first place; it stands at the second.
    GiveBack { step: usize, least: usize, at: usize },
    /// A lazy run that may take more: the place, and how often it may.
    TakeMore { step: usize, set: usize, at: usize, left: u32 },
    /// The slot had this value.
    Slot(usize, usize),
    /// The match was to begin there.
    Began(Option<usize>),
}

impl Matcher {
    /// Compile a tree.
    pub fn build(tree: &Tree) -> Matcher {
        let mut matcher =
            Matcher { steps: vec![], sets: tree.sets.iter().map(FastSet::new).collect(), slots: 0, first: None };
        matcher.first = tree.first.as_ref().map(FastSet::new);
        matcher.emit(&tree.root);
        matcher.steps.push(Step::Accept);
        matcher
    }

    fn emit(&mut self, node: &Node) {
        match node {
            Node::Set(set) => self.steps.push(Step::Set(*set)),
            Node::Sequence(nodes) => nodes.iter().for_each(|node| self.emit(node)),
            Node::Alternation(nodes) => {
                let mut ends = vec![];
                for (index, node) in nodes.iter().enumerate() {
                    if index + 1 == nodes.len() {
                        self.emit(node);
                        break;
                    }
                    let split = self.hole();
                    self.emit(node);
                    ends.push(self.hole());
                    self.steps[split] = Step::Split(split + 1, self.steps.len());
                }
                let here = self.steps.len();
                ends.into_iter().for_each(|end| self.steps[end] = Step::Jump(here));
            }
            Node::Repeat { body, minimum, maximum, greedy } => self.emit_repeat(body, *minimum, *maximum, *greedy),
            Node::Atomic(body) => match &**body {
                Node::Repeat { body, minimum, maximum, greedy: true } if matches!(**body, Node::Set(_)) => {
                    let Node::Set(set) = **body else { unreachable!("matched above") };
                    let maximum = maximum.unwrap_or(u32::MAX);
                    self.steps.push(Step::Run { set, minimum: *minimum, maximum, greedy: true, possessive: true });
                }
                _ => {
                    let at = self.hole();
                    self.emit(body);
                    self.steps.push(Step::Accept);
                    self.steps[at] = Step::Atomic { end: self.steps.len() };
                }
            },
            Node::Look { body, behind, negated } if sets_of(body).is_some_and(|sets| !behind || sets.len() == 1) => {
                let (sets, negated) = (sets_of(body).expect("just asked"), *negated);
                self.steps.push(match *behind {
                    true => Step::LookBack { set: sets[0], negated },
                    false => Step::LookAt { sets, negated },
                });
            }
            Node::Look { body, behind, negated } => {
                let at = self.hole();
                self.emit(body);
                self.steps.push(Step::Accept);
                let (end, negated) = (self.steps.len(), *negated);
                let (shortest, longest) = (body.minimum_length(), body.maximum_length());
                self.steps[at] = match *behind {
                    true => Step::Behind { end, negated, shortest, longest },
                    false => Step::Look { end, negated },
                };
            }
            Node::Anchor { kind, word } => {
                self.steps.push(Step::Anchor { kind: *kind, word: word.unwrap_or(usize::MAX) });
            }
            Node::Keep(()) => self.steps.push(Step::Keep),
        }
    }

    fn hole(&mut self) -> usize {
        self.steps.push(Step::Accept);
        self.steps.len() - 1
    }

    fn emit_repeat(&mut self, body: &Node, minimum: u32, maximum: Option<u32>, greedy: bool) {
        if let Node::Set(set) = body {
            let maximum = maximum.unwrap_or(u32::MAX);
            self.steps.push(Step::Run { set: *set, minimum, maximum, greedy, possessive: false });
            return;
        }
        for _ in 0..minimum {
            self.emit(body);
        }
        let split =
            |at: usize, after: usize| if greedy { Step::Split(at + 1, after) } else { Step::Split(after, at + 1) };
        match maximum {
            None => {
                let slot = self.slots;
                self.slots += 1;
                let at = self.hole();
                self.steps.push(Step::Mark(slot));
                self.emit(body);
                let check = self.hole();
                self.steps.push(Step::Jump(at));
                let after = self.steps.len();
                self.steps[check] = Step::LeaveIfEmpty { slot, exit: after };
                self.steps[at] = split(at, after);
            }
            Some(maximum) => {
                let mut splits = vec![];
                for _ in minimum..maximum {
                    splits.push(self.hole());
                    self.emit(body);
                }
                let after = self.steps.len();
                splits.into_iter().for_each(|at| self.steps[at] = split(at, after));
            }
        }
    }

    /// All matches as the oracle finds them: an empty match where the one before ended does not count, and the search
    /// goes on a character further.
    ///
    /// All of them may take so much work, and each attempt at one place so much.
    pub fn matches(&self, text: &str, work: u64, work_of_attempt: u64) -> Result<Vec<(usize, usize)>, OutOfWork> {
        let mut work = Work(work);
        successive_matches(text, |at| self.find(text, at, &mut work, work_of_attempt))
    }

    /// The first match from a place on.
    fn find(
        &self,
        text: &str,
        search_start: usize,
        work: &mut Work,
        work_of_attempt: u64,
    ) -> Result<Option<(usize, usize)>, OutOfWork> {
        let mut slots = vec![usize::MAX; self.slots];
        let mut stack = vec![];
        let mut at = search_start;
        loop {
            if let Some(first) = &self.first {
                let Some(place) = text[at..].find(|character| first.contains(character)) else { return Ok(None) };
                at += place;
            }
            work.spend(1)?;
            let before = work.0;
            let found = self.run_on(&mut stack, 0, text, search_start, at, None, &mut slots, work)?;
            if before - work.0 > work_of_attempt {
                return Err(OutOfWork);
            }
            if let Some((began, end)) = found {
                return Ok(Some((began.unwrap_or(at), end)));
            }
            match text[at..].chars().next() {
                Some(character) => at += character.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn run(
        &self,
        first: usize,
        text: &str,
        origin: usize,
        at: usize,
        must_end: Option<usize>,
        slots: &mut [usize],
        work: &mut Work,
    ) -> Result<Found, OutOfWork> {
        self.run_on(&mut vec![], first, text, origin, at, must_end, slots, work)
    }

    /// The same with a stack that is given, and has room.
    #[allow(clippy::too_many_arguments)]
    fn run_on(
        &self,
        stack: &mut Vec<Choice>,
        first: usize,
        text: &str,
        origin: usize,
        at: usize,
        must_end: Option<usize>,
        slots: &mut [usize],
        work: &mut Work,
    ) -> Result<Found, OutOfWork> {
        let character = |at: usize| text[at..].chars().next();
        stack.clear();
        stack.push(Choice::At(first, at));
        let mut began = None;
        'choices: while let Some(choice) = stack.pop() {
            let (mut step, mut at) = match choice {
                Choice::At(step, at) => (step, at),
                Choice::Slot(slot, value) => {
                    slots[slot] = value;
                    continue;
                }
                Choice::Began(value) => {
                    began = value;
                    continue;
                }
                Choice::GiveBack { step, least, at } => {
                    let width = text[..at].chars().next_back().map_or(1, char::len_utf8);
                    let back = at - width;
                    if back > least {
                        stack.push(Choice::GiveBack { step, least, at: back });
                    }
                    (step, back)
                }
                Choice::TakeMore { step, set, at, left } => match character(at) {
                    Some(next) if left > 0 && self.sets[set].contains(next) => {
                        let at = at + next.len_utf8();
                        stack.push(Choice::TakeMore { step, set, at, left: left - 1 });
                        (step, at)
                    }
                    _ => continue,
                },
            };
            loop {
                work.spend(1)?;
                match &self.steps[step] {
                    Step::Set(set) => match character(at) {
                        Some(next) if self.sets[*set].contains(next) => at += next.len_utf8(),
                        _ => continue 'choices,
                    },
                    Step::Run { set, minimum, maximum, greedy, possessive } => {
                        let is_in = |next: char| self.sets[*set].contains(next);
                        let mut least = at;
                        for _ in 0..*minimum {
                            match character(least) {
                                Some(next) if is_in(next) => least += next.len_utf8(),
                                _ => continue 'choices,
                            }
                        }
                        let more = maximum - minimum;
                        if *greedy {
                            let taken = text[least..].chars().take(more as usize).take_while(|&next| is_in(next));
                            at = least + taken.map(char::len_utf8).sum::<usize>();
                            work.spend((at - least) as u64)?;
                            if at > least && !possessive {
                                stack.push(Choice::GiveBack { step: step + 1, least, at });
                            }
                        } else {
                            at = least;
                            stack.push(Choice::TakeMore { step: step + 1, set: *set, at, left: more });
                        }
                    }
                    Step::Split(one, other) => {
                        stack.push(Choice::At(*other, at));
                        step = *one;
                        continue;
                    }
                    Step::Jump(to) => {
                        step = *to;
                        continue;
                    }
                    Step::Look { end, negated } => {
                        let found = self.run(step + 1, text, origin, at, None, &mut slots.to_vec(), work)?;
                        if found.is_some() == *negated {
                            continue 'choices;
                        }
                        step = *end;
                        continue;
                    }
                    Step::LookAt { sets, negated } => {
                        let mut next = text[at..].chars();
                        let is_found = sets.iter().all(|&set| next.next().is_some_and(|c| self.sets[set].contains(c)));
                        if is_found == *negated {
                            continue 'choices;
                        }
                    }
                    Step::LookBack { set, negated } => {
                        let before = text[..at].chars().next_back();
                        if before.is_some_and(|before| self.sets[*set].contains(before)) == *negated {
                            continue 'choices;
                        }
                    }
                    Step::Behind { end, negated, shortest, longest } => {
                        let mut found = false;
                        let mut from = Some(at);
                        let mut away = 0;
                        while let Some(place) = from.filter(|_| !found && longest.is_none_or(|longest| away <= longest))
                        {
                            work.spend(1)?;
                            if away >= *shortest {
                                let run =
                                    self.run(step + 1, text, origin, place, Some(at), &mut slots.to_vec(), work)?;
                                found = run.is_some();
                            }
                            from = text[..place].chars().next_back().map(|before| place - before.len_utf8());
                            away += 1;
                        }
                        if found == *negated {
                            continue 'choices;
                        }
                        step = *end;
                        continue;
                    }
                    Step::Atomic { end } => {
                        match self.run(step + 1, text, origin, at, None, &mut slots.to_vec(), work)? {
                            Some((inner, to)) => {
                                if inner.is_some() {
                                    stack.push(Choice::Began(began));
                                    began = inner;
                                }
                                at = to;
                                step = *end;
                                continue;
                            }
                            None => continue 'choices,
                        }
                    }
                    Step::Anchor { kind, word } => {
                        if !self.holds(*kind, *word, text, origin, at) {
                            continue 'choices;
                        }
                    }
                    Step::Keep => {
                        stack.push(Choice::Began(began));
                        began = Some(at);
                    }
                    Step::Mark(slot) => {
                        stack.push(Choice::Slot(*slot, slots[*slot]));
                        slots[*slot] = at;
                    }
                    Step::LeaveIfEmpty { slot, exit } => {
                        if slots[*slot] == at {
                            step = *exit;
                            continue;
                        }
                    }
                    Step::Accept => {
                        if must_end.is_none_or(|end| end == at) {
                            return Ok(Some((began, at)));
                        }
                        continue 'choices;
                    }
                }
                step += 1;
            }
        }
        Ok(None)
    }

    fn holds(&self, kind: AnchorKind, word: usize, text: &str, origin: usize, at: usize) -> bool {
        holds(kind, |character| self.sets[word].contains(character), text, origin, at)
    }
}

/// The sets of the characters of a node, if it is one after the other.
fn sets_of(node: &Node) -> Option<Vec<usize>> {
    match node {
        Node::Set(set) => Some(vec![*set]),
        Node::Sequence(parts) if !parts.is_empty() => {
            let one = |part: &Node| match part {
                Node::Set(set) => Some(*set),
                _ => None,
            };
            parts.iter().map(one).collect()
        }
        _ => None,
    }
}

/// Whether an anchor holds at a place, in a search that began at `search_start`.
pub(super) fn holds(
    kind: AnchorKind,
    is_word: impl Fn(char) -> bool,
    text: &str,
    search_start: usize,
    at: usize,
) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().next();
    let is_boundary = || before.is_some_and(&is_word) != after.is_some_and(&is_word);
    match kind {
        AnchorKind::LineStart => at == 0 || (before == Some('\n') && after.is_some()),
        AnchorKind::LineEnd => after.is_none() || after == Some('\n'),
        AnchorKind::TextStart => at == 0,
        AnchorKind::TextEnd => after.is_none(),
        AnchorKind::LastLineEnd => after.is_none() || &text[at..] == "\n",
        AnchorKind::SearchStart => at == search_start,
        AnchorKind::WordBoundary => is_boundary(),
        AnchorKind::NoWordBoundary => !is_boundary(),
    }
}

/// Put together what successive searches find. `find` gives the first match from a place on.
pub(super) fn successive_matches<E>(
    text: &str,
    mut find: impl FnMut(usize) -> Result<Option<(usize, usize)>, E>,
) -> Result<Vec<(usize, usize)>, E> {
    let mut found = vec![];
    let (mut at, mut last_end) = (0, None);
    while at <= text.len() {
        let Some((start, end)) = find(at)? else { break };
        if start == end && last_end == Some(end) {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        found.push((start, end));
        at = end;
        last_end = Some(end);
    }
    Ok(found)
}
