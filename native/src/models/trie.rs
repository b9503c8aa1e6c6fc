//! A double-array trie over the bytes of a vocabulary: what WordPiece and Unigram walk along a text.
//!
//! The children of a node lie in one block of 256 slots, at `base ^ byte`; a slot knows the node that it belongs to. So a
//! step is one look at memory, and the value lies there, too. Building fills the gaps of the last few blocks only, which
//! keeps it linear.

use bytemuck::{Pod, Zeroable};

use crate::hash::prefetch;
use crate::stored_struct;
use crate::tables::Table;

/// No value: no key ends here.
pub const NOTHING: u64 = u64::MAX;
/// No node.
const NOBODY: u32 = u32::MAX;

/// Blocks that are still filled while building.
const OPEN_BLOCKS: usize = 16;

/// The node where every walk begins.
pub const ROOT: u32 = 0;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Slot {
    base: u32,
    parent: u32,
    value: u64,
}

const FREE: Slot = Slot { base: 0, parent: NOBODY, value: NOTHING };

/// The trie. Keys are byte strings, values are any numbers but `NOTHING`.
pub struct Trie {
    slots: Table<Slot>,
}
stored_struct!(Trie { slots });

/// The free slots of the open blocks, as a ring through a dummy.
struct Builder {
    slots: Vec<Slot>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Any free slot, or `NOBODY`.
    head: u32,
}

impl Trie {
    /// Build from (key, value); of equal keys the last one counts.
    pub fn new(entries: &[(&[u8], u64)]) -> Trie {
        let mut sorted: Vec<(&[u8], u64)> = entries.to_vec();
        // A stable sort: of equal keys the last one stays last.
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        let mut builder = Builder { slots: vec![], next: vec![], previous: vec![], head: NOBODY };
        builder.add_block();
        builder.take(ROOT);
        // (node, keys from, to, depth): the keys that pass through the node have this many bytes behind them.
        let mut open = vec![(ROOT, 0, sorted.len(), 0)];
        let mut labels: Vec<(u8, usize, usize)> = vec![];
        while let Some((node, mut from, to, depth)) = open.pop() {
            while from < to && sorted[from].0.len() == depth {
                builder.slots[node as usize].value = sorted[from].1;
                from += 1;
            }
            if from == to {
                continue;
            }
            labels.clear();
            while from < to {
                let label = sorted[from].0[depth];
                let end = from + sorted[from..to].partition_point(|(key, _)| key[depth] == label);
                labels.push((label, from, end));
                from = end;
            }
            let base = builder.base_for(&labels);
            builder.slots[node as usize].base = base;
            for &(label, ..) in &labels {
                let child = base ^ u32::from(label);
                builder.take(child);
                builder.slots[child as usize].parent = node;
            }
            for &(label, from, to) in labels.iter().rev() {
                open.push((base ^ u32::from(label), from, to, depth + 1));
            }
        }
        Trie { slots: builder.slots.into() }
    }

    /// Where the node one byte on from a node is, if there is one.
    #[inline(always)]
    pub fn next(&self, node: u32, byte: u8) -> Next {
        Next { node, child: self.slots[node as usize].base ^ u32::from(byte) }
    }

    /// Ask for the memory that `follow` looks at.
    #[inline(always)]
    pub fn ask(&self, next: Next) {
        prefetch(&self.slots, next.child as usize);
    }

    /// The node there, and its value (`NOTHING`: no key ends there).
    #[inline(always)]
    pub fn follow(&self, next: Next) -> Option<(u32, u64)> {
        let slot = &self.slots[next.child as usize];
        // The root is nobody's child, and free slots are nobody's either.
        (slot.parent == next.node).then_some((next.child, slot.value))
    }

    /// Ask for the memory where a walk from the root comes to with the last of these bytes, if that of the others is near.
    #[inline(always)]
    pub fn ask_ahead<const N: usize>(&self, bytes: [u8; N]) {
        // What is no child is harmless here.
        let child = bytes.iter().fold(ROOT, |node, &byte| self.slots[node as usize].base ^ u32::from(byte));
        prefetch(&self.slots, child as usize);
    }

    /// The node one byte on from a node, and its value.
    #[inline(always)]
    pub fn step(&self, node: u32, byte: u8) -> Option<(u32, u64)> {
        self.follow(self.next(node, byte))
    }

    /// The node at the end of a text, where keys go on beyond it or end with it.
    pub fn node(&self, text: &[u8]) -> Option<u32> {
        text.iter().try_fold(ROOT, |node, &byte| self.step(node, byte).map(|(child, _)| child))
    }

    /// The node where a key ends.
    pub fn node_of_key(&self, key: &[u8]) -> Option<u32> {
        self.node(key).filter(|&node| self.slots[node as usize].value != NOTHING)
    }

    /// How many numbers of nodes there are; not all of them are nodes.
    pub fn size(&self) -> usize {
        self.slots.len()
    }
}

/// Where a step leads.
#[derive(Clone, Copy, Default)]
pub struct Next {
    node: u32,
    child: u32,
}

impl Builder {
    fn add_block(&mut self) {
        let first = self.slots.len() as u32;
        self.slots.resize(self.slots.len() + 256, FREE);
        self.next.resize(self.slots.len(), NOBODY);
        self.previous.resize(self.slots.len(), NOBODY);
        for slot in first..first + 256 {
            self.put_at_end(slot);
        }
        if first as usize >= OPEN_BLOCKS * 256 {
            let closed = first as usize - OPEN_BLOCKS * 256;
            for slot in closed..closed + 256 {
                if self.next[slot] != NOBODY {
                    self.take(slot as u32);
                }
            }
        }
    }

    fn put_at_end(&mut self, slot: u32) {
        if self.head == NOBODY {
            self.head = slot;
            self.next[slot as usize] = slot;
            self.previous[slot as usize] = slot;
            return;
        }
        let last = self.previous[self.head as usize];
        self.next[last as usize] = slot;
        self.previous[slot as usize] = last;
        self.next[slot as usize] = self.head;
        self.previous[self.head as usize] = slot;
    }

    fn take(&mut self, slot: u32) {
        let (before, after) = (self.previous[slot as usize], self.next[slot as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
        if self.head == slot {
            self.head = if after == slot { NOBODY } else { after };
        }
        self.next[slot as usize] = NOBODY;
    }

    fn is_free(&self, slot: u32) -> bool {
        self.next[slot as usize] != NOBODY
    }

    fn base_for(&mut self, labels: &[(u8, usize, usize)]) -> u32 {
        /// Tries before a new block is begun: a node with many children seldom finds room between others.
        const TRIES: usize = 64;
        let first = u32::from(labels[0].0);
        let mut slot = self.head;
        for _ in 0..TRIES {
            if slot == NOBODY {
                break;
            }
            let base = slot ^ first;
            if labels[1..].iter().all(|&(label, ..)| self.is_free(base ^ u32::from(label))) {
                return base;
            }
            slot = self.next[slot as usize];
            if slot == self.head {
                break;
            }
        }
        let base = self.slots.len() as u32;
        self.add_block();
        base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn value(trie: &Trie, key: &[u8]) -> Option<u64> {
        trie.node_of_key(key).map(|node| trie.slots[node as usize].value)
    }

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        // Keys of two letters each, all lengths up to 6, every third one left out; and all single bytes.
        let mut keys: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        for length in 1..7usize {
            for number in 0..3usize.pow(length as u32) {
                if number % 3 != 1 {
                    let digit = |place: u32| b"\x00\xFFa"[number / 3usize.pow(place) % 3];
                    keys.push((0..length as u32).map(digit).chain([b'z']).collect());
                }
            }
        }
        let entries: Vec<(&[u8], u64)> = keys.iter().enumerate().map(|(i, key)| (&key[..], i as u64)).collect();
        let trie = Trie::new(&entries);
        let expected: HashMap<&[u8], u64> = entries.iter().copied().collect();
        for key in &keys {
            assert_eq!(value(&trie, key), expected.get(&key[..]).copied());
            let longer = [&key[..], b"q"].concat();
            assert_eq!(value(&trie, &longer), None);
            assert_eq!(value(&trie, &key[..key.len() - 1]), expected.get(&key[..key.len() - 1]).copied());
        }
    }

    #[test]
    fn the_last_of_equal_keys_counts_and_empty_ones_are_keys() {
        let trie = Trie::new(&[(b"a", 1), (b"", 7), (b"a", 2)]);
        assert_eq!(value(&trie, b"a"), Some(2));
        assert_eq!(value(&trie, b""), Some(7));
        assert_eq!(value(&Trie::new(&[]), b"\0"), None);
    }
}
