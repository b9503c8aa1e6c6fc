//! The road up to the model, in general form: added tokens, normalizer, added tokens again, pre-tokenizer.
//!
//! It serves every spec, with places of the document or without. `pipeline.rs` has the fast road for columns,
//! `aligned.rs` the one to tokens and offsets.

use std::sync::Arc;

use crate::added_tokens::{parts, AddedMatch, AddedVocabulary};
use crate::aligned_text::AlignedText;
use crate::error::Result;
use crate::normalizers::Normalizer;
use crate::pre_tokenizers::PreTokenizer;
use crate::spec::TokenizerSpec;

/// A piece of a document: an added token with its match, or text.
pub type Piece = (Option<AddedMatch>, AlignedText);

/// What a text passes before the model sees it.
pub struct Stations {
    /// The added tokens.
    pub added: AddedVocabulary,
    /// The normalizer.
    pub normalizer: Option<Arc<Normalizer>>,
    /// The pre-tokenizer.
    pub pre_tokenizer: Option<PreTokenizer>,
}

impl Stations {
    /// Build the stations of a spec.
    pub fn build(spec: &TokenizerSpec) -> Result<Stations> {
        let normalizer = spec.normalizer.as_ref().map(|part| Normalizer::build(part, "$.normalizer")).transpose()?;
        let added = AddedVocabulary::new(&spec.added_tokens, spec.options.encode_special_tokens, |text| {
            normalized(normalizer.as_ref(), text)
        })?;
        let normalizer = normalizer.map(Arc::new);
        Ok(Stations { added, normalizer, pre_tokenizer: spec.pre_tokenizer.as_ref().map(PreTokenizer::build) })
    }

    /// What the normalizer makes of a text.
    pub fn normalized(&self, text: &str) -> Result<String> {
        normalized(self.normalizer.as_deref(), text)
    }

    /// Whether ids can depend on places in the document, so that they have to be kept even where nobody wants offsets.
    pub fn need_places(&self) -> bool {
        let by_pre_tokenizer = self.pre_tokenizer.as_ref().is_some_and(|part| {
            part.depends_on_place() && (self.normalizer.is_some() || !part.depends_on_place_first())
        });
        by_pre_tokenizer || self.normalizer.as_deref().is_some_and(Normalizer::needs_alignment)
    }

    /// The document in order: added tokens with their match, and normalized text between them.
    pub fn pieces(&self, document: &str, has_places: bool) -> Result<Vec<Piece>> {
        let whole =
            if has_places { AlignedText::of_text(document, 0) } else { AlignedText::untracked(document.to_owned()) };
        let mut pieces = vec![];
        for (found, piece) in cut(&self.added.raw_pass_matches(document)?, &whole) {
            if found.is_some() {
                if !piece.text.is_empty() {
                    pieces.push((found, piece));
                }
                continue;
            }
            let piece = match &self.normalizer {
                Some(normalizer) => normalizer.normalize_aligned(piece)?,
                None => piece,
            };
            let matches = self.added.normalized_pass_matches(&piece.text)?;
            pieces.extend(cut(&matches, &piece).filter(|(_, inner)| !inner.text.is_empty()));
        }
        Ok(pieces)
    }

    /// Visit each text that is searched for added tokens, with its matches: the document, then what lies between.
    pub fn passes(&self, document: &str, visit: &mut dyn FnMut(&str, &[AddedMatch])) -> Result<()> {
        let matches = self.added.raw_pass_matches(document)?;
        visit(document, &matches);
        for gap in parts(&matches, document.len()).iter().filter(|part| part.found.is_none()) {
            let normalized = self.normalized(&document[gap.start..gap.end])?;
            visit(&normalized, &self.added.normalized_pass_matches(&normalized)?);
        }
        Ok(())
    }

    /// Added tokens with their match, and pretokens.
    pub fn pretokens(&self, document: &str, has_places: bool) -> Result<Vec<Piece>> {
        let pieces = self.pieces(document, has_places)?;
        let Some(pre_tokenizer) = &self.pre_tokenizer else { return Ok(pieces) };
        let mut pretokens = vec![];
        for (found, piece) in pieces {
            match found {
                Some(_) => pretokens.push((found, piece)),
                None => pretokens.extend(pre_tokenizer.pre_tokenize(vec![piece])?.into_iter().map(|text| (None, text))),
            }
        }
        Ok(pretokens)
    }
}

fn normalized(normalizer: Option<&Normalizer>, text: &str) -> Result<String> {
    let Some(normalizer) = normalizer else { return Ok(text.to_owned()) };
    let mut normalized = String::new();
    normalizer.normalize(text, &mut normalized)?;
    Ok(normalized)
}

fn cut<'a>(matches: &[AddedMatch], text: &'a AlignedText) -> impl Iterator<Item = Piece> + 'a {
    let parts = parts(matches, text.text.len());
    let slices = text.slices(parts.iter().map(|part| (part.start, part.end)));
    parts.into_iter().map(|part| part.found).zip(slices)
}
