//! Post-processors: the encodings of one text or two become one, with the tokens of the template around them.
//!
//! The rules stand in `engine/reference/post_processors.py`: every step takes a list of encodings to a list of encodings,
//! and the list is joined at the end. `Ending` is the same for a column of ids, where no more than ids is known.

use std::sync::Arc;

use crate::byte_alphabet;
use crate::encoding::{check_stride, merge_encodings, Encoding};
use crate::error::{Error, Result};
use crate::patterns::tree::CodePointSet;
use crate::sink::Finish;
use crate::spec::{self, Direction, TemplatePiece, TemplateToken, Truncation};
use crate::truncation;
use crate::unicode;

/// The ids before and after a single text.
pub type Affixes = (Vec<u32>, Vec<u32>);

/// The post-processor of a spec, or none.
pub struct PostProcessor {
    step: Option<Step>,
    /// Without and with special tokens; None: the text's ids do not stand there once and whole.
    affixes: [Option<Affixes>; 2],
}

/// One of the post-processors.
enum Step {
    Template { single: Vec<TemplatePiece>, pair: Vec<TemplatePiece>, special_tokens: Vec<(String, TemplateToken)> },
    Bert(Frame),
    Roberta(Frame, TrimOffsets),
    ByteLevel(TrimOffsets),
    Sequence(Vec<Step>),
}

/// Tokens around each text.
struct Frame {
    cls: (String, u32),
    sep: (String, u32),
    opens_b: bool,
    /// The type id of the tokens around text B; None: all type ids become 0.
    type_id_b: Option<u32>,
}

/// Takes whitespace at the ends of byte-level tokens out of their offsets.
struct TrimOffsets {
    trim_offsets: bool,
    add_prefix_space: bool,
    space: char,
    whitespace: CodePointSet,
}

impl PostProcessor {
    /// Build the post-processor of a spec.
    pub fn build(processor: Option<&spec::PostProcessor>) -> PostProcessor {
        let mut built = PostProcessor { step: processor.map(Step::build), affixes: [None, None] };
        built.affixes = [false, true].map(|add| built.find_affixes(add));
        built
    }

    /// Number of tokens that truncation makes room for.
    pub fn added_tokens(&self, is_pair: bool) -> usize {
        self.step.as_ref().map_or(0, |step| step.added_tokens(is_pair))
    }

    /// Give the final encoding.
    pub fn process(&self, encoding: Encoding, pair: Option<Encoding>, add_special_tokens: bool) -> Result<Encoding> {
        let mut encodings = vec![encoding];
        encodings.extend(pair);
        let Some(step) = &self.step else {
            if encodings.len() == 1 {
                return Ok(encodings.remove(0));
            }
            encodings.iter_mut().enumerate().for_each(|(i, each)| each.set_sequence_id(i));
            return Ok(merge_encodings(&encodings));
        };
        for (i, each) in encodings.iter_mut().enumerate() {
            each.set_sequence_id(i);
            each.overflowing.iter_mut().for_each(|piece| piece.set_sequence_id(i));
            each.set_type_id(i as u32);
        }
        let mut pieces = step.process_encodings(encodings, add_special_tokens)?;
        // Joined from the left, onto nothing; a single piece is what comes of it.
        if pieces.len() == 1 {
            return Ok(pieces.remove(0));
        }
        Ok(merge_encodings(&pieces))
    }

    /// The ids before and after a single text; None where its ids do not stand there once and whole.
    pub fn single_affixes(&self, add_special_tokens: bool) -> Option<&Affixes> {
        self.affixes[usize::from(add_special_tokens)].as_ref()
    }

    /// What becomes of a single text: ids, and None in the place of the text.
    pub fn single_template(&self) -> Result<Vec<Option<u32>>> {
        let probed = self.process(Encoding::of_ids(vec![0]), None, true)?;
        Ok(probed.ids.iter().zip(&probed.word_ids).map(|(&id, word)| word.is_none().then_some(id)).collect())
    }

    fn find_affixes(&self, add_special_tokens: bool) -> Option<Affixes> {
        let probed = self.process(Encoding::of_ids(vec![0]), None, add_special_tokens).ok()?;
        let mut places = probed.word_ids.iter().enumerate().filter(|(_, word)| word.is_some()).map(|(place, _)| place);
        let place = places.next().filter(|_| places.next().is_none())?;
        Some((probed.ids[..place].to_vec(), probed.ids[place + 1..].to_vec()))
    }
}

impl Step {
    fn build(processor: &spec::PostProcessor) -> Step {
        match processor.clone() {
            spec::PostProcessor::BertProcessing { sep, cls } => {
                Step::Bert(Frame { cls, sep, opens_b: false, type_id_b: Some(1) })
            }
            spec::PostProcessor::RobertaProcessing { sep, cls, trim_offsets, add_prefix_space } => Step::Roberta(
                Frame { cls, sep, opens_b: true, type_id_b: None },
                TrimOffsets::new(trim_offsets, add_prefix_space),
            ),
            spec::PostProcessor::ByteLevel { add_prefix_space, trim_offsets, .. } => {
                Step::ByteLevel(TrimOffsets::new(trim_offsets, add_prefix_space))
            }
            spec::PostProcessor::TemplateProcessing { single, pair, special_tokens } => {
                Step::Template { single, pair, special_tokens }
            }
            spec::PostProcessor::Sequence { processors } => {
                Step::Sequence(processors.iter().map(Step::build).collect())
            }
        }
    }

    fn added_tokens(&self, is_pair: bool) -> usize {
        match self {
            Step::Template { single, pair, special_tokens } => {
                let pieces = if is_pair { pair } else { single }.iter();
                let tokens = pieces.filter_map(|piece| match piece {
                    TemplatePiece::SpecialToken { id, .. } => token_named(special_tokens, id),
                    TemplatePiece::Sequence { .. } => None,
                });
                tokens.map(|token| token.ids.len()).sum()
            }
            Step::Bert(frame) | Step::Roberta(frame, _) => 2 + if is_pair { 1 + usize::from(frame.opens_b) } else { 0 },
            Step::ByteLevel(_) => 0,
            Step::Sequence(steps) => steps.iter().map(|step| step.added_tokens(is_pair)).sum(),
        }
    }

    fn process_encodings(&self, mut encodings: Vec<Encoding>, add_special_tokens: bool) -> Result<Vec<Encoding>> {
        match self {
            Step::Template { single, pair, special_tokens } => {
                let pieces = if encodings.len() == 1 { single } else { pair };
                fill_template(pieces, special_tokens, encodings, add_special_tokens)
            }
            Step::Bert(frame) => Ok(frame.around(encodings, add_special_tokens)),
            Step::Roberta(frame, trim) => {
                trim.trim_all(&mut encodings);
                encodings.iter_mut().for_each(|encoding| encoding.set_type_id(0));
                Ok(frame.around(encodings, add_special_tokens))
            }
            Step::ByteLevel(trim) => {
                trim.trim_all(&mut encodings);
                encodings.iter_mut().enumerate().for_each(|(i, encoding)| encoding.set_sequence_id(i));
                Ok(encodings)
            }
            Step::Sequence(steps) => steps
                .iter()
                .try_fold(encodings, |encodings, step| step.process_encodings(encodings, add_special_tokens)),
        }
    }
}

fn token_named<'a>(special_tokens: &'a [(String, TemplateToken)], name: &str) -> Option<&'a TemplateToken> {
    special_tokens.iter().find(|(known, _)| known == name).map(|(_, token)| token)
}

fn fill_template(
    template: &[TemplatePiece],
    special_tokens: &[(String, TemplateToken)],
    mut encodings: Vec<Encoding>,
    add_special_tokens: bool,
) -> Result<Vec<Encoding>> {
    let failure = |message: String, place: &str| Err(Error::encode(message).at(place));
    if !(1..=2).contains(&encodings.len()) {
        let message = format!("a template is for one text or two, not {}", encodings.len());
        return failure(message, "$.post_processor");
    }
    let mut pieces = vec![];
    for piece in template {
        match piece {
            TemplatePiece::Sequence { id, type_id } => {
                let sequence_id = usize::from(id != "A");
                let Some(encoding) = encodings.get_mut(sequence_id) else {
                    return failure("the template for one text has a place for text B".to_owned(), "$.post_processor");
                };
                encoding.set_type_id(*type_id);
                encoding.set_sequence_id(sequence_id);
                pieces.push(encoding.clone());
            }
            TemplatePiece::SpecialToken { id, type_id } if add_special_tokens => {
                let Some(token) = token_named(special_tokens, id) else {
                    let name = crate::models::written::quoted(id);
                    let message = format!("the template has no special token {name}");
                    return failure(message, "$.post_processor.special_tokens");
                };
                pieces.push(Encoding::of_special_tokens(token.ids.to_vec(), token.tokens.to_vec(), *type_id));
            }
            TemplatePiece::SpecialToken { .. } => {}
        }
    }
    Ok(pieces)
}

impl Frame {
    fn around(&self, encodings: Vec<Encoding>, add_special_tokens: bool) -> Vec<Encoding> {
        if !add_special_tokens {
            return encodings;
        }
        let texts = encodings.iter().enumerate();
        texts.map(|(i, encoding)| self.framed(encoding, usize::from(i > 0), true)).collect()
    }

    fn framed(&self, encoding: &Encoding, sequence_id: usize, with_overflowing: bool) -> Encoding {
        let (before, type_id) = match sequence_id {
            0 => (Some(&self.cls), 0),
            _ => (self.opens_b.then_some(&self.sep), self.type_id_b.unwrap_or(0)),
        };
        let special = |token: Option<&(String, u32)>| {
            let (tokens, ids) = token.into_iter().map(|(token, id)| (token.clone(), *id)).unzip();
            Encoding::of_special_tokens(ids, tokens, type_id)
        };
        let mut text = encoding.part(0, encoding.len());
        text.special_tokens_mask = vec![0; text.len()];
        let mut framed = special(before);
        framed.append(&text);
        framed.append(&special(Some(&self.sep)));
        framed.attention_mask = vec![1; framed.len()];
        if self.type_id_b.is_none() {
            framed.set_type_id(0);
        }
        framed.sequence_ranges = [(sequence_id, (usize::from(before.is_some()), framed.len() - 1))].into();
        if with_overflowing {
            let pieces = encoding.overflowing.iter();
            framed.overflowing = pieces.map(|piece| self.framed(piece, sequence_id, false)).collect();
        }
        framed
    }
}

impl TrimOffsets {
    fn new(trim_offsets: bool, add_prefix_space: bool) -> TrimOffsets {
        let whitespace = unicode::rust().set("whitespace");
        TrimOffsets { trim_offsets, add_prefix_space, space: byte_alphabet::character_of(b' '), whitespace }
    }

    fn trim_all(&self, encodings: &mut [Encoding]) {
        if self.trim_offsets {
            for encoding in encodings {
                self.trim(encoding);
                encoding.overflowing.iter_mut().for_each(|piece| self.trim(piece));
            }
        }
    }

    fn is_space(&self, character: char) -> bool {
        !character.is_ascii_graphic() && (character == self.space || self.whitespace.contains(character as u32))
    }

    fn trim(&self, encoding: &mut Encoding) {
        for (i, (token, offsets)) in encoding.tokens.iter().zip(&mut encoding.offsets).enumerate() {
            let leading = token.chars().take_while(|&character| self.is_space(character)).count();
            let trailing = token.chars().rev().take_while(|&character| self.is_space(character)).count();
            if leading == 0 && trailing == 0 {
                continue;
            }
            let (mut start, mut end) = *offsets;
            // One space at the very beginning is taken for the prefix space, which is not in the text.
            let is_prefix_space = self.add_prefix_space && leading == 1 && (i == 0 || start == 0);
            if leading > 0 && !is_prefix_space {
                start = (start + leading).min(end);
            }
            if trailing > 0 && end >= trailing {
                end = (end - trailing).max(start);
            }
            *offsets = (start, end);
        }
    }
}

/// What is done to the ids of a document at its ends: truncation and template.
pub struct Ending {
    processor: Arc<PostProcessor>,
    truncation: Option<Truncation>,
    add_special_tokens: bool,
    added_tokens: usize,
}

impl Ending {
    /// Build for texts with or without special tokens.
    pub fn new(processor: &Arc<PostProcessor>, truncation: Option<&Truncation>, add_special_tokens: bool) -> Ending {
        Ending {
            processor: Arc::clone(processor),
            truncation: truncation.cloned(),
            add_special_tokens,
            added_tokens: if add_special_tokens { processor.added_tokens(false) } else { 0 },
        }
    }

    /// Cut the ids from `first` on to what truncation leaves. Gives whether any were cut.
    fn truncate(&self, ids: &mut Vec<u32>, first: usize) -> Result<bool> {
        let Some(truncation) = &self.truncation else { return Ok(false) };
        let length = ids.len() - first;
        let kept = match truncation::lengths(length, None, truncation, self.added_tokens)? {
            Some((kept, _)) if kept < length => kept,
            _ => return Ok(false),
        };
        if kept > 0 {
            check_stride(kept, usize::try_from(truncation.stride).unwrap_or(usize::MAX))?;
        }
        match truncation.direction {
            Direction::Right => ids.truncate(first + kept),
            Direction::Left => drop(ids.drain(first..ids.len() - kept)),
        }
        Ok(true)
    }
}

impl Finish for Ending {
    fn begin(&self, ids: &mut Vec<u32>) {
        if let Some((before, _)) = self.processor.single_affixes(self.add_special_tokens) {
            ids.extend_from_slice(before);
        }
    }

    fn end(&self, ids: &mut Vec<u32>, first: usize) -> Result<bool> {
        if let Some((before, after)) = self.processor.single_affixes(self.add_special_tokens) {
            let is_cut = self.truncate(ids, first + before.len())?;
            ids.extend_from_slice(after);
            return Ok(is_cut);
        }
        let is_cut = self.truncate(ids, first)?;
        let mut encoding = Encoding::of_ids(ids.split_off(first));
        if is_cut {
            // One piece stands for all: whether it is still there at the end is what counts.
            encoding.overflowing.push(Encoding::default());
        }
        let processed = self.processor.process(encoding, None, self.add_special_tokens)?;
        ids.extend_from_slice(&processed.ids);
        Ok(!processed.overflowing.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Strategy;

    fn bert() -> spec::PostProcessor {
        spec::PostProcessor::BertProcessing { sep: ("[SEP]".into(), 102), cls: ("[CLS]".into(), 101) }
    }

    fn sequence(id: &str, type_id: u32) -> TemplatePiece {
        TemplatePiece::Sequence { id: id.into(), type_id }
    }

    #[test]
    fn bert_frames_texts_and_pairs() {
        let processor = PostProcessor::build(Some(&bert()));
        assert_eq!(processor.single_affixes(true), Some(&(vec![101], vec![102])));
        assert_eq!(processor.single_affixes(false), Some(&(vec![], vec![])));
        assert_eq!(processor.added_tokens(true), 3);
        let (first, second) = (Encoding::of_ids(vec![1]), Encoding::of_ids(vec![2]));
        let both = processor.process(first, Some(second), true).expect("two texts");
        assert_eq!(both.ids, [101, 1, 102, 2, 102]);
        assert_eq!(both.type_ids, [0, 0, 0, 1, 1]);
        assert_eq!(both.special_tokens_mask, [1, 0, 1, 0, 1]);
        assert_eq!(both.sequence_ranges, [(0, (1, 2)), (1, (3, 4))].into());
    }

    #[test]
    fn a_template_may_name_a_text_twice_or_not_at_all() {
        let template =
            |single| spec::PostProcessor::TemplateProcessing { single, pair: vec![], special_tokens: vec![] };
        let twice = PostProcessor::build(Some(&template(vec![sequence("A", 0), sequence("A", 1)])));
        assert_eq!(twice.single_affixes(true), None);
        let doubled = twice.process(Encoding::of_ids(vec![7]), None, true).expect("one text");
        assert_eq!((doubled.ids, doubled.type_ids), (vec![7, 7], vec![0, 1]));
        let other = PostProcessor::build(Some(&template(vec![sequence("B", 0)])));
        assert!(other.process(Encoding::of_ids(vec![7]), None, true).is_err());
    }

    #[test]
    fn spaces_are_trimmed_from_offsets() {
        let encoding = |token: &str| {
            Encoding::of_text(vec![0, 1], vec!["a".into(), token.into()], vec![(0, 1), (1, 6)], vec![Some(0); 2], 0)
        };
        let byte_level = spec::PostProcessor::ByteLevel { add_prefix_space: true, trim_offsets: true, use_regex: true };
        let processor = PostProcessor::build(Some(&byte_level));
        let trimmed = processor.process(encoding("ĠĠab\u{2003}"), None, true).expect("one text");
        assert_eq!(trimmed.offsets, [(0, 1), (3, 5)]);
        let blank = processor.process(encoding("ĠĠĠĠĠ"), None, true).expect("one text");
        assert_eq!(blank.offsets[1], (6, 6));
    }

    #[test]
    fn endings_are_what_process_gives() {
        let truncation =
            Truncation { max_length: 4, stride: 0, strategy: Strategy::LongestFirst, direction: Direction::Left };
        let twice = spec::PostProcessor::TemplateProcessing {
            single: vec![sequence("A", 0), sequence("A", 1)],
            pair: vec![],
            special_tokens: vec![],
        };
        for (spec, expected) in [(bert(), vec![101, 2, 3, 102]), (twice, vec![0, 1, 2, 3, 0, 1, 2, 3])] {
            let processor = Arc::new(PostProcessor::build(Some(&spec)));
            let ending = Ending::new(&processor, Some(&truncation), true);
            let mut ids = vec![9];
            ending.begin(&mut ids);
            ids.extend(0..4);
            let is_cut = ending.end(&mut ids, 1).expect("can be cut");
            assert_eq!((&ids[1..], is_cut), (&expected[..], expected.len() == 4));
            let direct = truncation::truncate_encodings(
                Encoding::of_ids((0..4).collect()),
                None,
                &truncation,
                processor.added_tokens(false),
            )
            .expect("can be cut");
            assert_eq!(processor.process(direct.0, None, true).expect("one text").ids, expected);
        }
    }
}
