//! BPE: from a pretoken to symbols, and from symbols to ids by merging (`merges.rs`).
//!
//! The meaning stands in `engine/reference/models/bpe.py`. A pretoken comes in one of three forms (`Input`), so that texts
//! need not be rewritten before the model sees them: as it is; as raw bytes that stand for the byte alphabet; or with
//! spaces that stand for a mark.

use super::characters::{CharacterNumbers, CharacterSymbols, Unknown, NO_ID};
use super::merges::{LongRow, Merges};
use super::numbered_merges::{NumberedMerges, Rows};
use super::vocabulary::Vocabulary;
use super::written::utf8;
use super::{PretokenModel, Token};
use crate::byte_alphabet;
use crate::error::{Error, Result};
use crate::hash::FastMap;
use crate::spec;
use crate::stored_struct;
use crate::table_file::{damaged, TableWriter};
use crate::tables::{Stored, Table, TableReader};

/// In which form pretokens come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// As the pre-tokenizer made them.
    Text,
    /// As bytes, which the pre-tokenizer's ByteLevel would write in the byte alphabet.
    ByteAlphabet,
    /// With spaces, which a normalizer or Metaspace would write as this mark.
    Spaces(char),
}

impl Stored for Input {
    fn put(&self, tables: &mut TableWriter) {
        let written = match *self {
            Input::Text => [0, 0],
            Input::ByteAlphabet => [1, 0],
            Input::Spaces(mark) => [2, mark as u32],
        };
        written.put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Input> {
        match (<[u32; 2]>::take(tables)?, char::from_u32) {
            ([0, _], _) => Ok(Input::Text),
            ([1, _], _) => Ok(Input::ByteAlphabet),
            ([2, mark], character) => character(mark).map(Input::Spaces).ok_or_else(|| damaged("a mark is none")),
            _ => Err(damaged("a form of pretokens is unknown")),
        }
    }
}

/// A BPE model for one form of pretokens.
pub struct Bpe {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    input: Input,
    merges: Merges,
    merges_happen: bool,
    is_odd: bool,
    /// With `ignore_merges`: the entries in the form in which pretokens come.
    whole: Option<Vocabulary>,
    bytes: Option<ByteSymbols>,
    /// For short pretokens, where merges happen and are not odd.
    numbered: Option<NumberedMerges>,
    characters: CharacterSymbols,
    unk: Option<(String, Option<u32>)>,
    fuse_unk: bool,
    byte_ids: Option<Box<[u32; 256]>>,
}
stored_struct!(Bpe {
    vocabulary,
    input,
    merges,
    merges_happen,
    is_odd,
    whole,
    bytes,
    numbered,
    characters,
    unk,
    fuse_unk,
    byte_ids,
});

/// The symbols of bytes, where each byte has one.
struct ByteSymbols {
    ids: Box<[u32; 256]>,
    /// The rank of each pair of bytes.
    ranks: Table<u32>,
}
stored_struct!(ByteSymbols { ids, ranks });

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    rows: Rows,
    /// Pretokens that are no token as a whole.
    rest: Vec<u32>,
    row: LongRow,
    symbols: Vec<u32>,
    lengths: Vec<u32>,
    text: String,
}

impl Bpe {
    /// Build the model of a spec for pretokens in this form.
    pub fn build(model: &spec::Bpe, input: Input) -> Result<Bpe> {
        let dropout = model.dropout.unwrap_or(0.0) as f32;
        if dropout != 0.0 && dropout != 1.0 {
            let message = format!("dropout {} makes ids random", model.dropout.unwrap_or(0.0));
            return Err(Error::new(crate::error::Class::Unsupported, message).at("$.model.dropout"));
        }
        let merges_happen = dropout == 0.0;
        let vocabulary = Vocabulary::new(model.vocab.0.iter().map(|&(token, id)| (token.as_bytes(), id)));
        let prefix = model.continuing_subword_prefix.unwrap_or("");
        let suffix = model.end_of_word_suffix.unwrap_or("");
        let merges = resolved_merges(&vocabulary, &model.merges, prefix.len())?;
        let has_empty_side = model.merges.iter().any(|(left, right)| left.is_empty() || right.is_empty());
        let byte_ids = model.byte_fallback.then(|| {
            let id = |byte: usize| vocabulary.id(format!("<0x{byte:02X}>").as_bytes()).unwrap_or(NO_ID);
            Box::new(std::array::from_fn(id))
        });
        let mut bpe = Bpe {
            input,
            merges_happen,
            is_odd: !prefix.is_empty() || vocabulary.shares_ids() || has_empty_side,
            whole: (model.ignore_merges && merges_happen).then(|| whole_pretokens(&vocabulary, input)),
            bytes: None,
            numbered: None,
            characters: CharacterSymbols::new(&vocabulary, prefix, suffix),
            unk: model.unk_token.map(|unk| (unk.to_owned(), vocabulary.id(unk.as_bytes()))),
            fuse_unk: model.fuse_unk,
            byte_ids,
            merges,
            vocabulary,
        };
        if input == Input::ByteAlphabet && prefix.is_empty() && suffix.is_empty() {
            bpe.bytes = bpe.byte_symbols();
        }
        if merges_happen && !bpe.is_odd {
            bpe.numbered = bpe.numbered_merges();
        }
        Ok(bpe)
    }

    fn byte_symbols(&self) -> Option<ByteSymbols> {
        let id = |byte: usize| self.characters.id(byte_alphabet::character_of(byte as u8));
        let ids: Box<[u32; 256]> = Box::new(std::array::from_fn(id));
        if ids.contains(&NO_ID) || !self.merges_happen {
            return None;
        }
        let pairs = ids.iter().flat_map(|&left| ids.iter().map(move |&right| (left, right)));
        let ranks: Vec<u32> = pairs.map(|(left, right)| self.merges.rank(left, right)).collect();
        Some(ByteSymbols { ranks: ranks.into(), ids })
    }

    fn numbered_merges(&self) -> Option<NumberedMerges> {
        if let Some(bytes) = &self.bytes {
            let tokens = pretokens_of_entries(&self.vocabulary, self.input);
            let tokens = tokens.iter().map(|(token, &id)| (&token[..], id));
            return NumberedMerges::of_bytes(&self.merges, &bytes.ids, tokens, self.whole.is_some());
        }
        if self.byte_ids.as_ref().is_some_and(|ids| ids.contains(&NO_ID)) {
            return None;
        }
        let token = self.unk.as_ref().map(|unk| unk.1.unwrap_or(NO_ID));
        let unknown = Unknown { bytes: self.byte_ids.clone(), token, fuses: self.fuse_unk };
        let (vocabulary, merges) = (&self.vocabulary, &self.merges);
        let numbering = CharacterNumbers::build(&self.characters, vocabulary, self.input, unknown, merges.iter())?;
        let whole = self.whole.as_ref().map(Vocabulary::iter);
        NumberedMerges::of_characters(merges, numbering, whole)
    }

    /// The id of the unknown token, where the vocabulary has it.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk.as_ref().and_then(|unk| unk.1)
    }

    /// The ids of `<0x00>` to `<0xFF>`, those that there are, where the model falls back to bytes.
    pub fn byte_token_ids(&self) -> Vec<u32> {
        self.byte_ids.iter().flat_map(|ids| ids.iter().copied().filter(|&id| id != NO_ID)).collect()
    }

    /// Whether every character can be spelled by the vocabulary or by bytes, whatever stands around it, so that no
    /// unknown token is ever waiting.
    pub fn spells_everything(&self) -> bool {
        self.byte_ids.as_ref().is_some_and(|ids| !ids.contains(&NO_ID))
    }

    /// The merges.
    pub fn merges(&self) -> &Merges {
        &self.merges
    }

    /// Whether symbols depend on their place in a pretoken, or merges on more than their two sides.
    pub fn depends_on_place(&self) -> bool {
        self.is_odd || self.characters.depend_on_place()
    }

    /// Whether a pretoken that is in the vocabulary is a token, whatever the merges say.
    pub fn ignores_merges(&self) -> bool {
        self.whole.is_some()
    }

    /// The id of a character by itself.
    pub fn character_id(&self, character: char) -> Option<u32> {
        let id = self.characters.id(character);
        (id != NO_ID).then_some(id)
    }

    /// The tokens of a pretoken with their places, as the reference engine's `tokenize`. The pretoken is text, whatever
    /// `Input` says of the column road.
    pub fn tokenize(&self, pretoken: &str, scratch: &mut Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        if self.whole.is_some() {
            if let Some(id) = self.vocabulary.id(pretoken.as_bytes()) {
                tokens.push(Token { id, start: 0, end: pretoken.len() });
                return Ok(());
            }
        }
        let mut symbols = std::mem::take(&mut scratch.symbols);
        let mut lengths = std::mem::take(&mut scratch.lengths);
        symbols.clear();
        lengths.clear();
        self.symbols(pretoken.chars(), &mut symbols, Some(&mut lengths))?;
        if self.merges_happen {
            self.merges.merge_long(&mut symbols, &mut scratch.row);
        }
        let mut place = 0;
        let first = tokens.len();
        for (index, (&id, &length)) in symbols.iter().zip(&lengths).enumerate() {
            if !self.merges_happen || scratch.row.is_first(index) {
                tokens.push(Token { id, start: place, end: place });
            }
            place += length as usize;
            if let Some(token) = tokens[first..].last_mut() {
                token.end = place;
            }
        }
        scratch.symbols = symbols;
        scratch.lengths = lengths;
        Ok(())
    }

    /// Append the ids of a pretoken of any length.
    fn encode_long(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(bytes) = &self.bytes {
            scratch.symbols.clear();
            scratch.symbols.extend(pretoken.iter().map(|&byte| bytes.ids[byte as usize]));
            let rank = |pair: &[u8]| bytes.ranks[pair[0] as usize * 256 + pair[1] as usize];
            scratch.row.ranks.clear();
            scratch.row.ranks.extend(pretoken.windows(2).map(rank));
            self.merge_symbols(scratch, ids);
            return Ok(());
        }
        let mut written = std::mem::take(&mut scratch.text);
        written.clear();
        let (text, mark) = match self.input {
            Input::ByteAlphabet => {
                byte_alphabet::write_into(pretoken, &mut written);
                (written.as_str(), None)
            }
            Input::Text => (utf8(pretoken)?, None),
            Input::Spaces(mark) => (utf8(pretoken)?, Some(mark)),
        };
        scratch.symbols.clear();
        let spelled = text.chars().map(|c| if c == ' ' { mark.unwrap_or(' ') } else { c });
        self.symbols(spelled, &mut scratch.symbols, None)?;
        scratch.text = written;
        if self.merges_happen {
            self.merges.rank_all(&scratch.symbols, &mut scratch.row);
            self.merge_symbols(scratch, ids);
        } else {
            ids.extend_from_slice(&scratch.symbols);
        }
        Ok(())
    }

    /// Append the ids of the symbols in `scratch`, whose ranks are known.
    fn merge_symbols(&self, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        self.merges.merge_ranked(&mut scratch.symbols, &mut scratch.row);
        let left = scratch.symbols.iter().enumerate().filter(|(place, _)| scratch.row.is_first(*place));
        ids.extend(left.map(|(_, &id)| id));
    }

    /// Append the symbols of a pretoken, and their lengths in bytes where they are wanted.
    ///
    /// An unknown token waits until the next character that is in the vocabulary, or the end. A character that falls back
    /// to bytes does not call for it: its bytes overtake it.
    fn symbols(
        &self,
        characters: impl Iterator<Item = char> + Clone,
        symbols: &mut Vec<u32>,
        mut lengths: Option<&mut Vec<u32>>,
    ) -> Result<()> {
        let mut push = |symbols: &mut Vec<u32>, id: u32, length: usize| {
            symbols.push(id);
            if let Some(lengths) = lengths.as_deref_mut() {
                lengths.push(length as u32);
            }
        };
        let mut waiting = 0;
        let mut rest = characters.clone().peekable();
        let mut is_later = false;
        while let Some(character) = rest.next() {
            let is_last = rest.peek().is_none();
            let symbol = self.characters.id_at(character, is_later, is_last);
            if symbol == NO_ID {
                if let Some(ids) = &self.byte_ids {
                    let mut spelled = String::new();
                    spelled.push_str(if is_later { &self.characters.prefix } else { "" });
                    spelled.push(character);
                    spelled.push_str(if is_last { &self.characters.suffix } else { "" });
                    if spelled.bytes().all(|byte| ids[byte as usize] != NO_ID) {
                        spelled.bytes().for_each(|byte| push(symbols, ids[byte as usize], 1));
                        is_later = true;
                        continue;
                    }
                }
            }
            is_later = true;
            let Some(unk) = &self.unk else {
                if symbol != NO_ID {
                    push(symbols, symbol, character.len_utf8());
                }
                continue;
            };
            let unk = |spelled: String| unk.1.ok_or_else(|| no_unknown_token(&spelled, &unk.0));
            if waiting > 0 && (symbol != NO_ID || !self.fuse_unk) {
                push(symbols, unk(character.to_string())?, waiting);
                waiting = 0;
            }
            if symbol != NO_ID {
                push(symbols, symbol, character.len_utf8());
            } else {
                unk(character.to_string())?;
                waiting += character.len_utf8();
            }
        }
        if waiting > 0 {
            let (name, id) = self.unk.as_ref().expect("only then something waits");
            push(symbols, id.ok_or_else(|| no_unknown_token(&characters.collect::<String>(), name))?, waiting);
        }
        Ok(())
    }
}

fn no_unknown_token(spelled: &str, unk: &str) -> Error {
    let message = format!("the vocabulary has neither {spelled:?} nor the unknown token {unk:?}");
    Error::encode(message).at("$.model.unk_token")
}

impl PretokenModel for Bpe {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        if let Some(whole) = &self.whole {
            if let Some(id) = whole.id(pretoken) {
                ids.push(id);
                return Ok(());
            }
        }
        if let Some(numbered) = &self.numbered {
            let mut place = [None];
            numbered.merge(&[pretoken], [0].into_iter(), &mut scratch.rows, ids, &mut place);
            if place[0].is_some() {
                return Ok(());
            }
        }
        self.encode_long(pretoken, scratch, ids)
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        places.resize(pretokens.len(), None);
        let whole = match &self.numbered {
            Some(numbered) => numbered.unmerged.as_ref(),
            None => self.whole.as_ref(),
        };
        let whole = whole.map(|whole| {
            let hashes: Vec<u64> = pretokens.iter().map(|pretoken| whole.hash(pretoken)).collect();
            (whole, hashes)
        });
        let mut rest = std::mem::take(&mut scratch.rest);
        rest.clear();
        match &whole {
            None => rest.extend(0..pretokens.len() as u32),
            Some((whole, hashes)) => {
                for ((number, pretoken), &hash) in pretokens.iter().enumerate().zip(hashes) {
                    match whole.id_hashed(pretoken, hash) {
                        Some(id) => {
                            places[number] = Some((ids.len() as u32, ids.len() as u32 + 1));
                            ids.push(id);
                        }
                        None => rest.push(number as u32),
                    }
                }
            }
        }
        match &self.numbered {
            Some(numbered) => numbered.merge(pretokens, rest.iter().copied(), &mut scratch.rows, ids, places),
            None => rest.iter().for_each(|&number| places[number as usize] = None),
        }
        for &number in &rest {
            let place = &mut places[number as usize];
            if place.is_none() {
                let first = ids.len();
                match self.encode_long(pretokens[number as usize], scratch, ids) {
                    Ok(()) => *place = Some((first as u32, ids.len() as u32)),
                    Err(_) => ids.truncate(first),
                }
            }
        }
        scratch.rest = rest;
    }
}

/// The merges as ids. The right side loses as many bytes as the prefix has, whether it begins with it or not.
fn resolved_merges(vocabulary: &Vocabulary, merges: &[(&str, &str)], prefix: usize) -> Result<Merges> {
    let mut joined = vec![];
    let mut resolved = Vec::with_capacity(merges.len());
    for (rank, (left, right)) in merges.iter().enumerate() {
        joined.clear();
        joined.extend_from_slice(left.as_bytes());
        joined.extend_from_slice(right.as_bytes().get(prefix..).unwrap_or(&[]));
        let id = |token: &[u8]| {
            vocabulary.id(token).ok_or_else(|| {
                let message = format!("the vocabulary has no {:?}", String::from_utf8_lossy(token));
                Error::new(crate::error::Class::Spec, message).at(format!("$.model.merges[{rank}]"))
            })
        };
        resolved.push((id(left.as_bytes())?, id(right.as_bytes())?, id(&joined)?));
    }
    Merges::new(&resolved)
}

fn whole_pretokens(vocabulary: &Vocabulary, input: Input) -> Vocabulary {
    let unique = pretokens_of_entries(vocabulary, input);
    let entries: Vec<(&[u8], u32)> = unique.iter().map(|(token, &id)| (&token[..], id)).collect();
    Vocabulary::new(entries.into_iter())
}

/// The entries of a vocabulary in the form in which pretokens come.
fn pretokens_of_entries(vocabulary: &Vocabulary, input: Input) -> FastMap<Vec<u8>, u32> {
    let mut unique: FastMap<Vec<u8>, u32> = FastMap::default();
    for (token, id) in vocabulary.iter() {
        let Ok(text) = std::str::from_utf8(token) else { continue };
        match input {
            Input::Text => drop(unique.insert(token.to_vec(), id)),
            Input::ByteAlphabet => drop(byte_alphabet::read(text).map(|bytes| unique.insert(bytes, id))),
            // A mark in the text reads as itself; a space never reads as a space.
            Input::Spaces(mark) if !text.contains(' ') => {
                unique.insert(token.to_vec(), id);
                unique.insert(text.replace(mark, " ").into_bytes(), id);
            }
            Input::Spaces(_) => {}
        }
    }
    unique
}

#[cfg(test)]
mod tests;
