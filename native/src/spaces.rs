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

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::marks::write_spaces;
use crate::models::bpe::Bpe;
use crate::models::characters::code_point;
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
    finder: memchr::memmem::Finder<'static>,
    before: Before,
    seams: Seams,
}

/// Bytes that are cut at once.
const BLOCK: usize = 256;
/// Bits of `Seams::others` a pair.
const BITS_A_PAIR: usize = 32;

/// The pairs of characters that stand side by side in some merge; the mark is a space here.
pub struct Seams {
    /// For two ASCII bytes (first * 128 + second), whether they do: 0 or 1.
    ascii: Table<u8>,
    /// A bit for each hash of two characters of which one is not ASCII. One pair of thirty or fewer that merges in no way
    /// has the hash of one that does; it is not cut, which is as right as to cut it.
    others: Table<u64>,
    shift: u32,
}
stored_struct!(Seams { ascii, others, shift });

/// The number of the bit for two characters.
#[inline(always)]
fn bit_of(left: u32, right: u32, shift: u32) -> usize {
    ((u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize
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
                others.push((last as u32, first as u32));
            }
        }
        others.sort_unstable();
        others.dedup();
        let size = (others.len() * BITS_A_PAIR).next_power_of_two().max(64);
        let shift = 64 - size.trailing_zeros();
        let mut bits = vec![0u64; size / 64];
        for (left, right) in others {
            let bit = bit_of(left, right, shift);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Ok(Seams { ascii: ascii.into(), others: bits.into(), shift })
    }

    /// Whether two characters are, or may be, side by side in some merge.
    #[inline(always)]
    fn joins(&self, left: u32, right: u32) -> bool {
        if left | right < 128 {
            return self.ascii[(left * 128 + right) as usize] != 0;
        }
        let bit = bit_of(left, right, self.shift);
        self.others[bit / 64] >> (bit % 64) & 1 != 0
    }
}

impl SpaceCutter {
    /// Put the seams of a model whose spaces stand for `mark` to use.
    pub fn new(seams: Seams, mark: char, before: Before) -> SpaceCutter {
        let finder = memchr::memmem::Finder::new(mark.encode_utf8(&mut [0; 4]).as_bytes()).into_owned();
        SpaceCutter { mark, finder, before, seams }
    }

    /// Write a piece with its marks as spaces.
    pub fn write_spaces(&self, piece: &str, buffer: &mut Vec<u8>) {
        write_spaces(&self.finder, piece, buffer);
    }

    /// A piece with its spaces as marks, and with the one that is put in front.
    pub fn marked<'a>(&self, piece: &'a str, is_at_start: bool) -> Cow<'a, str> {
        let puts_mark = self.puts_space_before(piece, is_at_start);
        if !puts_mark && !piece.contains(' ') {
            return Cow::Borrowed(piece);
        }
        let mut marked = String::with_capacity(piece.len() + piece.len() / 2);
        marked.extend(puts_mark.then_some(self.mark));
        marked.extend(piece.chars().map(|character| if character == ' ' { self.mark } else { character }));
        Cow::Owned(marked)
    }

    /// Whether a space comes before a piece; `is_at_start`: the piece begins its document.
    pub fn puts_space_before(&self, piece: &str, is_at_start: bool) -> bool {
        self.wants_space(self.before, piece, is_at_start)
    }

    /// The same by another rule.
    pub fn wants_space(&self, before: Before, piece: &str, is_at_start: bool) -> bool {
        let is_wanted = match before {
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
            let (first, mut at) = self.character(piece, 0);
            let mut before = first;
            while at < piece.len() {
                // Each place is written down, and counts or not: there is nothing to foretell.
                let mut found = [0u32; BLOCK];
                let mut count = 0;
                let block_end = piece.len().min(at + BLOCK);
                while at < block_end {
                    let byte = piece[at];
                    let place = at;
                    let is_joined = if before < 128 && byte < 128 {
                        at += 1;
                        let pair = before as usize * 128 + usize::from(byte);
                        before = u32::from(byte);
                        self.seams.ascii[pair] != 0
                    } else {
                        let (code, next) = self.character(piece, at);
                        at = next;
                        let is_joined = self.seams.joins(before, code);
                        before = code;
                        is_joined
                    };
                    found[count] = (start + place) as u32;
                    count += usize::from(!is_joined);
                }
                starts.extend_from_slice(&found[..count]);
            }
        }
    }

    /// The character at a place of a text, the mark as a space, and the place behind it.
    #[inline(always)]
    fn character(&self, text: &[u8], at: usize) -> (u32, usize) {
        let (code, length) = code_point(&text[at..]);
        (if code == self.mark as u32 { ' ' as u32 } else { code }, at + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_between_what_does_not_merge() {
        let joined = [('a', 'б'), ('б', 'б'), ('中', '文')];
        let shift = 64 - 12;
        let (mut ascii, mut bits) = (vec![0u8; 128 * 128], vec![0u64; 64]);
        ascii[32 * 128 + 97] = 1;
        for (left, right) in joined {
            let bit = bit_of(left as u32, right as u32, shift);
            bits[bit / 64] |= 1 << (bit % 64);
        }
        let seams = Seams { ascii: ascii.into(), others: bits.into(), shift };
        let cutter = SpaceCutter::new(seams, '▁', Before::Never);
        let cut = |text: &str| {
            let mut starts = vec![];
            cutter.cut(text.as_bytes(), &[(0, text.len())], &mut starts);
            starts.push(text.len() as u32);
            starts.windows(2).map(|bounds| text[bounds[0] as usize..bounds[1] as usize].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cut(" aббa▁a 中文中"), [" aбб", "a", "▁a", " ", "中文", "中"]);
        let long = " a".repeat(BLOCK) + &"aб".repeat(BLOCK);
        assert_eq!(cut(&long).concat(), long);
        let written = |cutter: &SpaceCutter, piece: &str, is_at_start: bool| {
            let (marked, mut buffer) = (cutter.marked(piece, is_at_start).into_owned(), vec![]);
            cutter.write_spaces(&marked, &mut buffer);
            (marked, String::from_utf8(buffer).unwrap())
        };
        assert_eq!(written(&cutter, "é ▁b", true), ("é▁▁b".into(), "é  b".into()));
        let first = SpaceCutter { before: Before::Missing(PrependScheme::First), ..cutter };
        assert_eq!(written(&first, "a", true), ("▁a".into(), " a".into()));
        assert_eq!(written(&first, "a", false), ("a".into(), "a".into()));
        assert_eq!(written(&first, "▁a", true), ("▁a".into(), " a".into()));
        let cut = |text: &str| {
            let mut starts = vec![];
            first.cut(text.as_bytes(), &[(0, text.len())], &mut starts);
            starts.push(text.len() as u32);
            starts.windows(2).map(|bounds| text[bounds[0] as usize..bounds[1] as usize].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cut(&long).len(), 2 * BLOCK);
    }
}
