//! Decoding columns: what each token contributes to the text, found once, as bytes.
//!
//! Most decoders give the same bytes for a token wherever it stands, but in the first or last place; what follows them
//! (a Fuse, a Strip of the whole, a run of byte tokens) is done to the whole text. Then a text is put together, or held
//! against another one, from the bytes of its tokens (`slots.rs`). Other decoders (CTC, say) take the road of
//! `decoders.rs`, row by row.

mod slots;
mod table;

use crate::decoders::{Decoder, Place, Step};
use crate::error::Result;
use crate::tables::Tables;

use self::slots::Kind;
use self::table::{End, Tail, TokenTable};

/// The largest id in a column: those are of 32 bits with a sign.
const LARGEST: u32 = i32::MAX as u32;

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

    /// Do the same where the table may be in a file, or is to be written to one.
    pub fn build_in(decoder: Decoder, tokens: &impl TokenStrings, tables: &mut Tables) -> Result<ColumnDecoder> {
        let table = TokenTable::build_in(&decoder, tokens, tables)?;
        Ok(ColumnDecoder { decoder, table })
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
        if ids.iter().any(|&id| matches!(table.slots.kind(id), Kind::Absent | Kind::Byte(_))) {
            return Ok(false);
        }
        let (first, others) = ids.split_at(usize::from(end.is_first).min(ids.len()));
        let (middle, last) = others.split_at(others.len().saturating_sub(usize::from(end.is_last)));
        let strings = |ids: &[u32]| ids.first().and_then(|&id| tokens.string(id));
        self.write_strings(strings(first).into_iter(), end, bytes)?;
        table.write_middle(middle, bytes, &mut vec![]);
        self.write_strings(strings(last).into_iter(), end, bytes)
    }

    /// Whether `agrees` says false of this text, and of these ids, only where it is another one: no bytes were replaced in it.
    pub fn tells_all_of(&self, text: &str, ids: &[u32]) -> bool {
        let Some(table) = &self.table else { return false };
        let is_lossy = table.has_byte_runs || matches!(table.tail, Tail::Whole { is_lossy: true, .. });
        let is_told = match table.end(&self.decoder) {
            End::Nothing => true,
            End::Strip { content, most } => ids.is_empty() || table.stripped_first(ids, content, most).is_some(),
            End::More => false,
        };
        is_told && (!is_lossy || memchr::memmem::find(text.as_bytes(), "\u{FFFD}".as_bytes()).is_none())
    }

    /// Give the text of ids by the general road.
    pub fn decode_slowly(&self, ids: &[u32], tokens: &impl TokenStrings) -> Result<String> {
        self.decoder.decode(ids.iter().filter_map(|&id| tokens.string(id)).map(str::to_owned).collect())
    }

    /// The decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Say which ids will be looked at next.
    pub fn expect(&self, ids: &[u32]) {
        if let Some(table) = &self.table {
            table.slots.expect(ids);
        }
    }

    /// Whether the text of ids is `data[start..end]`, where `place` is (data, start, end). False may also mean that it
    /// takes `decode_into` to tell. `room` is memory to work in.
    pub fn agrees(
        &self,
        ids: &[u32],
        tokens: &impl TokenStrings,
        place: (&[u8], usize, usize),
        room: &mut Vec<u8>,
    ) -> bool {
        self.table.as_ref().is_some_and(|table| table.agrees(&self.decoder, ids, tokens, place, room))
    }
}

#[cfg(test)]
mod tests;
