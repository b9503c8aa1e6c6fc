//! BPE: from a pretoken to symbols, and from symbols to ids by merging (`merges.rs`).
//!
//! The meaning stands in `engine/reference/models/bpe.py`. A pretoken comes in one of three forms (`Input`), so that texts
//! need not be rewritten before the model sees them: as it is; as raw bytes that stand for the byte alphabet; or with
//! spaces that stand for a mark.

use super::byte_merges::{ByteMerges, Rows};
use super::merges::{LongRow, Merges, Row, RowWork, NO_RANK, SHORT};
use super::vocabulary::Vocabulary;
use super::{PretokenModel, Token};
use crate::byte_alphabet;
use crate::error::{Error, Result};
use crate::hash::FastMap;
use crate::spec;
use crate::stored_struct;
use crate::table_file::{damaged, TableWriter};
use crate::tables::{Stored, Table, TableReader};

/// No id.
const NO_ID: u32 = u32::MAX;

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
    /// Where there are `bytes`.
    byte_merges: Option<ByteMerges>,
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
    byte_merges,
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

/// The symbols of characters: at the start or later, at the end or before it.
struct CharacterSymbols {
    prefix: String,
    suffix: String,
    /// Index: 1 later + 2 at the end. One table where there is neither prefix nor suffix.
    tables: Vec<CharacterTable>,
    /// The rank of each pair of ASCII characters, where there is neither.
    ranks: Table<u32>,
}
stored_struct!(CharacterSymbols { prefix, suffix, tables, ranks });

/// From characters to ids in two steps.
struct CharacterTable {
    pages: Table<u16>,
    ids: Table<u32>,
}
stored_struct!(CharacterTable { pages, ids });

impl CharacterTable {
    fn new(entries: &[(char, u32)]) -> CharacterTable {
        let (mut pages, mut ids) = (vec![0u16; 0x11_0000 >> 8], vec![NO_ID; 256]);
        for &(character, id) in entries {
            let code = character as usize;
            if pages[code >> 8] == 0 {
                pages[code >> 8] = (ids.len() >> 8) as u16;
                ids.resize(ids.len() + 256, NO_ID);
            }
            ids[(pages[code >> 8] as usize) << 8 | (code & 255)] = id;
        }
        CharacterTable { pages: pages.into(), ids: ids.into() }
    }

    #[inline]
    fn id(&self, character: char) -> u32 {
        let code = character as usize;
        self.ids[(self.pages[code >> 8] as usize) << 8 | (code & 255)]
    }
}

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    rows: Rows,
    /// Pretokens that are no token as a whole.
    rest: Vec<u32>,
    row: LongRow,
    short: Row,
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
            byte_merges: None,
            characters: CharacterSymbols::new(&vocabulary, prefix, suffix),
            unk: model.unk_token.map(|unk| (unk.to_owned(), vocabulary.id(unk.as_bytes()))),
            fuse_unk: model.fuse_unk,
            byte_ids,
            merges,
            vocabulary,
        };
        if prefix.is_empty() && suffix.is_empty() {
            bpe.find_pair_ranks();
        }
        if let (Some(bytes), true, false) = (&bpe.bytes, merges_happen, bpe.is_odd) {
            let tokens = pretokens_of_entries(&bpe.vocabulary, input);
            let tokens = tokens.iter().map(|(token, &id)| (&token[..], id));
            bpe.byte_merges = ByteMerges::build(&bpe.merges, &bytes.ids, tokens, bpe.whole.is_some());
        }
        Ok(bpe)
    }

    fn find_pair_ranks(&mut self) {
        let id_of_ascii = |code: usize| match (self.input, code as u8 as char) {
            (Input::Spaces(mark), ' ') => self.characters.tables[0].id(mark),
            (_, character) => self.characters.tables[0].id(character),
        };
        let ids: Vec<u32> = (0..128).map(id_of_ascii).collect();
        self.characters.ranks = self.ranks_of(&ids);
        if self.input == Input::ByteAlphabet {
            let id = |byte: usize| self.characters.tables[0].id(byte_alphabet::character_of(byte as u8));
            let ids: Box<[u32; 256]> = Box::new(std::array::from_fn(id));
            if !ids.contains(&NO_ID) {
                self.bytes = Some(ByteSymbols { ranks: self.ranks_of(&ids[..]), ids });
            }
        }
    }

    fn ranks_of(&self, ids: &[u32]) -> Table<u32> {
        let rank = |left: u32, right: u32| match (left, right) {
            (NO_ID, _) | (_, NO_ID) => NO_RANK,
            _ if !self.merges_happen => NO_RANK,
            _ => self.merges.rank(left, right),
        };
        let pairs = ids.iter().flat_map(|&left| ids.iter().map(move |&right| (left, right)));
        pairs.map(|(left, right)| rank(left, right)).collect::<Vec<u32>>().into()
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
        self.is_odd || !self.characters.prefix.is_empty() || !self.characters.suffix.is_empty()
    }

    /// Whether a pretoken that is in the vocabulary is a token, whatever the merges say.
    pub fn ignores_merges(&self) -> bool {
        self.whole.is_some()
    }

    /// The id of a character by itself.
    pub fn character_id(&self, character: char) -> Option<u32> {
        let id = self.characters.tables[0].id(character);
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

    fn encode_bytes(&self, bytes: &ByteSymbols, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) {
        if pretoken.len() > SHORT || self.is_odd {
            scratch.symbols.clear();
            scratch.symbols.extend(pretoken.iter().map(|&byte| bytes.ids[byte as usize]));
            let rank = |pair: &[u8]| bytes.ranks[pair[0] as usize * 256 + pair[1] as usize];
            scratch.row.ranks.clear();
            scratch.row.ranks.extend(pretoken.windows(2).map(rank));
            self.merges.merge_ranked(&mut scratch.symbols, &mut scratch.row);
            let left = scratch.symbols.iter().enumerate().filter(|(place, _)| scratch.row.is_first(*place));
            ids.extend(left.map(|(_, &id)| id));
            return;
        }
        bytes.load(pretoken, 0, &mut scratch.short);
        self.merges.merge_row(&mut scratch.short);
        scratch.short.append_to(ids);
    }

    fn merge_symbols(&self, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        let symbols = &mut scratch.symbols;
        if !self.merges_happen {
            ids.extend_from_slice(symbols);
        } else if symbols.len() > SHORT || self.is_odd {
            self.merges.merge_long(symbols, &mut scratch.row);
            ids.extend(symbols.iter().enumerate().filter(|(place, _)| scratch.row.is_first(*place)).map(|(_, &id)| id));
        } else {
            let row = &mut scratch.short;
            row.begin(0, symbols.iter().copied());
            for (place, pair) in symbols.windows(2).enumerate() {
                row.set_rank(place, self.merges.rank(pair[0], pair[1]));
            }
            self.merges.merge_row(row);
            row.append_to(ids);
        }
    }

    /// Load a short pretoken of known characters with neither prefix nor suffix; false: it is not one.
    fn load_known(&self, text: &str, mark: Option<char>, number: usize, row: &mut Row) -> bool {
        if self.characters.ranks.is_empty() || self.is_odd {
            return false;
        }
        let table = &self.characters.tables[0];
        let mut symbols = [0u32; SHORT];
        let mut codes = [128u8; SHORT];
        let mut length = 0;
        for character in text.chars() {
            let (symbol, code) = match (character, mark) {
                (' ', Some(mark)) => (table.id(mark), 32),
                (_, Some(mark)) if mark == character => (table.id(mark), 32),
                _ => (table.id(character), (character as u32).min(128) as u8),
            };
            if length == SHORT || symbol == NO_ID {
                return false;
            }
            symbols[length] = symbol;
            codes[length] = code;
            length += 1;
        }
        row.begin(number, symbols[..length].iter().copied());
        for place in 0..length.saturating_sub(1) {
            let (left, right) = (codes[place] as usize, codes[place + 1] as usize);
            let rank = if left < 128 && right < 128 {
                self.characters.ranks[left * 128 + right]
            } else if self.merges_happen {
                self.merges.rank(symbols[place], symbols[place + 1])
            } else {
                NO_RANK
            };
            row.set_rank(place, rank);
        }
        true
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
        let affixed = !self.characters.prefix.is_empty() || !self.characters.suffix.is_empty();
        let mut waiting = 0;
        let mut rest = characters.clone().peekable();
        let mut is_later = false;
        while let Some(character) = rest.next() {
            let is_last = rest.peek().is_none();
            let table = if affixed { usize::from(is_later) + 2 * usize::from(is_last) } else { 0 };
            let symbol = self.characters.tables[table].id(character);
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
        if let Some(bytes) = &self.bytes {
            if self.merges_happen {
                self.encode_bytes(bytes, pretoken, scratch, ids);
                return Ok(());
            }
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
        if self.load_known(text, mark, 0, &mut scratch.short) {
            self.merges.merge_row(&mut scratch.short);
            scratch.short.append_to(ids);
        } else {
            scratch.symbols.clear();
            let mut symbols = std::mem::take(&mut scratch.symbols);
            let spelled = text.chars().map(|c| if c == ' ' { mark.unwrap_or(' ') } else { c });
            let result = self.symbols(spelled, &mut symbols, None);
            scratch.symbols = symbols;
            result?;
            self.merge_symbols(scratch, ids);
        }
        scratch.text = written;
        Ok(())
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        places.clear();
        places.resize(pretokens.len(), None);
        let whole = match &self.byte_merges {
            Some(merges) => merges.unmerged.as_ref(),
            None => self.whole.as_ref(),
        };
        let whole = whole.map(|whole| {
            let hashes: Vec<u64> = pretokens.iter().map(|pretoken| whole.hash(pretoken)).collect();
            (whole, hashes)
        });
        if let Some(merges) = &self.byte_merges {
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
            merges.merge(pretokens, rest.iter().copied(), &mut scratch.rows, ids, places);
            for &number in &rest {
                let place = &mut places[number as usize];
                if place.is_none() {
                    let first = ids.len() as u32;
                    self.encode(pretokens[number as usize], scratch, ids).expect("each byte has a symbol");
                    *place = Some((first, ids.len() as u32));
                }
            }
            scratch.rest = rest;
            return;
        }
        self.merges.merge_rows(&mut Pretokens { model: self, pretokens, whole, next: 0, scratch, ids, places });
    }
}

/// Pretokens to be merged side by side.
struct Pretokens<'a> {
    model: &'a Bpe,
    pretokens: &'a [&'a [u8]],
    whole: Option<(&'a Vocabulary, Vec<u64>)>,
    next: usize,
    scratch: &'a mut Scratch,
    ids: &'a mut Vec<u32>,
    places: &'a mut [Option<(u32, u32)>],
}

impl RowWork for Pretokens<'_> {
    fn load(&mut self, row: &mut Row) -> bool {
        while let Some(&pretoken) = self.pretokens.get(self.next) {
            let number = self.next;
            self.next += 1;
            let first = self.ids.len() as u32;
            if let Some((whole, hashes)) = &self.whole {
                if let Some(id) = whole.id_hashed(pretoken, hashes[number]) {
                    self.ids.push(id);
                    self.places[number] = Some((first, first + 1));
                    continue;
                }
            }
            let model = self.model;
            let is_loaded = match (&model.bytes, model.input) {
                _ if !model.merges_happen || model.is_odd => false,
                (Some(bytes), _) if pretoken.len() <= SHORT => {
                    bytes.load(pretoken, number, row);
                    true
                }
                (None, Input::Text) => utf8(pretoken).is_ok_and(|text| model.load_known(text, None, number, row)),
                (None, Input::Spaces(mark)) => {
                    utf8(pretoken).is_ok_and(|text| model.load_known(text, Some(mark), number, row))
                }
                _ => false,
            };
            if is_loaded {
                return true;
            }
            match model.encode(pretoken, self.scratch, self.ids) {
                Ok(()) => self.places[number] = Some((first, self.ids.len() as u32)),
                Err(_) => self.ids.truncate(first as usize),
            }
        }
        false
    }

    fn done(&mut self, row: &Row) {
        let first = self.ids.len() as u32;
        row.append_to(self.ids);
        self.places[row.number] = Some((first, self.ids.len() as u32));
    }
}

impl ByteSymbols {
    /// Load a short pretoken.
    #[inline(always)]
    fn load(&self, pretoken: &[u8], number: usize, row: &mut Row) {
        row.begin(number, pretoken.iter().map(|&byte| self.ids[byte as usize]));
        for (place, pair) in pretoken.windows(2).enumerate() {
            row.set_rank(place, self.ranks[pair[0] as usize * 256 + pair[1] as usize]);
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| Error::encode(format!("byte {} is not UTF-8", error.valid_up_to())))
}

impl CharacterSymbols {
    fn new(vocabulary: &Vocabulary, prefix: &str, suffix: &str) -> CharacterSymbols {
        let variants: &[(&str, &str)] = match (prefix, suffix) {
            ("", "") => &[("", "")],
            _ => &[("", ""), (prefix, ""), ("", suffix), (prefix, suffix)],
        };
        let table = |&(before, after): &(&str, &str)| {
            let character = |token: &[u8]| {
                let token = std::str::from_utf8(token).ok()?.strip_prefix(before)?.strip_suffix(after)?;
                let mut characters = token.chars();
                characters.next().filter(|_| characters.next().is_none())
            };
            let entries: Vec<(char, u32)> =
                vocabulary.iter().filter_map(|(token, id)| Some((character(token)?, id))).collect();
            CharacterTable::new(&entries)
        };
        CharacterSymbols {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            tables: variants.iter().map(table).collect(),
            ranks: Table::default(),
        }
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
