//! WordPiece: take the longest token that the pretoken begins with, then the longest inner one, and so on.
//!
//! The meaning stands in `engine/reference/models/wordpiece.py`. The trie has the vocabulary as it is: an inner token is
//! searched for from the node behind the prefix. Several pretokens go in rounds, one step each a round, so that the waits
//! for memory overlap.

mod starts;

use super::bpe::Input;
use super::trie::{Next, Trie, FIRST_SYMBOL, NOTHING, ROOT};
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{encode_each, PretokenModel, Token};
use crate::error::{Error, Result};
use crate::stored_struct;
use starts::Starts;

/// A WordPiece model for one form of pretokens.
pub struct WordPiece {
    /// The vocabulary.
    pub vocabulary: Vocabulary,
    input: Input,
    /// Gives the id.
    trie: Trie,
    prefix: String,
    /// Where inner tokens begin, where there are any.
    inner: Option<u32>,
    starts: Starts,
    unk_token: String,
    unk_id: Option<u32>,
    most_characters: usize,
}
stored_struct!(WordPiece { vocabulary, input, trie, prefix, inner, starts, unk_token, unk_id, most_characters });

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    text: String,
    walks: Vec<Walk>,
    /// The numbers of walks: those that go on, and those that have come to an end in this round.
    going: Vec<u32>,
    stopped: Vec<u32>,
}

/// How far a pretoken is: the longest token that begins at `start` is looked for up to `at`, where the next step leads.
#[derive(Clone, Copy, Default)]
struct Walk {
    next: Next,
    start: u32,
    at: u32,
    /// The longest so far.
    end: u32,
    id: u32,
    /// Where the next id goes.
    place: u32,
}

/// The symbols of the trie are bytes.
#[inline(always)]
fn symbol(byte: u8) -> u32 {
    FIRST_SYMBOL + u32::from(byte)
}

impl WordPiece {
    /// Build the model of a spec.
    pub fn build(
        entries: &[(&str, u32)],
        unk_token: &str,
        prefix: &str,
        most_characters: u64,
        input: Input,
    ) -> WordPiece {
        let vocabulary = Vocabulary::new(entries.iter().map(|&(token, id)| (token.as_bytes(), id)));
        let keys: Vec<(&[u8], u64)> = entries.iter().map(|entry| (entry.0.as_bytes(), u64::from(entry.1))).collect();
        let trie = Trie::new(&keys, symbol(u8::MAX) + 1, |rest| (symbol(rest[0]), 1));
        let inner = trie.node(prefix.bytes().map(symbol));
        WordPiece {
            input,
            inner,
            starts: Starts::new(&trie, inner),
            trie,
            prefix: prefix.to_owned(),
            unk_token: unk_token.to_owned(),
            unk_id: vocabulary.id(unk_token.as_bytes()),
            most_characters: usize::try_from(most_characters).unwrap_or(usize::MAX),
            vocabulary,
        }
    }

    /// The id of the unknown token, where the vocabulary has it.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    fn is_too_long(&self, text: &[u8]) -> bool {
        let is_first = |byte: &&u8| **byte & 0xC0 != 0x80;
        text.len() > self.most_characters && text.iter().filter(is_first).count() > self.most_characters
    }

    /// Give the pieces (end, id) of a pretoken; false: there is no way through.
    fn pieces(&self, text: &str, mut piece: impl FnMut(usize, u32)) -> bool {
        let text = text.as_bytes();
        let (mut start, mut root) = (0, Some(ROOT));
        while start < text.len() {
            let Some(mut node) = root.filter(|_| !self.is_too_long(text)) else { return false };
            let mut longest = None;
            for (at, &byte) in text.iter().enumerate().skip(start) {
                let Some((child, value)) = self.trie.follow(self.trie.next(node, symbol(byte))) else { break };
                if value != NOTHING {
                    longest = Some((at + 1, value as u32));
                }
                node = child;
            }
            let Some((end, id)) = longest else { return false };
            piece(end, id);
            (start, root) = (end, self.inner);
        }
        true
    }

    /// Begin a walk at `walk.end`; `is_there` is false where nothing is left to begin with. Gives whether it goes on.
    #[inline(always)]
    fn begin(&self, walk: &mut Walk, text: &[u8], is_inner: bool, is_there: bool) -> bool {
        let (at, last) = (walk.end as usize, text.len() - 1);
        // Past the end of the text its last byte is taken, so that nothing is to be foretold.
        let start = self.starts.get(is_inner, text[at.min(last)], text[(at + 1).min(last)], at < last);
        walk.start = walk.end;
        walk.end += start.length() & 0u32.wrapping_sub(u32::from(is_there));
        walk.at = walk.start + 2;
        walk.id = start.id;
        walk.next = start.next.with(symbol(text[(at + 2).min(last)]));
        self.trie.ask(walk.next);
        is_there & start.goes_on() & (at + 2 <= last)
    }

    /// Take pretokens to their ends. `going` has the numbers of those that go on, `stopped` of those that have stopped, as
    /// many of them as is told, and room for all.
    ///
    /// Where the walk for a token ends, and whether another one follows, nobody can foretell: so each round does the same
    /// for all that go on, and then for all that have stopped, and what becomes of them only tells on which list they come.
    fn walk(
        &self,
        pretokens: &[&[u8]],
        walks: &mut [Walk],
        (going, mut go_on): (&mut [u32], usize),
        (stopped, mut stop): (&mut [u32], usize),
        ids: &mut [u32],
    ) {
        let has_inner = self.inner.is_some();
        while go_on + stop > 0 {
            let count = std::mem::take(&mut go_on);
            for at in 0..count {
                let number = going[at];
                let (walk, text) = (&mut walks[number as usize], pretokens[number as usize]);
                let (has_come, child, value) = self.trie.look(walk.next);
                walk.at += u32::from(has_come);
                let is_token = 0u32.wrapping_sub(u32::from(has_come & (value != NOTHING)));
                walk.end ^= (walk.end ^ walk.at) & is_token;
                walk.id ^= (walk.id ^ value as u32) & is_token;
                walk.next = self.trie.next(child, symbol(text[(walk.at as usize).min(text.len() - 1)]));
                self.trie.ask(walk.next);
                let goes_on = has_come & self.trie.goes_on(child) & ((walk.at as usize) < text.len());
                going[go_on] = number;
                go_on += usize::from(goes_on);
                stopped[stop] = number;
                stop += usize::from(!goes_on);
            }
            let count = std::mem::take(&mut stop);
            for at in 0..count {
                let number = stopped[at];
                let (walk, text) = (&mut walks[number as usize], pretokens[number as usize]);
                let is_found = walk.end > walk.start;
                // There is room for one a byte; what is written here and not found has room, since a byte is left.
                ids[walk.place as usize] = walk.id;
                walk.place += u32::from(is_found);
                let is_there = is_found & has_inner & ((walk.end as usize) < text.len());
                let goes_on = self.begin(walk, text, true, is_there);
                going[go_on] = number;
                go_on += usize::from(goes_on);
                stopped[stop] = number;
                stop += usize::from(is_there & !goes_on);
            }
        }
    }

    fn unknown(&self, pretoken: &str) -> Result<u32> {
        self.unk_id.ok_or_else(|| {
            let (spelled, unk) = (quoted(pretoken), quoted(&self.unk_token));
            let message = format!("the vocabulary has no way to spell {spelled}, and no unknown token {unk}");
            Error::encode(message).at("$.model.unk_token")
        })
    }

    /// The tokens of a pretoken with their places.
    pub fn tokenize(&self, pretoken: &str, tokens: &mut Vec<Token>) -> Result<()> {
        let first = tokens.len();
        let mut start = 0;
        let is_spelled = self.pieces(pretoken, |end, id| {
            tokens.push(Token { id, start, end });
            start = end;
        });
        if !is_spelled {
            tokens.truncate(first);
            tokens.push(Token { id: self.unknown(pretoken)?, start: 0, end: pretoken.len() });
        }
        Ok(())
    }

    /// The string of a token that `tokenize` gave: an inner one with the prefix.
    pub fn value(&self, token: &Token, pretoken: &str) -> String {
        let prefix = if token.start > 0 { &self.prefix[..] } else { "" };
        let spelled = pretoken.get(token.start..token.end).map(|piece| format!("{prefix}{piece}"));
        let known = spelled.filter(|spelled| self.vocabulary.id(spelled.as_bytes()) == Some(token.id));
        known.unwrap_or_else(|| self.unk_token.clone())
    }
}

impl PretokenModel for WordPiece {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let text = written(self.input, pretoken, &mut scratch.text)?;
        let first = ids.len();
        if !self.pieces(text, |_, id| ids.push(id)) {
            ids.truncate(first);
            ids.push(self.unknown(text)?);
        }
        Ok(())
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        if self.input != Input::Text {
            return encode_each(self, pretokens, scratch, ids, places);
        }
        let Scratch { walks, going, stopped, .. } = scratch;
        walks.clear();
        places.clear();
        going.resize(pretokens.len().max(going.len()), 0);
        stopped.resize(going.len(), 0);
        let (mut go_on, mut stop) = (0, 0);
        let mut place = ids.len() as u32;
        for (number, text) in (0..).zip(pretokens) {
            let is_walked = !text.is_empty() && !self.is_too_long(text);
            let mut walk = Walk { place, ..Walk::default() };
            if is_walked {
                let goes_on = self.begin(&mut walk, text, false, true);
                going[go_on] = number;
                go_on += usize::from(goes_on);
                stopped[stop] = number;
                stop += usize::from(!goes_on);
            }
            walks.push(walk);
            places.push(Some((place, place)));
            // One a byte, and one for what is unknown though it is not walked.
            place += if is_walked { text.len() as u32 } else { 1 };
        }
        ids.resize(place as usize, 0);
        self.walk(pretokens, walks, (going, go_on), (stopped, stop), ids);
        for ((text, walk), place) in pretokens.iter().zip(walks).zip(places) {
            let first = place.map_or(0, |(first, _)| first);
            *place = if walk.end as usize == text.len() {
                Some((first, walk.place))
            } else {
                self.unk_id.map(|id| {
                    ids[first as usize] = id;
                    (first, first + 1)
                })
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(model: &WordPiece, pretoken: &str) -> Result<Vec<u32>> {
        let mut ids = vec![];
        model.encode(pretoken.as_bytes(), &mut Scratch::default(), &mut ids).map(|()| ids)
    }

    #[test]
    fn takes_the_longest_first() {
        let vocab = [("[UNK]", 0), ("un", 1), ("##aff", 2), ("##able", 3), ("##a", 4), ("una", 5), ("##", 6), ("é", 7)];
        let model = WordPiece::build(&vocab, "[UNK]", "##", 8, Input::Text);
        assert_eq!(ids(&model, "unaaff").expect("spelled"), [5, 2]);
        assert_eq!(ids(&model, "una").expect("spelled"), [5]);
        assert_eq!(ids(&model, "unff").expect("unknown"), [0]);
        assert_eq!(ids(&model, "##a").expect("spelled"), [4]);
        assert_eq!(ids(&model, "éaaaaaaa").expect("8 characters"), [7, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(ids(&model, "éaaaaaaaa").expect("unknown"), [0]);
        assert!(ids(&model, "").expect("nothing").is_empty());
    }

    #[test]
    fn tokens_have_places_and_values() {
        let vocab = [("é", 1), ("##b", u32::MAX)];
        let model = WordPiece::build(&vocab, "[UNK]", "##", 100, Input::Text);
        let mut tokens = vec![];
        model.tokenize("éb", &mut tokens).expect("spelled");
        assert_eq!(tokens, [Token { id: 1, start: 0, end: 2 }, Token { id: u32::MAX, start: 2, end: 3 }]);
        assert_eq!(model.value(&tokens[1], "éb"), "##b");
        let error = model.tokenize("éx", &mut tokens).expect_err("there is no [UNK]");
        assert_eq!(error.message, "the vocabulary has no way to spell 'éx', and no unknown token '[UNK]'");
    }

    #[test]
    fn many_at_once_are_the_same() {
        let vocab = [("[UNK]", 0), ("a", 1), ("##b", 2), ("##ab", 3), ("aba", 4), ("##é", 5), ("é", 6), ("##a", 7)];
        let longer = [("##babb", 8), ("aéé", 9), ("##ééa", 10), ("##x", 11), ("bbab", 12)];
        let vocab = [&vocab[..], &longer].concat();
        let parts = ["a", "b", "é", "ab", "a", "x"];
        let mut pretokens: Vec<String> = vec![];
        for number in 0..6usize.pow(5) {
            pretokens.push((0..1 + number as u32 % 5).map(|place| parts[number / 6usize.pow(place) % 6]).collect());
        }
        pretokens.extend(["ab".repeat(30), String::new(), "é".repeat(8), "é".repeat(9)]);
        let bytes: Vec<&[u8]> = pretokens.iter().map(|pretoken| pretoken.as_bytes()).collect();
        for (unk_token, prefix) in [("[UNK]", "##"), ("none", "##"), ("[UNK]", "nothing"), ("[UNK]", "")] {
            let model = WordPiece::build(&vocab, unk_token, prefix, 8, Input::Text);
            let (mut scratch, mut many, mut places) = (Scratch::default(), vec![], vec![]);
            model.encode_many(&bytes, &mut scratch, &mut many, &mut places);
            for (pretoken, place) in pretokens.iter().zip(places) {
                let found = place.map(|(start, end)| many[start as usize..end as usize].to_vec());
                assert_eq!(found, ids(&model, pretoken).ok(), "{pretoken:?}");
            }
        }
    }
}
