//! Rows get the ids that the heap gives, whatever the order of the merges.

use super::*;
use crate::hash::FastMap;
use crate::models::merges::{LongRow, Merges};
use crate::random::Random;

const CHARACTERS: [&str; 8] = ["a", "b", " ", "п", "о", "中", "丯", "😀"];

/// Tokens of parts of characters and of several, by merges in an order that has nothing to do with how they are made.
/// The bytes have the ids from 1000 on, downwards.
fn hostile(random: &mut Random) -> (Merges, [u32; 256], FastMap<Vec<u8>, u32>) {
    let bytes: [u32; 256] = std::array::from_fn(|byte| 1000 - byte as u32);
    let mut tokens: FastMap<Vec<u8>, u32> = (0..=255u8).map(|byte| (vec![byte], bytes[byte as usize])).collect();
    let letters: Vec<u8> = CHARACTERS.concat().into_bytes();
    let mut known: Vec<Vec<u8>> = letters.iter().map(|&byte| vec![byte]).collect();
    let mut merges = vec![];
    let is_tame = random.below(2) == 0;
    for character in CHARACTERS.iter().filter(|_| is_tame) {
        for end in 2..=character.len() {
            let (left, right) = (character.as_bytes()[..end - 1].to_vec(), character.as_bytes()[end - 1..end].to_vec());
            let token = [&left[..], &right[..]].concat();
            let next = tokens.len() as u32 + 2000;
            merges.push((tokens[&left], tokens[&right], *tokens.entry(token.clone()).or_insert(next)));
            known.push(token);
        }
    }
    let first = merges.len();
    for _ in 0..random.below(120) {
        let (left, right) = (known[random.below(known.len())].clone(), known[random.below(known.len())].clone());
        let token = [&left[..], &right[..]].concat();
        if token.len() <= 20 {
            let next = tokens.len() as u32 + 2000;
            merges.push((tokens[&left], tokens[&right], *tokens.entry(token.clone()).or_insert(next)));
            known.push(token);
        }
    }
    let shuffled = if random.below(2) == 0 { 0 } else { first };
    for place in (shuffled + 1..merges.len()).rev() {
        merges.swap(place, shuffled + random.below(place - shuffled + 1));
    }
    (Merges::new(&merges).unwrap(), bytes, tokens)
}

/// What the heap makes of a text.
fn expected(merges: &Merges, bytes: &[u32; 256], text: &[u8]) -> Vec<u32> {
    let mut symbols: Vec<u32> = text.iter().map(|&byte| bytes[byte as usize]).collect();
    let mut row = LongRow::default();
    merges.merge_long(&mut symbols, &mut row);
    (0..text.len()).filter(|&at| row.is_first(at)).map(|at| symbols[at]).collect()
}

#[test]
fn rows_of_bytes_are_merged_as_the_heap_does() {
    let mut random = Random(99);
    let (mut whole_characters, mut first_merged) = (0, 0);
    let mut room = Room { numbers: [0; LONGEST], classes: [0; LONGEST], found: [Found::default(); LONGEST + 1] };
    for _ in 0..if cfg!(miri) { 3 } else { 1500 } {
        let (merges, bytes, tokens) = hostile(&mut random);
        let entries = tokens.iter().map(|(token, &id)| (&token[..], id));
        let mut numbered = NumberedMerges::of_bytes(&merges, &bytes, entries, true).unwrap();
        assert!(numbered.sure.tells_borders());
        if random.below(3) == 0 {
            numbered.sure.forget_borders();
        }
        let unmerged = numbered.unmerged.as_ref().expect("it was wanted");
        for (token, &id) in &tokens {
            let merged = expected(&merges, &bytes, token) == [id];
            assert_eq!(unmerged.id(token), (!merged).then_some(id), "{token:?}");
        }
        let texts: Vec<Vec<u8>> = (0..40)
            .map(|_| {
                let mut text = vec![];
                let most = if random.below(8) == 0 { 50 } else { 9 };
                for _ in 0..random.below(most) {
                    let character = CHARACTERS[random.below(CHARACTERS.len())].as_bytes();
                    // Sometimes without its first or last byte.
                    let cut = if character.len() > 1 { random.below(12) } else { 2 };
                    text.extend(&character[usize::from(cut == 0)..character.len() - usize::from(cut == 1)]);
                }
                text
            })
            .collect();
        let pretokens: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        // What stands in the places before does not count.
        let (mut ids, mut places) = (vec![], vec![Some((7, 9)); pretokens.len()]);
        numbered.merge(&pretokens, 0..pretokens.len() as u32, &mut Rows::default(), &mut ids, &mut places);
        for (text, place) in texts.iter().zip(places) {
            let expected = expected(&merges, &bytes, text);
            match place {
                Some((first, end)) => assert_eq!(ids[first as usize..end as usize], expected, "{text:?}"),
                None => assert!(text.len() > SHORT),
            }
            let bytes = numbered.bytes.as_ref().expect("it is of bytes");
            whole_characters += (0..text.len()).filter(|&at| bytes.at(text, at).1 > 1).count();
            bytes.write(&text[..text.len().min(LONGEST)], &numbered.sure, &mut room, |symbol, _| {
                first_merged += usize::from(symbol >= 256);
            });
        }
    }
    assert!(cfg!(miri) || whole_characters > 10_000, "{whole_characters}");
    assert!(cfg!(miri) || first_merged > whole_characters + 10_000, "{first_merged}");
}
