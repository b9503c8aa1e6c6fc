//! Steps of a normalizer that wait until a piece is new, so that a text is cut as it is.
//!
//! Where each character becomes a text of its own, it is known beforehand what the pre-tokenizer will take it for. So the raw
//! text is cut as the normalized one would be, by the sets of characters that become those of the pattern; and only
//! pieces that the cache does not know are normalized (`rest.rs`). What does not work character by character, like NFC, is
//! done to the whole text before.
//!
//! There are two cases. Where each character becomes one (Lowercase; a run of whitespace that becomes a space is as good,
//! where the pre-tokenizer drops it), any pattern that asks for nothing outside of its matches finds the same. Where
//! characters become none or several (BertNormalizer), the pattern has to be one of runs of a set and of single characters of
//! another: then a text ends at whatever becomes one of the latter, or of what is dropped, and what becomes nothing is
//! of the run that it stands in.

use std::sync::Arc;

use memchr::memmem::Finder;

use crate::character_table::{members, CharacterSet};
use crate::compiled_pattern::run_of_set;
use crate::cutter::{absorbed, matches_of, runs_and_singles, Cutter};
use crate::error::Result;
use crate::mapping::{Became, Mapping};
use crate::marked_words::MarkedWords;
use crate::normalizers::Normalizer;
use crate::patterns::tree::{CodePointSet, Node, Tree};
use crate::spec::{self, Pattern};
use crate::words;

/// Characters that become several where the others become one: so many are replaced beforehand.
const MOST_ODD: usize = 2;
/// Added tokens of the second pass, each of which is looked for by itself.
const MOST_SOUGHT: usize = 8;

/// What waits.
pub struct Late {
    normalizer: Arc<Normalizer>,
    /// Of words (`words.rs`): the normalizer as a table, which refuses some.
    words: Option<Mapping>,
    /// What is dropped at the ends of a normalized piece.
    dropped: CharacterSet,
    /// For each byte, whether what is dropped may begin with it.
    begins_dropped: [bool; 256],
    /// Parts of the added tokens that are looked for in normalized text: they are in the raw text as they are.
    sought: Vec<Finder<'static>>,
    /// Of words before a Metaspace (`marked_words.rs`).
    marked: Option<MarkedWords>,
}

impl Late {
    /// Whether an added token may be in the normalized text; false is a proof that there is none.
    pub fn may_have_added(&self, text: &str) -> bool {
        if let (Some(marked), Some(table)) = (&self.marked, &self.words) {
            return marked.may_have_added(table, text);
        }
        self.sought.iter().any(|finder| finder.find(text.as_bytes()).is_some())
    }

    /// What waits of a normalizer that sees no further than a word, before a pre-tokenizer that keeps runs of characters;
    /// and the set of the characters that part words. None: it is none.
    pub fn of_words(normalizer: &Arc<Normalizer>, first: &spec::PreTokenizer) -> Option<(Late, CodePointSet)> {
        let (tree, dropped) = matches_of(first)?;
        let (run, single) = kinds_of(&tree)?;
        if single.0.is_empty() && run == dropped.complement() {
            let steps = words::flat(normalizer);
            let separators = words::separators(&steps, &dropped)?;
            let table = words::table(&steps);
            return Some((Late::new(Arc::clone(normalizer), Some(table), &dropped, vec![]), separators));
        }
        None
    }

    /// What waits of a normalizer before a Metaspace. None: it is none that can wait there.
    pub fn of_marked_words(normalizer: &Arc<Normalizer>, first: &spec::PreTokenizer, added: &[String]) -> Option<Late> {
        let (marked, table) = MarkedWords::of(normalizer, first, added)?;
        let late = Late::new(Arc::clone(normalizer), Some(table), &CodePointSet::default(), vec![]);
        Some(Late { marked: Some(marked), ..late })
    }

    /// How words before a Metaspace wait, if it is such.
    pub fn marked(&self) -> Option<&MarkedWords> {
        self.marked.as_ref()
    }

    /// How much of a stripped text can be done word by word, before a Metaspace.
    pub fn plain_length(&self, text: &str) -> usize {
        match (&self.marked, &self.words) {
            (Some(marked), Some(table)) => marked.plain_length(table, text),
            _ => text.len(),
        }
    }

    fn new(
        normalizer: Arc<Normalizer>,
        words: Option<Mapping>,
        dropped: &CodePointSet,
        sought: Vec<Finder<'static>>,
    ) -> Late {
        let mut begins_dropped = [false; 256];
        let first_byte = |code: u32| char::from_u32(code).map_or(0, |c| c.encode_utf8(&mut [0; 4]).as_bytes()[0]);
        for range in dropped.0.chunks_exact(2) {
            // No range is in two parts, of which surrogates are in the middle.
            let bytes = usize::from(first_byte(range[0]))..=usize::from(first_byte(range[1] - 1));
            begins_dropped[bytes].fill(true);
        }
        Late { normalizer, words, dropped: CharacterSet::of_set(dropped), begins_dropped, sought, marked: None }
    }

    /// Whether what waits is to see the space before a piece, too.
    pub fn sees_spaces(&self) -> bool {
        self.words.is_some()
    }

    /// Whether the first pre-tokenizer, which comes after this, leaves a normalized piece as it is.
    pub fn is_one_word(&self, piece: &[u8]) -> bool {
        if self.marked.is_some() {
            return false;
        }
        let may_begin = piece.iter().fold(false, |any, &byte| any | self.begins_dropped[usize::from(byte)]);
        self.words.is_some()
            && !(may_begin
                && std::str::from_utf8(piece).is_ok_and(|piece| piece.contains(|c| self.dropped.contains(c))))
    }

    /// Append the normalized text.
    pub fn write(&self, text: &str, result: &mut String) -> Result<()> {
        match &self.marked {
            Some(marked) => marked.write(text, result),
            None => self.normalizer.normalize(text, result),
        }
    }

    /// A normalized piece without what is dropped.
    pub fn kept<'a>(&self, piece: &'a str) -> &'a str {
        if self.marked.is_some() {
            return piece.trim_end_matches(' ');
        }
        piece.trim_matches(|character| self.dropped.contains(character))
    }

    /// Append a normalized piece. False: it is not UTF-8, or that fails.
    pub fn write_piece(&self, piece: &[u8], result: &mut Vec<u8>) -> bool {
        let mapping = self.words.as_ref().or_else(|| self.normalizer.mapping());
        if mapping.is_some_and(|mapping| mapping.apply_short(piece, result)) {
            return true;
        }
        let Ok(text) = simdutf8::basic::from_utf8(piece) else { return false };
        if self.words.as_ref().is_some_and(|words| !words.changes(text)) {
            result.extend_from_slice(piece);
            return true;
        }
        let mut written = String::new();
        if self.write(text, &mut written).is_err() {
            return false;
        }
        result.extend_from_slice(written.as_bytes());
        true
    }

    /// A normalized piece without what is dropped, which is at both ends or at none; or at the end of words only, where the
    /// first pre-tokenizer comes after this.
    pub fn kept_bytes<'a>(&self, mut piece: &'a [u8]) -> &'a [u8] {
        while let [inner @ .., b' '] = piece {
            piece = inner;
        }
        if self.marked.is_some() {
            return piece;
        }
        while let [b' ', inner @ ..] = piece {
            piece = inner;
        }
        if piece.first().is_none_or(|&first| !self.begins_dropped[usize::from(first)]) {
            return piece;
        }
        std::str::from_utf8(piece).map_or(piece, |piece| self.kept(piece).as_bytes())
    }
}

/// A normalizer in two parts, before what can wait is known to be able to.
pub struct Waiting {
    /// What is done to the whole text.
    pub whole: Option<Arc<Normalizer>>,
    normalizer: Arc<Normalizer>,
    tree: Tree,
    dropped: CodePointSet,
    /// The sets of which the tree has runs and single characters; None: each character becomes one.
    kinds: Option<(CodePointSet, CodePointSet)>,
    sought: Vec<Finder<'static>>,
}

impl Waiting {
    /// Part a normalizer before a pre-tokenizer that begins with this one. None where nothing can wait. `added` are the
    /// added tokens that are looked for in normalized text, as they are there.
    pub fn of(
        spec: &spec::Normalizer,
        whole: &Arc<Normalizer>,
        first: &spec::PreTokenizer,
        added: &[String],
    ) -> Result<Option<Waiting>> {
        let Some((tree, dropped)) = matches_of(first) else { return Ok(None) };
        let kinds = kinds_of(&tree);
        let mut parts = vec![];
        flat_normalizers(Some(spec), &mut parts);
        let mut before = parts.len();
        let mut odd = vec![];
        // What runs become.
        let mut run_contents = String::new();
        let normalizer = match parts.last() {
            Some(spec::Normalizer::BertNormalizer { .. }) => {
                before -= 1;
                match before {
                    0 => Arc::clone(whole),
                    _ => Arc::new(Normalizer::build(parts[before], "$.normalizer")?),
                }
            }
            _ => {
                let mut steps: Vec<Step> = vec![];
                while let Some(part) = before.checked_sub(1).map(|at| parts[at]) {
                    let Some(step) = Step::of(part)? else { break };
                    if let Step::Run(_, content) = &step {
                        // Many of it have to be as good as one.
                        let becomes = applied(&steps, *content);
                        if !becomes.chars().all(|character| dropped.contains(character as u32)) {
                            break;
                        }
                        run_contents.push_str(&becomes);
                    }
                    steps.insert(0, step);
                    before -= 1;
                }
                let mut mapping = composed(&steps);
                if kinds.is_none() {
                    match odd_characters(&mut mapping) {
                        Some(found) => odd = found,
                        None => return Ok(None),
                    }
                }
                mapping.share_pages();
                Arc::new(Normalizer::Characterwise(mapping))
            }
        };
        if before == parts.len() || kinds.is_none() && normalizer.mapping().is_none_or(|mapping| !is_single(mapping)) {
            return Ok(None);
        }
        let sought = match &kinds {
            // To normalize a text once more would change it.
            Some(_) if !added.is_empty() => return Ok(None),
            // There may be many of them where an added token has one.
            _ if added.iter().any(|content| content.contains(|c| run_contents.contains(c))) => return Ok(None),
            _ => match normalizer.mapping().and_then(|mapping| sought_parts(added, mapping)) {
                Some(sought) => sought,
                None => return Ok(None),
            },
        };
        let build = |part: &&spec::Normalizer| Normalizer::build(part, "$.normalizer");
        let mut first_parts = parts[..before].iter().map(build).collect::<Result<Vec<_>>>()?;
        for (character, text) in odd {
            let pattern = Pattern::String(character.to_string());
            first_parts.push(Normalizer::build(&spec::Normalizer::Replace { pattern, content: text }, "$.normalizer")?);
        }
        let whole = (!first_parts.is_empty()).then(|| Arc::new(Normalizer::Chain(first_parts)));
        Ok(Some(Waiting { whole, normalizer, tree, dropped, kinds, sought }))
    }

    /// The cutter for texts in which nothing has been done yet of what waits, and what is dropped in them; None where it cannot
    /// be made, so that nothing can wait.
    pub fn cutter(&self) -> Option<(Cutter, CodePointSet)> {
        let mapping = self.normalizer.mapping()?;
        let (tree, dropped) = match &self.kinds {
            Some((run, single)) => {
                let (run, single) = kinds_before(mapping, run, single)?;
                let dropped = run.union(&single).complement();
                (runs_and_singles(run, single), dropped)
            }
            None => {
                let before = |set: &CodePointSet| singles_before(mapping, set);
                let sets = self.tree.sets.iter().map(before).collect();
                (Tree { sets, ..self.tree.clone() }, before(&self.dropped))
            }
        };
        let is_as_good = dropped.contains(' ' as u32) && tree.sets.iter().all(|s| s.intersection(&dropped).is_empty());
        Some((absorbed(tree).filter(|_| is_as_good)?, dropped))
    }

    /// What waits, behind that cutter.
    pub fn late(self) -> Late {
        Late::new(self.normalizer, None, &self.dropped, self.sought)
    }
}

/// The parts of a normalizer in order.
pub fn flat_normalizers<'a>(normalizer: Option<&'a spec::Normalizer>, flat: &mut Vec<&'a spec::Normalizer>) {
    match normalizer {
        None => {}
        Some(spec::Normalizer::Sequence { normalizers }) => {
            normalizers.iter().for_each(|n| flat_normalizers(Some(n), flat));
        }
        Some(normalizer) => flat.push(normalizer),
    }
}

/// A step that maps characters.
enum Step {
    Map(Mapping),
    /// Runs of a set become one character.
    Run(CodePointSet, char),
}

impl Step {
    fn of(part: &spec::Normalizer) -> Result<Option<Step>> {
        if let spec::Normalizer::Replace { pattern: Pattern::Regex(tree), content } = part {
            let mut characters = content.chars();
            return Ok(match (run_of_set(tree), characters.next(), characters.next()) {
                (Some((set, 1)), Some(character), None) => Some(Step::Run(set.clone(), character)),
                _ => None,
            });
        }
        if !matches!(part, spec::Normalizer::Lowercase {} | spec::Normalizer::StripAccents {}) {
            return Ok(None);
        }
        Ok(match Normalizer::build(part, "$.normalizer")? {
            Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) => Some(Step::Map(mapping)),
            _ => None,
        })
    }

    fn applied(&self, text: &str) -> String {
        let mut result = String::new();
        for character in text.chars() {
            match self {
                Step::Map(mapping) => mapping.of_character(character, |part| result.push_str(part)),
                Step::Run(set, content) if set.contains(character as u32) => result.push(*content),
                Step::Run(..) => result.push(character),
            }
        }
        result
    }
}

/// What all steps make of a character.
fn applied(steps: &[Step], character: char) -> String {
    steps.iter().fold(character.to_string(), |text, step| step.applied(&text))
}

/// All steps as one, where runs that become one character are taken character by character.
fn composed(steps: &[Step]) -> Mapping {
    let mut changed: Vec<u32> = vec![];
    for step in steps {
        match step {
            Step::Map(mapping) => changed.extend(mapping.changed().map(|(character, _)| character as u32)),
            Step::Run(set, _) => changed.extend(members(set)),
        }
    }
    let mut mapping = Mapping::default();
    for character in changed.into_iter().filter_map(char::from_u32) {
        mapping.replace(character as u32, &applied(steps, character));
    }
    mapping
}

/// Take the characters out that become none or several, and give what they become; None where there are too many.
fn odd_characters(mapping: &mut Mapping) -> Option<Vec<(char, String)>> {
    let is_odd = |became: Became| !matches!(became, Became::Text(text) if text.chars().count() == 1);
    let mut odd = vec![];
    for (character, became) in mapping.changed().filter(|entry| is_odd(entry.1)) {
        let Became::Text(text) = became else { return None };
        if odd.len() == MOST_ODD || text.contains(character) {
            return None;
        }
        odd.push((character, text.to_owned()));
    }
    odd.iter().for_each(|(character, _)| mapping.replace(*character as u32, &character.to_string()));
    odd.iter().all(|(_, text)| text.chars().all(|character| mapping.keeps(character))).then_some(odd)
}

/// Whether each character becomes one, which then stays.
fn is_single(mapping: &Mapping) -> bool {
    mapping.changed().all(|(_, became)| match became {
        Became::Text(text) => {
            let mut characters = text.chars();
            characters.next().is_some_and(|first| mapping.keeps(first)) && characters.next().is_none()
        }
        _ => false,
    })
}

/// For each added token of the second pass its longest part that is in a raw text wherever the token is in the normalized
/// one: of characters that only they themselves become.
fn sought_parts(added: &[String], mapping: &Mapping) -> Option<Vec<Finder<'static>>> {
    let texts = mapping.changed().filter_map(|(_, became)| match became {
        Became::Text(text) => Some(text),
        _ => None,
    });
    let made: Vec<char> = if added.is_empty() { vec![] } else { texts.flat_map(str::chars).collect() };
    let longest = |content: &String| {
        let parts = content.split(|character| made.contains(&character) || !mapping.keeps(character));
        let part = parts.max_by_key(|part| part.len()).filter(|part| !part.is_empty())?;
        Some(Finder::new(part.as_bytes()).into_owned())
    };
    (added.len() <= MOST_SOUGHT).then(|| added.iter().map(longest).collect()).flatten()
}

/// The sets of a tree that matches runs of one set, or single characters of another, or both.
fn kinds_of(tree: &Tree) -> Option<(CodePointSet, CodePointSet)> {
    let branches = match &tree.root {
        Node::Alternation(branches) => &branches[..],
        node => std::slice::from_ref(node),
    };
    let (mut run, mut single) = (None, CodePointSet::default());
    for branch in branches {
        match branch {
            Node::Set(set) => single = single.union(&tree.sets[*set]),
            Node::Repeat { body, minimum: 1, maximum: None, greedy: true } => match **body {
                Node::Set(set) if run.is_none() => run = Some(tree.sets[set].clone()),
                _ => return None,
            },
            _ => return None,
        }
    }
    run.filter(|run| run.intersection(&single).is_empty()).map(|run| (run, single))
}

fn set_of(codes: impl IntoIterator<Item = u32>) -> CodePointSet {
    let mut bounds: Vec<u32> = vec![];
    for code in codes {
        match bounds.last_mut() {
            Some(end) if *end == code => *end += 1,
            _ => bounds.extend([code, code + 1]),
        }
    }
    CodePointSet(bounds)
}

/// The characters that become one of a set, where each becomes one.
fn singles_before(mapping: &Mapping, set: &CodePointSet) -> CodePointSet {
    let changed = set_of(mapping.changed().map(|(character, _)| character as u32));
    let table = CharacterSet::of_set(set);
    let becomes_one = |became| matches!(became, Became::Text(text) if text.chars().all(|c| table.contains(c)));
    let added = mapping.changed().filter(|(_, became)| becomes_one(*became));
    let added = set_of(added.map(|(character, _)| character as u32));
    set.intersection(&changed.complement()).union(&added)
}

/// The characters that are for a raw text what those of two sets are for the normalized one, of which runs of the first are
/// matches, and single ones of the second.
fn kinds_before(mapping: &Mapping, run: &CodePointSet, single: &CodePointSet) -> Option<(CodePointSet, CodePointSet)> {
    let (runs, singles) = (CharacterSet::of_set(run), CharacterSet::of_set(single));
    let is_dropped = |character: char| !runs.contains(character) && !singles.contains(character);
    let (mut new_run, mut new_single) = (vec![], vec![]);
    let changed = set_of(mapping.changed().map(|(character, _)| character as u32));
    // Marks whose order is known only with what stands beside them: they stay with it.
    let is_strange = |(character, became)| (became == Became::Strange).then_some(character as u32);
    let strange = CharacterSet::of_set(&set_of(mapping.changed().filter_map(is_strange)));
    for (character, became) in mapping.changed() {
        let apart;
        let mut room = [0; 4];
        let text = match became {
            Became::Strange => character.encode_utf8(&mut room),
            Became::Text(text) => text,
            Became::Apart => {
                apart = format!(" {character} ");
                &apart
            }
        };
        let kept = text.trim_matches(is_dropped);
        let is_apart = text.starts_with(is_dropped) && text.ends_with(is_dropped);
        let mut characters = kept.chars();
        let is_single = characters.next().is_some_and(|c| singles.contains(c)) && characters.next().is_none();
        let is_run = kept.chars().all(|c| runs.contains(c));
        let is_whole = kept.len() == text.len();
        if is_run && is_whole {
            new_run.push(character as u32);
        } else if text.contains(|c| strange.contains(c)) {
            return None;
        } else if is_single && (is_whole || is_apart) || is_run && is_apart && !kept.is_empty() {
            new_single.push(character as u32);
        } else if !kept.is_empty() {
            // It is cut within.
            return None;
        }
    }
    let stays = |set: &CodePointSet| set.intersection(&changed.complement());
    Some((stays(run).union(&set_of(new_run)), stays(single).union(&set_of(new_single))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_text::AlignedText;
    use crate::cutter::Cuts;
    use crate::pre_tokenizers::PreTokenizer;
    use crate::rest::Rest;
    use crate::spec::Behavior;

    fn repeat(set: usize) -> Node {
        Node::Repeat { body: Box::new(Node::Set(set)), minimum: 1, maximum: None, greedy: true }
    }

    fn bert(lowercase: bool) -> spec::Normalizer {
        let (clean_text, handle_chinese_chars, strip_accents) = (true, true, None);
        spec::Normalizer::BertNormalizer { clean_text, handle_chinese_chars, strip_accents, lowercase }
    }

    fn spaces_become_one() -> spec::Normalizer {
        let tree =
            Tree { sets: vec![CodePointSet(vec![9, 14, 32, 33, 0x2003, 0x2004])], root: repeat(0), ..Tree::default() };
        spec::Normalizer::Replace { pattern: Pattern::Regex(tree), content: " ".to_owned() }
    }

    /// An apostrophe and an s, letters, or other characters.
    fn contractions() -> spec::PreTokenizer {
        let letters = CodePointSet(vec![0x61, 0x7B, 0xDF, 0x180, 0x3B1, 0x3CA]);
        let spaces = CodePointSet(vec![9, 14, 32, 33, 0x2003, 0x2004]);
        let others = letters.union(&spaces).complement();
        let sets = vec![CodePointSet(vec![39, 40]), CodePointSet(vec![115, 116]), letters, others];
        let short = Node::Sequence(vec![Node::Set(0), Node::Set(1)]);
        let tree = Tree { sets, root: Node::Alternation(vec![short, repeat(2), repeat(3)]), ..Tree::default() };
        spec::PreTokenizer::Split { pattern: Pattern::Regex(tree), behavior: Behavior::Removed, invert: true }
    }

    /// The pretokens of a text that is normalized first, and of one that is cut first.
    fn both(normalizer: &spec::Normalizer, first: &spec::PreTokenizer) -> impl Fn(&str) -> [Vec<String>; 2] {
        let whole = Arc::new(Normalizer::build(normalizer, "").unwrap());
        let waiting = Waiting::of(normalizer, &whole, first, &[]).unwrap().expect("something can wait");
        let (cutter, dropped) = waiting.cutter().expect("it can be cut");
        let before = waiting.whole.clone();
        let rest = Rest::new(Some(&dropped), vec![]).with_late(waiting.late());
        let pre_tokenizer = PreTokenizer::build(first);
        move |text| {
            let mut normalized = String::new();
            whole.normalize(text, &mut normalized).unwrap();
            let pieces = pre_tokenizer.pre_tokenize(vec![AlignedText::untracked(normalized)]).unwrap();
            let expected = pieces.into_iter().map(|piece| piece.text).collect();
            let mut raw = String::new();
            match &before {
                Some(before) => before.normalize(text, &mut raw).unwrap(),
                None => raw.push_str(text),
            }
            let mut cuts = Cuts::default();
            cutter.cut(raw.as_bytes(), &[(0, raw.len())], &mut cuts);
            cuts.starts.push(raw.len() as u32);
            let mut found = vec![];
            for bounds in cuts.starts.windows(2) {
                let piece = &raw.as_bytes()[bounds[0] as usize..bounds[1] as usize];
                rest.pretokens(piece, |pretoken| {
                    found.push(pretoken.to_owned());
                    Ok(())
                })
                .unwrap();
            }
            [expected, found]
        }
    }

    fn check(normalizer: &spec::Normalizer, first: &spec::PreTokenizer) {
        let both = both(normalizer, first);
        for text in [
            "",
            " ",
            "\u{301}",
            "a\u{302e}\u{301}\u{0}\u{323}b!\u{301}\u{302e}",
            "It's IT'S \u{130}'S\u{2003} \t a",
            "≠!中文 x中\u{fffd}",
            "AAB ABBA! BBBA B",
        ] {
            let [expected, found] = both(text);
            assert_eq!(expected, found, "{text:?}");
        }
        // All that is mapped, and much of what is not.
        let codes = (0..0x600).chain((0x600..0x11_0000).step_by(97));
        for character in codes.filter_map(char::from_u32) {
            let text =
                format!("A{character}b {character}! {character}{character}\u{301}中{character}\u{302e}'{character}");
            let [expected, found] = both(&text);
            assert_eq!(expected, found, "{text:?}");
        }
    }

    #[test]
    fn what_waits_changes_no_pretoken() {
        check(&bert(true), &spec::PreTokenizer::BertPreTokenizer {});
        check(&bert(false), &spec::PreTokenizer::WhitespaceSplit {});
        let accents = [spec::Normalizer::NFD {}, spec::Normalizer::StripAccents {}, spec::Normalizer::Lowercase {}];
        check(&spec::Normalizer::Sequence { normalizers: accents.to_vec() }, &spec::PreTokenizer::BertPreTokenizer {});
        let like_clip = vec![spec::Normalizer::NFC {}, spaces_become_one(), spec::Normalizer::Lowercase {}];
        check(&spec::Normalizer::Sequence { normalizers: like_clip }, &contractions());
    }

    #[test]
    fn runs_that_become_something_are_counted() {
        let replace = |bounds: &[u32], content: &str| {
            let tree = Tree { sets: vec![CodePointSet(bounds.to_vec())], root: repeat(0), ..Tree::default() };
            spec::Normalizer::Replace { pattern: Pattern::Regex(tree), content: content.to_owned() }
        };
        let sequence = |normalizers: Vec<spec::Normalizer>| spec::Normalizer::Sequence { normalizers };
        let words = spec::PreTokenizer::BertPreTokenizer {};
        let [letters, spaces] = [replace(&[65, 67], "x"), replace(&[0x42, 0x43], " ")];
        check(&sequence(vec![letters.clone(), spec::Normalizer::Lowercase {}]), &words);
        check(&sequence(vec![spaces, spec::Normalizer::StripAccents {}]), &words);
        check(&sequence(vec![replace(&[65, 67], "\u{301}"), spec::Normalizer::StripAccents {}]), &words);
        let whole = Arc::new(Normalizer::build(&letters, "").unwrap());
        assert!(Waiting::of(&letters, &whole, &words, &[]).unwrap().is_none());
        // Only one space is left of several, where somebody looks for it.
        let clip = spaces_become_one();
        let whole = Arc::new(Normalizer::build(&clip, "").unwrap());
        let waiting = |added: &str| Waiting::of(&clip, &whole, &contractions(), &[added.to_owned()]).unwrap();
        assert!(waiting("<|a|>").is_some() && waiting("<|a b|>").is_none());
    }

    #[test]
    fn what_cannot_wait_does_not() {
        let part = |normalizer: &spec::Normalizer, first: &spec::PreTokenizer, added: &[&str]| {
            let whole = Arc::new(Normalizer::build(normalizer, "").unwrap());
            let added: Vec<String> = added.iter().map(|&token| token.to_owned()).collect();
            Waiting::of(normalizer, &whole, first, &added).unwrap()
        };
        let words = spec::PreTokenizer::BertPreTokenizer {};
        assert!(part(&bert(true), &words, &[]).is_some());
        assert!(part(&bert(true), &words, &["<x>"]).is_none());
        assert!(part(&spec::Normalizer::NFC {}, &words, &[]).is_none());
        assert!(part(&bert(true), &contractions(), &[]).is_none());
        assert!(part(&spec::Normalizer::Lowercase {}, &spec::PreTokenizer::Digits { individual_digits: true }, &[])
            .is_none());
        // Accents go: some characters become none.
        assert!(part(&spec::Normalizer::StripAccents {}, &contractions(), &[]).is_none());
        // Letters may have been others.
        assert!(part(&spec::Normalizer::Lowercase {}, &contractions(), &["abc"]).is_none());
        let late = part(&spec::Normalizer::Lowercase {}, &contractions(), &["<|a|>"]).unwrap().late();
        assert!(late.may_have_added("x|>A") && !late.may_have_added("<|A>"));
    }
}
