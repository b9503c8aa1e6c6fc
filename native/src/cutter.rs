//! Where texts are cut into pretokens: the pre-tokenizers that only cut, as transducers, one stage after the other.
//!
//! A stage cuts each piece of the one before. Splits that can be fused (`patterns/fuse.rs`) are one stage; a stage may drop
//! its matches or its gaps. What rewrites texts (Metaspace, a prefix space) is not here.

use crate::cache::SKIP;
use crate::character_table::members;
use crate::error::{Error, Result};
use crate::patterns::build_transducer;
use crate::patterns::fuse::{fuse, Fused};
use crate::patterns::splitter::{Splitter, Stretch};
use crate::patterns::transducer::Transducer;
use crate::patterns::tree::{CodePointSet, Node, Retries, Tree};
use crate::spec::{Behavior, Pattern, PreTokenizer};
use crate::stored_struct;
use crate::unicode;

/// One stage.
pub struct Stage {
    /// Where it cuts.
    pub machine: Transducer,
    /// For each class of first characters, whether the piece is dropped.
    dropped: Option<Vec<bool>>,
}
stored_struct!(Stage { machine, dropped });

/// All stages, in order.
#[derive(Default)]
pub struct Cutter {
    stages: Vec<Stage>,
}
stored_struct!(Cutter { stages });

/// What one thread needs to cut, and where the pieces of its last text begin.
#[derive(Default)]
pub struct Cuts {
    splitter: Splitter,
    stretches: Vec<Stretch>,
    /// Room for the beginnings of the pieces that are cut further.
    pub room: Vec<u32>,
    /// Where pieces begin; with the bit `SKIP`, what is no pretoken.
    pub starts: Vec<u32>,
}

impl Cuts {
    /// Put pieces of a text of this length in, which lie between those that were cut, and are whole.
    pub fn put_in(&mut self, length: usize, pieces: &[(usize, usize)]) {
        let old = std::mem::replace(&mut self.starts, std::mem::take(&mut self.room));
        self.starts.clear();
        let mut pieces = pieces.iter().peekable();
        let ends = old.iter().skip(1).map(|end| (end & !SKIP) as usize).chain([length]);
        for (&start, end) in old.iter().zip(ends) {
            if start & SKIP == 0 {
                self.starts.push(start);
                continue;
            }
            let mut done = (start & !SKIP) as usize;
            while let Some(&(first, behind)) = pieces.next_if(|piece| piece.0 < end) {
                self.starts.extend((done < first).then_some(done as u32 | SKIP));
                self.starts.push(first as u32);
                done = behind;
            }
            self.starts.extend((done < end).then_some(done as u32 | SKIP));
        }
        self.room = old;
    }
}

/// A Split before it is compiled: its pattern, and what is dropped of matches and gaps.
struct Part {
    fused: Fused,
    drops_matches: bool,
    drops_gaps: bool,
    place: String,
}

impl Cutter {
    /// Compile pre-tokenizers that only cut, in order.
    pub fn build(parts: &[(String, &PreTokenizer)]) -> Result<Cutter> {
        let parts = parts.iter().map(|(place, part)| Part::new(part, place)).collect::<Result<Vec<_>>>()?;
        let mut fused: Vec<Part> = vec![];
        for part in parts.into_iter().rev() {
            if let Some(after) = fused.last_mut().filter(|_| !part.drops_matches && !part.drops_gaps) {
                if let Some(both) = fuse(&part.fused.tree, &after.fused) {
                    if build_transducer(&both.tree, &both.gaps).is_ok() {
                        after.fused = both;
                        continue;
                    }
                }
            }
            fused.push(part);
        }
        let stages = fused.into_iter().rev().map(Part::compile).collect::<Result<Vec<_>>>()?;
        Ok(Cutter { stages })
    }

    /// Compile a pre-tokenizer that drops what lies between its matches, spaces among it, in a form that drops nothing:
    /// a space before a match belongs to it, and what is to be dropped begins with a character of the set that comes
    /// along (after that space). None where it is no such pre-tokenizer.
    pub fn absorbing(part: &PreTokenizer) -> Option<(Cutter, CodePointSet)> {
        let (tree, dropped) = matches_of(part)?;
        Some((absorbed(tree)?, dropped))
    }

    /// For each byte, whether what a pre-tokenizer of `matches_of` keeps is surely one piece here, too, if it begins with
    /// this byte: whatever branch of its pattern can match there is a set, or one again and again, and all texts of the
    /// characters of that set are one piece.
    pub fn keeps_matches(&self, part: &PreTokenizer) -> Vec<bool> {
        let mut kept = vec![false; 256];
        let Some((tree, dropped)) = matches_of(part) else { return kept };
        let all = dropped.complement();
        let mut split = CodePointSet::default();
        for branch in branches(&tree.root) {
            let Some((set, is_set)) = first_of(branch, &tree) else { return kept };
            let is_whole = |stage: &Stage| stage.dropped.is_none() && stage.machine.keeps_whole(set);
            if !is_set || !self.stages.iter().all(is_whole) {
                split = split.union(set);
            }
        }
        let mut room = [0; 4];
        let mut first_byte = |code: u32| {
            char::from_u32(code).map(|character| usize::from(character.encode_utf8(&mut room).as_bytes()[0]))
        };
        // What is dropped is never the beginning; a byte beyond ASCII begins other characters as well.
        members(&all).filter_map(&mut first_byte).for_each(|byte| kept[byte] = true);
        let split = split.intersection(&all);
        members(&split).filter_map(&mut first_byte).for_each(|byte| kept[byte] = false);
        kept
    }

    /// The machine, where there is one stage that drops nothing, so that long texts can be cut in parts.
    pub fn only_machine(&self) -> Option<&Transducer> {
        match &self.stages[..] {
            [stage] if stage.dropped.is_none() => Some(&stage.machine),
            _ => None,
        }
    }

    /// Cut the pieces of a text (start, end), which are in order and not empty. What lies between them is in no
    /// pretoken. Afterwards `cuts.starts` has the beginnings of pretokens and of what lies between.
    pub fn cut(&self, text: &[u8], pieces: &[(usize, usize)], cuts: &mut Cuts) {
        cuts.starts.clear();
        let Some((first, rest)) = self.stages.split_first() else {
            // Nothing cuts: each piece is a pretoken.
            let mut done = 0;
            for &(start, end) in pieces {
                if done < start {
                    cuts.starts.push(done as u32 | SKIP);
                }
                cuts.starts.push(start as u32);
                done = end;
            }
            if done < text.len() {
                cuts.starts.push(done as u32 | SKIP);
            }
            return;
        };
        let whole = |machine: &Transducer, start, end| Stretch { start, end, row: machine.start, is_last: true };
        cuts.stretches.clear();
        cuts.stretches.extend(pieces.iter().map(|&(start, end)| whole(&first.machine, start, end)));
        first.cut(text, cuts);
        Cutter::cut_further(rest, text, cuts);
    }

    /// Cut the pieces that others have cut (`cuts.starts`).
    pub fn cut_again(&self, text: &[u8], cuts: &mut Cuts) {
        Cutter::cut_further(&self.stages, text, cuts);
    }

    fn cut_further(stages: &[Stage], text: &[u8], cuts: &mut Cuts) {
        let whole = |machine: &Transducer, start, end| Stretch { start, end, row: machine.start, is_last: true };
        for stage in stages {
            cuts.stretches.clear();
            let bounds = cuts.starts.iter().copied().chain([text.len() as u32]);
            let ends = bounds.skip(1).map(|end| (end & !SKIP) as usize);
            let kept = cuts.starts.iter().zip(ends).filter(|(&start, _)| start & SKIP == 0);
            cuts.stretches.extend(kept.map(|(&start, end)| whole(&stage.machine, start as usize, end)));
            stage.cut(text, cuts);
        }
    }

    /// Cut one stretch of a text with the machine of `only_machine`.
    pub fn cut_stretch(machine: &Transducer, text: &[u8], row: u32, is_last: bool, cuts: &mut Cuts) {
        cuts.splitter.run(machine, text, &[Stretch { start: 0, end: text.len(), row, is_last }]);
        cuts.splitter.starts_into(&mut cuts.starts);
    }
}

impl Stage {
    /// Cut the stretches; what lies between them is skipped.
    fn cut(&self, text: &[u8], cuts: &mut Cuts) {
        cuts.splitter.run(&self.machine, text, &cuts.stretches);
        let mut done = 0;
        let mut has_holes = false;
        for stretch in &cuts.stretches {
            if done < stretch.start {
                cuts.splitter.mark(done);
                has_holes = true;
            }
            done = stretch.end;
        }
        if done < text.len() {
            cuts.splitter.mark(done);
            has_holes = true;
        }
        cuts.splitter.starts_into(&mut cuts.starts);
        if has_holes {
            let mut starts = cuts.starts.iter_mut();
            let mut done = 0;
            for stretch in cuts.stretches.iter().map(|s| (s.start, s.end)).chain([(text.len(), 0)]) {
                if done < stretch.0 {
                    if let Some(hole) = starts.find(|start| **start as usize == done) {
                        *hole |= SKIP;
                    }
                }
                done = stretch.1;
            }
        }
        if let Some(dropped) = &self.dropped {
            for start in &mut cuts.starts {
                if *start & SKIP == 0 && dropped[self.class_at(text, *start as usize)] {
                    *start |= SKIP;
                }
            }
        }
    }

    fn class_at(&self, text: &[u8], at: usize) -> usize {
        match text[at] {
            byte @ 0..=127 => self.machine.symbol_of[byte as usize] as usize,
            _ => {
                let character =
                    text[at..text.len().min(at + 4)].utf8_chunks().next().and_then(|c| c.valid().chars().next());
                self.machine.classes.of(character.map_or(0, |c| c as u32)) as usize
            }
        }
    }
}

impl Part {
    fn new(part: &PreTokenizer, place: &str) -> Result<Part> {
        let unsupported = |what: &str| Err(Error::unsupported(format!("{what} in this engine"), place));
        if let Some((tree, drops_gaps)) = kinds_tree(part) {
            let fused = Fused { tree, gaps: vec![] };
            return Ok(Part { fused, drops_matches: false, drops_gaps, place: place.to_owned() });
        }
        let (pattern, behavior, invert) = match part {
            PreTokenizer::Split { pattern, behavior, invert } => (pattern, *behavior, *invert),
            PreTokenizer::ByteLevel { pattern: Some(pattern), .. } => (pattern, Behavior::Isolated, false),
            _ => return unsupported("this pre-tokenizer"),
        };
        if matches!(pattern, Pattern::String(text) if text.is_empty()) {
            return unsupported("an empty pattern");
        }
        let tree = pattern.tree();
        if tree.retries != Retries::Free {
            return unsupported("a pattern whose retries count");
        }
        let plain = |tree| Fused { tree, gaps: vec![] };
        let (fused, drops_matches, drops_gaps) = match (behavior, invert, tree.single_set()) {
            (Behavior::Isolated, _, _) => (plain(tree), false, false),
            (Behavior::Removed, _, _) => (plain(tree), !invert, invert),
            (Behavior::Contiguous, _, Some(set)) | (_, false, Some(set)) => {
                (plain(merged(set, behavior)), false, false)
            }
            (Behavior::MergedWithPrevious, ..) => return unsupported("MergedWithPrevious for this pattern"),
            (Behavior::MergedWithNext, ..) => return unsupported("MergedWithNext for this pattern"),
            (Behavior::Contiguous, ..) => return unsupported("Contiguous for this pattern"),
        };
        Ok(Part { fused, drops_matches, drops_gaps, place: place.to_owned() })
    }

    fn compile(self) -> Result<Stage> {
        let refuse = |why: &str| Error::unsupported(format!("{why}: not in this engine"), self.place.clone());
        let mut machine = build_transducer(&self.fused.tree, &self.fused.gaps).map_err(refuse)?;
        machine.find_windows();
        let dropped = match (self.drops_matches, self.drops_gaps) {
            (false, false) => None,
            (drops_matches, drops_gaps) => {
                let is_match = machine.is_match.as_ref();
                let is_match =
                    is_match.ok_or_else(|| refuse("what a piece is does not show in its first character"))?;
                let dropped: Vec<bool> = is_match.iter().map(|&m| if m { drops_matches } else { drops_gaps }).collect();
                dropped.contains(&true).then_some(dropped)
            }
        };
        Ok(Stage { machine, dropped })
    }
}

/// What a pre-tokenizer keeps, as matches, and the characters with which what it drops begins; None where it does not drop
/// what lies between matches, spaces among it, or where that does not show in single characters.
pub fn matches_of(part: &PreTokenizer) -> Option<(Tree, CodePointSet)> {
    let (tree, dropped) = match part {
        PreTokenizer::Split { pattern: Pattern::Regex(tree), .. } if tree.retries != Retries::Free => return None,
        PreTokenizer::Split { pattern: Pattern::Regex(tree), behavior: Behavior::Removed, invert: true } => {
            (tree.clone(), sure_characters(&tree.root, tree)?.complement())
        }
        PreTokenizer::Split { pattern: Pattern::Regex(tree), behavior: Behavior::Removed, invert: false } => {
            let set = sure_characters(&tree.root, tree).filter(|_| tree.sets.len() == 1)?;
            (runs(vec![set.complement()]), set)
        }
        _ => {
            let (tree, _) = kinds_tree(part).filter(|(_, drops_gaps)| *drops_gaps)?;
            let dropped = sure_characters(&tree.root, &tree)?.complement();
            (tree, dropped)
        }
    };
    let is_apart = tree.sets.iter().all(|set| set.intersection(&dropped).is_empty());
    if !is_apart || !dropped.contains(' ' as u32) || !looks_ahead_only(&tree.root) {
        return None;
    }
    Some((tree, dropped))
}

/// A cutter for matches, to each of which the space before it belongs.
pub fn absorbed(tree: Tree) -> Option<Cutter> {
    absorbed_one_of(CodePointSet(vec![' ' as u32, ' ' as u32 + 1]), tree)
}

/// A cutter for matches, to each of which a character of a set belongs that stands before it, and is in none.
pub fn absorbed_one_of(set: CodePointSet, mut tree: Tree) -> Option<Cutter> {
    let space = Node::Set(tree.index_of(set));
    let before = Node::Repeat { body: Box::new(space), minimum: 0, maximum: Some(1), greedy: true };
    tree.root = Node::Sequence(vec![before, tree.root]);
    let mut machine = build_transducer(&tree, &[]).ok()?;
    machine.find_windows();
    Some(Cutter { stages: vec![Stage { machine, dropped: None }] })
}

/// The pieces of a pre-tokenizer that cuts by kinds of characters, as matches, and whether what lies between goes.
fn kinds_tree(part: &PreTokenizer) -> Option<(Tree, bool)> {
    let rust = unicode::rust();
    let behaving = |set: CodePointSet, behavior: Behavior| match behavior {
        Behavior::Removed => (runs(vec![set.complement()]), true),
        Behavior::Isolated => (runs_and_singles(set.complement(), set), false),
        _ => (merged(&set, behavior), false),
    };
    Some(match part {
        PreTokenizer::BertPreTokenizer {} => {
            let (space, mark) = (rust.set("whitespace"), rust.set("punctuation"));
            (runs_and_singles(space.union(&mark).complement(), mark), true)
        }
        PreTokenizer::Whitespace {} => {
            let (space, word) = (rust.set("regex_s"), rust.set("regex_w"));
            (runs(vec![word.clone(), space.union(&word).complement()]), true)
        }
        PreTokenizer::WhitespaceSplit {} => behaving(rust.set("whitespace"), Behavior::Removed),
        PreTokenizer::CharDelimiterSplit { delimiter } => {
            behaving(CodePointSet(vec![*delimiter as u32, *delimiter as u32 + 1]), Behavior::Removed)
        }
        PreTokenizer::Punctuation { behavior } => behaving(rust.set("punctuation"), *behavior),
        PreTokenizer::Digits { individual_digits: true } => behaving(rust.set("numeric"), Behavior::Isolated),
        PreTokenizer::Digits { individual_digits: false } => behaving(rust.set("numeric"), Behavior::Contiguous),
        _ => return None,
    })
}

fn branches(node: &Node) -> &[Node] {
    match node {
        Node::Alternation(branches) => branches,
        _ => std::slice::from_ref(node),
    }
}

/// The characters with which a branch can begin, and whether it is that set, or one of it again and again, and no more.
fn first_of<'a>(branch: &Node, tree: &'a Tree) -> Option<(&'a CodePointSet, bool)> {
    let mut first = branch;
    let mut is_set = true;
    loop {
        match first {
            Node::Set(index) => return Some((&tree.sets[*index], is_set)),
            Node::Repeat { body, minimum: 1.., .. } => {
                is_set &= matches!((first, &**body), (Node::Repeat { minimum: 1, .. }, Node::Set(_)));
                first = body;
            }
            Node::Sequence(parts) => {
                is_set &= parts.len() == 1;
                first = parts.first()?;
            }
            _ => return None,
        }
    }
}

/// The characters with which a match surely begins, where a pattern can begin with no others: it is an alternation in
/// which the first characters of all branches are also those of branches that are a set, or one again and again.
fn sure_characters(node: &Node, tree: &Tree) -> Option<CodePointSet> {
    let mut sure = CodePointSet::default();
    let mut possible = CodePointSet::default();
    for branch in branches(node) {
        let (set, is_sure) = first_of(branch, tree)?;
        possible = possible.union(set);
        if is_sure {
            sure = sure.union(set);
        }
    }
    (sure.union(&possible) == sure).then_some(sure)
}

/// Whether a pattern asks for nothing that lies before a match.
fn looks_ahead_only(node: &Node) -> bool {
    match node {
        Node::Set(_) => true,
        Node::Sequence(parts) | Node::Alternation(parts) => parts.iter().all(looks_ahead_only),
        Node::Repeat { body, .. } => looks_ahead_only(body),
        _ => false,
    }
}

/// Runs of each of the sets.
pub fn runs(sets: Vec<CodePointSet>) -> Tree {
    let run = |set| Node::Repeat { body: Box::new(Node::Set(set)), minimum: 1, maximum: None, greedy: true };
    let root = Node::Alternation((0..sets.len()).map(run).collect());
    Tree { sets, root, ..Tree::default() }
}

/// Runs of one set, and single characters of another.
pub fn runs_and_singles(run: CodePointSet, single: CodePointSet) -> Tree {
    let mut tree = runs(vec![run]);
    tree.sets.push(single);
    if let Node::Alternation(branches) = &mut tree.root {
        branches.insert(0, Node::Set(1));
    }
    tree
}

/// The pieces of a Split at each character of a set, as matches: see `CHARACTER_TEMPLATES` in the reference engine.
fn merged(set: &CodePointSet, behavior: Behavior) -> Tree {
    let (point, other) = (Node::Set(0), Node::Set(1));
    let repeat =
        |body: &Node, minimum, maximum| Node::Repeat { body: Box::new(body.clone()), minimum, maximum, greedy: true };
    let root = match behavior {
        Behavior::MergedWithPrevious => {
            Node::Alternation(vec![Node::Sequence(vec![repeat(&other, 1, None), repeat(&point, 0, Some(1))]), point])
        }
        Behavior::MergedWithNext => {
            Node::Alternation(vec![Node::Sequence(vec![repeat(&point, 0, Some(1)), repeat(&other, 1, None)]), point])
        }
        _ => Node::Alternation(vec![repeat(&point, 1, None), repeat(&other, 1, None)]),
    };
    Tree { sets: vec![set.clone(), set.complement()], root, ..Tree::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn pieces(part: &PreTokenizer, text: &str) -> Vec<String> {
        let (cutter, _) = Cutter::absorbing(part).expect("it drops whitespace");
        let mut cuts = Cuts::default();
        cutter.cut(text.as_bytes(), &[(0, text.len())], &mut cuts);
        cuts.starts.push(text.len() as u32);
        cuts.starts.windows(2).map(|bounds| text[bounds[0] as usize..bounds[1] as usize].to_owned()).collect()
    }

    #[test]
    fn a_space_belongs_to_what_comes_after_it() {
        let words = pieces(&PreTokenizer::WhitespaceSplit {}, "a bc  d\n e ");
        assert_eq!(words, ["a", " bc", " ", " d", "\n", " e", " "]);
        let bert = pieces(&PreTokenizer::BertPreTokenizer {}, "a, b ,c\n");
        assert_eq!(bert, ["a", ",", " b", " ,", "c", "\n"]);
        assert!(Cutter::absorbing(&PreTokenizer::Digits { individual_digits: true }).is_none());
    }

    fn set(characters: &str) -> CodePointSet {
        let mut codes: Vec<u32> = characters.chars().map(|character| character as u32).collect();
        codes.sort_unstable();
        CodePointSet(codes.into_iter().flat_map(|code| [code, code + 1]).collect())
    }

    /// `'s`, runs of letters, digits one by one or in runs, runs of others.
    fn pattern(letters: &str, others: &str, has_single_digits: bool) -> Pattern {
        let run = |index| Node::Repeat { body: Box::new(Node::Set(index)), minimum: 1, maximum: None, greedy: true };
        let digits = if has_single_digits { Node::Set(1) } else { run(1) };
        let short = Node::Sequence(vec![Node::Set(3), Node::Set(4)]);
        let root = Node::Alternation(vec![short, run(0), digits, run(2)]);
        let sets = vec![set(letters), set("0123456789"), set(others), set("'"), set("s")];
        Pattern::Regex(Tree { sets, root, ..Tree::default() })
    }

    #[test]
    fn matches_that_are_kept_whole_are_one_piece() {
        let mut random = Random(5);
        for (others, first_single, second_single, kept) in [
            ("!?'", true, false, "as1é中!?"),
            ("!?'", false, true, "asé中!?"),
            ("!?é'", false, false, "1!?"),
            ("!'", false, false, "as1é中"),
        ] {
            let letters = if others.contains('é') { "as中" } else { "asé中" };
            let first = PreTokenizer::Split {
                pattern: pattern("asé中", "!?'", first_single),
                behavior: Behavior::Removed,
                invert: true,
            };
            let second = PreTokenizer::Split {
                pattern: pattern(letters, others, second_single),
                behavior: Behavior::Isolated,
                invert: false,
            };
            let (before, dropped) = Cutter::absorbing(&first).expect("it drops spaces");
            let cutter = Cutter::build(&[(String::new(), &second)]).unwrap();
            let found = cutter.keeps_matches(&first);
            let expected: Vec<u8> = kept.chars().map(|first| first.to_string().as_bytes()[0]).collect();
            // Digits are in one set.
            let expected = (0..=u8::MAX)
                .filter(|byte| expected.contains(byte) || byte.is_ascii_digit() && expected.contains(&b'1'));
            assert!((0..=u8::MAX).filter(|&byte| found[usize::from(byte)]).eq(expected), "{kept} {found:?}");
            let (mut cuts, mut again) = (Cuts::default(), Cuts::default());
            for _ in 0..500 {
                let letter =
                    |random: &mut Random| ["a", "s", "é", "中", "1", "2", "!", "?", "'", " "][random.below(10)];
                let text: String = (0..random.below(20)).map(|_| letter(&mut random)).collect();
                if text.is_empty() {
                    continue;
                }
                before.cut(text.as_bytes(), &[(0, text.len())], &mut cuts);
                cuts.starts.push(text.len() as u32);
                for bounds in cuts.starts.windows(2) {
                    let piece = &text[bounds[0] as usize..bounds[1] as usize];
                    let piece = piece.strip_prefix(' ').unwrap_or(piece);
                    let Some(first) = piece.chars().next().filter(|&first| !dropped.contains(first as u32)) else {
                        continue;
                    };
                    cutter.cut(piece.as_bytes(), &[(0, piece.len())], &mut again);
                    let is_kept = found[usize::from(first.to_string().as_bytes()[0])];
                    assert!(!is_kept || again.starts.len() == 1, "{piece:?}");
                }
            }
        }
    }
}
