//! Normalizers before a Metaspace that cuts, in which all that sees further than a word is known: then the rest waits until
//! a word is new (`words.rs`), and texts are cut at spaces as they are.
//!
//! Such a normalizer has three parts, of which each may be empty:
//!
//! 1. `Strip`: it is done to the raw text, by taking less of it.
//! 2. The core: steps that keep separators apart, each of which becomes a space. They wait.
//! 3. Runs of spaces that become one, or one mark, and perhaps `Strip` at the end before that.
//!
//! For a Metaspace, a space is a mark. So a run of spaces is one mark of the word behind it, however many of them are
//! separators and however many the words around have at their ends: it is enough that a word loses the spaces at its end,
//! and that runs within it become one. A separator before a word goes with it where its space is asked for: where
//! Metaspace puts no mark in front, or does so only where a word, which may begin with a mark, has none.
//!
//! What is left is the end of the text, where there is no word behind a space. A text ends plainly if its last
//! character becomes a text that ends with no whitespace, whatever stands before it: then nothing is stripped, and no
//! space is left over. (Of `words::table` such characters are known to. Those that it refuses may stand before one: no
//! normal form composes it with them, and a cluster in which it is not the first is too long for a map, or begins with what
//! no map has.) Separators behind it may be passed over if spaces at the end go. In all other texts the last words are
//! done the general way, from a separator on that has such a character before it: no strip gets past that.
//!
//! Added tokens that are looked for in normalized text have to be printable ASCII that stays. A text without any of the
//! other characters that become their first one, and in which no such token begins as it is, has none; where characters
//! stand between that are not known to stay, it may have one, and is done the general way as a whole.

use std::sync::Arc;

use memchr::memmem::Finder;

use crate::character_table::whitespace;
use crate::error::Result;
use crate::mapping::Mapping;
use crate::normalizers::{apply_all, Normalizer};
use crate::patterns::tree::CodePointSet;
use crate::spec::{PreTokenizer, PrependScheme};
use crate::words;

/// Added tokens of the second pass, each of which is looked for by itself, and characters that become their first ones.
const MOST_SOUGHT: usize = 8;

/// A normalizer of this kind.
pub struct MarkedWords {
    normalizer: Arc<Normalizer>,
    /// Where in its steps the core begins and ends.
    core: (usize, usize),
    /// Whether whitespace goes at the start and at the end of the raw text.
    strips: (bool, bool),
    separators: CodePointSet,
    is_separator: [bool; 256],
    /// Whether spaces at the end of a text go, however many.
    drops_end: bool,
    absorbs_all: bool,
    sought: Vec<Sought>,
}

/// An added token.
struct Sought {
    content: Vec<u8>,
    /// The characters that become its first one, and are another.
    makers: Vec<Finder<'static>>,
}

impl MarkedWords {
    /// Part a normalizer before a pre-tokenizer that begins with this one; also gives the core as a table. `added` are the
    /// added tokens that are looked for in normalized text, as they are there. None: it is not of this kind.
    pub fn of(normalizer: &Arc<Normalizer>, first: &PreTokenizer, added: &[String]) -> Option<(MarkedWords, Mapping)> {
        let PreTokenizer::Metaspace { replacement: mark, prepend_scheme, split: true } = *first else { return None };
        if mark == ' ' || prepend_scheme == PrependScheme::First {
            return None;
        }
        let steps = words::flat(normalizer);
        let is_strip = |step: &&&Normalizer| matches!(step, Normalizer::Strip { .. });
        let begin = steps.iter().take_while(is_strip).count();
        let is_last = |step: &&&Normalizer| match step {
            Normalizer::Strip { .. } => true,
            Normalizer::Replace(replace) => replace.joins_spaces(mark).is_some(),
            _ => false,
        };
        let end = steps.len() - steps[begin..].iter().rev().take_while(is_last).count();
        let drops_end = drops_end(&steps[end..], mark)?;
        let strips = |wanted: fn(&Normalizer) -> bool| steps[..begin].iter().any(|step| wanted(step));
        let left = strips(|step| matches!(step, Normalizer::Strip { left: true, .. }));
        let right = strips(|step| matches!(step, Normalizer::Strip { right: true, .. }));
        let core = &steps[begin..end];
        let separators = words::separators(core, &CodePointSet(vec![' ' as u32, ' ' as u32 + 1]))?;
        let is_separator = std::array::from_fn(|byte| byte < 0x80 && separators.contains(byte as u32));
        let table = words::table(core);
        let sought = added.iter().map(|content| Sought::of(content, core, &table)).collect::<Option<Vec<_>>>()?;
        if sought.iter().map(|sought| 1 + sought.makers.len()).sum::<usize>() > MOST_SOUGHT {
            return None;
        }
        let absorbs_all = prepend_scheme == PrependScheme::Never || may_write(core, &table, mark);
        let normalizer = Arc::clone(normalizer);
        let core = (begin, end);
        let strips = (left, right);
        Some((
            MarkedWords { normalizer, core, strips, separators, is_separator, drops_end, absorbs_all, sought },
            table,
        ))
    }

    /// The characters at which words end.
    pub fn separators(&self) -> &CodePointSet {
        &self.separators
    }

    /// The separators that go with the word behind them, one of them each.
    pub fn absorbed(&self) -> CodePointSet {
        match self.absorbs_all {
            true => self.separators.clone(),
            false => CodePointSet(vec![' ' as u32, ' ' as u32 + 1]),
        }
    }

    /// Whether a piece is none but separators.
    pub fn is_gap(&self, piece: &[u8]) -> bool {
        piece.iter().all(|&byte| self.is_separator[usize::from(byte)])
    }

    /// Where what is left of a raw text begins and ends when it is stripped.
    pub fn stripped(&self, text: &str) -> (usize, usize) {
        let is_space = |character| whitespace().contains(character);
        let behind = if self.strips.0 { text.trim_start_matches(is_space) } else { text };
        let kept = if self.strips.1 { behind.trim_end_matches(is_space) } else { behind };
        let start = text.len() - behind.len();
        (start, start + kept.len())
    }

    /// Append what the core makes of a text.
    pub fn write(&self, text: &str, result: &mut String) -> Result<()> {
        let (begin, end) = self.core;
        apply_all(words::flat(&self.normalizer)[begin..end].iter().copied(), text, result)
    }

    /// Append what becomes of a stripped text, or of its end that begins with a separator.
    pub fn write_all(&self, text: &str, result: &mut String) -> Result<()> {
        apply_all(words::flat(&self.normalizer)[self.core.0..].iter().copied(), text, result)
    }

    /// Whether an added token may be in the text when it is normalized; false is a proof that there is none.
    pub fn may_have_added(&self, table: &Mapping, text: &str) -> bool {
        self.sought.iter().any(|sought| sought.may_be_in(table, text.as_bytes()))
    }

    /// How much of a stripped text can be done word by word: all of it, or what comes before a separator.
    pub fn plain_length(&self, table: &Mapping, text: &str) -> usize {
        let is_separator = |character: char| character.is_ascii() && self.is_separator[character as usize];
        let is_plain = |character: char| table.last_of(character).is_some_and(|last| !whitespace().contains(last));
        let seen = if self.drops_end { text.trim_end_matches(is_separator) } else { text };
        match seen.chars().next_back() {
            Some(last) if is_plain(last) => return text.len(),
            None => return text.len(),
            _ => {}
        }
        let mut before = None;
        for (at, character) in text.char_indices().rev() {
            if before.is_some_and(is_separator) && is_plain(character) {
                return at + character.len_utf8();
            }
            before = Some(character);
        }
        0
    }
}

/// Whether spaces at the end of a text go, once the core is done. None: these steps are not the last of such a normalizer.
fn drops_end(last: &[&Normalizer], mark: char) -> Option<bool> {
    let (mut drops_end, mut has_run, mut has_mark) = (false, false, false);
    for step in last {
        match step {
            Normalizer::Strip { left: false, right } => {
                if has_mark && *right {
                    return None;
                }
                drops_end |= right;
            }
            Normalizer::Replace(replace) => {
                has_run = true;
                has_mark |= replace.joins_spaces(mark) == Some(mark);
            }
            _ => return None,
        }
    }
    has_run.then_some(drops_end)
}

/// Whether steps may write a character.
fn may_write(steps: &[&Normalizer], table: &Mapping, character: char) -> bool {
    match steps {
        [Normalizer::Precompiled(map)] => table.last_of(character) == Some(character) || map.has_in_texts(character),
        _ => true,
    }
}

impl Sought {
    fn of(content: &str, core: &[&Normalizer], table: &Mapping) -> Option<Sought> {
        let first = content.chars().next()?;
        if !content.bytes().all(|byte| byte.is_ascii_graphic() && table.keeps(byte.into())) {
            return None;
        }
        let makers = match core {
            [] => vec![],
            [Normalizer::Precompiled(map)] => map.makers(first, content)?,
            _ => return None,
        };
        let finder = |maker: char| Finder::new(maker.encode_utf8(&mut [0; 4]).as_bytes()).into_owned();
        Some(Sought { content: content.as_bytes().to_vec(), makers: makers.into_iter().map(finder).collect() })
    }

    fn may_be_in(&self, table: &Mapping, text: &[u8]) -> bool {
        let may_begin = |place: usize| {
            // A byte that the table does not know becomes anything.
            let becomes = |byte: u8| table.of_byte(byte);
            let mut pairs = self.content.iter().zip(&text[place..]).map(|(&wanted, &found)| (wanted, becomes(found)));
            match pairs.find(|&(wanted, found)| found != Some(wanted)) {
                Some((_, found)) => found.is_none(),
                // It is there, or the text ends within it.
                None => text.len() - place >= self.content.len(),
            }
        };
        memchr::memchr_iter(self.content[0], text).any(may_begin)
            || self.makers.iter().any(|maker| maker.find(text).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::tree::{Node, Tree};
    use crate::spec::{Normalizer as Spec, Pattern};

    fn parted(parts: Vec<Spec>, scheme: PrependScheme, added: &[&str]) -> Option<(MarkedWords, Mapping)> {
        let whole = Normalizer::build(&Spec::Sequence { normalizers: parts }, "").unwrap();
        let first = PreTokenizer::Metaspace { replacement: '▁', prepend_scheme: scheme, split: true };
        let added: Vec<String> = added.iter().map(|&content| content.to_owned()).collect();
        MarkedWords::of(&Arc::new(whole), &first, &added)
    }

    fn strip(strip_left: bool, strip_right: bool) -> Spec {
        Spec::Strip { strip_left, strip_right }
    }

    fn joined(content: &str) -> Spec {
        let space = Node::Repeat { body: Box::new(Node::Set(0)), minimum: 2, maximum: None, greedy: true };
        let tree = Tree { sets: vec![CodePointSet(vec![32, 33])], root: space, ..Tree::default() };
        Spec::Replace { pattern: Pattern::Regex(tree), content: content.to_owned() }
    }

    #[test]
    fn ends_that_are_not_plain_begin_at_a_separator() {
        let (marked, table) =
            parted(vec![Spec::Nmt {}, strip(false, true), joined("▁")], PrependScheme::Never, &[]).unwrap();
        let plain = |text: &'static str| &text[..marked.plain_length(&table, text)];
        assert_eq!(plain("a b"), "a b");
        assert_eq!(plain("a b \n "), "a b \n ");
        assert_eq!(plain("a b\u{85}"), "a");
        assert_eq!(plain("a \u{85} b\u{85}\n"), "a");
        assert_eq!((plain("\u{85}"), plain("")), ("", ""));
        let (marked, table) = parted(vec![Spec::Nmt {}, joined(" ")], PrependScheme::Always, &[]).unwrap();
        assert_eq!(marked.plain_length(&table, "ab c "), 4);
        assert_eq!(marked.stripped(" a "), (0, 3));
        let (marked, _) = parted(vec![strip(true, false), joined(" ")], PrependScheme::Always, &[]).unwrap();
        assert_eq!(marked.stripped("\u{3000} a "), (4, 6));
    }

    #[test]
    fn added_tokens_are_there_or_begin_with_what_is_not_known() {
        let (marked, table) = parted(vec![joined("▁")], PrependScheme::Always, &["<m>"]).unwrap();
        let may_have = |text| marked.may_have_added(&table, text);
        assert!(may_have("a<<m>") && may_have("<mé") && may_have("<é"));
        assert!(!may_have("< m>") && !may_have("<m") && !may_have("<xé <m b") && !may_have("m>"));
        let refused = |added| parted(vec![Spec::NFKC {}, joined("▁")], PrependScheme::Always, &[added]).is_none();
        assert!(refused("<m>") && parted(vec![joined("▁")], PrependScheme::Always, &["é"]).is_none());
    }

    #[test]
    fn what_sees_further_is_refused() {
        let is_parted = |parts| parted(parts, PrependScheme::Always, &[]).is_some();
        assert!(is_parted(vec![strip(true, true), Spec::NFKC {}, joined(" "), strip(false, true)]));
        assert!(!is_parted(vec![Spec::NFKC {}, joined("▁"), strip(false, true)]));
        assert!(!is_parted(vec![Spec::NFKC {}, strip(true, true), joined("▁")]));
        assert!(!is_parted(vec![joined("_")]) && !is_parted(vec![Spec::NFKC {}]) && !is_parted(vec![]));
        assert!(parted(vec![joined("▁")], PrependScheme::First, &[]).is_none());
    }
}
