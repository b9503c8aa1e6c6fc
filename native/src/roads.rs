//! Which roads a spec takes: the one to tokens and offsets, which serves all, and for columns the fastest that is right.
//!
//! A column's road is fast where pretokens can be cut out of the text, or of the normalized text, as they are, and the
//! model reads them in that form (`Input`). Where that is not so, columns take the general road (`aligned.rs`).

use std::sync::{Arc, Mutex, OnceLock};

use crate::added_parts::AddedParts;
use crate::aligned::{AlignedRoad, TextRoad};
use crate::cutter::{absorbed, absorbed_one_of, runs, Cutter};
use crate::cutters::{if_supported, Cutters};
use crate::error::Result;
use crate::late::{flat_normalizers, Late, Waiting};
use crate::marks::Marks;
use crate::models::bpe::{Bpe, Input};
use crate::models::unigram::Unigram;
use crate::models::wordlevel::WordLevel;
use crate::models::wordpiece::WordPiece;
use crate::models::{PretokenModel, TokenModel};
use crate::normalizers::Normalizer as Normalizers;
use crate::patterns::tree::{CodePointSet, Node, Tree};
use crate::pipeline::{ColumnRoad, Cutting, Prefix, Road};
use crate::pre_tokenizers::PreTokenizer as PreTokenizers;
use crate::rest::{Deferring, Rest};
use crate::spaces::{Before, Seams, SpaceCutter};
use crate::spec::{self, Behavior, Model, Normalizer, Pattern, PreTokenizer, PrependScheme, TokenizerSpec};
use crate::stations::Stations;
use crate::tables::Tables;
use crate::witness::{Watched, Witness};

/// The roads of a spec.
pub struct Roads {
    /// From a column of texts to ids.
    pub column: Arc<dyn ColumnRoad>,
    /// In which form the column's road gives pretokens to the model.
    pub input: Input,
    /// From one text to tokens and offsets.
    pub text: Arc<dyn TextRoad>,
    /// Whether the column's road is the general one; for whoever wants to know why it is slow.
    pub is_general: bool,
    /// Where a witness of the column's road goes, if there can be one.
    pub witness: Option<Arc<OnceLock<Witness>>>,
}

impl Roads {
    /// Build the roads of a spec, behind its stations.
    pub fn build(spec: &TokenizerSpec, stations: Arc<Stations>, tables: &mut Tables) -> Result<Roads> {
        let cached_pretokens = spec.options.cached_pretokens;
        let mut parts = vec![];
        if let Some(part) = &spec.pre_tokenizer {
            flat_pre_tokenizers(part, "$.pre_tokenizer".to_owned(), &mut parts);
        }
        if let Model::BPE(model) = &spec.model {
            if let Some((model, way)) = spaces_road(spec, model, &stations, &parts, tables)? {
                return Ok(Roads::put_together((stations, cached_pretokens), model, Input::Text, Some(way)));
            }
        }
        let (input, way) = match plan(spec, &stations, &parts, tables)? {
            Some((input, way)) => (input, Some(way)),
            None => (Input::Text, None),
        };
        Ok(match &spec.model {
            Model::BPE(model) => {
                let model = tables.make(|| Bpe::build(model, input))?;
                Roads::put_together((stations, cached_pretokens), model, input, way)
            }
            Model::WordPiece { vocab, unk_token, continuing_subword_prefix, max_input_chars_per_word } => {
                let most = *max_input_chars_per_word;
                let build = || WordPiece::build(&vocab.0, unk_token, continuing_subword_prefix, most, input);
                let model = tables.make(|| Ok(build()))?;
                Roads::put_together((stations, cached_pretokens), model, input, way)
            }
            Model::WordLevel { vocab, unk_token } => {
                let model = tables.make(|| Ok(WordLevel::build(&vocab.0, unk_token, input)))?;
                Roads::put_together((stations, cached_pretokens), model, input, way)
            }
            Model::Unigram { vocab, unk_id, byte_fallback } => {
                let model = tables.make(|| Ok(Unigram::build(vocab, *unk_id, *byte_fallback, input)))?;
                Roads::put_together((stations, cached_pretokens), model, input, way)
            }
        })
    }

    fn put_together<M>(
        (stations, cached_pretokens): (Arc<Stations>, usize),
        model: M,
        input: Input,
        way: Option<Way>,
    ) -> Roads
    where
        M: TokenModel + Send + Sync + 'static,
        M::Scratch: Default + Send + 'static,
    {
        let model = Arc::new(model);
        let text = Arc::new(AlignedRoad::new(
            Arc::clone(&stations),
            Arc::clone(&model),
            input == Input::Text,
            cached_pretokens,
        ));
        let Some(Way { cutting, normalizer, rest }) = way else {
            let column = Arc::clone(&text) as Arc<dyn ColumnRoad>;
            return Roads { column, input, text, is_general: true, witness: None };
        };
        // What is cut for the cache there is less than a pretoken.
        let is_whole = !matches!(cutting, Cutting::Spaces { .. });
        let witness = Arc::new(OnceLock::new());
        let rest = rest.map(Arc::new);
        let watching = (rest.clone(), Arc::clone(&witness));
        let column: Arc<dyn ColumnRoad> = match rest {
            None => {
                let model = Watched { model, rest: watching.0, input, witness: watching.1 };
                Arc::new(Road {
                    model,
                    stations,
                    normalizer,
                    cutting,
                    rest: None,
                    cached_pretokens,
                    workers: Mutex::default(),
                })
            }
            Some(rest) => {
                let model = Deferring { model, rest: Arc::clone(&rest) };
                let model = Watched { model, rest: watching.0, input, witness: watching.1 };
                Arc::new(Road {
                    model,
                    stations,
                    normalizer,
                    cutting,
                    rest: Some(rest),
                    cached_pretokens,
                    workers: Mutex::default(),
                })
            }
        };
        Roads { column, input, text, is_general: false, witness: is_whole.then_some(witness) }
    }
}

/// A fast way for columns.
struct Way {
    cutting: Cutting,
    /// What is done to whole texts before they are cut.
    normalizer: Option<Arc<Normalizers>>,
    /// What is left to do with the pieces.
    rest: Option<Rest>,
}

/// A model that several roads share.
impl<M: PretokenModel> PretokenModel for Arc<M> {
    type Scratch = M::Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut M::Scratch, ids: &mut Vec<u32>) -> Result<()> {
        M::encode(self, pretoken, scratch, ids)
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut M::Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        M::encode_many(self, pretokens, scratch, ids, places);
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

/// How a column's texts are cut, and in which form the model gets pretokens; None: only the general road is right.
fn plan(
    spec: &TokenizerSpec,
    stations: &Stations,
    parts: &[(String, &PreTokenizer)],
    tables: &mut Tables,
) -> Result<Option<(Input, Way)>> {
    if stations.need_places() {
        return Ok(None);
    }
    let way = |cutting, rest| Way { cutting, normalizer: stations.normalizer.clone(), rest };
    let added = || {
        let tokens = spec.added_tokens.in_force.iter().filter(|token| token.normalized);
        tokens.map(|token| stations.normalized(&token.content)).collect::<Result<Vec<_>>>()
    };
    if let (Some(normalizer), Some((_, first @ PreTokenizer::Metaspace { .. }))) = (&stations.normalizer, parts.first())
    {
        if let Some(late) = Late::of_marked_words(normalizer, first, &added()?) {
            if let Some(way) = marked_words(late, parts, tables)? {
                let input = way.rest.as_ref().map_or(Input::Text, Rest::input);
                return Ok(Some((input, way)));
            }
        }
    }
    if let [(_, &PreTokenizer::Metaspace { replacement, prepend_scheme, split: true })] = *parts {
        if replacement != ' ' {
            let marks = Marks::new(replacement, prepend_scheme);
            return Ok(Some((Input::Spaces(replacement), way(Cutting::Marks(marks), None))));
        }
    }
    if let Some((first, others)) = parts.split_first() {
        let waiting = match (&spec.normalizer, &stations.normalizer) {
            (Some(parts), Some(whole)) => Waiting::of(parts, whole, first.1, &added()?)?,
            _ => None,
        };
        let has_whole = waiting.as_ref().is_none_or(|waiting| waiting.whole.is_some());
        let may_be_words = has_whole && !spec.added_tokens.in_force.iter().any(|token| token.normalized);
        if let Some(normalizer) = stations.normalizer.as_ref().filter(|_| may_be_words) {
            if let Some((late, separators)) = Late::of_words(normalizer, first.1) {
                if let Some(cutter) = tables.make(|| Ok(absorbed(runs(vec![separators.complement()]))))? {
                    let all = parts.iter().map(|part| PreTokenizers::build(part.1)).collect();
                    let rest = Rest::new(Some(&separators), all).with_late(late);
                    let cutting = by_patterns(cutter.into());
                    return Ok(Some((Input::Text, Way { cutting, normalizer: None, rest: Some(rest) })));
                }
            }
        }
        if let Some(waiting) = waiting {
            if let Some((cutter, dropped)) = tables.make(|| Ok(waiting.cutter()))? {
                let cutting = by_patterns(cutter.into());
                let normalizer = waiting.whole.clone();
                let rest = rest_of(first.1, &dropped, others, tables)?.with_late(waiting.late());
                return Ok(Some((rest.input(), Way { cutting, normalizer, rest: Some(rest) })));
            }
        }
        if let Some((cutter, dropped)) = tables.make(|| Ok(Cutter::absorbing(first.1)))? {
            let rest = rest_of(first.1, &dropped, others, tables)?;
            return Ok(Some((rest.input(), way(by_patterns(cutter.into()), Some(rest)))));
        }
    }
    // A ByteLevel first cuts, where it does, and then writes bytes; what comes after it sees these.
    let byte_level = parts.iter().position(|(_, part)| matches!(part, PreTokenizer::ByteLevel { .. }));
    let metaspace = parts.iter().position(|(_, part)| matches!(part, PreTokenizer::Metaspace { .. }));
    if let Some(at) = metaspace.filter(|&at| byte_level.is_none_or(|place| at < place)) {
        return Ok(among_others(parts, at, tables)?.map(|(cutting, rest)| (Input::Text, way(cutting, Some(rest)))));
    }
    let mut prefix = Prefix::Nothing;
    let mut before = None;
    let mut cutting: Vec<(String, &PreTokenizer)> = parts[..byte_level.unwrap_or(parts.len())].to_vec();
    if let Some((place, part)) = byte_level.map(|at| &parts[at]) {
        let PreTokenizer::ByteLevel { add_prefix_space, pattern, .. } = part else { return Ok(None) };
        if *add_prefix_space {
            prefix = Prefix::Space;
            if !cutting.is_empty() {
                let Some(cutters) = Cutters::build(&cutting, tables)? else { return Ok(None) };
                before = Some(cutters);
                cutting.clear();
            }
        }
        cutting.extend(pattern.as_ref().map(|_| (place.clone(), *part)));
    }
    let Some(cutters) = Cutters::build(&cutting, tables)? else { return Ok(None) };
    let patterns = Cutting::Patterns { before, cutters, prefix };
    Ok(Some(match byte_level {
        None => (Input::Text, way(patterns, None)),
        Some(at) if at + 1 == parts.len() => (Input::ByteAlphabet, way(patterns, None)),
        Some(at) => {
            let writing = PreTokenizers::ByteLevel { add_prefix_space: false, split: None };
            let after = parts[at + 1..].iter().map(|part| PreTokenizers::build(part.1));
            (Input::Text, way(patterns, Some(Rest::new(None, [writing].into_iter().chain(after).collect()))))
        }
    }))
}

/// The way of words that wait before a Metaspace.
fn marked_words(late: Late, parts: &[(String, &PreTokenizer)], tables: &mut Tables) -> Result<Option<Way>> {
    let Some(marked) = late.marked() else { return Ok(None) };
    let separators = marked.separators().clone();
    let build = || absorbed_one_of(marked.absorbed(), runs(vec![separators.complement()]));
    let Some(cutter) = tables.make(|| Ok(build()))? else { return Ok(None) };
    let all = parts.iter().map(|part| PreTokenizers::build(part.1)).collect();
    let rest = Rest::new(Some(&separators), all).with_late(late);
    Ok(Some(Way { cutting: by_patterns(cutter.into()), normalizer: None, rest: Some(rest) }))
}

fn by_patterns(cutters: Cutters) -> Cutting {
    Cutting::Patterns { before: None, cutters, prefix: Prefix::Nothing }
}

/// What is left to do behind a cutter that lets spaces belong to the matches of the first part.
fn rest_of(
    first: &PreTokenizer,
    dropped: &CodePointSet,
    others: &[(String, &PreTokenizer)],
    tables: &mut Tables,
) -> Result<Rest> {
    let rest = Rest::new(Some(dropped), others.iter().map(|part| PreTokenizers::build(part.1)).collect());
    if let [(_, PreTokenizer::ByteLevel { add_prefix_space: false, pattern: Some(_), .. })] = others {
        let build = || {
            let cutter = if_supported(Cutter::build(others))?;
            Ok(cutter.map(|cutter| {
                let kept_whole = cutter.keeps_matches(first);
                (cutter, kept_whole)
            }))
        };
        if let Some((cutter, kept_whole)) = tables.make(build)? {
            return Ok(rest.with_byte_level(cutter, kept_whole));
        }
    }
    Ok(rest)
}

/// The way of a Metaspace at a place among other parts: what comes before it only cuts, and so does it itself, before each
/// space and each mark. What it writes, and what comes after it, is left for the pieces.
fn among_others(parts: &[(String, &PreTokenizer)], at: usize, tables: &mut Tables) -> Result<Option<(Cutting, Rest)>> {
    let (place, part) = &parts[at];
    let PreTokenizer::Metaspace { replacement, prepend_scheme, split: true } = **part else { return Ok(None) };
    // Which pieces are at the start of the document is not known behind what cuts.
    let (prefix, prepend_scheme) = match prepend_scheme {
        PrependScheme::First if at > 0 => return Ok(None),
        PrependScheme::First => (Prefix::FirstMark(replacement), PrependScheme::Never),
        scheme => (Prefix::Nothing, scheme),
    };
    let point = |character: char| CodePointSet(vec![character as u32, character as u32 + 1]);
    let sets = vec![point(' ').union(&point(replacement))];
    let pattern = Pattern::Regex(Tree { sets, root: Node::Set(0), ..Tree::default() });
    let before_marks = PreTokenizer::Split { pattern, behavior: Behavior::MergedWithNext, invert: false };
    let mut cutting = parts[..at].to_vec();
    cutting.push((place.clone(), &before_marks));
    let Some(cutters) = Cutters::build(&cutting, tables)? else { return Ok(None) };
    let writing = PreTokenizers::Metaspace { replacement, prepend_scheme, split: true };
    let after = parts[at + 1..].iter().map(|part| PreTokenizers::build(part.1));
    let rest = Rest::new(None, [writing].into_iter().chain(after).collect());
    Ok(Some((Cutting::Patterns { before: None, cutters, prefix }, rest)))
}

/// The road of the tokenizers that write spaces as a mark and keep documents, or what is cut out of them, whole; None where
/// this is none of them.
fn spaces_road(
    spec: &TokenizerSpec,
    model: &spec::Bpe,
    stations: &Stations,
    parts: &[(String, &PreTokenizer)],
    tables: &mut Tables,
) -> Result<Option<(Bpe, Way)>> {
    let mut normalizers = vec![];
    flat_normalizers(spec.normalizer.as_ref(), &mut normalizers);
    let is_space = |pattern: &Pattern| matches!(pattern, Pattern::String(text) if text == " ");
    let single = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|mark| *mark != ' ' && characters.next().is_none())
    };
    let written = match normalizers.last() {
        Some(Normalizer::Replace { pattern, content }) if is_space(pattern) => single(content),
        _ => None,
    };
    let (mark, mut before, mut cutting) = match (written, parts.first()) {
        (Some(mark), _) => (mark, Before::Never, parts.to_vec()),
        (None, Some((_, &PreTokenizer::Metaspace { replacement, prepend_scheme, split: false })))
            if replacement != ' ' =>
        {
            (replacement, Before::Missing(prepend_scheme), parts[1..].to_vec())
        }
        _ => return Ok(None),
    };
    // There is no space left to split at.
    cutting.retain(|(_, part)| match part {
        PreTokenizer::Split { behavior: Behavior::Removed, invert: true, .. } => true,
        PreTokenizer::Split { pattern, .. } => !is_space(pattern),
        _ => true,
    });
    if !cutting.iter().all(|(_, part)| PreTokenizers::only_cuts(part)) {
        return Ok(None);
    }
    let in_second_pass = spec.added_tokens.in_force.iter().any(|token| token.normalized);
    // What a normalizer does that only writes marks need not be done.
    let only_marks = match normalizers[..] {
        [] => Some(before),
        [Normalizer::Replace { .. }] => written.map(|_| Before::Never),
        [Normalizer::Prepend { prepend }, Normalizer::Replace { content, .. }] if prepend == content => {
            written.map(|_| Before::Always)
        }
        _ => None,
    };
    let mut plain = None;
    let normalizes = match only_marks.filter(|_| cutting.is_empty() || normalizers.is_empty()) {
        Some(only) if !in_second_pass || normalizers.is_empty() => {
            before = only;
            false
        }
        Some(only) => {
            plain = AddedParts::new(&spec.added_tokens.in_force, mark)?.map(|parts| (parts, only));
            true
        }
        None => true,
    };
    if normalizes && stations.need_places() {
        return Ok(None);
    }
    let built = tables.make(|| {
        let bpe = Bpe::build(model, Input::Spaces(mark))?;
        let seams = if_supported(Seams::build(&bpe, &model.merges, mark))?;
        Ok(seams.map(|seams| (bpe, seams)))
    })?;
    let Some((bpe, seams)) = built else { return Ok(None) };
    let first = match &cutting[..] {
        [] => None,
        cutting => match Cutters::build(cutting, tables)? {
            Some(cutters) => Some(cutters),
            None => return Ok(None),
        },
    };
    let has_marks = normalizes && written.is_some();
    let normalizer = stations.normalizer.clone().filter(|_| normalizes);
    let cutter = SpaceCutter::new(seams, mark, before);
    let cutting = Cutting::Spaces { before: first, cutter, has_marks, plain };
    Ok(Some((bpe, Way { cutting, normalizer, rest: None })))
}
