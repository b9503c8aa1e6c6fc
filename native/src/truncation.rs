//! Truncation: which of one or two encodings is cut, and to what length. The cut itself is `Encoding::truncated`.
//!
//! The rules stand in `engine/reference/truncation.py`.

use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::spec::{Strategy, Truncation};

/// Cut so that with `added_tokens` tokens of the template no more than `max_length` are left.
pub fn truncate_encodings(
    encoding: Encoding,
    pair: Option<Encoding>,
    truncation: &Truncation,
    added_tokens: usize,
) -> Result<(Encoding, Option<Encoding>)> {
    let lengths = lengths(encoding.len(), pair.as_ref().map(Encoding::len), truncation, added_tokens)?;
    let Some((first, second)) = lengths else { return Ok((encoding, pair)) };
    let stride = usize::try_from(truncation.stride).unwrap_or(usize::MAX);
    let encoding = encoding.truncated(first, stride, truncation.direction)?;
    let pair = pair.map(|pair| pair.truncated(second, stride, truncation.direction)).transpose()?;
    Ok((encoding, pair))
}

/// The lengths that two encodings are cut to (the second counts only where there is one); None: they stay as they are.
///
/// A `max_length` that has no room for the template cuts nothing: the oracle's difference wraps around below zero.
pub fn lengths(
    first: usize,
    second: Option<usize>,
    truncation: &Truncation,
    added_tokens: usize,
) -> Result<Option<(usize, usize)>> {
    let most = usize::try_from(truncation.max_length).unwrap_or(usize::MAX);
    let Some(room) = most.checked_sub(added_tokens) else { return Ok(None) };
    let total = first + second.unwrap_or(0);
    if total > 0 && total <= room {
        return Ok(None);
    }
    if room == 0 {
        return Ok(Some((0, 0)));
    }
    let Some(excess) = total.checked_sub(room).filter(|&excess| excess > 0) else {
        return Ok(Some((first, second.unwrap_or(0))));
    };
    Ok(Some(match (truncation.strategy, second) {
        (Strategy::LongestFirst, None) => (room, 0),
        (Strategy::LongestFirst, Some(second)) => longest_first(first, second, room),
        (Strategy::OnlySecond, None) => {
            let message = "the text is too long, and only a pair's second text may be cut";
            return Err(Error::encode(message).at("$.truncation"));
        }
        (Strategy::OnlySecond, Some(second)) => (first, shortened(second, excess)?),
        (Strategy::OnlyFirst, second) => (shortened(first, excess)?, second.unwrap_or(0)),
    }))
}

/// Cut the longer one; where that is not enough, give each half of the room, the odd token to the longer one.
fn longest_first(first: usize, second: usize, room: usize) -> (usize, usize) {
    let mut shorter = first.min(second);
    let mut longer = if shorter > room { shorter } else { shorter.max(room - shorter) };
    if shorter + longer > room {
        (shorter, longer) = (room / 2, room / 2 + room % 2);
    }
    if first > second {
        (longer, shorter)
    } else {
        (shorter, longer)
    }
}

fn shortened(length: usize, excess: usize) -> Result<usize> {
    length.checked_sub(excess).filter(|&left| left > 0).ok_or_else(|| {
        Error::encode(format!("cannot cut {excess} tokens off a text of {length}"))
            .at("$.truncation")
            .hinted("only one of the two texts may be cut; the strategy LongestFirst may cut both")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Direction;

    #[test]
    fn lengths_by_strategy() {
        let lengths = |first, second, strategy, max_length, added| {
            let truncation = Truncation { max_length, stride: 0, strategy, direction: Direction::Right };
            super::lengths(first, second, &truncation, added)
        };
        use Strategy::*;
        assert_eq!(lengths(10, None, LongestFirst, 5, 2).expect("can be cut"), Some((3, 0)));
        assert_eq!(lengths(10, None, LongestFirst, 1, 2).expect("wraps around"), None);
        assert_eq!(lengths(10, None, OnlyFirst, 2, 2).expect("no room"), Some((0, 0)));
        assert_eq!(lengths(10, Some(3), LongestFirst, 9, 0).expect("can be cut"), Some((6, 3)));
        assert_eq!(lengths(10, Some(9), LongestFirst, 9, 0).expect("can be cut"), Some((5, 4)));
        assert_eq!(lengths(4, Some(9), OnlySecond, 9, 0).expect("can be cut"), Some((4, 5)));
        assert!(lengths(9, Some(2), OnlySecond, 8, 0).is_err());
        assert!(lengths(9, None, OnlySecond, 8, 0).is_err());
    }
}
