//! Encode then decode: the verdict of each document, and the whitespace that added tokens absorbed.
//!
//! The meaning stands in `engine/reference/round_trip.py`. An exact document costs one look at its bytes; only the others
//! take a road of their own.

use std::collections::BTreeMap;

use crate::added_tokens::AddedMatch;
use crate::columns::{CheckedTexts, GivenIds, TextColumn};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::faithful::Rule;
use crate::record::{OnRecord, Record};
use crate::spec::{Direction, Padding};
use crate::strings::Strings;
use crate::token_strings::{AddedStrings, AllStrings};
use crate::token_table::{ColumnDecoder, TokenStrings};

/// A verdict: its number is the index into `VERDICTS` of `engine/protocol.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i8)]
#[allow(missing_docs)]
pub enum Verdict {
    Exact = 0,
    Stripped = 1,
    Normalized = 2,
    Lossy = 3,
}

/// On which side of an added token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before it.
    Left,
    /// Behind it.
    Right,
}

/// `Absorbed` of `engine/protocol.py`, added tokens by id.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// Number of characters by side, token and whitespace character.
    pub counts: BTreeMap<(Side, u32, char), u64>,
    /// Number of documents by side and token.
    pub documents: BTreeMap<(Side, u32), u64>,
    /// Number of documents by side and whitespace character.
    pub documents_by_whitespace: BTreeMap<(Side, char), u64>,
}

/// `Verification` of `engine/protocol.py`.
#[derive(Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Verification {
    pub verdicts: Vec<i8>,
    pub lstrip_chars: Vec<i64>,
    pub rstrip_chars: Vec<i64>,
    pub unk_tokens: Vec<i64>,
    pub absorbed: Absorbed,
    /// Bytes of documents that had to be encoded again.
    pub bytes_encoded_again: usize,
    /// Those of them in documents whose ids were known to be their own.
    pub bytes_untold: usize,
}

/// Called with the parts of a document in order: added tokens with their match, and what lies between with None.
pub type Visit<'a> = &'a mut dyn FnMut(Option<AddedMatch>, &str) -> Result<()>;

/// The roads that a document can take once more.
pub trait DocumentRoads {
    /// Append the ids of one text, without template and truncation, and show its added tokens and its pretokens, these
    /// as the model's vocabulary writes them. False: there is no fast road on which they pass.
    fn passing(&self, text: TextColumn, ids: &mut Vec<u32>, show: &mut dyn FnMut(Passing)) -> Result<bool>;

    /// Append the ids of one text, without template and truncation.
    fn plain_ids(&self, text: TextColumn, ids: &mut Vec<u32>) -> Result<()>;

    /// What is known of all documents.
    fn rule(&self) -> Option<&Rule>;

    /// Visit each text that is searched for added tokens, with its matches: the document, then what lies between, each
    /// normalized.
    fn passes(&self, text: &str, visit: &mut dyn FnMut(&str, &[AddedMatch])) -> Result<()>;

    /// Visit the added tokens and the pretokens, as the model's vocabulary writes them.
    fn pretokens(&self, text: &str, visit: Visit) -> Result<()>;

    /// Append the ids of a pretoken.
    fn pretoken_ids(&self, pretoken: &str, ids: &mut Vec<u32>) -> Result<()>;

    /// Encode with all that is known.
    fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Encoding>;

    /// What is known of a text with these ids, with the template's, among which there are unknown tokens or not.
    fn on_record(&self, text: &str, ids: &[u32], has_unknown: bool, add_special_tokens: bool) -> OnRecord;

    /// Encode rows from this one on, so that those that have the ids which come out are on record; with `is_watched`, also
    /// with marks (`witness.rs`). Gives the row up to which that was done; None: this engine has no record.
    fn record(&self, texts: TextColumn, first_row: usize, add_special_tokens: bool, is_watched: bool) -> Option<usize>;
}

/// A part of a document on its way to the model.
pub enum Passing<'a> {
    /// A pretoken.
    Pretoken(&'a str),
    /// The id of an added token.
    Added(u32),
}

/// What verification works with.
pub struct Verifier<'a> {
    /// The decoder, special tokens kept.
    pub decoder: &'a ColumnDecoder,
    /// All tokens, special ones too.
    pub tokens: AllStrings<'a>,
    /// The added tokens.
    pub added: &'a AddedStrings,
    /// The model's unknown token.
    pub unk_id: Option<u32>,
    /// The ids around a single text, where the template is that simple and nothing is padded.
    pub affixes: Option<(&'a [u32], &'a [u32])>,
    /// Padding.
    pub padding: Option<&'a Padding>,
    /// Whether texts may be cut.
    pub is_truncated: bool,
    /// How the ids were made.
    pub add_special_tokens: bool,
    /// For the documents that are not exact.
    pub roads: &'a dyn DocumentRoads,
}

/// The room that one verification needs.
#[derive(Default)]
struct Room {
    body: Vec<u32>,
    decoded: Vec<u8>,
    absorbed: Vec<(Side, u32, String)>,
    pretokens: Strings,
    ids: Vec<u32>,
    is_stripping: Vec<bool>,
    bytes_encoded_again: usize,
    bytes_untold: usize,
    /// The document has unknown tokens.
    has_unknown: bool,
    /// For the decoder to work in.
    slots: Vec<u8>,
}

impl Verifier<'_> {
    /// Verify a column, row by row. A text that cannot be encoded is lossy.
    pub fn verify(&self, texts: TextColumn, ids: GivenIds) -> Result<Verification> {
        let mut result = Verification::default();
        let mut room = Room::default();
        for &id in self.added.stripping_ids() {
            // Ids that no array reaches are looked for one by one.
            if id < 1 << 24 {
                room.is_stripping.resize(room.is_stripping.len().max(id as usize + 1), false);
                room.is_stripping[id as usize] = true;
            }
        }
        let rows = texts.rows();
        for numbers in [&mut result.lstrip_chars, &mut result.rstrip_chars, &mut result.unk_tokens] {
            numbers.reserve(rows);
        }
        result.verdicts.reserve(rows);
        let mut checked = CheckedTexts::new(texts);
        let mut record = Record::new(self.affixes.is_some());
        for row in 0..rows {
            record.keep(self, (texts, row), (room.bytes_encoded_again, room.bytes_untold));
            let text = checked.text(row)?;
            let row_ids = ids.row(row)?;
            self.decoder.expect(ids.behind(row));
            let mut own_body = std::mem::take(&mut room.body);
            let body = self.body(text, row_ids, &mut own_body);
            let looked_at = body.unwrap_or(row_ids);
            self.find_absorbed(text, looked_at, &mut room);
            let unk_tokens = self.unk_id.map_or(0, |unk_id| count_of(looked_at, unk_id));
            result.unk_tokens.push(unk_tokens);
            room.has_unknown = unk_tokens > 0;
            let verdict = match body {
                None => Verdict::Lossy,
                // Nothing but the decoder fails in there, and then the ids do not give the text back.
                Some(body) => self.verdict((texts, row, text), (row_ids, body), &mut room).unwrap_or(Verdict::Lossy),
            };
            room.body = own_body;
            result.verdicts.push(verdict as i8);
            result.add_absorbed(&room.absorbed);
        }
        (result.bytes_encoded_again, result.bytes_untold) = (room.bytes_encoded_again, room.bytes_untold);
        Ok(result)
    }

    /// Take the template's tokens (and the padding) away. None where they are not where they should be.
    fn body<'a>(&self, text: &str, ids: &'a [u32], own: &'a mut Vec<u32>) -> Option<&'a [u32]> {
        if let Some((before, after)) = self.affixes {
            return ids.strip_prefix(before)?.strip_suffix(after);
        }
        let encoding = self.roads.encode(text, self.add_special_tokens).ok()?;
        let (mut expected, mut mask) = (&encoding.ids[..], &encoding.special_tokens_mask[..]);
        let mut given = ids;
        if let Some(padding) = self.padding {
            let is_text = |&mask: &u8| mask == 1;
            let first = encoding.attention_mask.iter().position(is_text).unwrap_or(0);
            let last = encoding.attention_mask.iter().rposition(is_text).map_or(first, |last| last + 1);
            (expected, mask) = (&expected[first..last], &mask[first..last]);
            let missing = given.len().checked_sub(expected.len())?;
            let filling;
            (given, filling) = match padding.direction {
                Direction::Right => given.split_at(expected.len()),
                Direction::Left => {
                    let (filling, given) = given.split_at(missing);
                    (given, filling)
                }
            };
            if filling.iter().any(|&id| id != padding.pad_id) {
                return None;
            }
        }
        if given != expected {
            return None;
        }
        own.clear();
        own.extend(given.iter().zip(mask).filter(|(_, &is_special)| is_special == 0).map(|(&id, _)| id));
        Some(own)
    }

    /// The verdict of a document (column, row, text); `ids` with and without the template's tokens.
    fn verdict(
        &self,
        (texts, row, text): (TextColumn, usize, &str),
        ids: (&[u32], &[u32]),
        room: &mut Room,
    ) -> Result<Verdict> {
        let body = ids.1;
        let (data, start) = texts.data_from(row);
        if self.decoder.agrees(body, &self.tokens, (data, start, start + text.len()), &mut room.slots) {
            return Ok(Verdict::Exact);
        }
        // With each added token rendered as its slice of text, the decoded text is what it is without: not `Stripped`.
        let has_plain_slices = room.absorbed.is_empty() && self.added.are_plain;
        let record = if has_plain_slices { self.on_record(text, ids.0, room.has_unknown) } else { OnRecord::Nothing };
        let known = if let OnRecord::Told(is_faithful) = record { Some(verdict_of(is_faithful)) } else { None };
        if let Some(verdict) = known.filter(|_| self.decoder.tells_all_of(text, body)) {
            return Ok(verdict);
        }
        room.decoded.clear();
        self.decoder.decode_into(body, &self.tokens, &mut room.decoded)?;
        if room.decoded == text.as_bytes() {
            return Ok(Verdict::Exact);
        }
        if let Some(verdict) = known {
            return Ok(verdict);
        }
        room.bytes_encoded_again += text.len();
        room.bytes_untold += if record == OnRecord::Own { text.len() } else { 0 };
        if has_plain_slices {
            if let Some(verdict) = self.verdict_on_fast_road((texts.row(row), text), (body, record), room)? {
                return Ok(verdict);
            }
        }
        self.verdict_of_changed(text, body, &room.decoded)
    }

    /// The verdict of a document whose decoded text is another one, and in which the decoder sees added tokens as they
    /// stand in the text. None: there is no fast road.
    fn verdict_on_fast_road(
        &self,
        (column, text): (TextColumn, &str),
        (body, record): (&[u32], OnRecord),
        room: &mut Room,
    ) -> Result<Option<Verdict>> {
        let Room { pretokens, ids, decoded, has_unknown, .. } = room;
        pretokens.clear();
        ids.clear();
        if let Some(rule) = self.roads.rule().filter(|_| record == OnRecord::Nothing) {
            if self.roads.plain_ids(column, ids).is_err() || ids != body {
                return Ok(Some(Verdict::Lossy));
            }
            if let Some(is_faithful) = rule.is_faithful(text, *has_unknown, &self.tokens) {
                return Ok(Some(verdict_of(is_faithful)));
            }
            ids.clear();
        }
        let outcome = self.roads.passing(column, ids, &mut |passing| match passing {
            Passing::Pretoken(pretoken) => pretokens.push(pretoken),
            Passing::Added(id) => self.tokens.string(id).into_iter().for_each(|string| pretokens.push(string)),
        });
        match outcome {
            Ok(false) => return Ok(None),
            Err(_) => return Ok(Some(Verdict::Lossy)),
            Ok(true) if ids != body => return Ok(Some(Verdict::Lossy)),
            Ok(true) => {}
        }
        let length = decoded.len();
        self.decoder.decode_strings_into(pretokens.iter(), decoded)?;
        Ok(Some(verdict_of(decoded[..length] == decoded[length..])))
    }

    /// What is known from the document's encoding; `ids` with the template's tokens.
    fn on_record(&self, text: &str, ids: &[u32], has_unknown: bool) -> OnRecord {
        match self.affixes {
            Some(_) => self.roads.on_record(text, ids, has_unknown, self.add_special_tokens),
            None => OnRecord::Nothing,
        }
    }

    /// The verdict of a document whose decoded text is another one.
    fn verdict_of_changed(&self, text: &str, body: &[u32], decoded: &[u8]) -> Result<Verdict> {
        let (mut slices, mut pretokens, mut at) = (vec![], vec![], 0);
        let mut ids = vec![];
        let mut is_same = true;
        let outcome = self.roads.pretokens(text, &mut |found, piece| {
            ids.clear();
            match found {
                Some(found) => {
                    ids.push(found.token_id);
                    slices.push(piece.to_owned());
                    pretokens.extend(self.tokens.string(found.token_id).map(str::to_owned));
                }
                None => {
                    self.roads.pretoken_ids(piece, &mut ids)?;
                    slices.extend(ids.iter().filter_map(|&id| self.tokens.string(id)).map(str::to_owned));
                    pretokens.push(piece.to_owned());
                }
            }
            is_same = is_same && body[at.min(body.len())..].starts_with(&ids);
            at += ids.len();
            Ok(())
        });
        if outcome.is_err() || !is_same || at != body.len() {
            return Ok(Verdict::Lossy);
        }
        let decoder = self.decoder.decoder();
        if decoder.decode(slices)? == text {
            return Ok(Verdict::Stripped);
        }
        if decoder.decode(pretokens)?.as_bytes() == decoded {
            return Ok(Verdict::Normalized);
        }
        Ok(Verdict::Lossy)
    }

    /// Find the whitespace that added tokens absorbed. Only a text among whose ids is that of an added token with
    /// `lstrip` or `rstrip` is looked at, or one that may have been truncated. Whitespace that several matches consumed
    /// was absorbed by the first of them.
    fn find_absorbed(&self, text: &str, ids: &[u32], room: &mut Room) {
        room.absorbed.clear();
        let stripping = self.added.stripping_ids();
        if stripping.is_empty() {
            return;
        }
        let is_stripping = |id: &u32| match room.is_stripping.get(*id as usize) {
            Some(&is_stripping) => is_stripping,
            None => stripping.contains(id),
        };
        if !self.is_truncated && !ids.iter().any(is_stripping) {
            return;
        }
        let absorbed = &mut room.absorbed;
        let outcome = self.roads.passes(text, &mut |searched, matches| {
            let mut claimed = 0;
            for found in matches {
                let start = found.start.max(claimed);
                let before = searched.get(start..found.content_start).unwrap_or_default();
                let after = searched.get(found.content_end.max(start)..found.end).unwrap_or_default();
                for (side, whitespace) in [(Side::Left, before), (Side::Right, after)] {
                    if !whitespace.is_empty() {
                        absorbed.push((side, found.token_id, whitespace.to_owned()));
                    }
                }
                claimed = claimed.max(found.end);
            }
        });
        if outcome.is_err() {
            absorbed.clear();
        }
    }
}

/// The verdict of a document whose decoded text is another one, by whether it is what the decoder makes of its pretokens.
fn verdict_of(is_faithful: bool) -> Verdict {
    if is_faithful {
        Verdict::Normalized
    } else {
        Verdict::Lossy
    }
}

fn count_of(ids: &[u32], wanted: u32) -> i64 {
    ids.chunks(1 << 16).map(|chunk| i64::from(chunk.iter().map(|&id| u32::from(id == wanted)).sum::<u32>())).sum()
}

impl Verification {
    /// Add what was absorbed in one document.
    fn add_absorbed(&mut self, absorbed: &[(Side, u32, String)]) {
        let length = |side| {
            let lengths =
                absorbed.iter().filter(|(found, ..)| *found == side).map(|(.., text)| text.chars().count() as i64);
            lengths.sum()
        };
        self.lstrip_chars.push(length(Side::Left));
        self.rstrip_chars.push(length(Side::Right));
        if absorbed.is_empty() {
            return;
        }
        let (mut documents, mut by_whitespace) = (BTreeMap::new(), BTreeMap::new());
        for (side, id, whitespace) in absorbed {
            documents.insert((*side, *id), ());
            for character in whitespace.chars() {
                *self.absorbed.counts.entry((*side, *id, character)).or_default() += 1;
                by_whitespace.insert((*side, character), ());
            }
        }
        for key in documents.into_keys() {
            *self.absorbed.documents.entry(key).or_default() += 1;
        }
        for key in by_whitespace.into_keys() {
            *self.absorbed.documents_by_whitespace.entry(key).or_default() += 1;
        }
    }
}
