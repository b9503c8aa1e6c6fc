//! Whether a text can have an added token at all, without the normalizer that comes before the search for it.
//!
//! A normalizer that only writes marks for spaces leaves what stands between them as it is. So a text that has no such
//! part of any added token has no added token once it is normalized.

use crate::added_tokens::Search;
use crate::error::Result;
use crate::spec::AddedToken;

/// A part of each added token of the second pass, without spaces and marks.
pub struct AddedParts(Search);

impl AddedParts {
    /// Build for added tokens. None where one of them has no such part.
    pub fn new(tokens: &[AddedToken], mark: char) -> Result<Option<AddedParts>> {
        let normalized = tokens.iter().filter(|token| token.normalized);
        let part = |token: &AddedToken| {
            let parts = token.content.split([' ', mark]).filter(|part| !part.is_empty());
            parts.max_by_key(|part| part.len()).map(str::to_owned)
        };
        let Some(mut parts) = normalized.map(part).collect::<Option<Vec<String>>>() else { return Ok(None) };
        parts.sort_unstable();
        parts.dedup();
        Search::new(&parts).map(|search| Some(AddedParts(search)))
    }

    /// Whether a text may have one of the added tokens; false is a proof that it has none.
    pub fn may_be_in(&self, text: &str) -> bool {
        self.0.next(text.as_bytes(), 0).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str, normalized: bool) -> AddedToken {
        let (single_word, lstrip, rstrip, special) = (false, false, false, false);
        AddedToken { id: 0, place: 0, content: content.to_owned(), single_word, lstrip, rstrip, normalized, special }
    }

    #[test]
    fn the_longest_part_is_looked_for() {
        let parts = AddedParts::new(&[token("▁a bcd", true), token("<s>", true), token("x", false)], '▁');
        let parts = parts.unwrap().expect("each has a part");
        assert!(parts.may_be_in("some <s>") && parts.may_be_in("bcd"));
        assert!(!parts.may_be_in("a x bc d < s >") && !parts.may_be_in(""));
        assert!(AddedParts::new(&[token("▁ ▁", true)], '▁').unwrap().is_none());
    }
}
