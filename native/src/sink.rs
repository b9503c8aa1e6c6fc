//! Where the ids of documents go: into a column, document by document, with what is done at the ends of each.

use crate::cache::{Cache, Event, Output, SKIP};
use crate::columns::IdColumn;
use crate::error::{Error, Result};
use crate::models::PretokenModel;
use crate::rest::Rest;
use crate::witness::take_marks;

/// What is done to the ids of a document at its ends.
pub trait Finish: Sync {
    /// Called where a document begins.
    fn begin(&self, ids: &mut Vec<u32>);
    /// Called where it ends; its ids begin at `first`. Gives whether truncation cut them.
    fn end(&self, ids: &mut Vec<u32>, first: usize) -> Result<bool>;
}

/// Where the ids of documents go.
pub struct Sink<'a> {
    /// The column.
    pub column: &'a mut IdColumn,
    /// What is done at the ends of documents.
    pub finish: &'a dyn Finish,
    /// How many documents there will be.
    pub rows: usize,
    /// The failures of documents that are not at their end yet.
    pub failures: Vec<(usize, Error)>,
    /// Who wants to see what passes.
    pub show: Option<Show<'a>>,
    /// What is left to do with pieces, for who wants to see pretokens.
    pub rest: Option<&'a Rest>,
    /// Where ids are marked: the marks for added tokens.
    pub watched: Option<u32>,
}

/// What passes on the way to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// A pretoken, in the form in which the model gets it.
    Pretoken(&'a [u8]),
    /// An added token.
    Id(u32),
}

/// Called with all that passes, in order.
pub type Show<'a> = &'a mut dyn FnMut(Shown);

impl Sink<'_> {
    fn end_document(
        column_offsets: &mut Vec<i64>,
        ids: &mut Vec<u32>,
        finish: &dyn Finish,
        rows: usize,
    ) -> Result<bool> {
        let first = *column_offsets.last().expect("there is always one") as usize;
        let result = finish.end(ids, first);
        if result.is_err() {
            ids.truncate(first);
        }
        column_offsets.push(ids.len() as i64);
        if column_offsets.len() <= rows {
            finish.begin(ids);
        }
        result
    }
}

/// Append the ids of a text's spans, and let happen what happens between them.
pub fn encode_spans<M>(
    cache: &mut Cache<M::Scratch>,
    model: &M,
    text: &[u8],
    starts: &[u32],
    events: &[(u32, Event)],
    sink: &mut Sink,
) where
    M: PretokenModel,
    M::Scratch: Default,
{
    let Sink { column, finish, rows, failures, show, rest, watched } = sink;
    let IdColumn { ids, list_offsets, failures: failed_rows, truncated_rows, marks } = &mut **column;
    let of_added = watched.unwrap_or(0);
    let mut output = Output { ids, failure: None };
    cache.encode(model, text, starts, events, &mut output, |event, output| match event {
        Event::Id(id) => output.ids.push(id | of_added),
        Event::EndOfDocument => {
            let row = list_offsets.len() - 1;
            if watched.is_some() {
                marks.push(take_marks(&mut output.ids[list_offsets[row] as usize..]));
            }
            let known = failures.iter().position(|(failed, _)| *failed == row).map(|at| failures.remove(at).1);
            let failure = known.or_else(|| output.failure.take().map(|error| error.in_row(row)));
            output.failure = None;
            if failure.is_some() {
                output.ids.truncate(list_offsets[row] as usize);
            }
            let outcome = match failure {
                Some(error) => {
                    list_offsets.push(output.ids.len() as i64);
                    if list_offsets.len() <= *rows {
                        finish.begin(output.ids);
                    }
                    Err(error)
                }
                None => Sink::end_document(list_offsets, output.ids, *finish, *rows).map_err(|error| error.in_row(row)),
            };
            match outcome {
                Ok(true) => truncated_rows.push(row as i64),
                Ok(false) => {}
                Err(error) => failed_rows.push((row, error)),
            }
        }
    });
    if let Some(show) = show {
        show_spans(text, starts, events, *rest, *show);
    }
    // A failure in a document that goes on in the next call.
    if let Some(error) = output.failure.take() {
        let row = list_offsets.len() - 1;
        failures.push((row, error.in_row(row)));
    }
}

/// Show what `Cache::encode` has seen.
fn show_spans(text: &[u8], starts: &[u32], events: &[(u32, Event)], rest: Option<&Rest>, show: Show) {
    let mut events = events.iter().peekable();
    for (span, bounds) in (0..).zip(starts.windows(2)) {
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= span) {
            show_event(*event, show);
        }
        if bounds[0] & SKIP == 0 {
            let pretoken = &text[bounds[0] as usize..(bounds[1] & !SKIP) as usize];
            match rest {
                Some(rest) => {
                    rest.shown_pretokens(pretoken, |pretoken| show(Shown::Pretoken(pretoken.as_bytes())));
                }
                None if pretoken.is_empty() => {}
                None => show(Shown::Pretoken(pretoken)),
            }
        }
    }
    events.for_each(|(_, event)| show_event(*event, show));
}

fn show_event(event: Event, show: Show) {
    if let Event::Id(id) = event {
        show(Shown::Id(id));
    }
}
