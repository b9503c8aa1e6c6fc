//! Short pretokens get the ids that long ones get, whatever they begin with.

use super::*;
use crate::random::Random;
use std::collections::HashMap;

impl Random {
    fn is_it(&mut self) -> bool {
        self.below(2) == 0
    }
}

const LETTERS: [&str; 12] = ["a", "b", "<", "/", "w", ">", "▁", "é", "п", "中", "😀", "?"];
const SUFFIX: &str = "</w>";

/// A model over some of the letters, with merges in an order that has nothing to do with how they are made.
struct Hostile {
    input: Input,
    vocabulary: Vec<(String, u32)>,
    merges: Vec<(String, String)>,
    suffix: Option<&'static str>,
    unk_token: Option<&'static str>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
}

impl Hostile {
    fn new(random: &mut Random) -> Hostile {
        let suffix = random.is_it().then_some(SUFFIX);
        let (letters, rare) = LETTERS.split_at(if random.is_it() { LETTERS.len() } else { 9 });
        let input = [Input::Text, Input::Spaces('▁'), Input::Spaces('é'), Input::ByteAlphabet][random.below(4)];
        // Sometimes the alphabet is all there, and merges are of the bytes of the letters.
        let has_bytes = input == Input::ByteAlphabet && random.below(4) > 0;
        let mut tokens: Vec<String> = match has_bytes {
            true => LETTERS.concat().bytes().map(|byte| byte_alphabet::character_of(byte).to_string()).collect(),
            false => letters.iter().map(|&letter| letter.to_owned()).collect(),
        };
        tokens.sort_unstable();
        tokens.dedup();
        let ends = tokens.clone().into_iter().map(|letter| letter + suffix.unwrap_or("▁"));
        tokens.extend(ends.filter(|_| suffix.is_some() || random.below(4) == 0).collect::<Vec<_>>());
        let mut made: HashMap<String, ()> = HashMap::new();
        let mut merges = vec![];
        for _ in 0..random.below(90) {
            let sides = [random.below(tokens.len()), random.below(tokens.len())].map(|at| tokens[at].clone());
            let [left, right] = sides;
            // A suffix in the middle is a text like any other, but seldom.
            if left.len() + right.len() > 24
                || suffix.is_some_and(|suffix| left.ends_with(suffix)) && random.below(9) > 0
            {
                continue;
            }
            let token = format!("{left}{right}");
            if made.insert(token.clone(), ()).is_none() && !tokens.contains(&token) {
                tokens.push(token);
            }
            merges.push((left, right));
        }
        for place in (1..merges.len()).rev() {
            merges.swap(place, random.below(place + 1));
        }
        for byte in (0..=u8::MAX).filter(|_| has_bytes) {
            let symbol = byte_alphabet::character_of(byte).to_string();
            let ends = suffix.map(|suffix| format!("{symbol}{suffix}"));
            for token in [Some(symbol), ends].into_iter().flatten() {
                if !tokens.contains(&token) {
                    tokens.push(token);
                }
            }
        }
        let byte_fallback = random.is_it();
        if byte_fallback {
            let spared = random.below(2000);
            tokens.extend((0..256).filter(|&byte| byte != spared).map(|byte| format!("<0x{byte:02X}>")));
        }
        let unk_token = [None, Some("<unk>"), Some("?")][random.below(3)].filter(|unk| !rare.contains(unk));
        if let Some(unk) = unk_token.filter(|_| random.below(6) > 0) {
            if !tokens.iter().any(|token| token == unk) {
                tokens.push(unk.to_owned());
            }
        }
        let first = random.below(500) as u32;
        Hostile {
            input,
            vocabulary: tokens.into_iter().zip(first..).collect(),
            merges,
            suffix,
            unk_token,
            fuse_unk: random.is_it(),
            byte_fallback,
            ignore_merges: random.below(4) == 0,
        }
    }

    fn build(&self) -> Bpe {
        let model = spec::Bpe {
            vocab: spec::Vocab(self.vocabulary.iter().map(|(token, id)| (&**token, *id)).collect()),
            merges: self.merges.iter().map(|(left, right)| (&**left, &**right)).collect(),
            dropout: None,
            unk_token: self.unk_token,
            continuing_subword_prefix: None,
            end_of_word_suffix: self.suffix,
            fuse_unk: self.fuse_unk,
            byte_fallback: self.byte_fallback,
            ignore_merges: self.ignore_merges,
        };
        Bpe::build(&model, self.input).unwrap()
    }
}

impl Bpe {
    fn has_numbers_of_bytes(&self) -> bool {
        let characters = self.numbered.as_ref().and_then(|numbered| numbered.characters.as_ref());
        characters.is_some_and(|characters| !characters.of_bytes.is_empty())
    }
}

#[test]
fn short_pretokens_get_the_ids_of_long_ones() {
    let mut random = Random(7);
    let (mut numbered, mut merged, mut failed, mut of_bytes) = ([0; 4], 0, 0, 0);
    for _ in 0..if cfg!(miri) { 2 } else { 1800 } {
        let hostile = Hostile::new(&mut random);
        let model = hostile.build();
        numbered[usize::from(hostile.suffix.is_some()) + 2 * usize::from(hostile.byte_fallback)] +=
            usize::from(model.numbered.is_some());
        of_bytes += usize::from(model.has_numbers_of_bytes());
        let texts: Vec<String> = (0..40)
            .map(|_| {
                let most = if random.below(8) == 0 { 70 } else { 9 };
                let letter = |random: &mut Random| match random.below(14) {
                    0 => " ",
                    1 => SUFFIX,
                    2 => "ы",
                    _ => LETTERS[random.below(LETTERS.len())],
                };
                (0..random.below(most)).map(|_| letter(&mut random)).collect()
            })
            .collect();
        let pretokens: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let (mut scratch, mut ids, mut places) = (Scratch::default(), vec![], vec![]);
        model.encode_many(&pretokens, &mut scratch, &mut ids, &mut places);
        for (text, place) in texts.iter().zip(places) {
            let whole = model.whole.as_ref().and_then(|whole| whole.id(text.as_bytes()));
            let mut expected = vec![];
            let outcome = match whole {
                Some(id) => {
                    expected.push(id);
                    Ok(())
                }
                None => model.encode_long(text.as_bytes(), &mut scratch, &mut expected),
            };
            let found = place.map(|(first, end)| &ids[first as usize..end as usize]);
            assert_eq!(
                found,
                outcome.is_ok().then_some(&expected[..]),
                "{text:?} {:?} {:?}",
                hostile.input,
                hostile.merges
            );
            failed += usize::from(outcome.is_err());
            merged += usize::from(found.is_some_and(|found| found.len() + 1 < text.chars().count()));
            let mut alone = vec![];
            assert_eq!(model.encode(text.as_bytes(), &mut scratch, &mut alone).is_ok(), found.is_some());
            assert_eq!(found.unwrap_or_default(), alone);
        }
    }
    let is_enough = numbered.iter().take(3).all(|&count| count > 50) && merged > 5_000 && failed > 50 && of_bytes > 50;
    assert!(cfg!(miri) || is_enough, "{numbered:?} {merged} {failed} {of_bytes}");
}
