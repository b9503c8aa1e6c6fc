//! The encoding of a text: its tokens with all that is known of each, and how encodings are cut, joined and padded.
//!
//! The rules stand in `engine/encoding.py`, the odd ones included; here is the same value for this side.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::spec::Direction;

/// Lists of equal length, an entry a token: see `engine/encoding.py` for what each of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Encoding {
    pub ids: Vec<u32>,
    pub tokens: Vec<String>,
    pub offsets: Vec<(usize, usize)>,
    pub type_ids: Vec<u32>,
    pub special_tokens_mask: Vec<u8>,
    pub attention_mask: Vec<u8>,
    pub word_ids: Vec<Option<u32>>,
    pub overflowing: Vec<Encoding>,
    pub sequence_ranges: BTreeMap<usize, (usize, usize)>,
}

/// What tokens are filled up with.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Filling<'a> {
    pub direction: Direction,
    pub id: u32,
    pub type_id: u32,
    pub token: &'a str,
}

impl Encoding {
    /// The encoding of one text, before any template.
    pub fn of_text(
        ids: Vec<u32>,
        tokens: Vec<String>,
        offsets: Vec<(usize, usize)>,
        word_ids: Vec<Option<u32>>,
        type_id: u32,
    ) -> Encoding {
        let n = ids.len();
        Encoding {
            ids,
            tokens,
            offsets,
            type_ids: vec![type_id; n],
            special_tokens_mask: vec![0; n],
            attention_mask: vec![1; n],
            word_ids,
            ..Encoding::default()
        }
    }

    /// Ids alone: the other lists are there, and empty of meaning.
    pub fn of_ids(ids: Vec<u32>) -> Encoding {
        let n = ids.len();
        Encoding::of_text(ids, vec![String::new(); n], vec![(0, 0); n], vec![Some(0); n], 0)
    }

    /// Tokens that a template adds: they have no place in the text.
    pub fn of_special_tokens(ids: Vec<u32>, tokens: Vec<String>, type_id: u32) -> Encoding {
        let n = ids.len();
        Encoding {
            special_tokens_mask: vec![1; n],
            ..Encoding::of_text(ids, tokens, vec![(0, 0); n], vec![None; n], type_id)
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The tokens from `start` to `end`, without overflowing pieces and without sequence ranges.
    pub fn part(&self, start: usize, end: usize) -> Encoding {
        Encoding {
            ids: self.ids[start..end].to_vec(),
            // A template may have given fewer strings than ids.
            tokens: self.tokens[start.min(self.tokens.len())..end.min(self.tokens.len())].to_vec(),
            offsets: self.offsets[start..end].to_vec(),
            type_ids: self.type_ids[start..end].to_vec(),
            special_tokens_mask: self.special_tokens_mask[start..end].to_vec(),
            attention_mask: self.attention_mask[start..end].to_vec(),
            word_ids: self.word_ids[start..end].to_vec(),
            ..Encoding::default()
        }
    }

    /// Say that all tokens come from the text `sequence_id`.
    pub fn set_sequence_id(&mut self, sequence_id: usize) {
        self.sequence_ranges.insert(sequence_id, (0, self.len()));
    }

    /// Give all tokens the same type id.
    pub fn set_type_id(&mut self, type_id: u32) {
        self.type_ids = vec![type_id; self.len()];
    }

    /// Cut into pieces of `max_length` tokens that overlap by `stride`; all but the first are its overflowing ones.
    ///
    /// The direction is the side that is cut off. Where nothing has to be cut, the encoding itself comes back, sequence
    /// ranges and all.
    pub fn truncated(self, max_length: usize, stride: usize, direction: Direction) -> Result<Encoding> {
        let n = self.len();
        if max_length >= n {
            return Ok(self);
        }
        if max_length == 0 {
            return Ok(Encoding { overflowing: vec![self], ..Encoding::default() });
        }
        check_stride(max_length, stride)?;
        let step = max_length - stride;
        let mut pieces = vec![];
        let mut at = 0;
        loop {
            let end = (at + max_length).min(n);
            pieces.push(match direction {
                Direction::Right => self.part(at, end),
                Direction::Left => self.part(n - end, n - at),
            });
            if end == n {
                break;
            }
            at += step;
        }
        let mut first = pieces.remove(0);
        first.overflowing = pieces;
        Ok(first)
    }

    /// Put the tokens of another encoding behind this one's.
    ///
    /// The overflowing pieces become all combinations of a piece of this one (or all of it) with a piece of the other
    /// one (or all of it), in the oracle's order; since each of them is joined by this same rule, they have overflowing
    /// pieces of their own where both sides overflow.
    pub fn append(&mut self, other: &Encoding) {
        let mut overflowing = vec![];
        if !self.overflowing.is_empty() || !other.overflowing.is_empty() {
            for left in &self.overflowing {
                overflowing.push(joined(left, other));
                overflowing.extend(other.overflowing.iter().map(|right| joined(left, right)));
            }
            overflowing.extend(other.overflowing.iter().map(|right| joined(self, right)));
        }
        let shift = self.len();
        for (&sequence_id, &(start, end)) in &other.sequence_ranges {
            self.sequence_ranges.insert(sequence_id, (start + shift, end + shift));
        }
        self.ids.extend_from_slice(&other.ids);
        self.tokens.extend_from_slice(&other.tokens);
        self.offsets.extend_from_slice(&other.offsets);
        self.type_ids.extend_from_slice(&other.type_ids);
        self.special_tokens_mask.extend_from_slice(&other.special_tokens_mask);
        self.attention_mask.extend_from_slice(&other.attention_mask);
        self.word_ids.extend_from_slice(&other.word_ids);
        self.overflowing = overflowing;
    }

    /// Fill up to `length` tokens, the overflowing pieces too. A longer encoding stays as it is.
    pub fn pad(&mut self, length: usize, filling: Filling) {
        for piece in &mut self.overflowing {
            piece.pad(length, filling);
        }
        let Some(n) = length.checked_sub(self.len()).filter(|&n| n > 0) else { return };
        let at = match filling.direction {
            Direction::Right => self.len(),
            Direction::Left => {
                self.sequence_ranges.values_mut().for_each(|(start, end)| (*start, *end) = (*start + n, *end + n));
                0
            }
        };
        insert(&mut self.ids, at, n, filling.id);
        insert(&mut self.tokens, at, n, filling.token.to_owned());
        insert(&mut self.offsets, at, n, (0, 0));
        insert(&mut self.type_ids, at, n, filling.type_id);
        insert(&mut self.special_tokens_mask, at, n, 1);
        insert(&mut self.attention_mask, at, n, 0);
        insert(&mut self.word_ids, at, n, None);
    }
}

/// The oracle refuses a stride that leaves no room for anything new.
pub fn check_stride(max_length: usize, stride: usize) -> Result<()> {
    if stride < max_length {
        return Ok(());
    }
    Err(Error::encode(format!("cannot truncate to {max_length} tokens with a stride of {stride}"))
        .at("$.truncation.stride")
        .hinted("the stride must be smaller than `max_length` less the tokens that the template adds"))
}

fn insert<T: Clone>(list: &mut Vec<T>, at: usize, n: usize, value: T) {
    list.splice(at..at, std::iter::repeat_n(value, n));
}

fn joined(left: &Encoding, right: &Encoding) -> Encoding {
    let mut joined = left.clone();
    joined.append(right);
    joined
}

/// Join encodings one after the other.
pub fn merge_encodings(encodings: &[Encoding]) -> Encoding {
    let mut merged = Encoding::default();
    encodings.iter().for_each(|encoding| merged.append(encoding));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(pieces: &[Encoding]) -> Vec<Vec<u32>> {
        pieces.iter().map(|piece| piece.ids.clone()).collect()
    }

    #[test]
    fn pieces_overlap_by_the_stride_from_the_side_that_stays() {
        let text = || Encoding::of_ids((0..7).collect());
        let right = text().truncated(3, 1, Direction::Right).expect("the stride is smaller");
        assert_eq!((right.ids, ids(&right.overflowing)), (vec![0, 1, 2], vec![vec![2, 3, 4], vec![4, 5, 6]]));
        let left = text().truncated(3, 0, Direction::Left).expect("the stride is smaller");
        assert_eq!((left.ids, ids(&left.overflowing)), (vec![4, 5, 6], vec![vec![1, 2, 3], vec![0]]));
        let nothing = text().truncated(0, 5, Direction::Left).expect("no stride counts");
        assert_eq!((nothing.len(), nothing.overflowing.len()), (0, 1));
        assert!(text().truncated(3, 3, Direction::Right).is_err());
    }

    #[test]
    fn joining_combines_overflowing_pieces() {
        let mut left = Encoding::of_ids(vec![1, 2]).truncated(1, 0, Direction::Right).expect("no stride");
        let right = Encoding::of_ids(vec![3, 4]).truncated(1, 0, Direction::Right).expect("no stride");
        left.append(&right);
        assert_eq!(left.ids, [1, 3]);
        assert_eq!(ids(&left.overflowing), [vec![2, 3], vec![2, 4], vec![1, 4]]);
        assert_eq!(ids(&left.overflowing[0].overflowing), [vec![2, 4]]);
    }

    #[test]
    fn padding_moves_sequence_ranges_on_the_left() {
        let mut encoding = Encoding::of_ids(vec![5]);
        encoding.set_sequence_id(0);
        encoding.pad(3, Filling { direction: Direction::Left, id: 9, type_id: 2, token: "[PAD]" });
        assert_eq!((encoding.ids, encoding.attention_mask), (vec![9, 9, 5], vec![0, 0, 1]));
        assert_eq!(encoding.sequence_ranges[&0], (2, 3));
    }
}
