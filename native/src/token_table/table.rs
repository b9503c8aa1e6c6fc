//! The table of one decoder: what its tokens contribute, and what is done to the whole text afterwards.

use super::slots::{Kind, Slots, SlotsBuilder, SLOT};
use super::{TokenStrings, LARGEST};
use crate::decoders::{byte_of_token, run, stripped, word_cleaned_up, write_byte_level, Decoder, Place, Step};
use crate::error::Result;
use crate::tables::Tables;

/// What comes after the steps that work on each token by itself.
pub enum Tail {
    /// Tokens are joined.
    Joined,
    /// Tokens are joined, and these steps work on the whole. With `is_lossy`, what is not UTF-8 is replaced first.
    Whole { is_lossy: bool, first_step: usize },
}

/// What is done to the whole, when the bytes of tokens are joined.
pub enum End {
    /// Nothing.
    Nothing,
    /// Up to `most` times a character goes from its beginning.
    Strip { content: u8, most: usize },
    /// Something else.
    More,
}

/// The table of one decoder, with or without special tokens.
pub struct TokenTable {
    pub slots: Slots,
    /// How many steps work on each token by itself; where there is no decoder, a space goes before each but the first.
    pub local_steps: usize,
    pub depends_on: Place,
    /// Byte tokens next to each other are read as UTF-8.
    pub has_byte_runs: bool,
    pub tail: Tail,
}

impl TokenTable {
    /// Build the table; None: there is none for such a decoder, or such tokens.
    pub fn build(decoder: &Decoder, tokens: &impl TokenStrings) -> Option<TokenTable> {
        let empty = TokenTable::empty(decoder)?;
        Some(TokenTable { slots: empty.slots_of(decoder, tokens)?, ..empty })
    }

    /// Do the same where the slots may be in a file, or are to be written to one.
    pub fn build_in(decoder: &Decoder, tokens: &impl TokenStrings, tables: &mut Tables) -> Result<Option<TokenTable>> {
        let Some(empty) = TokenTable::empty(decoder) else { return Ok(None) };
        let slots = tables.make(|| Ok(empty.slots_of(decoder, tokens)))?;
        Ok(slots.map(|slots| TokenTable { slots, ..empty }))
    }

    /// The table without slots.
    fn empty(decoder: &Decoder) -> Option<TokenTable> {
        let empty: &[Step] = &[];
        let steps = decoder.steps.as_deref().unwrap_or(empty);
        let local_steps = steps.iter().take_while(|step| step.is_local()).count();
        let rest = &steps[local_steps..];
        let has_byte_runs = matches!(rest.first(), Some(Step::ByteFallback));
        let tail = match (&rest[usize::from(has_byte_runs)..], local_steps + usize::from(has_byte_runs)) {
            ([], _) => Tail::Joined,
            ([Step::Fuse, ..], done) => Tail::Whole { is_lossy: false, first_step: done + 1 },
            ([Step::ByteLevel, ..], done) if !has_byte_runs => Tail::Whole { is_lossy: true, first_step: done + 1 },
            _ => return None,
        };
        let depends = |of: fn(Place) -> bool| steps[..local_steps].iter().any(|step| of(step.depends_on()));
        let is_first = depends(|place| place.is_first) || decoder.steps.is_none();
        debug_assert!(!matches!(rest.first(), Some(Step::ByteLevel)) || !has_byte_runs);
        let depends_on = Place { is_first, is_last: depends(|place| place.is_last) };
        Some(TokenTable { slots: Slots::default(), local_steps, depends_on, has_byte_runs, tail })
    }

    fn slots_of(&self, decoder: &Decoder, tokens: &impl TokenStrings) -> Option<Slots> {
        let ids = tokens.ids();
        let mut slots = SlotsBuilder::default();
        let mut bytes = vec![];
        for &id in &ids {
            let Some(token) = tokens.string(id).filter(|_| id <= LARGEST) else { continue };
            bytes.clear();
            // A token that cannot be decoded by itself is for the general road, and so is all the rest.
            let byte = self.write_token(decoder, token, Place { is_first: false, is_last: false }, &mut bytes).ok()?;
            let kind = byte.filter(|_| self.has_byte_runs).map_or(Kind::Text(&bytes), Kind::Byte);
            slots.add(id, kind, ids.len())?;
        }
        Some(slots.finish())
    }

    /// Append what a token contributes in a place; gives the byte, where it is a byte token now.
    pub fn write_token(&self, decoder: &Decoder, token: &str, place: Place, bytes: &mut Vec<u8>) -> Result<Option<u8>> {
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
        let is_plain =
            !place.is_first && !self.has_byte_runs && !matches!(self.tail, Tail::Whole { is_lossy: true, .. });
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

    /// The first and the last token, where they have to be written by themselves, and what lies between.
    fn ends<'a>(&self, ids: &'a [u32]) -> (Option<u32>, &'a [u32], Option<u32>) {
        if !self.depends_on.is_first && !self.depends_on.is_last {
            return (None, ids, None);
        }
        let is_token = |id: &u32| self.slots.kind(*id) != Kind::Absent;
        let Some(first) = ids.iter().position(is_token) else { return (None, &[], None) };
        let last = ids.iter().rposition(is_token).unwrap_or(first);
        let last_id = (last > first && self.depends_on.is_last).then(|| ids[last]);
        (Some(ids[first]), &ids[first + 1..if last_id.is_some() { last } else { ids.len() }], last_id)
    }

    fn are_absent(&self, ids: &[u32]) -> bool {
        ids.iter().all(|&id| self.slots.kind(id) == Kind::Absent)
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
        if let Kind::Byte(byte) = self.slots.kind(id) {
            run.push(byte);
            return Ok(());
        }
        end_run(run, text);
        self.write_token(decoder, token, place, text).map(drop)
    }

    pub fn decode_into(
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
            let place = Place { is_first: true, is_last: last.is_none() && self.are_absent(middle) };
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

    pub fn decode_strings_into<'a>(
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

    pub fn write_middle(&self, ids: &[u32], text: &mut Vec<u8>, run_of_bytes: &mut Vec<u8>) {
        // `text` is longer than what is written of it, so that slots can be copied whole.
        let mut length = text.len();
        for mut chunk in ids.chunks(256) {
            while !chunk.is_empty() {
                if run_of_bytes.is_empty() {
                    text.resize(text.len().max(length + chunk.len() * SLOT), 0);
                    let (done, written) = self.slots.copy_texts(chunk, &mut text[length..]);
                    length += written;
                    chunk = &chunk[done..];
                }
                let Some((&id, others)) = chunk.split_first() else { break };
                chunk = others;
                match self.slots.kind(id) {
                    Kind::Absent => {}
                    Kind::Byte(byte) => run_of_bytes.push(byte),
                    Kind::Text(bytes) => {
                        text.truncate(length);
                        end_run(run_of_bytes, text);
                        text.extend_from_slice(bytes);
                        length = text.len();
                    }
                }
            }
        }
        text.truncate(length);
    }

    pub fn agrees(
        &self,
        decoder: &Decoder,
        ids: &[u32],
        tokens: &impl TokenStrings,
        (data, start, end): (&[u8], usize, usize),
        room: &mut Vec<u8>,
    ) -> bool {
        match self.end(decoder) {
            End::Nothing => {}
            End::Strip { .. } if ids.is_empty() => return start == end,
            End::Strip { content, most } => {
                let Some(bytes) = self.stripped_first(ids, content, most) else { return false };
                let is_begun = data[start..end].starts_with(bytes);
                return is_begun && self.slots.agreement(&ids[1..], data, start + bytes.len(), room) == Some(end);
            }
            End::More => return false,
        }
        let (first, middle, last) = self.ends(ids);
        if first.is_none() && last.is_none() {
            return self.slots.agreement(middle, data, start, room) == Some(end);
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
            match written(id, Place { is_first: true, is_last: last.is_none() && self.are_absent(middle) }) {
                Some(bytes) if data[at..end].starts_with(&bytes) => at += bytes.len(),
                _ => return false,
            }
        }
        match self.slots.agreement(middle, data, at, room) {
            Some(place) if place <= end => at = place,
            _ => return false,
        }
        match last.map(|id| written(id, Place { is_first: false, is_last: true })) {
            None => at == end,
            Some(bytes) => bytes.is_some_and(|bytes| data[at..end] == bytes[..]),
        }
    }
}

impl TokenTable {
    /// What is done to the whole.
    pub fn end(&self, decoder: &Decoder) -> End {
        let Tail::Whole { first_step, .. } = self.tail else { return End::Nothing };
        match decoder.steps.as_deref().unwrap_or_default()[first_step..] {
            [] => End::Nothing,
            [Step::Strip { content, start: most, stop: 0 }] if content.is_ascii() => {
                End::Strip { content: content as u8, most }
            }
            _ => End::More,
        }
    }

    /// What is left of the first token where up to `most` times `content` is stripped off the beginning of the whole. None:
    /// it is not seen in the first token how often that is.
    pub fn stripped_first(&self, ids: &[u32], content: u8, most: usize) -> Option<&[u8]> {
        let (&id, false) = (ids.first()?, self.depends_on.is_first || self.depends_on.is_last) else { return None };
        let Kind::Text(bytes) = self.slots.kind(id) else { return None };
        let count = bytes.iter().take_while(|&&byte| byte == content).count();
        (count < bytes.len() || count >= most).then(|| &bytes[count.min(most)..])
    }
}

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
