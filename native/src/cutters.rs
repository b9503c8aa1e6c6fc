//! Pre-tokenizers that only cut, in order: by machines where there are some (`cutter.rs`), else by a look at each piece.
//!
//! What has no machine (a pattern that looks far ahead, an odd behavior, a fixed length) is slower to cut, but its pieces
//! go the fast way from there on.

use crate::cache::SKIP;
use crate::cutter::{Cuts, Cutter};
use crate::error::{Error, Result};
use crate::pre_tokenizers::PreTokenizer as PreTokenizers;
use crate::spec::PreTokenizer;
use crate::tables::Tables;

/// All of them, in order.
#[derive(Default)]
pub struct Cutters {
    /// What machines do before anything else.
    machines: Cutter,
    /// What has no machine, each with what machines do after it.
    further: Vec<(PreTokenizers, Cutter)>,
}

impl From<Cutter> for Cutters {
    fn from(machines: Cutter) -> Cutters {
        Cutters { machines, further: vec![] }
    }
}

impl Cutters {
    /// Build those of pre-tokenizers with their JSON paths. None where one of them does more than cut; of a ByteLevel that
    /// cuts, what it writes is left to others.
    pub fn build(parts: &[(String, &PreTokenizer)], tables: &mut Tables) -> Result<Option<Cutters>> {
        if let Some(machines) = tables.make(|| if_supported(Cutter::build(parts)))? {
            return Ok(Some(machines.into()));
        }
        let cuts = |part: &PreTokenizer| {
            PreTokenizers::only_cuts(part) || matches!(part, PreTokenizer::ByteLevel { pattern: Some(_), .. })
        };
        if !parts.iter().all(|(_, part)| cuts(part)) {
            return Ok(None);
        }
        let mut cutters = Cutters::default();
        let mut done = 0;
        while done < parts.len() {
            // As many as there is a machine for together.
            let most = tables.make(|| Cutters::most_together(&parts[done..]))?;
            if most > 0 {
                let machines = tables.make(|| Cutter::build(&parts[done..done + most]))?;
                match cutters.further.last_mut() {
                    Some((_, after)) => *after = machines,
                    None => cutters.machines = machines,
                }
                done += most;
            }
            if let Some((_, part)) = parts.get(done) {
                cutters.further.push((PreTokenizers::build(part), Cutter::default()));
                done += 1;
            }
        }
        Ok(Some(cutters))
    }

    /// How many of the first parts machines can do.
    fn most_together(parts: &[(String, &PreTokenizer)]) -> Result<usize> {
        let mut most = 0;
        while most < parts.len() && if_supported(Cutter::build(&parts[..=most]))?.is_some() {
            most += 1;
        }
        Ok(most)
    }

    /// The machines, where they do it all.
    pub fn only_machines(&self) -> Option<&Cutter> {
        self.further.is_empty().then_some(&self.machines)
    }

    /// Cut a text, and hand over the pieces.
    pub fn each_piece(&self, text: &str, cuts: &mut Cuts, mut visit: impl FnMut(&str)) -> Result<()> {
        let mut failures = vec![];
        self.cut(text.as_bytes(), &[(0, text.len())], cuts, &mut failures);
        if let Some((_, error)) = failures.pop() {
            return Err(error);
        }
        let ends = cuts.starts.iter().skip(1).map(|end| (end & !SKIP) as usize).chain([text.len()]);
        let kept = cuts.starts.iter().zip(ends).filter(|(&start, _)| start & SKIP == 0);
        kept.for_each(|(&start, end)| visit(&text[start as usize..end]));
        Ok(())
    }

    /// Cut the pieces of a text, as `Cutter::cut` does. A piece in which a search was given up is in no pretoken; where it
    /// begins is told.
    pub fn cut(&self, text: &[u8], pieces: &[(usize, usize)], cuts: &mut Cuts, failures: &mut Vec<(usize, Error)>) {
        self.machines.cut(text, pieces, cuts);
        for (part, machines) in &self.further {
            cut_one_by_one(part, text, cuts, failures);
            machines.cut_again(text, cuts);
        }
    }
}

/// Cut each of the pieces by a pre-tokenizer that only cuts.
fn cut_one_by_one(part: &PreTokenizers, text: &[u8], cuts: &mut Cuts, failures: &mut Vec<(usize, Error)>) {
    let mut old = std::mem::replace(&mut cuts.starts, std::mem::take(&mut cuts.room));
    let starts = &mut cuts.starts;
    starts.clear();
    old.push(text.len() as u32);
    for bounds in old.windows(2) {
        let (start, end) = ((bounds[0] & !SKIP) as usize, (bounds[1] & !SKIP) as usize);
        if bounds[0] & SKIP != 0 {
            starts.push(bounds[0]);
            continue;
        }
        let piece = simdutf8::basic::from_utf8(&text[start..end]);
        let spans = piece.map_err(|_| Error::encode("a piece is not UTF-8")).and_then(|piece| part.spans(piece));
        let mut done = start;
        for (first, behind) in spans.unwrap_or_else(|error| {
            failures.push((start, error));
            vec![]
        }) {
            if done < start + first {
                starts.push(done as u32 | SKIP);
            }
            starts.push((start + first) as u32);
            done = start + behind;
        }
        if done < end {
            starts.push(done as u32 | SKIP);
        }
    }
    cuts.room = old;
}

/// None: another road has to do.
pub fn if_supported<T>(built: Result<T>) -> Result<Option<T>> {
    match built {
        Ok(built) => Ok(Some(built)),
        Err(error) if error.code == "native-unsupported" => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_text::AlignedText;
    use crate::patterns::tree::{CodePointSet, Node, Tree};
    use crate::spec::{Behavior, Pattern};

    fn split(set: [u32; 2], behavior: Behavior) -> PreTokenizer {
        let looked = Node::Look {
            body: Box::new(Node::Sequence(vec![Node::Set(0), Node::Set(0)])),
            behind: false,
            negated: true,
        };
        let root = Node::Sequence(vec![Node::Set(0), looked]);
        let tree = Tree { sets: vec![CodePointSet(set.to_vec())], root, ..Tree::default() };
        PreTokenizer::Split { pattern: Pattern::Regex(tree), behavior, invert: false }
    }

    #[test]
    fn pieces_are_those_of_the_general_form() {
        let digits = PreTokenizer::Digits { individual_digits: true };
        let fixed = PreTokenizer::FixedLength { length: 3 };
        let scripts = PreTokenizer::UnicodeScripts {};
        let removed = split([98, 100], Behavior::Removed);
        let merged = split([97, 123], Behavior::MergedWithNext);
        let lists: [&[&PreTokenizer]; 7] = [
            &[&digits],
            &[&fixed],
            &[&scripts, &digits],
            &[&digits, &removed, &fixed],
            &[&merged, &digits],
            &[&digits, &scripts, &removed],
            &[&removed, &digits, &merged],
        ];
        for list in lists {
            let parts: Vec<(String, &PreTokenizer)> = list.iter().map(|part| (String::new(), *part)).collect();
            let cutters = Cutters::build(&parts, &mut Tables::Built).unwrap().expect("all of them only cut");
            let text = "ab1bbb2cccéé a\u{301}кот 33 中b文bb";
            let pieces = [(0, 6), (8, 8), (8, text.len())].map(|(start, end)| (start, end));
            let (mut cuts, mut failures) = (Cuts::default(), vec![]);
            let some: Vec<(usize, usize)> = pieces.into_iter().filter(|(start, end)| start < end).collect();
            cutters.cut(text.as_bytes(), &some, &mut cuts, &mut failures);
            cuts.starts.push(text.len() as u32);
            let kept = cuts.starts.windows(2).filter(|bounds| bounds[0] & SKIP == 0);
            let found: Vec<&str> = kept.map(|bounds| &text[bounds[0] as usize..(bounds[1] & !SKIP) as usize]).collect();
            let whole = some.iter().map(|&(start, end)| AlignedText::untracked(text[start..end].to_owned())).collect();
            let general = list.iter().try_fold(whole, |pieces, part| PreTokenizers::build(part).pre_tokenize(pieces));
            let expected: Vec<String> = general.unwrap().into_iter().map(|piece| piece.text).collect();
            assert_eq!(found, expected);
            assert!(failures.is_empty());
        }
        let metaspace = crate::spec::PrependScheme::Always;
        let writes = PreTokenizer::Metaspace { replacement: '_', prepend_scheme: metaspace, split: true };
        assert!(Cutters::build(&[(String::new(), &writes)], &mut Tables::Built).unwrap().is_none());
    }
}
