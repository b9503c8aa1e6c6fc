//! The engine: what a spec is built into, and what `python.rs` calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::added_tokens::AddedMatch;
use crate::columns::{GivenIds, IdColumn, TextColumn, LARGEST_ID};
use crate::decoders::Decoder;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::faithful::Rule;
use crate::limits::fault_of_test;
use crate::locks::{made_once, taken};
use crate::models::written::written;
use crate::models::ModelFacts;
use crate::padding;
use crate::post_processors::{Ending, PostProcessor};
use crate::receipts::{self, Receipts};
use crate::record::{OnRecord, MOST_UNTOLD, WATCHING_PAYS};
use crate::roads::Roads;
use crate::round_trip::{DocumentRoads, Passing, Verification, Verifier, Visit};
use crate::sink::{Finish, Shown};
use crate::spec::{self, Padding, TokenizerSpec, Truncation};
use crate::stations::Stations;
use crate::table_file::{TableFile, TableWriter};
use crate::tables::{TableReader, Tables};
use crate::token_strings::{AddedStrings, AllStrings};
use crate::token_table::{ColumnDecoder, TokenStrings};
use crate::trace::{self, Stage};
use crate::truncation::truncate_encodings;
use crate::witness::{is_faithful, Witness, MARKS};

/// Of the verified bytes, one in so many has to be in documents that were encoded again before a witness is called.
const WITNESS_PAYS: usize = 32;

/// One in so many documents whose verdict follows from a rule is encoded again all the same.
const LOOKED_AT: usize = 4096;

/// A tokenizer at work. Threads may share it.
pub struct Engine {
    roads: Roads,
    processor: Arc<PostProcessor>,
    /// Without and with special tokens.
    endings: [Ending; 2],
    truncation: Option<Truncation>,
    padding: Option<Padding>,
    added: Arc<AddedStrings>,
    decoder: Option<spec::Decoder>,
    /// With and without special tokens; made when they are first needed.
    columns: [OnceLock<Arc<ColumnDecoder>>; 2],
    receipts: Receipts,
    buffers: Mutex<Vec<IdColumn>>,
    /// What is known of all documents: with it a receipt says what else a witness would have to.
    rule: Option<Rule>,
    /// Documents of which the rule has told the verdict.
    told: AtomicUsize,
    /// Bytes that were verified, and those of them in documents on record whose verdict nothing has told.
    verified: AtomicUsize,
    untold: AtomicUsize,
    /// Some id of the vocabulary, of an added token or of the template does not fit a column.
    has_large_ids: bool,
}

impl Engine {
    /// Build from the messages of `engine/wire.py`. What this engine does not do is an error with the code
    /// "native-unsupported".
    pub fn build(components: &[u8], options: &[u8], entries: &[u8]) -> Result<Engine> {
        Engine::of_spec(&spec::read(components, options, Some(entries))?, &mut Tables::Built)
    }

    /// Do the same, and write the tables for `open`.
    pub fn build_and_write(components: &[u8], options: &[u8], entries: &[u8]) -> Result<(Engine, TableWriter)> {
        let mut tables = TableWriter::default();
        let engine =
            Engine::of_spec(&spec::read(components, options, Some(entries))?, &mut Tables::Written(&mut tables))?;
        Ok((engine, tables))
    }

    /// Build from the tables of an earlier build instead of entries. The components are what they were then, the options
    /// need not be. A file that does not fit is an error with the code "tables-damaged".
    pub fn open(components: &[u8], options: &[u8], file: &Arc<TableFile>) -> Result<Engine> {
        let mut tables = TableReader::new(file);
        let engine = Engine::of_spec(&spec::read(components, options, None)?, &mut Tables::Taken(&mut tables))?;
        tables.end().map(|()| engine)
    }

    fn of_spec(spec: &TokenizerSpec, tables: &mut Tables) -> Result<Engine> {
        let processor = Arc::new(PostProcessor::build(spec.post_processor.as_ref()));
        let stations = Arc::new(Stations::build(spec)?);
        let added = Arc::new(AddedStrings::build(&spec.added_tokens, &stations.added.forms));
        let ending = |add_special_tokens| Ending::new(&processor, spec.options.truncation.as_ref(), add_special_tokens);
        let mut engine = Engine {
            endings: [false, true].map(ending),
            processor: Arc::clone(&processor),
            truncation: spec.options.truncation.clone(),
            padding: spec.options.padding.clone(),
            added,
            decoder: spec.decoder.clone(),
            columns: Default::default(),
            receipts: Receipts::default(),
            roads: Roads::build(spec, stations, tables)?,
            buffers: Mutex::default(),
            rule: None,
            told: AtomicUsize::new(0),
            verified: AtomicUsize::new(0),
            untold: AtomicUsize::new(0),
            has_large_ids: false,
        };
        if !matches!(tables, Tables::Built) {
            let decoder = Decoder::build(engine.decoder.as_ref());
            let column = ColumnDecoder::build_in(decoder, &engine.strings(false), tables)?;
            engine.columns[0] = OnceLock::from(Arc::new(column));
        }
        let template = engine.processor.single_template().unwrap_or_default();
        let largest = engine.largest_id(&template).max(engine.model().unk_id().unwrap_or(0));
        engine.has_large_ids = largest > LARGEST_ID;
        engine.rule = Rule::of(spec, engine.roads.input, &engine.strings(false)).filter(|_| !engine.has_large_ids);
        Ok(engine)
    }

    /// Give the ids of a column. The result's memory comes back by `recycle`. Without `keep_going` the caller wants
    /// nothing but the first failure, where there is one.
    pub fn encode_batch(&self, texts: TextColumn, add_special_tokens: bool, keep_going: bool) -> Result<IdColumn> {
        let free = taken(&self.buffers).and_then(|mut buffers| buffers.pop());
        let mut ids = free.unwrap_or_default();
        ids.clear();
        let bytes = texts.offset(texts.rows()) - texts.offset(0);
        // Memory that is not written to costs nothing; moving a large buffer does. Where there is not so much, it grows.
        ids.ids.try_reserve(bytes / 2 + 1024).unwrap_or_default();
        let ending = &self.endings[usize::from(add_special_tokens)];
        self.roads.column.encode(texts, ending, &mut ids);
        if self.has_large_ids {
            ids.refuse_large_ids();
        }
        match &self.padding {
            Some(padding) if keep_going || ids.failures.is_empty() => padding::pad_column(&mut ids, padding)?,
            Some(_) => {}
            None => self.receipts.add(texts, &ids, add_special_tokens, self.rule.is_some()),
        }
        Ok(ids)
    }

    /// Give the number of ids of each row, or the first failure. The ids of a few rows at a time are made, and forgotten:
    /// they stay in the second-level cache, and not to write them would gain little (docs/log.md).
    pub fn count_batch(&self, texts: TextColumn, add_special_tokens: bool) -> Result<Vec<i64>> {
        const BLOCK: usize = 128 << 10;
        let mut counts = Vec::with_capacity(texts.rows());
        let (mut row, rows) = (0, texts.rows());
        while row < rows {
            // Padding depends on all rows.
            let mut end = if self.padding.is_some() { rows } else { row + 1 };
            while end < rows && texts.offset(end + 1) - texts.offset(row) <= BLOCK {
                end += 1;
            }
            let mut ids = taken(&self.buffers).and_then(|mut buffers| buffers.pop()).unwrap_or_default();
            ids.clear();
            let ending = &self.endings[usize::from(add_special_tokens)];
            self.roads.column.encode(texts.some_rows(row, end), ending, &mut ids);
            if self.has_large_ids {
                ids.refuse_large_ids();
            }
            if !ids.failures.is_empty() {
                // Its row is one of this block; in the column it has another number, which its place has, too.
                let mut failures = self.encode_batch(texts, add_special_tokens, false)?.failures.into_iter();
                let first = failures.next().map(|(_, error)| error);
                return Err(first.unwrap_or_else(|| Error::encode("a row fails only among some of the others")));
            }
            if let Some(padding) = &self.padding {
                padding::pad_column(&mut ids, padding)?;
            }
            counts.extend(ids.list_offsets.windows(2).map(|bounds| bounds[1] - bounds[0]));
            self.recycle(ids);
            row = end;
        }
        Ok(counts)
    }

    /// Take a result's memory back for the next one.
    pub fn recycle(&self, ids: IdColumn) {
        const KEPT: usize = 4;
        // What is larger is the memory of one very long document, and goes back to the system.
        const LARGEST_KEPT: usize = 8 << 20;
        if ids.ids.capacity() > LARGEST_KEPT {
            return;
        }
        if let Some(mut buffers) = taken(&self.buffers) {
            if buffers.len() < KEPT {
                buffers.push(ids);
            }
        }
    }

    /// Encode one text, or a pair of texts, with tokens, offsets (in characters) and masks.
    pub fn encode(&self, text: &str, pair: Option<&str>, add_special_tokens: bool) -> Result<Encoding> {
        let first = self.roads.text.model_encoding(text, 0)?;
        let second = pair.map(|pair| self.roads.text.model_encoding(pair, 1)).transpose()?;
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
        self.roads.text.facts()
    }

    fn strings(&self, skip_special_tokens: bool) -> AllStrings<'_> {
        AllStrings::new(self.model(), &self.added, skip_special_tokens)
    }

    fn column_decoder(&self, skip_special_tokens: bool) -> &Arc<ColumnDecoder> {
        made_once(&self.columns[usize::from(skip_special_tokens)], || {
            let strings = self.strings(skip_special_tokens);
            Arc::new(ColumnDecoder::build(Decoder::build(self.decoder.as_ref()), &strings))
        })
    }

    /// Give the text of ids. Ids that no token has are passed over.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<String> {
        fault_of_test();
        self.column_decoder(skip_special_tokens).decode_slowly(ids, &self.strings(skip_special_tokens))
    }

    /// Give the texts of a column of ids, laid end to end, and their offsets.
    pub fn decode_batch(&self, ids: GivenIds, skip_special_tokens: bool) -> Result<(Vec<u8>, Vec<i64>)> {
        let (decoder, strings) = (self.column_decoder(skip_special_tokens), self.strings(skip_special_tokens));
        let (mut data, mut list_offsets) = (vec![], vec![0]);
        for row in 0..ids.rows() {
            decoder.decode_into(ids.row(row)?, &strings, &mut data)?;
            list_offsets.push(data.len() as i64);
        }
        Ok((data, list_offsets))
    }

    /// Hold the ids of a column against its texts. `add_special_tokens` says how the ids were made.
    pub fn verify_batch(&self, texts: TextColumn, ids: GivenIds, add_special_tokens: bool) -> Result<Verification> {
        fault_of_test();
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
        let verification = verifier.verify(texts, ids)?;
        let bytes = texts.offset(texts.rows()) - texts.offset(0);
        if verification.bytes_encoded_again > bytes / WITNESS_PAYS {
            self.receipts.want();
            if self.rule.is_none() {
                self.call_witness();
            }
        }
        let verified = self.verified.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let untold = self.untold.fetch_add(verification.bytes_untold, Ordering::Relaxed) + verification.bytes_untold;
        if untold > MOST_UNTOLD.min(verified / WATCHING_PAYS) {
            self.call_witness();
        }
        Ok(verification)
    }

    /// Whether the decoder makes the same of the pretokens of a text as of its ids.
    fn told_by_rule(&self, text: &str, has_unknown: bool) -> Option<bool> {
        let told = self.rule.as_ref()?.is_faithful(text, has_unknown, &self.strings(false))?;
        // A rule says what must be. Now and then somebody looks whether it is.
        let is_looked_at = self.told.fetch_add(1, Ordering::Relaxed) % LOOKED_AT == LOOKED_AT - 1;
        (!is_looked_at).then_some(told)
    }

    /// The witness, as long as it knows all.
    fn witness(&self) -> Option<&Witness> {
        self.roads.witness.as_ref()?.get().filter(|witness| witness.knows_all())
    }

    /// From now on, let what is encoded be watched, where that is possible.
    fn call_witness(&self) {
        let Some(place) = self.roads.witness.as_ref().filter(|place| place.get().is_none()) else { return };
        // Also the template's ids, which are there when marks are taken off.
        if self.facts().map_or(true, |facts| facts.max_id & MARKS != 0) {
            return;
        }
        let decoder = Arc::clone(self.column_decoder(false));
        if let Some(witness) = Witness::new(decoder, Arc::clone(&self.roads.text), Arc::clone(&self.added)) {
            // Another thread may have been faster, with the same.
            place.set(witness).unwrap_or_default();
        }
    }

    /// Encode one text and keep what every stage made of it.
    pub fn trace(&self, text: &str, add_special_tokens: bool) -> Result<Vec<Stage>> {
        trace::stages(self.roads.text.as_ref(), text, |encoding| {
            self.post_processed(encoding, None, add_special_tokens)
        })
    }

    /// What does not depend on any text.
    pub fn facts(&self) -> Result<Facts> {
        let template = self.processor.single_template()?;
        let (model, strings) = (self.model(), self.strings(false));
        Ok(Facts {
            vocab_size: strings.count(),
            max_id: self.largest_id(&template),
            special_ids: self.added.special_ids(),
            unk_id: model.unk_id(),
            byte_token_ids: model.byte_token_ids(),
            single_template: template,
        })
    }

    fn largest_id(&self, template: &[Option<u32>]) -> u32 {
        let of_template = template.iter().flatten().copied().max();
        self.added.ids().chain(of_template).max().unwrap_or(0).max(self.model().vocabulary().largest_id())
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

/// No template, and no truncation.
struct Nothing;

impl Finish for Nothing {
    fn begin(&self, _: &mut Vec<u32>) {}

    fn end(&self, _: &mut Vec<u32>, _: usize) -> Result<bool> {
        Ok(false)
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
    fn passing(&self, text: TextColumn, ids: &mut Vec<u32>, show: &mut dyn FnMut(Passing)) -> Result<bool> {
        let mut column = IdColumn { ids: std::mem::take(ids), ..IdColumn::default() };
        let mut room = String::new();
        let mut show = |shown: Shown| match shown {
            Shown::Id(id) => show(Passing::Added(id)),
            // What is not text is among the failures.
            Shown::Pretoken(pretoken) => {
                if let Ok(pretoken) = written(self.roads.input, pretoken, &mut room) {
                    show(Passing::Pretoken(pretoken));
                }
            }
        };
        let is_shown = self.roads.column.encode_shown(text, &Nothing, &mut column, &mut show);
        *ids = column.ids;
        match column.failures.pop() {
            Some((_, error)) => Err(error),
            None => Ok(is_shown),
        }
    }

    fn passes(&self, text: &str, visit: &mut dyn FnMut(&str, &[AddedMatch])) -> Result<()> {
        self.roads.text.stations().passes(text, visit)
    }

    fn pretokens(&self, text: &str, visit: Visit) -> Result<()> {
        let stations = self.roads.text.stations();
        let pretokens = stations.pretokens(text, stations.need_places())?;
        pretokens.iter().try_for_each(|(found, piece)| visit(*found, &piece.text))
    }

    fn pretoken_ids(&self, pretoken: &str, ids: &mut Vec<u32>) -> Result<()> {
        self.roads.text.pretoken_ids(pretoken, ids)
    }

    fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Encoding> {
        self.encode(text, None, add_special_tokens)
    }

    fn plain_ids(&self, text: TextColumn, ids: &mut Vec<u32>) -> Result<()> {
        let mut column = IdColumn { ids: std::mem::take(ids), ..IdColumn::default() };
        self.roads.column.encode(text, &Nothing, &mut column);
        *ids = column.ids;
        column.failures.pop().map_or(Ok(()), |(_, error)| Err(error))
    }

    fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }

    fn on_record(&self, text: &str, ids: &[u32], has_unknown: bool, add_special_tokens: bool) -> OnRecord {
        match self.receipts.marks(text.as_bytes(), ids, add_special_tokens) {
            None => OnRecord::Nothing,
            Some(marks) => {
                let told = self.witness().and_then(|_| is_faithful(marks));
                told.or_else(|| self.told_by_rule(text, has_unknown)).map_or(OnRecord::Own, OnRecord::Told)
            }
        }
    }

    fn record(&self, texts: TextColumn, first_row: usize, add_special_tokens: bool, is_watched: bool) -> Option<usize> {
        const BYTES: usize = 1 << 20;
        const ROWS: usize = receipts::KEPT / 8;
        self.receipts.want();
        if is_watched || self.rule.is_none() {
            self.call_witness();
            self.witness()?;
        }
        let last = texts.rows().min(first_row + ROWS);
        let mut end = first_row + 1;
        while end < last && texts.offset(end + 1) - texts.offset(first_row) <= BYTES {
            end += 1;
        }
        let column = self.encode_batch(texts.some_rows(first_row, end), add_special_tokens, true).ok()?;
        self.recycle(column);
        Some(end)
    }
}
