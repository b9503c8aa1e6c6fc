//! Decoding columns: what each token contributes to the text, found once, as bytes.
//!
//! Most decoders give the same bytes for a token wherever it stands, but in the first or last place; what follows them
//! (a Fuse, a Strip of the whole, a run of byte tokens) is done to the whole text. Then a text is put together, or held
//! against another one, by slots of 16 bytes: up to 15 of text, and their number. Other decoders (CTC, say) take the road
//! of `decoders.rs`, row by row.

use crate::decoders::{byte_of_token, run, stripped, word_cleaned_up, write_byte_level, Decoder, Place, Step};
use crate::error::Result;
use crate::hash::FastMap;

/// The largest id in a column: those are of 32 bits with a sign.
const LARGEST: u32 = i32::MAX as u32;
/// Bytes of text in a slot.
const SHORT: usize = 15;
/// Tags of slots that are not short texts.
const LONG: u8 = 253;
const BYTE: u8 = 254;
const ABSENT: u8 = 255;

/// What a token contributes: 15 bytes, the first one lowest, and a tag on top.
///
/// Two words, and not an array: so they stay in registers.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Slot(u64, u64);

const NO_SLOT: Slot = Slot(0, (ABSENT as u64) << 56);

impl Slot {
    fn new(bytes: &[u8], tag: u8) -> Slot {
        let mut all = [0; SHORT + 1];
        all[..bytes.len()].copy_from_slice(bytes);
        all[SHORT] = tag;
        let word = u128::from_le_bytes(all);
        Slot(word as u64, (word >> 64) as u64)
    }

    /// The number of bytes; or `LONG`: the bytes are the start and length of a text in the arena; `BYTE`: one byte of a
    /// run; `ABSENT`: no token has this id, or it is passed over.
    #[inline(always)]
    fn tag(self) -> u8 {
        (self.1 >> 56) as u8
    }

    #[inline(always)]
    fn bytes(self) -> [u8; SHORT + 1] {
        (u128::from(self.0) | u128::from(self.1) << 64).to_le_bytes()
    }

    #[inline(always)]
    fn first_byte(self) -> u8 {
        self.0 as u8
    }
}

/// What comes after the steps that work on each token by itself.
enum Tail {
    /// Tokens are joined.
    Joined,
    /// Tokens are joined, and these steps work on the whole. With `is_lossy`, what is not UTF-8 is replaced first.
    Whole { is_lossy: bool, first_step: usize },
}

/// The table of one decoder, with or without special tokens.
pub struct TokenTable {
    slots: Vec<Slot>,
    /// Tokens with ids far beyond their number.
    far: FastMap<u32, Slot>,
    arena: Vec<u8>,
    /// How many steps work on each token by itself; where there is no decoder, a space goes before each but the first.
    local_steps: usize,
    depends_on: Place,
    /// Byte tokens next to each other are read as UTF-8.
    has_byte_runs: bool,
    tail: Tail,
}

/// How tokens become one text.
#[derive(Clone, Copy, Debug)]
pub struct Joining {
    /// In which places tokens contribute something else.
    pub depends_on: Place,
    /// In the joined bytes, what is not UTF-8 is replaced.
    pub is_lossy: bool,
    /// More is done to the whole.
    pub goes_on: bool,
}

/// How texts are put together again.
pub struct ColumnDecoder {
    decoder: Decoder,
    table: Option<TokenTable>,
}

/// The strings of tokens by id.
pub trait TokenStrings {
    /// The string that a decoder sees for an id; None: no token has it, or it is passed over.
    fn string(&self, id: u32) -> Option<&str>;

    /// All ids that may have one, in any order, each at least once.
    fn ids(&self) -> Vec<u32>;
}

impl ColumnDecoder {
    /// Build the table for all tokens, if the decoder is one for which there is a table.
    pub fn build(decoder: Decoder, tokens: &impl TokenStrings) -> ColumnDecoder {
        let table = TokenTable::build(&decoder, tokens);
        ColumnDecoder { decoder, table }
    }

    /// Append the text of ids.
    pub fn decode_into(&self, ids: &[u32], tokens: &impl TokenStrings, text: &mut Vec<u8>) -> Result<()> {
        match &self.table {
            Some(table) => table.decode_into(&self.decoder, ids, tokens, text),
            None => {
                let ids: Vec<u32> = ids.iter().copied().filter(|&id| id <= LARGEST).collect();
                text.extend_from_slice(self.decode_slowly(&ids, tokens)?.as_bytes());
                Ok(())
            }
        }
    }

    /// Append the text of token strings.
    pub fn decode_strings_into<'a>(
        &self,
        strings: impl ExactSizeIterator<Item = &'a str>,
        text: &mut Vec<u8>,
    ) -> Result<()> {
        match &self.table {
            Some(table) => table.decode_strings_into(&self.decoder, strings, text),
            None => {
                text.extend_from_slice(self.decoder.decode(strings.map(str::to_owned).collect())?.as_bytes());
                Ok(())
            }
        }
    }

    /// How tokens are joined, where each contributes bytes of its own, and no more is done to the bytes of tokens that
    /// differ in them than what this says. None where that is not so, or where a token can fail.
    pub fn joining(&self) -> Option<Joining> {
        let table = self.table.as_ref()?;
        let steps = self.decoder.steps.as_deref().unwrap_or_default();
        let can_fail = steps[..table.local_steps].iter().any(|step| matches!(step, Step::Strip { .. }));
        let (is_lossy, goes_on) = match table.tail {
            Tail::Joined => (false, false),
            Tail::Whole { is_lossy, first_step } => (is_lossy, first_step < steps.len()),
        };
        (!can_fail).then_some(Joining { depends_on: table.depends_on, is_lossy, goes_on })
    }

    /// Append what strings contribute as tokens, the first or last of them in the place that `end` says. False: one of
    /// them is a byte of a run, or there is no `joining`.
    pub fn write_strings<'a>(
        &self,
        strings: impl ExactSizeIterator<Item = &'a str>,
        end: Place,
        bytes: &mut Vec<u8>,
    ) -> Result<bool> {
        let (Some(table), count) = (&self.table, strings.len()) else { return Ok(false) };
        for (at, string) in strings.enumerate() {
            let place = Place { is_first: end.is_first && at == 0, is_last: end.is_last && at + 1 == count };
            if table.write_token(&self.decoder, string, place, bytes)?.is_some() && table.has_byte_runs {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for tokens by id. False also where no token has an id.
    pub fn write_ids(&self, ids: &[u32], end: Place, tokens: &impl TokenStrings, bytes: &mut Vec<u8>) -> Result<bool> {
        let Some(table) = &self.table else { return Ok(false) };
        if ids.iter().any(|&id| matches!(table.slot(id).tag(), ABSENT | BYTE)) {
            return Ok(false);
        }
        let (first, others) = ids.split_at(usize::from(end.is_first).min(ids.len()));
        let (middle, last) = others.split_at(others.len().saturating_sub(usize::from(end.is_last)));
        let strings = |ids: &[u32]| ids.first().and_then(|&id| tokens.string(id));
        self.write_strings(strings(first).into_iter(), end, bytes)?;
        table.write_middle(middle, bytes, &mut vec![]);
        self.write_strings(strings(last).into_iter(), end, bytes)
    }

    /// Whether `agrees` says false of this text only where it is another one: no bytes were replaced in it.
    pub fn tells_all_of(&self, text: &str) -> bool {
        let Some(table) = &self.table else { return false };
        let steps = self.decoder.steps.as_ref().map_or(0, Vec::len);
        let (is_lossy, goes_on) = match table.tail {
            Tail::Joined => (table.has_byte_runs, false),
            Tail::Whole { is_lossy, first_step } => (is_lossy || table.has_byte_runs, first_step < steps),
        };
        !goes_on && (!is_lossy || memchr::memmem::find(text.as_bytes(), "\u{FFFD}".as_bytes()).is_none())
    }

    /// Give the text of ids by the general road.
    pub fn decode_slowly(&self, ids: &[u32], tokens: &impl TokenStrings) -> Result<String> {
        self.decoder.decode(ids.iter().filter_map(|&id| tokens.string(id)).map(str::to_owned).collect())
    }

    /// The decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Whether the text of ids is `data[start..end]`. False may also mean that it takes `decode_into` to tell.
    pub fn agrees(&self, ids: &[u32], tokens: &impl TokenStrings, data: &[u8], start: usize, end: usize) -> bool {
        self.table.as_ref().is_some_and(|table| table.agrees(&self.decoder, ids, tokens, data, start, end))
    }
}

impl TokenTable {
    fn build(decoder: &Decoder, tokens: &impl TokenStrings) -> Option<TokenTable> {
        let empty: &[Step] = &[];
        let steps = decoder.steps.as_deref().unwrap_or(empty);
        let local_steps = steps.iter().take_while(|step| step.is_local()).count();
        let rest = &steps[local_steps..];
        let has_byte_runs = matches!(rest.first(), Some(Step::ByteFallback));
        let is_byte_level = matches!(rest.first(), Some(Step::ByteLevel));
        let tail = match (&rest[usize::from(has_byte_runs)..], local_steps + usize::from(has_byte_runs)) {
            ([], _) => Tail::Joined,
            ([Step::Fuse, ..], done) => Tail::Whole { is_lossy: false, first_step: done + 1 },
            ([Step::ByteLevel, ..], done) if !has_byte_runs => Tail::Whole { is_lossy: true, first_step: done + 1 },
            _ => return None,
        };
        let depends = |of: fn(Place) -> bool| steps[..local_steps].iter().any(|step| of(step.depends_on()));
        let is_first = depends(|place| place.is_first) || decoder.steps.is_none();
        let mut table = TokenTable {
            slots: vec![],
            far: FastMap::default(),
            arena: vec![],
            local_steps,
            depends_on: Place { is_first, is_last: depends(|place| place.is_last) },
            has_byte_runs,
            tail,
        };
        let ids = tokens.ids();
        let mut bytes = vec![];
        for &id in &ids {
            let Some(token) = tokens.string(id).filter(|_| id <= LARGEST) else { continue };
            bytes.clear();
            // A token that cannot be decoded by itself is for the general road, and so is all the rest.
            let byte = table.write_token(decoder, token, Place { is_first: false, is_last: false }, &mut bytes).ok()?;
            let slot = match byte.filter(|_| has_byte_runs) {
                Some(byte) => Slot::new(&[byte], BYTE),
                None => table.slot_of(&bytes)?,
            };
            if (id as usize) < 4 * ids.len() + 1024 {
                if table.slots.len() <= id as usize {
                    table.slots.resize(id as usize + 1, NO_SLOT);
                }
                table.slots[id as usize] = slot;
            } else {
                table.far.insert(id, slot);
            }
        }
        debug_assert!(!is_byte_level || !has_byte_runs);
        Some(table)
    }

    fn slot_of(&mut self, bytes: &[u8]) -> Option<Slot> {
        if bytes.len() <= SHORT {
            return Some(Slot::new(bytes, bytes.len() as u8));
        }
        let place = [u32::try_from(self.arena.len()).ok()?, u32::try_from(bytes.len()).ok()?];
        self.arena.extend_from_slice(bytes);
        Some(Slot(u64::from(place[0]) | u64::from(place[1]) << 32, u64::from(LONG) << 56))
    }

    /// Append what a token contributes in a place; gives the byte, where it is a byte token now.
    fn write_token(&self, decoder: &Decoder, token: &str, place: Place, bytes: &mut Vec<u8>) -> Result<Option<u8>> {
        let Some(steps) = &decoder.steps else {
            if !place.is_first {
                bytes.push(b' ');
            }
            bytes.extend_from_slice(token.as_bytes());
            return Ok(None);
        };
        if self.local_steps == 0 {
            if let Some(Step::ByteLevel) = steps.first() {
                write_byte_level(token, bytes);
            } else {
                bytes.extend_from_slice(token.as_bytes());
            }
            return Ok(byte_of_token(token));
        }
        let local = &steps[..self.local_steps];
        let is_plain = !place.is_first && !self.has_byte_runs && !matches!(self.tail, Tail::Whole { is_lossy: true, .. });
        if let ([Step::Metaspace { replacement, .. }], true) = (local, is_plain) {
            for (i, part) in token.split(*replacement).enumerate() {
                bytes.extend_from_slice(if i > 0 { b" " } else { b"" });
                bytes.extend_from_slice(part.as_bytes());
            }
            return Ok(None);
        }
        if let ([Step::WordPiece { prefix, cleanup }], true) = (local, is_plain) {
            let begin = bytes.len();
            let rest = token.strip_prefix(prefix.as_str());
            bytes.extend_from_slice(if rest.is_none() { b" " } else { b"" });
            bytes.extend_from_slice(rest.unwrap_or(token).as_bytes());
            if !*cleanup {
                return Ok(None);
            }
            if let Some(cleaned) = word_cleaned_up(&bytes[begin..]).map(<[u8]>::len) {
                // At most a space at the beginning goes.
                bytes.drain(begin..bytes.len() - cleaned);
                return Ok(None);
            }
            bytes.truncate(begin);
        }
        let token = local.iter().try_fold(token.to_owned(), |token, step| step.decode_token(token, place))?;
        if let Tail::Whole { is_lossy: true, .. } = self.tail {
            write_byte_level(&token, bytes);
        } else {
            bytes.extend_from_slice(token.as_bytes());
        }
        Ok(byte_of_token(&token))
    }

    #[inline(always)]
    fn slot(&self, id: u32) -> Slot {
        match self.slots.get(id as usize) {
            Some(&slot) => slot,
            None if self.far.is_empty() => NO_SLOT,
            None => self.far.get(&id).copied().unwrap_or(NO_SLOT),
        }
    }

    fn long(&self, slot: Slot) -> &[u8] {
        let (start, length) = (slot.0 as u32 as usize, (slot.0 >> 32) as usize);
        &self.arena[start..start + length]
    }

    /// The first and the last token, where they have to be written by themselves, and what lies between.
    fn ends<'a>(&self, ids: &'a [u32]) -> (Option<u32>, &'a [u32], Option<u32>) {
        if !self.depends_on.is_first && !self.depends_on.is_last {
            return (None, ids, None);
        }
        let is_token = |id: &u32| self.slot(*id).tag() != ABSENT;
        let Some(first) = ids.iter().position(is_token) else { return (None, &[], None) };
        let last = ids.iter().rposition(is_token).unwrap_or(first);
        let last_id = (last > first && self.depends_on.is_last).then(|| ids[last]);
        (Some(ids[first]), &ids[first + 1..if last_id.is_some() { last } else { ids.len() }], last_id)
    }

    /// Append what the first or the last token contributes, and the byte, where it is one of a run.
    fn write_end(
        &self,
        decoder: &Decoder,
        (id, place): (u32, Place),
        tokens: &impl TokenStrings,
        text: &mut Vec<u8>,
        run: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(token) = tokens.string(id) else { return Ok(()) };
        if self.slot(id).tag() == BYTE {
            run.push(self.slot(id).first_byte());
            return Ok(());
        }
        end_run(run, text);
        self.write_token(decoder, token, place, text).map(drop)
    }

    fn decode_into(
        &self,
        decoder: &Decoder,
        ids: &[u32],
        tokens: &impl TokenStrings,
        text: &mut Vec<u8>,
    ) -> Result<()> {
        let begin = text.len();
        let (first, middle, last) = self.ends(ids);
        let mut run_of_bytes = vec![];
        if let Some(id) = first {
            let place = Place { is_first: true, is_last: last.is_none() && middle.iter().all(|&id| self.slot(id).tag() == ABSENT) };
            self.write_end(decoder, (id, place), tokens, text, &mut run_of_bytes)?;
        }
        self.write_middle(middle, text, &mut run_of_bytes);
        if let Some(id) = last {
            let place = Place { is_first: false, is_last: true };
            self.write_end(decoder, (id, place), tokens, text, &mut run_of_bytes)?;
        }
        end_run(&mut run_of_bytes, text);
        self.finish(decoder, begin, text)
    }

    fn decode_strings_into<'a>(
        &self,
        decoder: &Decoder,
        strings: impl ExactSizeIterator<Item = &'a str>,
        text: &mut Vec<u8>,
    ) -> Result<()> {
        let (begin, count) = (text.len(), strings.len());
        let mut run_of_bytes = vec![];
        let mut bytes = vec![];
        for (i, string) in strings.enumerate() {
            let place = Place { is_first: i == 0, is_last: i + 1 == count };
            if !self.has_byte_runs {
                self.write_token(decoder, string, place, text)?;
                continue;
            }
            bytes.clear();
            match self.write_token(decoder, string, place, &mut bytes)? {
                Some(byte) => run_of_bytes.push(byte),
                None => {
                    end_run(&mut run_of_bytes, text);
                    text.extend_from_slice(&bytes);
                }
            }
        }
        end_run(&mut run_of_bytes, text);
        self.finish(decoder, begin, text)
    }

    /// Do to the whole text, which begins at `begin`, what the steps behind those for tokens do.
    fn finish(&self, decoder: &Decoder, begin: usize, text: &mut Vec<u8>) -> Result<()> {
        let Tail::Whole { is_lossy, first_step } = self.tail else { return Ok(()) };
        if is_lossy {
            if let std::borrow::Cow::Owned(replaced) = String::from_utf8_lossy(&text[begin..]) {
                text.truncate(begin);
                text.extend_from_slice(replaced.as_bytes());
            }
        }
        let steps = decoder.steps.as_deref().unwrap_or_default();
        match &steps[first_step..] {
            [] => Ok(()),
            [Step::Strip { content, start, stop }] => {
                let (from, to) = stripped(utf8(&text[begin..]), *content, *start, *stop)?;
                text.truncate(begin + to);
                text.drain(begin..begin + from);
                Ok(())
            }
            rest => {
                let whole = utf8(&text[begin..]).to_owned();
                let whole = run(rest, vec![whole])?;
                text.truncate(begin);
                text.extend_from_slice(whole.as_bytes());
                Ok(())
            }
        }
    }

    fn write_middle(&self, ids: &[u32], text: &mut Vec<u8>, run_of_bytes: &mut Vec<u8>) {
        // `text` is longer than what is written of it, so that a slot can be copied whole.
        let mut length = text.len();
        for chunk in ids.chunks(256) {
            let room = chunk.len() * (SHORT + 1);
            text.resize(text.len().max(length + room), 0);
            for &id in chunk {
                let slot = self.slot(id);
                let tag = slot.tag();
                if tag <= SHORT as u8 && run_of_bytes.is_empty() {
                    text[length..length + SHORT + 1].copy_from_slice(&slot.bytes());
                    length += tag as usize;
                    continue;
                }
                match tag {
                    ABSENT => continue,
                    BYTE => {
                        run_of_bytes.push(slot.first_byte());
                        continue;
                    }
                    _ => {}
                }
                text.truncate(length);
                end_run(run_of_bytes, text);
                match tag {
                    LONG => text.extend_from_slice(self.long(slot)),
                    _ => text.extend_from_slice(&slot.bytes()[..tag as usize]),
                }
                length = text.len();
                text.resize(length + room, 0);
            }
        }
        text.truncate(length);
    }

    fn agrees(
        &self,
        decoder: &Decoder,
        ids: &[u32],
        tokens: &impl TokenStrings,
        data: &[u8],
        start: usize,
        end: usize,
    ) -> bool {
        let steps = decoder.steps.as_ref().map_or(0, Vec::len);
        if matches!(self.tail, Tail::Whole { first_step, .. } if first_step < steps) {
            return false;
        }
        let (first, middle, last) = self.ends(ids);
        if first.is_none() && last.is_none() {
            return self.middle_end(middle, data, start) == Some(end);
        }
        let written = |id: u32, place: Place| {
            let mut bytes = vec![];
            let mut run = vec![];
            self.write_end(decoder, (id, place), tokens, &mut bytes, &mut run).ok()?;
            bytes.append(&mut run);
            Some(bytes)
        };
        let mut at = start;
        if let Some(id) = first {
            let is_last = last.is_none() && middle.iter().all(|&id| self.slot(id).tag() == ABSENT);
            match written(id, Place { is_first: true, is_last }) {
                Some(bytes) if data[at..end].starts_with(&bytes) => at += bytes.len(),
                _ => return false,
            }
        }
        match self.middle_end(middle, data, at) {
            Some(place) if place <= end => at = place,
            _ => return false,
        }
        match last.map(|id| written(id, Place { is_first: false, is_last: true })) {
            None => at == end,
            Some(bytes) => bytes.is_some_and(|bytes| data[at..end] == bytes[..]),
        }
    }

    /// Where the text of ids ends, if it is what stands in `data` from `at` on. The bytes of runs count as they are: a
    /// run that agrees with a text is UTF-8, since all around it is.
    fn middle_end(&self, ids: &[u32], data: &[u8], mut at: usize) -> Option<usize> {
        for &id in ids {
            let slot = self.slot(id);
            let length = slot.tag() as usize;
            if length <= SHORT {
                match data.get(at..at + SHORT + 1) {
                    Some(there) => {
                        let (low, high) = there.split_at(8);
                        let low = u64::from_le_bytes(low.try_into().expect("8 bytes"));
                        let high = u64::from_le_bytes(high.try_into().expect("8 bytes"));
                        let mask = MASKS[length];
                        if (low ^ slot.0) & mask.0 | (high ^ slot.1) & mask.1 != 0 {
                            return None;
                        }
                    }
                    None if data.get(at..at + length) == Some(&slot.bytes()[..length]) => {}
                    None => return None,
                }
                at += length;
                continue;
            }
            match slot.tag() {
                ABSENT => {}
                BYTE => {
                    if data.get(at) != Some(&slot.first_byte()) {
                        return None;
                    }
                    at += 1;
                }
                _ => {
                    let long = self.long(slot);
                    if data.get(at..at + long.len()) != Some(long) {
                        return None;
                    }
                    at += long.len();
                }
            }
        }
        Some(at)
    }
}

/// The bytes of a slot that count, by their number.
const MASKS: [(u64, u64); SHORT + 1] = {
    let mut masks = [(0, 0); SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        let mask = (1u128 << (8 * length)) - 1;
        masks[length] = (mask as u64, (mask >> 64) as u64);
        length += 1;
    }
    masks
};

/// End a run of byte tokens: where it is not UTF-8, every byte becomes a replacement character.
fn end_run(run: &mut Vec<u8>, text: &mut Vec<u8>) {
    if run.is_empty() {
        return;
    }
    match std::str::from_utf8(run) {
        Ok(_) => text.extend_from_slice(run),
        Err(_) => run.iter().for_each(|_| text.extend_from_slice("\u{FFFD}".as_bytes())),
    }
    run.clear();
}

/// All that is put together here is UTF-8: token strings, checked runs, replaced bytes.
fn utf8(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("put together from texts")
}

#[cfg(test)]
mod tests;
