//! The patterns of Split and Replace at work: where they match in a text, as the oracle finds them.
//!
//! Here the matches themselves are wanted; the column road asks less, where pieces begin, and has machines for it
//! (`cutter.rs`). Literals and runs of one set, which are most of the patterns in use, are searched for directly.

use std::sync::OnceLock;

use crate::character_table::{members, CharacterSet};
use crate::error::Result;
use crate::locks::made_once;
use crate::models::characters::code_point;
use crate::patterns::backtrack::Matcher;
use crate::patterns::machine::{Machine, RETRY_LIMIT};
use crate::patterns::tree::{CodePointSet, Node, Retries, Tree};
use crate::spec::Pattern;

/// Work that the backtracking matcher may do in a text, and for each of its bytes, before the machine takes over.
const WORK: u64 = 4096;
const WORK_A_BYTE: u64 = 64;

/// A pattern that can be searched for.
pub struct CompiledPattern {
    searched: Searched,
    /// Whether it can match nothing at all.
    pub can_be_empty: bool,
}

enum Searched {
    Literal(memchr::memmem::Finder<'static>),
    /// So many characters of a set, or more.
    Run {
        set: RunSet,
        least: usize,
    },
    Tree(Box<TreeSearch>),
}

impl CompiledPattern {
    /// Compile a pattern.
    pub fn new(pattern: &Pattern) -> CompiledPattern {
        let (searched, can_be_empty) = match pattern {
            Pattern::String(text) => {
                (Searched::Literal(memchr::memmem::Finder::new(text.as_bytes()).into_owned()), text.is_empty())
            }
            Pattern::Regex(tree) => match run_of_set(tree) {
                Some((set, least)) => (Searched::Run { set: RunSet::new(set), least }, false),
                None => (Searched::Tree(Box::new(TreeSearch::new(tree))), tree.root.minimum_length() == 0),
            },
        };
        CompiledPattern { searched, can_be_empty }
    }

    /// The text that it is, where it is one.
    pub fn literal(&self) -> Option<&str> {
        match &self.searched {
            Searched::Literal(finder) => std::str::from_utf8(finder.needle()).ok(),
            _ => None,
        }
    }

    /// Whether it is ` {2,}`, or one space or more.
    pub fn is_run_of_spaces(&self) -> bool {
        matches!(&self.searched, Searched::Run { set, least: 1 | 2 } if set.only == Some(b' '))
    }

    /// The (start, end) of the matches in bytes. In an empty text there is none, also for a pattern that would match it:
    /// so it is where patterns are used. The search in a text may be given up, which is an error.
    pub fn spans(&self, text: &str) -> Result<Vec<(usize, usize)>> {
        if text.is_empty() {
            return Ok(vec![]);
        }
        Ok(match &self.searched {
            Searched::Literal(finder) if finder.needle().is_empty() => {
                text.char_indices().map(|(place, _)| place).chain([text.len()]).map(|place| (place, place)).collect()
            }
            Searched::Literal(finder) => {
                let length = finder.needle().len();
                finder.find_iter(text.as_bytes()).map(|start| (start, start + length)).collect()
            }
            Searched::Run { set, least } => {
                let mut spans = vec![];
                each_run(set, *least, "", text, |start, end| {
                    spans.push((start, end));
                    true
                });
                spans
            }
            Searched::Tree(search) => return search.matches(text),
        })
    }

    /// Append a text with each match replaced.
    pub fn replace(&self, text: &str, content: &str, result: &mut String) -> Result<()> {
        let mut done = 0;
        let mut put = |start: usize, end: usize| {
            result.push_str(&text[done..start]);
            result.push_str(content);
            done = end;
        };
        match &self.searched {
            Searched::Run { set, least } => each_run(set, *least, content, text, |start, end| {
                // What is replaced by itself stays.
                if &text[start..end] != content {
                    put(start, end);
                }
                true
            }),
            _ => self.spans(text)?.into_iter().for_each(|(start, end)| put(start, end)),
        }
        result.push_str(&text[done..]);
        Ok(())
    }

    /// Whether some match may be another text than this one; false is a proof that there is none.
    pub fn may_match_other_than(&self, content: &str, text: &str) -> bool {
        match &self.searched {
            Searched::Literal(finder) => !text.is_empty() && finder.find(text.as_bytes()).is_some(),
            Searched::Run { set, least } => {
                let mut is_found = false;
                each_run(set, *least, content, text, |start, end| {
                    is_found = &text[start..end] != content;
                    !is_found
                });
                is_found
            }
            Searched::Tree(_) => !text.is_empty(),
        }
    }
}

/// A set with a table for ASCII.
struct RunSet {
    ascii: [bool; 128],
    /// Whether a member begins with this byte.
    first_bytes: [bool; 256],
    all: CharacterSet,
    /// The one member, where it is the only one and ASCII.
    only: Option<u8>,
}

impl RunSet {
    fn new(set: &CodePointSet) -> RunSet {
        let only = match set.0[..] {
            [first, end] if end == first + 1 && first < 0x80 => Some(first as u8),
            _ => None,
        };
        let mut first_bytes = [false; 256];
        for character in members(set).filter_map(char::from_u32) {
            first_bytes[usize::from(character.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
        }
        let ascii = std::array::from_fn(|code| set.contains(code as u32));
        RunSet { ascii, first_bytes, all: CharacterSet::of_set(set), only }
    }

    /// Where a run can begin that is not a single space, at or after a place; for a set in which the space is the only
    /// printable ASCII character. Blocks of text without such a place are passed over at once.
    fn beyond_single_spaces(&self, bytes: &[u8], mut at: usize) -> usize {
        const BLOCK: usize = 32;
        while let Some(block) = bytes.get(at..at + BLOCK + 1) {
            let is_odd = |(&byte, &next): (&u8, &u8)| {
                !(b' '..0x7F).contains(&byte) | ((byte == b' ') & !(b'!'..0x7F).contains(&next))
            };
            if block.iter().zip(&block[1..]).fold(false, |odd, pair| odd | is_odd(pair)) {
                break;
            }
            at += BLOCK;
        }
        at
    }

    fn has_space_only(&self) -> bool {
        self.ascii[b' ' as usize] && !self.ascii[b' ' as usize + 1..0x7F].contains(&true)
    }

    /// Whether the character at a place, which is not in ASCII, is a member.
    fn has_at(&self, bytes: &[u8], at: usize) -> bool {
        char::from_u32(code_point(&bytes[at..]).0).is_some_and(|character| self.all.contains(character))
    }

    /// The first character at or after a place that is in the set (or not): its place.
    #[inline(always)]
    fn find(&self, text: &str, mut at: usize, is_in: bool) -> usize {
        let bytes = text.as_bytes();
        if is_in {
            while let Some(&byte) = bytes.get(at) {
                if self.first_bytes[usize::from(byte)] && (byte < 0x80 || self.has_at(bytes, at)) {
                    break;
                }
                at += 1;
            }
            return at;
        }
        while let Some(&byte) = bytes.get(at) {
            if byte < 0x80 {
                if !self.ascii[byte as usize] {
                    return at;
                }
                at += 1;
                continue;
            }
            match text[at..].chars().next() {
                Some(character) if self.all.contains(character) => at += character.len_utf8(),
                _ => return at,
            }
        }
        at
    }
}

/// Hand over the maximal runs of at least so many characters of a set, until `on_run` says false. Runs that are this
/// content already may be left out.
#[inline(always)]
fn each_run(set: &RunSet, least: usize, content: &str, text: &str, mut on_run: impl FnMut(usize, usize) -> bool) {
    let bytes = text.as_bytes();
    let skips_spaces = least == 1 && content == " " && set.has_space_only();
    let two = set.only.filter(|_| least >= 2).map(|byte| [byte; 2]);
    let finder = two.as_ref().map(memchr::memmem::Finder::new);
    let mut at = 0;
    loop {
        if skips_spaces {
            at = set.beyond_single_spaces(bytes, at);
        } else if let Some(finder) = &finder {
            at = finder.find(&bytes[at..]).map_or(bytes.len(), |place| at + place);
        }
        let start = set.find(text, at, true);
        if start == text.len() {
            return;
        }
        at = set.find(text, start, false);
        let is_long = least <= 1 || at - start >= 4 * least || text[start..at].chars().count() >= least;
        if is_long && !on_run(start, at) {
            return;
        }
    }
}

/// The set and the least number of a pattern like `\s+` or ` {2,}`.
pub fn run_of_set(tree: &Tree) -> Option<(&CodePointSet, usize)> {
    let node = match &tree.root {
        Node::Sequence(parts) if parts.len() == 1 => &parts[0],
        node => node,
    };
    match node {
        Node::Repeat { body, minimum: minimum @ 1.., maximum: None, greedy: true } => match **body {
            Node::Set(set) => Some((&tree.sets[set], *minimum as usize)),
            _ => None,
        },
        _ => None,
    }
}

/// A tree and what searches for it: the backtracking matcher, and where that would take too long the machine.
struct TreeSearch {
    tree: Tree,
    matcher: Matcher,
    machine: OnceLock<Result<Machine>>,
}

impl TreeSearch {
    fn new(tree: &Tree) -> TreeSearch {
        TreeSearch { tree: tree.clone(), matcher: Matcher::build(tree), machine: OnceLock::new() }
    }

    fn matches(&self, text: &str) -> Result<Vec<(usize, usize)>> {
        let gives_up = match self.tree.retries {
            Retries::Free => false,
            Retries::FreeInShortTexts => text.chars().nth(self.tree.short_text).is_some(),
            Retries::Counted => true,
        };
        // What takes less work than that was retried less often than the limit says.
        let work_of_attempt = if gives_up { RETRY_LIMIT / 8 } else { u64::MAX };
        let work = WORK + WORK_A_BYTE.saturating_mul(text.len() as u64);
        self.matcher.matches(text, work, work_of_attempt).or_else(|_| {
            let machine = made_once(&self.machine, || Machine::build(&self.tree));
            machine.as_ref().map_err(Clone::clone)?.matches(text, gives_up)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(node: impl Fn(usize) -> Node) -> CompiledPattern {
        let mut tree = Tree::default();
        let set = tree.index_of(CodePointSet(vec![32, 33, 0x2003, 0x2004]));
        tree.root = node(set);
        CompiledPattern::new(&Pattern::Regex(tree))
    }

    #[test]
    fn runs_are_found_as_the_matcher_finds_them() {
        let repeat = |set| Node::Repeat { body: Box::new(Node::Set(set)), minimum: 2, maximum: None, greedy: true };
        let direct = pattern(repeat);
        let stepwise = pattern(|set| Node::Alternation(vec![repeat(set), Node::Sequence(vec![repeat(set)])]));
        assert!(matches!((&direct.searched, &stepwise.searched), (Searched::Run { .. }, Searched::Tree(_))));
        for text in ["a  b c\u{2003}  ", "", "  ", " é  é \u{2003}"] {
            assert_eq!(direct.spans(text).unwrap(), stepwise.spans(text).unwrap(), "{text:?}");
        }
        assert!(!direct.may_match_other_than("  ", "a  b c"));
        assert!(direct.may_match_other_than("  ", "a  b   c"));
    }

    #[test]
    fn what_is_replaced_by_itself_may_be_passed_over() {
        let spaces =
            pattern(|set| Node::Repeat { body: Box::new(Node::Set(set)), minimum: 1, maximum: None, greedy: true });
        let plain = "some words of plain text, more than a block of it. ".repeat(3);
        assert!(!spaces.may_match_other_than(" ", &plain));
        for odd in ["  ", "\u{2003}", " \u{2003} ", "é  "] {
            for at in 0..=70 {
                let text = format!("{}{odd}{}", &plain[..at], &plain[at..]);
                let mut replaced = String::new();
                spaces.replace(&text, " ", &mut replaced).unwrap();
                let words: Vec<&str> = text.split([' ', '\u{2003}']).filter(|word| !word.is_empty()).collect();
                let lead = if text.starts_with([' ', '\u{2003}']) { " " } else { "" };
                assert_eq!(replaced, format!("{lead}{} ", words.join(" ")), "{text:?}");
            }
        }
    }

    #[test]
    fn an_empty_literal_is_everywhere() {
        let spans = |text| CompiledPattern::new(&Pattern::String(String::new())).spans(text).unwrap();
        assert_eq!(spans("éa"), [(0, 0), (2, 2), (3, 3)]);
        assert_eq!(spans(""), []);
    }
}
