//! New pretokens that wait for the model, the ends of documents that wait for them, and where in the ids they belong.

use super::key::Key;
use super::lists::{copy_some, AT_ONCE};
use super::{Output, BATCH};

/// So many pretokens that wait are enough.
pub const ENOUGH: usize = 128;
/// So many wait at most: a batch may come to what is not enough.
pub const MOST_WAITING: usize = ENOUGH - 1 + BATCH;

/// See the module.
#[derive(Default)]
pub struct Waiting {
    pretokens: Vec<Missing>,
    ends: Vec<End>,
    /// The ids behind the first place where some are missing.
    behind: Vec<u32>,
}

/// A pretoken whose ids are missing.
struct Missing {
    key: Key,
    /// Where it belongs in the table of short ones.
    home: u32,
    /// In the text.
    start: u32,
    end: u32,
    /// Where its ids belong, in the ids of what did not have to wait.
    at: usize,
}

/// The end of a document.
struct End {
    /// So many pretokens wait before it.
    after: usize,
    /// Where it is, in the ids of what did not have to wait.
    at: usize,
}

/// What no longer has to wait.
pub enum Released {
    /// A pretoken, by its number among those that wait.
    Pretoken(usize),
    /// The end of a document.
    End,
}

impl Waiting {
    /// Whether no pretoken waits.
    pub fn is_empty(&self) -> bool {
        self.pretokens.is_empty()
    }

    /// How many pretokens wait.
    pub fn len(&self) -> usize {
        self.pretokens.len()
    }

    /// Let a pretoken wait, which belongs behind so many ids.
    pub fn push(&mut self, key: Key, home: u32, (start, end): (u32, u32), at: usize) {
        self.pretokens.push(Missing { key, home, start, end, at });
    }

    /// Let a document end behind so many ids, and what waits.
    pub fn end(&mut self, at: usize) {
        self.ends.push(End { after: self.pretokens.len(), at });
    }

    /// Tell the pretokens that wait apart; gives the number of each.
    pub fn numbers<'t>(&self, text: &'t [u8], distinct: &mut Distinct<'t>, numbers: &mut Vec<usize>) {
        numbers.clear();
        numbers.extend(self.pretokens.iter().map(|&Missing { key, home, start, end, .. }| {
            distinct.number(key, home, &text[start as usize..end as usize])
        }));
    }

    /// Hand over all that waits, in order, with the ids before it, so that the ids of it can be appended.
    pub fn release(&mut self, output: &mut Output, mut hand_over: impl FnMut(Released, &mut Output)) {
        let Waiting { pretokens, ends, behind } = self;
        let mut done = pretokens.first().map_or(output.ids.len(), |first| first.at);
        let first = done;
        behind.clear();
        behind.extend_from_slice(&output.ids[first..]);
        let last = first + behind.len();
        // Then all few words are copied in a length that is known.
        behind.extend([0; AT_ONCE]);
        output.ids.truncate(first);
        let mut append_up_to = |at: usize, output: &mut Output| {
            copy_some(behind, done - first, at - done, output.ids);
            done = at;
        };
        let mut ends = ends.drain(..).peekable();
        for (number, missing) in pretokens.drain(..).enumerate() {
            while let Some(end) = ends.next_if(|end| end.after <= number) {
                append_up_to(end.at, output);
                hand_over(Released::End, output);
            }
            append_up_to(missing.at, output);
            hand_over(Released::Pretoken(number), output);
        }
        for end in ends {
            append_up_to(end.at, output);
            hand_over(Released::End, output);
        }
        append_up_to(last, output);
    }
}

/// Pretokens that wait, each once.
pub struct Distinct<'a> {
    // Vectors, since nobody has to write what is beyond their ends.
    pretokens: Vec<&'a [u8]>,
    /// And where they belong in the table of short ones.
    keys: Vec<(Key, u32)>,
    /// Open addressing: numbers of pretokens, plus one.
    slots: [u8; SLOTS],
}

/// Some four for each pretoken, since most often there are enough of them and few more.
const SLOTS: usize = 4 * ENOUGH;

impl<'a> Distinct<'a> {
    /// None.
    pub fn new() -> Distinct<'a> {
        const { assert!(MOST_WAITING <= u8::MAX as usize && SLOTS > MOST_WAITING) }
        Distinct {
            pretokens: Vec::with_capacity(MOST_WAITING),
            keys: Vec::with_capacity(MOST_WAITING),
            slots: [0; SLOTS],
        }
    }

    /// The number of a pretoken, which is added if it is not there yet.
    #[inline(always)]
    pub fn number(&mut self, key: Key, home: u32, pretoken: &'a [u8]) -> usize {
        let mut slot = key.long_hash().map_or(home as usize, |hash| hash as usize) % SLOTS;
        loop {
            let number = match self.slots[slot] {
                0 => break,
                number => number as usize - 1,
            };
            if self.keys[number].0 == key && (key.long_hash().is_none() || self.pretokens[number] == pretoken) {
                return number;
            }
            slot = (slot + 1) % SLOTS;
        }
        self.pretokens.push(pretoken);
        self.keys.push((key, home));
        self.slots[slot] = self.keys.len() as u8;
        self.keys.len() - 1
    }

    /// All of them, by number.
    pub fn pretokens(&self) -> &[&'a [u8]] {
        &self.pretokens
    }

    /// Their keys, and where they belong in the table of short ones.
    pub fn keys(&self) -> &[(Key, u32)] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_between_those_that_did_not_wait() {
        let mut waiting = Waiting::default();
        for at in [1, 1] {
            waiting.push(Key::NOTHING, 0, (0, 0), at);
        }
        waiting.end(2);
        waiting.end(2);
        for at in [3, 4, 4] {
            waiting.push(Key::NOTHING, 0, (0, 0), at);
        }
        waiting.end(4);
        let parts: [&[u32]; 5] = [&[10], &[], &[20, 21, 22], &[30], &[40]];
        let mut ids = vec![0, 1, 2, 3, 4];
        let mut output = Output { ids: &mut ids, failure: None };
        waiting.release(&mut output, |released, output| match released {
            Released::Pretoken(number) => output.ids.extend_from_slice(parts[number]),
            Released::End => output.ids.push(99),
        });
        assert_eq!(ids, [0, 10, 1, 99, 99, 2, 20, 21, 22, 3, 30, 40, 99, 4]);
        assert!(waiting.is_empty());
        waiting.release(&mut Output { ids: &mut ids, failure: None }, |_, _| unreachable!("nothing waits"));
        assert_eq!(ids.len(), 14);
    }

    #[test]
    fn each_pretoken_has_one_number() {
        let texts: Vec<String> = (0..MOST_WAITING).map(|number| format!("{number}")).collect();
        let mut distinct = Distinct::new();
        for _ in 0..2 {
            for (number, text) in texts.iter().enumerate() {
                // Long ones that have the same hash are told apart by their text.
                let key = if number % 2 == 0 { Key::of_long(7) } else { Key::of(text.as_bytes()) };
                assert_eq!(distinct.number(key, number as u32 / 8, text.as_bytes()), number);
            }
        }
        assert!(distinct.pretokens().iter().zip(&texts).all(|(pretoken, text)| *pretoken == text.as_bytes()));
    }
}
