//! The column road: from a column of texts to a column of ids.
//!
//! ```text
//! rows -> chunks -> pieces between added tokens -> [rewritten] -> pretokens -> cache and model -> template
//! ```
//!
//! Rows go through in chunks of some 32 KB, so that what one station writes is still near when the next one reads it. A
//! chunk is a text and the places in it where something happens (`Event`): the text is the column's own wherever
//! nothing rewrites it. What an added token covers is a hole in it.
//!
//! The road for one text with tokens and offsets is `aligned.rs`.

use std::sync::{Arc, Mutex};

use crate::added_parts::AddedParts;
use crate::added_tokens::{parts, AddedMatch};
use crate::aligned_text::AlignedText;
use crate::cache::{Cache, Event, SKIP};
use crate::columns::{IdColumn, TextColumn};
use crate::cutter::{Cuts, Cutter};
use crate::cutters::Cutters;
use crate::error::{Error, Result};
use crate::late::Late;
use crate::limits::{checked_length, fault_of_test, longest};
use crate::locks::taken;
use crate::marked_words::MarkedWords;
use crate::marks::Marks;
use crate::models::PretokenModel;
use crate::normalizers::Normalizer;
use crate::patterns::splitter::Splitter;
use crate::patterns::transducer::Transducer;
use crate::rest::{Rest, FINISHED};
use crate::sink::{encode_spans, Finish, Show, Sink};
use crate::spaces::{Before, SpaceCutter};
use crate::stations::Stations;

/// Bytes a chunk: the text, its symbols, bits and beginnings stay in the second-level cache together.
const CHUNK: usize = 32 << 10;
/// Longer pieces are cut at places where the pattern's state is known, so that memory does not grow with them.
const WINDOW: usize = 64 << 10;
/// Places for short pretokens that a thread remembers, where nobody says how many: 32 bytes each, a quarter of them empty.
pub const CACHED_PRETOKENS: usize = 1 << 20;

/// How pieces become pretokens.
pub enum Cutting {
    /// By patterns.
    Patterns {
        /// The pre-tokenizers that cut before one that puts a space in front of each piece.
        before: Option<Cutters>,
        /// The pre-tokenizers that cut.
        cutters: Cutters,
        /// Whether pieces get a space in front.
        prefix: Prefix,
    },
    /// A piece is one pretoken, cut where no merge can reach.
    Spaces {
        /// The pre-tokenizers that cut a piece into several such, in which spaces are written as marks.
        before: Option<Cutters>,
        /// Where no merge can reach.
        cutter: SpaceCutter,
        /// Whether spaces are written as marks before they come here.
        has_marks: bool,
        /// The texts in which no added token can be: there the normalizer only writes marks, which is not done, and
        /// spaces come before pieces as this says.
        plain: Option<(AddedParts, Before)>,
    },
    /// Before each space, which stands for Metaspace's replacement.
    Marks(Marks),
}

/// What pieces get in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    Nothing,
    /// A space, where they do not begin with one: ByteLevel's `add_prefix_space`.
    Space,
    /// A space at the start of a document, where it begins neither with one nor with this: a Metaspace's mark.
    FirstMark(char),
}

/// The stations that a text passes, and the scratch memory of the threads that were here.
pub struct Road<M: PretokenModel> {
    /// The model.
    pub model: M,
    /// The added tokens.
    pub stations: Arc<Stations>,
    /// What is done to whole texts of the normalizer (`Cutting` can do the work of some, and of some steps `rest`).
    pub normalizer: Option<Arc<Normalizer>>,
    /// The pre-tokenizer.
    pub cutting: Cutting,
    /// What is left to do with the pieces that are cut here; `model` does it, and it is here for who wants to see it.
    pub rest: Option<Arc<Rest>>,
    /// Short pretokens that a thread remembers.
    pub cached_pretokens: usize,
    /// Scratch memory that no thread uses at the moment.
    pub workers: Mutex<Vec<Box<Worker<M::Scratch>>>>,
}

/// The scratch memory of a thread.
pub struct Worker<S> {
    cache: Cache<S>,
    cuts: Cuts,
    matches: Vec<AddedMatch>,
    inner_matches: Vec<AddedMatch>,
    pieces: Vec<(usize, usize)>,
    happenings: Vec<(usize, Happening)>,
    /// For each happening, how many pieces come before it, as long as pieces are those of the raw text.
    pieces_before: Vec<usize>,
    events: Vec<(u32, Event)>,
    rewritten: String,
    buffer: Vec<u8>,
    /// Where ids are marked: the marks for added tokens.
    watched: Option<u32>,
}

/// What happens at a place of a chunk.
#[derive(Clone, Copy)]
enum Happening {
    Id(u32),
    EndOfDocument,
}

impl<S: Default> Worker<S> {
    fn new(cached_pretokens: usize) -> Worker<S> {
        Worker {
            cache: Cache::new(cached_pretokens),
            cuts: Cuts::default(),
            matches: vec![],
            inner_matches: vec![],
            pieces: vec![],
            happenings: vec![],
            pieces_before: vec![],
            events: vec![],
            rewritten: String::new(),
            buffer: vec![],
            watched: None,
        }
    }
}

/// The column road without its model's type.
pub trait ColumnRoad: Send + Sync {
    /// Append the ids of all rows. Rows that fail are in `failures`, with empty lists.
    fn encode(&self, texts: TextColumn, finish: &dyn Finish, ids: &mut IdColumn);

    /// Do the same, and show what passes; false: this road cannot, and nothing is done.
    fn encode_shown(&self, _texts: TextColumn, _finish: &dyn Finish, _ids: &mut IdColumn, _show: Show) -> bool {
        false
    }
}

impl<M> ColumnRoad for Road<M>
where
    M: PretokenModel + Send + Sync,
    M::Scratch: Default + Send,
{
    fn encode(&self, texts: TextColumn, finish: &dyn Finish, ids: &mut IdColumn) {
        self.encode_column(texts, finish, ids, None);
    }

    fn encode_shown(&self, texts: TextColumn, finish: &dyn Finish, ids: &mut IdColumn, show: Show) -> bool {
        // What is cut there for the cache is less than a pretoken.
        let is_whole = !matches!(self.cutting, Cutting::Spaces { .. });
        if is_whole {
            self.encode_column(texts, finish, ids, Some(&mut |shown| show(shown)));
        }
        is_whole
    }
}

impl<M> Road<M>
where
    M: PretokenModel,
    M::Scratch: Default,
{
    fn encode_column<'a>(
        &'a self,
        texts: TextColumn,
        finish: &'a dyn Finish,
        ids: &'a mut IdColumn,
        show: Option<Show<'a>>,
    ) {
        let free = taken(&self.workers).and_then(|mut workers| workers.pop());
        let mut worker = free.unwrap_or_else(|| Box::new(Worker::new(self.cached_pretokens)));
        if worker.watched.is_none() && self.model.is_watched() {
            // What its cache knows has no marks.
            *worker = Worker::new(self.cached_pretokens);
            worker.watched = self.model.watch(worker.cache.scratch());
        }
        ids.list_offsets.push(ids.ids.len() as i64);
        let rows = texts.rows();
        if rows > 0 {
            finish.begin(&mut ids.ids);
        }
        ids.list_offsets.reserve(rows);
        let rest = self.rest.as_deref();
        let mut sink = Sink { column: ids, finish, rows, failures: vec![], show, rest, watched: worker.watched };
        let mut row = 0;
        while row < rows {
            let start = texts.offset(row);
            let mut end_row = row + 1;
            while end_row < rows && texts.offset(end_row + 1) - start <= CHUNK {
                end_row += 1;
            }
            self.encode_chunk(&mut worker, texts, row, end_row, &mut sink);
            row = end_row;
        }
        if let Some(mut workers) = taken(&self.workers) {
            workers.push(worker);
        }
    }

    fn encode_chunk(
        &self,
        worker: &mut Worker<M::Scratch>,
        texts: TextColumn,
        first_row: usize,
        end_row: usize,
        sink: &mut Sink,
    ) {
        let base = texts.offset(first_row);
        let whole = texts.bytes(base, texts.offset(end_row));
        worker.pieces.clear();
        worker.happenings.clear();
        worker.pieces_before.clear();
        let mut is_rewritten = self.rewrites_always();
        // One look at the whole is cheaper than one at each row; a row that is not UTF-8 makes for the latter.
        let checked = simdutf8::basic::from_utf8(whole).ok();
        for row in first_row..end_row {
            let place = texts.offset(row) - base;
            let text = checked.and_then(|text| text.get(place..texts.offset(row + 1) - base));
            let happened = worker.happenings.len();
            let outcome = text.map_or_else(|| texts.text(row), Ok).and_then(|text| {
                is_rewritten |= self.find_pieces(worker, text, place)?;
                Ok(text)
            });
            match outcome {
                Ok(text) => {
                    let is_whole = worker.happenings.len() == happened;
                    is_rewritten = is_rewritten
                        || self.normalizer.as_ref().is_some_and(|n| {
                            if is_whole {
                                n.may_change(text)
                            } else {
                                n.may_change_within(text)
                            }
                        });
                }
                Err(error) => {
                    let error = if error.row.is_some() { error } else { error.in_row(row) };
                    sink.failures.push((row, error));
                }
            }
            worker.pieces_before.push(worker.pieces.len());
            worker.happenings.push((texts.offset(row + 1) - base, Happening::EndOfDocument));
        }
        if is_rewritten || self.is_odd(worker, whole, checked) {
            let buffer = std::mem::take(&mut worker.buffer);
            let buffer = self.write_pieces(worker, whole, buffer, first_row, sink);
            if buffer.len() > longest() && first_row + 1 < end_row {
                // Only the rows that are too long by themselves are to fail. What failed so far fails again.
                sink.failures.retain(|(row, _)| *row < first_row);
                drop(buffer);
                (first_row..end_row).for_each(|row| self.encode_chunk(worker, texts, row, row + 1, sink));
                return;
            }
            self.encode_text(worker, &buffer, sink);
            worker.buffer = buffer;
        } else {
            self.encode_text(worker, whole, sink);
        }
    }

    /// Whether the second pass finds anything in the pieces as they are, or one of them does not end plainly.
    fn is_odd(&self, worker: &mut Worker<M::Scratch>, whole: &[u8], checked: Option<&str>) -> bool {
        let pass = &self.stations.added.normalized_pass;
        let has_ends = self.late().is_some_and(|late| late.marked().is_some());
        (has_ends || !pass.is_empty())
            && worker.pieces.iter().any(|&(start, end)| {
                worker.inner_matches.clear();
                // What is wrong here is found, and told, where the pieces are written.
                let text = checked.map_or_else(|| checked_text(&whole[start..end]), |text| &text[start..end]);
                if let Some(late) = self.late() {
                    return late.may_have_added(text) || late.plain_length(text) < text.len();
                }
                pass.matches(text, &mut worker.inner_matches).is_err() || !worker.inner_matches.is_empty()
            })
    }

    /// What waits of the normalizer until a piece is new.
    fn late(&self) -> Option<&Late> {
        self.rest.as_ref().and_then(|rest| rest.late())
    }

    fn rewrites_always(&self) -> bool {
        !matches!(self.cutting, Cutting::Patterns { prefix: Prefix::Nothing, .. })
    }

    /// Find the pieces of a document between the matches of the raw pass. Gives whether a match begins in what the one
    /// before it has absorbed: then pieces may overlap, and have to be written one after the other.
    fn find_pieces(&self, worker: &mut Worker<M::Scratch>, text: &str, place: usize) -> Result<bool> {
        worker.matches.clear();
        self.stations.added.raw_pass.matches(text, &mut worker.matches)?;
        let (mut done, mut overlap) = (0, false);
        for found in &worker.matches {
            overlap |= found.start < done;
            if done < found.start {
                worker.pieces.extend(self.piece(&text[done..found.start], place + done));
            }
            // The match is there even where another one has consumed its text; a match without text is none.
            if found.start < found.end {
                worker.pieces_before.push(worker.pieces.len());
                worker.happenings.push((place + found.start.max(done), Happening::Id(found.token_id)));
            }
            done = found.end;
        }
        if done < text.len() {
            worker.pieces.extend(self.piece(&text[done..], place + done));
        }
        Ok(overlap)
    }

    /// A piece that begins at a place, without what is stripped of the raw text.
    fn piece(&self, text: &str, place: usize) -> Option<(usize, usize)> {
        let whole = (0, text.len());
        let (start, end) = self.late().and_then(Late::marked).map_or(whole, |marked| marked.stripped(text));
        (start < end).then_some((place + start, place + end))
    }

    /// Write the pieces as they are after the normalizer, the second pass of added tokens and the prefix space, and put
    /// pieces and happenings in their new places. Added tokens take no room in the new text.
    fn write_pieces(
        &self,
        worker: &mut Worker<M::Scratch>,
        whole: &[u8],
        mut buffer: Vec<u8>,
        first_row: usize,
        sink: &mut Sink,
    ) -> Vec<u8> {
        buffer.clear();
        let old_pieces = std::mem::take(&mut worker.pieces);
        let old_happenings = std::mem::take(&mut worker.happenings);
        let pieces_before = std::mem::take(&mut worker.pieces_before);
        let mut happenings =
            pieces_before.iter().zip(old_happenings.into_iter().map(|(_, happening)| happening)).peekable();
        let mut row = first_row;
        for (number, &(start, end)) in old_pieces.iter().enumerate() {
            while let Some((_, happening)) = happenings.next_if(|(before, _)| **before <= number) {
                row += usize::from(matches!(happening, Happening::EndOfDocument));
                worker.happenings.push((buffer.len(), happening));
            }
            let text = checked_text(&whole[start..end]);
            let is_at_start = start == 0 || worker_is_document_start(&worker.happenings, buffer.len());
            if let Err(error) = self.write_piece(worker, text, is_at_start, &mut buffer) {
                sink.failures.push((row, error.in_row(row)));
            }
        }
        for (_, happening) in happenings {
            worker.happenings.push((buffer.len(), happening));
        }
        buffer
    }

    fn write_piece(
        &self,
        worker: &mut Worker<M::Scratch>,
        text: &str,
        is_at_start: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if let Cutting::Spaces { plain: Some((parts, before)), cutter, .. } = &self.cutting {
            if !parts.may_be_in(text) {
                let start = buffer.len();
                if cutter.wants_space(*before, text, is_at_start) {
                    buffer.push(b' ');
                }
                buffer.extend_from_slice(text.as_bytes());
                worker.pieces.push((start, buffer.len()));
                return Ok(());
            }
        }
        if let Some((late, marked)) = self.late().and_then(|late| late.marked().map(|marked| (late, marked))) {
            return self.write_marked_words(worker, text, (late, marked), buffer);
        }
        let mut rewritten = std::mem::take(&mut worker.rewritten);
        let mut text = match &self.normalizer {
            Some(normalizer) if normalizer.may_change(text) => {
                rewritten.clear();
                normalizer.normalize(text, &mut rewritten)?;
                rewritten.as_str()
            }
            _ => text,
        };
        worker.inner_matches.clear();
        let late = self.late();
        let mut late_text = String::new();
        if late.is_none_or(|late| late.may_have_added(text)) {
            if let Some(late) = late {
                // To normalize it once more, in pieces, changes nothing.
                late.write(text, &mut late_text)?;
                text = &late_text;
            }
            self.stations.added.normalized_pass.matches(text, &mut worker.inner_matches)?;
        }
        let mut done = 0;
        for at in 0..=worker.inner_matches.len() {
            let found = worker.inner_matches.get(at).copied();
            let end = found.map_or(text.len(), |found| found.start);
            if done < end {
                let pieces = &mut worker.pieces;
                let mut write = |piece: &str| {
                    let start = buffer.len();
                    self.cutting.write_piece(piece, is_at_start && done == 0, buffer);
                    if start < buffer.len() {
                        pieces.push((start, buffer.len()));
                    }
                };
                match &self.cutting {
                    Cutting::Patterns { before: Some(before), .. } => {
                        before.each_piece(&text[done..end], &mut worker.cuts, write)?;
                    }
                    Cutting::Spaces { before: Some(before), cutter, .. } => {
                        let marked = cutter.marked(&text[done..end], is_at_start && done == 0);
                        before.each_piece(&marked, &mut worker.cuts, write)?;
                    }
                    _ => write(&text[done..end]),
                }
            }
            if let Some(found) = found {
                if found.start < found.end {
                    worker.happenings.push((buffer.len(), Happening::Id(found.token_id)));
                }
                done = found.end;
            }
        }
        worker.rewritten = rewritten;
        Ok(())
    }

    /// Write a stripped piece as it is as far as its words can wait, and the pretokens of its end.
    fn write_marked_words(
        &self,
        worker: &mut Worker<M::Scratch>,
        text: &str,
        (late, marked): (&Late, &MarkedWords),
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let may_have_added = late.may_have_added(text);
        let (plain, rest) = text.split_at(if may_have_added { 0 } else { late.plain_length(text) });
        let mut put = |pieces: &mut Vec<(usize, usize)>, parts: [&[u8]; 2]| {
            let start = buffer.len();
            parts.iter().for_each(|part| buffer.extend_from_slice(part));
            pieces.extend((start < buffer.len()).then_some((start, buffer.len())));
            buffer.len()
        };
        let mut place = put(&mut worker.pieces, [plain.as_bytes(), &[]]);
        if rest.is_empty() {
            return Ok(());
        }
        let mut written = String::new();
        marked.write_all(rest, &mut written)?;
        worker.inner_matches.clear();
        if may_have_added {
            self.stations.added.normalized_pass.matches(&written, &mut worker.inner_matches)?;
        }
        for part in parts(&worker.inner_matches, written.len()).into_iter().filter(|part| part.start < part.end) {
            if let Some(found) = part.found {
                worker.happenings.push((place, Happening::Id(found.token_id)));
                continue;
            }
            let mut pretokens = vec![AlignedText::untracked(written[part.start..part.end].to_owned())];
            if let Some(pre_tokenizer) = &self.stations.pre_tokenizer {
                pretokens = pre_tokenizer.pre_tokenize(pretokens)?;
            }
            for pretoken in pretokens {
                place = put(&mut worker.pieces, [&[FINISHED], pretoken.text.as_bytes()]);
            }
        }
        // What is read as a character there does not go on into the next piece.
        buffer.extend_from_slice(&[0; 3]);
        Ok(())
    }

    fn encode_text(&self, worker: &mut Worker<M::Scratch>, text: &[u8], sink: &mut Sink) {
        if text.len() > WINDOW {
            if let Some(machine) = self.only_machine().filter(|_| worker.pieces.iter().any(|(a, b)| b - a > WINDOW)) {
                return self.encode_long(machine, worker, text, sink);
            }
        }
        fault_of_test();
        if let Err(error) = checked_length(text.len()) {
            return self.refuse_text(worker, error, sink);
        }
        match &self.cutting {
            Cutting::Patterns { cutters, .. } => {
                let mut failures = vec![];
                let is_finished = |piece: &(usize, usize)| text[piece.0] == FINISHED;
                if self.late().is_some() && worker.pieces.iter().any(is_finished) {
                    let (finished, others): (Vec<_>, Vec<_>) = worker.pieces.iter().copied().partition(is_finished);
                    cutters.cut(text, &others, &mut worker.cuts, &mut failures);
                    worker.cuts.put_in(text.len(), &finished);
                } else {
                    cutters.cut(text, &worker.pieces, &mut worker.cuts, &mut failures);
                }
                for (place, error) in failures {
                    let is_over = |(at, happening): &&(usize, Happening)| {
                        *at <= place && matches!(happening, Happening::EndOfDocument)
                    };
                    let row = sink.column.list_offsets.len() - 1 + worker.happenings.iter().filter(is_over).count();
                    sink.failures.push((row, error.in_row(row)));
                }
            }
            Cutting::Spaces { cutter, .. } => cutter.cut(text, &worker.pieces, &mut worker.cuts.starts),
            Cutting::Marks(_) => Marks::cut(text, &worker.pieces, &mut worker.cuts.starts),
        }
        worker.events.clear();
        let starts = &mut worker.cuts.starts;
        let mut span = 0;
        for &(place, happening) in &worker.happenings {
            span += starts[span..].partition_point(|&start| ((start & !SKIP) as usize) < place);
            worker.events.push((span as u32, happening.event()));
        }
        starts.push(text.len() as u32);
        encode_spans(&mut worker.cache, &self.model, text, &worker.cuts.starts, &worker.events, sink);
    }

    /// The one machine that does all cutting, if it is so.
    fn only_machine(&self) -> Option<&Transducer> {
        match &self.cutting {
            Cutting::Patterns { cutters, .. } => cutters.only_machines()?.only_machine(),
            _ => None,
        }
    }

    /// Let the documents of a text end, each with the error.
    fn refuse_text(&self, worker: &mut Worker<M::Scratch>, error: Error, sink: &mut Sink) {
        let row = sink.column.list_offsets.len() - 1;
        worker.events.clear();
        worker.events.extend(worker.happenings.iter().map(|(_, happening)| (0, happening.event())));
        let ends = worker.happenings.iter().filter(|(_, happening)| matches!(happening, Happening::EndOfDocument));
        sink.failures.extend((row..).zip(ends).map(|(row, _)| (row, error.clone().in_row(row))));
        encode_spans(&mut worker.cache, &self.model, &[], &[0], &worker.events, sink);
    }

    /// Encode a text with a long piece in it, piece by piece and window by window.
    fn encode_long(&self, machine: &Transducer, worker: &mut Worker<M::Scratch>, text: &[u8], sink: &mut Sink) {
        let pieces = std::mem::take(&mut worker.pieces);
        let happenings = std::mem::take(&mut worker.happenings);
        let mut happenings = happenings.iter().peekable();
        for &(piece_start, piece_end) in &pieces {
            worker.events.clear();
            while let Some((_, happening)) = happenings.next_if(|(at, _)| *at <= piece_start) {
                worker.events.push((0, happening.event()));
            }
            if text[piece_start] == FINISHED {
                let piece = &text[piece_start..piece_end];
                encode_spans(&mut worker.cache, &self.model, piece, &[0, piece.len() as u32], &worker.events, sink);
                continue;
            }
            let (mut at, mut row, mut open) = (piece_start, machine.start, piece_start);
            while at < piece_end {
                let window = &text[at..piece_end];
                let cut = (window.len() > WINDOW).then(|| Splitter::cut_point(machine, window, WINDOW)).flatten();
                let (length, next_row) = cut.unwrap_or((window.len(), machine.start));
                Cutter::cut_stretch(machine, &window[..length], row, cut.is_none(), &mut worker.cuts);
                // The token in which the window before ended goes on into this one.
                let starts = &mut worker.cuts.starts;
                let shift = (at - open) as u32;
                starts.iter_mut().for_each(|start| *start += shift);
                if starts.first() != Some(&0) {
                    starts.insert(0, 0);
                }
                let span_text = &text[open..at + length];
                if let Err(error) = checked_length(span_text.len()) {
                    // The document fails, and what is left of this piece is not looked at.
                    encode_spans(&mut worker.cache, &self.model, &[], &[0], &worker.events, sink);
                    worker.events.clear();
                    let row = sink.column.list_offsets.len() - 1;
                    sink.failures.push((row, error.in_row(row)));
                    break;
                }
                if cut.is_none() {
                    starts.push(span_text.len() as u32);
                }
                let next_open = open + *starts.last().expect("it has a first one") as usize;
                encode_spans(&mut worker.cache, &self.model, span_text, &worker.cuts.starts, &worker.events, sink);
                worker.events.clear();
                (at, row, open) = (at + length, next_row, next_open);
            }
        }
        worker.events.clear();
        worker.events.extend(happenings.map(|(_, happening)| (0, happening.event())));
        encode_spans(&mut worker.cache, &self.model, &[], &[0], &worker.events, sink);
        worker.pieces = pieces;
    }
}

/// A piece of a text that was checked as a whole.
fn checked_text(piece: &[u8]) -> &str {
    simdutf8::basic::from_utf8(piece).expect("pieces are cut from checked texts")
}

fn worker_is_document_start(happenings: &[(usize, Happening)], place: usize) -> bool {
    matches!(happenings.last(), Some(&(at, Happening::EndOfDocument)) if at == place)
}

impl Happening {
    fn event(self) -> Event {
        match self {
            Happening::Id(id) => Event::Id(id),
            Happening::EndOfDocument => Event::EndOfDocument,
        }
    }
}

impl Cutting {
    /// Write a piece as the cutter wants it.
    fn write_piece(&self, piece: &str, is_at_start: bool, buffer: &mut Vec<u8>) {
        let has_prefix = match self {
            Cutting::Patterns { prefix: Prefix::Nothing, .. } => false,
            Cutting::Patterns { prefix: Prefix::Space, .. } => !piece.starts_with(' '),
            Cutting::Patterns { prefix: Prefix::FirstMark(mark), .. } => {
                is_at_start && !piece.starts_with([' ', *mark])
            }
            Cutting::Spaces { before: Some(_), cutter, .. } | Cutting::Spaces { cutter, has_marks: true, .. } => {
                return cutter.write_spaces(piece, buffer);
            }
            Cutting::Spaces { cutter, .. } => cutter.puts_space_before(piece, is_at_start),
            Cutting::Marks(marks) => return marks.write_piece(piece, is_at_start, buffer),
        };
        if has_prefix {
            buffer.push(b' ');
        }
        buffer.extend_from_slice(piece.as_bytes());
    }
}
