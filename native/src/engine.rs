//! The engine: what a spec is built into, and what `python.rs` calls.

use std::sync::{Arc, Mutex, OnceLock};

use crate::added_tokens::AddedVocabulary;
use crate::aligned::{AlignedRoad, TextRoad};
use crate::columns::{IdColumn, TextColumn};
use crate::cutter::Cutter;
use crate::decoders::Decoder;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::models::bpe::{Bpe, Input};
use crate::models::unigram::Unigram;
use crate::models::wordlevel::WordLevel;
use crate::models::wordpiece::WordPiece;
use crate::models::ModelFacts;
use crate::padding;
use crate::pipeline::{ColumnRoad, Cutting, Road};
use crate::post_processors::{Ending, PostProcessor};
use crate::round_trip::{check_ids, DocumentRoads, GivenIds, Verification, Verifier, Visit};
use crate::spaces::{Before, SpaceCutter};
use crate::spec::{self, Model, Normalizer, Padding, Pattern, PreTokenizer, TokenizerSpec, Truncation};
use crate::stations::Stations;
use crate::token_strings::{AddedStrings, AllStrings};
use crate::token_table::{ColumnDecoder, TokenStrings};
use crate::trace::{self, Stage};
use crate::truncation::truncate_encodings;

/// A tokenizer at work. Threads may share it.
pub struct Engine {
    /// For columns, where there is one for this spec.
    fast_road: Option<Box<dyn ColumnRoad>>,
    /// For texts, and for columns too.
    text_road: Box<dyn TextRoad>,
    processor: Arc<PostProcessor>,
    /// Without and with special tokens.
    endings: [Ending; 2],
    truncation: Option<Truncation>,
    padding: Option<Padding>,
    added: AddedStrings,
    decoder: Option<spec::Decoder>,
    /// With and without special tokens; made when they are first needed.
    columns: [OnceLock<ColumnDecoder>; 2],
    buffers: Mutex<Vec<IdColumn>>,
}

impl Engine {
    /// Build from a message of `engine/wire.py`. What this engine does not do is an error with the code
    /// "native-unsupported".
    pub fn build(message: &[u8]) -> Result<Engine> {
        let spec = spec::read(message)?;
        let processor = Arc::new(PostProcessor::build(spec.post_processor.as_ref()));
        let stations = Stations::build(&spec)?;
        let added = AddedStrings::build(&spec.added_tokens, |text| stations.normalized(text))?;
        let ending = |add_special_tokens| Ending::new(&processor, spec.truncation.as_ref(), add_special_tokens);
        Ok(Engine {
            endings: [false, true].map(ending),
            processor: Arc::clone(&processor),
            truncation: spec.truncation.clone(),
            padding: spec.padding.clone(),
            added,
            decoder: spec.decoder.clone(),
            columns: Default::default(),
            fast_road: fast_road(&spec)?,
            text_road: text_road(&spec, stations)?,
            buffers: Mutex::default(),
        })
    }

    /// Give the ids of a column. The result's memory comes back by `recycle`.
    pub fn encode_batch(&self, texts: TextColumn, add_special_tokens: bool) -> Result<IdColumn> {
        let free = self.buffers.lock().ok().and_then(|mut buffers| buffers.pop());
        let mut ids = free.unwrap_or_default();
        ids.clear();
        let bytes = texts.offset(texts.rows()) - texts.offset(0);
        // Memory that is not written to costs nothing; moving a large buffer does.
        ids.ids.reserve(bytes / 2 + 1024);
        let ending = &self.endings[usize::from(add_special_tokens)];
        match &self.fast_road {
            Some(road) => road.encode(texts, ending, &mut ids),
            None => self.text_road.encode(texts, ending, &mut ids),
        }
        if let Some(padding) = &self.padding {
            padding::pad_column(&mut ids, padding)?;
        }
        Ok(ids)
    }

    /// Take a result's memory back for the next one.
    pub fn recycle(&self, ids: IdColumn) {
        const KEPT: usize = 4;
        if let Ok(mut buffers) = self.buffers.lock() {
            if buffers.len() < KEPT {
                buffers.push(ids);
            }
        }
    }

    /// Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks.
    pub fn encode(&self, text: &str, pair: Option<&str>, add_special_tokens: bool) -> Result<Encoding> {
        let first = self.text_road.model_encoding(text, 0)?;
        let second = pair.map(|pair| self.text_road.model_encoding(pair, 1)).transpose()?;
        let mut encoding = self.post_processed(first, second, add_special_tokens)?;
        if let Some(padding) = &self.padding {
            padding::pad_encoding(&mut encoding, padding)?;
        }
        Ok(encoding)
    }

    fn post_processed(&self, first: Encoding, second: Option<Encoding>, add_special_tokens: bool) -> Result<Encoding> {
        let (mut first, mut second) = (first, second);
        if let Some(truncation) = &self.truncation {
            let added = if add_special_tokens { self.processor.added_tokens(second.is_some()) } else { 0 };
            (first, second) = truncate_encodings(first, second, truncation, added)?;
        }
        self.processor.process(first, second, add_special_tokens)
    }

    fn model(&self) -> &dyn ModelFacts {
        self.text_road.facts()
    }

    fn strings(&self, skip_special_tokens: bool) -> AllStrings<'_> {
        AllStrings::new(self.model(), &self.added, skip_special_tokens)
    }

    fn column_decoder(&self, skip_special_tokens: bool) -> &ColumnDecoder {
        self.columns[usize::from(skip_special_tokens)].get_or_init(|| {
            ColumnDecoder::build(Decoder::build(self.decoder.as_ref()), &self.strings(skip_special_tokens))
        })
    }

    /// Give the text of ids. Ids that no token has are passed over.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        self.column_decoder(skip_special_tokens).decode_slowly(ids, &self.strings(skip_special_tokens))
    }

    /// Give the texts of a column of ids, laid end to end, and their offsets.
    pub fn decode_batch(&self, ids: GivenIds, skip_special_tokens: bool) -> Result<(Vec<u8>, Vec<i64>)> {
        let (decoder, strings) = (self.column_decoder(skip_special_tokens), self.strings(skip_special_tokens));
        let (mut data, mut list_offsets) = (vec![], vec![0]);
        for row in 0..ids.rows() {
            check_ids(ids.row(row))?;
            decoder.decode_into(ids.row(row), &strings, &mut data)?;
            list_offsets.push(data.len() as i64);
        }
        Ok((data, list_offsets))
    }

    /// Hold the ids of a column against its texts. `add_special_tokens` says how the ids were made.
    pub fn verify_batch(&self, texts: TextColumn, ids: GivenIds, add_special_tokens: bool) -> Result<Verification> {
        let affixes = self.processor.single_affixes(add_special_tokens).filter(|_| self.padding.is_none());
        let verifier = Verifier {
            decoder: self.column_decoder(false),
            tokens: self.strings(false),
            added: &self.added,
            unk_id: self.model().unk_id(),
            affixes: affixes.map(|(before, after)| (&before[..], &after[..])),
            padding: self.padding.as_ref(),
            is_truncated: self.truncation.is_some(),
            add_special_tokens,
            roads: self,
        };
        verifier.verify(texts, ids)
    }

    /// Encode one text and keep what every stage made of it.
    pub fn trace(&self, text: &str, add_special_tokens: bool) -> Result<Vec<Stage>> {
        trace::stages(self.text_road.as_ref(), text, |encoding| self.post_processed(encoding, None, add_special_tokens))
    }

    /// What does not depend on any text.
    pub fn facts(&self) -> Result<Facts> {
        let template = self.processor.single_template()?;
        let (model, strings) = (self.model(), self.strings(false));
        let of_template = template.iter().flatten().copied().max();
        let largest = self.added.ids().chain(of_template).max().unwrap_or(0).max(model.vocabulary().largest_id());
        Ok(Facts {
            vocab_size: strings.count(),
            max_id: largest,
            special_ids: self.added.special_ids(),
            unk_id: model.unk_id(),
            byte_token_ids: model.byte_token_ids(),
            single_template: template,
        })
    }

    /// The id of a token.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.strings(false).id(token)
    }

    /// The token of an id.
    pub fn id_to_token(&self, id: u32) -> Option<String> {
        self.strings(false).string(id).map(str::to_owned)
    }

    /// The content of the added token with this id.
    pub fn added_content(&self, id: u32) -> &str {
        self.added.content(id).unwrap_or_default()
    }
}

/// See the properties of `Engine` in `engine/protocol.py`.
#[allow(missing_docs)]
pub struct Facts {
    pub vocab_size: usize,
    pub max_id: u32,
    pub special_ids: Vec<u32>,
    pub unk_id: Option<u32>,
    pub byte_token_ids: Vec<u32>,
    pub single_template: Vec<Option<u32>>,
}

impl DocumentRoads for Engine {
    fn pieces(&self, text: &str, visit: Visit) -> Result<()> {
        let pieces = self.text_road.stations().pieces(text, false)?;
        pieces.iter().try_for_each(|(found, piece)| visit(*found, &piece.text))
    }

    fn pretokens(&self, text: &str, visit: Visit) -> Result<()> {
        let stations = self.text_road.stations();
        let pretokens = stations.pretokens(text, stations.need_places())?;
        pretokens.iter().try_for_each(|(found, piece)| visit(*found, &piece.text))
    }

    fn pretoken_ids(&self, pretoken: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.text_road.pretoken_ids(pretoken, ids)
    }

    fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Encoding> {
        self.encode(text, None, add_special_tokens)
    }
}

fn flat_normalizers<'a>(normalizer: Option<&'a Normalizer>, flat: &mut Vec<&'a Normalizer>) {
    match normalizer {
        None => {}
        Some(Normalizer::Sequence { normalizers }) => normalizers.iter().for_each(|n| flat_normalizers(Some(n), flat)),
        Some(normalizer) => flat.push(normalizer),
    }
}

/// The parts of a pre-tokenizer in order, with their JSON paths.
fn flat_pre_tokenizers<'a>(part: &'a PreTokenizer, place: String, flat: &mut Vec<(String, &'a PreTokenizer)>) {
    match part {
        PreTokenizer::Sequence { pretokenizers } => {
            for (index, part) in pretokenizers.iter().enumerate() {
                flat_pre_tokenizers(part, format!("{place}.pretokenizers[{index}]"), flat);
            }
        }
        part => flat.push((place, part)),
    }
}

/// The general road, for every spec.
fn text_road(spec: &TokenizerSpec, stations: Stations) -> Result<Box<dyn TextRoad>> {
    let input = Input::Text;
    Ok(match &spec.model {
        Model::BPE(model) => Box::new(AlignedRoad::new(stations, Bpe::build(model, input)?)),
        Model::WordPiece { vocab, unk_token, continuing_subword_prefix, max_input_chars_per_word } => {
            let (prefix, most_characters) = (continuing_subword_prefix, *max_input_chars_per_word);
            let model = WordPiece::build(&vocab.0, unk_token, prefix, most_characters, input);
            Box::new(AlignedRoad::new(stations, model))
        }
        Model::WordLevel { vocab, unk_token } => {
            Box::new(AlignedRoad::new(stations, WordLevel::build(&vocab.0, unk_token, input)))
        }
        Model::Unigram { vocab, unk_id, byte_fallback } => {
            Box::new(AlignedRoad::new(stations, Unigram::build(vocab, *unk_id, *byte_fallback, input)))
        }
    })
}

/// The fast road for columns, where there is one; else they take the general one.
fn fast_road(spec: &TokenizerSpec) -> Result<Option<Box<dyn ColumnRoad>>> {
    match build_road(spec) {
        Ok(road) => Ok(Some(road)),
        Err(error) if error.code == "native-unsupported" => Ok(None),
        Err(error) => Err(error),
    }
}

fn build_road(spec: &TokenizerSpec) -> Result<Box<dyn ColumnRoad>> {
    let mut normalizers = vec![];
    flat_normalizers(spec.normalizer.as_ref(), &mut normalizers);
    let mut parts = vec![];
    if let Some(part) = &spec.pre_tokenizer {
        flat_pre_tokenizers(part, "$.pre_tokenizer".to_owned(), &mut parts);
    }
    let Model::BPE(model) = &spec.model else {
        return Err(Error::unsupported("this model in this engine", "$.model"));
    };
    if let Some(road) = spaces_road(spec, model, &normalizers, &parts)? {
        return Ok(road);
    }
    if let Some(other) = normalizers.first() {
        let _ = other;
        return Err(Error::unsupported("this normalizer in this engine", "$.normalizer"));
    }
    let added = AddedVocabulary::new(&spec.added_tokens, spec.encode_special_tokens, |text| Ok(text.to_owned()))?;
    let mut prefix_space = false;
    let mut input = Input::Text;
    if let Some((_, PreTokenizer::ByteLevel { add_prefix_space, pattern, .. })) = parts.last() {
        input = Input::ByteAlphabet;
        prefix_space = *add_prefix_space;
        if prefix_space && parts.len() > 1 {
            return Err(Error::unsupported("a prefix space after a cut, in this engine", "$.pre_tokenizer"));
        }
        if pattern.is_none() {
            parts.pop();
        }
    }
    if let Some((place, _)) =
        parts.iter().rev().skip(1).find(|(_, part)| matches!(part, PreTokenizer::ByteLevel { .. }))
    {
        return Err(Error::unsupported("cuts after ByteLevel, in this engine", place.clone()));
    }
    let cutter = Cutter::build(&parts)?;
    let model = Bpe::build(model, input)?;
    let cutting = Cutting::Patterns { cutter, prefix_space };
    Ok(Box::new(Road { model, added, rewriter: None, cutting, workers: Mutex::default() }))
}

/// The road of the tokenizers that write spaces as a mark and keep documents whole; None where this is none of them.
fn spaces_road(
    spec: &TokenizerSpec,
    model: &spec::Bpe,
    normalizers: &[&Normalizer],
    parts: &[(String, &PreTokenizer)],
) -> Result<Option<Box<dyn ColumnRoad>>> {
    let is_space = |pattern: &Pattern| matches!(pattern, Pattern::String(text) if text == " ");
    let single = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|_| characters.next().is_none())
    };
    let (mut before, mut mark) = (Before::Never, None);
    match normalizers {
        [] => {}
        [Normalizer::Replace { pattern, content }] if is_space(pattern) => mark = single(content),
        [Normalizer::Prepend { prepend }, Normalizer::Replace { pattern, content }]
            if is_space(pattern) && prepend == content =>
        {
            mark = single(content);
            before = Before::Always;
        }
        _ => return Ok(None),
    }
    match parts {
        [] => {}
        // The normalizer has left no space to split at.
        [(_, PreTokenizer::Split { pattern, .. })] if is_space(pattern) && mark.is_some_and(|mark| mark != ' ') => {}
        [(_, PreTokenizer::Metaspace { replacement, prepend_scheme, split: false })] if mark.is_none() => {
            mark = Some(*replacement);
            before = Before::Missing(*prepend_scheme);
        }
        _ => return Ok(None),
    }
    let Some(mark) = mark else { return Ok(None) };
    let in_second_pass = spec.added_tokens.iter().any(|token| token.normalized);
    if in_second_pass && !normalizers.is_empty() {
        return Ok(None);
    }
    let added = AddedVocabulary::new(&spec.added_tokens, spec.encode_special_tokens, |text| Ok(text.to_owned()))?;
    let bpe = Bpe::build(model, Input::Spaces(mark))?;
    let cutting = Cutting::Spaces(SpaceCutter::build(&bpe, &model.merges, mark, before)?);
    Ok(Some(Box::new(Road { model: bpe, added, rewriter: None, cutting, workers: Mutex::default() })))
}
