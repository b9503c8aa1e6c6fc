//! The four normal forms of Unicode over the pinned tables: see `engine/reference/normal_forms.py`.

use std::sync::OnceLock;

use crate::aligned_text::Change;
use crate::character_table::CharacterTable;
use crate::hash::FastMap;
use crate::locks::made_once;
use crate::patterns::classes::ascii_prefix;
use crate::unicode;

// Hangul syllables compose and decompose by arithmetic (Unicode Standard, section 3.12).
const SYLLABLE: u32 = 0xAC00;
const LEADING: u32 = 0x1100;
const VOWEL: u32 = 0x1161;
const TRAILING: u32 = 0x11A7;
const LEADING_COUNT: u32 = 19;
const VOWEL_COUNT: u32 = 21;
const TRAILING_COUNT: u32 = 28;
const SYLLABLE_COUNT: u32 = LEADING_COUNT * VOWEL_COUNT * TRAILING_COUNT;

/// NFD, NFKD (`compatible`), NFC (`composed`) or NFKC (both).
pub struct NormalForm {
    is_composed: bool,
    /// 0: the character stays; else the number of its decomposition, plus 1.
    decompositions: CharacterTable<u32>,
    texts: Vec<Vec<char>>,
    classes: CharacterTable<u8>,
    pairs: FastMap<(char, char), char>,
    /// For each character, whether it may change, alone or because of what stands beside.
    unstable: CharacterTable<u8>,
}

/// A character that does not change, whatever stands beside it.
const STABLE: u8 = 0;
/// A mark that may change its place among others, and nothing else.
const MARK: u8 = 1;
/// A character that may change, or change what stands before it.
const UNSTABLE: u8 = 2;

/// The one normal form of that kind; its tables are shared.
pub fn normal_form(is_compatible: bool, is_composed: bool) -> &'static NormalForm {
    static FORMS: [OnceLock<NormalForm>; 4] = [const { OnceLock::new() }; 4];
    let number = usize::from(is_compatible) + 2 * usize::from(is_composed);
    made_once(&FORMS[number], || NormalForm::new(is_compatible, is_composed))
}

fn character(code: u32) -> char {
    char::from_u32(code).expect("the tables have scalar values only")
}

impl NormalForm {
    fn new(is_compatible: bool, is_composed: bool) -> NormalForm {
        let tables = unicode::normalization();
        let mut form = NormalForm {
            is_composed,
            decompositions: CharacterTable::new(0),
            texts: vec![],
            classes: CharacterTable::new(0),
            pairs: FastMap::default(),
            unstable: CharacterTable::new(STABLE),
        };
        let decompositions = tables.mapping(if is_compatible { "compatible" } else { "canonical" });
        for (code, parts) in &decompositions {
            form.texts.push(parts.iter().map(|&part| character(part)).collect());
            let number = form.texts.len() as u32;
            form.decompositions.update(*code, |_| number);
        }
        let marks = tables.mapping("combining");
        for (code, class) in &marks {
            form.classes.update(*code, |_| class[0] as u8);
            form.unstable.update(*code, |_| MARK);
        }
        let mut seconds = vec![];
        for (code, pair) in tables.mapping("composition") {
            form.pairs.insert((character(pair[0]), character(pair[1])), character(code));
            seconds.push(pair[1]);
        }
        if !is_composed {
            let syllables = SYLLABLE..SYLLABLE + SYLLABLE_COUNT;
            decompositions
                .iter()
                .map(|entry| entry.0)
                .chain(syllables)
                .for_each(|c| form.unstable.update(c, |_| UNSTABLE));
            return form;
        }
        let vowels = VOWEL..VOWEL + VOWEL_COUNT;
        let trailing = TRAILING + 1..TRAILING + TRAILING_COUNT;
        seconds.into_iter().chain(vowels).chain(trailing).for_each(|code| form.unstable.update(code, |_| UNSTABLE));
        // A character that decomposes and composes to itself again is stable, unless its first part joins what stands
        // before it.
        let joining = form.unstable.clone();
        for (code, parts) in &decompositions {
            let whole = character(*code);
            let mut changes = vec![];
            form.changes(whole.encode_utf8(&mut [0; 4]), &mut changes);
            if joining.get(character(parts[0])) != STABLE || changes != [(whole, 0)] {
                form.unstable.update(*code, |_| UNSTABLE);
            }
        }
        form
    }

    /// Append the normalized characters, each with its change (see `AlignedText::transform`).
    pub fn changes(&self, text: &str, changes: &mut Vec<Change>) {
        if !self.is_composed {
            return self.decompose(text, changes);
        }
        let mut decomposed = vec![];
        self.decompose(text, &mut decomposed);
        self.recompose(&decomposed, changes);
    }

    /// Whether a character may change, alone or because of what stands beside it.
    #[inline(always)]
    pub fn is_unstable(&self, character: char) -> bool {
        self.unstable.get(character) != STABLE
    }

    /// The characters that may change, alone or because of what stands beside them.
    pub fn unstable(&self) -> impl Iterator<Item = u32> + '_ {
        self.unstable.others(STABLE).map(|(code, _)| code)
    }

    /// Whether a character stays, and texts before and behind it have nothing to do with each other.
    pub fn is_apart(&self, character: char) -> bool {
        let is_in = |pair: &(char, char)| pair.0 == character || pair.1 == character;
        self.unstable.get(character) == STABLE && !is_hangul(character) && !self.pairs.keys().any(is_in)
    }

    /// The marks that may change places.
    pub fn marks(&self) -> impl Iterator<Item = u32> + '_ {
        self.classes.others(0).map(|(code, _)| code)
    }

    /// What a text becomes, where that is the same whatever other such texts stand beside it, if marks go then
    /// (`has_no_marks`) or if they do not.
    pub fn alone(&self, text: &str, has_no_marks: bool) -> Option<String> {
        if !text.chars().any(|character| self.is_unstable(character)) {
            return Some(text.to_owned());
        }
        let mut result = String::new();
        self.apply(text, &mut result);
        // Nothing is composed, and no mark passes a character that is none.
        let begins_apart = has_no_marks || result.chars().next().is_none_or(|first| !self.is_mark(first));
        (!self.is_composed && begins_apart).then_some(result)
    }

    /// Whether a text may change; false is a proof that it does not.
    pub fn may_change(&self, text: &str) -> bool {
        let mut may_change = false;
        self.each_run(text, |_, _| {
            may_change = true;
            false
        });
        may_change
    }

    /// The (start, end) of the runs of characters that may change. Normalizing each of them alone normalizes the text.
    pub fn unstable_runs(&self, text: &str) -> Vec<(usize, usize)> {
        let mut runs = vec![];
        self.each_run(text, |start, end| {
            runs.push((start, end));
            true
        });
        runs
    }

    /// Hand over the runs of characters that may change, until `on_run` says false. No ASCII character changes, and no marks
    /// in order that neither decompose nor compose with anything.
    #[inline(always)]
    fn each_run(&self, text: &str, mut on_run: impl FnMut(usize, usize) -> bool) {
        let bytes = text.as_bytes();
        let mut at = 0;
        // The stable character before a run may be the starter that its marks compose with.
        let mut before = 0;
        loop {
            let ascii = ascii_prefix(&bytes[at..]);
            at += ascii;
            if ascii > 0 {
                before = at - 1;
            }
            let mut start = None;
            let mut is_open = false;
            let mut last_class = 0;
            for character in text[at..].chars() {
                let kind = self.unstable.get(character);
                if kind == STABLE {
                    if is_open && !on_run(start.unwrap_or(before), at) {
                        return;
                    }
                    (start, is_open, last_class) = (None, false, 0);
                    if character.is_ascii() {
                        break;
                    }
                } else {
                    let class = self.classes.get(character);
                    is_open |= kind == UNSTABLE || class < last_class;
                    start = start.or(Some(before));
                    last_class = class;
                }
                before = at;
                at += character.len_utf8();
            }
            if is_open && !on_run(start.unwrap_or(before), at) {
                return;
            }
            if at == bytes.len() {
                return;
            }
        }
    }

    /// Append the normalized text.
    pub fn apply(&self, text: &str, result: &mut String) {
        let mut changes = vec![];
        let mut done = 0;
        for (start, end) in self.unstable_runs(text) {
            result.push_str(&text[done..start]);
            changes.clear();
            self.changes(&text[start..end], &mut changes);
            result.extend(changes.iter().map(|change| change.0));
            done = end;
        }
        result.push_str(&text[done..]);
    }

    /// Whether a character has a combining class other than 0.
    pub fn is_mark(&self, character: char) -> bool {
        self.classes.get(character) != 0
    }

    fn decompose(&self, text: &str, changes: &mut Vec<Change>) {
        let mut marks: Vec<(u8, Change)> = vec![];
        let mut push = |part: char, change: isize, changes: &mut Vec<Change>| match self.classes.get(part) {
            0 => {
                in_order(&mut marks, changes);
                changes.push((part, change));
            }
            class => marks.push((class, (part, change))),
        };
        for whole in text.chars() {
            match self.decompositions.get(whole) {
                0 => match (whole as u32).wrapping_sub(SYLLABLE) {
                    index @ 0..SYLLABLE_COUNT => {
                        let (pair, trailing) = (index / TRAILING_COUNT, index % TRAILING_COUNT);
                        push(character(LEADING + pair / VOWEL_COUNT), 0, changes);
                        push(character(VOWEL + pair % VOWEL_COUNT), 1, changes);
                        if trailing > 0 {
                            push(character(TRAILING + trailing), 1, changes);
                        }
                    }
                    _ => push(whole, 0, changes),
                },
                number => {
                    for (index, &part) in self.texts[number as usize - 1].iter().enumerate() {
                        push(part, isize::from(index > 0), changes);
                    }
                }
            }
        }
        in_order(&mut marks, changes);
    }

    /// Compose each starter with what follows it, unless a mark of the same or a higher class stands between.
    fn recompose(&self, decomposed: &[Change], changes: &mut Vec<Change>) {
        let mut starter: Option<Change> = None;
        let mut marks: Vec<Change> = vec![];
        let mut last_class = -1i16;
        for &(part, change) in decomposed {
            let class = i16::from(self.classes.get(part));
            let Some(begun) = &mut starter else {
                match class {
                    0 => starter = Some((part, change)),
                    _ => changes.push((part, change)),
                }
                continue;
            };
            if last_class < class {
                if let Some(composed) = self.compose(begun.0, part) {
                    *begun = (composed, begun.1 + change - 1);
                    continue;
                }
            }
            if class == 0 {
                changes.push(*begun);
                changes.append(&mut marks);
                (starter, last_class) = (Some((part, change)), -1);
            } else {
                marks.push((part, change));
                last_class = class;
            }
        }
        changes.extend(starter);
        changes.append(&mut marks);
    }

    fn compose(&self, first: char, second: char) -> Option<char> {
        let (one, two) = (first as u32, second as u32);
        let vowel = two.wrapping_sub(VOWEL);
        let leading = one.wrapping_sub(LEADING);
        if leading < LEADING_COUNT && vowel < VOWEL_COUNT {
            return Some(character(SYLLABLE + (leading * VOWEL_COUNT + vowel) * TRAILING_COUNT));
        }
        let syllable = one.wrapping_sub(SYLLABLE);
        let is_open = syllable < SYLLABLE_COUNT && syllable % TRAILING_COUNT == 0;
        if is_open && (1..TRAILING_COUNT).contains(&two.wrapping_sub(TRAILING)) {
            return Some(character(one + two - TRAILING));
        }
        self.pairs.get(&(first, second)).copied()
    }
}

fn is_hangul(character: char) -> bool {
    let code = character as u32;
    (LEADING..LEADING + 0x100).contains(&code) || (SYLLABLE..SYLLABLE + SYLLABLE_COUNT).contains(&code)
}

fn in_order(marks: &mut Vec<(u8, Change)>, changes: &mut Vec<Change>) {
    marks.sort_by_key(|mark| mark.0);
    changes.extend(marks.drain(..).map(|mark| mark.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(is_compatible: bool, is_composed: bool, text: &str) -> String {
        let mut result = String::new();
        normal_form(is_compatible, is_composed).apply(text, &mut result);
        result
    }

    #[test]
    fn the_four_forms() {
        assert_eq!(applied(false, false, "é가ﬁ"), "e\u{301}\u{1100}\u{1161}ﬁ");
        assert_eq!(applied(false, true, "xe\u{301}\u{323}\u{1100}\u{1161}\u{11a8}ﬁ"), "xẹ\u{301}각ﬁ");
        assert_eq!(applied(true, true, "ﬁ①e\u{301}"), "fi1é");
        assert_eq!(applied(true, false, "ﬁé"), "fie\u{301}");
    }

    #[test]
    fn runs_alone_are_the_whole() {
        for (is_compatible, is_composed) in [(false, false), (false, true), (true, false), (true, true)] {
            let form = normal_form(is_compatible, is_composed);
            let marks = (0..0x11_0000).step_by(3).filter_map(char::from_u32).filter(|&mark| form.is_mark(mark));
            for mark in marks {
                for text in
                    [format!("e{mark}\u{323}"), format!("é\u{5b0}{mark}a"), format!("가{mark}\u{3099}{mark}\u{301}")]
                {
                    let mut changes = vec![];
                    form.changes(&text, &mut changes);
                    let whole: String = changes.iter().map(|change| change.0).collect();
                    assert_eq!(applied(is_compatible, is_composed, &text), whole, "{text:?}");
                }
            }
            for text in ["a\u{323}\u{301}b", "\u{301}\u{323}", "가\u{11a8}\u{301}e\u{301}", "ΩÅﬁ\u{345}\u{308}"] {
                let mut changes = vec![];
                form.changes(text, &mut changes);
                let whole: String = changes.iter().map(|change| change.0).collect();
                assert_eq!(applied(is_compatible, is_composed, text), whole);
            }
        }
    }
}
