//! Pretokens without end: where a pre-tokenizer keeps a whole document together (Llama 2, Gemma, Mistral), merges could
//! reach from anywhere to anywhere, but they do not.
//!
//! A merge across a place between two characters makes a token in which these two stand side by side. Where no merge of
//! the model makes a token with a pair of characters side by side, no merge ever crosses a place between such a pair: text
//! may be cut there, and what lies between the cuts is encoded, and remembered, by itself. (The merges on both sides do
//! not see each other, and their order among each other changes nothing.) A character that the vocabulary does not
//! have becomes byte tokens, which no merge takes; the place beside it can be cut, too.
//!
//! Spaces in the text stand for the mark that the normalizer or Metaspace would write, so nothing need be rewritten.

use crate::error::{Error, Result};
use crate::models::bpe::Bpe;
use crate::number_set::NumberSet;
use crate::spec::PrependScheme;
use crate::stored_struct;
use crate::tables::Table;

/// When a space is put before a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Never.
    Never,
    /// Before each piece (the normalizer's Prepend).
    Always,
    /// As Metaspace: where the piece does not begin with the mark.
    Missing(PrependScheme),
}

/// Knows where pieces can be cut.
pub struct SpaceCutter {
    mark: char,
    before: Before,
    seams: Seams,
}

/// The pairs of characters that stand side by side in some merge; the mark is a space here.
pub struct Seams {
    /// For two ASCII bytes (first * 128 + second), whether they do: 0 or 1.
    ascii: Table<u8>,
    /// The pairs of which one is not ASCII (see `pair`).
    others: NumberSet,
}
stored_struct!(Seams { ascii, others });

/// Two characters as one number.
#[inline(always)]
fn pair(left: char, right: char) -> u64 {
    u64::from(left as u32) << 32 | u64::from(right as u32)
}

#[inline(always)]
fn plain(character: char, mark: char) -> char {
    if character == mark {
        ' '
    } else {
        character
    }
}

impl Seams {
    /// Find them from the merges of a model whose spaces stand for `mark`. The error says why they do not tell.
    pub fn build(model: &Bpe, merges: &[(&str, &str)], mark: char) -> Result<Seams> {
        if model.depends_on_place() || model.ignores_merges() || !model.spells_everything() {
            return Err(Error::unsupported("whole documents as pretokens, with this model", "$.model"));
        }
        let mut ascii = vec![0u8; 128 * 128];
        let mut others = vec![];
        let byte_ids = model.byte_token_ids();
        for (left, right) in merges {
            for side in [left, right] {
                if model.vocabulary.id(side.as_bytes()).is_some_and(|id| byte_ids.contains(&id)) {
                    return Err(Error::unsupported("merges of byte tokens", "$.model.merges"));
                }
            }
            // Only the seam is new: pairs within a side were at the seam of the merge that made it.
            let (Some(last), Some(first)) = (left.chars().next_back(), right.chars().next()) else { continue };
            let (last, first) = (plain(last, mark), plain(first, mark));
            if last.is_ascii() && first.is_ascii() {
                ascii[last as usize * 128 + first as usize] = 1;
            } else {
                others.push(pair(last, first));
            }
        }
        Ok(Seams { ascii: ascii.into(), others: NumberSet::new(&others) })
    }
}

impl SpaceCutter {
    /// Put the seams of a model whose spaces stand for `mark` to use.
    pub fn new(seams: Seams, mark: char, before: Before) -> SpaceCutter {
        SpaceCutter { mark, before, seams }
    }

    /// Whether a space comes before a piece; `is_at_start`: the piece begins its document.
    pub fn puts_space_before(&self, piece: &str, is_at_start: bool) -> bool {
        let is_wanted = match self.before {
            Before::Never => false,
            Before::Always => return true,
            Before::Missing(PrependScheme::Always) => true,
            Before::Missing(PrependScheme::First) => is_at_start,
            Before::Missing(PrependScheme::Never) => false,
        };
        is_wanted && !piece.starts_with([' ', self.mark])
    }

    /// Cut the pieces of a text; they follow each other without gaps.
    pub fn cut(&self, text: &[u8], pieces: &[(usize, usize)], starts: &mut Vec<u32>) {
        starts.clear();
        for &(start, end) in pieces {
            starts.push(start as u32);
            let piece = &text[start..end];
            let mut before = piece[0];
            let mut at = 1;
            // Both sides ASCII: one look. Else characters are put together.
            while at < piece.len() {
                let byte = piece[at];
                if (before | byte) < 128 {
                    if self.seams.ascii[before as usize * 128 + byte as usize] == 0 {
                        starts.push((start + at) as u32);
                    }
                } else if byte & 0xC0 != 0x80 {
                    let left = plain(last_character(&piece[..at]), self.mark);
                    let right = plain(first_character(&piece[at..]), self.mark);
                    let is_joined = if left.is_ascii() && right.is_ascii() {
                        self.seams.ascii[left as usize * 128 + right as usize] == 1
                    } else {
                        self.seams.others.contains(pair(left, right))
                    };
                    if !is_joined {
                        starts.push((start + at) as u32);
                    }
                }
                before = byte;
                at += 1;
            }
        }
    }
}

fn first_character(text: &[u8]) -> char {
    let end = (1..text.len().min(4)).find(|&at| text[at] & 0xC0 != 0x80).unwrap_or(text.len().min(4));
    std::str::from_utf8(&text[..end]).ok().and_then(|text| text.chars().next()).unwrap_or('\u{FFFD}')
}

fn last_character(text: &[u8]) -> char {
    let start = (1..=text.len().min(4)).map(|back| text.len() - back).find(|&at| text[at] & 0xC0 != 0x80).unwrap_or(0);
    first_character(&text[start..])
}
