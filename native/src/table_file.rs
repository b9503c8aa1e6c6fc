//! A file of tables: written at once, checked to the last bit when it is opened, and mapped.
//!
//! ```text
//! header     128 bytes: what it is, for which key it was made and by which sources, and its checksum
//! tables     each at a multiple of 64
//! directory  start and end of each table (u64), then of each document
//! ```
//!
//! Numbers lie as they do in memory; a machine with another order of bytes finds another mark in the header. The checksum
//! (XXH3, 128 bits) covers every byte but its own. It is a guard against accidents, not against people: whoever can write
//! to the file can also replace this program. Yet whatever the bytes are, nothing but wrong answers can come of them:
//! what the loops with `unsafe` rely on is checked when a table is taken.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use memmap2::Mmap;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Class, Error, Result};

const MAGIC: [u8; 8] = *b"tokbatch";
/// Raised when this file changes what a header or a directory is.
const FORMAT: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
const ALIGNMENT: usize = 64;

/// The fingerprint of the sources of this crate (`build.rs`).
pub const SOURCES: &str = env!("TOKBATCH_SOURCES");

/// What a file is made for: a digest that Python makes of the tokenizer's file, the options and the versions.
pub type Key = [u8; 32];

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    byte_order: u32,
    format: u32,
    sources: [u8; 16],
    key: Key,
    length: u64,
    /// Where the directory begins.
    directory: u64,
    tables: u32,
    documents: u32,
    unused: [u8; 24],
    checksum: [u8; 16],
}

const HEADER: usize = size_of::<Header>();

/// A file that is none, or that somebody else has written.
pub fn damaged(why: &str) -> Error {
    Error::new(Class::Other, format!("not the file of tables that is wanted: {why}")).coded("tables-damaged")
}

/// A file of tables, open and checked.
pub struct TableFile {
    bytes: Bytes,
    /// Start and end of each table, and behind them of each document.
    directory: Vec<[u64; 2]>,
    tables: usize,
}

enum Bytes {
    Mapped(Mmap),
    /// For tests, and for what cannot be mapped.
    Owned(Vec<Block>),
}

/// Memory that is aligned as a map is, as far as tables care.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Block([u8; ALIGNMENT]);

impl TableFile {
    /// Map a file and check it. Whatever is wrong with it is an error with the code "tables-damaged"; one that is not there
    /// has "tables-absent".
    pub fn open(path: &Path, key: &Key) -> Result<Arc<TableFile>> {
        let absent = |error: std::io::Error| Error::new(Class::Other, error.to_string()).coded("tables-absent");
        let file = File::open(path).map_err(absent)?;
        let is_file = file.metadata().map_err(absent)?.is_file();
        if !is_file {
            return Err(damaged("it is no file"));
        }
        // SAFETY: memory that changes while it is borrowed is what this asks to rule out. The file lies in a folder that
        // its user alone can write to; this program writes a file under another name, renames it when it is whole, and
        // never opens it for writing again. Somebody who overwrites it in place makes wrong answers, and one who cuts
        // it short ends the process; both could as well change the program. Mapped, so that processes share it.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| damaged(&error.to_string()))?;
        TableFile::checked(Bytes::Mapped(map), key)
    }

    /// Check a file in memory.
    pub fn of_bytes(bytes: Vec<u8>, key: &Key) -> Result<Arc<TableFile>> {
        let mut blocks = vec![Block([0; ALIGNMENT]); bytes.len().div_ceil(ALIGNMENT)];
        bytemuck::cast_slice_mut(&mut blocks)[..bytes.len()].copy_from_slice(&bytes);
        if bytes.len() % ALIGNMENT != 0 {
            return Err(damaged("its length is odd"));
        }
        TableFile::checked(Bytes::Owned(blocks), key)
    }

    fn checked(bytes: Bytes, key: &Key) -> Result<Arc<TableFile>> {
        let mut file = TableFile { bytes, directory: vec![], tables: 0 };
        let all = file.bytes();
        let Some(header) = all.get(..HEADER).map(bytemuck::pod_read_unaligned::<Header>) else {
            return Err(damaged("it is too short"));
        };
        if (header.magic, header.byte_order, header.format) != (MAGIC, BYTE_ORDER, FORMAT) {
            return Err(damaged("it is of another kind"));
        }
        if header.sources != sources() {
            return Err(damaged("another version wrote it"));
        }
        if header.key != *key {
            return Err(damaged("it is for another tokenizer"));
        }
        if header.length != all.len() as u64 {
            return Err(damaged("its length is not what it was"));
        }
        if header.checksum != checksum(all) {
            return Err(damaged("its checksum is wrong"));
        }
        let directory = usize::try_from(header.directory).ok().and_then(|start| all.get(start..));
        let entries = header.tables as usize + header.documents as usize;
        let directory = directory.and_then(|rest| rest.get(..entries * 16)).ok_or_else(|| damaged("no directory"))?;
        let directory: Vec<[u64; 2]> = directory.chunks_exact(16).map(bytemuck::pod_read_unaligned).collect();
        (file.directory, file.tables) = (directory, header.tables as usize);
        Ok(Arc::new(file))
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(blocks) => bytemuck::cast_slice(blocks),
        }
    }

    /// Where a table lies.
    pub fn section(&self, number: usize) -> Option<(usize, usize)> {
        (number < self.tables).then(|| self.place(number))
    }

    /// A document: bytes that the writer was given besides the tables.
    pub fn document(&self, number: usize) -> Option<&[u8]> {
        let number = self.tables.checked_add(number)?;
        let (start, end) = (number < self.directory.len()).then(|| self.place(number))?;
        self.bytes().get(start..end)
    }

    fn place(&self, number: usize) -> (usize, usize) {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        (place(self.directory[number][0]), place(self.directory[number][1]))
    }
}

fn sources() -> [u8; 16] {
    SOURCES.as_bytes().try_into().expect("sixteen digits")
}

/// The checksum of a whole file without the bytes of the checksum.
fn checksum(all: &[u8]) -> [u8; 16] {
    let mut hash = Xxh3::new();
    hash.update(&all[..HEADER - 16]);
    hash.update(&all[HEADER..]);
    hash.digest128().to_le_bytes()
}

/// Puts a file of tables together.
pub struct TableWriter {
    bytes: Vec<u8>,
    directory: Vec<[u64; 2]>,
}

impl Default for TableWriter {
    fn default() -> TableWriter {
        TableWriter { bytes: vec![0; HEADER], directory: vec![] }
    }
}

impl TableWriter {
    /// Append a table.
    pub fn table<T: Pod>(&mut self, items: &[T]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(items));
        self.directory.push([start, self.bytes.len() as u64]);
    }

    /// Give the whole file.
    pub fn finish(mut self, key: &Key, documents: &[&[u8]]) -> Vec<u8> {
        let tables = self.directory.len();
        documents.iter().for_each(|document| self.table(document));
        let directory = std::mem::take(&mut self.directory);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let mut header = Header {
            magic: MAGIC,
            byte_order: BYTE_ORDER,
            format: FORMAT,
            sources: sources(),
            key: *key,
            length: 0,
            directory: self.bytes.len() as u64,
            tables: tables as u32,
            documents: documents.len() as u32,
            unused: [0; 24],
            checksum: [0; 16],
        };
        self.bytes.extend_from_slice(bytemuck::cast_slice(&directory));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        header.length = self.bytes.len() as u64;
        self.bytes[..HEADER].copy_from_slice(bytemuck::bytes_of(&header));
        header.checksum = checksum(&self.bytes);
        self.bytes[..HEADER].copy_from_slice(bytemuck::bytes_of(&header));
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = [3; 32];

    fn written() -> Vec<u8> {
        let mut writer = TableWriter::default();
        writer.table(&[1u32, 2, 3]);
        writer.table::<u64>(&[]);
        writer.table(&[5u8; 100]);
        writer.finish(&KEY, &[b"facts", b""])
    }

    fn refused(bytes: Vec<u8>, key: &Key) -> String {
        let error = TableFile::of_bytes(bytes, key).err().expect("it is refused");
        assert_eq!(error.code, "tables-damaged");
        error.message
    }

    #[test]
    fn tables_and_documents_come_back() {
        let file = TableFile::of_bytes(written(), &KEY).expect("as it was written");
        let (start, end) = file.section(2).expect("the third");
        assert_eq!(file.bytes()[start..end], [5; 100]);
        assert_eq!((file.section(3), file.document(0), file.document(1)), (None, Some(&b"facts"[..]), Some(&b""[..])));
        assert_eq!((file.document(2), file.document(usize::MAX)), (None, None));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = written();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            refused(flipped, &KEY);
        }
    }

    #[test]
    fn every_other_length_is_noticed() {
        let bytes = written();
        for length in 0..bytes.len() {
            refused(bytes[..length].to_vec(), &KEY);
        }
        refused([&bytes[..], &[0; 64]].concat(), &KEY);
    }

    #[test]
    fn what_others_wrote_is_noticed() {
        let bytes = written();
        assert!(refused(bytes.clone(), &[4; 32]).ends_with("it is for another tokenizer"));
        let replaced = |at: usize, with: &[u8]| {
            let mut other = bytes.clone();
            other[at..at + with.len()].copy_from_slice(with);
            let sum = checksum(&other);
            other[HEADER - 16..HEADER].copy_from_slice(&sum);
            refused(other, &KEY)
        };
        assert!(replaced(0, b"PK\x03\x04").ends_with("it is of another kind"));
        assert!(replaced(8, &BYTE_ORDER.swap_bytes().to_ne_bytes()).ends_with("it is of another kind"));
        assert!(replaced(12, &(FORMAT + 1).to_ne_bytes()).ends_with("it is of another kind"));
        assert!(replaced(16, b"0123456789abcdef").ends_with("another version wrote it"));
        assert!(replaced(64, &7u64.to_ne_bytes()).ends_with("its length is not what it was"));
        assert!(replaced(72, &u64::MAX.to_ne_bytes()).ends_with("no directory"));
        assert!(replaced(80, &u32::MAX.to_ne_bytes()).ends_with("no directory"));
    }
}
