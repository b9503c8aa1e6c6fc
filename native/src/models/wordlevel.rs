//! WordLevel: a pretoken is a token, or it is the unknown token.

use super::bpe::Input;
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{PretokenModel, Token};
use crate::error::{Error, Result};
use crate::stored_struct;

/// A WordLevel model for one form of pretokens.
pub struct WordLevel {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    input: Input,
    unk_token: String,
    unk_id: Option<u32>,
}
stored_struct!(WordLevel { vocabulary, input, unk_token, unk_id });

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    text: String,
}

impl WordLevel {
    /// Build the model of a spec.
    pub fn build(entries: &[(&str, u32)], unk_token: &str, input: Input) -> WordLevel {
        let vocabulary = Vocabulary::new(entries.iter().map(|&(token, id)| (token.as_bytes(), id)));
        let unk_id = vocabulary.id(unk_token.as_bytes());
        WordLevel { vocabulary, input, unk_token: unk_token.to_owned(), unk_id }
    }

    /// The id of the unknown token, where the vocabulary has it.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    fn id(&self, pretoken: &str) -> Result<u32> {
        self.vocabulary.id(pretoken.as_bytes()).or(self.unk_id).ok_or_else(|| {
            let (spelled, unk) = (quoted(pretoken), quoted(&self.unk_token));
            let message = format!("the vocabulary has neither {spelled} nor the unknown token {unk}");
            Error::encode(message).at("$.model.unk_token")
        })
    }

    /// The one token of a pretoken.
    pub fn tokenize(&self, pretoken: &str, tokens: &mut Vec<Token>) -> Result<()> {
        tokens.push(Token { id: self.id(pretoken)?, start: 0, end: pretoken.len() });
        Ok(())
    }

    /// The string of a token that `tokenize` gave.
    pub fn value(&self, pretoken: &str) -> String {
        let is_known = self.vocabulary.id(pretoken.as_bytes()).is_some();
        if is_known { pretoken } else { &self.unk_token }.to_owned()
    }
}

impl PretokenModel for WordLevel {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        ids.push(self.id(written(self.input, pretoken, &mut scratch.text)?)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pretoken_is_a_token_or_unknown() {
        let mut ids = vec![];
        let model = WordLevel::build(&[("▁a", 5), ("?", 1)], "?", Input::Spaces('▁'));
        for pretoken in [" a", "▁a", "a"] {
            model.encode(pretoken.as_bytes(), &mut Scratch::default(), &mut ids).expect("there is an unknown token");
        }
        assert_eq!(ids, [5, 5, 1]);
        let model = WordLevel::build(&[("a", 0)], "?", Input::Text);
        let error = model.encode(b"b", &mut Scratch::default(), &mut ids).expect_err("there is none");
        assert_eq!(error.message, "the vocabulary has neither 'b' nor the unknown token '?'");
    }
}
