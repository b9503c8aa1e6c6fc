//! Models of which it is known beforehand that ids give their pretokens back: verdicts without a look at any pretoken.
//!
//! A document whose decoded text is another one is `Normalized` where the decoder makes the same of its pretokens as of
//! its ids (`round_trip.rs`). Of many tokenizers that can be said from the spec, once the ids are known to be the
//! document's own (`receipts.rs`); then nobody need watch the model (`witness.rs`), and no cache has to begin anew.
//!
//! - *Byte-level BPE* has a symbol for each byte and makes of two symbols the one that both of them spell.
//! - *BPE with byte fallback* spells what its vocabulary lacks in bytes, and its decoder reads them. Only a text that writes
//!   such a token out ("<0x41>") could be taken for it.
//! - *Unigram* cuts pretokens into entries of the vocabulary, unless there is an unknown token. A Metaspace before it
//!   leaves the mark at the beginning of pretokens only, so that the decoder drops as much of a first token as of a first
//!   pretoken.
//! - *WordPiece behind BERT's pre-tokenizer* does the same; its pretokens are single punctuation marks or have none, so
//!   that what decides about clean-ups stands in the first token already. And "[UNK]" is no pretoken, nor do two make it:
//!   a document with an unknown token is lossy.
//!
//! Everywhere an added token contributes the same to both sides.

use std::sync::OnceLock;

use memchr::memmem;

use crate::byte_alphabet;
use crate::decoders::{byte_of_token, Decoder, Search, Step};
use crate::models::bpe::Input;
use crate::spec::{AddedToken, Bpe, Model, Normalizer, Pattern, PreTokenizer, TokenizerSpec};
use crate::token_strings::AllStrings;
use crate::token_table::TokenStrings;

/// How the name of a byte token begins.
const BYTE_TOKEN: &str = "<0x";

/// What is known of the documents of a tokenizer.
#[derive(Debug)]
pub enum Rule {
    /// Their ids give the pretokens back.
    Always,
    /// They do so where the text does not name a byte token, if the vocabulary has none but these: found when it is needed.
    WithoutByteTokens(OnceLock<bool>),
    /// They do so where the unknown token is not among them.
    WithoutUnknown {
        /// And where it is among them, the document is lossy, unless the text has this, the token itself.
        token: Option<String>,
    },
}

impl Rule {
    /// Find the rule of a tokenizer. `input` is the form in which the column's road gives pretokens to the model.
    pub fn of(spec: &TokenizerSpec, input: Input, tokens: &AllStrings) -> Option<Rule> {
        let vocabulary = tokens.vocabulary();
        // An added token may have taken an id of the vocabulary over, and two entries may have one.
        let is_itself = |id: u32| {
            let own = vocabulary.token(id);
            own.is_none() || own == tokens.string(id).map(str::as_bytes)
        };
        if vocabulary.shares_ids() || !tokens.added_ids().all(is_itself) {
            return None;
        }
        let decoder = Decoder::build(spec.decoder.as_ref());
        let steps = decoder.steps.as_deref()?;
        match &spec.model {
            Model::BPE(model) if has_affixes(model) => None,
            Model::BPE(_) if input == Input::ByteAlphabet => {
                let mut room = [0; 4];
                let mut symbols = (0..=u8::MAX).map(byte_alphabet::character_of);
                let has_all = symbols.all(|symbol| vocabulary.id(symbol.encode_utf8(&mut room).as_bytes()).is_some());
                (has_all && matches!(steps, [Step::ByteLevel])).then_some(Rule::Always)
            }
            Model::BPE(model) => with_byte_fallback(spec, model, steps, tokens),
            Model::Unigram { byte_fallback: false, .. } => {
                let [Step::Metaspace { replacement: mark, .. }] = steps else { return None };
                let last = last_pre_tokenizer(spec.pre_tokenizer.as_ref()?);
                let has_marks_first = matches!(last, PreTokenizer::Metaspace { replacement, split: true, .. }
                    if replacement == mark);
                has_marks_first.then_some(Rule::WithoutUnknown { token: None })
            }
            Model::WordPiece { unk_token, continuing_subword_prefix: prefix, .. } => {
                let [Step::WordPiece { prefix: dropped, .. }] = steps else { return None };
                let is_no_pretoken =
                    |text: &str| text.starts_with(|c: char| c.is_ascii_punctuation()) && text.len() > 1;
                let is_bert = matches!(spec.pre_tokenizer, Some(PreTokenizer::BertPreTokenizer {}));
                if !is_bert || dropped != prefix || !is_no_pretoken(prefix) {
                    return None;
                }
                // No other text begins like the unknown token: after its first character comes a letter, where a decoder
                // puts a space, or one of the marks before which it puts none.
                let is_unusual = |added: &AddedToken| {
                    let is_unknown = vocabulary.id(unk_token.as_bytes()) == Some(added.id);
                    let first = ['.', '?', '!', ',', '\'', 'n'];
                    is_unknown && added.normalized
                        || added.content.starts_with(*prefix)
                        || added.content.starts_with(first)
                };
                let are_usual = !spec.added_tokens.in_force.iter().any(is_unusual);
                let is_telling = are_usual
                    && is_no_pretoken(unk_token)
                    && !unk_token.starts_with(['.', '?', '!', ',', '\''])
                    && unk_token[1..].starts_with(|c: char| c.is_ascii_uppercase());
                let token = is_telling.then(|| (*unk_token).to_owned());
                Some(Rule::WithoutUnknown { token })
            }
            _ => None,
        }
    }

    /// Whether the decoder makes the same of the pretokens of a text as of its ids, among which there are unknown tokens or
    /// not. None: the rule does not say.
    pub fn is_faithful(&self, text: &str, has_unknown: bool, tokens: &AllStrings) -> Option<bool> {
        let has = |part: &str| memmem::find(text.as_bytes(), part.as_bytes()).is_some();
        match self {
            Rule::Always => Some(true),
            Rule::WithoutByteTokens(is_sure) => {
                let is_sure = *is_sure.get_or_init(|| has_no_others(tokens));
                (is_sure && !has(BYTE_TOKEN)).then_some(true)
            }
            Rule::WithoutUnknown { .. } if !has_unknown => Some(true),
            Rule::WithoutUnknown { token } => token.as_ref().filter(|token| !has(token)).map(|_| false),
        }
    }
}

fn has_affixes(model: &Bpe) -> bool {
    [model.continuing_subword_prefix, model.end_of_word_suffix].into_iter().flatten().any(|affix| !affix.is_empty())
}

fn last_pre_tokenizer(part: &PreTokenizer) -> &PreTokenizer {
    match part {
        PreTokenizer::Sequence { pretokenizers } => pretokenizers.last().map_or(part, last_pre_tokenizer),
        part => part,
    }
}

/// Whether a pre-tokenizer only cuts, or puts in nothing but a mark that is not ASCII.
fn only_cuts(part: &PreTokenizer) -> bool {
    match part {
        PreTokenizer::Metaspace { replacement, .. } => !replacement.is_ascii(),
        PreTokenizer::Sequence { .. } | PreTokenizer::ByteLevel { .. } => false,
        _ => true,
    }
}

/// Of characters that are replaced one by one, then bytes, then the whole.
fn with_byte_fallback(spec: &TokenizerSpec, model: &Bpe, steps: &[Step], tokens: &AllStrings) -> Option<Rule> {
    let vocabulary = tokens.vocabulary();
    // What is put into a text, or into tokens, does not make the name of a byte token out of others.
    let is_harmless = |content: &str| !content.is_empty() && !content.contains(['<', '0', 'x']);
    let count = steps.iter().take_while(|step| matches!(step, Step::Replace { .. })).count();
    let are_characters = steps[..count].iter().all(|step| match step {
        Step::Replace { search: Search::Text(text), content } => {
            let is_symbol = text.chars().count() == 1 && !text.is_ascii() && vocabulary.id(text.as_bytes()).is_some();
            is_symbol && is_harmless(content)
        }
        _ => false,
    });
    let are_then_bytes = matches!(steps[count..], [Step::ByteFallback] | [Step::ByteFallback, Step::Fuse, ..]);
    let has_all = (0..=u8::MAX).all(|byte| vocabulary.id(format!("<0x{byte:02X}>").as_bytes()).is_some());
    let is_one = tokens.added_ids().filter_map(|id| tokens.string(id)).any(|token| byte_of_token(token).is_some());
    let keeps_text = |normalizer: &Normalizer| match normalizer {
        Normalizer::Prepend { prepend } => is_harmless(prepend),
        Normalizer::Replace { pattern: Pattern::String(text), content } => text == " " && is_harmless(content),
        _ => false,
    };
    let are_kept = match &spec.normalizer {
        None => true,
        Some(Normalizer::Sequence { normalizers }) => normalizers.iter().all(keeps_text),
        Some(normalizer) => keeps_text(normalizer),
    };
    let are_cut = spec.pre_tokenizer.as_ref().is_none_or(|part| match part {
        PreTokenizer::Sequence { pretokenizers } => pretokenizers.iter().all(only_cuts),
        part => only_cuts(part),
    });
    let is_known = model.byte_fallback && are_characters && are_then_bytes && has_all && !is_one && are_kept && are_cut;
    is_known.then(|| Rule::WithoutByteTokens(OnceLock::new()))
}

/// Whether only byte tokens themselves have their beginning in them: then no merge takes one.
fn has_no_others(tokens: &AllStrings) -> bool {
    let finder = memmem::Finder::new(BYTE_TOKEN);
    let is_byte = |token: &[u8]| std::str::from_utf8(token).ok().and_then(byte_of_token).is_some();
    tokens.vocabulary().iter().all(|(token, _)| finder.find(token).is_none() || is_byte(token))
}
