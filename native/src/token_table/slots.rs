//! What each token contributes to a text, by id, in slots of 16 bytes: up to 15 of text, and their number.
//!
//! A text is put together by copying whole slots, each where the bytes of the one before it end: one load, one store
//! and one addition a token, and nothing that would have to be foretold. So holding ids against a text costs little
//! more than comparing two texts. Longer texts lie in an arena.

use bytemuck::{Pod, Zeroable};

use crate::hash::prefetch;
use crate::stored_struct;
use crate::tables::Table;

/// Bytes of text in a slot.
const SHORT: usize = 15;
/// Bytes of a slot.
pub const SLOT: usize = SHORT + 1;
/// Slots that are copied before what they make is compared: it stays in the first-level cache.
const AT_ONCE: usize = 512;
/// So many ids before a slot is copied, its memory is asked for.
pub const AHEAD: usize = 32;
/// Tags of slots that are not short texts. Those of a long text hold its start and its length in the arena.
const LONG: u8 = 253;
const BYTE: u8 = 254;
const ABSENT: u8 = 255;

/// What a token contributes, and behind it the tag: the number of bytes, or `LONG`, `BYTE` or `ABSENT`. One array, so
/// that it is copied as one.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Slot([u8; SLOT]);

const NO_SLOT: Slot = {
    let mut slot = [0; SLOT];
    slot[SHORT] = ABSENT;
    Slot(slot)
};

impl Slot {
    fn new(bytes: &[u8], tag: u8) -> Slot {
        let mut slot = [0; SLOT];
        slot[..bytes.len()].copy_from_slice(bytes);
        slot[SHORT] = tag;
        Slot(slot)
    }

    #[inline(always)]
    fn tag(&self) -> u8 {
        self.0[SHORT]
    }
}

/// The slots of all tokens.
#[derive(Default)]
pub struct Slots {
    slots: Table<Slot>,
    /// Tokens with ids far beyond their number, ascending.
    far_ids: Table<u32>,
    far_slots: Table<Slot>,
    arena: Table<u8>,
}

stored_struct!(Slots { slots, far_ids, far_slots, arena });

/// What a token is in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// These bytes.
    Text(&'a [u8]),
    /// One byte of a run.
    Byte(u8),
    /// No token has this id, or it is passed over.
    Absent,
}

impl Slots {
    /// What the token with this id is.
    pub fn kind(&self, id: u32) -> Kind<'_> {
        let slot = match self.slots.get(id as usize) {
            Some(slot) => slot,
            None => match self.far_ids.binary_search(&id) {
                Ok(at) => &self.far_slots[at],
                Err(_) => return Kind::Absent,
            },
        };
        match slot.tag() {
            ABSENT => Kind::Absent,
            BYTE => Kind::Byte(slot.0[0]),
            LONG => {
                let number = |at: usize| u32::from_ne_bytes(slot.0[at..at + 4].try_into().expect("4 bytes")) as usize;
                Kind::Text(&self.arena[number(0)..number(0) + number(4)])
            }
            length => Kind::Text(&slot.0[..usize::from(length).min(SHORT)]),
        }
    }

    /// Ask for the memory of the first slots of ids that come next.
    pub fn expect(&self, ids: &[u32]) {
        ids.iter().take(AHEAD).for_each(|&id| prefetch(&self.slots, id as usize));
    }

    /// Copy the texts of the first ids, as long as they are short, and as `room` has `SLOT` bytes for each. Gives
    /// the number of ids and that of bytes; what lies behind these is of no meaning.
    #[inline(always)]
    pub fn copy_texts(&self, ids: &[u32], room: &mut [u8]) -> (usize, usize) {
        let size = room.len();
        let ids = &ids[..ids.len().min(size / SLOT)];
        let first = room.as_mut_ptr();
        let mut length = 0;
        for (done, &id) in ids.iter().enumerate() {
            if let Some(&later) = ids.get(done + AHEAD) {
                prefetch(&self.slots, later as usize);
            }
            let slot = match self.slots.get(id as usize) {
                Some(slot) if slot.tag() <= SHORT as u8 => slot,
                _ => return (done, length),
            };
            debug_assert!(length + SLOT <= size);
            // SAFETY: each of the `done` slots before this one has added at most `SHORT` to `length`, so it is at most
            // `done * SLOT`, and there are `SLOT` bytes for each id of `ids`, which has more than `done`.
            // A slot is copied through pointers, since the compiler copies an array of which it has just read the end in parts.
            unsafe { std::ptr::copy_nonoverlapping(slot.0.as_ptr(), first.add(length), SLOT) };
            length += usize::from(slot.tag());
        }
        (ids.len(), length)
    }

    /// Where the text of ids ends, if it is what stands in `data` from `at` on. The bytes of runs count as they are: a
    /// run that agrees with a text is UTF-8, since all around it is.
    pub fn agreement(&self, mut ids: &[u32], data: &[u8], mut at: usize, room: &mut Vec<u8>) -> Option<usize> {
        room.resize(AT_ONCE * SLOT, 0);
        while !ids.is_empty() {
            let (done, length) = self.copy_texts(ids, room);
            if data.get(at..at + length)? != &room[..length] {
                return None;
            }
            at += length;
            ids = &ids[done..];
            if let Some((&id, others)) = ids.split_first() {
                let byte;
                let text = match self.kind(id) {
                    Kind::Text(text) => text,
                    Kind::Byte(one) => {
                        byte = [one];
                        &byte
                    }
                    Kind::Absent => &[],
                };
                if data.get(at..at + text.len())? != text {
                    return None;
                }
                at += text.len();
                ids = others;
            }
        }
        Some(at)
    }
}

/// Puts slots together.
#[derive(Default)]
pub struct SlotsBuilder {
    slots: Vec<Slot>,
    far: Vec<(u32, Slot)>,
    arena: Vec<u8>,
}

impl SlotsBuilder {
    /// Say what a token is, of `count` in all. None: there is no room for that. Of two with an id the last counts.
    pub fn add(&mut self, id: u32, kind: Kind, count: usize) -> Option<()> {
        let slot = match kind {
            Kind::Absent => NO_SLOT,
            Kind::Byte(byte) => Slot::new(&[byte], BYTE),
            Kind::Text(text) if text.len() <= SHORT => Slot::new(text, text.len() as u8),
            Kind::Text(text) => {
                let (start, length) = (u32::try_from(self.arena.len()).ok()?, u32::try_from(text.len()).ok()?);
                self.arena.extend_from_slice(text);
                Slot::new(&[start.to_ne_bytes(), length.to_ne_bytes()].concat(), LONG)
            }
        };
        if (id as usize) < 4 * count + 1024 {
            if self.slots.len() <= id as usize {
                self.slots.resize(id as usize + 1, NO_SLOT);
            }
            self.slots[id as usize] = slot;
        } else {
            self.far.push((id, slot));
        }
        Some(())
    }

    /// Give the slots.
    pub fn finish(mut self) -> Slots {
        // Of two with an id the last counts.
        self.far.reverse();
        self.far.sort_by_key(|(id, _)| *id);
        self.far.dedup_by_key(|(id, _)| *id);
        let (far_ids, far_slots): (Vec<u32>, Vec<Slot>) = self.far.into_iter().unzip();
        Slots {
            slots: self.slots.into(),
            far_ids: far_ids.into(),
            far_slots: far_slots.into(),
            arena: self.arena.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(kinds: &[(u32, Kind)]) -> Slots {
        let mut builder = SlotsBuilder::default();
        kinds.iter().for_each(|(id, kind)| builder.add(*id, *kind, kinds.len()).expect("little"));
        builder.finish()
    }

    #[test]
    fn texts_are_copied_up_to_what_is_not_a_short_one() {
        let long = [b'x'; 40];
        let kinds = [
            (0, Kind::Text(b"one")),
            (1, Kind::Text(b"fifteen letters")),
            (2, Kind::Text(&long)),
            (3, Kind::Byte(7)),
            (4, Kind::Text(b"")),
            (3_000_000_000, Kind::Text(b"old")),
            (3_000_000_000, Kind::Text(b"far")),
        ];
        let slots = slots(&kinds);
        for (id, kind) in kinds.iter().filter(|(_, kind)| *kind != Kind::Text(b"old")) {
            assert_eq!(slots.kind(*id), *kind);
        }
        assert_eq!([5, 1 << 20, 3_000_000_001].map(|id| slots.kind(id)), [Kind::Absent; 3]);
        let mut room = [0; 4 * SLOT];
        let mut copied = |ids: &[u32]| {
            let (done, length) = slots.copy_texts(ids, &mut room);
            (done, room[..length].to_vec())
        };
        assert_eq!(copied(&[]), (0, vec![]));
        assert_eq!(copied(&[0, 4, 1, 0, 0]), (4, b"onefifteen lettersone".to_vec()));
        assert_eq!(copied(&[1, 1, 1, 1, 1]), (4, b"fifteen letters".repeat(4)));
        for stop in [2, 3, 9, 3_000_000_000] {
            assert_eq!(copied(&[0, stop, 0]), (1, b"one".to_vec()));
        }
    }

    #[test]
    fn agreement_is_exact() {
        let long = [b'x'; 40];
        let slots =
            slots(&[(0, Kind::Text(b"one")), (1, Kind::Text(&long)), (2, Kind::Byte(b'!')), (9, Kind::Text(b" "))]);
        let (mut ids, mut text) = (vec![], vec![]);
        for number in 0..2000u32 {
            let id = [0, 9, 9, 1, 2, 5, 0][(number * number % 7) as usize];
            ids.push(id);
            match slots.kind(id) {
                Kind::Text(bytes) => text.extend_from_slice(bytes),
                Kind::Byte(byte) => text.push(byte),
                Kind::Absent => {}
            }
        }
        let mut room = vec![];
        let data = [b"ab", &text[..], b"..."].concat();
        assert_eq!(slots.agreement(&ids, &data, 2, &mut room), Some(2 + text.len()));
        assert_eq!(slots.agreement(&ids, &data[..data.len() - 3], 2, &mut room), Some(2 + text.len()));
        assert_eq!(slots.agreement(&ids, &data[..data.len() - 4], 2, &mut room), None);
        assert_eq!(slots.agreement(&ids, &data, 3, &mut room), None);
        assert_eq!(slots.agreement(&ids, &data, data.len() + 1, &mut room), None);
        for at in (0..text.len()).step_by(37) {
            let mut other = data.clone();
            other[2 + at] ^= 1;
            assert_eq!(slots.agreement(&ids, &other, 2, &mut room), None);
        }
    }
}
