//! Extended grapheme clusters, by the rules of Unicode Standard Annex 29 over the pinned tables.
//!
//! Only the normalizer `Precompiled` asks for them. `engine/reference/graphemes.py` has the rules as a pattern; here they
//! are steps in the same order.

use std::sync::OnceLock;

use crate::character_table::{members, CharacterTable};
use crate::locks::made_once;
use crate::unicode;

const CONTROL: u16 = 1;
const PREPEND: u16 = 1 << 1;
const EXTEND: u16 = 1 << 2;
const SPACING: u16 = 1 << 3;
const PICTOGRAPHIC: u16 = 1 << 4;
const L: u16 = 1 << 5;
const V: u16 = 1 << 6;
const T: u16 = 1 << 7;
const LV: u16 = 1 << 8;
const LVT: u16 = 1 << 9;
const FLAG: u16 = 1 << 10;
const CONSONANT: u16 = 1 << 11;
const LINKER: u16 = 1 << 12;
const CONJUNCT: u16 = 1 << 13;
const JOINER: u16 = 1 << 14;
/// What can stand beside another character in one cluster on its own account; but for CR LF.
const JOINS: u16 = JOINER | EXTEND | SPACING | PREPEND | L | V | T | FLAG;

fn kinds() -> &'static CharacterTable<u16> {
    static KINDS: OnceLock<CharacterTable<u16>> = OnceLock::new();
    made_once(&KINDS, || {
        let sets = [
            ("grapheme_control", CONTROL),
            ("grapheme_prepend", PREPEND),
            ("grapheme_extend", EXTEND),
            ("grapheme_spacing_mark", SPACING),
            ("grapheme_pictographic", PICTOGRAPHIC),
            ("grapheme_hangul_l", L),
            ("grapheme_hangul_v", V),
            ("grapheme_hangul_t", T),
            ("grapheme_hangul_lv", LV),
            ("grapheme_hangul_lvt", LVT),
            ("grapheme_regional_indicator", FLAG),
            ("grapheme_conjunct_consonant", CONSONANT),
            ("grapheme_conjunct_extend", CONJUNCT),
            ("grapheme_conjunct_linker", LINKER),
        ];
        let mut kinds = CharacterTable::new(0u16);
        for (name, kind) in sets {
            members(&unicode::graphemes().set(name)).for_each(|code| kinds.update(code, |kinds| kinds | kind));
        }
        kinds.update(0x200D, |kinds| kinds & !EXTEND | JOINER);
        kinds
    })
}

/// Whether a character can stand in one cluster with others. CR LF aside, what no such character touches is alone.
#[inline(always)]
pub fn joins(character: char) -> bool {
    kinds().get(character) & JOINS != 0
}

/// Whether a character belongs to the cluster of the one before it, unless that is a control, and joins nothing else to it.
pub fn trails(character: char) -> bool {
    let kinds = kinds().get(character);
    kinds & (EXTEND | SPACING) != 0 && kinds & (LINKER | PREPEND | JOINER | L | V | T | FLAG | CONTROL) == 0
}

/// Whether a character is in no cluster with others, CR LF aside, and is not printed.
pub fn is_control(character: char) -> bool {
    kinds().get(character) & CONTROL != 0
}

/// Whether a character is in one cluster with whatever follows it, unless that is a control.
pub fn precedes(character: char) -> bool {
    kinds().get(character) & PREPEND != 0
}

/// The length in bytes of the cluster that a text, which is not empty, begins with.
pub fn cluster_length(text: &str) -> usize {
    let kinds = kinds();
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return 0 };
    let length = first.len_utf8();
    let second = characters.next();
    // The common case: two characters of which neither joins others.
    if kinds.get(first) & (JOINS | CONTROL) == 0 && second.map_or(0, |next| kinds.get(next) & JOINS) == 0 {
        return length;
    }
    if first == '\r' && second == Some('\n') {
        return 2;
    }
    if kinds.get(first) & CONTROL != 0 {
        return length;
    }
    Walk { text, at: 0 }.cluster()
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl Walk<'_> {
    fn next(&self) -> Option<(u16, usize)> {
        self.text[self.at..].chars().next().map(|character| (kinds().get(character), character.len_utf8()))
    }

    /// Take one character of these kinds.
    fn one(&mut self, wanted: u16) -> bool {
        match self.next() {
            Some((kinds, length)) if kinds & wanted != 0 => {
                self.at += length;
                true
            }
            _ => false,
        }
    }

    fn many(&mut self, wanted: u16) -> bool {
        let mut any = false;
        while self.one(wanted) {
            any = true;
        }
        any
    }

    fn cluster(mut self) -> usize {
        let mut last_prepended = 0;
        loop {
            let before = self.at;
            if !self.one(PREPEND) {
                break;
            }
            last_prepended = before;
        }
        if !self.core() {
            // The last of those that stand before something is itself the core.
            self.at = last_prepended;
            if let Some((_, length)) = self.next() {
                self.at += length;
            }
        }
        self.many(EXTEND | JOINER | SPACING);
        self.at
    }

    fn core(&mut self) -> bool {
        let start = self.at;
        // GB6 to GB8: Hangul.
        let leading = self.many(L);
        if self.many(V) {
            self.many(T);
            return true;
        }
        if self.one(LV) {
            self.many(V);
            self.many(T);
            return true;
        }
        if self.one(LVT) {
            self.many(T);
            return true;
        }
        if leading || self.many(T) {
            return true;
        }
        // GB12, GB13.
        if self.one(FLAG) && self.one(FLAG) {
            return true;
        }
        self.at = start;
        if self.one(PICTOGRAPHIC) {
            // GB11.
            loop {
                let done = self.at;
                self.many(EXTEND);
                if !(self.one(JOINER) && self.one(PICTOGRAPHIC)) {
                    self.at = done;
                    return true;
                }
            }
        }
        if self.one(CONSONANT) {
            // GB9c.
            loop {
                let done = self.at;
                let mut has_linker = false;
                while let Some((kinds, length)) = self.next().filter(|(kinds, _)| kinds & (CONJUNCT | LINKER) != 0) {
                    has_linker |= kinds & LINKER != 0;
                    self.at += length;
                }
                if !(has_linker && self.one(CONSONANT)) {
                    self.at = done;
                    return true;
                }
            }
        }
        match self.next() {
            Some((kinds, length)) if kinds & CONTROL == 0 => {
                self.at += length;
                true
            }
            _ => false,
        }
    }
}

/// The clusters of a text.
pub fn graphemes(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (cluster, rest) = text.split_at(cluster_length(text));
        text = rest;
        (!cluster.is_empty()).then_some(cluster)
    })
}

#[cfg(test)]
mod tests {
    use super::graphemes;

    #[test]
    fn clusters() {
        let clusters: Vec<&str> =
            graphemes("e\u{301}\r\n!\u{600}a\u{600}\n👨\u{200d}👩🇩🇪🇫각\u{11a8}क\u{94d}ष").collect();
        assert_eq!(
            clusters,
            [
                "e\u{301}",
                "\r\n",
                "!",
                "\u{600}a",
                "\u{600}",
                "\n",
                "👨\u{200d}👩",
                "🇩🇪",
                "🇫",
                "각\u{11a8}",
                "क\u{94d}ष"
            ]
        );
    }
}
