//! What tokens end at each place of a text: an Aho-Corasick automaton.
//!
//! A state is the longest end of the text so far with which some token begins. It leads on with a symbol as a trie does, or else
//! the next shorter such end does. So a place takes one step and seldom more, however long the tokens are that end there,
//! where a walk along a trie from each place takes one for each symbol of the tokens that begin there. The longest token
//! that ends there the state knows, and each token the next shorter one that it ends with.

use bytemuck::{Pod, Zeroable};

use super::super::trie::{Places, Tree, NOTHING, ROOT};
use crate::hash::prefetch;
use crate::stored_struct;
use crate::tables::Table;

/// No state has this base.
const NOBODY: u32 = u32::MAX;
/// So many symbols of a text are walked along in one go, or more where tokens are long.
const PART: usize = 48;
/// So many walks go side by side.
const SIDE_BY_SIDE: usize = 48;

/// A state, where the trie has its node.
///
/// Where no token goes on, it is the next shorter state that leads on: base and `shorter` are those of that one.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Slot {
    base: u32,
    /// The base of the state that leads here.
    from: u32,
    /// The state to go on from where this one does not lead on.
    shorter: u32,
    /// The number of the longest token that ends here.
    longest: u32,
}

/// A token, or a character that is none.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Entry {
    /// What it adds to a sum.
    pub score: f64,
    /// The number of the longest shorter one that it ends with. Behind what is one symbol comes one that adds too little to
    /// be better, and behind that comes itself.
    pub shorter: u32,
    /// In symbols.
    pub length: u32,
}

/// The automaton.
pub struct Automaton {
    slots: Table<Slot>,
    /// The tokens by id, then `unknown`, then what adds too little.
    entries: Table<Entry>,
    /// The length of the longest token in symbols.
    longest: usize,
}
stored_struct!(Automaton { slots, entries, longest });

/// How far a part of a text is: the state so far leads on to a slot, if the slot is from there.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Walk {
    next: u32,
    /// The state to go on from otherwise.
    shorter: u32,
    /// The place of the symbol that leads on.
    at: u32,
    /// Where the part ends.
    end: u32,
}

impl Automaton {
    /// Build from (token, id): the ids are 0, 1 and so on, and of equal tokens the last one counts. `first` gives the first
    /// symbol of a text and its length in bytes; symbols are below `end_of_symbols`. A character that is no token adds
    /// `unknown_score`.
    pub fn new(
        tokens: &[(&[u8], u64)],
        score: impl Fn(u64) -> f64,
        unknown_score: f64,
        end_of_symbols: u32,
        first: impl Fn(&[u8]) -> (u32, usize),
    ) -> Automaton {
        let mut tree = Tree::new(tokens, first);
        let Places { bases, places, size } = tree.place(end_of_symbols);
        let unknown = tokens.len() as u32;
        let mut slots = vec![Slot { base: 0, from: NOBODY, shorter: ROOT, longest: unknown }; size];
        // The root leads on with every symbol, to itself where no token begins with it. So no search for a state fails.
        slots[..end_of_symbols as usize].iter_mut().for_each(|slot| slot.from = bases[0]);
        let (mut child_at, mut depths) = (vec![0; size], vec![0; places.len()]);
        let mut edges = vec![];
        for (number, node) in tree.nodes.iter().enumerate() {
            for &(symbol, child) in tree.edges_of(node) {
                let place = places[child as usize] as usize;
                slots[place].from = bases[number];
                child_at[place] = child as usize;
                depths[child as usize] = depths[number] + 1;
                edges.push((number, symbol, child as usize));
            }
        }
        edges.sort_by_key(|&(.., child)| depths[child]);
        // For each node the longest other one that it ends with, the root where there is none; and of these the longest token.
        let (mut shorter, mut shorter_token) = (vec![0; places.len()], vec![unknown; places.len()]);
        for (parent, symbol, child) in edges {
            let mut from = parent;
            while from != 0 && shorter[child] == 0 {
                from = shorter[from];
                let place = (bases[from] ^ symbol) as usize;
                // What leads nowhere has the base of the root.
                let leads_on = from == 0 || bases[from] != bases[0];
                if leads_on && slots[place].from == bases[from] {
                    shorter[child] = child_at[place];
                }
            }
            shorter_token[child] = match tree.nodes[shorter[child]].value {
                _ if shorter[child] == 0 => unknown,
                NOTHING => shorter_token[shorter[child]],
                id => id as u32,
            };
        }
        let none = Entry { score: f64::NEG_INFINITY, shorter: unknown + 1, length: 1 };
        let mut entries = vec![none; tokens.len() + 2];
        entries[unknown as usize].score = unknown_score;
        let leading = |mut node: usize| {
            while node != 0 && bases[node] == bases[0] {
                node = shorter[node];
            }
            node
        };
        for (number, node) in tree.nodes.iter().enumerate() {
            let slot = &mut slots[places[number] as usize];
            slot.longest = shorter_token[number];
            if node.value != NOTHING {
                slot.longest = node.value as u32;
                let shorter = if depths[number] > 1 { shorter_token[number] } else { none.shorter };
                entries[node.value as usize] = Entry { score: score(node.value), shorter, length: depths[number] };
            }
            let leading_node = leading(number);
            slot.base = bases[leading_node];
            slot.shorter = places[leading(shorter[leading_node])];
        }
        let longest = depths.iter().max().map_or(0, |&longest| longest as usize);
        Automaton { slots: slots.into(), entries: entries.into(), longest }
    }

    /// The number of what is one character and no token.
    #[inline(always)]
    pub fn unknown(&self) -> u32 {
        self.entries.len() as u32 - 2
    }

    /// The tokens by number, and what is none.
    #[inline(always)]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Add the walks along a text, which is a part of the symbols.
    ///
    /// A long text would be walked along alone, waiting for each step. So it is cut, and a walk begins so far before its
    /// own part that it has the right state there: what is longer than all tokens, no state knows of. What it finds
    /// before that may be wrong, but the walk to which that belongs comes there later, if parts are long enough: a walk
    /// takes a turn a symbol, and another one for each time that its state becomes shorter, which it does by a symbol at least.
    /// So it has left its n-th symbol after 2n turns, and the other one, a part before it, comes to that symbol after
    /// `part - longest + n` turns or more, where n is `longest` at most.
    pub fn begin(&self, symbols: &[u32], (start, end): (usize, usize), walks: &mut Vec<Walk>) {
        let part = PART.max(3 * self.longest);
        let mut own = start;
        while own < end {
            let to = if end - own < 2 * part { end } else { own + part };
            let at = own.saturating_sub(self.longest).max(start);
            walks.push(Walk { next: symbols[at], shorter: ROOT, at: at as u32, end: to as u32 });
            own = to;
        }
    }

    /// Let walks go to their ends, the last ones first; `longest` gets for each of their places the number of the longest token
    /// that ends behind it.
    ///
    /// So many go side by side that one seldom waits for memory. Nothing foretells whether a state leads on, so no branch asks.
    pub fn walk(&self, symbols: &[u32], walks: &mut [Walk], longest: &mut [u32]) {
        let longest = &mut longest[..symbols.len()];
        let (waiting, going) = walks.split_at_mut(walks.len().saturating_sub(SIDE_BY_SIDE));
        let mut waiting = waiting.iter();
        let mut count = going.len();
        while count > 0 {
            let mut number = 0;
            while number < count {
                let Walk { next, shorter, at, end } = going[number];
                let leads_on = self.slots[next as usize].from == next ^ symbols[at as usize];
                let here = shorter ^ ((shorter ^ next) & 0u32.wrapping_sub(u32::from(leads_on)));
                let slot = self.slots[here as usize];
                // It is written again where the state does not lead on.
                longest[at as usize] = slot.longest;
                let at = at + u32::from(leads_on);
                // Behind each text there is a symbol more.
                let next = slot.base ^ symbols[at as usize];
                prefetch(&self.slots, next as usize);
                prefetch(&self.entries, slot.longest as usize);
                going[number] = Walk { next, shorter: slot.shorter, at, end };
                number += 1;
                if at == end {
                    number -= 1;
                    match waiting.next_back() {
                        Some(&walk) => {
                            going[number] = walk;
                            number += 1;
                        }
                        None => {
                            count -= 1;
                            going[number] = going[count];
                        }
                    }
                }
            }
        }
    }

    /// The id of a token.
    pub fn id(&self, symbols: impl Iterator<Item = u32>) -> Option<u32> {
        let (mut here, mut length) = (ROOT as usize, 0);
        for symbol in symbols {
            let mut next = (self.slots[here].base ^ symbol) as usize;
            while self.slots[next].from != self.slots[here].base {
                here = self.slots[here].shorter as usize;
                next = (self.slots[here].base ^ symbol) as usize;
            }
            (here, length) = (next, length + 1);
        }
        // If it is a token, the state is all of it.
        let id = self.slots[here].longest;
        (id != self.unknown() && self.entries[id as usize].length == length).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::trie::{BOUND, FIRST_SYMBOL};
    use super::*;

    #[test]
    fn a_text_of_many_parts_has_the_longest_token_at_each_place() {
        let symbol = |byte: u8| FIRST_SYMBOL + u32::from(byte);
        let (even, odd) = ("ab".repeat(7), "ba".repeat(7));
        let tokens: Vec<(&[u8], u64)> =
            ["a", "b", &even, &odd].iter().zip(0..).map(|(token, id)| (token.as_bytes(), id)).collect();
        let automaton = Automaton::new(&tokens, |_| -1.0, -11.0, symbol(255), |rest| (symbol(rest[0]), 1));
        let text = "ab".repeat(10 * PART + 7) + "xb";
        let mut symbols: Vec<u32> = text.bytes().map(symbol).collect();
        symbols.push(BOUND);
        let (mut walks, mut longest) = (vec![], vec![0; symbols.len()]);
        automaton.begin(&symbols, (0, text.len()), &mut walks);
        assert!(walks.len() > 15);
        automaton.walk(&symbols, &mut walks, &mut longest);
        for (end, &found) in (1..=text.len()).zip(&longest) {
            let ends = |token: &&[u8]| text.as_bytes()[..end].ends_with(token);
            let expected =
                tokens.iter().rposition(|(token, _)| ends(token)).map_or(automaton.unknown(), |id| id as u32);
            assert_eq!(found, expected, "{end}");
        }
        assert_eq!(automaton.id(even.bytes().map(symbol)), Some(2));
        assert_eq!(automaton.id("aab".bytes().map(symbol)), None);
        assert_eq!(automaton.id(std::iter::empty()), None);
    }
}
