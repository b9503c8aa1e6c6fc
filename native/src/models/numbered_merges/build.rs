//! From the merges of a model to numbers: see `numbered_merges.rs`.

use super::pairs::Pairs;
use super::{Ids, NumberedMerges, Rows, LONGEST, NOBODY};
use crate::hash::FastMap;
use crate::models::byte_characters::{ByteCharacters, Parts};
use crate::models::characters::{CharacterNumbers, Numbering, NO_ID};
use crate::models::merges::{Merges, NO_RANK};
use crate::models::sure_pairs::{Class, SurePairs};
use crate::models::vocabulary::Vocabulary;

/// Work that a build may take for tokens that are odd: the squares of their lengths, added up.
const MOST_WORK: usize = 1 << 31;

/// The tokens by number, and what merges to them.
struct Numbers {
    ids: Ids,
    of_id: FastMap<u32, u32>,
    /// Left, right and merged.
    merges: Vec<[u32; 3]>,
    /// For each number above those of symbols, less their count, its merge.
    merge_of: Vec<u32>,
    symbols: u32,
}

impl Numbers {
    /// Behind the symbols that texts begin with (`NO_ID` is none) come the tokens, by their last merges: rank, left, right
    /// and id. None: there are too many, or one has two.
    fn new(mut ids: Vec<u32>, mut last: Vec<[u32; 4]>) -> Option<Numbers> {
        last.sort_unstable();
        let symbols = ids.len() as u32;
        let first_id = last.first().map_or(0, |merge| merge[3]);
        // Where ids are in the order of the ranks, numbers are in the same distances.
        let is_in_order = last.windows(2).all(|two| two[0][3] < two[1][3])
            && last.last().is_none_or(|merge| merge[3] - first_id < NOBODY / 2);
        let distance =
            |(place, merge): (usize, &[u32; 4])| if is_in_order { merge[3] - first_id } else { place as u32 };
        let numbers: Vec<u32> = last.iter().enumerate().map(|token| symbols + distance(token)).collect();
        if numbers.last().is_some_and(|&number| number >= NOBODY - 1) || symbols >= NOBODY - 1 {
            return None;
        }
        let of_symbols = ids.iter().copied().zip(0..).filter(|(id, _)| *id != NO_ID);
        let of_tokens = last.iter().map(|merge| merge[3]).zip(numbers.iter().copied());
        let numbered = of_symbols.chain(of_tokens);
        let of_id: FastMap<u32, u32> = numbered.clone().collect();
        if of_id.len() < numbered.count() {
            return None;
        }
        if !is_in_order {
            ids.extend(last.iter().map(|merge| merge[3]));
        }
        let mut merge_of = vec![0; numbers.last().map_or(0, |&number| (number - symbols) as usize + 1)];
        for (&number, merge) in numbers.iter().zip(0..) {
            merge_of[(number - symbols) as usize] = merge;
        }
        // The sides of a merge that has its turn come to be by merges that have theirs, or are there from the start.
        let merges = last.iter().map(|merge| [merge[1], merge[2], merge[3]].map(|id| of_id[&id])).collect();
        let ids = Ids { first: ids.into(), added: first_id.wrapping_sub(symbols) };
        Some(Numbers { ids, of_id, merges, merge_of, symbols })
    }

    /// The first and the last of the symbols that make a number.
    fn ends(&self, number: u32) -> (u32, u32) {
        let end = |side: usize| {
            let mut number = number;
            while let Some(above) = number.checked_sub(self.symbols) {
                number = self.merges[self.merge_of[above as usize] as usize][side];
            }
            number
        };
        (end(0), end(1))
    }

    fn into_merges(self, bytes: Option<ByteCharacters>, characters: Option<CharacterNumbers>) -> NumberedMerges {
        let ends = |number| self.ends(number);
        let sure = match &characters {
            None => {
                let class = |number| u8::try_from(number).ok().map(|number| Class { number, is_end: false });
                SurePairs::build(&self.merges, ends, class, false)
            }
            Some(characters) => characters.sure_pairs(&self.merges, ends),
        };
        let pairs = Pairs::build(&self.merges);
        NumberedMerges { pairs, sure, ids: self.ids, bytes, characters, unmerged: None }
    }
}

impl NumberedMerges {
    /// Build from the merges, the ids of bytes, and the tokens as bytes, of which pretokens may `stay_whole`. None: there are
    /// too many.
    pub fn of_bytes<'a>(
        merges: &Merges,
        bytes: &[u32; 256],
        tokens: impl Iterator<Item = (&'a [u8], u32)>,
        stay_whole: bool,
    ) -> Option<NumberedMerges> {
        let mut unmerged = vec![];
        let mut last = vec![];
        let mut symbols = vec![];
        let mut characters = vec![];
        let mut work = 0;
        for (token, id) in tokens.filter(|(token, _)| token.len() > 1) {
            symbols.clear();
            if token.len() <= LONGEST {
                symbols.extend(token.iter().map(|&byte| bytes[byte as usize]));
            }
            let Some(merge) = merge_of(merges, &mut symbols, id, &mut work)? else {
                unmerged.push((token, id));
                continue;
            };
            last.push(merge);
            let mut text = std::str::from_utf8(token).unwrap_or("").chars();
            if let (Some(character), None) = (text.next(), text.next()) {
                characters.push((character, id));
            }
        }
        let numbers = Numbers::new(bytes.to_vec(), last)?;
        let of_id = &numbers.of_id;
        let characters: Vec<(char, u32, Parts)> = characters
            .into_iter()
            .map(|(character, id)| {
                let (mut firsts, mut lasts, mut highest) = (vec![], vec![], 0);
                symbols.clear();
                symbols.extend(character.to_string().bytes().map(|byte| bytes[byte as usize]));
                last_merge(merges, &mut symbols, |symbols| {
                    let (first, last) = (of_id[&symbols[0]], of_id[&symbols[symbols.len() - 1]]);
                    firsts.push(first);
                    lasts.push(last);
                    highest = symbols.iter().map(|symbol| of_id[symbol]).fold(highest, u32::max);
                });
                let number = of_id[&id];
                (character, number, Parts { firsts, lasts, highest: highest.max(number) })
            })
            .collect();
        let characters = ByteCharacters::build(&numbers.merges, |number| numbers.ends(number), &characters)?;
        let mut built = numbers.into_merges(Some(characters), None);
        built.unmerged = stay_whole.then(|| Vocabulary::new(unmerged.into_iter()));
        Some(built)
    }

    /// Build from the merges and the numbers of characters. With `whole`, which has the pretokens that stay whole and their
    /// ids. None: there are too many, or one can be made in two ways.
    pub fn of_characters<'a>(
        merges: &Merges,
        Numbering { numbers: characters, ids, tokens }: Numbering,
        whole: Option<impl Iterator<Item = (&'a [u8], u32)>>,
    ) -> Option<NumberedMerges> {
        let mut last = vec![];
        let mut work = 0;
        for (mut symbols, id) in tokens.into_iter().filter(|(symbols, _)| (2..=LONGEST).contains(&symbols.len())) {
            last.extend(merge_of(merges, &mut symbols, id, &mut work)?);
        }
        let numbers = Numbers::new(ids, last)?;
        let mut built = numbers.into_merges(None, Some(characters));
        if let Some(whole) = whole {
            let (mut rows, mut ids, mut place) = (Rows::default(), vec![], [None]);
            let mut merges_to_itself = |token: &[u8], id: u32| {
                ids.clear();
                place[0] = None;
                built.merge(&[token], [0].into_iter(), &mut rows, &mut ids, &mut place);
                ids == [id]
            };
            let unmerged: Vec<(&[u8], u32)> = whole.filter(|&(token, id)| !merges_to_itself(token, id)).collect();
            built.unmerged = Some(Vocabulary::new(unmerged.into_iter()));
        }
        Some(built)
    }
}

/// The merge that makes a token of its symbols, if they make it: rank, left, right and id. None: that takes too much work.
#[allow(clippy::option_option)]
fn merge_of(merges: &Merges, symbols: &mut Vec<u32>, id: u32, work: &mut usize) -> Option<Option<[u32; 4]>> {
    *work += symbols.len() * symbols.len();
    if *work > MOST_WORK {
        return None;
    }
    let merge = last_merge(merges, symbols, |_| ());
    Some(merge.filter(|_| *symbols == [id]).map(|(rank, left, right)| [rank, left, right, id]))
}

/// The rank and the sides of the last merge of a row, which is worked off in place.
///
/// `before_each` sees the row before each of its merges.
fn last_merge(merges: &Merges, symbols: &mut Vec<u32>, mut before_each: impl FnMut(&[u32])) -> Option<(u32, u32, u32)> {
    let mut ranks: Vec<u32> = symbols.windows(2).map(|pair| merges.rank(pair[0], pair[1])).collect();
    let mut last = None;
    while let Some((place, &rank)) = ranks.iter().enumerate().min_by_key(|(_, &rank)| rank) {
        if rank == NO_RANK {
            break;
        }
        before_each(symbols);
        last = Some((rank, symbols[place], symbols[place + 1]));
        symbols[place] = merges.merged(rank);
        symbols.remove(place + 1);
        ranks.remove(place);
        if place < ranks.len() {
            ranks[place] = merges.rank(symbols[place], symbols[place + 1]);
        }
        if place > 0 {
            ranks[place - 1] = merges.rank(symbols[place - 1], symbols[place]);
        }
    }
    last
}
