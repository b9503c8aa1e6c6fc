//! What is left to do with a piece that the column road has cut, when the cache does not know it yet.
//!
//! Every pre-tokenizer works on the pieces of the one before, each by itself. So it is enough that the first ones cut the
//! text fast; the others can wait until a piece is new. And where a pre-tokenizer drops whitespace, pieces come with the
//! space before them, which halves their number: here it goes.

use std::sync::Mutex;

use crate::aligned_text::AlignedText;
use crate::character_table::CharacterSet;
use crate::cutter::{Cuts, Cutter};
use crate::error::{Error, Result};
use crate::hash::FastMap;
use crate::late::Late;
use crate::limits::checked_length;
use crate::locks::taken;
use crate::models::bpe::Input;
use crate::models::characters::code_point;
use crate::models::PretokenModel;
use crate::patterns::tree::CodePointSet;
use crate::pre_tokenizers::PreTokenizer;
use crate::spec::PrependScheme;
use crate::strings::Strings;

/// Pieces whose pretokens are remembered, and their length in bytes.
const MOST_REMEMBERED: usize = 1 << 16;
const LONGEST_REMEMBERED: usize = 64;

/// A byte that no text has: behind it, a piece is a pretoken already.
pub const FINISHED: u8 = 0xFF;

/// What is left to do.
pub struct Rest {
    /// Pieces that begin with one of these go, after a space before them has gone.
    dropped: Option<CharacterSet>,
    /// What the normalizer then makes of them.
    late: Option<Late>,
    /// The pre-tokenizers that have not been used yet.
    parts: Vec<PreTokenizer>,
    /// Where the one part is a ByteLevel without prefix space that cuts; then pretokens are not written in its alphabet.
    byte_level: Option<ByteLevel>,
    /// Where a Metaspace is all that comes after words that wait, its mark: in pretokens, a space stands for it.
    mark: Option<char>,
    /// For whoever asks for pretokens again and again (`shown_pretokens`).
    remembered: Mutex<FastMap<String, Vec<String>>>,
}

/// What a ByteLevel cuts.
struct ByteLevel {
    cutter: Cutter,
    room: Mutex<Cuts>,
    /// For each byte, whether pieces that begin with it are one pretoken, so that nothing has to be cut.
    kept_whole: Vec<bool>,
}

impl ByteLevel {
    fn keeps(&self, piece: &[u8]) -> bool {
        piece.first().is_some_and(|&first| self.kept_whole[usize::from(first)])
    }
}

impl Rest {
    /// Drop pieces that begin with one of a set (which has the space), then let the parts have the others.
    pub fn new(dropped: Option<&CodePointSet>, parts: Vec<PreTokenizer>) -> Rest {
        let dropped = dropped.map(CharacterSet::of_set);
        Rest { dropped, late: None, parts, byte_level: None, mark: None, remembered: Mutex::default() }
    }

    /// Let the pieces be normalized before the parts have them.
    pub fn with_late(self, late: Late) -> Rest {
        let mark = match self.parts[..] {
            [PreTokenizer::Metaspace { replacement, .. }] => late.marked().map(|_| replacement),
            _ => None,
        };
        Rest { late: Some(late), mark, ..self }
    }

    /// What waits of the normalizer.
    pub fn late(&self) -> Option<&Late> {
        self.late.as_ref()
    }

    /// Let the last part be a ByteLevel without prefix space: this cutter does what it cuts, and pieces that begin with
    /// these bytes (256 of them) it keeps whole.
    pub fn with_byte_level(self, cutter: Cutter, kept_whole: Vec<bool>) -> Rest {
        let is_alone = matches!(self.parts[..], [PreTokenizer::ByteLevel { add_prefix_space: false, split: Some(_) }]);
        let byte_level = ByteLevel { cutter, room: Mutex::default(), kept_whole };
        Rest { byte_level: is_alone.then_some(byte_level), ..self }
    }

    /// In which form pretokens are handed over.
    pub fn input(&self) -> Input {
        match (&self.byte_level, self.mark) {
            (Some(_), _) => Input::ByteAlphabet,
            (None, Some(mark)) => Input::Spaces(mark),
            (None, None) => Input::Text,
        }
    }

    /// The piece without what is dropped.
    fn kept<'a>(&self, piece: &'a str) -> &'a str {
        // It is the end of the piece.
        &piece[piece.len() - self.kept_bytes(piece.as_bytes()).len()..]
    }

    /// The same for bytes that are UTF-8.
    fn kept_bytes<'a>(&self, piece: &'a [u8]) -> &'a [u8] {
        let Some(dropped) = &self.dropped else { return piece };
        if let Some(marked) = self.late.as_ref().and_then(Late::marked) {
            return if marked.is_gap(piece) { &[] } else { piece };
        }
        let kept = piece.strip_prefix(b" ").unwrap_or(piece);
        let first = (!kept.is_empty()).then(|| char::from_u32(code_point(kept).0)).flatten();
        match &self.late {
            _ if first.is_none_or(|first| dropped.contains(first)) => &[],
            Some(late) if late.sees_spaces() => piece,
            _ => kept,
        }
    }

    /// A piece that is kept, after what waits of the normalizer.
    fn normalized<'a>(&self, kept: &'a str, room: &'a mut String) -> Result<&'a str> {
        match &self.late {
            Some(late) if !kept.is_empty() => {
                late.write(kept, room)?;
                Ok(late.kept(room))
            }
            _ => Ok(kept),
        }
    }

    /// The pre-tokenizers that have something to do with a piece that is kept and normalized.
    fn parts_for(&self, piece: &[u8]) -> &[PreTokenizer] {
        match &self.late {
            Some(late) if late.is_one_word(piece) => self.parts.get(1..).unwrap_or_default(),
            _ => &self.parts,
        }
    }

    /// All pieces without what is dropped, after what waits of the normalizer; None: there are bytes that are not UTF-8, or
    /// they are too long together.
    fn all_kept<'a>(&self, pieces: &[&'a [u8]], normalized: &'a mut Vec<u8>) -> Option<Vec<&'a [u8]>> {
        let kept = pieces.iter().map(|piece| self.kept_bytes(piece));
        let Some(late) = &self.late else { return Some(kept.collect()) };
        let mut ends = Vec::with_capacity(pieces.len());
        normalized.reserve(pieces.iter().map(|piece| piece.len()).sum());
        for piece in kept {
            if piece.first() == Some(&FINISHED) {
                normalized.extend_from_slice(piece);
            } else if !late.write_piece(piece, normalized) {
                return None;
            }
            ends.push(normalized.len());
        }
        checked_length(normalized.len()).ok()?;
        let mut start = 0;
        let bounds = ends.iter().map(|&end| std::mem::replace(&mut start, end)..end);
        let kept = |piece: &'a [u8]| if piece.first() == Some(&FINISHED) { piece } else { late.kept_bytes(piece) };
        Some(bounds.map(|bounds| kept(&normalized[bounds])).collect())
    }

    /// Find the pretokens of all pieces without what is dropped, of which a ByteLevel is the rest; gives how many each
    /// has. `text` is room for what has to be cut. None: it is too long.
    fn all_cut<'a>(
        &self,
        kept: &[&'a [u8]],
        byte_level: &ByteLevel,
        text: &'a mut Vec<u8>,
        pretokens: &mut Vec<&'a [u8]>,
    ) -> Option<Vec<usize>> {
        let mut bounds = vec![];
        for piece in kept.iter().filter(|piece| !piece.is_empty() && !byte_level.keeps(piece)) {
            let first = text.len();
            text.extend_from_slice(piece);
            bounds.push((first, text.len()));
        }
        checked_length(text.len()).ok()?;
        let text = &text[..];
        let mut own = Cuts::default();
        let mut shared = byte_level.room.try_lock().ok();
        let cuts = shared.as_deref_mut().unwrap_or(&mut own);
        cuts.starts.clear();
        if !bounds.is_empty() {
            byte_level.cutter.cut(text, &bounds, cuts);
        }
        cuts.starts.push(text.len() as u32);
        let mut spans = cuts.starts.windows(2).peekable();
        let mut ends = bounds.iter().map(|&(_, end)| end);
        let count = |piece: &&'a [u8]| {
            if piece.is_empty() {
                return 0;
            }
            if byte_level.keeps(piece) {
                pretokens.push(piece);
                return 1;
            }
            let end = ends.next().unwrap_or(0);
            let first = pretokens.len();
            while let Some(span) = spans.next_if(|span| (span[0] as usize) < end) {
                pretokens.push(&text[span[0] as usize..span[1] as usize]);
            }
            pretokens.len() - first
        };
        Some(kept.iter().map(count).collect())
    }

    /// Add what the parts make of a piece without what is dropped, where that is to put a mark in front, or in the place of
    /// the space there, and nothing else; else add nothing.
    fn mark_only(&self, kept: &[u8], pretokens: &mut Strings) -> bool {
        let [PreTokenizer::Metaspace { replacement, prepend_scheme, .. }] = *self.parts_for(kept) else {
            return false;
        };
        let mut mark = [0; 4];
        let mark = replacement.encode_utf8(&mut mark);
        let first = mark.as_bytes()[0];
        let (kept, is_marked) = match kept.strip_prefix(b" ") {
            Some(kept) => (kept, true),
            None => (kept, prepend_scheme == PrependScheme::Always),
        };
        if !is_marked || kept.is_empty() || kept.iter().fold(false, |any, &byte| any | (byte == b' ') | (byte == first))
        {
            return false;
        }
        match std::str::from_utf8(kept) {
            Ok(kept) => pretokens.push_both(mark, kept),
            Err(_) => return false,
        }
        true
    }

    /// Write the pretokens of all pieces, where a space stands for the mark in them; gives where they are, and how many each
    /// piece has (none: it fails, or they are too long together). False: there is no mark.
    fn spaced(
        &self,
        pieces: &[&[u8]],
        written: &mut Vec<u8>,
        bounds: &mut Vec<(usize, usize)>,
        counts: &mut Vec<Option<usize>>,
    ) -> bool {
        let (Some(mark), [PreTokenizer::Metaspace { prepend_scheme, .. }]) = (self.mark, &self.parts[..]) else {
            return false;
        };
        let Some(late) = &self.late else { return false };
        let first_of_mark = mark.encode_utf8(&mut [0; 4]).as_bytes()[0];
        let puts_space = *prepend_scheme == PrependScheme::Always;
        written.reserve(pieces.iter().map(|piece| piece.len() + 1).sum());
        for piece in pieces {
            let (start, first) = (written.len(), bounds.len());
            let kept = self.kept_bytes(piece);
            if !kept.is_empty() && kept[0] != FINISHED {
                if puts_space && kept[0] != b' ' {
                    written.push(b' ');
                }
                let is_written = late.write_piece(kept, written);
                let length = late.kept_bytes(&written[start..]).len();
                written.truncate(start + length);
                let new = &written[start..];
                // The common case: one pretoken, or none.
                let odd = |byte: u8| (byte == b' ') | (byte == first_of_mark);
                let is_odd = new.iter().skip(1).fold(false, |any, &byte| any | odd(byte));
                if is_written && !is_odd && new.first() != Some(&first_of_mark) {
                    bounds.extend((length > 0).then_some((start, start + length)));
                    counts.push(Some(bounds.len() - first));
                    continue;
                }
                written.truncate(start);
            }
            let outcome = self.pretokens(kept, |pretoken| {
                checked_length(pretoken.len())?;
                let start = written.len();
                written.extend_from_slice(pretoken.as_bytes());
                bounds.push((start, written.len()));
                Ok(())
            });
            if outcome.is_err() {
                bounds.truncate(first);
            }
            counts.push(outcome.is_ok().then_some(bounds.len() - first));
        }
        if checked_length(written.len()).is_err() {
            bounds.clear();
            counts.fill(None);
        }
        true
    }

    /// Hand over the pretokens of a piece, in the form of `input`.
    pub fn pretokens(&self, piece: &[u8], mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let text = |bytes| {
            std::str::from_utf8(bytes)
                .map_err(|error| Error::encode(format!("byte {} is not UTF-8", error.valid_up_to())))
        };
        let visit = |pretoken: &str| match self.mark {
            Some(mark) => visit(&pretoken.replace(mark, " ")),
            None => visit(pretoken),
        };
        if let [FINISHED, pretoken @ ..] = piece {
            return { visit }(text(pretoken)?);
        }
        let piece = text(piece)?;
        let mut room = String::new();
        self.pretokens_of_kept(self.normalized(self.kept(piece), &mut room)?, visit)
    }

    /// Hand over the pretokens of a piece from which has gone what is dropped.
    fn pretokens_of_kept(&self, piece: &str, mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let parts = self.parts_for(piece.as_bytes());
        match parts {
            [] => return visit(piece),
            // The common cases of the common tokenizers, without the general way's copies.
            [PreTokenizer::ByteLevel { add_prefix_space: false, split: Some(_) }]
                if piece.bytes().all(|byte| byte.is_ascii_alphabetic()) =>
            {
                // GPT-2's pattern keeps letters together, and these are their own in the byte alphabet.
                return visit(piece);
            }
            [PreTokenizer::Metaspace { replacement, prepend_scheme: PrependScheme::Always, .. }]
                if !piece.contains([' ', *replacement]) =>
            {
                let mut marked = String::with_capacity(piece.len() + 4);
                marked.push(*replacement);
                marked.push_str(piece);
                return visit(&marked);
            }
            _ => {}
        }
        let mut joined = String::new();
        let piece = match self.late.as_ref().and_then(Late::marked) {
            Some(_) if piece.contains("  ") => {
                for character in piece.chars() {
                    if !(character == ' ' && joined.ends_with(' ')) {
                        joined.push(character);
                    }
                }
                &joined
            }
            _ => piece,
        };
        if let Some(byte_level) = &self.byte_level {
            if byte_level.keeps(piece.as_bytes()) {
                return visit(piece);
            }
            let mut own = Cuts::default();
            let mut shared = byte_level.room.try_lock().ok();
            let cuts = shared.as_deref_mut().unwrap_or(&mut own);
            byte_level.cutter.cut(piece.as_bytes(), &[(0, piece.len())], cuts);
            let ends = cuts.starts[1..].iter().copied().chain([piece.len() as u32]);
            return cuts
                .starts
                .iter()
                .zip(ends)
                .try_for_each(|(&start, end)| visit(&piece[start as usize..end as usize]));
        }
        let whole = vec![AlignedText::untracked(piece.to_owned())];
        let pieces = parts.iter().try_fold(whole, |pieces, part| part.pre_tokenize(pieces))?;
        pieces.iter().try_for_each(|piece| visit(&piece.text))
    }
}

impl Rest {
    /// Hand over the pretokens of a piece, and remember them.
    pub fn shown_pretokens(&self, piece: &[u8], mut visit: impl FnMut(&str)) {
        let mut hand_over = |pretoken: &str| {
            visit(pretoken);
            Ok(())
        };
        let is_itself = self.parts.is_empty() && self.late.is_none();
        let (Ok(text), false) = (std::str::from_utf8(piece), is_itself) else {
            // What fails here has failed in the model, too, and is told there.
            return self.pretokens(piece, hand_over).unwrap_or_default();
        };
        let kept = self.kept(text);
        let Some(mut remembered) = taken(&self.remembered) else {
            return self.pretokens(piece, hand_over).unwrap_or_default();
        };
        if let Some(pretokens) = remembered.get(kept) {
            return pretokens.iter().for_each(|pretoken| visit(pretoken));
        }
        let mut pretokens = vec![];
        let outcome = self.pretokens(piece, |pretoken| {
            pretokens.push(pretoken.to_owned());
            hand_over(pretoken)
        });
        if outcome.is_ok() && kept.len() <= LONGEST_REMEMBERED {
            if remembered.len() >= MOST_REMEMBERED {
                remembered.clear();
            }
            remembered.insert(kept.to_owned(), pretokens);
        }
    }
}

/// A model behind what is left to do, for the cache. It gets pretokens in the form of `Rest::input`.
pub struct Deferring<M> {
    /// The model.
    pub model: M,
    /// What comes before it.
    pub rest: std::sync::Arc<Rest>,
}

impl<M: PretokenModel> PretokenModel for Deferring<M> {
    type Scratch = M::Scratch;

    fn encode(&self, piece: &[u8], scratch: &mut M::Scratch, ids: &mut Vec<u32>) -> Result<()> {
        self.rest.pretokens(piece, |pretoken| {
            checked_length(pretoken.len())?;
            self.model.encode(pretoken.as_bytes(), scratch, ids)
        })
    }

    fn encode_many(
        &self,
        pieces: &[&[u8]],
        scratch: &mut M::Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        places.clear();
        let mut normalized = vec![];
        let (mut bounds, mut counts) = (vec![], vec![]);
        if self.rest.spaced(pieces, &mut normalized, &mut bounds, &mut counts) {
            let pretokens: Vec<&[u8]> = bounds.iter().map(|&(start, end)| &normalized[start..end]).collect();
            return self.encode_pretokens(&pretokens, counts.into_iter(), scratch, ids, places);
        }
        let Some(kept) = self.rest.all_kept(pieces, &mut normalized) else {
            // Each of them alone says what is wrong with it.
            places.resize(pieces.len(), None);
            return;
        };
        if self.rest.parts.is_empty() {
            let some: Vec<&[u8]> = kept.iter().copied().filter(|piece| !piece.is_empty()).collect();
            let mut found = vec![];
            self.model.encode_many(&some, scratch, ids, &mut found);
            let mut found = found.into_iter();
            places.extend(kept.iter().map(|piece| match piece {
                [] => Some((0, 0)),
                _ => found.next().flatten(),
            }));
            return;
        }
        let mut text = vec![];
        if let Some(byte_level) = &self.rest.byte_level {
            let mut pretokens = Vec::with_capacity(2 * pieces.len());
            if let Some(counts) = self.rest.all_cut(&kept, byte_level, &mut text, &mut pretokens) {
                let counts = counts.into_iter().map(Some);
                return self.encode_pretokens(&pretokens, counts, scratch, ids, places);
            }
        }
        let bytes: usize = kept.iter().map(|piece| piece.len()).sum();
        let mut pretokens = Strings::with_capacity(2 * pieces.len(), 2 * bytes);
        let mut one = |piece: &&[u8]| -> Option<usize> {
            let first = pretokens.len();
            if piece.first() != Some(&FINISHED) && self.rest.mark_only(piece, &mut pretokens) {
                return Some(1);
            }
            if let [FINISHED, pretoken @ ..] = piece {
                checked_length(pretoken.len()).ok()?;
                pretokens.push(std::str::from_utf8(pretoken).ok()?);
                return Some(1);
            }
            let Ok(piece) = std::str::from_utf8(piece) else { return None };
            let outcome = self.rest.pretokens_of_kept(piece, |pretoken| {
                checked_length(pretoken.len())?;
                pretokens.push(pretoken);
                Ok(())
            });
            if outcome.is_err() {
                pretokens.truncate(first);
            }
            outcome.is_ok().then_some(pretokens.len() - first)
        };
        let counts: Vec<Option<usize>> = kept.iter().map(&mut one).collect();
        let all: Vec<&[u8]> = pretokens.iter().map(str::as_bytes).collect();
        self.encode_pretokens(&all, counts.into_iter(), scratch, ids, places);
    }
}

impl<M: PretokenModel> Deferring<M> {
    /// Append the ids of pretokens, and for each piece, which has so many of them, say where its ids are. None of them: the
    /// piece gets no place.
    fn encode_pretokens(
        &self,
        pretokens: &[&[u8]],
        counts: impl Iterator<Item = Option<usize>>,
        scratch: &mut M::Scratch,
        ids: &mut Vec<u32>,
        places: &mut Vec<Option<(u32, u32)>>,
    ) {
        let mut found = vec![];
        self.model.encode_many(pretokens, scratch, ids, &mut found);
        let mut found = found.into_iter();
        places.extend(counts.map(|count| {
            let count = count?;
            if count == 1 {
                return found.next().flatten();
            }
            // Those of several are put together once more.
            let first = ids.len();
            let mut is_complete = true;
            for place in found.by_ref().take(count) {
                match place {
                    Some((start, end)) => ids.extend_from_within(start as usize..end as usize),
                    None => is_complete = false,
                }
            }
            if !is_complete {
                ids.truncate(first);
            }
            is_complete.then_some((first as u32, ids.len() as u32))
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::tree::{Node, Tree};
    use crate::spec;

    fn pretokens(rest: &Rest, piece: &str) -> Vec<String> {
        let mut found = vec![];
        rest.pretokens(piece.as_bytes(), |pretoken| {
            found.push(pretoken.to_owned());
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn what_is_remembered_is_what_was_found() {
        let parts = vec![PreTokenizer::build(&spec::PreTokenizer::Digits { individual_digits: true })];
        let rest = Rest::new(None, parts);
        for piece in ["a1", "22", "", "a1", "22", ""] {
            let mut shown = vec![];
            rest.shown_pretokens(piece.as_bytes(), |pretoken| shown.push(pretoken.to_owned()));
            assert_eq!(shown, pretokens(&rest, piece));
        }
        assert_eq!(rest.remembered.lock().unwrap().len(), 3);
    }

    #[test]
    fn a_space_before_a_piece_goes() {
        let space = CodePointSet(vec![9, 14, 32, 33]);
        let rest = Rest::new(Some(&space), vec![]);
        assert_eq!(pretokens(&rest, " word"), ["word"]);
        assert_eq!(pretokens(&rest, "word"), ["word"]);
        assert!(
            pretokens(&rest, " ").is_empty()
                && pretokens(&rest, " \n ").is_empty()
                && pretokens(&rest, "\n").is_empty()
        );
    }

    #[test]
    fn what_is_dropped_has_no_ids() {
        struct One;
        impl PretokenModel for One {
            type Scratch = ();
            fn encode(&self, pretoken: &[u8], _: &mut (), ids: &mut Vec<u32>) -> Result<()> {
                ids.push(pretoken.len() as u32);
                Ok(())
            }
        }
        let rest = std::sync::Arc::new(Rest::new(Some(&CodePointSet(vec![32, 33])), vec![]));
        let (mut ids, mut places) = (vec![], vec![]);
        Deferring { model: One, rest }.encode_many(&[b" ab", b"  ", b"c", b" "], &mut (), &mut ids, &mut places);
        assert_eq!(ids, [2, 1]);
        assert_eq!(places, [Some((0, 1)), Some((0, 0)), Some((1, 2)), Some((0, 0))]);
    }

    #[test]
    fn pieces_together_have_the_ids_that_each_has_alone() {
        #[derive(Clone, Copy)]
        struct Lengths;
        impl PretokenModel for Lengths {
            type Scratch = ();
            fn encode(&self, pretoken: &[u8], _: &mut (), ids: &mut Vec<u32>) -> Result<()> {
                ids.extend([pretoken.len() as u32, u32::from(pretoken[0])]);
                if pretoken.starts_with(b"!") {
                    return Err(Error::encode("it fails"));
                }
                Ok(())
            }
        }
        let letters = Node::Set(0);
        let root = Node::Repeat { body: Box::new(letters), minimum: 1, maximum: None, greedy: true };
        let tree = Tree { sets: vec![CodePointSet(vec![97, 123, 0xE9, 0xEA])], root, ..Tree::default() };
        let pattern = Some(spec::Pattern::Regex(tree));
        let (add_prefix_space, trim_offsets, use_regex) = (false, true, true);
        let part = spec::PreTokenizer::ByteLevel { add_prefix_space, trim_offsets, use_regex, pattern };
        let cutter = Cutter::build(&[(String::new(), &part)]).unwrap();
        let parts = vec![PreTokenizer::build(&part)];
        let kept_whole = (0..=u8::MAX).map(|byte| byte == b'x').collect();
        let rest = Rest::new(Some(&CodePointSet(vec![32, 33])), parts).with_byte_level(cutter, kept_whole);
        assert!(rest.byte_level.is_some());
        let model = Deferring { model: Lengths, rest: std::sync::Arc::new(rest) };
        let pieces = [" ab", "é1a", "", " ", "77é", "a!a", "x", "中"].map(str::as_bytes);
        let (mut ids, mut places) = (vec![5], vec![]);
        model.encode_many(&pieces, &mut (), &mut ids, &mut places);
        for (piece, place) in pieces.iter().zip(&places) {
            let mut alone = vec![];
            let outcome = model.encode(piece, &mut (), &mut alone);
            let together = place.map(|(first, end)| &ids[first as usize..end as usize]);
            assert_eq!(together, outcome.is_ok().then_some(&alone[..]), "{piece:?}");
        }
        assert_eq!((places[5], places.len()), (None, pieces.len()));
    }

    #[test]
    fn parts_see_what_is_kept() {
        let metaspace = spec::PreTokenizer::Metaspace {
            replacement: '_',
            prepend_scheme: spec::PrependScheme::Always,
            split: true,
        };
        let rest = Rest::new(Some(&CodePointSet(vec![32, 33])), vec![PreTokenizer::build(&metaspace)]);
        assert_eq!(pretokens(&rest, " a_b"), ["_a", "_b"]);
    }

    #[test]
    fn pretokens_of_a_piece_stay_together() {
        struct Backwards;
        impl PretokenModel for Backwards {
            type Scratch = ();
            fn encode(&self, pretoken: &[u8], _: &mut (), ids: &mut Vec<u32>) -> Result<()> {
                ids.push(pretoken.len() as u32);
                match pretoken.contains(&b'!') {
                    true => Err(Error::encode("a pretoken that fails")),
                    false => Ok(()),
                }
            }
            fn encode_many(
                &self,
                pretokens: &[&[u8]],
                scratch: &mut (),
                ids: &mut Vec<u32>,
                places: &mut Vec<Option<(u32, u32)>>,
            ) {
                places.clear();
                for pretoken in pretokens.iter().rev() {
                    let first = ids.len() as u32;
                    let is_encoded = self.encode(pretoken, scratch, ids).is_ok();
                    places.insert(0, is_encoded.then_some((first, first + 1)));
                }
            }
        }
        let metaspace = spec::PreTokenizer::Metaspace {
            replacement: '▁',
            prepend_scheme: spec::PrependScheme::Always,
            split: true,
        };
        let rest = Rest::new(Some(&CodePointSet(vec![32, 33])), vec![PreTokenizer::build(&metaspace)]);
        let deferring = Deferring { model: Backwards, rest: std::sync::Arc::new(rest) };
        let pieces = [" a▁bc▁def", "  ", "▁", " word", "a▁b!", "‖"].map(str::as_bytes);
        let (mut ids, mut places) = (vec![], vec![]);
        deferring.encode_many(&pieces, &mut (), &mut ids, &mut places);
        for (piece, place) in pieces.iter().zip(&places) {
            let mut alone = vec![];
            let outcome = deferring.encode(piece, &mut (), &mut alone);
            assert_eq!(place.map(|(start, end)| &ids[start as usize..end as usize]), outcome.ok().map(|()| &alone[..]));
        }
        assert_eq!(places.iter().filter(|place| place.is_none()).count(), 1);
    }
}
