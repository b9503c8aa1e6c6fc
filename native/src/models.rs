//! From a pretoken to ids: one module a model.
//!
//! A model sees one pretoken at a time and remembers nothing between them; `cache.rs` remembers. What it needs for its
//! work it borrows from the caller (`Scratch`), so that one model serves many threads.

pub mod bpe;
pub mod merges;
pub mod vocabulary;

use crate::error::Result;

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
}
