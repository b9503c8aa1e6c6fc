//! What is known of documents that were encoded before, and when it pays to encode the rest of a column for that.
//!
//! A document that is not exact has to be encoded again, unless its encoding was seen: then `receipts.rs` knows that its
//! ids are its own, and a rule (`faithful.rs`) or a witness (`witness.rs`) what follows.

use crate::columns::TextColumn;
use crate::round_trip::Verifier;

/// What is known of a document that was encoded before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRecord {
    /// Nothing.
    Nothing,
    /// The ids are its own.
    Own,
    /// And whether the decoder makes the same of them as of its pretokens.
    Told(bool),
}

/// When so many bytes of a column are in documents that were encoded again one by one, the others are encoded at once.
const RECORD_PAYS: usize = 64 << 10;
/// One of so many bytes has to be in documents whose verdict no rule tells, before their encoding is watched: all that
/// the caches know has to be found again for that.
pub const WATCHING_PAYS: usize = 32;
/// Or so many bytes: to encode these again, one by one, takes about as long as to find again what the caches know.
pub const MOST_UNTOLD: usize = 4 << 20;

/// Up to which row of a column documents are on record.
#[derive(Default)]
pub struct Record {
    is_kept: bool,
    is_watched: bool,
    rows: usize,
    /// What was encoded again, and untold, when a record was made last.
    then: (usize, usize),
}

impl Record {
    /// Begin with a column, of which a record can be kept or not.
    pub fn new(is_kept: bool) -> Record {
        Record { is_kept, ..Record::default() }
    }

    /// Come to a row, after so many bytes of documents that were encoded again, and of those that nothing has told.
    pub fn keep(&mut self, verifier: &Verifier, (texts, row): (TextColumn, usize), (again, untold): (usize, usize)) {
        if !self.is_kept || again <= RECORD_PAYS {
            return;
        }
        let seen = texts.offset(row) - texts.offset(0);
        let is_better_watched = !self.is_watched && untold > self.then.1 + RECORD_PAYS && untold > seen / WATCHING_PAYS;
        if row < self.rows && !is_better_watched {
            return;
        }
        // Where much is encoded again although it should be on record, the ids are not those that come out.
        let is_help = self.rows == 0 || is_better_watched || again <= self.then.0 + RECORD_PAYS;
        self.is_watched |= is_better_watched;
        let record = || verifier.roads.record(texts, row, verifier.add_special_tokens, self.is_watched);
        let recorded = is_help.then(record).flatten();
        (self.is_kept, self.rows) = (recorded.is_some(), recorded.unwrap_or(row));
        self.then = (again, untold);
    }
}
