//! What each normalizer does to a text: see `engine/reference/normalizers.py`.
//!
//! As there, each has two roads: `normalize` gives the text alone, fast; `normalize_aligned` also says where it comes from.
//! The larger ones have files of their own: `normal_forms.rs`, `charsmap.rs`, and `mapping.rs` for all that maps single
//! characters.

use std::borrow::Cow;

use crate::aligned_text::{AlignedText, Change};
use crate::byte_alphabet;
use crate::character_table::{members, whitespace, CharacterSet};
use crate::charsmap::CharacterMap;
use crate::compiled_pattern::CompiledPattern;
use crate::error::Result;
use crate::mapping::Mapping;
use crate::normal_forms::{normal_form, NormalForm};
use crate::patterns::tree::CodePointSet;
use crate::spec;
use crate::unicode;

/// A normalizer at work.
pub enum Normalizer {
    /// Each character becomes a text of its own, which is never empty.
    Characterwise(Mapping),
    /// Each byte becomes a character of the byte alphabet.
    ByteLevel,
    /// Some characters go; they are charged to the character before them.
    Drop(Mapping),
    /// NFC and its kind.
    Form(&'static NormalForm),
    /// Whitespace goes at the ends.
    Strip {
        /// At the start.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// A text is put in front.
    Prepend(String),
    /// Matches of a pattern are replaced.
    Replace(Replace),
    /// Sentencepiece's map.
    Precompiled(CharacterMap),
    /// One after the other.
    Chain(Vec<Normalizer>),
    /// BertNormalizer: its steps, and all of them in one table.
    Bert(Vec<Normalizer>, Mapping),
}

impl Normalizer {
    /// Build the normalizer of a spec. `place` is its JSON path, for errors.
    pub fn build(spec: &spec::Normalizer, place: &str) -> Result<Normalizer> {
        Ok(match spec {
            spec::Normalizer::BertNormalizer { clean_text, handle_chinese_chars, strip_accents, lowercase } => {
                let strips = strip_accents.unwrap_or(*lowercase);
                bert(*clean_text, *handle_chinese_chars, strips, *lowercase)
            }
            spec::Normalizer::Strip { strip_left, strip_right } => {
                Normalizer::Strip { left: *strip_left, right: *strip_right }
            }
            spec::Normalizer::StripAccents {} => dropping(&unicode::rust().set("combining_mark")),
            spec::Normalizer::NFC {} => Normalizer::Form(normal_form(false, true)),
            spec::Normalizer::NFD {} => Normalizer::Form(normal_form(false, false)),
            spec::Normalizer::NFKC {} => Normalizer::Form(normal_form(true, true)),
            spec::Normalizer::NFKD {} => Normalizer::Form(normal_form(true, false)),
            spec::Normalizer::Lowercase {} => lowercase(),
            spec::Normalizer::Nmt {} => {
                // Sentencepiece's nmt rule, as the oracle has it: 0x8F and 0x9F of all the C1 controls, no U+00A0.
                let dropped = [1, 9, 0xB, 0xC, 0xE, 0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0];
                let spaces = [
                    9, 0xB, 0xC, 0xE, 0x1680, 0x1681, 0x200B, 0x2010, 0x2028, 0x202A, 0x2581, 0x2582, 0xFEFF, 0xFF00,
                    0xFFFD, 0xFFFE,
                ];
                let spaces = CodePointSet(spaces.to_vec());
                Normalizer::Chain(vec![dropping(&CodePointSet(dropped.to_vec())), spacing(&spaces)])
            }
            spec::Normalizer::Precompiled { precompiled_charsmap } => {
                Normalizer::Precompiled(CharacterMap::read(precompiled_charsmap, place)?)
            }
            spec::Normalizer::Replace { pattern, content } => {
                let pattern = CompiledPattern::new(pattern);
                Normalizer::Replace(Replace { content: content.clone(), pattern })
            }
            spec::Normalizer::Prepend { prepend } => Normalizer::Prepend(prepend.clone()),
            spec::Normalizer::ByteLevel {} => Normalizer::ByteLevel,
            spec::Normalizer::Sequence { normalizers } => {
                let build = |(index, part)| Normalizer::build(part, &format!("{place}.normalizers[{index}]"));
                Normalizer::Chain(normalizers.iter().enumerate().map(build).collect::<Result<_>>()?)
            }
        })
    }

    /// Whether what comes after may depend on alignments, so that only `normalize_aligned` is right.
    ///
    /// It is so where text can be put in front of the first character of the document (see `aligned_text.py`).
    pub fn needs_alignment(&self) -> bool {
        match self {
            Normalizer::Prepend(prefix) => prefix.is_empty(),
            Normalizer::Replace(replace) => replace.pattern.can_be_empty && !replace.content.is_empty(),
            Normalizer::Chain(parts) => parts.iter().any(Normalizer::needs_alignment),
            _ => false,
        }
    }

    /// The map of single characters that it is, where it is one.
    pub fn mapping(&self) -> Option<&Mapping> {
        match self {
            Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) | Normalizer::Bert(_, mapping) => {
                Some(mapping)
            }
            _ => None,
        }
    }

    /// Whether any piece of a text may change when it is normalized alone; false is a proof that none does.
    pub fn may_change_within(&self, text: &str) -> bool {
        match self {
            Normalizer::Strip { .. } => {
                let whitespace = whitespace();
                text.chars().any(|character| whitespace.contains(character))
            }
            Normalizer::Chain(parts) => parts.iter().any(|part| part.may_change_within(text)),
            _ => self.may_change(text),
        }
    }

    /// Whether a text may change; false is a proof that it does not.
    pub fn may_change(&self, text: &str) -> bool {
        match self {
            Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) | Normalizer::Bert(_, mapping) => {
                mapping.changes(text)
            }
            Normalizer::ByteLevel => !text.bytes().all(|byte| byte.is_ascii_graphic()),
            Normalizer::Form(form) => form.may_change(text),
            Normalizer::Strip { .. } => self.stripped(text).len() < text.len(),
            Normalizer::Prepend(_) => !text.is_empty(),
            Normalizer::Replace(replace) => replace.pattern.may_match_other_than(&replace.content, text),
            Normalizer::Precompiled(map) => map.may_change(text),
            Normalizer::Chain(parts) => parts.iter().any(|part| part.may_change(text)),
        }
    }

    /// Append the normalized text.
    pub fn normalize(&self, text: &str, result: &mut String) -> Result<()> {
        match self {
            Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) => {
                mapping.apply(text, result);
            }
            Normalizer::ByteLevel => byte_alphabet::write_into(text.as_bytes(), result),
            Normalizer::Form(form) => form.apply(text, result),
            Normalizer::Strip { .. } => result.push_str(self.stripped(text)),
            Normalizer::Prepend(prefix) => {
                result.push_str(if text.is_empty() { "" } else { prefix });
                result.push_str(text);
            }
            Normalizer::Replace(replace) => replace.pattern.replace(text, &replace.content, result)?,
            Normalizer::Precompiled(map) => map.apply(text, result)?,
            Normalizer::Chain(_) if self.needs_alignment() => {
                result.push_str(&self.normalize_aligned(AlignedText::of_text(text, 0))?.text);
            }
            Normalizer::Bert(_, mapping) if mapping.apply(text, result) => {}
            Normalizer::Chain(parts) | Normalizer::Bert(parts, _) => apply_all(parts, text, result)?,
        }
        Ok(())
    }

    /// The normalized text with its alignments. A text that is not tracked takes the other road.
    pub fn normalize_aligned(&self, text: AlignedText) -> Result<AlignedText> {
        if !text.is_tracked() {
            let mut result = String::with_capacity(text.text.len());
            self.normalize(&text.text, &mut result)?;
            return Ok(AlignedText::untracked(result));
        }
        let old = &text.text;
        match self {
            Normalizer::Characterwise(mapping) => {
                let mut changes = vec![];
                for character in old.chars() {
                    let mut change = 0;
                    mapping.of_character(character, |part| {
                        for part in part.chars() {
                            changes.push((part, change));
                            change = 1;
                        }
                    });
                }
                text.transform(changes, 0)
            }
            Normalizer::ByteLevel => byte_level(text),
            Normalizer::Drop(mapping) => dropped(text, mapping),
            Normalizer::Form(form) if !text.has_plain_start() => {
                let mut changes = vec![];
                form.changes(old, &mut changes);
                text.transform(changes, 0)
            }
            Normalizer::Form(form) => {
                let changes = |(start, end)| {
                    let mut changes = vec![];
                    form.changes(&old[start..end], &mut changes);
                    (start, end, changes)
                };
                let runs: Vec<(usize, usize, Vec<Change>)> = form.unstable_runs(old).into_iter().map(changes).collect();
                if runs.is_empty() {
                    Ok(text)
                } else {
                    text.transform_runs(runs)
                }
            }
            Normalizer::Strip { left, .. } => {
                let kept = self.stripped(old);
                if kept.len() == old.len() {
                    return Ok(text);
                }
                let is_space = |character: &char| whitespace().contains(*character);
                let leading = if *left { old.chars().take_while(is_space).count() } else { 0 };
                let changes: Vec<Change> = kept.chars().map(|character| (character, 0)).collect();
                text.transform(changes, leading)
            }
            Normalizer::Prepend(prefix) => text.prepend(prefix),
            Normalizer::Replace(replace) => {
                let spans = replace.pattern.spans(old)?;
                Ok(if spans.is_empty() { text } else { text.replace(spans, &replace.content) })
            }
            Normalizer::Precompiled(map) => match map.changes(old)? {
                None => Ok(text),
                Some(changes) => text.transform(changes, 0),
            },
            Normalizer::Chain(parts) | Normalizer::Bert(parts, _) => {
                parts.iter().try_fold(text, |text, part| part.normalize_aligned(text))
            }
        }
    }

    fn stripped<'a>(&self, mut text: &'a str) -> &'a str {
        let Normalizer::Strip { left, right } = *self else { return text };
        let whitespace = whitespace();
        if left {
            text = text.trim_start_matches(|character| whitespace.contains(character));
        }
        if right {
            text = text.trim_end_matches(|character| whitespace.contains(character));
        }
        text
    }
}

/// Write the bytes of each character in the byte alphabet.
pub fn byte_level(text: AlignedText) -> Result<AlignedText> {
    let mut changes = vec![];
    for character in text.text.chars() {
        let mut room = [0; 4];
        let bytes = character.encode_utf8(&mut room).as_bytes();
        let written = bytes.iter().enumerate();
        changes.extend(written.map(|(index, &byte)| (byte_alphabet::character_of(byte), isize::from(index > 0))));
    }
    text.transform(changes, 0)
}

fn dropped(text: AlignedText, mapping: &Mapping) -> Result<AlignedText> {
    let characters: Vec<(usize, char)> = text.text.char_indices().collect();
    if text.has_plain_start() {
        let gone = characters.iter().filter(|(_, character)| mapping.drops(*character));
        let spans: Vec<(usize, usize)> =
            gone.map(|(place, character)| (*place, place + character.len_utf8())).collect();
        return Ok(if spans.is_empty() { text } else { text.replace(spans, "") });
    }
    let kept: Vec<usize> = (0..characters.len()).filter(|&at| !mapping.drops(characters[at].1)).collect();
    let Some(&first) = kept.first() else {
        // The oracle counts what it drops at the start only once something follows.
        return text.transform([], 0);
    };
    let following = kept[1..].iter().copied().chain([characters.len()]);
    let changes: Vec<Change> =
        kept.iter().zip(following).map(|(&at, after)| (characters[at].1, (at + 1) as isize - after as isize)).collect();
    text.transform(changes, first)
}

fn dropping(set: &CodePointSet) -> Normalizer {
    let mut mapping = Mapping::default();
    mapping.drop_all(members(set));
    Normalizer::Drop(mapping)
}

fn spacing(set: &CodePointSet) -> Normalizer {
    let mut mapping = Mapping::default();
    members(set).for_each(|code| mapping.replace(code, " "));
    Normalizer::Characterwise(mapping)
}

fn lower_cases() -> Vec<(u32, String)> {
    let mapping = unicode::rust().mapping("lowercase");
    let text = |codes: &[u32]| codes.iter().filter_map(|&code| char::from_u32(code)).collect();
    mapping.iter().map(|(code, lower)| (*code, text(lower))).collect()
}

fn lowercase() -> Normalizer {
    let mut mapping = Mapping::default();
    lower_cases().iter().for_each(|(code, lower)| mapping.replace(*code, lower));
    mapping.share_pages();
    Normalizer::Characterwise(mapping)
}

/// Clean, set Chinese apart, strip accents, lowercase; and a table that does it all, but for texts with marks that are
/// kept and could change places.
fn bert(cleans: bool, sets_apart: bool, strips: bool, lowers: bool) -> Normalizer {
    let rust = unicode::rust();
    let (control, whitespace) = (rust.set("bert_control"), rust.set("whitespace"));
    let (chinese, accents) = (rust.set("chinese"), rust.set("mark_nonspacing"));
    let form = normal_form(false, false);
    let mut parts = vec![];
    // In the order in which the table is to be filled: what comes later is stronger.
    let mut mapping = Mapping::default();
    let mut apart = Mapping::default();
    apart.set_apart(members(&chinese));
    let mut changing: Vec<u32> = vec![];
    if cleans {
        parts.extend([dropping(&control), spacing(&whitespace)]);
    }
    if sets_apart {
        mapping.set_apart(members(&chinese));
        parts.push(Normalizer::Characterwise(apart));
    }
    if strips {
        parts.extend([Normalizer::Form(form), dropping(&accents)]);
        changing.extend((0..0x11_0000).filter(|&code| char::from_u32(code).is_some_and(|c| form.is_unstable(c))));
        mapping.drop_all(members(&accents));
    }
    if lowers {
        parts.push(lowercase());
        changing.extend(lower_cases().iter().map(|entry| entry.0));
    }
    let (accent_set, chinese_set) = (CharacterSet::of_set(&accents), CharacterSet::of_set(&chinese));
    let after_spaces: &[Normalizer] =
        if strips || lowers { &parts[parts.len() - steps(strips, lowers)..] } else { &[] };
    for code in changing {
        let Some(character) = char::from_u32(code) else { continue };
        let mut text = String::from(character);
        for part in after_spaces {
            let mut next = String::new();
            // These steps cannot fail.
            part.normalize(&text, &mut next).unwrap_or_default();
            text = next;
        }
        if sets_apart && chinese_set.contains(character) {
            text = format!(" {text} ");
        }
        mapping.replace(code, &text);
    }
    if strips {
        let is_kept = |&code: &u32| char::from_u32(code).is_some_and(|c| form.is_mark(c) && !accent_set.contains(c));
        mapping.refuse((0..0x11_0000).filter(is_kept));
    }
    if cleans {
        members(&whitespace).for_each(|code| mapping.replace(code, " "));
        mapping.drop_all(members(&control));
    }
    mapping.share_pages();
    Normalizer::Bert(parts, mapping)
}

fn steps(strips: bool, lowers: bool) -> usize {
    2 * usize::from(strips) + usize::from(lowers)
}

/// Replace each match of a pattern by a text.
pub struct Replace {
    content: String,
    pattern: CompiledPattern,
}

/// Append what steps make of a text, one after the other.
pub fn apply_all<'a>(steps: impl IntoIterator<Item = &'a Normalizer>, text: &str, result: &mut String) -> Result<()> {
    let mut current = Cow::Borrowed(text);
    for step in steps {
        if step.may_change(&current) {
            let mut next = String::with_capacity(current.len() + current.len() / 8);
            step.normalize(&current, &mut next)?;
            current = Cow::Owned(next);
        }
    }
    result.push_str(&current);
    Ok(())
}

impl Replace {
    /// The text that is replaced, where the pattern is one; it is not empty.
    pub fn literal(&self) -> Option<&str> {
        self.pattern.literal().filter(|text| !text.is_empty())
    }

    /// What a run of spaces becomes, a space or this mark; None where it does not become that, or a single space or
    /// something else changes, too.
    pub fn joins_spaces(&self, mark: char) -> Option<char> {
        let content = [' ', mark].into_iter().find(|&content| self.content.strip_prefix(content) == Some(""))?;
        self.pattern.is_run_of_spaces().then_some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bert_uncased() -> Normalizer {
        bert(true, true, true, true)
    }

    #[test]
    fn the_table_of_bert_is_its_steps() {
        let Normalizer::Bert(parts, mapping) = bert_uncased() else { unreachable!("it was just built") };
        for code in 0..0x11_0000u32 {
            let Some(character) = char::from_u32(code) else { continue };
            let text = String::from(character);
            let steps = parts.iter().fold(text.clone(), |text, part| {
                let mut next = String::new();
                part.normalize(&text, &mut next).unwrap();
                next
            });
            let mut table = String::new();
            if mapping.apply(&text, &mut table) {
                assert_eq!(table, steps, "{code:x}");
            }
        }
    }

    #[test]
    fn both_roads_agree() {
        for normalizer in [bert_uncased(), lowercase(), Normalizer::Strip { left: true, right: true }] {
            for text in [" Ünïcödé\u{0}中\t文 ", "\u{302e}\u{301} a", "", "ΑΣ"] {
                let mut plain = String::new();
                normalizer.normalize(text, &mut plain).unwrap();
                assert_eq!(normalizer.normalize_aligned(AlignedText::of_text(text, 3)).unwrap().text, plain);
            }
        }
    }
}
