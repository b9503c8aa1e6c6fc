//! The added-token scanner: see `engine/reference/added_tokens.py` for the rules.

use crate::error::{Error, Result};
use crate::hash::FastMap;
use crate::spec::AddedToken;

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

/// One pass: the entries that it looks for.
#[derive(Default)]
pub struct AddedTokenMatcher {
    entries: FastMap<Vec<u8>, u32>,
    /// For each first byte, the lengths of the entries that begin with it, the longest first.
    lengths: FastMap<u8, Vec<usize>>,
    /// Whether an entry begins with this byte.
    is_first: Vec<bool>,
    firsts: Vec<u8>,
}

impl AddedTokenMatcher {
    /// Build a pass from (pattern, id, entry).
    pub fn new<'a>(tokens: impl Iterator<Item = (String, u32, &'a AddedToken)>) -> Result<AddedTokenMatcher> {
        let mut matcher = AddedTokenMatcher { is_first: vec![false; 256], ..AddedTokenMatcher::default() };
        for (pattern, id, token) in tokens {
            if token.lstrip || token.rstrip || token.single_word {
                let message = format!("the flags of the added token {:?}", token.content);
                return Err(Error::unsupported(message, "$.added_tokens"));
            }
            let Some(&first) = pattern.as_bytes().first() else { continue };
            matcher.is_first[first as usize] = true;
            let lengths = matcher.lengths.entry(first).or_default();
            if !lengths.contains(&pattern.len()) {
                lengths.push(pattern.len());
                lengths.sort_unstable_by(|a, b| b.cmp(a));
            }
            if matcher.entries.insert(pattern.into_bytes(), id).is_some() {
                return Err(Error::unsupported("several added tokens with one content", "$.added_tokens"));
            }
        }
        matcher.firsts = (0..=255).filter(|&byte| matcher.is_first[byte as usize]).collect();
        Ok(matcher)
    }

    /// Whether it looks for nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Append all matches in a text, in order.
    pub fn matches(&self, text: &str, found: &mut Vec<AddedMatch>) -> Result<()> {
        let text = text.as_bytes();
        let mut at = 0;
        while let Some(place) = self.candidate(text, at) {
            at = place + 1;
            for &length in &self.lengths[&text[place]] {
                let Some(content) = text.get(place..place + length) else { continue };
                if let Some(&token_id) = self.entries.get(content) {
                    at = place + length;
                    let (start, end) = (place, at);
                    found.push(AddedMatch { token_id, start, end, content_start: start, content_end: end });
                    break;
                }
            }
        }
        Ok(())
    }

    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = &text[from..];
        let place = match self.firsts[..] {
            [] => None,
            [a] => memchr::memchr(a, rest),
            [a, b] => memchr::memchr2(a, b, rest),
            [a, b, c] => memchr::memchr3(a, b, c, rest),
            _ => rest.iter().position(|&byte| self.is_first[byte as usize]),
        };
        place.map(|place| from + place)
    }
}

/// The added tokens and the two passes over a text.
#[derive(Default)]
pub struct AddedVocabulary {
    /// Over the raw text.
    pub raw_pass: AddedTokenMatcher,
    /// Over the normalized text between the matches of the first.
    pub normalized_pass: AddedTokenMatcher,
}

impl AddedVocabulary {
    /// Build both passes. `normalize` is the normalizer of the spec.
    pub fn new(
        tokens: &[AddedToken],
        encode_special_tokens: bool,
        normalize: impl Fn(&str) -> Result<String>,
    ) -> Result<AddedVocabulary> {
        if encode_special_tokens && tokens.iter().any(|token| token.special) {
            return Err(Error::unsupported("encode_special_tokens", "encode_special_tokens"));
        }
        let raw = tokens.iter().filter(|token| !token.normalized).map(|t| (t.content.clone(), t.id, t));
        let mut forms = vec![];
        for token in tokens.iter().filter(|token| token.normalized) {
            forms.push((normalize(&token.content)?, token.id, token));
        }
        Ok(AddedVocabulary {
            raw_pass: AddedTokenMatcher::new(raw)?,
            normalized_pass: AddedTokenMatcher::new(forms.into_iter())?,
        })
    }
}
