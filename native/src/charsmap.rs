//! Sentencepiece's compiled character map: see `engine/reference/charsmap.py`, whose every oddity is here too.

use crate::aligned_text::Change;
use crate::character_table::CharacterTable;
use crate::error::{Class, Error, Result};
use crate::graphemes::{cluster_length, is_control, joins, precedes, trails};

/// Longer clusters are taken apart; in bytes.
const LONGEST_CLUSTER: usize = 5;

/// Of a character in the table of single characters.
const STAYS: u32 = 0;
const FAILS: u32 = u32::MAX;

/// What `apply` knows of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// It stays, unless it is in a cluster with others.
    Simple,
    /// It changes.
    Changing,
    /// It can be in one cluster with others.
    Joining,
    /// It is in the cluster of the character before it, and stays where it is not looked up together with others.
    Trailing,
}

/// A compiled character map.
pub struct CharacterMap {
    units: Vec<u32>,
    replacements: String,
    /// What becomes of each character alone: `STAYS`, `FAILS` or the number of a span, plus 1.
    of_character: CharacterTable<u32>,
    spans: Vec<(u32, u32)>,
    /// What a character is on its own.
    kinds: CharacterTable<Kind>,
    /// Whether a byte is an ASCII character of the kind `Simple`.
    is_simple: [bool; 256],
}

impl CharacterMap {
    /// Read a map. `place` is its JSON path.
    pub fn read(data: &[u8], place: &str) -> Result<CharacterMap> {
        let broken = |message: String| Error::new(Class::Spec, message).at(place);
        let size = data.first_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize / 4 * 4);
        let Some((units, replacements)) = size.and_then(|size| data[4..].split_at_checked(size)) else {
            return Err(broken(format!("the character map ends after {} bytes, before its trie does", data.len())));
        };
        let units = units.chunks_exact(4).map(|unit| u32::from_le_bytes(unit.try_into().expect("4 bytes"))).collect();
        let replacements = String::from_utf8(replacements.to_vec())
            .map_err(|error| broken(format!("the character map's replacements are not UTF-8: {error}")))?;
        let mut map = CharacterMap {
            units,
            replacements,
            of_character: CharacterTable::new(STAYS),
            spans: vec![],
            kinds: CharacterTable::new(Kind::Simple),
            is_simple: [false; 256],
        };
        map.look_all_up();
        for code in 0..0x11_0000 {
            let Some(character) = char::from_u32(code) else { continue };
            let stays = map.of_character.get(character) == STAYS;
            if stays && trails(character) {
                map.kinds.update(code, |_| Kind::Trailing);
            } else if joins(character) || character == '\r' || (stays && code >= 0x80 && is_control(character)) {
                map.kinds.update(code, |_| Kind::Joining);
            } else if !stays {
                map.kinds.update(code, |_| Kind::Changing);
            }
        }
        map.of_character.share_pages();
        map.kinds.share_pages();
        map.is_simple = std::array::from_fn(|byte| byte < 0x80 && map.kinds.get(byte as u8 as char) == Kind::Simple);
        Ok(map)
    }

    /// Fill the table of single characters: walk the bytes of UTF-8 and go on where the trie does.
    fn look_all_up(&mut self) {
        let mut last_page = (u32::MAX, false);
        for code in 0..0x11_0000u32 {
            let Some(character) = char::from_u32(code) else { continue };
            // All characters of a page of 64 share all bytes but the last, so one look passes over the whole page.
            if code >> 6 != last_page.0 {
                last_page = (code >> 6, code < 0x80 || self.goes_on(character));
            }
            if !last_page.1 {
                continue;
            }
            let value = match self.lookup_span(character.encode_utf8(&mut [0; 4])) {
                Ok(None) => continue,
                Err(_) => FAILS,
                Ok(Some(span)) => {
                    self.spans.push(span);
                    self.spans.len() as u32
                }
            };
            self.of_character.update(code, |_| value);
        }
    }

    /// Whether the trie may have something for characters with all but the last byte of this one.
    fn goes_on(&self, character: char) -> bool {
        let mut bytes = [0; 4];
        let key = character.encode_utf8(&mut bytes).as_bytes();
        !matches!(self.walk(&key[..key.len() - 1]), Ok((None, false)))
    }

    /// Walk the trie; gives the value of the shortest prefix that has one, and whether the whole key was walked.
    ///
    /// The value, label, offset and leaf flag of a unit are bit fields, as in darts-clone. The walk goes on after the
    /// first entry, because a broken trie may lead it astray there.
    fn walk(&self, key: &[u8]) -> std::result::Result<(Option<u32>, bool), usize> {
        let offset = |unit: u32| (unit >> 10 << ((unit & 1 << 9) >> 6)) as usize;
        let unit = |node: usize| self.units.get(node).copied().ok_or(node);
        let mut node = offset(unit(0)?);
        let mut found = None;
        for &byte in key {
            if byte == 0 {
                return Ok((found, false));
            }
            node ^= byte as usize;
            let here = unit(node)?;
            if here & 0x8000_00FF != u32::from(byte) {
                return Ok((found, false));
            }
            node ^= offset(here);
            if here >> 8 & 1 == 1 && found.is_none() {
                found = Some(unit(node)? & 0x7FFF_FFFF);
            }
        }
        Ok((found, true))
    }

    fn lookup_span(&self, text: &str) -> Result<Option<(u32, u32)>> {
        let (found, _) = self.walk(text.as_bytes()).map_err(|node| {
            let bytes = text.as_bytes();
            let count = self.units.len();
            Error::encode(format!("the character map's trie sends the bytes {bytes:02X?} to unit {node} of {count}"))
        })?;
        let Some(position) = found else { return Ok(None) };
        let start = position as usize;
        let Some(rest) = self.replacements.get(start..) else {
            let message =
                format!("the character map sends {text:?} to byte {position} of its texts, which is no place there");
            return Err(Error::encode(message));
        };
        let end = start + rest.find('\0').unwrap_or(rest.len());
        Ok(Some((position, end as u32)))
    }

    fn text_of(&self, (start, end): (u32, u32)) -> &str {
        &self.replacements[start as usize..end as usize]
    }

    /// The replacement of the shortest prefix that has an entry; None where no prefix has one.
    pub fn lookup(&self, text: &str) -> Result<Option<&str>> {
        Ok(self.lookup_span(text)?.map(|span| self.text_of(span)))
    }

    #[inline(always)]
    fn lookup_character(&self, character: char) -> Result<Option<&str>> {
        match self.of_character.get(character) {
            STAYS => Ok(None),
            FAILS => self.lookup(character.encode_utf8(&mut [0; 4])),
            number => Ok(Some(self.text_of(self.spans[number as usize - 1]))),
        }
    }

    /// Hand over the parts of a text in order, each with its replacement, if it has one.
    #[inline(always)]
    fn parts<'a>(&'a self, text: &'a str, mut part: impl FnMut(&'a str, Option<&'a str>)) -> Result<()> {
        let mut at = 0;
        while at < text.len() {
            let length = cluster_length(&text[at..]);
            let cluster = &text[at..at + length];
            at += length;
            let mut characters = cluster.chars();
            if let (Some(character), None) = (characters.next(), characters.next()) {
                part(cluster, self.lookup_character(character)?);
                continue;
            }
            if length <= LONGEST_CLUSTER {
                if let Some(replacement) = self.lookup(cluster)? {
                    part(cluster, Some(replacement));
                    continue;
                }
            }
            for (place, character) in cluster.char_indices() {
                part(&cluster[place..place + character.len_utf8()], self.lookup_character(character)?);
            }
        }
        Ok(())
    }

    /// The characters that change, or can be in one cluster with others.
    pub fn special(&self) -> impl Iterator<Item = u32> + '_ {
        self.kinds.others(Kind::Simple).map(|(code, _)| code)
    }

    /// What becomes of a character behind which another cluster begins, or before which one does if it is a space: what
    /// stands before it has nothing to do with it and what follows. None: it is no such character.
    pub fn apart(&self, character: char) -> Option<char> {
        if character == ' ' {
            // With a space are marks in a cluster, and what can stand before all others. No such cluster is replaced.
            let begins_nothing = |first: char| {
                let walked = self.walk(first.encode_utf8(&mut [0; 4]).as_bytes());
                matches!(walked, Ok((None, false)))
            };
            let is_kept = begins_nothing(' ') && ('\0'..=char::MAX).filter(|&c| precedes(c)).all(begins_nothing);
            return is_kept.then_some(' ');
        }
        if !is_control(character) {
            return None;
        }
        let Some(text) = self.lookup_character(character).ok()? else { return Some(character) };
        let mut characters = text.chars();
        characters.next().filter(|_| characters.next().is_none())
    }

    /// Whether a character is in any replacement.
    pub fn has_in_texts(&self, character: char) -> bool {
        self.replacements.contains(character)
    }

    /// The other characters whose replacement has this one. None: there are replacements of clusters with some of these
    /// `others`, or the map is broken.
    pub fn makers(&self, character: char, others: &str) -> Option<Vec<char>> {
        let mut makers = vec![];
        let mut last_page = (u32::MAX, false);
        for maker in '\0'..=char::MAX {
            // As in `look_all_up`.
            let code = maker as u32;
            if code >> 6 != last_page.0 {
                last_page = (code >> 6, code < 0x80 || self.goes_on(maker));
            }
            if !last_page.1 {
                continue;
            }
            match self.lookup_character(maker).ok()? {
                Some(text) if maker != character && text.contains(character) => makers.push(maker),
                Some(_) => {}
                // No entry of a cluster is found behind one of its first character alone.
                None if !self.is_free_behind(maker, others)? => return None,
                None => {}
            }
        }
        Some(makers)
    }

    /// Whether no replacement of a cluster that begins with a character has one of these. None: the map is broken.
    fn is_free_behind(&self, first: char, others: &str) -> Option<bool> {
        let mut room = [0; LONGEST_CLUSTER];
        let length = first.encode_utf8(&mut room).len();
        let mut keys = vec![(room, length)];
        while let Some((mut key, length)) = keys.pop() {
            match self.walk(&key[..length]).ok()? {
                (Some(position), _) => {
                    let text = self.replacements.get(position as usize..)?;
                    if text.split('\0').next()?.contains(|character| others.contains(character)) {
                        return Some(false);
                    }
                }
                (None, true) if length < LONGEST_CLUSTER => {
                    keys.extend((1..=u8::MAX).map(|byte| {
                        key[length] = byte;
                        (key, length + 1)
                    }));
                }
                _ => {}
            }
        }
        Some(true)
    }

    /// Whether a character of three or four bytes stays where it is in no cluster, or in a longer one than those that are
    /// looked up: it joins none with what follows it that is shorter, but with marks.
    pub fn stays_among_long(&self, character: char) -> bool {
        character.len_utf8() >= 3
            && !precedes(character)
            && self.of_character.get(character) == STAYS
            && matches!(self.kinds.get(character), Kind::Joining | Kind::Trailing)
    }

    /// What the characters of a text become, where each of them is a cluster whatever others stand beside it.
    pub fn alone(&self, text: &str) -> Option<String> {
        let mut result = String::new();
        for character in text.chars() {
            match self.kinds.get(character) {
                Kind::Simple => result.push(character),
                Kind::Changing => result.push_str(self.lookup_character(character).ok()??),
                Kind::Joining | Kind::Trailing => return None,
            }
        }
        Some(result)
    }

    /// Whether a text may change; false is a proof that it does not.
    pub fn may_change(&self, text: &str) -> bool {
        text.chars().any(|character| self.kinds.get(character) != Kind::Simple)
    }

    /// Append the normalized text.
    pub fn apply(&self, text: &str, result: &mut String) -> Result<()> {
        let bytes = text.as_bytes();
        let (mut kept, mut at) = (0, 0);
        // Where the simple character before `at` begins: what joins is in a cluster with it.
        let mut before = None;
        while at < bytes.len() {
            if self.is_simple[bytes[at] as usize] {
                at += bytes[at..].iter().take_while(|&&byte| self.is_simple[byte as usize]).count();
                before = Some(at - 1);
                continue;
            }
            let Some(character) = text[at..].chars().next() else { break };
            let start = match self.kinds.get(character) {
                Kind::Simple => {
                    before = Some(at);
                    at += character.len_utf8();
                    continue;
                }
                Kind::Changing => at,
                // All of the cluster so far stays, and it is too long to be looked up as a whole.
                Kind::Trailing if before.is_some_and(|before| at + character.len_utf8() - before > LONGEST_CLUSTER) => {
                    at += character.len_utf8();
                    continue;
                }
                Kind::Joining | Kind::Trailing => before.unwrap_or(at),
            };
            at = start + cluster_length(&text[start..]);
            before = None;
            let cluster = &text[start..at];
            let mut is_changed = false;
            self.parts(cluster, |_, replacement| is_changed |= replacement.is_some())?;
            if is_changed {
                result.push_str(&text[kept..start]);
                self.parts(cluster, |part, replacement| result.push_str(replacement.unwrap_or(part)))?;
                kept = at;
            }
        }
        result.push_str(&text[kept..]);
        Ok(())
    }

    /// The normalized characters, each with its change (see `AlignedText::transform`); None without a change.
    ///
    /// A replacement that is empty is charged to the character before it. At the start of a text there is none, and the
    /// oracle forgets it: all that follows is aligned too far to the left.
    pub fn changes(&self, text: &str) -> Result<Option<Vec<Change>>> {
        let mut changes: Vec<Change> = vec![];
        let mut is_modified = false;
        self.parts(text, |part, replacement| {
            let Some(replacement) = replacement else {
                changes.extend(part.chars().map(|character| (character, 0)));
                return;
            };
            is_modified = true;
            changes.extend(replacement.chars().map(|character| (character, 0)));
            let (new, old) = (replacement.chars().count(), part.chars().count());
            if new > old {
                let count = changes.len();
                changes[count - (new - old)..].iter_mut().for_each(|change| change.1 = 1);
            } else if let Some(last) = changes.last_mut() {
                last.1 -= (old - new) as isize;
            }
        })?;
        Ok(is_modified.then_some(changes))
    }
}
