//! Unigram: the segmentation whose log probabilities have the highest sum, found from left to right (Viterbi).
//!
//! The meaning stands in `engine/reference/models/unigram.py`: the same sums of 64-bit floats in the same order, and of
//! equal sums the one whose last token begins further left. Here the tokens that begin at a place come from a trie, and
//! places are bytes.

use super::bpe::Input;
use super::trie::{Trie, NOTHING, ROOT};
use super::vocabulary::Vocabulary;
use super::written::{quoted, written};
use super::{PretokenModel, Token};
use crate::error::{Error, Result};
use crate::table_file::TableWriter;
use crate::tables::{Stored, Table, TableReader};

const UNKNOWN_PENALTY: f64 = 10.0;
/// Instead of an id: a character that no token is.
const UNKNOWN: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX;

/// A Unigram model for one form of pretokens.
pub struct Unigram {
    /// The vocabulary; of a token that is there twice, this has both ids.
    pub vocabulary: Vocabulary,
    input: Input,
    /// Of a token that is there twice, the last entry counts.
    trie: Trie,
    scores: Table<f64>,
    unknown_score: f64,
    unk_id: Option<u32>,
    byte_ids: Option<Box<[Option<u32>; 256]>>,
}

impl Stored for Unigram {
    fn put(&self, tables: &mut TableWriter) {
        let Unigram { vocabulary, input, trie, scores, unknown_score, unk_id, byte_ids } = self;
        vocabulary.put(tables);
        input.put(tables);
        trie.put(tables);
        scores.put(tables);
        unknown_score.put(tables);
        unk_id.put(tables);
        byte_ids.is_some().put(tables);
    }

    fn take(tables: &mut TableReader) -> Result<Unigram> {
        let (vocabulary, input) = Stored::take(tables)?;
        let trie = Trie::take(tables)?;
        Ok(Unigram {
            vocabulary,
            input,
            scores: Stored::take(tables)?,
            unknown_score: Stored::take(tables)?,
            unk_id: Stored::take(tables)?,
            byte_ids: bool::take(tables)?.then(|| byte_ids(&trie)),
            trie,
        })
    }
}

/// The ids of `<0x00>` to `<0xFF>`.
fn byte_ids(trie: &Trie) -> Box<[Option<u32>; 256]> {
    Box::new(std::array::from_fn(|byte| trie.value(format!("<0x{byte:02X}>").as_bytes())))
}

/// The best way to a place: its score, where its last token begins, and which that is.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    start: u32,
    id: u32,
}

const UNREACHED: Best = Best { score: 0.0, start: NOWHERE, id: UNKNOWN };

/// A token of the best way, or a run of unknown ones: its end, its start, and its id where that is known.
type Piece = (u32, u32, Option<u32>);

/// What one thread needs to encode pretokens.
#[derive(Default)]
pub struct Scratch {
    text: String,
    best: Vec<Best>,
    pieces: Vec<Piece>,
}

impl Unigram {
    /// Build the model of a spec.
    pub fn build(entries: &[(&str, f64)], unk_id: Option<u64>, byte_fallback: bool, input: Input) -> Unigram {
        let tokens: Vec<(&[u8], u32)> = (0..).zip(entries).map(|(id, entry)| (entry.0.as_bytes(), id)).collect();
        let trie = Trie::new(&tokens);
        let lowest = entries.iter().map(|entry| entry.1).fold(f64::INFINITY, f64::min);
        Unigram {
            vocabulary: Vocabulary::new(tokens.iter().copied()),
            input,
            byte_ids: byte_fallback.then(|| byte_ids(&trie)),
            trie,
            scores: entries.iter().map(|entry| entry.1).collect::<Vec<f64>>().into(),
            unknown_score: lowest - UNKNOWN_PENALTY,
            unk_id: unk_id.and_then(|id| u32::try_from(id).ok()),
        }
    }

    /// The id of the unknown token, where there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// The id of a token; the last one where it is there twice.
    pub fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        self.trie.value(token)
    }

    /// The ids of `<0x00>` to `<0xFF>`, those that there are, where the model falls back to bytes.
    pub fn byte_token_ids(&self) -> Vec<u32> {
        self.byte_ids.iter().flat_map(|ids| ids.iter().copied().flatten()).collect()
    }

    fn unknown(&self, spelled: &str) -> Result<u32> {
        self.unk_id.ok_or_else(|| {
            let spelled = quoted(spelled);
            let message = format!("the vocabulary has no way to spell {spelled}, and the file names no unknown token");
            Error::encode(message).at("$.model.unk_id")
        })
    }

    /// Find the best way to each place of a text.
    fn find_best(&self, text: &str, best: &mut Vec<Best>) -> Result<()> {
        let bytes = text.as_bytes();
        best.clear();
        best.resize(bytes.len() + 1, UNREACHED);
        let mut start = 0;
        while start < bytes.len() {
            let so_far = best[start].score;
            let end_of_character = start + length_of_character(bytes[start]);
            let mut is_known = false;
            let (mut node, mut at) = (ROOT, start);
            while let Some((child, id)) = bytes.get(at).and_then(|&byte| self.trie.step(node, byte)) {
                at += 1;
                node = child;
                if id != NOTHING {
                    is_known |= at == end_of_character;
                    best[at].improve(self.scores[id as usize] + so_far, start, id);
                }
            }
            if !is_known && best[end_of_character].improve(self.unknown_score + so_far, start, UNKNOWN) {
                self.unknown(&text[start..end_of_character])?;
            }
            start = end_of_character;
        }
        Ok(())
    }

    /// Cut a text along its best way, from the end to the beginning. Adjacent pieces that are the unknown token are one,
    /// and the unknown token as text (`<unk>`) counts as such a piece, too.
    fn find_pieces(&self, text: &str, scratch: &mut Scratch) -> Result<()> {
        self.find_best(text, &mut scratch.best)?;
        let pieces = &mut scratch.pieces;
        pieces.clear();
        let mut end = text.len() as u32;
        let mut run_end = end;
        while end > 0 {
            let Best { start, id, .. } = scratch.best[end as usize];
            let is_unknown = self.unk_id.is_some_and(|unk_id| id == UNKNOWN || id == unk_id);
            if !is_unknown {
                if end < run_end {
                    pieces.push((run_end, end, self.id_of_run(text, end, run_end)));
                }
                pieces.push((end, start, Some(id)));
                run_end = start;
            }
            end = start;
        }
        if run_end > 0 {
            pieces.push((run_end, 0, self.id_of_run(text, 0, run_end)));
        }
        Ok(())
    }

    /// A run of unknown pieces can be a token.
    fn id_of_run(&self, text: &str, start: u32, end: u32) -> Option<u32> {
        self.trie.value(&text.as_bytes()[start as usize..end as usize])
    }

    /// Give the ids of a piece: its own, or those of its bytes, or that of the unknown token.
    fn ids_of_piece(&self, text: &str, piece: Piece, mut give: impl FnMut(u32)) -> Result<()> {
        let (end, start, id) = piece;
        if let Some(id) = id {
            give(id);
            return Ok(());
        }
        let spelled = &text[start as usize..end as usize];
        match &self.byte_ids {
            Some(ids) if spelled.bytes().all(|byte| ids[byte as usize].is_some()) => {
                spelled.bytes().filter_map(|byte| ids[byte as usize]).for_each(give);
            }
            _ => give(self.unknown(spelled)?),
        }
        Ok(())
    }

    fn with_pieces(&self, text: &str, scratch: &mut Scratch, mut give: impl FnMut(u32, usize, usize)) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::encode("a pretoken of more than 4 GiB"));
        }
        self.find_pieces(text, scratch)?;
        for &piece in scratch.pieces.iter().rev() {
            self.ids_of_piece(text, piece, |id| give(id, piece.1 as usize, piece.0 as usize))?;
        }
        Ok(())
    }

    /// The tokens of a pretoken with their places. The bytes of a run each cover all of the run.
    pub fn tokenize(&self, pretoken: &str, scratch: &mut Scratch, tokens: &mut Vec<Token>) -> Result<()> {
        self.with_pieces(pretoken, scratch, |id, start, end| tokens.push(Token { id, start, end }))
    }

    /// The string of a token that `tokenize` gave: that of an unknown token is the text that it stands for.
    pub fn value(&self, token: &Token, pretoken: &str) -> String {
        let spelled = pretoken.get(token.start..token.end).unwrap_or("");
        if self.trie.value(spelled.as_bytes()).is_none() {
            let is_bytes = |ids: &[Option<u32>; 256]| spelled.bytes().all(|byte| ids[byte as usize].is_some());
            if self.byte_ids.as_ref().is_some_and(|ids| is_bytes(ids)) {
                let value = self.vocabulary.token(token.id).unwrap_or(b"");
                return String::from_utf8_lossy(value).into_owned();
            }
        }
        spelled.to_owned()
    }
}

impl Best {
    #[inline(always)]
    fn improve(&mut self, score: f64, start: usize, id: u32) -> bool {
        let is_better = self.start == NOWHERE || score > self.score;
        if is_better {
            *self = Best { score, start: start as u32, id };
        }
        is_better
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

impl PretokenModel for Unigram {
    type Scratch = Scratch;

    fn encode(&self, pretoken: &[u8], scratch: &mut Scratch, ids: &mut Vec<u32>) -> Result<()> {
        let mut room = std::mem::take(&mut scratch.text);
        let outcome = written(self.input, pretoken, &mut room)
            .and_then(|text| self.with_pieces(text, scratch, |id, _, _| ids.push(id)));
        scratch.text = room;
        outcome
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
}
