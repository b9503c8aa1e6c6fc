//! The first two steps of every walk of WordPiece as one look into a table: most tokens of a new pretoken have two or three
//! bytes.

use bytemuck::{Pod, Zeroable};

use super::super::trie::{Next, Trie, NOTHING, ROOT};
use super::symbol;
use crate::stored_struct;
use crate::tables::Table;

/// See the module.
pub struct Starts {
    /// For each byte, where the entries are of walks from the root that begin with it; then of those for inner tokens.
    firsts: Box<[u32; 512]>,
    /// For each byte, its place among them as the second one. 0: no key has it there.
    seconds: Box<[u32; 256]>,
    entries: Table<Start>,
}
stored_struct!(Starts { firsts, seconds, entries });

/// Where two bytes lead.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Start {
    /// The step behind them, without its symbol.
    pub next: Next,
    /// The id of the longest token so far.
    pub id: u32,
    /// The length of that token, 0 where there is none; above it, whether keys go on.
    length: u32,
}

const GOES_ON: u32 = 1 << 31;

impl Start {
    /// The length of the longest token so far, 0 where there is none.
    #[inline(always)]
    pub fn length(&self) -> u32 {
        self.length & !GOES_ON
    }

    /// Whether keys go on behind the two bytes.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        self.length & GOES_ON != 0
    }

    fn of(trie: &Trie, node: u32, bytes: &[u8]) -> Start {
        let mut start = Start::default();
        let mut node = node;
        for (length, &byte) in (1..).zip(bytes) {
            let Some((child, value)) = trie.follow(trie.next(node, symbol(byte))) else { return start };
            if value != NOTHING {
                (start.id, start.length) = (value as u32, length);
            }
            node = child;
        }
        if bytes.len() == 2 && trie.goes_on(node) {
            start.next = trie.next(node, 0);
            start.length |= GOES_ON;
        }
        start
    }
}

impl Starts {
    /// Find them in a trie of bytes with these places where walks begin.
    pub fn new(trie: &Trie, inner: Option<u32>) -> Starts {
        let follow = |node: u32, byte: u8| trie.follow(trie.next(node, symbol(byte))).map(|(child, _)| child);
        let bytes = || 0..=u8::MAX;
        let roots = [Some(ROOT), inner];
        let behind_first: Vec<u32> =
            roots.iter().flatten().flat_map(|&root| bytes().filter_map(move |byte| follow(root, byte))).collect();
        let mut seconds = Box::new([0; 256]);
        let mut columns = vec![];
        for byte in bytes().filter(|&byte| behind_first.iter().any(|&node| follow(node, byte).is_some())) {
            columns.push(byte);
            seconds[usize::from(byte)] = columns.len() as u32;
        }
        // Nothing begins with what has the first of them.
        let mut entries = vec![Start::default(); columns.len() + 1];
        let mut firsts = Box::new([0; 512]);
        for (kind, root) in roots.into_iter().enumerate().filter_map(|(kind, root)| Some((kind, root?))) {
            for byte in bytes().filter(|&byte| follow(root, byte).is_some()) {
                firsts[kind << 8 | usize::from(byte)] = entries.len() as u32;
                entries.push(Start::of(trie, root, &[byte]));
                entries.extend(columns.iter().map(|&second| Start::of(trie, root, &[byte, second])));
            }
        }
        Starts { firsts, seconds, entries: entries.into() }
    }

    /// Where two bytes lead, or the first alone, where there is no second one.
    #[inline(always)]
    pub fn get(&self, is_inner: bool, first: u8, second: u8, has_second: bool) -> &Start {
        let second = self.seconds[usize::from(second)] & 0u32.wrapping_sub(u32::from(has_second));
        &self.entries[(self.firsts[usize::from(is_inner) << 8 | usize::from(first)] + second) as usize]
    }
}
