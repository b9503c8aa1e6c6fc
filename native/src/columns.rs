//! Columns of texts and of ids as flat buffers: `engine/columns.py` on this side.

use crate::error::{Error, Result};

/// Texts laid end to end: row i is `data[list_offsets[i]..list_offsets[i + 1]]`.
#[derive(Clone, Copy)]
pub struct TextColumn<'a> {
    data: &'a [u8],
    list_offsets: &'a [i64],
}

impl<'a> TextColumn<'a> {
    /// Take a column, after a look at its offsets.
    pub fn new(data: &'a [u8], list_offsets: &'a [i64]) -> Result<TextColumn<'a>> {
        let in_range = |&offset: &i64| usize::try_from(offset).is_ok_and(|offset| offset <= data.len());
        if list_offsets.is_empty() || !list_offsets.iter().all(in_range) || !list_offsets.is_sorted() {
            return Err(Error::encode("the offsets of a column of texts are not ascending and within its data"));
        }
        Ok(TextColumn { data, list_offsets })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.list_offsets.len() - 1
    }

    /// Where a row begins (or, for the number of rows, where the last one ends).
    pub fn offset(&self, row: usize) -> usize {
        self.list_offsets[row] as usize
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
        TextColumn { data: self.data, list_offsets: &self.list_offsets[first..end + 1] }
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

/// Columns hold ids in 32 bits with a sign.
pub const LARGEST_ID: u32 = i32::MAX as u32;

/// What to say of an id that does not fit a column.
pub fn too_large(id: u32, row: usize) -> Error {
    Error::encode(format!("id {id} does not fit int32")).in_row(row)
}

/// Lists of ids laid end to end, with the rows that failed (their lists are empty) and those that truncation cut.
#[derive(Default)]
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
