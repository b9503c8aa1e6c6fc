//! Models that give every pretoken back, so that nobody need watch them.
//!
//! Byte-level BPE writes a text in the byte alphabet, has a symbol for each of its characters, and makes of two symbols
//! the one that both of them spell. So the ids of a pretoken spell the pretoken, and a decoder that reads the byte alphabet
//! makes the same of both, whatever stands beside them. A document of which the ids are known to be its own (`receipts.rs`)
//! is `Normalized` then, if its decoded text is another one: no comparing of pretokens (`witness.rs`) can find more.

use crate::byte_alphabet;
use crate::decoders::{Decoder, Step};
use crate::models::bpe::Input;
use crate::spec::{Model, TokenizerSpec};
use crate::token_strings::AllStrings;
use crate::token_table::TokenStrings;

/// Whether the ids of each pretoken contribute to a text what the pretoken itself would. `input` is the form in which
/// the column's road gives pretokens to the model.
pub fn gives_back(spec: &TokenizerSpec, input: Input, tokens: &AllStrings) -> bool {
    let Model::BPE(model) = &spec.model else { return false };
    let affixes = [model.continuing_subword_prefix, model.end_of_word_suffix];
    let decoder = Decoder::build(spec.decoder.as_ref());
    let vocabulary = tokens.vocabulary();
    let mut room = [0; 4];
    input == Input::ByteAlphabet
        && matches!(decoder.steps.as_deref(), Some([Step::ByteLevel]))
        && affixes.into_iter().flatten().all(str::is_empty)
        && !vocabulary.shares_ids()
        && (0..=u8::MAX).all(|byte| {
            let character = byte_alphabet::character_of(byte);
            vocabulary.id(character.encode_utf8(&mut room).as_bytes()).is_some()
        })
        // An added token may have taken an id of the vocabulary over.
        && tokens.added_ids().all(|id| {
            let own = vocabulary.token(id);
            own.is_none() || own == tokens.string(id).map(str::as_bytes)
        })
}
