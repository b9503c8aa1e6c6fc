//! What each pre-tokenizer does to a list of pieces: see `engine/reference/pre_tokenizers.py`.
//!
//! This is the general form, for pieces with alignments and for what the column road has no machine for (`cutter.rs`).
//! Pieces that are not tracked (`AlignedText::untracked`) take the same way.

use crate::aligned_text::AlignedText;
use crate::character_table::{members, CharacterTable};
use crate::compiled_pattern::CompiledPattern;
use crate::error::{Error, Result};
use crate::normalizers::byte_level;
use crate::patterns::tree::CodePointSet;
use crate::spec::{self, Behavior, PrependScheme};
use crate::split_behaviors::behavior_spans;
use crate::unicode;

type Spans = Vec<(usize, usize)>;

/// A pre-tokenizer at work.
pub enum PreTokenizer {
    /// Cuts by what kinds of characters stand side by side.
    Kinds(KindCutter),
    /// Cuts at the matches of a pattern.
    Split(Split),
    /// Puts a space in front, cuts, and writes bytes in the byte alphabet.
    ByteLevel {
        /// Whether it puts a space in front.
        add_prefix_space: bool,
        /// GPT-2's pattern, if it cuts.
        split: Option<Split>,
    },
    /// Writes spaces as the replacement, puts one in front, and cuts before each of them.
    Metaspace {
        /// The replacement.
        replacement: char,
        /// When one is put in front.
        prepend_scheme: PrependScheme,
        /// Whether it cuts.
        split: bool,
    },
    /// Cuts where the script changes; 0 is no script.
    UnicodeScripts(CharacterTable<u8>),
    /// Cuts into pieces of so many characters.
    FixedLength(usize),
    /// One after the other, each on the pieces of the one before.
    Chain(Vec<PreTokenizer>),
}

/// A pattern with a behavior.
pub struct Split {
    pattern: CompiledPattern,
    behavior: Behavior,
    invert: bool,
}

impl PreTokenizer {
    /// Build the pre-tokenizer of a spec.
    pub fn build(spec: &spec::PreTokenizer) -> PreTokenizer {
        if let Some(cutter) = KindCutter::build(spec) {
            return PreTokenizer::Kinds(cutter);
        }
        match spec {
            spec::PreTokenizer::ByteLevel { add_prefix_space, pattern, .. } => PreTokenizer::ByteLevel {
                add_prefix_space: *add_prefix_space,
                split: pattern.as_ref().map(|pattern| Split {
                    pattern: CompiledPattern::new(pattern),
                    behavior: Behavior::Isolated,
                    invert: false,
                }),
            },
            &spec::PreTokenizer::Metaspace { replacement, prepend_scheme, split } => {
                PreTokenizer::Metaspace { replacement, prepend_scheme, split }
            }
            spec::PreTokenizer::Split { pattern, behavior, invert } => PreTokenizer::Split(Split {
                pattern: CompiledPattern::new(pattern),
                behavior: *behavior,
                invert: *invert,
            }),
            spec::PreTokenizer::UnicodeScripts {} => PreTokenizer::UnicodeScripts(scripts()),
            spec::PreTokenizer::FixedLength { length } => {
                PreTokenizer::FixedLength(usize::try_from(*length).unwrap_or(usize::MAX))
            }
            spec::PreTokenizer::Sequence { pretokenizers } => {
                PreTokenizer::Chain(pretokenizers.iter().map(PreTokenizer::build).collect())
            }
            _ => unreachable!("all others cut by kinds of characters"),
        }
    }

    /// Whether the pre-tokenizer of a spec is one that cuts, and writes nothing.
    pub fn only_cuts(spec: &spec::PreTokenizer) -> bool {
        !matches!(
            spec,
            spec::PreTokenizer::ByteLevel { .. }
                | spec::PreTokenizer::Metaspace { .. }
                | spec::PreTokenizer::Sequence { .. }
        )
    }

    /// Where it cuts a text: (start, end) of the pieces, in order. What a Metaspace and a ByteLevel write is not done.
    pub fn spans(&self, text: &str) -> Result<Spans> {
        match self {
            PreTokenizer::Kinds(cutter) => Ok(cutter.spans(text)),
            PreTokenizer::Split(split) | PreTokenizer::ByteLevel { split: Some(split), .. } => split.spans(text),
            PreTokenizer::UnicodeScripts(scripts) => Ok(script_spans(scripts, text)),
            PreTokenizer::FixedLength(length) => fixed_spans(text, *length),
            _ => Ok(vec![(0, text.len())]),
        }
    }

    /// Whether the pieces depend on where in the document they stand.
    pub fn depends_on_place(&self) -> bool {
        match self {
            PreTokenizer::Metaspace { prepend_scheme, .. } => *prepend_scheme == PrependScheme::First,
            PreTokenizer::Chain(parts) => parts.iter().any(PreTokenizer::depends_on_place),
            _ => false,
        }
    }

    /// Whether only the first step, which sees pieces as they are cut out of the document, depends on the place.
    pub fn depends_on_place_first(&self) -> bool {
        match self {
            PreTokenizer::Chain(parts) => parts.split_first().is_none_or(|(first, rest)| {
                first.depends_on_place_first() && !rest.iter().any(PreTokenizer::depends_on_place)
            }),
            _ => true,
        }
    }

    /// Cut the pieces further, and write them anew.
    pub fn pre_tokenize(&self, pieces: Vec<AlignedText>) -> Result<Vec<AlignedText>> {
        let mut result = vec![];
        match self {
            PreTokenizer::Kinds(cutter) => {
                pieces.iter().for_each(|piece| result.extend(piece.slices(cutter.spans(&piece.text))));
            }
            PreTokenizer::Split(split) => {
                for piece in &pieces {
                    result.extend(piece.slices(split.spans(&piece.text)?));
                }
            }
            PreTokenizer::ByteLevel { add_prefix_space, split } => {
                for mut piece in pieces {
                    if *add_prefix_space && !piece.text.starts_with(' ') {
                        piece = piece.prepend(" ")?;
                    }
                    let parts = match split {
                        Some(split) => piece.slices(split.spans(&piece.text)?),
                        None => vec![piece],
                    };
                    for part in parts.into_iter().filter(|part| !part.text.is_empty()) {
                        result.push(byte_level(part)?);
                    }
                }
            }
            &PreTokenizer::Metaspace { replacement, prepend_scheme, split } => {
                let mark = replacement.encode_utf8(&mut [0; 4]).to_owned();
                for mut piece in pieces {
                    piece.text = piece.text.replace(' ', &mark);
                    let is_prepended = match prepend_scheme {
                        PrependScheme::Always => true,
                        PrependScheme::First => piece.start == 0,
                        PrependScheme::Never => false,
                    };
                    if is_prepended && !piece.text.starts_with(&mark) {
                        piece = piece.prepend(&mark)?;
                    }
                    let marks = piece.text.match_indices(&mark).map(|(place, _)| place).filter(|_| split);
                    let bounds: Vec<usize> = [0].into_iter().chain(marks).chain([piece.text.len()]).collect();
                    let spans =
                        bounds.windows(2).map(|bounds| (bounds[0], bounds[1])).filter(|(start, end)| start < end);
                    result.extend(piece.slices(spans));
                }
            }
            PreTokenizer::UnicodeScripts(scripts) => {
                pieces.iter().for_each(|piece| result.extend(piece.slices(script_spans(scripts, &piece.text))));
            }
            PreTokenizer::FixedLength(length) => {
                for piece in &pieces {
                    result.extend(piece.slices(fixed_spans(&piece.text, *length)?));
                }
            }
            PreTokenizer::Chain(parts) => {
                return parts.iter().try_fold(pieces, |pieces, part| part.pre_tokenize(pieces));
            }
        }
        Ok(result)
    }
}

impl Split {
    fn spans(&self, text: &str) -> Result<Spans> {
        Ok(behavior_spans(&self.pattern.spans(text)?, text.len(), self.behavior, self.invert))
    }
}

/// Kinds of characters: this one goes, this one stands alone; of all others, runs of one kind stay together.
const GOES: u8 = 0;
const ALONE: u8 = 1;
const POINT: u8 = 2;
const OTHER: u8 = 3;

/// Where kinds meet, pieces end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    /// Between different kinds.
    Kinds,
    /// After each point.
    AfterPoints,
    /// Before each point.
    BeforePoints,
}

/// Cuts by what kinds of characters stand side by side.
pub struct KindCutter {
    kinds: CharacterTable<u8>,
    bounds: Bounds,
}

impl KindCutter {
    /// Build the cutter of a pre-tokenizer; None where it is none of this family.
    pub fn build(spec: &spec::PreTokenizer) -> Option<KindCutter> {
        let rust = unicode::rust();
        let kinds_of = |sets: &[(CodePointSet, u8)]| {
            let mut kinds = CharacterTable::new(OTHER);
            for (set, kind) in sets {
                members(set).for_each(|code| kinds.update(code, |_| *kind));
            }
            kinds
        };
        let by_kinds = |sets: &[(CodePointSet, u8)]| Some(KindCutter { kinds: kinds_of(sets), bounds: Bounds::Kinds });
        let behaving = |set: CodePointSet, behavior: Behavior| match behavior {
            Behavior::Removed => by_kinds(&[(set, GOES)]),
            Behavior::Isolated => by_kinds(&[(set, ALONE)]),
            Behavior::Contiguous => by_kinds(&[(set, POINT)]),
            Behavior::MergedWithPrevious => {
                Some(KindCutter { kinds: kinds_of(&[(set, POINT)]), bounds: Bounds::AfterPoints })
            }
            Behavior::MergedWithNext => {
                Some(KindCutter { kinds: kinds_of(&[(set, POINT)]), bounds: Bounds::BeforePoints })
            }
        };
        match spec {
            spec::PreTokenizer::BertPreTokenizer {} => {
                by_kinds(&[(rust.set("punctuation"), ALONE), (rust.set("whitespace"), GOES)])
            }
            spec::PreTokenizer::Whitespace {} => by_kinds(&[(rust.set("regex_s"), GOES), (rust.set("regex_w"), POINT)]),
            spec::PreTokenizer::WhitespaceSplit {} => behaving(rust.set("whitespace"), Behavior::Removed),
            spec::PreTokenizer::CharDelimiterSplit { delimiter } => {
                behaving(CodePointSet(vec![*delimiter as u32, *delimiter as u32 + 1]), Behavior::Removed)
            }
            spec::PreTokenizer::Punctuation { behavior } => behaving(rust.set("punctuation"), *behavior),
            spec::PreTokenizer::Digits { individual_digits } => {
                let behavior = if *individual_digits { Behavior::Isolated } else { Behavior::Contiguous };
                behaving(rust.set("numeric"), behavior)
            }
            _ => None,
        }
    }

    fn spans(&self, text: &str) -> Spans {
        let mut spans: Spans = vec![];
        let mut before = None;
        for (place, character) in text.char_indices() {
            let (kind, end) = (self.kinds.get(character), place + character.len_utf8());
            let goes_on = before.is_some_and(|before| match self.bounds {
                Bounds::Kinds => before == kind && kind != ALONE,
                Bounds::AfterPoints => before != POINT,
                Bounds::BeforePoints => kind != POINT,
            });
            match spans.last_mut() {
                Some(span) if goes_on && kind != GOES => span.1 = end,
                _ if kind != GOES => spans.push((place, end)),
                _ => {}
            }
            before = Some(kind);
        }
        spans
    }
}

fn scripts() -> CharacterTable<u8> {
    let mut table = CharacterTable::new(0);
    let mut names: Vec<&str> = unicode::rust().names().filter(|name| name.starts_with("script:")).collect();
    names.sort_unstable();
    for (number, name) in (1..).zip(names) {
        members(&unicode::rust().set(name)).for_each(|code| table.update(code, |_| number));
    }
    table
}

/// Characters without a script go with those before them; those at the start have nowhere to go, and the oracle drops
/// them.
fn script_spans(scripts: &CharacterTable<u8>, text: &str) -> Spans {
    let mut spans: Spans = vec![];
    let mut current = 0;
    for (place, character) in text.char_indices() {
        let (script, end) = (scripts.get(character), place + character.len_utf8());
        match spans.last_mut() {
            Some(span) if script == 0 || script == current => span.1 = end,
            _ if script == 0 => {}
            _ => {
                spans.push((place, end));
                current = script;
            }
        }
    }
    spans
}

fn fixed_spans(text: &str, length: usize) -> Result<Spans> {
    if text.is_empty() {
        return Ok(vec![]);
    }
    if length == 0 {
        let error = Error::encode("pieces of 0 characters do not make up a text");
        return Err(error.hinted("the oracle crashes here"));
    }
    let starts: Vec<usize> = text.char_indices().step_by(length).map(|(place, _)| place).chain([text.len()]).collect();
    Ok(starts.windows(2).map(|bounds| (bounds[0], bounds[1])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(spec: &spec::PreTokenizer, text: &str) -> Vec<String> {
        let whole = vec![AlignedText::of_text(text, 0)];
        let plain = vec![AlignedText::untracked(text.to_owned())];
        let built = PreTokenizer::build(spec);
        let texts = |pieces: Vec<AlignedText>| pieces.into_iter().map(|piece| piece.text).collect::<Vec<_>>();
        let tracked = texts(built.pre_tokenize(whole).unwrap());
        assert_eq!(texts(built.pre_tokenize(plain).unwrap()), tracked);
        tracked
    }

    #[test]
    fn kinds() {
        assert_eq!(pieces(&spec::PreTokenizer::BertPreTokenizer {}, " a--b，c "), ["a", "-", "-", "b", "，", "c"]);
        assert_eq!(pieces(&spec::PreTokenizer::Whitespace {}, "it's é_1 --"), ["it", "'", "s", "é_1", "--"]);
        let punctuation = |behavior| spec::PreTokenizer::Punctuation { behavior };
        assert_eq!(pieces(&punctuation(Behavior::MergedWithPrevious), "-a--b"), ["-", "a-", "-", "b"]);
        assert_eq!(pieces(&punctuation(Behavior::MergedWithNext), "a--b-"), ["a", "-", "-b", "-"]);
        assert_eq!(pieces(&spec::PreTokenizer::Digits { individual_digits: false }, "a12²b"), ["a", "12²", "b"]);
    }

    #[test]
    fn others() {
        let metaspace =
            spec::PreTokenizer::Metaspace { replacement: '▁', prepend_scheme: PrependScheme::Always, split: true };
        assert_eq!(pieces(&metaspace, "a  b▁"), ["▁a", "▁", "▁b", "▁"]);
        assert_eq!(pieces(&spec::PreTokenizer::UnicodeScripts {}, " ab кот カ漢"), ["ab ", "кот ", "カ漢"]);
        assert_eq!(pieces(&spec::PreTokenizer::FixedLength { length: 2 }, "éab"), ["éa", "b"]);
        let byte_level = spec::PreTokenizer::ByteLevel {
            add_prefix_space: true,
            trim_offsets: true,
            use_regex: false,
            pattern: None,
        };
        assert_eq!(pieces(&byte_level, "é"), ["ĠÃ©"]);
    }
}
