//! Characters whose bytes merge before anything else does: where a row of byte-level BPE can begin with them.
//!
//! As long as a character is in parts, one of its own merges is possible, and none of them has a higher number (rank) than
//! the highest. If every merge of something that it ever begins with and something before it that ends with the byte that
//! stands there has a higher one, and likewise behind it, then it is whole before anything of it merges across its borders.
//! And if whatever the whole character merges with comes later still, it makes no difference that it is whole from the
//! start.

use bytemuck::{Pod, Zeroable};

use super::numbered_merges::{FirstSymbols, Room};
use super::sure_pairs::SurePairs;
use crate::hash::FastMap;
use crate::stored_struct;
use crate::tables::Table;

/// See the module.
pub struct ByteCharacters {
    /// For each 64 code points, where their entries begin, in 64s.
    pages: Table<u16>,
    entries: Table<Entry>,
    /// A bit for each byte that may stand there.
    neighbours: Table<[u64; 4]>,
}
stored_struct!(ByteCharacters { pages, entries, neighbours });

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(8))]
struct Entry {
    /// The number of its token, or 0.
    number: u32,
    /// Which bytes may stand before and behind it.
    before: u16,
    behind: u16,
}

/// How a token comes to be: what it begins and ends with until it is whole, and the highest number of its merges.
pub struct Parts {
    /// Begins with.
    pub firsts: Vec<u32>,
    /// Ends with.
    pub lasts: Vec<u32>,
    /// See the struct.
    pub highest: u32,
}

impl ByteCharacters {
    /// Build from all merges that count (left, right, merged), the first and last byte of each number, and the tokens of
    /// characters: number and parts.
    pub fn build(
        merges: &[[u32; 3]],
        ends: impl Fn(u32) -> (u32, u32),
        characters: &[(char, u32, Parts)],
    ) -> Option<ByteCharacters> {
        // For each part at a border, and each byte beyond it, the lowest number of a merge of the two.
        let mut with_before: FastMap<u32, Box<[u32; 256]>> = FastMap::default();
        let mut with_behind: FastMap<u32, Box<[u32; 256]>> = FastMap::default();
        // The same for whole characters, whatever the byte.
        let mut of_wholes: FastMap<u32, u32> = FastMap::default();
        for (_, number, parts) in characters {
            of_wholes.insert(*number, u32::MAX);
            for &part in &parts.firsts {
                with_before.entry(part).or_insert_with(|| Box::new([u32::MAX; 256]));
            }
            for &part in &parts.lasts {
                with_behind.entry(part).or_insert_with(|| Box::new([u32::MAX; 256]));
            }
        }
        for &[left, right, merged] in merges {
            for side in [left, right] {
                if let Some(lowest) = of_wholes.get_mut(&side) {
                    *lowest = merged.min(*lowest);
                }
            }
            if let Some(lowest) = with_before.get_mut(&right) {
                let lowest = &mut lowest[ends(left).1 as usize];
                *lowest = merged.min(*lowest);
            }
            if let Some(lowest) = with_behind.get_mut(&left) {
                let lowest = &mut lowest[ends(right).0 as usize];
                *lowest = merged.min(*lowest);
            }
        }
        let (mut pages, mut entries) =
            (vec![0u16; 0x11_0000 >> 6], vec![Entry { number: 0, before: 0, behind: 0 }; 64]);
        let mut neighbours: Vec<[u64; 4]> = vec![];
        let mut known: FastMap<[u64; 4], u16> = FastMap::default();
        let mut kept = |parts: &[u32], lowest: &FastMap<u32, Box<[u32; 256]>>, highest: u32| -> Option<u16> {
            let mut bytes = [0u64; 4];
            for byte in 0..256 {
                let may_stand = parts.iter().all(|part| lowest[part][byte] > highest);
                bytes[byte / 64] |= u64::from(may_stand) << (byte % 64);
            }
            let next = u16::try_from(known.len()).ok()?;
            Some(*known.entry(bytes).or_insert_with(|| {
                neighbours.push(bytes);
                next
            }))
        };
        for (character, number, parts) in characters {
            if of_wholes[number] <= parts.highest {
                continue;
            }
            let entry = Entry {
                number: *number,
                before: kept(&parts.firsts, &with_before, parts.highest)?,
                behind: kept(&parts.lasts, &with_behind, parts.highest)?,
            };
            let code = *character as usize;
            if pages[code >> 6] == 0 {
                pages[code >> 6] = (entries.len() >> 6) as u16;
                entries.resize(entries.len() + 64, Entry { number: 0, before: 0, behind: 0 });
            }
            entries[usize::from(pages[code >> 6]) << 6 | code & 63] = entry;
        }
        Some(ByteCharacters { pages: pages.into(), entries: entries.into(), neighbours: neighbours.into() })
    }

    /// The number of the character that begins at a place of a text, and its length in bytes, where it is whole before
    /// anything else merges; else that of the byte there.
    #[inline(always)]
    pub fn at(&self, text: &[u8], place: usize) -> (u32, usize) {
        let first = text[place];
        if first < 0x80 {
            return (u32::from(first), 1);
        }
        let (code, length) = match text[place..] {
            [first @ 0xC2..=0xDF, a @ 0x80..=0xBF, ..] => (u32::from(first & 31) << 6 | u32::from(a & 63), 2),
            [first @ 0xE0..=0xEF, a @ 0x80..=0xBF, b @ 0x80..=0xBF, ..] => {
                (u32::from(first & 15) << 12 | u32::from(a & 63) << 6 | u32::from(b & 63), 3)
            }
            [first @ 0xF0..=0xF4, a @ 0x80..=0xBF, b @ 0x80..=0xBF, c @ 0x80..=0xBF, ..] => {
                let high = u32::from(first & 7) << 18 | u32::from(a & 63) << 12;
                (high | u32::from(b & 63) << 6 | u32::from(c & 63), 4)
            }
            _ => return (u32::from(first), 1),
        };
        let Some(&page) = self.pages.get((code >> 6) as usize) else { return (u32::from(first), 1) };
        let entry = self.entries[usize::from(page) << 6 | (code & 63) as usize];
        let may_stand = |neighbours: u16, byte: Option<&u8>| {
            byte.is_none_or(|&byte| {
                self.neighbours[usize::from(neighbours)][usize::from(byte >> 6)] >> (byte & 63) & 1 != 0
            })
        };
        let is_whole = entry.number != 0
            && may_stand(entry.before, place.checked_sub(1).and_then(|before| text.get(before)))
            && may_stand(entry.behind, text.get(place + length));
        if is_whole {
            (entry.number, length)
        } else {
            (u32::from(first), 1)
        }
    }
}

impl FirstSymbols for ByteCharacters {
    #[inline(always)]
    fn write(&self, pretoken: &[u8], sure: &SurePairs, room: &mut Room, mut each: impl FnMut(u32, bool)) -> bool {
        sure.find(pretoken, false, &mut room.found);
        let mut place = 0;
        while place < pretoken.len() {
            let (symbol, length) = self.at(pretoken, place);
            let may_cross = room.found[place].may_cross();
            let (symbol, length) = match room.found[place + 1].merged() {
                Some(merged) if length == 1 => (merged, 2),
                _ => (symbol, length),
            };
            each(symbol, may_cross);
            place += length;
        }
        true
    }
}
