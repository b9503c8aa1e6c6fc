//! WordPiece: take the longest token that the pretoken begins with, then the longest inner one, and so on.
//!
//! The meaning stands in `engine/reference/models/wordpiece.py`. The trie has the vocabulary as it is: an inner token is
//! searched for from the node behind the prefix.

use super::bpe::Input;
use super::trie::{Trie, NOTHING, ROOT};
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{PretokenModel, Token};
use crate::error::{Error, Result};
use crate::stored_struct;
use crate::tables::Table;

/// A WordPiece model for one form of pretokens.
pub struct WordPiece {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    input: Input,
    /// Gives the number of an entry, since an id may be any number.
    trie: Trie,
    ids: Table<u32>,
    prefix: String,
    /// Where inner tokens begin, where there are any.
    inner: Option<u32>,
    unk_token: String,
    unk_id: Option<u32>,
    most_characters: usize,
}
stored_struct!(WordPiece { vocabulary, input, trie, ids, prefix, inner, unk_token, unk_id, most_characters });

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    text: String,
}

impl WordPiece {
    /// Build the model of a spec.
    pub fn build(
        entries: &[(&str, u32)],
        unk_token: &str,
        prefix: &str,
        most_characters: u64,
        input: Input,
    ) -> WordPiece {
        let vocabulary = Vocabulary::new(entries.iter().map(|&(token, id)| (token.as_bytes(), id)));
        let keys: Vec<(&[u8], u32)> = (0..).zip(entries).map(|(number, entry)| (entry.0.as_bytes(), number)).collect();
        let trie = Trie::new(&keys);
        WordPiece {
            input,
            inner: trie.node(prefix.as_bytes()),
            trie,
            ids: entries.iter().map(|entry| entry.1).collect::<Vec<u32>>().into(),
            prefix: prefix.to_owned(),
            unk_token: unk_token.to_owned(),
            unk_id: vocabulary.id(unk_token.as_bytes()),
            most_characters: usize::try_from(most_characters).unwrap_or(usize::MAX),
            vocabulary,
        }
    }

    /// The id of the unknown token, where the vocabulary has it.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// Give the pieces (end, id) of a pretoken; false: there is no way through.
    fn pieces(&self, text: &str, mut piece: impl FnMut(usize, u32)) -> bool {
        if text.len() > self.most_characters && text.chars().count() > self.most_characters {
            return false;
        }
        let bytes = text.as_bytes();
        let mut start = 0;
        let mut node = Some(ROOT);
        while start < bytes.len() {
            let Some(beginning) = node else { return false };
            let (mut node_here, mut at, mut found) = (beginning, start, None);
            while let Some((child, value)) = bytes.get(at).and_then(|&byte| self.trie.step(node_here, byte)) {
                at += 1;
                node_here = child;
                if value != NOTHING {
                    found = Some((at, value));
                }
            }
            let Some((end, number)) = found else { return false };
            piece(end, self.ids[number as usize]);
            start = end;
            node = self.inner;
        }
        true
    }

    fn unknown(&self, pretoken: &str) -> Result<u32> {
        self.unk_id.ok_or_else(|| {
            let (spelled, unk) = (quoted(pretoken), quoted(&self.unk_token));
            let message = format!("the vocabulary has no way to spell {spelled}, and no unknown token {unk}");
            Error::encode(message).at("$.model.unk_token")
        })
    }

    /// The tokens of a pretoken with their places.
    pub fn tokenize(&self, pretoken: &str, tokens: &mut Vec<Token>) -> Result<()> {
        let first = tokens.len();
        let mut start = 0;
        let is_spelled = self.pieces(pretoken, |end, id| {
            tokens.push(Token { id, start, end });
            start = end;
        });
        if !is_spelled {
            tokens.truncate(first);
            tokens.push(Token { id: self.unknown(pretoken)?, start: 0, end: pretoken.len() });
        }
        Ok(())
    }

    /// The string of a token that `tokenize` gave: an inner one with the prefix.
    pub fn value(&self, token: &Token, pretoken: &str) -> String {
        let prefix = if token.start > 0 { &self.prefix[..] } else { "" };
        let spelled = pretoken.get(token.start..token.end).map(|piece| format!("{prefix}{piece}"));
        let known = spelled.filter(|spelled| self.vocabulary.id(spelled.as_bytes()) == Some(token.id));
        known.unwrap_or_else(|| self.unk_token.clone())
    }
}

impl PretokenModel for WordPiece {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let text = written(self.input, pretoken, &mut scratch.text)?;
        let first = ids.len();
        if !self.pieces(text, |_, id| ids.push(id)) {
            ids.truncate(first);
            ids.push(self.unknown(text)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(model: &WordPiece, pretoken: &str) -> Result<Vec<u32>> {
        let mut ids = vec![];
        model.encode(pretoken.as_bytes(), &mut Scratch::default(), &mut ids).map(|()| ids)
    }

    #[test]
    fn takes_the_longest_first() {
        let vocab = [("[UNK]", 0), ("un", 1), ("##aff", 2), ("##able", 3), ("##a", 4), ("una", 5), ("##", 6), ("é", 7)];
        let model = WordPiece::build(&vocab, "[UNK]", "##", 8, Input::Text);
        assert_eq!(ids(&model, "unaaff").expect("spelled"), [5, 2]);
        assert_eq!(ids(&model, "una").expect("spelled"), [5]);
        assert_eq!(ids(&model, "unff").expect("unknown"), [0]);
        assert_eq!(ids(&model, "##a").expect("spelled"), [4]);
        assert_eq!(ids(&model, "éaaaaaaa").expect("8 characters"), [7, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(ids(&model, "éaaaaaaaa").expect("unknown"), [0]);
        assert!(ids(&model, "").expect("nothing").is_empty());
    }

    #[test]
    fn tokens_have_places_and_values() {
        let vocab = [("é", 1), ("##b", u32::MAX)];
        let model = WordPiece::build(&vocab, "[UNK]", "##", 100, Input::Text);
        let mut tokens = vec![];
        model.tokenize("éb", &mut tokens).expect("spelled");
        assert_eq!(tokens, [Token { id: 1, start: 0, end: 2 }, Token { id: u32::MAX, start: 2, end: 3 }]);
        assert_eq!(model.value(&tokens[1], "éb"), "##b");
        let error = model.tokenize("éx", &mut tokens).expect_err("there is no [UNK]");
        assert_eq!(error.message, "the vocabulary has no way to spell 'éx', and no unknown token '[UNK]'");
    }
}
