//! From a tree to a program over classes: an ordered nondeterministic automaton, of which the first thread wins.
//!
//! Its threads never look back, and never further ahead than one symbol: a match is noticed on seeing the symbol after
//! it. What does not fit (look-behind, longer look-ahead, atomic groups around more than a repeated set, patterns that
//! can match the empty text) is for `backtrack.rs`.
//!
//! A text that the pattern does not cover has gaps between the matches. A gap is made of steps of one character
//! where nothing matches, each of a kind (see `Gaps`); adjacent steps of one kind are one piece.

use crate::hash::FastMap as HashMap;

use super::classes::Classes;
use super::tree::{AnchorKind, Node, Tree};

/// How a token ended: not yet, as a match, or as a step of a gap of some kind.
pub type Kind = u8;
/// No accept so far.
pub const NONE: Kind = 0;
/// A match of the pattern.
pub const MATCH: Kind = 255;

const MOST_INSTRUCTIONS: usize = 4000;

#[derive(Clone, Copy, Debug)]
enum Instruction {
    Set(u64),
    Split(u16, u16),
    Jump(u16),
    /// Go on where the next symbol is one of the classes, or (`at_end`) there is none.
    Next {
        classes: u64,
        at_end: bool,
    },
    Accept(Kind),
}

/// A thread list: instruction numbers, the most wanted first.
pub type Threads = Vec<u16>;

/// The program of one pattern.
pub struct Program {
    instructions: Vec<Instruction>,
    start: Threads,
    /// For each class, the instruction that accepts a gap there.
    gap_of_class: Vec<u16>,
    /// For each class, whether a token that begins with it may fail to match.
    can_fail: Vec<bool>,
    classes: usize,
}

/// What a token that begins with some class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// Always a match.
    Match,
    /// Never a match.
    Gap,
    /// One or the other.
    Either,
}

impl Program {
    /// Build the program of a pattern. `gaps` are sets of classes, each one kind of gap; together they are all
    /// classes. The error says what does not fit.
    pub fn build(tree: &Tree, classes: &Classes, gaps: &[u64]) -> Result<Program, &'static str> {
        let mut builder = Builder { classes, instructions: vec![] };
        builder.emit(&tree.root)?;
        builder.push(Instruction::Accept(MATCH))?;
        let first_gap = builder.instructions.len() as u16;
        for kind in 0..gaps.len() {
            builder.push(Instruction::Accept(1 + kind as u8))?;
        }
        let gap_of = |class: usize| gaps.iter().position(|set| set >> class & 1 == 1).unwrap_or(0) as u16;
        let mut program = Program {
            instructions: builder.instructions,
            start: vec![],
            gap_of_class: (0..classes.count).map(|class| first_gap + gap_of(class)).collect(),
            can_fail: vec![],
            classes: classes.count,
        };
        let mut start = vec![];
        program.follow(&mut start, &mut vec![false; program.instructions.len()], 0);
        program.start = start;
        if (0..classes.count).map(Some).chain([None]).any(|symbol| program.advance(&program.start, symbol).0 != NONE) {
            return Err("the pattern can match the empty text");
        }
        program.can_fail = (0..classes.count).map(|class| program.may_fail(class)).collect();
        Ok(program)
    }

    /// The threads of a token that begins with this class.
    pub fn fresh(&self, class: usize) -> Threads {
        let mut threads = self.advance(&self.start, Some(class)).1;
        if self.can_fail[class] {
            threads.push(self.gap_of_class[class]);
        }
        threads
    }

    /// What a token that begins with this class is.
    pub fn first(&self, class: usize) -> First {
        if !self.can_fail[class] {
            First::Match
        } else if self.advance(&self.start, Some(class)).1.is_empty() {
            First::Gap
        } else {
            First::Either
        }
    }

    /// Show the threads the next symbol (none: the end). Gives how the token can end before it, and the threads after.
    pub fn advance(&self, threads: &[u16], symbol: Option<usize>) -> (Kind, Threads) {
        let mut next = vec![];
        let mut seen = vec![false; self.instructions.len()];
        let kind = self.advance_into(threads, symbol, &mut next, &mut seen);
        (kind, next)
    }

    fn advance_into(&self, threads: &[u16], symbol: Option<usize>, next: &mut Threads, seen: &mut [bool]) -> Kind {
        let is_in = |classes: u64| symbol.is_some_and(|class| classes >> class & 1 == 1);
        for &at in threads {
            match self.instructions[at as usize] {
                Instruction::Set(classes) if is_in(classes) => self.follow(next, seen, at + 1),
                Instruction::Accept(kind) => return kind,
                Instruction::Next { classes, at_end } if is_in(classes) || (symbol.is_none() && at_end) => {
                    let mut here = vec![];
                    self.follow(&mut here, &mut vec![false; self.instructions.len()], at + 1);
                    let kind = self.advance_into(&here, symbol, next, seen);
                    if kind != NONE {
                        return kind;
                    }
                }
                _ => {}
            }
        }
        NONE
    }

    fn follow(&self, threads: &mut Threads, seen: &mut [bool], at: u16) {
        let is_decided = |&at: &u16| matches!(self.instructions[at as usize], Instruction::Accept(_));
        if seen[at as usize] || threads.last().is_some_and(is_decided) {
            return;
        }
        seen[at as usize] = true;
        match self.instructions[at as usize] {
            Instruction::Jump(to) => self.follow(threads, seen, to),
            Instruction::Split(first, second) => {
                self.follow(threads, seen, first);
                self.follow(threads, seen, second);
            }
            _ => threads.push(at),
        }
    }

    fn may_fail(&self, class: usize) -> bool {
        let mut known: HashMap<Threads, ()> = HashMap::default();
        let mut work = vec![self.advance(&self.start, Some(class)).1];
        while let Some(threads) = work.pop() {
            if threads.is_empty() {
                return true;
            }
            for symbol in (0..self.classes).map(Some).chain([None]) {
                let (kind, next) = self.advance(&threads, symbol);
                if kind == NONE && known.insert(next.clone(), ()).is_none() {
                    work.push(next);
                }
            }
        }
        false
    }
}

struct Builder<'a> {
    classes: &'a Classes,
    instructions: Vec<Instruction>,
}

impl Builder<'_> {
    fn push(&mut self, instruction: Instruction) -> Result<usize, &'static str> {
        if self.instructions.len() >= MOST_INSTRUCTIONS {
            return Err("the pattern is too long");
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn all(&self) -> u64 {
        (1 << self.classes.count) - 1
    }

    fn here(&self) -> u16 {
        self.instructions.len() as u16
    }

    fn emit(&mut self, node: &Node) -> Result<(), &'static str> {
        match node {
            Node::Set(index) => self.push(Instruction::Set(self.classes.members[*index])).map(drop),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.emit(node)),
            Node::Alternation(nodes) => self.emit_alternation(nodes),
            Node::Repeat { body, minimum, maximum, greedy } => self.emit_repeat(body, *minimum, *maximum, *greedy),
            Node::Atomic(body) => match &**body {
                Node::Set(_) => self.emit(body),
                Node::Repeat { body, minimum, maximum, greedy: true } => match **body {
                    Node::Set(index) => self.emit_possessive(self.classes.members[index], *minimum, *maximum),
                    _ => Err("an atomic group around more than a repeated set"),
                },
                _ => Err("an atomic group around more than a repeated set"),
            },
            Node::Look { body, behind: false, negated } => {
                let classes = self.one_of(body).ok_or("a look-ahead of more than one character")?;
                let classes = if *negated { self.all() & !classes } else { classes };
                self.push(Instruction::Next { classes, at_end: *negated }).map(drop)
            }
            Node::Anchor { kind: AnchorKind::TextEnd, .. } => {
                self.push(Instruction::Next { classes: 0, at_end: true }).map(drop)
            }
            Node::Anchor { kind: AnchorKind::LineEnd, .. } => {
                // The caller makes sure that the newline is a class of its own.
                let classes = 1 << self.classes.of(10);
                self.push(Instruction::Next { classes, at_end: true }).map(drop)
            }
            Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => Err("a condition on what lies behind"),
        }
    }

    /// The classes, where the node is one character out of a set, or a choice of such.
    fn one_of(&self, node: &Node) -> Option<u64> {
        match node {
            Node::Set(index) => Some(self.classes.members[*index]),
            Node::Alternation(nodes) => nodes.iter().try_fold(0, |found, node| Some(found | self.one_of(node)?)),
            Node::Sequence(nodes) if nodes.len() == 1 => self.one_of(&nodes[0]),
            _ => None,
        }
    }

    fn emit_alternation(&mut self, nodes: &[Node]) -> Result<(), &'static str> {
        let mut ends = vec![];
        for (index, node) in nodes.iter().enumerate() {
            if index + 1 == nodes.len() {
                self.emit(node)?;
                break;
            }
            let split = self.push(Instruction::Jump(0))?;
            self.emit(node)?;
            ends.push(self.push(Instruction::Jump(0))?);
            self.instructions[split] = Instruction::Split(split as u16 + 1, self.here());
        }
        for end in ends {
            self.instructions[end] = Instruction::Jump(self.here());
        }
        Ok(())
    }

    fn split(&mut self, at: usize, greedy: bool) {
        let (body, after) = (at as u16 + 1, self.here());
        self.instructions[at] = if greedy { Instruction::Split(body, after) } else { Instruction::Split(after, body) };
    }

    fn emit_repeat(
        &mut self,
        body: &Node,
        minimum: u32,
        maximum: Option<u32>,
        greedy: bool,
    ) -> Result<(), &'static str> {
        if may_be_empty(body) {
            return Err("a repeated body that can match the empty text");
        }
        for _ in 0..minimum {
            self.emit(body)?;
        }
        match maximum {
            None => {
                let split = self.push(Instruction::Jump(0))?;
                self.emit(body)?;
                self.push(Instruction::Jump(split as u16))?;
                self.split(split, greedy);
            }
            Some(maximum) => {
                let mut splits = vec![];
                for _ in minimum..maximum {
                    splits.push(self.push(Instruction::Jump(0))?);
                    self.emit(body)?;
                }
                for at in splits {
                    self.split(at, greedy);
                }
            }
        }
        Ok(())
    }

    /// A repeated set that gives nothing back: it may only end where the set does not go on.
    fn emit_possessive(&mut self, set: u64, minimum: u32, maximum: Option<u32>) -> Result<(), &'static str> {
        for _ in 0..minimum {
            self.push(Instruction::Set(set))?;
        }
        let stop = Instruction::Next { classes: self.all() & !set, at_end: true };
        match maximum {
            None => {
                let split = self.push(Instruction::Jump(0))?;
                self.push(Instruction::Set(set))?;
                self.push(Instruction::Jump(split as u16))?;
                self.split(split, true);
                self.push(stop)?;
            }
            Some(maximum) => {
                // set (set (set | stop) | stop): each exit but the last one asks that the set does not go on.
                let mut exits = vec![];
                for _ in minimum..maximum {
                    exits.push(self.push(Instruction::Jump(0))?);
                    self.push(Instruction::Set(set))?;
                }
                if !exits.is_empty() {
                    let over = self.push(Instruction::Jump(0))?;
                    for at in exits {
                        self.split(at, true);
                    }
                    self.push(stop)?;
                    self.instructions[over] = Instruction::Jump(self.here());
                }
            }
        }
        Ok(())
    }
}

/// Whether the node can match without a character.
pub fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Set(_) => false,
        Node::Sequence(nodes) => nodes.iter().all(may_be_empty),
        Node::Alternation(nodes) => nodes.iter().any(may_be_empty),
        Node::Repeat { body, minimum, .. } => *minimum == 0 || may_be_empty(body),
        Node::Atomic(body) => may_be_empty(body),
        Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => true,
    }
}
