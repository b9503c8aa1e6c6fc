//! The programs of `machine.rs`: instructions made of a pattern's tree. See `engine/reference/pattern_program.py`.

use super::tree::{AnchorKind, CodePointSet, Node, Tree};
use crate::error::{Class, Error, Result};

const PROGRAM_LIMIT: u64 = 200_000;
/// A look-behind that reaches back further than this is looked up in a sweep over the whole text.
pub const SHORT_REACH: u64 = 32;

/// One instruction. Numbers of instructions are within the program, sets are those of the tree.
#[derive(Debug)]
pub enum Instruction {
    /// One character out of a set.
    Set(usize),
    /// Go on at the first, and at the second if that fails. With a head, straight to the second where the next
    /// character is not in that set.
    Split {
        /// The way to try first.
        first: u32,
        /// The other one.
        second: u32,
        /// A set.
        head: Option<usize>,
    },
    /// Go on there.
    Jump(u32),
    /// A round of a loop begins whose body can be empty; the loop's number.
    EnterRound(u32),
    /// The round ends; where it was empty, so does the loop.
    EndRound {
        /// The loop's number.
        number: u32,
        /// Where to go on after it.
        exit: u32,
    },
    /// A condition on the place.
    Anchor {
        /// Which place.
        kind: AnchorKind,
        /// The set of word characters.
        word: Option<usize>,
    },
    /// A look-around.
    Look {
        /// The number of the program that has to match, or not.
        program: usize,
        /// For a look-behind, the least and the greatest length of its match.
        reach: Option<(u64, Option<u64>)>,
        /// Must not match.
        negated: bool,
    },
    /// The number of a program that runs as a whole.
    Atomic(usize),
    /// The match begins here.
    Keep,
    /// The end.
    Match,
}

/// The instructions of a tree, or of the inside of an atomic group or a look-around.
#[derive(Debug)]
pub struct Program {
    /// The instructions.
    pub code: Vec<Instruction>,
    /// There is a `\K` in it.
    pub keeps: bool,
    /// It is the inside of something.
    pub is_inner: bool,
}

/// All programs of a pattern.
#[derive(Debug)]
pub struct Compiled {
    /// The programs, those inside of others before these.
    pub programs: Vec<Program>,
    /// The number of the program of the whole pattern.
    pub main: usize,
    /// What fails in one search may not fail in the next (`\G`).
    pub has_search_start: bool,
}

impl Compiled {
    /// Write the programs of a tree. Counted repeats are written out; what gets too long is an error.
    pub fn build(tree: &Tree) -> Result<Compiled> {
        let mut compiler = Compiler { sets: &tree.sets, programs: vec![], loops: 0, size: 0 };
        let main = compiler.program(&tree.root, false)?;
        let has_search_start =
            has(&tree.root, &|node| matches!(node, Node::Anchor { kind: AnchorKind::SearchStart, .. }));
        Ok(Compiled { programs: compiler.programs, main, has_search_start })
    }
}

struct Compiler<'a> {
    sets: &'a [CodePointSet],
    programs: Vec<Program>,
    loops: u32,
    size: u64,
}

impl Compiler<'_> {
    fn program(&mut self, node: &Node, is_inner: bool) -> Result<usize> {
        let mut code = vec![];
        self.emit(node, &mut code)?;
        code.push(Instruction::Match);
        let keeps = has(node, &|node| matches!(node, Node::Keep(())));
        self.programs.push(Program { code, keeps, is_inner });
        Ok(self.programs.len() - 1)
    }

    fn emit(&mut self, node: &Node, code: &mut Vec<Instruction>) -> Result<()> {
        self.size += 1;
        if self.size > PROGRAM_LIMIT {
            let message = format!(
                "a regular expression of more than {PROGRAM_LIMIT} steps, counts written out, is not reproduced"
            );
            return Err(Error::new(Class::Unsupported, message));
        }
        match node {
            Node::Set(set) => code.push(Instruction::Set(*set)),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.emit(node, code))?,
            Node::Alternation(nodes) => self.emit_alternation(nodes, code)?,
            Node::Repeat { body, minimum, maximum, greedy } => {
                self.emit_repeat(body, *minimum, *maximum, *greedy, code)?
            }
            Node::Atomic(body) => {
                let program = self.program(body, true)?;
                code.push(Instruction::Atomic(program));
            }
            Node::Look { body, behind, negated } => {
                let reach = behind.then(|| (body.minimum_length(), body.maximum_length()));
                let program = self.program(body, true)?;
                code.push(Instruction::Look { program, reach, negated: *negated });
            }
            Node::Anchor { kind, word } => code.push(Instruction::Anchor { kind: *kind, word: *word }),
            Node::Keep(()) => code.push(Instruction::Keep),
        }
        Ok(())
    }

    fn emit_alternation(&mut self, nodes: &[Node], code: &mut Vec<Instruction>) -> Result<()> {
        let Some((last, others)) = nodes.split_last() else { return Ok(()) };
        let mut jumps = vec![];
        for node in others {
            let split = hole(code);
            self.emit(node, code)?;
            jumps.push(hole(code));
            code[split] = Instruction::Split { first: split as u32 + 1, second: code.len() as u32, head: None };
        }
        self.emit(last, code)?;
        for jump in jumps {
            code[jump] = Instruction::Jump(code.len() as u32);
        }
        Ok(())
    }

    fn emit_repeat(
        &mut self,
        body: &Node,
        minimum: u32,
        maximum: Option<u32>,
        greedy: bool,
        code: &mut Vec<Instruction>,
    ) -> Result<()> {
        for _ in 0..minimum {
            self.emit(body, code)?;
        }
        let ways = |split: usize, after: usize| match (split as u32 + 1, after as u32) {
            (inside, after) if greedy => Instruction::Split { first: inside, second: after, head: None },
            (inside, after) => Instruction::Split { first: after, second: inside, head: None },
        };
        let Some(maximum) = maximum else {
            return self.emit_loop(body, greedy, code);
        };
        let mut splits = vec![];
        for _ in minimum..maximum {
            splits.push(hole(code));
            self.emit(body, code)?;
        }
        for split in splits {
            code[split] = ways(split, code.len());
        }
        Ok(())
    }

    /// A loop without an end. A round that matched the empty text leaves it.
    ///
    /// Oniguruma looks at the next character before each round of a greedy loop whose body begins with a fixed one, and
    /// does not count that as a try.
    fn emit_loop(&mut self, body: &Node, greedy: bool, code: &mut Vec<Instruction>) -> Result<()> {
        let split = hole(code);
        let can_be_empty = body.minimum_length() == 0;
        let number = self.loops;
        if can_be_empty {
            self.loops += 1;
            code.push(Instruction::EnterRound(number));
        }
        self.emit(body, code)?;
        if can_be_empty {
            code.push(Instruction::EndRound { number, exit: code.len() as u32 + 2 });
        }
        code.push(Instruction::Jump(split as u32));
        let (inside, after) = (split as u32 + 1, code.len() as u32);
        code[split] = match greedy {
            true => {
                let head = head(body).filter(|&head| !can_be_empty && is_single(&self.sets[head]));
                Instruction::Split { first: inside, second: after, head }
            }
            false => Instruction::Split { first: after, second: inside, head: None },
        };
        Ok(())
    }
}

fn hole(code: &mut Vec<Instruction>) -> usize {
    code.push(Instruction::Match);
    code.len() - 1
}

fn is_single(set: &CodePointSet) -> bool {
    matches!(set.0[..], [first, end] if end == first + 1)
}

/// The set with which a node always begins.
fn head(node: &Node) -> Option<usize> {
    match node {
        Node::Set(set) => Some(*set),
        Node::Sequence(nodes) => head(nodes.first()?),
        Node::Atomic(body) | Node::Repeat { body, minimum: 1.., .. } => head(body),
        _ => None,
    }
}

fn has(node: &Node, what: &impl Fn(&Node) -> bool) -> bool {
    what(node)
        || match node {
            Node::Sequence(nodes) | Node::Alternation(nodes) => nodes.iter().any(|node| has(node, what)),
            Node::Repeat { body, .. } | Node::Atomic(body) | Node::Look { body, .. } => has(body, what),
            Node::Set(_) | Node::Anchor { .. } | Node::Keep(()) => false,
        }
}
