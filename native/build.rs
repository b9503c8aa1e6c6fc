//! Gives the crate a fingerprint of its sources: what a file of tables must have been written by (`src/table_file.rs`).

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources can be read") {
        let path = entry.expect("the sources can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn main() {
    let unicode = Path::new("../src/tokbatch/spec/unicode");
    let mut files = vec![PathBuf::from("Cargo.lock")];
    sources(Path::new("src"), &mut files);
    files.extend(["rust.bin", "normalization.bin", "graphemes.bin"].map(|name| unicode.join(name)));
    files.sort();
    // FNV-1a: all that is asked of it is that another source gives another number.
    let mut fingerprint: u64 = 0xCBF2_9CE4_8422_2325;
    for file in &files {
        let content = std::fs::read(file).unwrap_or_default();
        let length = (content.len() as u64).to_le_bytes();
        for &byte in file.to_string_lossy().as_bytes().iter().chain(&length).chain(&content) {
            fingerprint = (fingerprint ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }
    println!("cargo:rustc-env=TOKBATCH_SOURCES={fingerprint:016x}");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rerun-if-changed={}", unicode.display());
}
