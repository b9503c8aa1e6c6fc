//! Unigram: the segmentation whose log probabilities have the highest sum, found from left to right (Viterbi).
//!
//! The meaning stands in `engine/reference/models/unigram.py`: the same sums of 64-bit floats in the same order, and of
//! equal sums the one whose last token begins further left. Here the tokens that begin at a place come from a trie, and
//! places are bytes.
//!
//! The trie is larger than the nearer caches, so steps into it wait, and where a walk ends nothing foretells. So the memory
//! for the walks from places further on is asked for ahead; several texts are one for that, with bounds between them that
//! no token crosses. A node has the score beside it; ids are looked up for the tokens of the best way only.

use super::bpe::Input;
use super::trie::{Trie, NOTHING, ROOT};
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{PretokenModel, Token};
use crate::byte_alphabet;
use crate::error::{Error, Result};
use crate::hash::prefetch;
use crate::table_file::TableWriter;
use crate::tables::{Stored, Table, TableReader};

const UNKNOWN_PENALTY: f64 = 10.0;
/// Instead of a node: a character that no token is.
const UNKNOWN: u32 = u32::MAX;
/// Bytes up to which memory is asked for ahead.
const AHEAD: usize = 12;
/// Stands behind each text. No UTF-8 has it, and no token.
const BOUND: u8 = 0xFF;
/// Texts are put together up to this length, so that what is known of them stays in the nearest cache.
const ENOUGH: usize = 1 << 10;

/// A Unigram model for one form of pretokens.
pub struct Unigram {
    /// The vocabulary; of a token that is there twice, this has both ids.
    pub vocabulary: Vocabulary,
    input: Input,
    /// Gives the bits of the score. Of a token that is there twice, the last entry counts.
    trie: Trie,
    /// The id of the token that ends at a node.
    ids: Table<u32>,
    unknown_score: f64,
    unk_id: Option<u32>,
    /// Where the unknown token ends as text, or `UNKNOWN`.
    unk_node: u32,
    byte_ids: Option<Box<[Option<u32>; 256]>>,
}

impl Stored for Unigram {
    fn put(&self, tables: &mut TableWriter) {
        let Unigram { vocabulary, input, trie, ids, unknown_score, unk_id, unk_node, byte_ids } = self;
        vocabulary.put(tables);
        input.put(tables);
        trie.put(tables);
        ids.put(tables);
        unknown_score.put(tables);
        unk_id.put(tables);
        unk_node.put(tables);
        byte_ids.is_some().put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Unigram> {
        let (vocabulary, input) = Stored::take(tables)?;
        let (trie, ids): (Trie, Table<u32>) = Stored::take(tables)?;
        Ok(Unigram {
            vocabulary,
            input,
            unknown_score: Stored::take(tables)?,
            unk_id: Stored::take(tables)?,
            unk_node: Stored::take(tables)?,
            byte_ids: bool::take(tables)?.then(|| byte_ids(&trie, &ids)),
            trie,
            ids,
        })
    }
}

/// The ids of `<0x00>` to `<0xFF>`.
fn byte_ids(trie: &Trie, ids: &[u32]) -> Box<[Option<u32>; 256]> {
    Box::new(std::array::from_fn(|byte| id_of(trie, ids, format!("<0x{byte:02X}>").as_bytes())))
}

fn id_of(trie: &Trie, ids: &[u32], token: &[u8]) -> Option<u32> {
    trie.node_of_key(token).map(|node| ids[node as usize])
}

/// The last token of the best way to a place: where it begins, and, in the lower half, the node where it ends in the trie.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Last(u64);

const UNREACHED: Last = Last(u64::MAX);

impl Last {
    #[inline(always)]
    fn new(start: usize, node: u32) -> Last {
        Last((start as u64) << 32 | u64::from(node))
    }

    fn start(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn node(self) -> u32 {
        self.0 as u32
    }
}

/// A token of the best way, or a run of unknown ones: its end, its start, and the node where it ends, or `UNKNOWN`.
type Piece = (usize, usize, u32);

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    written: String,
    /// Texts, each with `BOUND` behind it.
    text: Vec<u8>,
    /// The numbers of the texts, and where they begin and end.
    bounds: Vec<(usize, usize, usize)>,
    /// The scores of the best ways to all places, and how these end.
    scores: Vec<f64>,
    lasts: Vec<Last>,
    /// Where characters begin that nothing spells, if there is no unknown token.
    failures: Vec<usize>,
    pieces: Vec<Piece>,
}

impl Scratch {
    fn clear(&mut self) {
        self.text.clear();
        self.bounds.clear();
    }

    /// Add a text, which `write` appends.
    fn add(&mut self, number: usize, write: impl FnOnce(&mut Vec<u8>, &mut String)) {
        let start = self.text.len();
        write(&mut self.text, &mut self.written);
        self.bounds.push((number, start, self.text.len()));
        self.text.push(BOUND);
    }
}

impl Unigram {
    /// Build the model of a spec.
    pub fn build(entries: &[(&str, f64)], unk_id: Option<u64>, byte_fallback: bool, input: Input) -> Unigram {
        let keys: Vec<(&[u8], u64)> = entries.iter().map(|entry| (entry.0.as_bytes(), entry.1.to_bits())).collect();
        let trie = Trie::new(&keys);
        let mut ids = vec![0; trie.size()];
        for (id, key) in (0..).zip(&keys) {
            if let Some(node) = trie.node_of_key(key.0) {
                ids[node as usize] = id;
            }
        }
        let lowest = entries.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
        let unk_id = unk_id.and_then(|id| u32::try_from(id).ok());
        let unk_node = unk_id.and_then(|id| trie.node_of_key(keys.get(id as usize)?.0));
        Unigram {
            vocabulary: Vocabulary::new(keys.iter().zip(0..keys.len() as u32).map(|(key, id)| (key.0, id))),
            input,
            byte_ids: byte_fallback.then(|| byte_ids(&trie, &ids)),
            unknown_score: lowest - UNKNOWN_PENALTY,
            unk_id,
            unk_node: unk_node.filter(|&node| Some(ids[node as usize]) == unk_id).unwrap_or(UNKNOWN),
            trie,
            ids: ids.into(),
        }
    }

    /// The id of the unknown token, where there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// The id of a token; the last one where it is there twice.
    pub fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        id_of(&self.trie, &self.ids, token)
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

    /// Find the best way to each place of the texts.
    fn find_best(&self, scratch: &mut Scratch) {
        let Scratch { text, scores, lasts, failures, .. } = scratch;
        let length = text.len();
        // What is beyond the end can be asked for.
        text.resize(length + AHEAD, BOUND);
        scores.clear();
        scores.resize(length + 1, 0.0);
        lasts.clear();
        lasts.resize(length + 1, UNREACHED);
        failures.clear();
        let text = &text[..];
        let mut start = 0;
        while start < length {
            self.ask_ahead(&text[start..start + AHEAD]);
            if text[start] == BOUND {
                start += 1;
                continue;
            }
            let so_far = scores[start];
            let mut improve = |end: usize, score: f64, node: u32| {
                let new = score + so_far;
                let is_better = lasts[end] == UNREACHED || new > scores[end];
                if is_better {
                    (scores[end], lasts[end]) = (new, Last::new(start, node));
                }
                is_better
            };
            let end_of_character = start + length_of_character(text[start]);
            let mut is_known = false;
            let (mut node, mut at) = (ROOT, start);
            while let Some((child, score)) = self.trie.step(node, text[at]) {
                at += 1;
                node = child;
                if score != NOTHING {
                    is_known |= at == end_of_character;
                    improve(at, f64::from_bits(score), node);
                }
            }
            if !is_known && improve(end_of_character, self.unknown_score, UNKNOWN) && self.unk_id.is_none() {
                failures.push(start);
            }
            start = end_of_character;
        }
    }

    /// Ask for the memory of walks from the next places, one step after the other, as the text comes nearer. The steps within
    /// the first character of another script lead to places that are near anyway.
    #[inline(always)]
    fn ask_ahead(&self, text: &[u8]) {
        let &[a, _, c, d, e, f, g, h, i, j, k, l] = text else { return };
        match a {
            0..=0x7F => {
                self.trie.ask_ahead([i, j]);
                self.trie.ask_ahead([f, g, h]);
                self.trie.ask_ahead([c, d, e, f]);
            }
            0x80..=0xDF => {
                self.trie.ask_ahead([i, j, k]);
                self.trie.ask_ahead([e, f, g, h]);
                self.trie.ask_ahead([c, d, e, f, g]);
            }
            _ => {
                self.trie.ask_ahead([j, k, l]);
                self.trie.ask_ahead([g, h, i, j]);
                self.trie.ask_ahead([d, e, f, g, h, i]);
            }
        }
    }

    /// Cut a text along its best way, from the end to the beginning. Adjacent pieces that are the unknown token are one,
    /// and the unknown token as text (`<unk>`) counts as such a piece, too.
    fn find_pieces(&self, text: &[u8], start: usize, end: usize, lasts: &[Last], pieces: &mut Vec<Piece>) {
        pieces.clear();
        let mut at = end;
        let mut run_end = end;
        while at > start {
            let (start, node) = (lasts[at].start(), lasts[at].node());
            if node != UNKNOWN && node != self.unk_node {
                if at < run_end {
                    pieces.push((run_end, at, self.node_of_run(&text[at..run_end])));
                }
                prefetch(&self.ids, node as usize);
                pieces.push((at, start, node));
                run_end = start;
            }
            at = start;
        }
        if run_end > start {
            pieces.push((run_end, start, self.node_of_run(&text[start..run_end])));
        }
    }

    /// A run of unknown pieces can be a token.
    fn node_of_run(&self, text: &[u8]) -> u32 {
        self.trie.node_of_key(text).unwrap_or(UNKNOWN)
    }

    /// Give the ids of a piece: its own, or those of its bytes, or that of the unknown token.
    #[inline(always)]
    fn ids_of_piece(&self, text: &[u8], piece: Piece, mut give: impl FnMut(u32)) -> Result<()> {
        let (end, start, node) = piece;
        if node != UNKNOWN {
            give(self.ids[node as usize]);
            return Ok(());
        }
        let spelled = &text[start..end];
        match &self.byte_ids {
            Some(ids) if spelled.iter().all(|&byte| ids[byte as usize].is_some()) => {
                spelled.iter().filter_map(|&byte| ids[byte as usize]).for_each(give);
            }
            _ => give(self.unknown(spelled)?),
        }
        Ok(())
    }

    fn with_pieces(&self, text: &str, scratch: &mut Scratch, mut give: impl FnMut(u32, usize, usize)) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::encode("a pretoken of more than 4 GiB"));
        }
        scratch.clear();
        scratch.add(0, |bytes, _| bytes.extend_from_slice(text.as_bytes()));
        self.find_best(scratch);
        if let Some(&start) = scratch.failures.first() {
            let character = text[start..].chars().next().map(String::from).unwrap_or_default();
            self.unknown(character.as_bytes())?;
        }
        self.find_pieces(&scratch.text, 0, text.len(), &scratch.lasts, &mut scratch.pieces);
        for &piece in scratch.pieces.iter().rev() {
            self.ids_of_piece(&scratch.text, piece, |id| give(id, piece.1, piece.0))?;
        }
        Ok(())
    }

    /// Append the ids of all texts.
    fn encode_texts(&self, scratch: &mut Scratch, ids: &mut Vec<u32>, places: &mut [Option<(u32, u32)>]) {
        self.find_best(scratch);
        let Scratch { text, bounds, lasts, failures, pieces, .. } = scratch;
        for &(number, start, end) in &*bounds {
            let first = ids.len();
            let failure = failures.partition_point(|&at| at < start);
            if failures.get(failure).is_some_and(|&at| at < end) {
                places[number] = None;
                continue;
            }
            self.find_pieces(text, start, end, lasts, pieces);
            let is_spelled =
                pieces.iter().rev().all(|&piece| self.ids_of_piece(text, piece, |id| ids.push(id)).is_ok());
            places[number] = is_spelled.then_some((first as u32, ids.len() as u32));
        }
        scratch.clear();
    }

    /// The tokens of a pretoken with their places. The bytes of a run each cover all of the run.
    pub fn tokenize(&self, pretoken: &str, scratch: &mut Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.with_pieces(pretoken, scratch, |id, start, end| tokens.push(Token { id, start, end }))
    }

    /// The string of a token that `tokenize` gave: that of an unknown token is the text that it stands for.
    pub fn value(&self, token: &Token, pretoken: &str) -> String {
        let spelled = pretoken.get(token.start..token.end).unwrap_or("");
        if self.trie.node_of_key(spelled.as_bytes()).is_none() {
            let is_bytes = |ids: &[Option<u32>; 256]| spelled.bytes().all(|byte| ids[byte as usize].is_some());
            if self.byte_ids.as_ref().is_some_and(|ids| is_bytes(ids)) {
                let value = self.vocabulary.token(token.id).unwrap_or(b"");
                return String::from_utf8_lossy(value).into_owned();
            }
        }
        spelled.to_owned()
    }
}

#[inline(always)]
fn length_of_character(first_byte: u8) -> usize {
    match first_byte {
        0..=0x7F => 1,
        0x80..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    }
}

/// Append a pretoken as the vocabulary writes it. It was checked as a part of its text.
fn write_bytes(input: Input, pretoken: &[u8], room: &mut String, text: &mut Vec<u8>) {
    match input {
        Input::Text => text.extend_from_slice(pretoken),
        Input::ByteAlphabet => {
            room.clear();
            byte_alphabet::write_into(pretoken, room);
            text.extend_from_slice(room.as_bytes());
        }
        Input::Spaces(mark) => {
            let mut bytes = [0; 4];
            let mark = mark.encode_utf8(&mut bytes).as_bytes();
            for (number, part) in pretoken.split(|&byte| byte == b' ').enumerate() {
                if number > 0 {
                    text.extend_from_slice(mark);
                }
                text.extend_from_slice(part);
            }
        }
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
        places.resize(pretokens.len(), None);
        scratch.clear();
        for (number, pretoken) in pretokens.iter().enumerate() {
            if scratch.text.len() > ENOUGH {
                self.encode_texts(scratch, ids, places);
            }
            scratch.add(number, |text, room| write_bytes(self.input, pretoken, room, text));
        }
        self.encode_texts(scratch, ids, places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(model.unknown_score, -13.0);
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
        for (input, unk_id) in [(Input::Spaces('▁'), Some(0)), (Input::Text, None), (Input::ByteAlphabet, Some(0))] {
            let model = Unigram::build(&vocab, unk_id, false, input);
            let (mut scratch, mut many, mut places) = (Scratch::default(), vec![], vec![]);
            model.encode_many(&bytes, &mut scratch, &mut many, &mut places);
            for (pretoken, place) in pretokens.iter().zip(places) {
                let found = place.map(|(start, end)| many[start as usize..end as usize].to_vec());
                assert_eq!(found, ids(&model, pretoken).ok(), "{pretoken:?}");
            }
        }
    }
}
