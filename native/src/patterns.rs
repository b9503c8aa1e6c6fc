//! Patterns: where a Split cuts a text.
//!
//! Reading order: `tree.rs` (what comes over the wire), `classes.rs` (code points that a pattern cannot tell apart),
//! `program.rs` (threads), `transducer.rs` (the machine that is run), `windows.rs` with `cover.rs` and `scan.rs`
//! (what needs no state), `splitter.rs` (running it), `fuse.rs` (several
//! Splits as one), `backtrack.rs` (the matcher for the patterns that have no such machine), `machine.rs` with
//! `machine_program.rs` (the one that takes over where it would not come to an end).

pub mod backtrack;
pub mod classes;
pub mod cover;
pub mod fuse;
pub mod machine;
pub mod machine_program;
pub mod program;
pub mod scan;
pub mod splitter;
pub mod transducer;
pub mod tree;
pub mod windows;

use classes::Classes;
use program::Program;
use transducer::Transducer;
use tree::{CodePointSet, Tree};

/// Build the machine that cuts a text into the matches of a pattern and the gaps between them. `gaps` parts the code
/// points into the kinds of gaps (see `program.rs`); empty: all gaps are of one kind.
///
/// The error says why the pattern has no machine.
pub fn build_transducer(tree: &Tree, gaps: &[CodePointSet]) -> Result<Transducer, &'static str> {
    let newline = CodePointSet(vec![10, 11]);
    let sets: Vec<CodePointSet> = tree.sets.iter().chain(gaps).cloned().chain([newline]).collect();
    let classes = Classes::of_sets(&sets).ok_or("the pattern tells too many classes of characters apart")?;
    let kinds: Vec<u64> = match gaps {
        [] => vec![u64::MAX],
        _ => classes.members[tree.sets.len()..tree.sets.len() + gaps.len()].to_vec(),
    };
    let program = Program::build(tree, &classes, &kinds)?;
    Transducer::build(&program, classes)
}
