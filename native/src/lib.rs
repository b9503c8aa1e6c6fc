//! The native engine of tokbatch: what `engine/reference/` defines, two orders of magnitude faster.
//!
//! Reading order: `spec.rs` (what it is built from), `engine.rs`, `pipeline.rs` (the road of a column), `cutter.rs` and
//! `patterns.rs` (pretokens), `cache.rs` and `models.rs` (ids), `python.rs` (the boundary). What is computed when an
//! engine is built, and shared by processes, is in `tables.rs`.
#![deny(missing_docs)]

pub mod added_parts;
pub mod added_tokens;
pub mod aligned;
pub mod aligned_text;
pub mod byte_alphabet;
pub mod cache;
pub mod character_table;
pub mod charsmap;
pub mod columns;
pub mod compiled_pattern;
pub mod cutter;
pub mod cutters;
pub mod decoders;
pub mod encoding;
pub mod engine;
pub mod error;
pub mod extensions;
pub mod faithful;
pub mod graphemes;
pub mod hash;
pub mod late;
pub mod limits;
pub mod locks;
pub mod mapping;
pub mod marked_words;
pub mod marks;
pub mod models;
pub mod normal_forms;
pub mod normalizers;
pub mod offsets;
pub mod padding;
pub mod pages;
pub mod patterns;
pub mod pipeline;
pub mod post_processors;
pub mod pre_tokenizers;
#[cfg(feature = "python")]
mod python;
#[cfg(test)]
#[path = "../tests/random/mod.rs"]
mod random;
pub mod receipts;
pub mod record;
pub mod rest;
pub mod roads;
pub mod round_trip;
pub mod sink;
pub mod spaces;
pub mod spec;
pub mod split_behaviors;
pub mod stations;
pub mod strings;
pub mod table_file;
pub mod tables;
pub mod token_strings;
pub mod token_table;
pub mod trace;
pub mod truncation;
pub mod unicode;
pub mod witness;
pub mod words;
