//! A double-array trie: what WordPiece and Unigram walk along a text, symbol by symbol. A symbol is a byte or a character.
//!
//! The child of a node for a symbol, if there is one, lies at `base ^ symbol`; a slot knows the node that it belongs to. So
//! a step is one look at memory, and the value lies there, too. Nodes with many children are placed first: they lie
//! together, and the others fill the gaps, so that nearly all slots are used.

use std::cmp::Reverse;

use bytemuck::{Pod, Zeroable};

use crate::hash::prefetch;
use crate::stored_struct;
use crate::tables::Table;

/// No value: no key ends here.
pub const NOTHING: u64 = u64::MAX;
/// No node's number as a parent.
const NOBODY: u32 = u32::MAX;

/// A symbol that stands between texts. No key has it.
pub const BOUND: u32 = 0;
/// What no key has is this symbol.
pub const NO_SYMBOL: u32 = 1;
/// The lowest symbol that keys can have.
pub const FIRST_SYMBOL: u32 = 3;

/// The node where every walk begins. Its base is 0, so that the node behind one symbol has the number of the symbol, which
/// no other node has.
pub const ROOT: u32 = 2;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Slot {
    /// 0 where there are no children.
    base: u32,
    parent: u32,
    value: u64,
}

const FREE: Slot = Slot { base: 0, parent: NOBODY, value: NOTHING };

/// The trie. Keys are strings of symbols, values are any numbers but `NOTHING`.
pub struct Trie {
    slots: Table<Slot>,
}
stored_struct!(Trie { slots });

/// A step from a node.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Next {
    node: u32,
    child: u32,
}

impl Trie {
    /// Build from (key, value); of equal keys the last one counts. `first` gives the first symbol of a key or of the rest of
    /// one, and its length in bytes. Texts have symbols below `end_of_symbols`.
    pub fn new(entries: &[(&[u8], u64)], end_of_symbols: u32, first: impl Fn(&[u8]) -> (u32, usize)) -> Trie {
        let mut tree = Tree::new(entries, first);
        let Places { bases, places, size } = tree.place(end_of_symbols);
        let mut slots = vec![FREE; size];
        for ((node, &place), &base) in tree.nodes.iter().zip(&places).zip(&bases) {
            (slots[place as usize].base, slots[place as usize].value) = (base, node.value);
            for &(symbol, _) in tree.edges_of(node) {
                slots[(base ^ symbol) as usize].parent = place;
            }
        }
        Trie { slots: slots.into() }
    }

    /// Where the node one symbol on from a node is, if there is one.
    #[inline(always)]
    pub fn next(&self, node: u32, symbol: u32) -> Next {
        Next { node, child: self.slots[node as usize].base ^ symbol }
    }

    /// Ask for the memory that `follow` and `look` look at.
    #[inline(always)]
    pub fn ask(&self, next: Next) {
        prefetch(&self.slots, next.child as usize);
    }

    /// The node there, and its value (`NOTHING`: no key ends there).
    #[inline(always)]
    pub fn follow(&self, next: Next) -> Option<(u32, u64)> {
        let slot = &self.slots[next.child as usize];
        (slot.parent == next.node).then_some((next.child, slot.value))
    }

    /// Whether there is a node there, its number and its value, without a branch: they mean nothing where there is none.
    #[inline(always)]
    pub fn look(&self, next: Next) -> (bool, u32, u64) {
        let slot = &self.slots[next.child as usize];
        (slot.parent == next.node, next.child, slot.value)
    }

    /// Whether keys go on beyond a node.
    #[inline(always)]
    pub fn goes_on(&self, node: u32) -> bool {
        self.slots[node as usize].base != 0
    }

    /// The node at the end of a text, where keys go on beyond it or end with it.
    pub fn node(&self, mut symbols: impl Iterator<Item = u32>) -> Option<u32> {
        symbols.try_fold(ROOT, |node, symbol| self.follow(self.next(node, symbol)).map(|(child, _)| child))
    }
}

impl Next {
    /// The same step with another symbol, where its own is 0.
    #[inline(always)]
    pub fn with(self, symbol: u32) -> Next {
        Next { child: self.child ^ symbol, ..self }
    }
}

/// A trie before its nodes have places. Parents come before their children, and the root first.
pub struct Tree {
    /// See `Node`.
    pub nodes: Vec<Node>,
    /// Symbols and children.
    edges: Vec<(u32, u32)>,
    /// The nodes that have children, as a walk along all keys in order meets them.
    inner: Vec<u32>,
}

/// A node of a tree.
#[derive(Clone, Copy)]
pub struct Node {
    /// The value of the key that ends here, or `NOTHING`.
    pub value: u64,
    /// Where its edges begin and end.
    first: u32,
    end: u32,
}

/// Where the nodes of a tree are. The child of one for a symbol is at `base ^ symbol`, and no two have the same base.
pub struct Places {
    /// 0 of the root, and of what has no children.
    pub bases: Vec<u32>,
    /// The root is at `ROOT`, and what is one symbol on from it at the symbol.
    pub places: Vec<u32>,
    /// All places are below.
    pub size: usize,
}

const LEAF: Node = Node { value: NOTHING, first: 0, end: 0 };

impl Tree {
    /// The tree of keys with their values; of equal keys the last one counts. `first_symbol`: as for `Trie::new`.
    pub fn new(entries: &[(&[u8], u64)], first_symbol: impl Fn(&[u8]) -> (u32, usize)) -> Tree {
        let mut sorted: Vec<(&[u8], u64)> = entries.to_vec();
        // A stable sort: of equal keys the last one stays last.
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        let (mut nodes, mut edges, mut inner) = (vec![LEAF], vec![], vec![]);
        // (node, keys from, to, depth): the keys that pass through the node have this many bytes behind them.
        let mut open = vec![(0, 0, sorted.len(), 0)];
        while let Some((node, mut from, to, depth)) = open.pop() {
            while from < to && sorted[from].0.len() == depth {
                nodes[node].value = sorted[from].1;
                from += 1;
            }
            if from == to {
                continue;
            }
            inner.push(node as u32);
            nodes[node].first = edges.len() as u32;
            let first_open = open.len();
            while from < to {
                let rest = &sorted[from].0[depth..];
                let (symbol, length) = first_symbol(rest);
                let end = from + sorted[from..to].partition_point(|(key, _)| key[depth..].starts_with(&rest[..length]));
                edges.push((symbol, nodes.len() as u32));
                open.push((nodes.len(), from, end, depth + length));
                nodes.push(LEAF);
                from = end;
            }
            nodes[node].end = edges.len() as u32;
            open[first_open..].reverse();
        }
        Tree { nodes, edges, inner }
    }

    /// The symbols that lead on from a node, and where to.
    pub fn edges_of(&self, node: &Node) -> &[(u32, u32)] {
        &self.edges[node.first as usize..node.end as usize]
    }

    fn edges(&self, node: u32) -> &[(u32, u32)] {
        self.edges_of(&self.nodes[node as usize])
    }

    /// Give all nodes their places. All symbols are below `end_of_symbols`.
    pub fn place(&mut self, end_of_symbols: u32) -> Places {
        let mut room = Room::new(end_of_symbols as usize);
        let mut bases = vec![0; self.nodes.len()];
        let mut inner = std::mem::take(&mut self.inner);
        if let Some((_root, others)) = inner.split_first_mut() {
            others.sort_by_key(|&node| Reverse(self.edges(node).len()));
        }
        // Where those with as many children begin to look: what was not free for one of them is seldom free for another.
        let (mut children, mut from) = (0, 0);
        for &node in inner.iter().skip(1) {
            let edges = self.edges(node);
            if edges.len() != children {
                (children, from) = (edges.len(), 0);
            }
            let base = room.find(edges, &mut from);
            room.take(base, edges);
            bases[node as usize] = base;
        }
        let mut places = vec![ROOT; self.nodes.len()];
        for (node, &base) in self.nodes.iter().zip(&bases) {
            for &(symbol, child) in self.edges_of(node) {
                places[child as usize] = base ^ symbol;
            }
        }
        Places { bases, places, size: room.size() }
    }
}

/// So many slots that were passed over are tried again for a node.
const MOST_PASSED: usize = 32;

/// Which slots are free, 64 a word.
struct Room {
    free: Vec<u64>,
    /// Which bases nobody has.
    free_bases: Vec<u64>,
    /// Slots that were free when only a base was not.
    passed: Vec<u32>,
    /// So many words at a time: as many as all symbols need.
    block: usize,
}

impl Room {
    /// Room behind the children of the root: the slots of all symbols are theirs, or nobody's.
    fn new(end_of_symbols: usize) -> Room {
        let block = end_of_symbols.next_power_of_two().div_ceil(64);
        let mut free = vec![u64::MAX; block];
        free[..end_of_symbols / 64].fill(0);
        free[end_of_symbols / 64..].iter_mut().take(1).for_each(|word| *word <<= end_of_symbols % 64);
        // A base of 0 says that there are no children.
        let mut free_bases = vec![u64::MAX; block];
        free_bases[0] &= !1;
        Room { free, free_bases, passed: vec![], block }
    }

    fn size(&self) -> usize {
        self.free.len() * 64
    }

    fn is_free(&self, slot: u32) -> bool {
        is_set(&self.free, slot)
    }

    fn take(&mut self, base: u32, edges: &[(u32, u32)]) {
        for &(symbol, _) in edges {
            let slot = base ^ symbol;
            self.free[slot as usize / 64] &= !(1 << (slot % 64));
        }
        self.free_bases[base as usize / 64] &= !(1 << (base % 64));
    }

    /// A base from which all children have free slots, with the slot of the first one at `from` or behind it, which moves on.
    fn find(&mut self, edges: &[(u32, u32)], from: &mut usize) -> u32 {
        let first = edges[0].0;
        let newest = self.passed.len().saturating_sub(MOST_PASSED);
        if let Some(at) = (newest..self.passed.len()).find(|&at| self.takes(self.passed[at] ^ first, edges)) {
            return self.passed.swap_remove(at) ^ first;
        }
        loop {
            if *from >= self.size() {
                self.free.resize(self.free.len() + self.block, u64::MAX);
                self.free_bases.resize(self.free.len(), u64::MAX);
            }
            let free = self.free[*from / 64] >> (*from % 64);
            if free == 0 {
                *from = (*from / 64 + 1) * 64;
                continue;
            }
            *from += free.trailing_zeros() as usize;
            let base = *from as u32 ^ first;
            *from += 1;
            if self.takes(base, edges) {
                return base;
            }
            if edges.len() == 1 {
                self.passed.push(base ^ first);
            }
        }
    }

    /// Whether a base is free, and the slots of all children from there.
    fn takes(&self, base: u32, edges: &[(u32, u32)]) -> bool {
        is_set(&self.free_bases, base) && edges.iter().all(|&(symbol, _)| self.is_free(base ^ symbol))
    }
}

fn is_set(bits: &[u64], number: u32) -> bool {
    (bits[number as usize / 64] >> (number % 64)) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::super::characters::code_point;
    use super::*;
    use std::collections::HashMap;

    const BYTES: u32 = FIRST_SYMBOL + 256;

    fn byte(rest: &[u8]) -> (u32, usize) {
        (FIRST_SYMBOL + u32::from(rest[0]), 1)
    }

    fn character(rest: &[u8]) -> (u32, usize) {
        let (code_point, length) = code_point(rest);
        (FIRST_SYMBOL + code_point, length)
    }

    fn value(trie: &Trie, key: &[u8], first: impl Fn(&[u8]) -> (u32, usize)) -> Option<u64> {
        let mut rest = key;
        let symbols = std::iter::from_fn(|| {
            let (symbol, length) = (!rest.is_empty()).then(|| first(rest))?;
            rest = &rest[length..];
            Some(symbol)
        });
        trie.node(symbols).map(|node| trie.slots[node as usize].value).filter(|&value| value != NOTHING)
    }

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        // All lengths up to 6, every third one left out; and all single bytes.
        let mut keys: Vec<Vec<u8>> = (0..128u8).map(|byte| vec![byte]).collect();
        for length in 1..7usize {
            for number in 0..3usize.pow(length as u32) {
                if number % 3 != 1 {
                    let digit = |place: u32| ["\0", "é", "😀"][number / 3usize.pow(place) % 3];
                    let key: String = (0..length as u32).map(digit).chain(["z"]).collect();
                    keys.push(key.into_bytes());
                }
            }
        }
        let entries: Vec<(&[u8], u64)> = keys.iter().enumerate().map(|(i, key)| (&key[..], i as u64)).collect();
        let expected: HashMap<&[u8], u64> = entries.iter().copied().collect();
        for (first, end_of_symbols) in [(byte as fn(&[u8]) -> _, BYTES), (character, 1 << 17)] {
            let trie = Trie::new(&entries, end_of_symbols, first);
            for key in &keys {
                assert_eq!(value(&trie, key, first), expected.get(&key[..]).copied());
                let longer = [&key[..], b"q"].concat();
                assert_eq!(value(&trie, &longer, first), None);
                let shorter = &key[..key.len() - 1];
                assert_eq!(value(&trie, shorter, first), expected.get(shorter).copied());
            }
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts_and_empty_ones_are_keys() {
        let trie = Trie::new(&[(b"a", 1), (b"", 7), (b"a", 2)], BYTES, byte);
        assert_eq!(value(&trie, b"a", byte), Some(2));
        assert_eq!(value(&trie, b"", byte), Some(7));
        assert_eq!(value(&Trie::new(&[], BYTES, byte), b"\0", byte), None);
    }

    #[test]
    fn the_node_behind_one_symbol_has_its_number() {
        // No key begins with the other symbols, and there are many nodes that could have their numbers.
        let keys: Vec<Vec<u8>> = (0..=255).map(|number: u8| vec![b'a', number % 16, number / 16]).collect();
        let entries: Vec<(&[u8], u64)> = keys.iter().map(|key| (&key[..], 1)).collect();
        let trie = Trie::new(&entries, BYTES, byte);
        for symbol in FIRST_SYMBOL..BYTES {
            let has_node = symbol == FIRST_SYMBOL + u32::from(b'a');
            assert_eq!(trie.slots[symbol as usize].value, NOTHING);
            let child = trie.follow(trie.next(ROOT, symbol)).map(|(child, _)| child);
            assert_eq!((trie.goes_on(symbol), child == Some(symbol)), (has_node, has_node));
        }
    }

    #[test]
    fn nowhere_leads_nowhere() {
        let keys: Vec<Vec<u8>> = (0..=255).flat_map(|a| [vec![a], vec![a, a]]).collect();
        let entries: Vec<(&[u8], u64)> = keys.iter().map(|key| (&key[..], 1)).collect();
        for trie in [Trie::new(&entries, BYTES, byte), Trie::new(&[(b"", 7)], BYTES, byte)] {
            for node in [BOUND, NO_SYMBOL] {
                assert!(trie.slots[node as usize].value == NOTHING && !trie.goes_on(node));
                for symbol in (0..trie.slots.len() as u32).filter(|&symbol| symbol != ROOT) {
                    assert!(trie.follow(trie.next(node, symbol)).is_none());
                }
            }
            for symbol in [BOUND, NO_SYMBOL] {
                assert!((ROOT..trie.slots.len() as u32).all(|node| trie.follow(trie.next(node, symbol)).is_none()));
            }
        }
    }
}
