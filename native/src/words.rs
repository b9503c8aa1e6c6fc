//! Normalizers that see no further than a word, so that all of them can wait until a word is new.
//!
//! Where a step keeps a space, and what it makes of the text before and behind it does not depend on the other, a text can be
//! cut there as it is, and words be normalized alone. A pre-tokenizer that drops what lies between runs of a set then
//! finds the same in the words as in the text. What a word becomes may have whitespace in it (U+00A8): so all
//! pre-tokenizers, the first one too, come after it.
//!
//! A space is not quite apart for `Precompiled`: a mark behind it is in one cluster with it. So a word is normalized together
//! with the space before it, and other separators have to be controls.

use crate::mapping::Mapping;
use crate::normalizers::Normalizer;
use crate::patterns::tree::CodePointSet;

/// The steps of a normalizer in order.
pub fn flat(normalizer: &Normalizer) -> Vec<&Normalizer> {
    match normalizer {
        Normalizer::Chain(parts) => parts.iter().flat_map(flat).collect(),
        step => vec![step],
    }
}

/// The ASCII characters at which a text can be cut before it is normalized, the space among them. They become one of
/// `dropped` each, but for a carriage return before a newline, which may be gone. None: there are no such characters.
pub fn separators(steps: &[&Normalizer], dropped: &CodePointSet) -> Option<CodePointSet> {
    let becomes = |raw: char| steps.iter().try_fold(raw, |now, step| apart(step, raw, now));
    let is_separator = |raw: &char| becomes(*raw).is_some_and(|now| dropped.contains(now as u32));
    let mut found: Vec<char> = ('\0'..='\x7F').filter(is_separator).collect();
    let ends_lines = |step: &&Normalizer| match step {
        Normalizer::Precompiled(map) => map.lookup("\r\n").ok() == map.lookup("\r").ok(),
        _ => true,
    };
    // They are one cluster: no text is cut within, and together they are as good as the first alone.
    if !(found.contains(&'\r') && found.contains(&'\n') && steps.iter().all(ends_lines)) {
        found.retain(|separator| !matches!(separator, '\r' | '\n'));
    }
    let bounds = found.iter().flat_map(|&separator| [separator as u32, separator as u32 + 1]);
    found.contains(&' ').then(|| bounds.fold(CodePointSet::default(), joined))
}

fn joined(mut set: CodePointSet, bound: u32) -> CodePointSet {
    match set.0.last() {
        Some(&last) if last == bound && set.0.len() % 2 == 0 => {
            set.0.pop();
        }
        _ => set.0.push(bound),
    }
    set
}

/// What a step makes of a character that it keeps apart from what stands before and behind it; `raw` is what the character
/// was at first.
fn apart(step: &Normalizer, raw: char, now: char) -> Option<char> {
    match step {
        Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) => {
            let mut text = String::new();
            mapping.of_character(now, |part| text.push_str(part));
            single(&text)
        }
        Normalizer::Form(form) => form.is_apart(now).then_some(now),
        Normalizer::Replace(replace) => replace.literal().filter(|text| !text.contains(now)).map(|_| now),
        Normalizer::Precompiled(map) if raw == now => map.apart(now),
        _ => None,
    }
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// All steps in one table, for texts whose characters do not change each other: it refuses those that might. The steps have
/// to be of those that have separators.
pub fn table(steps: &[&Normalizer]) -> Mapping {
    let mut changing: Vec<u32> = vec![];
    for step in steps {
        match step {
            Normalizer::Form(form) => changing.extend(form.unstable()),
            Normalizer::Precompiled(map) => changing.extend(map.special()),
            Normalizer::Replace(replace) => {
                changing.extend(replace.literal().unwrap_or_default().chars().map(|c| c as u32));
            }
            step => changing.extend(step.mapping().into_iter().flat_map(Mapping::changed).map(|(c, _)| c as u32)),
        }
    }
    changing.sort_unstable();
    changing.dedup();
    let mut table = Mapping::default();
    for character in changing.into_iter().filter_map(char::from_u32) {
        let becomes = |first: usize| {
            let whole = character.to_string();
            (first..steps.len()).try_fold(whole, |text, at| alone(steps[at], steps.get(at + 1).copied(), &text))
        };
        let code = character as u32;
        let is_long = || match steps[0] {
            Normalizer::Precompiled(map) if map.stays_among_long(character) => {
                becomes(1).is_some_and(|text| text.strip_prefix(character) == Some(""))
            }
            _ => false,
        };
        match becomes(0) {
            Some(text) => table.replace(code, &text),
            None if is_long() => table.keep_among_long([code]),
            None => table.refuse([code]),
        }
    }
    table.share_pages();
    table
}

/// What a step makes of the characters of a text, where that is the same whatever others stand beside them, once the `next`
/// step is done.
fn alone(step: &Normalizer, next: Option<&Normalizer>, text: &str) -> Option<String> {
    let mut result = String::new();
    match step {
        Normalizer::Characterwise(mapping) | Normalizer::Drop(mapping) => {
            text.chars().for_each(|character| mapping.of_character(character, |part| result.push_str(part)));
        }
        Normalizer::Form(form) => {
            let has_no_marks = match next {
                Some(Normalizer::Drop(mapping)) => form.marks().filter_map(char::from_u32).all(|c| mapping.drops(c)),
                _ => false,
            };
            return form.alone(text, has_no_marks);
        }
        Normalizer::Replace(replace) => {
            let literal = replace.literal()?;
            return (!text.chars().any(|character| literal.contains(character))).then(|| text.to_owned());
        }
        Normalizer::Precompiled(map) => return map.alone(text),
        _ => return None,
    }
    Some(result)
}
