//! The road of one text to its encoding with tokens and offsets, and the general road of a column.
//!
//! Both go through `stations.rs`, which serves every spec. The column takes this road only where `pipeline.rs` has no
//! faster one.

use std::sync::{Arc, Mutex};

use crate::cache::Cache;
use crate::columns::{IdColumn, TextColumn};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::limits::{checked_length, fault_of_test};
use crate::locks::taken;
use crate::models::{ModelFacts, PretokenModel, TokenModel};
use crate::offsets::{DocumentOffsets, PretokenOffsets};
use crate::pipeline::ColumnRoad;
use crate::sink::Finish;
use crate::stations::Stations;

/// The stations and the model. Here pretokens are as the vocabulary writes them (`Input::Text`).
pub struct AlignedRoad<M: TokenModel> {
    stations: Arc<Stations>,
    model: Arc<M>,
    /// Whether the model was built for pretokens of this form; else only its `tokenize` is right.
    reads_text: bool,
    /// Short pretokens that a thread remembers.
    cached_pretokens: usize,
    caches: Mutex<Vec<Box<Cache<M::Scratch>>>>,
}

/// The road of one text without its model's type.
pub trait TextRoad: ColumnRoad {
    /// The model's vocabulary and what else there is to ask.
    fn facts(&self) -> &dyn ModelFacts;

    /// Append the ids of a pretoken.
    fn pretoken_ids(&self, pretoken: &str, ids: &mut Vec<u32>) -> Result<()>;

    /// What comes before the model.
    fn stations(&self) -> &Stations;

    /// Encode a text with tokens and offsets, before truncation and template.
    fn model_encoding(&self, document: &str, type_id: u32) -> Result<Encoding>;
}

impl<M> AlignedRoad<M>
where
    M: TokenModel,
    M::Scratch: Default,
{
    /// Put stations and model together.
    pub fn new(stations: Arc<Stations>, model: Arc<M>, reads_text: bool, cached_pretokens: usize) -> AlignedRoad<M> {
        AlignedRoad { stations, model, reads_text, cached_pretokens, caches: Mutex::default() }
    }

    fn encode_pretoken(&self, cache: &mut Cache<M::Scratch>, pretoken: &str, ids: &mut Vec<u32>) -> Result<()> {
        checked_length(pretoken.len())?;
        match self.reads_text {
            true => cache.encode_one(&*self.model, pretoken.as_bytes(), ids),
            false => cache.encode_one(&Tokenizing(&*self.model), pretoken.as_bytes(), ids),
        }
    }

    fn with_cache<T>(&self, work: impl FnOnce(&mut Cache<M::Scratch>) -> T) -> T {
        let free = taken(&self.caches).and_then(|mut caches| caches.pop());
        let mut cache = free.unwrap_or_else(|| Box::new(Cache::new(self.cached_pretokens)));
        fault_of_test();
        let result = work(&mut cache);
        if let Some(mut caches) = taken(&self.caches) {
            caches.push(cache);
        }
        result
    }

    fn ids_of(&self, cache: &mut Cache<M::Scratch>, document: &str, ids: &mut Vec<u32>) -> Result<()> {
        for (found, piece) in self.stations.pretokens(document, self.stations.need_places())? {
            match found {
                Some(found) => ids.push(found.token_id),
                None => self.encode_pretoken(cache, &piece.text, ids)?,
            }
        }
        Ok(())
    }
}

/// A model that was built for another form of pretokens, asked by the one method that takes text in any case.
struct Tokenizing<'a, M>(&'a M);

impl<M: TokenModel> PretokenModel for Tokenizing<'_, M> {
    type Scratch = M::Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut M::Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let mut tokens = vec![];
        self.0.tokenize(&String::from_utf8_lossy(pretoken), scratch, &mut tokens)?;
        ids.extend(tokens.iter().map(|token| token.id));
        Ok(())
    }
}

impl<M> TextRoad for AlignedRoad<M>
where
    M: TokenModel + Send + Sync,
    M::Scratch: Default + Send,
{
    fn facts(&self) -> &dyn ModelFacts {
        &*self.model
    }

    fn pretoken_ids(&self, pretoken: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.with_cache(|cache| self.encode_pretoken(cache, pretoken, ids))
    }

    fn stations(&self) -> &Stations {
        &self.stations
    }

    fn model_encoding(&self, document: &str, type_id: u32) -> Result<Encoding> {
        let places = DocumentOffsets::new(document);
        let (mut ids, mut tokens, mut offsets, mut word_ids) = (vec![], vec![], vec![], vec![]);
        let mut found_tokens = vec![];
        let pretokens = self.stations.pretokens(document, true)?;
        self.with_cache(|cache| -> Result<()> {
            for (index, (found, piece)) in (0..).zip(pretokens) {
                if let Some(found) = found {
                    let last = piece.places.len() - 1;
                    offsets.push(places.checked(piece.places[0].0, piece.places[last].1));
                    ids.push(found.token_id);
                    tokens.push(piece.text);
                    word_ids.push(Some(index));
                    continue;
                }
                found_tokens.clear();
                checked_length(piece.text.len())?;
                self.model.tokenize(&piece.text, cache.scratch(), &mut found_tokens)?;
                let place = PretokenOffsets::new(&places, &piece);
                for token in &found_tokens {
                    ids.push(token.id);
                    tokens.push(self.model.value(token, &piece.text));
                    offsets.push(place.of_token(token.start, token.end));
                    word_ids.push(Some(index));
                }
            }
            Ok(())
        })?;
        Ok(Encoding::of_text(ids, tokens, offsets, word_ids, type_id))
    }
}

impl<M> ColumnRoad for AlignedRoad<M>
where
    M: TokenModel + Send + Sync,
    M::Scratch: Default + Send,
{
    fn encode(&self, texts: TextColumn, finish: &dyn Finish, ids: &mut IdColumn) {
        ids.list_offsets.push(ids.ids.len() as i64);
        self.with_cache(|cache| {
            for row in 0..texts.rows() {
                let first = ids.ids.len();
                finish.begin(&mut ids.ids);
                let outcome = texts
                    .text(row)
                    .and_then(|text| self.ids_of(cache, text, &mut ids.ids))
                    .and_then(|()| finish.end(&mut ids.ids, first));
                match outcome {
                    Ok(true) => ids.truncated_rows.push(row as i64),
                    Ok(false) => {}
                    Err(error) => {
                        ids.ids.truncate(first);
                        ids.failures.push((row, if error.row.is_some() { error } else { error.in_row(row) }));
                    }
                }
                ids.list_offsets.push(ids.ids.len() as i64);
            }
        });
    }
}
