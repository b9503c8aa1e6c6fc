//! Unigram: the segmentation whose log probabilities have the highest sum, found from left to right (Viterbi).
//!
//! The meaning stands in `engine/reference/models/unigram.py`: the same sums of 64-bit floats in the same order, and of
//! equal sums the one whose last token begins further left. Here the tokens that end at a place come from an automaton
//! (`automaton.rs`), and then the best way to each place is found (`ways.rs`).
//!
//! The automaton is larger than the nearer caches, so steps in it wait. So several texts are walked along side by side.

mod automaton;
mod ways;

use super::alphabet::Alphabet;
use super::bpe::Input;
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{PretokenModel, Token};
use crate::byte_alphabet;
use crate::error::{Error, Result};
use crate::table_file::TableWriter;
use crate::tables::{Stored, TableReader};
use automaton::Automaton;
use ways::Ways;

const UNKNOWN_PENALTY: f64 = 10.0;
/// Instead of an id: a character that no token is.
const UNKNOWN: u32 = u32::MAX;
/// Texts are put together up to so many characters, so that what is known of them stays in the nearest cache.
const ENOUGH: usize = 1 << 12;

/// A Unigram model for one form of pretokens.
pub struct Unigram {
    /// The vocabulary; of a token that is there twice, this has both ids.
    pub vocabulary: Vocabulary,
    input: Input,
    alphabet: Alphabet,
    /// The symbols of what is one byte in pretokens.
    short: [u32; 128],
    automaton: Automaton,
    unk_id: Option<u32>,
    byte_ids: Option<Box<[Option<u32>; 256]>>,
}

impl Stored for Unigram {
    fn put(&self, tables: &mut TableWriter) {
        let Unigram { vocabulary, input, alphabet, short, automaton, unk_id, byte_ids } = self;
        vocabulary.put(tables);
        input.put(tables);
        alphabet.put(tables);
        short.put(tables);
        automaton.put(tables);
        unk_id.put(tables);
        byte_ids.is_some().put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Unigram> {
        let mut model = Unigram {
            vocabulary: Stored::take(tables)?,
            input: Stored::take(tables)?,
            alphabet: Stored::take(tables)?,
            short: Stored::take(tables)?,
            automaton: Stored::take(tables)?,
            unk_id: Stored::take(tables)?,
            byte_ids: None,
        };
        model.byte_ids = bool::take(tables)?.then(|| model.ids_of_bytes());
        Ok(model)
    }
}

/// A token of the best way, or a run of unknown ones: its end, its start, and its id, or `UNKNOWN`.
type Piece = (usize, usize, u32);

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    written: String,
    ways: Ways,
    pieces: Vec<Piece>,
}

impl Unigram {
    /// Build the model of a spec.
    pub fn build(entries: &[(&str, f64)], unk_id: Option<u64>, byte_fallback: bool, input: Input) -> Unigram {
        let keys: Vec<(&[u8], u64)> = entries.iter().zip(0..).map(|(entry, id)| (entry.0.as_bytes(), id)).collect();
        let alphabet = Alphabet::new(entries.iter().map(|entry| entry.0));
        let mut short = std::array::from_fn(|byte| alphabet.symbol(byte as u32));
        if let Input::Spaces(mark) = input {
            short[usize::from(b' ')] = alphabet.symbol(mark as u32);
        }
        let lowest = entries.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
        let score = |id| entries[id as usize].1;
        let automaton =
            Automaton::new(&keys, score, lowest - UNKNOWN_PENALTY, alphabet.end(), |rest| alphabet.first(rest));
        let mut model = Unigram {
            vocabulary: Vocabulary::new(keys.iter().map(|&(key, id)| (key, id as u32))),
            input,
            alphabet,
            short,
            automaton,
            unk_id: unk_id.and_then(|id| u32::try_from(id).ok()),
            byte_ids: None,
        };
        model.byte_ids = byte_fallback.then(|| model.ids_of_bytes());
        model
    }

    /// The ids of `<0x00>` to `<0xFF>`.
    fn ids_of_bytes(&self) -> Box<[Option<u32>; 256]> {
        Box::new(std::array::from_fn(|byte| self.token_to_id(format!("<0x{byte:02X}>").as_bytes())))
    }

    /// The id of the unknown token, where there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// The id of a token; the last one where it is there twice.
    pub fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        self.automaton.id(self.alphabet.symbols_of(token))
    }

    /// The ids of `<0x00>` to `<0xFF>`, those that there are, where the model falls back to bytes.
    pub fn byte_token_ids(&self) -> Vec<u32> {
        self.byte_ids.iter().flat_map(|ids| ids.iter().copied().flatten()).collect()
    }

    fn unknown(&self, spelled: &[u8]) -> Result<u32> {
        self.unk_id.ok_or_else(|| {
            let spelled = quoted(&String::from_utf8_lossy(spelled));
            let message = format!("the vocabulary has no way to spell {spelled}, and the file names no unknown token");
            Error::encode(message).at("$.model.unk_id")
        })
    }

    /// Add a text in the form of pretokens.
    fn add(&self, text: &[u8], ways: &mut Ways) {
        ways.add(|symbols| {
            let mut rest = text;
            while let Some(&byte) = rest.first() {
                let (symbol, length) = match self.short.get(usize::from(byte)) {
                    Some(&symbol) => (symbol, 1),
                    None => self.alphabet.first(rest),
                };
                symbols.push(symbol);
                rest = &rest[length..];
            }
        });
    }

    /// The number of the first character that nothing spells, if there is no unknown token: no better way leads behind it.
    fn failure(&self, (start, end): (usize, usize), ways: &Ways) -> Option<usize> {
        let is_unknown = |symbol| ways.last(symbol) == self.automaton.unknown();
        self.unk_id.is_none().then(|| (start..end).position(is_unknown)).flatten()
    }

    /// Append the pieces of a text along its best way, from the end to the beginning. Adjacent pieces that are the unknown
    /// token are one, and the unknown token as text (`<unk>`) counts as such a piece, too.
    fn find_pieces(&self, (start, end): (usize, usize), ways: &Ways, pieces: &mut Vec<Piece>) {
        let mut at = end;
        let mut run_end = end;
        while at > start {
            let id = ways.last(at - 1);
            let start = at - self.automaton.entries()[id as usize].length as usize;
            if !self.is_unknown(id) {
                if at < run_end {
                    pieces.push((run_end, at, self.id_of_run(ways.symbols(at, run_end))));
                }
                pieces.push((at, start, id));
                run_end = start;
            }
            at = start;
        }
        if run_end > start {
            pieces.push((run_end, start, self.id_of_run(ways.symbols(start, run_end))));
        }
    }

    /// Whether this is the unknown token, or a character that is none.
    #[inline(always)]
    fn is_unknown(&self, number: u32) -> bool {
        (number == self.automaton.unknown()) | (Some(number) == self.unk_id)
    }

    /// A run of unknown pieces can be a token.
    fn id_of_run(&self, symbols: &[u32]) -> u32 {
        self.automaton.id(symbols.iter().copied()).unwrap_or(UNKNOWN)
    }

    /// Give the ids of an unknown piece: those of its bytes, or that of the unknown token.
    fn ids_of_unknown(&self, spelled: &[u8], give: impl FnMut(u32)) -> Result<()> {
        match &self.byte_ids {
            Some(ids) if spelled.iter().all(|&byte| ids[byte as usize].is_some()) => {
                spelled.iter().filter_map(|&byte| ids[byte as usize]).for_each(give);
                Ok(())
            }
            _ => self.unknown(spelled).map(give),
        }
    }

    /// The tokens of a text as the vocabulary writes it: their ids, and where they begin and end in bytes.
    fn with_pieces(&self, text: &str, scratch: &mut Scratch, give: impl FnMut(u32, usize, usize)) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::encode("a pretoken of more than 4 GiB"));
        }
        let Scratch { ways, pieces, .. } = scratch;
        ways.clear();
        self.add(text.as_bytes(), ways);
        ways.find(&self.automaton);
        let bounds = (0, ways.length() - 1);
        if let Some(failure) = self.failure(bounds, ways) {
            let character = text.chars().nth(failure).map(String::from).unwrap_or_default();
            self.unknown(character.as_bytes())?;
        }
        pieces.clear();
        self.find_pieces(bounds, ways, pieces);
        self.ids_of_pieces(text, pieces, give)
    }

    /// Give the ids of the pieces of a text as the vocabulary writes it, and where they begin and end in bytes.
    fn ids_of_pieces(&self, text: &str, pieces: &[Piece], mut give: impl FnMut(u32, usize, usize)) -> Result<()> {
        let mut start = 0;
        for &(piece_end, piece_start, id) in pieces.iter().rev() {
            let mut characters = text[start..].char_indices();
            let end = characters.nth(piece_end - piece_start).map_or(text.len(), |(length, _)| start + length);
            match id {
                UNKNOWN => self.ids_of_unknown(&text.as_bytes()[start..end], |id| give(id, start, end))?,
                id => give(id, start, end),
            }
            start = end;
        }
        Ok(())
    }

    /// Append the ids of all texts, which are these pretokens.
    fn encode_texts(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        scratch.ways.find(&self.automaton);
        // There is room for one a symbol, and they are found from the end on.
        let first = ids.len();
        ids.resize(first + scratch.ways.length(), 0);
        let entries = self.automaton.entries();
        for (number, pretoken) in pretokens.iter().enumerate() {
            let bounds = scratch.ways.bounds(number);
            let (mut place, mut at) = (first + bounds.1, bounds.1);
            // Without an unknown token a place off the best way may fail.
            let mut is_odd = self.unk_id.is_none();
            while at > bounds.0 {
                let id = scratch.ways.last(at - 1);
                place -= 1;
                ids[place] = id;
                is_odd |= self.is_unknown(id);
                at -= entries[id as usize].length as usize;
            }
            places.push(match is_odd {
                false => Some((place as u32, (first + bounds.1) as u32)),
                true => self.encode_odd(pretoken, bounds, scratch, ids),
            });
        }
        scratch.ways.clear();
    }

    /// Append the ids of a text that has unknown pieces. None: it fails.
    fn encode_odd(
        &self,
        pretoken: &[u8],
        bounds: (usize, usize),
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) -> Option<(u32, u32)> {
        let Scratch { written: room, ways, pieces } = scratch;
        if self.failure(bounds, ways).is_some() {
            return None;
        }
        pieces.clear();
        self.find_pieces(bounds, ways, pieces);
        let first = ids.len();
        if self.byte_ids.is_some() && pieces.iter().any(|piece| piece.2 == UNKNOWN) {
            let text = written(self.input, pretoken, room).ok()?;
            self.ids_of_pieces(text, pieces, |id, _, _| ids.push(id)).ok()?;
        } else {
            // There is an unknown token, or it would be a failure.
            let id = |piece: &Piece| if piece.2 == UNKNOWN { self.unk_id.unwrap_or_default() } else { piece.2 };
            ids.extend(pieces.iter().rev().map(id));
        }
        Some((first as u32, ids.len() as u32))
    }

    /// The tokens of a pretoken with their places. The bytes of a run each cover all of the run.
    pub fn tokenize(&self, pretoken: &str, scratch: &mut Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.with_pieces(pretoken, scratch, |id, start, end| tokens.push(Token { id, start, end }))
    }

    /// The string of a token that `tokenize` gave: that of an unknown token is the text that it stands for.
    pub fn value(&self, token: &Token, pretoken: &str) -> String {
        let spelled = pretoken.get(token.start..token.end).unwrap_or("");
        if self.token_to_id(spelled.as_bytes()).is_none() {
            let is_bytes = |ids: &[Option<u32>; 256]| spelled.bytes().all(|byte| ids[byte as usize].is_some());
            if self.byte_ids.as_ref().is_some_and(|ids| is_bytes(ids)) {
                let value = self.vocabulary.token(token.id).unwrap_or(b"");
                return String::from_utf8_lossy(value).into_owned();
            }
        }
        spelled.to_owned()
    }
}

impl PretokenModel for Unigram {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let mut room = std::mem::take(&mut scratch.written);
        let outcome = written(self.input, pretoken, &mut room)
            .and_then(|text| self.with_pieces(text, scratch, |id, _, _| ids.push(id)));
        scratch.written = room;
        outcome
    }

    fn encode_many(
        &self,
        pretokens: &[&[u8]],
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        places.clear();
        scratch.ways.clear();
        let mut first = 0;
        for (number, pretoken) in pretokens.iter().enumerate() {
            if scratch.ways.length() > ENOUGH {
                self.encode_texts(&pretokens[first..number], scratch, ids, places);
                first = number;
            }
            let text = match self.input {
                Input::ByteAlphabet => {
                    scratch.written.clear();
                    byte_alphabet::write_into(pretoken, &mut scratch.written);
                    scratch.written.as_bytes()
                }
                // What is written otherwise has symbols of its own.
                Input::Text | Input::Spaces(_) => pretoken,
            };
            self.add(text, &mut scratch.ways);
        }
        self.encode_texts(&pretokens[first..], scratch, ids, places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn ids(model: &Unigram, pretoken: &str) -> Result<Vec<u32>> {
        let mut ids = vec![];
        model.encode(pretoken.as_bytes(), &mut Scratch::default(), &mut ids).map(|()| ids)
    }

    #[test]
    fn the_highest_sum_wins_and_of_equal_sums_the_longer_last_token() {
        let vocab = [("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -2.0), ("abc", -2.5), ("c", -1.0), ("é", -1.0)];
        let model = Unigram::build(&vocab, Some(0), false, Input::Text);
        assert_eq!(ids(&model, "ab").expect("known"), [3]);
        assert_eq!(ids(&model, "abcé").expect("known"), [4, 6]);
        assert_eq!(ids(&model, "xya<unk>z").expect("unknown"), [0, 1, 0]);
        assert!(ids(&model, "").expect("nothing").is_empty());
    }

    #[test]
    fn unknown_runs_become_bytes_where_all_have_a_token() {
        let vocab = [("<unk>", 0.0), ("a", -1.0), ("<0xC3>", -2.0), ("<0xA9>", -2.0)];
        let model = Unigram::build(&vocab, Some(0), true, Input::Text);
        assert_eq!(ids(&model, "aéé").expect("bytes"), [1, 2, 3, 2, 3]);
        assert_eq!(ids(&model, "éx").expect("unknown"), [0]);
        let (mut tokens, mut scratch) = (vec![], Scratch::default());
        model.tokenize("aé", &mut scratch, &mut tokens).expect("bytes");
        assert_eq!(tokens[2], Token { id: 3, start: 1, end: 3 });
        assert_eq!(model.value(&tokens[2], "aé"), "<0xA9>");
    }

    #[test]
    fn without_an_unknown_token_it_is_an_error() {
        let model = Unigram::build(&[("a", -1.0)], None, false, Input::Text);
        let error = ids(&model, "ab").expect_err("b is unknown");
        assert_eq!(error.message, "the vocabulary has no way to spell 'b', and the file names no unknown token");
    }

    #[test]
    fn of_a_token_that_is_there_twice_the_last_counts() {
        let model = Unigram::build(&[("<unk>", 0.0), ("a", -1.0), ("a", -3.0)], Some(0), false, Input::Text);
        assert_eq!(ids(&model, "a").expect("known"), [2]);
        assert_eq!(model.automaton.entries()[3].score, -13.0);
    }

    /// The ids of a pretoken by the definition, where there is an unknown token and no byte fallback.
    fn defined(vocab: &[(&str, f64)], pretoken: &str) -> Vec<u32> {
        let lowest = vocab.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
        let find = |piece: &str| vocab.iter().rposition(|entry| entry.0 == piece);
        // The sum, where the last token begins, and whether it is unknown.
        let mut best: Vec<Option<(f64, usize, bool)>> = vec![None; pretoken.len() + 1];
        best[0] = Some((0.0, 0, false));
        for (start, character) in pretoken.char_indices() {
            let so_far = best[start].expect("reached").0;
            let mut improve = |end: usize, score: f64, is_unknown: bool| {
                if best[end].is_none_or(|(sum, ..)| so_far + score > sum) {
                    best[end] = Some((so_far + score, start, is_unknown));
                }
            };
            let ends = pretoken[start..].char_indices().map(|(at, one)| start + at + one.len_utf8());
            for end in ends {
                if let Some(id) = find(&pretoken[start..end]) {
                    improve(end, vocab[id].1, false);
                }
            }
            let end = start + character.len_utf8();
            if find(&pretoken[start..end]).is_none() {
                improve(end, lowest - UNKNOWN_PENALTY, true);
            }
        }
        let mut pieces: Vec<(usize, usize, bool)> = vec![];
        let mut at = pretoken.len();
        while at > 0 {
            let (_, start, is_unknown) = best[at].expect("reached");
            match pieces.last_mut() {
                Some((run_start, _, true)) if is_unknown => *run_start = start,
                _ => pieces.push((start, at, is_unknown)),
            }
            at = start;
        }
        pieces.iter().rev().map(|&(start, end, _)| find(&pretoken[start..end]).map_or(0, |id| id as u32)).collect()
    }

    #[test]
    fn the_best_way_is_found_whatever_the_tokens() {
        let mut random = Random(11);
        let letters = ["a", "b", "é", "п", "中", "😀", "x"];
        let text = |random: &mut Random, letters: &[&str], longest: usize| -> String {
            (0..1 + random.below(longest)).map(|_| letters[random.below(letters.len())]).collect()
        };
        for round in 0..if cfg!(miri) { 6 } else { 300 } {
            // A letter can have no token; sums can be equal, and too low for a number.
            let score = |random: &mut Random| match round % 5 {
                0 => -1e308 * random.below(2) as f64,
                1 => -(random.below(1000) as f64) / 7.0 - 0.1,
                _ => -(random.below(4) as f64),
            };
            let mut tokens: Vec<(String, f64)> = vec![("<unk>".to_owned(), score(&mut random))];
            for _ in 0..random.below(60) {
                let length = if random.below(4) == 0 { 12 } else { 4 };
                // In some no token begins with the other letters.
                let first = letters[random.below(if round % 2 == 0 { 2 } else { 5 })];
                tokens.push((first.to_owned() + &text(&mut random, &letters[..5], length), score(&mut random)));
            }
            let vocab: Vec<(&str, f64)> = tokens.iter().map(|token| (&token.0[..], token.1)).collect();
            let model = Unigram::build(&vocab, Some(0), false, Input::Text);
            let mut pretokens: Vec<String> = (0..40).map(|_| text(&mut random, &letters, 40)).collect();
            // Of several parts, of few letters, so that states are long.
            let few = &letters[..2 + round % 3];
            pretokens.extend((round % 5 == 1).then(|| text(&mut random, few, 300)));
            let bytes: Vec<&[u8]> = pretokens.iter().map(|pretoken| pretoken.as_bytes()).collect();
            let (mut many, mut places) = (vec![], vec![]);
            model.encode_many(&bytes, &mut Scratch::default(), &mut many, &mut places);
            for (pretoken, place) in pretokens.iter().zip(places) {
                let (start, end) = place.expect("spelled");
                assert_eq!(many[start as usize..end as usize], defined(&vocab, pretoken), "{pretoken:?} {vocab:?}");
            }
        }
    }

    #[test]
    fn many_at_once_are_the_same() {
        let vocab = [
            ("<unk>", -1.0),
            ("▁", -2.0),
            ("a", -2.5),
            ("b", -3.0),
            ("ab", -4.0),
            ("ba", -5.5),
            ("é", -3.5),
            ("中文", -4.0),
            ("▁aba", -5.0),
            ("中", -6.0),
            ("ааб", -3.0),
            ("а", -2.0),
            ("abababababababababab", -9.0),
        ];
        let mut pretokens: Vec<String> = vec!["".into(), " ".into(), "ab".repeat(700), "<unk>".into()];
        let parts = ["a", "b", " ", "é", "中", "文", "а", "б", "x", "😀", "<unk>"];
        let mut number = 7usize;
        for length in (0..20).cycle().take(400) {
            let mut part = || {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                parts[(number >> 33) % parts.len()]
            };
            pretokens.push((0..length).map(|_| part()).collect());
        }
        let bytes: Vec<&[u8]> = pretokens.iter().map(|pretoken| pretoken.as_bytes()).collect();
        let bytes_too: Vec<(String, f64)> = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), -9.0)).collect();
        let vocab: Vec<(&str, f64)> = vocab.into_iter().chain(bytes_too.iter().map(|it| (&it.0[..], it.1))).collect();
        let spaces = Input::Spaces('▁');
        let inputs = [(spaces, Some(0)), (Input::Text, None), (Input::ByteAlphabet, Some(0))];
        for ((input, unk_id), byte_fallback) in inputs.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            let model = Unigram::build(&vocab, unk_id, byte_fallback, input);
            let (mut scratch, mut many, mut places) = (Scratch::default(), vec![], vec![]);
            model.encode_many(&bytes, &mut scratch, &mut many, &mut places);
            for (pretoken, place) in pretokens.iter().zip(places) {
                let found = place.map(|(start, end)| many[start as usize..end as usize].to_vec());
                assert_eq!(found, ids(&model, pretoken).ok(), "{pretoken:?}");
            }
        }
    }
}
