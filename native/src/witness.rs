//! What is known of a pretoken's round trip, told along with its ids: verdicts without a second encoding.
//!
//! A document whose decoded text is another one is `Normalized` where the decoder makes the same of its pretokens as of
//! its ids, and `Lossy` where it does not (`round_trip.rs`). To find out, the document would have to be cut into its
//! pretokens again, which costs as much as encoding it. But most decoders let each token contribute some bytes, whatever
//! stands beside it; so it is enough to compare, once for each new pretoken, what its ids contribute with what it
//! would contribute itself. What comes out are four bits (`DIRTY` and so on), which the cache keeps above the first of
//! the ids; at the end of a document they are collected, and taken off. `receipts.rs` has them until somebody verifies.
//!
//! All this begins when it has been seen to pay: when documents were verified that are not exact.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering as Order};
use std::sync::{Arc, OnceLock};

use crate::aligned::TextRoad;
use crate::decoders::Place;
use crate::error::Result;
use crate::models::bpe::Input;
use crate::models::written::written;
use crate::models::PretokenModel;
use crate::rest::Rest;
use crate::strings::Strings;
use crate::token_strings::{AddedStrings, AllStrings};
use crate::token_table::{ColumnDecoder, Joining};

/// The ids contribute other bytes than the pretoken, or may do so.
pub const DIRTY: u32 = 1 << 28;
/// They may do so in such a way that what follows could make up for it.
pub const VAGUE: u32 = 1 << 29;
/// They contribute more bytes.
pub const LONGER: u32 = 1 << 30;
/// They contribute fewer bytes. With `LONGER`: nothing is known of the length.
pub const SHORTER: u32 = 1 << 31;
/// Nothing is known.
const UNSURE: u32 = VAGUE | LONGER | SHORTER;
/// All bits; ids are below.
pub const MARKS: u32 = DIRTY | UNSURE;

/// Take the marks off the ids of a document, and give all of them together. What a single pretoken says of lengths is
/// not enough: it may stand at the end, where it contributes something else.
pub fn take_marks(ids: &mut [u32]) -> u32 {
    let (mut marks, mut of_length) = (0, 0);
    for id in ids {
        marks |= *id;
        of_length += u32::from(*id & (LONGER | SHORTER) != 0);
        *id &= !MARKS;
    }
    (if of_length > 1 { marks } else { marks | LONGER | SHORTER }) & MARKS
}

/// What the marks of all pretokens of a document say: whether the decoder makes the same of its pretokens as of its ids.
pub fn is_faithful(marks: u32) -> Option<bool> {
    let is_longer_or_shorter = (marks & LONGER != 0) != (marks & SHORTER != 0);
    match marks {
        _ if marks & DIRTY == 0 => Some(true),
        // The first such pretoken parts the two texts, and what follows is no help; or one text is longer.
        _ if marks & VAGUE == 0 || is_longer_or_shorter => Some(false),
        _ => None,
    }
}

/// Compares what ids contribute with what their pretoken would.
pub struct Witness {
    decoder: Arc<ColumnDecoder>,
    joining: Joining,
    text: Arc<dyn TextRoad>,
    added: Arc<AddedStrings>,
    /// A pretoken without ids has come along: it can carry no mark, and nothing is known from there on.
    is_spoiled: AtomicBool,
}

impl Witness {
    /// Build for a decoder; None where tokens do not contribute each by itself. At most one end of a text may be
    /// a place of its own. No id may need the bits of `MARKS`.
    pub fn new(decoder: Arc<ColumnDecoder>, text: Arc<dyn TextRoad>, added: Arc<AddedStrings>) -> Option<Witness> {
        let joining = decoder.joining()?;
        let is_told = !(joining.depends_on.is_first && joining.depends_on.is_last);
        is_told.then(|| Witness { decoder, joining, text, added, is_spoiled: AtomicBool::new(false) })
    }

    /// Whether marks say all that there is to say.
    pub fn knows_all(&self) -> bool {
        !self.is_spoiled.load(Order::Acquire)
    }

    /// The marks for an added token.
    fn of_added(&self) -> u32 {
        // Bytes that are not UTF-8 are replaced in the joined text, and an added token may have some.
        if self.joining.is_lossy {
            UNSURE
        } else {
            0
        }
    }

    /// The marks for the ids of a piece, which has these pretokens.
    fn marks(&self, ids: &[u32], room: &mut Room) -> u32 {
        match (ids.is_empty(), room.pretokens.is_empty()) {
            (true, true) => return 0,
            (true, false) => self.is_spoiled.store(true, Order::Release),
            _ => {}
        }
        self.compared(ids, room).ok().flatten().unwrap_or(DIRTY | UNSURE)
    }

    fn compared(&self, ids: &[u32], room: &mut Room) -> Result<Option<u32>> {
        let Joining { depends_on, is_lossy, goes_on } = self.joining;
        let tokens = AllStrings::new(self.text.facts(), &self.added, false);
        let middle = Place { is_first: false, is_last: false };
        let places = [middle, depends_on];
        let mut marks = 0;
        let mut in_middle = None;
        for &place in if depends_on == middle { &places[..1] } else { &places } {
            let Room { pretokens, given, wanted, .. } = room;
            given.clear();
            wanted.clear();
            let is_told = self.decoder.write_ids(ids, place, &tokens, given)?
                && self.decoder.write_strings(pretokens.iter(), place, wanted)?;
            if !is_told {
                return Ok(None);
            }
            let is_same = given == wanted;
            if !is_same {
                marks |= if goes_on { DIRTY | UNSURE } else { DIRTY };
                if given.starts_with(wanted) || wanted.starts_with(given) {
                    marks |= VAGUE;
                }
            }
            if is_lossy && (std::str::from_utf8(given).is_err() || std::str::from_utf8(wanted).is_err()) {
                marks |= UNSURE;
            }
            let of_length = match given.len().cmp(&wanted.len()) {
                Ordering::Equal => 0,
                Ordering::Greater => LONGER,
                Ordering::Less => SHORTER,
            };
            match in_middle {
                None => marks |= of_length,
                // At the end as in the middle, or no difference there; but not one where there is none in the middle.
                Some((was_same, _)) if was_same != is_same => {
                    marks |= if was_same { VAGUE | LONGER | SHORTER } else { VAGUE };
                }
                Some((_, in_middle)) => marks |= if of_length == in_middle { 0 } else { LONGER | SHORTER },
            }
            in_middle.get_or_insert((is_same, of_length));
        }
        Ok(Some(marks))
    }
}

/// The room that comparing needs.
#[derive(Default)]
struct Room {
    pretokens: Strings,
    written: String,
    given: Vec<u8>,
    wanted: Vec<u8>,
}

/// A model that marks what it gives, once there is a witness, for the caches that were made since.
pub struct Watched<M> {
    /// The model.
    pub model: M,
    /// What is left to do with the pieces before they are pretokens.
    pub rest: Option<Arc<Rest>>,
    /// In which form pretokens come.
    pub input: Input,
    /// The witness.
    pub witness: Arc<OnceLock<Witness>>,
}

/// What one thread needs to encode pretokens, and to watch.
#[derive(Default)]
pub struct Scratch<S> {
    inner: S,
    is_watching: bool,
    room: Room,
}

impl<M: PretokenModel> Watched<M> {
    fn mark(&self, witness: &Witness, piece: &[u8], ids: &mut [u32], room: &mut Room) {
        room.pretokens.clear();
        let Room { pretokens, written: place, .. } = room;
        let mut add = |pretoken: &[u8]| -> Result<()> {
            pretokens.push(written(self.input, pretoken, place)?);
            Ok(())
        };
        let outcome = match &self.rest {
            Some(rest) => rest.pretokens(piece, |pretoken| add(pretoken.as_bytes())),
            None if piece.is_empty() => Ok(()),
            None => add(piece),
        };
        let marks = outcome.map_or(DIRTY | UNSURE, |()| witness.marks(ids, room));
        if let Some(first) = ids.first_mut() {
            *first |= marks;
        }
    }
}

impl<M: PretokenModel> PretokenModel for Watched<M> {
    type Scratch = Scratch<M::Scratch>;

    fn encode(&self, pretoken: &[u8], scratch: &mut Self::Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let first = ids.len();
        self.model.encode(pretoken, &mut scratch.inner, ids)?;
        if let Some(witness) = self.witness.get().filter(|_| scratch.is_watching) {
            self.mark(witness, pretoken, &mut ids[first..], &mut scratch.room);
        }
        Ok(())
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Self::Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        self.model.encode_many(pretokens, &mut scratch.inner, ids, places);
        if let Some(witness) = self.witness.get().filter(|_| scratch.is_watching) {
            for (pretoken, place) in pretokens.iter().zip(places) {
                if let Some((first, end)) = *place {
                    self.mark(witness, pretoken, &mut ids[first as usize..end as usize], &mut scratch.room);
                }
            }
        }
    }

    fn is_watched(&self) -> bool {
        self.witness.get().is_some()
    }

    fn watch(&self, scratch: &mut Self::Scratch) -> Option<u32> {
        let witness = self.witness.get()?;
        scratch.is_watching = true;
        Some(witness.of_added())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_off() {
        let mut ids = [1 | DIRTY | LONGER, 2, 3 | DIRTY | VAGUE | LONGER];
        assert_eq!(take_marks(&mut ids), DIRTY | VAGUE | LONGER);
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(take_marks(&mut [5 | DIRTY | LONGER]), DIRTY | LONGER | SHORTER);
    }

    #[test]
    fn what_marks_say() {
        assert_eq!(is_faithful(0), Some(true));
        assert_eq!(is_faithful(UNSURE), Some(true));
        assert_eq!(is_faithful(DIRTY), Some(false));
        assert_eq!(is_faithful(DIRTY | LONGER | SHORTER), Some(false));
        assert_eq!(is_faithful(DIRTY | VAGUE), None);
        assert_eq!(is_faithful(DIRTY | VAGUE | LONGER), Some(false));
        assert_eq!(is_faithful(DIRTY | UNSURE), None);
    }
}
