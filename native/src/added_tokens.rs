//! The added-token scanner: see `engine/reference/added_tokens.py` for the rules.
//!
//! Leftmost, then longest matches come from an Aho-Corasick automaton, so that a text takes linear time whatever the
//! entries are. Between candidates the automaton rests: a look at two bytes says where a match can begin at all.

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};

use crate::character_table::{pattern_whitespace, pattern_word};
use crate::error::{Class, Error, Result};
use crate::hash::FastMap;
use crate::models::written::quoted_whole;
use crate::spec::{AddedToken, AddedTokens};

/// A match, in bytes of the text that was searched. See `AddedMatch` in the reference engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AddedMatch {
    pub token_id: u32,
    pub start: usize,
    pub end: usize,
    pub content_start: usize,
    pub content_end: usize,
}

/// What becomes of a match.
#[derive(Clone, Debug, Default)]
struct Entry {
    token_id: u32,
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    /// With `encode_special_tokens`: it is found, and is ordinary text.
    is_skipped: bool,
}

/// One pass: the entries that it looks for.
#[derive(Default)]
pub struct AddedTokenMatcher {
    /// For each pattern, its entries.
    entries: Vec<Vec<Entry>>,
    search: Option<Search>,
}

impl AddedTokenMatcher {
    /// Build a pass from (pattern, entry); no pattern is empty. Entries whose content is in `skipped` do not count.
    pub fn new<'a>(
        tokens: impl Iterator<Item = (String, &'a AddedToken)>,
        skipped: &FastMap<&str, ()>,
    ) -> Result<AddedTokenMatcher> {
        let mut numbers: FastMap<String, usize> = FastMap::default();
        let (mut patterns, mut entries): (Vec<String>, Vec<Vec<Entry>>) = (vec![], vec![]);
        for (pattern, token) in tokens {
            let number = *numbers.entry(pattern).or_insert_with_key(|pattern| {
                patterns.push(pattern.clone());
                entries.push(vec![]);
                patterns.len() - 1
            });
            entries[number].push(Entry {
                token_id: token.id,
                content: token.content.clone(),
                single_word: token.single_word,
                lstrip: token.lstrip,
                rstrip: token.rstrip,
                is_skipped: skipped.contains_key(token.content.as_str()),
            });
        }
        let search = if patterns.is_empty() { None } else { Some(Search::new(&patterns)?) };
        Ok(AddedTokenMatcher { entries, search })
    }

    /// Whether it looks for nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Append all matches in a text, in order.
    ///
    /// Where the text of a match was already consumed by the `rstrip` of the match before: without `lstrip` it
    /// counts again, and the text goes on after it; with `lstrip` nothing is left of it when the whole of it was
    /// consumed to the last character, and the oracle crashes when more than it was consumed.
    pub fn matches(&self, text: &str, found: &mut Vec<AddedMatch>) -> Result<()> {
        let Some(search) = &self.search else { return Ok(()) };
        let (mut position, mut consumed) = (0, 0);
        while let Some((start, end, number)) = search.next(text.as_bytes(), position) {
            position = end;
            let entries = &self.entries[number];
            let Some(entry) = entries.iter().find(|entry| entry.counts(text, start, end)) else { continue };
            if entries.len() > 1 {
                let message = format!(
                    "several added tokens are {} once normalized; which of them it is changes from run to run in tokenizers",
                    quoted_whole(&text[start..end])
                );
                let error = Error::encode(message).coded("ambiguous-added-token");
                return Err(error.hinted("remove all but one of them from added_tokens"));
            }
            found.push(entry.widened(text, start, end, consumed)?);
            consumed = found[found.len() - 1].end;
        }
        Ok(())
    }
}

impl Entry {
    fn counts(&self, text: &str, start: usize, end: usize) -> bool {
        !self.is_skipped && !(self.single_word && (is_word_before(text, start) || is_word_after(text, end)))
    }

    /// Let a match absorb the whitespace around it, as far as the match before left it.
    fn widened(&self, text: &str, content_start: usize, content_end: usize, consumed: usize) -> Result<AddedMatch> {
        let start = if self.lstrip { whitespace_before(text, content_start, consumed) } else { content_start };
        let end = if self.rstrip { whitespace_after(text, content_end.max(consumed)) } else { content_end };
        if start > end {
            let message = format!(
                "the whitespace that the added token {} is made of was already consumed by the rstrip of the token \
                 before it (tokenizers crashes here)",
                quoted_whole(&self.content)
            );
            let place = format!("character {}", text[..content_start].chars().count());
            let error = Error::encode(message).at(place).coded("added-token-overlap");
            return Err(error.hinted("an added token made of whitespace should not have lstrip beside one with rstrip"));
        }
        Ok(AddedMatch { token_id: self.token_id, start, end, content_start, content_end })
    }
}

/// The search itself, which knows patterns only.
pub struct Search {
    automaton: NFA,
    start: StateID,
    /// Whether a pattern begins with this byte, and whether one begins with these two (or is but the first).
    is_first: Box<[bool; 256]>,
    firsts: Vec<u8>,
    is_second: Vec<u64>,
    lengths: Vec<usize>,
}

impl Search {
    /// Build for patterns, none of which is empty.
    pub fn new(patterns: &[String]) -> Result<Search> {
        let fault = |error: &dyn std::fmt::Display| {
            Error::new(Class::Unsupported, format!("added tokens too many or too long: {error}")).at("$.added_tokens")
        };
        let automaton = NFA::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .prefilter(false)
            .build(patterns)
            .map_err(|error| fault(&error))?;
        let start = automaton.start_state(Anchored::No).map_err(|error| fault(&error))?;
        let mut is_first = Box::new([false; 256]);
        let mut is_second = vec![0u64; 256 * 256 / 64];
        for pattern in patterns {
            let bytes = pattern.as_bytes();
            is_first[bytes[0] as usize] = true;
            let seconds = if bytes.len() > 1 { bytes[1] as usize..bytes[1] as usize + 1 } else { 0..256 };
            for second in seconds {
                let pair = bytes[0] as usize * 256 + second;
                is_second[pair / 64] |= 1 << (pair % 64);
            }
        }
        let firsts = (0..=255).filter(|&byte| is_first[byte as usize]).collect();
        let lengths = patterns.iter().map(String::len).collect();
        Ok(Search { automaton, start, is_first, firsts, is_second, lengths })
    }

    /// The next match at or after a place: start, end and number.
    pub fn next(&self, text: &[u8], mut at: usize) -> Option<(usize, usize, usize)> {
        'candidates: loop {
            at = self.candidate(text, at)?;
            let mut state = self.start;
            let mut last = None;
            while at < text.len() {
                state = self.automaton.next_state(Anchored::No, state, text[at]);
                at += 1;
                if self.automaton.is_special(state) {
                    if self.automaton.is_dead(state) {
                        break;
                    }
                    if self.automaton.is_match(state) {
                        let number = self.automaton.match_pattern(state, 0).as_usize();
                        last = Some((at - self.lengths[number], at, number));
                    }
                }
                if state == self.start && last.is_none() {
                    continue 'candidates;
                }
            }
            return last;
        }
    }

    /// Where a match can begin, at or after a place.
    fn candidate(&self, text: &[u8], mut from: usize) -> Option<usize> {
        loop {
            let rest = text.get(from..)?;
            let place = match self.firsts[..] {
                [a] => memchr::memchr(a, rest),
                [a, b] => memchr::memchr2(a, b, rest),
                [a, b, c] => memchr::memchr3(a, b, c, rest),
                _ => rest.iter().position(|&byte| self.is_first[byte as usize]),
            };
            let place = from + place?;
            let pair = text[place] as usize * 256 + text.get(place + 1).map_or(0, |&byte| byte as usize);
            if place + 1 == text.len() || self.is_second[pair / 64] >> (pair % 64) & 1 == 1 {
                return Some(place);
            }
            from = place + 1;
        }
    }
}

/// The added tokens and the two passes over a text.
#[derive(Default)]
pub struct AddedVocabulary {
    /// Over the raw text.
    pub raw_pass: AddedTokenMatcher,
    /// Over the normalized text between the matches of the first.
    pub normalized_pass: AddedTokenMatcher,
    /// What a decoder sees of an added token, by id, where that is not its content.
    pub forms: FastMap<u32, String>,
}

impl AddedVocabulary {
    /// Build both passes. `normalize` is the normalizer of the spec.
    pub fn new(
        tokens: &AddedTokens,
        encode_special_tokens: bool,
        normalize: impl Fn(&str) -> Result<String>,
    ) -> Result<AddedVocabulary> {
        let special = tokens.special_contents.iter().filter(|_| encode_special_tokens);
        let skipped: FastMap<&str, ()> = special.map(|content| (content.as_str(), ())).collect();
        let raw = tokens.in_force.iter().filter(|token| !token.normalized).map(|token| (token.content.clone(), token));
        let mut forms: FastMap<u32, String> = FastMap::default();
        for (id, content) in &tokens.normalized_contents {
            let form = normalize(content)?;
            if form != *content {
                forms.insert(*id, form);
            }
        }
        let mut normalized = vec![];
        for token in tokens.in_force.iter().filter(|token| token.normalized) {
            let form = forms.get(&token.id).unwrap_or(&token.content);
            if form.is_empty() {
                let message = format!(
                    "the normalizer leaves nothing of the added token {}, and tokenizers then finds it everywhere, \
                     crashes or does not end",
                    quoted_whole(&token.content)
                );
                let error = Error::new(Class::Unsupported, message).coded("added-token-normalized-away");
                let place = format!("$.added_tokens[{}].content", token.place);
                return Err(error.at(place).hinted("set \"normalized\": false"));
            }
            normalized.push((form.clone(), token));
        }
        Ok(AddedVocabulary {
            raw_pass: AddedTokenMatcher::new(raw, &skipped)?,
            normalized_pass: AddedTokenMatcher::new(normalized.into_iter(), &skipped)?,
            forms,
        })
    }
}

impl AddedVocabulary {
    /// The matches in a raw text.
    pub fn raw_pass_matches(&self, text: &str) -> Result<Vec<AddedMatch>> {
        let mut found = vec![];
        self.raw_pass.matches(text, &mut found)?;
        Ok(found)
    }

    /// The matches in a normalized text.
    pub fn normalized_pass_matches(&self, text: &str) -> Result<Vec<AddedMatch>> {
        let mut found = vec![];
        self.normalized_pass.matches(text, &mut found)?;
        Ok(found)
    }
}

/// A part of a text between, or under, the matches of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The match; None: text between matches.
    pub found: Option<AddedMatch>,
    /// First byte.
    pub start: usize,
    /// End, exclusive.
    pub end: usize,
}

/// Give all of a text of this length in order: the matches, and what lies between them. An empty text is one empty part.
pub fn parts(matches: &[AddedMatch], length: usize) -> Vec<Part> {
    let mut parts = vec![];
    let mut position = 0;
    for &found in matches {
        if position < found.start {
            parts.push(Part { found: None, start: position, end: found.start });
        }
        parts.push(Part { found: Some(found), start: found.start, end: found.end });
        position = found.end;
    }
    if position < length || length == 0 {
        parts.push(Part { found: None, start: position, end: length });
    }
    parts
}

fn is_word_before(text: &str, place: usize) -> bool {
    text[..place].chars().next_back().is_some_and(|character| pattern_word().contains(character))
}

fn is_word_after(text: &str, place: usize) -> bool {
    text[place..].chars().next().is_some_and(|character| pattern_word().contains(character))
}

/// Where the whitespace before a place begins, not before `floor`, which can lie behind the place.
fn whitespace_before(text: &str, place: usize, floor: usize) -> usize {
    let place = place.max(floor);
    let set = pattern_whitespace();
    let taken = text[floor..place].chars().rev().take_while(|&character| set.contains(character));
    place - taken.map(char::len_utf8).sum::<usize>()
}

fn whitespace_after(text: &str, place: usize) -> usize {
    let set = pattern_whitespace();
    let taken = text[place..].chars().take_while(|&character| set.contains(character));
    place + taken.map(char::len_utf8).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str, flags: &str) -> AddedToken {
        AddedToken {
            id: content.len() as u32,
            place: 0,
            content: content.to_owned(),
            single_word: flags.contains('w'),
            lstrip: flags.contains('l'),
            rstrip: flags.contains('r'),
            normalized: false,
            special: flags.contains('s'),
        }
    }

    fn spans(tokens: &[AddedToken], text: &str) -> Result<Vec<(usize, usize)>> {
        let matcher = AddedTokenMatcher::new(tokens.iter().map(|t| (t.content.clone(), t)), &FastMap::default())?;
        let mut found = vec![];
        matcher.matches(text, &mut found)?;
        Ok(found.iter().map(|m| (m.start, m.end)).collect())
    }

    #[test]
    fn leftmost_then_longest() {
        let tokens = [token("ab", ""), token("abcd", ""), token("bcx", ""), token("c", "")];
        assert_eq!(
            spans(&tokens, "abcx abcd ab zabc").unwrap(),
            [(0, 2), (2, 3), (5, 9), (10, 12), (14, 16), (16, 17)]
        );
    }

    #[test]
    fn strips_widen_and_words_reject() {
        assert_eq!(spans(&[token("<x>", "lr")], "a \u{2003}<x>\n b").unwrap(), [(1, 10)]);
        assert_eq!(spans(&[token("hi", "w")], "hi chi hi_ ²hi").unwrap(), [(0, 2), (13, 15)]);
        let error = spans(&[token("<x>", "r"), token(" ", "l")], "<x>  a").unwrap_err();
        assert_eq!((error.code, error.place.as_str()), ("added-token-overlap", "character 3"));
    }

    #[test]
    fn a_failed_beginning_costs_nothing_behind_it() {
        let tokens = [token("aaab", ""), token("ac", "")];
        assert_eq!(spans(&tokens, "aaaac aaaab").unwrap(), [(3, 5), (7, 11)]);
    }

    #[test]
    fn many_tokens_in_a_row_are_found() {
        let tokens: Vec<AddedToken> = (0..30_000).map(|n| token(&format!("<extra_{n}>"), "")).collect();
        let text: String = (0..30_000).map(|n| format!("<extra_{}>", n * 7919 % 30_000)).collect();
        assert_eq!(spans(&tokens, &text).unwrap().len(), 30_000);
    }
}
