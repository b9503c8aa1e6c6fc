//! The pinned Unicode tables of `src/tokbatch/spec/unicode/`, embedded as they are: `tables.py` says how a file is laid
//! out, `__init__.py` there what is in it.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::locks::made_once;
use crate::patterns::tree::CodePointSet;

/// One file of tables.
pub struct Tables {
    places: HashMap<String, (usize, usize)>,
    numbers: Vec<u32>,
}

#[derive(serde::Deserialize)]
struct Header {
    sections: HashMap<String, (usize, usize)>,
}

impl Tables {
    fn read(packed: &[u8]) -> Tables {
        let raw = miniz_oxide::inflate::decompress_to_vec_zlib(packed).expect("an embedded file is sound");
        let size = u32::from_le_bytes(raw[..4].try_into().expect("4 bytes")) as usize;
        let header: Header = serde_json::from_slice(&raw[4..4 + size]).expect("an embedded file is sound");
        let words = raw[4 + size..].chunks_exact(4);
        let numbers = words.map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))).collect();
        Tables { places: header.sections, numbers }
    }

    /// The numbers of a section; it is there, since its name stands in the code.
    pub fn section(&self, name: &str) -> &[u32] {
        let (at, count) = self.places[name];
        &self.numbers[at..at + count]
    }

    /// The names of all sections.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// A section as a set.
    pub fn set(&self, name: &str) -> CodePointSet {
        CodePointSet(summed(self.section(name)).collect())
    }

    /// Three sections as a mapping, ascending.
    pub fn mapping(&self, name: &str) -> Vec<(u32, Vec<u32>)> {
        let mut values = self.section(&format!("{name}.values"));
        let keys = summed(self.section(&format!("{name}.keys")));
        let lengths = self.section(&format!("{name}.lengths")).iter();
        keys.zip(lengths)
            .map(|(key, &length)| {
                let (value, rest) = values.split_at(length as usize);
                values = rest;
                (key, value.to_vec())
            })
            .collect()
    }
}

fn summed(differences: &[u32]) -> impl Iterator<Item = u32> + '_ {
    differences.iter().scan(0u32, |sum, difference| {
        *sum += difference;
        Some(*sum)
    })
}

/// What Rust's crates know: `regex_w`, `regex_s`, `whitespace`, `numeric`, `punctuation`, `lowercase`, `script:*`, ...
pub fn rust() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    made_once(&TABLES, || Tables::read(include_bytes!("../../src/tokbatch/spec/unicode/rust.bin")))
}

/// Decompositions, compositions and combining classes.
pub fn normalization() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    made_once(&TABLES, || Tables::read(include_bytes!("../../src/tokbatch/spec/unicode/normalization.bin")))
}

/// The sets that decide about grapheme clusters.
pub fn graphemes() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    made_once(&TABLES, || Tables::read(include_bytes!("../../src/tokbatch/spec/unicode/graphemes.bin")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn tables_are_read() {
        assert!(super::rust().set("regex_s").contains(0x2003));
        let lower = super::rust().mapping("lowercase");
        assert!(lower.iter().any(|(key, value)| *key == 65 && value == &[97]));
        assert!(!super::normalization().mapping("canonical").is_empty());
        assert!(!super::graphemes().set("grapheme_extend").is_empty());
    }
}
