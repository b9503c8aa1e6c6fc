//! The native engine of tokbatch: what `engine/reference/` defines, two orders of magnitude faster.
#![deny(missing_docs)]

pub mod byte_alphabet;
pub mod cache;
pub mod error;
pub mod hash;
pub mod models;
pub mod patterns;
pub mod spec;
pub mod unicode;
