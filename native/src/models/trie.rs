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

/// Where a step leads that no key takes: nothing follows from here, and it has no value.
pub const NOWHERE: u32 = NO_SYMBOL;
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

/// A trie whose values can change.
pub struct Slots(Vec<Slot>);

/// A step from a node.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Next {
    node: u32,
    child: u32,
}

impl Slots {
    /// As `Trie::new`.
    pub fn new(entries: &[(&[u8], u64)], end_of_symbols: u32, first: impl Fn(&[u8]) -> (u32, usize)) -> Slots {
        Tree::new(entries, first).placed(end_of_symbols)
    }

    /// How many numbers of nodes there are; not all of them are nodes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Give other values to the nodes where keys end. `change` sees node and value.
    pub fn change_values(&mut self, mut change: impl FnMut(usize, u64) -> u64) {
        for (node, slot) in self.0.iter_mut().enumerate().filter(|(_, slot)| slot.value != NOTHING) {
            slot.value = change(node, slot.value);
        }
    }
}

impl From<Slots> for Trie {
    fn from(slots: Slots) -> Trie {
        Trie { slots: slots.0.into() }
    }
}

impl Trie {
    /// Build from (key, value); of equal keys the last one counts. `first` gives the first symbol of a key or of the rest of
    /// one, and its length in bytes. Texts have symbols below `end_of_symbols`.
    pub fn new(entries: &[(&[u8], u64)], end_of_symbols: u32, first: impl Fn(&[u8]) -> (u32, usize)) -> Trie {
        Slots::new(entries, end_of_symbols, first).into()
    }

    /// Where the node one symbol on from a node is, if there is one.
    #[inline(always)]
    pub fn next(&self, node: u32, symbol: u32) -> Next {
        Next { node, child: self.slots[node as usize].base ^ symbol }
    }

    /// Ask for the memory that `follow` and `arrive` look at.
    #[inline(always)]
    pub fn ask(&self, next: Next) {
        prefetch(&self.slots, next.child as usize);
    }

    /// The node there, or `NOWHERE`.
    #[inline(always)]
    pub fn arrive(&self, next: Next) -> u32 {
        // The root is nobody's child, and free slots are nobody's either.
        if self.slots[next.child as usize].parent == next.node {
            next.child
        } else {
            NOWHERE
        }
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

    /// The value of a node (`NOTHING`: no key ends there).
    #[inline(always)]
    pub fn value(&self, node: u32) -> u64 {
        self.slots[node as usize].value
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

    /// The node where a key ends.
    pub fn node_of_key(&self, symbols: impl Iterator<Item = u32>) -> Option<u32> {
        self.node(symbols).filter(|&node| self.value(node) != NOTHING)
    }
}

impl Next {
    /// The same step with another symbol, where its own is 0.
    #[inline(always)]
    pub fn with(self, symbol: u32) -> Next {
        Next { child: self.child ^ symbol, ..self }
    }

    /// The node that it leads on from.
    #[inline(always)]
    pub fn from(self) -> u32 {
        self.node
    }
}

/// The trie before its nodes have places. Parents come before their children, and the root first.
struct Tree {
    nodes: Vec<Node>,
    /// Symbols and children.
    edges: Vec<(u32, u32)>,
    /// The nodes that have children, as a walk along all keys in order meets them.
    inner: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Node {
    value: u64,
    /// Where its edges begin and end.
    first: u32,
    end: u32,
}

const LEAF: Node = Node { value: NOTHING, first: 0, end: 0 };

impl Tree {
    fn new(entries: &[(&[u8], u64)], first_symbol: impl Fn(&[u8]) -> (u32, usize)) -> Tree {
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

    fn edges(&self, node: u32) -> &[(u32, u32)] {
        let Node { first, end, .. } = self.nodes[node as usize];
        &self.edges[first as usize..end as usize]
    }

    /// Give all nodes their slots.
    fn placed(mut self, end_of_symbols: u32) -> Slots {
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
        let mut slots = vec![FREE; room.size()];
        let mut places = vec![ROOT; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            let (place, base) = (places[number], bases[number]);
            (slots[place as usize].base, slots[place as usize].value) = (base, node.value);
            for &(symbol, child) in self.edges(number as u32) {
                places[child as usize] = base ^ symbol;
                slots[(base ^ symbol) as usize].parent = place;
            }
        }
        Slots(slots)
    }
}

/// Which slots are free, 64 a word.
struct Room {
    free: Vec<u64>,
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
        Room { free, block }
    }

    fn size(&self) -> usize {
        self.free.len() * 64
    }

    fn is_free(&self, slot: u32) -> bool {
        (self.free[slot as usize / 64] >> (slot % 64)) & 1 != 0
    }

    fn take(&mut self, base: u32, edges: &[(u32, u32)]) {
        for &(symbol, _) in edges {
            let slot = base ^ symbol;
            self.free[slot as usize / 64] &= !(1 << (slot % 64));
        }
    }

    /// A base from which all children have free slots, with the slot of the first one at `from` or behind it, which moves on.
    fn find(&mut self, edges: &[(u32, u32)], from: &mut usize) -> u32 {
        loop {
            if *from >= self.size() {
                self.free.resize(self.free.len() + self.block, u64::MAX);
            }
            let free = self.free[*from / 64] >> (*from % 64);
            if free == 0 {
                *from = (*from / 64 + 1) * 64;
                continue;
            }
            *from += free.trailing_zeros() as usize;
            let base = *from as u32 ^ edges[0].0;
            *from += 1;
            // A base of 0 says that there are no children.
            if base != 0 && edges[1..].iter().all(|&(symbol, _)| self.is_free(base ^ symbol)) {
                return base;
            }
        }
    }
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
        trie.node_of_key(symbols).map(|node| trie.value(node))
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
            assert_eq!(trie.value(symbol), NOTHING);
            assert_eq!((trie.goes_on(symbol), trie.arrive(trie.next(ROOT, symbol)) == symbol), (has_node, has_node));
        }
    }

    #[test]
    fn nowhere_leads_nowhere() {
        let keys: Vec<Vec<u8>> = (0..=255).flat_map(|a| [vec![a], vec![a, a]]).collect();
        let entries: Vec<(&[u8], u64)> = keys.iter().map(|key| (&key[..], 1)).collect();
        for trie in [Trie::new(&entries, BYTES, byte), Trie::new(&[(b"", 7)], BYTES, byte)] {
            for node in [BOUND, NOWHERE] {
                assert!(trie.value(node) == NOTHING && !trie.goes_on(node));
                for symbol in (0..trie.slots.len() as u32).filter(|&symbol| symbol != ROOT) {
                    assert_eq!(trie.arrive(trie.next(node, symbol)), NOWHERE);
                }
            }
            for symbol in [BOUND, NO_SYMBOL] {
                assert!((ROOT..trie.slots.len() as u32).all(|node| trie.arrive(trie.next(node, symbol)) == NOWHERE));
            }
        }
    }
}
