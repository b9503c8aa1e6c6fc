//! Columns of texts and of ids as flat buffers: `engine/columns.py` on this side.

use crate::error::{Class, Error, Result};

/// Where the rows of a column begin and end, as Arrow has it: in 32 or in 64 bits with a sign.
#[derive(Clone, Copy)]
pub enum ListOffsets<'a> {
    /// In 32 bits.
    Narrow(&'a [i32]),
    /// In 64 bits.
    Wide(&'a [i64]),
}

impl<'a> ListOffsets<'a> {
    /// Whether there is one more than rows, and they ascend and lead to no place behind `length`.
    pub fn are_within(&self, length: usize) -> bool {
        let (first, last, is_sorted) = match self {
            ListOffsets::Narrow(offsets) => {
                (offsets.first().map(|&o| o.into()), offsets.last().map(|&o| o.into()), offsets.is_sorted())
            }
            ListOffsets::Wide(offsets) => (offsets.first().copied(), offsets.last().copied(), offsets.is_sorted()),
        };
        let is_within = |offset: i64| usize::try_from(offset).is_ok_and(|offset| offset <= length);
        is_sorted && first.is_some_and(is_within) && last.is_some_and(is_within)
    }

    /// Number of rows, where the offsets are within their data.
    pub fn rows(&self) -> usize {
        match self {
            ListOffsets::Narrow(offsets) => offsets.len() - 1,
            ListOffsets::Wide(offsets) => offsets.len() - 1,
        }
    }

    /// Where a row begins (or, for the number of rows, where the last one ends).
    #[inline]
    pub fn at(&self, row: usize) -> usize {
        match self {
            ListOffsets::Narrow(offsets) => offsets[row] as usize,
            ListOffsets::Wide(offsets) => offsets[row] as usize,
        }
    }

    /// Those of some rows.
    fn of_rows(&self, first: usize, end: usize) -> ListOffsets<'a> {
        match self {
            ListOffsets::Narrow(offsets) => ListOffsets::Narrow(&offsets[first..end + 1]),
            ListOffsets::Wide(offsets) => ListOffsets::Wide(&offsets[first..end + 1]),
        }
    }
}

impl<'a> From<&'a [i64]> for ListOffsets<'a> {
    fn from(offsets: &'a [i64]) -> ListOffsets<'a> {
        ListOffsets::Wide(offsets)
    }
}

/// Texts laid end to end: row i is `data[list_offsets[i]..list_offsets[i + 1]]`.
#[derive(Clone, Copy)]
pub struct TextColumn<'a> {
    data: &'a [u8],
    list_offsets: ListOffsets<'a>,
}

impl<'a> TextColumn<'a> {
    /// Take a column, after a look at its offsets.
    pub fn new(data: &'a [u8], list_offsets: impl Into<ListOffsets<'a>>) -> Result<TextColumn<'a>> {
        let list_offsets = list_offsets.into();
        if !list_offsets.are_within(data.len()) {
            return Err(Error::encode("the offsets of a column of texts are not ascending and within its data"));
        }
        Ok(TextColumn { data, list_offsets })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.list_offsets.rows()
    }

    /// Where a row begins (or, for the number of rows, where the last one ends).
    #[inline]
    pub fn offset(&self, row: usize) -> usize {
        self.list_offsets.at(row)
    }

    /// The bytes from one offset to another.
    pub fn bytes(&self, start: usize, end: usize) -> &'a [u8] {
        &self.data[start..end]
    }

    /// All bytes of the column, and where a row begins in them.
    pub fn data_from(&self, row: usize) -> (&'a [u8], usize) {
        (self.data, self.offset(row))
    }

    /// A row as a column.
    pub fn row(&self, row: usize) -> TextColumn<'a> {
        self.some_rows(row, row + 1)
    }

    /// Some rows as a column.
    pub fn some_rows(&self, first: usize, end: usize) -> TextColumn<'a> {
        TextColumn { data: self.data, list_offsets: self.list_offsets.of_rows(first, end) }
    }

    /// The text of a row. Bytes that are not UTF-8 are an error with the row.
    pub fn text(&self, row: usize) -> Result<&'a str> {
        let bytes = self.bytes(self.offset(row), self.offset(row + 1));
        simdutf8::basic::from_utf8(bytes).map_err(|_| {
            let at = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
            let byte = bytes.get(at).copied().unwrap_or_default();
            Error::encode(format!("byte {at} of the text (0x{byte:02X}) is not UTF-8")).in_row(row)
        })
    }
}

/// Bytes of texts that are looked at for UTF-8 at once: what is compared next is still near then.
const CHUNK: usize = 64 << 10;

/// The texts of a column, asked for in order, looked at for UTF-8 many at a time.
pub struct CheckedTexts<'a> {
    texts: TextColumn<'a>,
    /// The rows before this one are in `chunk`, or are looked at one by one.
    end_row: usize,
    /// Where the chunk begins, and its text, if all of it is UTF-8.
    chunk: (usize, Option<&'a str>),
}

impl<'a> CheckedTexts<'a> {
    /// Begin with the first row.
    pub fn new(texts: TextColumn<'a>) -> CheckedTexts<'a> {
        CheckedTexts { texts, end_row: 0, chunk: (0, None) }
    }

    /// The text of a row. Bytes that are not UTF-8 are an error with the row.
    pub fn text(&mut self, row: usize) -> Result<&'a str> {
        let (texts, start) = (self.texts, self.texts.offset(row));
        if row >= self.end_row {
            self.end_row = row + 1;
            while self.end_row < texts.rows() && texts.offset(self.end_row + 1) - start <= CHUNK {
                self.end_row += 1;
            }
            self.chunk = (start, simdutf8::basic::from_utf8(texts.bytes(start, texts.offset(self.end_row))).ok());
        }
        let (first, chunk) = self.chunk;
        let text = chunk.and_then(|chunk| chunk.get(start - first..texts.offset(row + 1) - first));
        // What is no text is found, and told, by a look at the row.
        text.map_or_else(|| texts.text(row), Ok)
    }
}

/// Columns hold ids in 32 bits with a sign.
pub const LARGEST_ID: u32 = i32::MAX as u32;

/// What to say of an id that does not fit a column.
pub fn too_large(id: u32, row: usize) -> Error {
    Error::encode(format!("id {id} does not fit int32")).in_row(row)
}

/// A column of ids that somebody gave, of 32 bits with a sign: row i is `ids[list_offsets[i]..list_offsets[i + 1]]`.
#[derive(Clone, Copy)]
pub struct GivenIds<'a> {
    ids: &'a [u32],
    list_offsets: ListOffsets<'a>,
    may_be_negative: bool,
}

impl<'a> GivenIds<'a> {
    /// Take a column, after a look at its offsets.
    pub fn new(ids: &'a [u32], list_offsets: impl Into<ListOffsets<'a>>) -> Result<GivenIds<'a>> {
        let list_offsets = list_offsets.into();
        if !list_offsets.are_within(ids.len()) {
            let message = "the offsets of a column of ids are not ascending and within its data";
            return Err(Error::new(Class::Decode, message));
        }
        Ok(GivenIds { ids, list_offsets, may_be_negative: true })
    }

    /// The same, with an error for each row that has a negative id. Else such an id stands for one that no column holds.
    pub fn without_negative_ones(self) -> GivenIds<'a> {
        GivenIds { may_be_negative: false, ..self }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.list_offsets.rows()
    }

    /// The ids behind those of a row.
    pub fn behind(&self, row: usize) -> &'a [u32] {
        &self.ids[self.list_offsets.at(row + 1)..]
    }

    /// The ids of a row.
    pub fn row(&self, row: usize) -> Result<&'a [u32]> {
        let ids = &self.ids[self.list_offsets.at(row)..self.list_offsets.at(row + 1)];
        // Row by row, so that the ids are near when they are looked at next.
        if self.may_be_negative || ids.iter().fold(0, |all, id| all | id) <= LARGEST_ID {
            return Ok(ids);
        }
        let least = self.ids.iter().map(|&id| id as i32).min().unwrap_or_default();
        Err(Error::new(Class::Decode, format!("{least} is no id: ids are not negative")).at("ids"))
    }
}

/// Lists of ids laid end to end, with the rows that failed (their lists are empty) and those that truncation cut.
#[derive(Clone, Default)]
pub struct IdColumn {
    /// All ids.
    pub ids: Vec<u32>,
    /// Row i is `ids[list_offsets[i]..list_offsets[i + 1]]`.
    pub list_offsets: Vec<i64>,
    /// Rows with their errors, ascending.
    pub failures: Vec<(usize, Error)>,
    /// Rows whose ids were cut, ascending.
    pub truncated_rows: Vec<i64>,
    /// The marks of each row's pretokens, taken together (`witness.rs`); empty where nobody watched.
    pub marks: Vec<u32>,
}

impl IdColumn {
    /// Make it empty and keep its memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.list_offsets.clear();
        self.failures.clear();
        self.truncated_rows.clear();
        self.marks.clear();
    }

    /// The offsets in 32 bits with a sign; None where these do not do.
    pub fn narrow_offsets(&self) -> Option<Vec<i32>> {
        let last = *self.list_offsets.last()?;
        i32::try_from(last).ok().map(|_| self.list_offsets.iter().map(|&offset| offset as i32).collect())
    }

    /// Turn the rows with ids that do not fit a column into failures.
    pub fn refuse_large_ids(&mut self) {
        let mut kept = vec![];
        let bounds: Vec<(usize, usize)> =
            self.list_offsets.windows(2).map(|bounds| (bounds[0] as usize, bounds[1] as usize)).collect();
        self.list_offsets.truncate(1);
        for (row, (start, end)) in bounds.into_iter().enumerate() {
            let ids = &self.ids[start..end];
            match ids.iter().find(|&&id| id > LARGEST_ID) {
                Some(&id) => {
                    self.failures.push((row, too_large(id, row)));
                    self.truncated_rows.retain(|&truncated| truncated != row as i64);
                }
                None => kept.extend_from_slice(ids),
            }
            self.list_offsets.push(kept.len() as i64);
        }
        self.failures.sort_by_key(|failure| failure.0);
        self.ids = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_both_widths() {
        let data = b"onetwothree";
        let wide: [i64; 4] = [0, 3, 3, 11];
        let narrow: [i32; 4] = [0, 3, 3, 11];
        for offsets in [ListOffsets::Wide(&wide), ListOffsets::Narrow(&narrow)] {
            let column = TextColumn::new(data, offsets).expect("in order");
            assert_eq!(column.rows(), 3);
            let texts: Vec<&str> = (0..3).map(|row| column.text(row).expect("text")).collect();
            assert_eq!(texts, ["one", "", "twothree"]);
            let last = column.some_rows(1, 3);
            assert_eq!((last.rows(), last.text(1).expect("text")), (2, "twothree"));
        }
        for wrong in [&[][..], &[0, 12], &[-1, 3], &[3, 2], &[0, 5, 4, 11], &[0, -1, 4]] {
            let wide: Vec<i64> = wrong.iter().map(|&offset| i64::from(offset)).collect();
            assert!(TextColumn::new(data, ListOffsets::Narrow(wrong)).is_err());
            assert!(TextColumn::new(data, &wide[..]).is_err());
        }
    }
}
