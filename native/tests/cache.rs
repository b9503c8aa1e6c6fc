//! The pretoken cache gives what the model gives, whatever it has seen before: random pretokens of all lengths, in columns
//! and one by one. It writes past the length of a vector it has made room in, so Miri runs this too (`make test-native`).

mod random;

use random::Random;
use tokbatch_native::cache::{Cache, Event, Output, SKIP};
use tokbatch_native::error::{Error, Result};
use tokbatch_native::models::PretokenModel;

/// Gives a pretoken some ids of its own, none to many, and fails at an exclamation mark.
struct Echo;

impl PretokenModel for Echo {
    type Scratch = ();

    fn encode(&self, pretoken: &[u8], _: &mut (), ids: &mut Vec<u32>) -> Result<()> {
        if pretoken.contains(&b'!') {
            return Err(Error::encode(format!("an exclamation mark in {pretoken:?}")));
        }
        let sum = pretoken
            .iter()
            .fold(pretoken.len() as u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        // Of the numbers on either side of what is copied at once, and ids that have all bits.
        let count = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 40][sum as usize % 11];
        ids.extend((0..count).map(|place| sum.wrapping_mul(2_654_435_761) >> (4 * (sum % 2)) ^ place));
        Ok(())
    }
}

impl Random {
    fn pretoken(&mut self, letters: &[u8]) -> Vec<u8> {
        let length = match self.below(40) {
            0 => 14 + self.below(4),
            1 => 1000 + self.below(50),
            2 => 20 + self.below(200),
            _ => 1 + self.below(8),
        };
        // Many have the same first eight bytes, and of many these are zeros.
        let mut pretoken = [&b""[..], b"", b"aaaaaaaa", b"abcdefgh", &[0; 8]][self.below(5)].to_vec();
        pretoken.extend((0..length).map(|_| letters[self.below(letters.len())]));
        pretoken
    }
}

const ROUNDS: usize = if cfg!(miri) { 12 } else { 600 };

/// What the cache makes of pretokens; an end of the document, or an id, comes before one of `rarity`.
fn check(cache: &mut Cache<()>, random: &mut Random, letters: &[u8], count: usize, rarity: usize) {
    let (mut text, mut starts, mut events) = (vec![], vec![], vec![]);
    // The ids of each document, or its first failure.
    let mut expected: Vec<std::result::Result<Vec<u32>, String>> = vec![Ok(vec![])];
    for span in 0..count {
        if random.below(rarity) == 0 {
            let event = if random.below(2) == 0 { Event::EndOfDocument } else { Event::Id(1_000_000) };
            events.push((span as u32, event));
            match event {
                Event::EndOfDocument => expected.push(Ok(vec![])),
                Event::Id(id) => expected.last_mut().unwrap().iter_mut().for_each(|ids| ids.push(id)),
            }
        }
        let is_skipped = random.below(8) == 0;
        let pretoken = random.pretoken(letters);
        starts.push(text.len() as u32 | if is_skipped { SKIP } else { 0 });
        if !is_skipped {
            let document = expected.last_mut().unwrap();
            let outcome = document.as_mut().map_or(Ok(()), |ids| Echo.encode(&pretoken, &mut (), ids));
            if let Err(error) = outcome {
                *document = Err(error.message);
            }
        }
        text.extend(pretoken);
    }
    starts.push(text.len() as u32);
    events.push((count as u32, Event::EndOfDocument));
    let mut ids = vec![];
    let (mut documents, mut first) = (vec![], 0);
    let mut output = Output { ids: &mut ids, failure: None };
    cache.encode(&Echo, &text, &starts, &events, &mut output, |event, output| match event {
        Event::Id(id) => output.ids.push(id),
        Event::EndOfDocument => {
            let document = output.ids[first..].to_vec();
            documents.push(output.failure.take().map_or(Ok(document), |error| Err(error.message)));
            first = output.ids.len();
        }
    });
    assert_eq!(documents, expected);
}

#[test]
fn columns_get_the_ids_of_the_model() {
    let mut random = Random(42);
    let mut cache = Cache::new(1);
    for round in 0..ROUNDS {
        let letters: &[u8] = match round % 4 {
            0 => b"ab",
            1 => b"abcdefghijklmnopqrstuvwxyz",
            2 => b"\0\x01\x02",
            _ => b"abcdefghijklmnopqrs!",
        };
        let count = if cfg!(miri) { random.below(300) } else { random.below(2000) };
        check(&mut cache, &mut random, letters, count, if round % 2 == 0 { 10 } else { 1500 });
    }
}

#[test]
fn single_pretokens_get_the_ids_of_the_model() {
    let mut random = Random(7);
    let mut cache = Cache::new(1);
    for _ in 0..20 * ROUNDS {
        let pretoken = random.pretoken(b"abcd!");
        let (mut ids, mut expected) = (vec![5], vec![5]);
        let outcome = cache.encode_one(&Echo, &pretoken, &mut ids);
        assert_eq!(outcome.is_err(), Echo.encode(&pretoken, &mut (), &mut expected).is_err());
        assert_eq!(ids, expected);
    }
}
