//! Padding: how long the encodings of a batch are made. The filling itself is `Encoding::pad`, and for a column of ids
//! `pad_column`.

use crate::columns::{too_large, IdColumn, LARGEST_ID};
use crate::encoding::{Encoding, Filling};
use crate::error::{Error, Result};
use crate::spec::{Direction, Padding};

/// The same limit as in `engine/reference/padding.py`.
const LONGEST: usize = 1 << 25;

/// The length that encodings of these lengths are filled up to; those that are longer stay as they are.
pub fn padded_length(lengths: impl Iterator<Item = usize>, padding: &Padding) -> Result<usize> {
    let fixed = padding.fixed_length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    let mut length = fixed.unwrap_or_else(|| lengths.max().unwrap_or(0)) as u128;
    if let Some(multiple) = padding.pad_to_multiple_of.filter(|&multiple| multiple > 0) {
        length = length.next_multiple_of(u128::from(multiple));
    }
    if length > LONGEST as u128 {
        return Err(Error::encode(format!("cannot pad to {length} tokens: the limit is {LONGEST}"))
            .at("$.padding")
            .hinted("correct `strategy` or `pad_to_multiple_of` in the file"));
    }
    Ok(length as usize)
}

/// Fill up one encoding, which is a batch by itself, and its overflowing pieces.
pub fn pad_encoding(encoding: &mut Encoding, padding: &Padding) -> Result<()> {
    let length = padded_length(std::iter::once(encoding.len()), padding)?;
    let filling = Filling {
        direction: padding.direction,
        id: padding.pad_id,
        type_id: padding.pad_type_id,
        token: &padding.pad_token,
    };
    encoding.pad(length, filling);
    Ok(())
}

/// Fill up the rows of a column.
pub fn pad_column(column: &mut IdColumn, padding: &Padding) -> Result<()> {
    let rows: Vec<(usize, usize)> =
        column.list_offsets.windows(2).map(|bounds| (bounds[0] as usize, bounds[1] as usize)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let length = padded_length(rows.iter().map(|(start, end)| end - start), padding)?;
    let mut padded = Vec::with_capacity(rows.iter().map(|(start, end)| length.max(end - start)).sum());
    if padding.pad_id > LARGEST_ID {
        if let Some(row) = rows.iter().position(|(start, end)| end - start < length) {
            return Err(too_large(padding.pad_id, row));
        }
    }
    column.list_offsets.truncate(1);
    column.list_offsets[0] = 0;
    for (start, end) in rows {
        let filling = std::iter::repeat_n(padding.pad_id, length.saturating_sub(end - start));
        if padding.direction == Direction::Left {
            padded.extend(filling.clone());
        }
        padded.extend_from_slice(&column.ids[start..end]);
        if padding.direction == Direction::Right {
            padded.extend(filling);
        }
        column.list_offsets.push(padded.len() as i64);
    }
    column.ids = padded;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padding(fixed_length: Option<u64>, pad_to_multiple_of: Option<u64>, direction: Direction) -> Padding {
        let pad_token = "[PAD]".to_owned();
        Padding { fixed_length, direction, pad_to_multiple_of, pad_id: 0, pad_type_id: 0, pad_token }
    }

    #[test]
    fn lengths() {
        let length = |fixed, multiple| padded_length([3, 5].into_iter(), &padding(fixed, multiple, Direction::Right));
        assert_eq!(length(None, None).expect("is short"), 5);
        assert_eq!(length(None, Some(4)).expect("is short"), 8);
        assert_eq!(length(Some(2), Some(0)).expect("is short"), 2);
        assert!(length(Some(u64::MAX), Some(u64::MAX - 1)).is_err());
    }

    #[test]
    fn columns() {
        let column = || IdColumn { ids: vec![1, 2, 3], list_offsets: vec![0, 1, 1, 3], ..IdColumn::default() };
        let (mut right, mut left) = (column(), column());
        pad_column(&mut right, &padding(None, None, Direction::Right)).expect("is short");
        assert_eq!((right.ids, right.list_offsets), (vec![1, 0, 0, 0, 2, 3], vec![0, 2, 4, 6]));
        pad_column(&mut left, &padding(Some(1), None, Direction::Left)).expect("is short");
        assert_eq!((left.ids, left.list_offsets), (vec![1, 0, 2, 3], vec![0, 1, 2, 4]));
    }
}
