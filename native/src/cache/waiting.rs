//! New pretokens that wait for the model, and where in the ids they belong.

use super::key::Key;

/// So many wait at most.
pub const MOST_WAITING: usize = 128;

/// A pretoken whose ids are missing.
#[derive(Clone, Copy)]
pub struct Waiting {
    pub key: Key,
    /// In the text.
    pub start: u32,
    pub end: u32,
    /// Where its ids belong, in the ids of what did not have to wait.
    pub at: usize,
}

/// Pretokens, each once.
pub struct Distinct<'a, const MOST: usize> {
    // Vectors, since nobody has to write what is beyond their ends.
    pretokens: Vec<&'a [u8]>,
    keys: Vec<Key>,
    /// Open addressing: numbers of pretokens, plus one.
    slots: [u16; SLOTS],
}

/// More than twice as many as there can be pretokens.
const SLOTS: usize = 1024;

impl<'a, const MOST: usize> Distinct<'a, MOST> {
    /// None.
    pub fn new() -> Distinct<'a, MOST> {
        const { assert!(2 * MOST <= SLOTS) }
        Distinct { pretokens: Vec::with_capacity(MOST), keys: Vec::with_capacity(MOST), slots: [0; SLOTS] }
    }

    /// The number of a pretoken, which is added if it is not there yet.
    #[inline(always)]
    pub fn number(&mut self, key: Key, pretoken: &'a [u8]) -> usize {
        let mut slot = (key.hash(None) >> 54) as usize;
        loop {
            let number = match self.slots[slot] {
                0 => break,
                number => number as usize - 1,
            };
            if self.keys[number] == key && (key.long_hash().is_none() || self.pretokens[number] == pretoken) {
                return number;
            }
            slot = (slot + 1) % SLOTS;
        }
        self.pretokens.push(pretoken);
        self.keys.push(key);
        self.slots[slot] = self.keys.len() as u16;
        self.keys.len() - 1
    }

    /// All of them, by number.
    pub fn pretokens(&self) -> &[&'a [u8]] {
        &self.pretokens
    }

    /// Their keys.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }
}

/// Put ids where they belong: those of each one that waited, in order.
pub fn put_between<'a>(
    ids: &mut Vec<u32>,
    waiting: &[Waiting],
    parts: impl DoubleEndedIterator<Item = &'a [u32]> + ExactSizeIterator + Clone,
) {
    let mut end = ids.len();
    let total: usize = parts.clone().map(<[u32]>::len).sum();
    ids.resize(end + total, 0);
    let mut free = end + total;
    for (waiting, part) in waiting.iter().zip(parts).rev() {
        free -= end - waiting.at;
        ids.copy_within(waiting.at..end, free);
        end = waiting.at;
        free -= part.len();
        ids[free..free + part.len()].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_between_those_that_did_not_wait() {
        let waiting = [0, 0, 2, 3, 3].map(|at| Waiting { key: Key::NOTHING, start: 0, end: 0, at });
        let mut ids = vec![1, 2, 3];
        let parts: [&[u32]; 5] = [&[10], &[], &[20, 21, 22], &[30], &[40]];
        put_between(&mut ids, &waiting, parts.into_iter());
        assert_eq!(ids, [10, 1, 2, 20, 21, 22, 3, 30, 40]);
        put_between(&mut ids, &[], std::iter::empty());
        assert_eq!(ids.len(), 9);
    }

    #[test]
    fn each_pretoken_has_one_number() {
        let texts: Vec<String> = (0..256).map(|number| format!("{number}")).collect();
        let mut distinct = Distinct::<256>::new();
        for _ in 0..2 {
            for (number, text) in texts.iter().enumerate() {
                // Long ones that have the same hash are told apart by their text.
                let key = if number % 2 == 0 { Key::of_long(7) } else { Key::of(text.as_bytes()) };
                assert_eq!(distinct.number(key, text.as_bytes()), number);
            }
        }
        assert!(distinct.pretokens().iter().zip(&texts).all(|(pretoken, text)| *pretoken == text.as_bytes()));
    }
}
