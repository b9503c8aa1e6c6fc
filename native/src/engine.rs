//! The engine: what a spec is built into, and what `python.rs` calls.

use std::sync::Mutex;

use crate::added_tokens::AddedVocabulary;
use crate::columns::{IdColumn, TextColumn};
use crate::cutter::Cutter;
use crate::error::{Error, Result};
use crate::models::bpe::{Bpe, Input};
use crate::pipeline::{ColumnRoad, Cutting, Finish, Road};
use crate::spaces::{Before, SpaceCutter};
use crate::spec::{self, Model, Normalizer, Pattern, PostProcessor, PreTokenizer, TemplatePiece, TokenizerSpec};

/// A tokenizer at work. Threads may share it.
pub struct Engine {
    road: Box<dyn ColumnRoad>,
    template: Template,
    buffers: Mutex<Vec<IdColumn>>,
}

impl Engine {
    /// Build from a message of `engine/wire.py`. What this engine does not do is an error with the code
    /// "native-unsupported".
    pub fn build(message: &[u8]) -> Result<Engine> {
        let spec = spec::read(message)?;
        if spec.truncation.is_some() || spec.padding.is_some() {
            return Err(Error::unsupported("truncation and padding in this engine", "$.truncation"));
        }
        let template = Template::build(spec.post_processor.as_ref())?;
        let road = build_road(&spec)?;
        Ok(Engine { road, template, buffers: Mutex::default() })
    }

    /// Give the ids of a column. The result's memory comes back by `recycle`.
    pub fn encode_batch(&self, texts: TextColumn, add_special_tokens: bool) -> IdColumn {
        let free = self.buffers.lock().ok().and_then(|mut buffers| buffers.pop());
        let mut ids = free.unwrap_or_default();
        ids.clear();
        let bytes = texts.offset(texts.rows()) - texts.offset(0);
        // Memory that is not written to costs nothing; moving a large buffer does.
        ids.ids.reserve(bytes / 2 + 1024);
        let none = Template::default();
        self.road.encode(texts, if add_special_tokens { &self.template } else { &none }, &mut ids);
        ids
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
}

/// The ids around a single text.
#[derive(Default)]
struct Template {
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Template {
    fn build(processor: Option<&PostProcessor>) -> Result<Template> {
        let unsupported = || Error::unsupported("this post-processor in this engine", "$.post_processor");
        Ok(match processor {
            None | Some(PostProcessor::ByteLevel { .. }) => Template::default(),
            Some(PostProcessor::BertProcessing { sep, cls } | PostProcessor::RobertaProcessing { sep, cls, .. }) => {
                Template { before: vec![cls.1], after: vec![sep.1] }
            }
            Some(PostProcessor::TemplateProcessing { single, special_tokens, .. }) => {
                let (mut template, mut is_after) = (Template::default(), false);
                for piece in single {
                    match piece {
                        TemplatePiece::Sequence { .. } if is_after => return Err(unsupported()),
                        TemplatePiece::Sequence { .. } => is_after = true,
                        TemplatePiece::SpecialToken { id, .. } => {
                            let token = special_tokens.iter().find(|(name, _)| name == id).ok_or_else(unsupported)?;
                            (if is_after { &mut template.after } else { &mut template.before }).extend(&token.1.ids);
                        }
                    }
                }
                if !is_after {
                    return Err(unsupported());
                }
                template
            }
            Some(PostProcessor::Sequence { processors }) => {
                let (mut template, mut done) = (Template::default(), false);
                for part in processors {
                    let part = Template::build(Some(part))?;
                    if !part.before.is_empty() || !part.after.is_empty() {
                        if done {
                            return Err(unsupported());
                        }
                        (template, done) = (part, true);
                    }
                }
                template
            }
        })
    }
}

impl Finish for Template {
    fn begin(&self, ids: &mut Vec<u32>) {
        ids.extend_from_slice(&self.before);
    }

    fn end(&self, ids: &mut Vec<u32>, _first: usize) -> Result<bool> {
        ids.extend_from_slice(&self.after);
        Ok(false)
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
