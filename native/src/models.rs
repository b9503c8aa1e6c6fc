//! From a pretoken to ids: one module a model.
//!
//! A model sees one pretoken at a time and remembers nothing between them; `cache.rs` remembers. What it needs for its
//! work it borrows from the caller (`Scratch`), so that one model serves many threads.

pub mod alphabet;
pub mod bpe;
pub mod byte_characters;
pub mod characters;
pub mod merges;
pub mod numbered_merges;
pub mod sure_pairs;
pub mod trie;
pub mod unigram;
pub mod vocabulary;
pub mod wordlevel;
pub mod wordpiece;
pub mod written;

use crate::error::Result;
use vocabulary::Vocabulary;

/// A token in a pretoken: see `engine/reference/models/__init__.py` for what `start` and `end` (in bytes) are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Token {
    pub id: u32,
    pub start: usize,
    pub end: usize,
}

/// What a model is to the pretoken cache.
pub trait PretokenModel {
    /// What it needs for its work, one a thread.
    type Scratch;

    /// Append the ids of a pretoken. What it cannot spell without an unknown token is an error.
    fn encode(&self, pretoken: &[u8], scratch: &mut Self::Scratch, ids: &mut Vec<u32>) -> Result<()>;

    /// Append the ids of several pretokens, in any order; `places[i]` is then where those of pretoken i lie in `ids`,
    /// or None where it failed. For models that can work on several at a time.
    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Self::Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        encode_each(self, pretokens, scratch, ids, places);
    }

    /// Whether ids are to be marked (`witness.rs`).
    fn is_watched(&self) -> bool {
        false
    }

    /// Begin to mark ids in this scratch memory; gives the marks for added tokens. None: ids are not marked.
    fn watch(&self, _: &mut Self::Scratch) -> Option<u32> {
        None
    }
}

/// `PretokenModel::encode_many`, one pretoken after the other.
fn encode_each<M: PretokenModel + ?Sized>(
    model: &M,
    pretokens: &[&[u8]],
    scratch: &mut M::Scratch,
    ids: &mut Vec<u32>,
    places: &mut Vec<Option<(u32, u32)>>,
) {
    places.clear();
    for pretoken in pretokens {
        let first = ids.len();
        let outcome = model.encode(pretoken, scratch, ids);
        if outcome.is_err() {
            ids.truncate(first);
        }
        places.push(outcome.is_ok().then_some((first as u32, ids.len() as u32)));
    }
}

/// What a model is to whoever asks for its tokens.
pub trait ModelFacts: Send + Sync {
    /// The vocabulary.
    fn vocabulary(&self) -> &Vocabulary;

    /// The id of an entry of the vocabulary.
    fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        self.vocabulary().id(token)
    }

    /// The id that stands for what the vocabulary cannot spell, where there is one.
    fn unk_id(&self) -> Option<u32>;

    /// The ids of `<0x00>` to `<0xFF>` where byte fallback is on.
    fn byte_token_ids(&self) -> Vec<u32> {
        vec![]
    }
}

/// What a model is to the road that gives tokens and offsets.
pub trait TokenModel: PretokenModel + ModelFacts {
    /// Append the tokens of a pretoken with their places. The pretoken is text, as the vocabulary writes it.
    fn tokenize(&self, pretoken: &str, scratch: &mut Self::Scratch, tokens: &mut Vec<Token>) -> Result<()>;

    /// The string of a token that `tokenize` gave for this pretoken.
    fn value(&self, token: &Token, pretoken: &str) -> String;
}

impl ModelFacts for bpe::Bpe {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn unk_id(&self) -> Option<u32> {
        self.unk_id()
    }

    fn byte_token_ids(&self) -> Vec<u32> {
        self.byte_token_ids()
    }
}

impl TokenModel for bpe::Bpe {
    fn tokenize(&self, pretoken: &str, scratch: &mut bpe::Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.tokenize(pretoken, scratch, tokens)
    }

    fn value(&self, token: &Token, pretoken: &str) -> String {
        let is_whole = self.ignores_merges() && token.start == 0 && token.end == pretoken.len();
        if is_whole && self.vocabulary.id(pretoken.as_bytes()) == Some(token.id) {
            return pretoken.to_owned();
        }
        String::from_utf8_lossy(self.vocabulary.token(token.id).unwrap_or_default()).into_owned()
    }
}

impl ModelFacts for wordpiece::WordPiece {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn unk_id(&self) -> Option<u32> {
        self.unk_id()
    }
}

impl TokenModel for wordpiece::WordPiece {
    fn tokenize(&self, pretoken: &str, _: &mut wordpiece::Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.tokenize(pretoken, tokens)
    }

    fn value(&self, token: &Token, pretoken: &str) -> String {
        self.value(token, pretoken)
    }
}

impl ModelFacts for wordlevel::WordLevel {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn unk_id(&self) -> Option<u32> {
        self.unk_id()
    }
}

impl TokenModel for wordlevel::WordLevel {
    fn tokenize(&self, pretoken: &str, _: &mut wordlevel::Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.tokenize(pretoken, tokens)
    }

    fn value(&self, _: &Token, pretoken: &str) -> String {
        self.value(pretoken)
    }
}

impl ModelFacts for unigram::Unigram {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        self.token_to_id(token)
    }

    fn unk_id(&self) -> Option<u32> {
        self.unk_id()
    }

    fn byte_token_ids(&self) -> Vec<u32> {
        self.byte_token_ids()
    }
}

impl TokenModel for unigram::Unigram {
    fn tokenize(&self, pretoken: &str, scratch: &mut unigram::Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.tokenize(pretoken, scratch, tokens)
    }

    fn value(&self, token: &Token, pretoken: &str) -> String {
        self.value(token, pretoken)
    }
}
