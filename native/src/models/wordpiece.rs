//! WordPiece: take the longest token that the pretoken begins with, then the longest inner one, and so on.
//!
//! The meaning stands in `engine/reference/models/wordpiece.py`. The trie has the vocabulary as it is: an inner token is
//! searched for from the node behind the prefix. Several pretokens are in work at a time, as in `unigram.rs`.

use super::bpe::Input;
use super::trie::{Next, Trie, FIRST_SYMBOL, NOTHING, ROOT};
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{encode_each, PretokenModel, Token};
use crate::error::{Error, Result};
use crate::stored_struct;

/// Pretokens that are in work side by side.
const LANES: usize = 16;

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
    unk_token: String,
    unk_id: Option<u32>,
    most_characters: usize,
}
stored_struct!(WordPiece { vocabulary, input, trie, prefix, inner, unk_token, unk_id, most_characters });

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    text: String,
    pieces: [Vec<u32>; LANES],
}

/// A pretoken at work: the longest token that begins at `start` is looked for up to `at`, where the next step leads.
#[derive(Default)]
struct Lane<'a> {
    number: usize,
    text: &'a [u8],
    ids: Vec<u32>,
    start: usize,
    at: usize,
    /// The longest so far.
    end: usize,
    id: u32,
    next: Next,
}

/// How it stands with a pretoken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    GoesOn,
    IsDone,
    IsUnknown,
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
        WordPiece {
            input,
            inner: trie.node(prefix.bytes().map(symbol)),
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

    /// Begin with a text.
    #[inline(always)]
    fn load<'a>(&self, number: usize, text: &'a [u8], lane: &mut Lane<'a>) -> State {
        (lane.number, lane.text) = (number, text);
        lane.ids.clear();
        match self.is_too_long(text) {
            true => State::IsUnknown,
            false => self.begin(0, ROOT, lane),
        }
    }

    /// Begin to look for the token that begins at a place.
    #[inline(always)]
    fn begin(&self, start: usize, node: u32, lane: &mut Lane) -> State {
        let Some(&byte) = lane.text.get(start) else { return State::IsDone };
        (lane.start, lane.at, lane.end) = (start, start, start);
        lane.next = self.trie.next(node, symbol(byte));
        self.trie.ask(lane.next);
        State::GoesOn
    }

    /// Do what can be done without waiting for memory, and ask for what is needed next. `piece` takes the end and the id of
    /// a token.
    #[inline(always)]
    fn turn(&self, lane: &mut Lane, mut piece: impl FnMut(&mut Lane, usize, u32)) -> State {
        if let Some((node, value)) = self.trie.follow(lane.next) {
            lane.at += 1;
            if value != NOTHING {
                (lane.end, lane.id) = (lane.at, value as u32);
            }
            if let Some(&byte) = lane.text.get(lane.at) {
                lane.next = self.trie.next(node, symbol(byte));
                self.trie.ask(lane.next);
                return State::GoesOn;
            }
        }
        let (end, id) = (lane.end, lane.id);
        if end == lane.start {
            return State::IsUnknown;
        }
        piece(lane, end, id);
        match self.inner {
            Some(inner) => self.begin(end, inner, lane),
            None if end < lane.text.len() => State::IsUnknown,
            None => State::IsDone,
        }
    }

    /// Give the pieces (end, id) of a pretoken; false: there is no way through.
    fn pieces(&self, text: &str, mut piece: impl FnMut(usize, u32)) -> bool {
        let mut lane = Lane::default();
        let mut state = self.load(0, text.as_bytes(), &mut lane);
        while state == State::GoesOn {
            state = self.turn(&mut lane, |_, end, id| piece(end, id));
        }
        state == State::IsDone
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
        places.clear();
        places.resize(pretokens.len(), None);
        let mut todo = pretokens.iter().enumerate();
        let mut lanes: [Lane; LANES] = Default::default();
        let mut states = [State::IsDone; LANES];
        let mut count = 0;
        for ((lane, pieces), state) in lanes.iter_mut().zip(&mut scratch.pieces).zip(&mut states) {
            lane.ids = std::mem::take(pieces);
            if let Some((number, text)) = todo.next() {
                *state = self.load(number, text, lane);
                count += 1;
            }
        }
        while count > 0 {
            let mut at = 0;
            while at < count {
                let lane = &mut lanes[at];
                if states[at] == State::GoesOn {
                    states[at] = self.turn(lane, |lane, _, id| lane.ids.push(id));
                }
                if states[at] == State::GoesOn {
                    at += 1;
                    continue;
                }
                let first = ids.len() as u32;
                let is_spelled = states[at] == State::IsDone;
                match self.unk_id {
                    _ if is_spelled => ids.extend_from_slice(&lane.ids),
                    Some(unk_id) => ids.push(unk_id),
                    None => {}
                }
                places[lane.number] = (is_spelled || self.unk_id.is_some()).then_some((first, ids.len() as u32));
                match todo.next() {
                    Some((number, text)) => states[at] = self.load(number, text, lane),
                    None => {
                        count -= 1;
                        lanes.swap(at, count);
                        states.swap(at, count);
                    }
                }
            }
        }
        for (lane, pieces) in lanes.iter_mut().zip(&mut scratch.pieces) {
            *pieces = std::mem::take(&mut lane.ids);
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
        let parts = ["a", "b", "é", "ab", "a", "x"];
        let mut pretokens: Vec<String> = vec![];
        for number in 0..6usize.pow(4) {
            pretokens.push((0..1 + number as u32 % 4).map(|place| parts[number / 6usize.pow(place) % 6]).collect());
        }
        pretokens.push("ab".repeat(30));
        let bytes: Vec<&[u8]> = pretokens.iter().map(|pretoken| pretoken.as_bytes()).collect();
        for (unk_token, prefix) in [("[UNK]", "##"), ("none", "##"), ("[UNK]", "nothing")] {
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
