//! Decoders: token strings become text.
//!
//! The rules stand in `engine/reference/decoders.py`: every decoder takes a list of strings to a list of strings, and the
//! list is joined at the end. Here is that road for any tokens; `token_table.rs` is the fast one for columns of ids.

use crate::byte_alphabet;
use crate::compiled_pattern::CompiledPattern;
use crate::error::{Class, Error, Result};
use crate::models::written::quoted_whole;
use crate::spec::{self, Pattern, PrependScheme};

const CLEAN_UPS: [(&str, &str); 11] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// The decoder of a spec: steps, one after the other. Without one (None), tokens are joined by spaces.
pub struct Decoder {
    /// The steps, Sequences taken apart.
    pub steps: Option<Vec<Step>>,
}

/// One decoder that is no Sequence.
#[allow(missing_docs)]
pub enum Step {
    Bpe { suffix: String },
    ByteLevel,
    WordPiece { prefix: String, cleanup: bool },
    Metaspace { replacement: char, is_dropped_in_first: bool },
    Ctc { pad_token: String, word_delimiter_token: String, cleanup: bool },
    Replace { search: Search, content: String },
    Fuse,
    Strip { content: char, start: usize, stop: usize },
    ByteFallback,
}

/// What a Replace looks for.
pub enum Search {
    /// A text. The empty one is found before every character and at the end.
    Text(String),
    /// A pattern.
    Pattern(CompiledPattern),
}

/// Where a token stands among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// It is the first.
    pub is_first: bool,
    /// It is the last.
    pub is_last: bool,
}

impl Decoder {
    /// Build the decoder of a spec.
    pub fn build(decoder: Option<&spec::Decoder>) -> Decoder {
        let steps = decoder.map(|decoder| {
            let mut steps = vec![];
            add_steps(decoder, &mut steps);
            steps
        });
        Decoder { steps }
    }

    /// Give the text of token strings.
    pub fn decode(&self, tokens: Vec<String>) -> Result<String> {
        match &self.steps {
            None => Ok(tokens.join(" ")),
            Some(steps) => run(steps, tokens),
        }
    }
}

/// Let steps work one after the other, and join what they give.
pub fn run(steps: &[Step], tokens: Vec<String>) -> Result<String> {
    let tokens = steps.iter().try_fold(tokens, |tokens, step| step.decode(tokens))?;
    Ok(tokens.concat())
}

fn add_steps(decoder: &spec::Decoder, steps: &mut Vec<Step>) {
    steps.push(match decoder.clone() {
        spec::Decoder::Sequence { decoders } => return decoders.iter().for_each(|decoder| add_steps(decoder, steps)),
        spec::Decoder::BPEDecoder { suffix } => Step::Bpe { suffix },
        spec::Decoder::ByteLevel { .. } => Step::ByteLevel,
        spec::Decoder::WordPiece { prefix, cleanup } => Step::WordPiece { prefix, cleanup },
        spec::Decoder::Metaspace { replacement, prepend_scheme, .. } => {
            Step::Metaspace { replacement, is_dropped_in_first: prepend_scheme != PrependScheme::Never }
        }
        spec::Decoder::CTC { pad_token, word_delimiter_token, cleanup } => {
            Step::Ctc { pad_token, word_delimiter_token, cleanup }
        }
        spec::Decoder::Replace { pattern, content } => {
            let search = match pattern {
                Pattern::String(text) => Search::Text(text),
                pattern => Search::Pattern(CompiledPattern::new(&pattern)),
            };
            Step::Replace { search, content }
        }
        spec::Decoder::Fuse {} => Step::Fuse,
        spec::Decoder::Strip { content, start, stop } => {
            let clamped = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            Step::Strip { content, start: clamped(start), stop: clamped(stop) }
        }
        spec::Decoder::ByteFallback {} => Step::ByteFallback,
    });
}

impl Step {
    /// Whether what becomes of a token depends on itself and its place only, and tokens stay as many as they are.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Step::Bpe { .. }
                | Step::WordPiece { .. }
                | Step::Metaspace { .. }
                | Step::Replace { .. }
                | Step::Strip { .. }
        )
    }

    /// Whether what becomes of a token is another thing in the first place, and in the last.
    pub fn depends_on(&self) -> Place {
        Place {
            is_first: matches!(self, Step::WordPiece { .. } | Step::Metaspace { .. }),
            is_last: matches!(self, Step::Bpe { .. }),
        }
    }

    /// What becomes of one token, for a step that is local.
    pub fn decode_token(&self, token: String, place: Place) -> Result<String> {
        Ok(match self {
            // Not in the last token.
            Step::Bpe { suffix } => token.replace(suffix, if place.is_last { "" } else { " " }),
            // A space comes before each token but the first that has not the prefix. Each is cleaned up by itself.
            Step::WordPiece { prefix, cleanup } => {
                let joined = match token.strip_prefix(prefix.as_str()) {
                    _ if place.is_first => token,
                    Some(rest) => rest.to_owned(),
                    None => format!(" {token}"),
                };
                if *cleanup {
                    cleaned_up(joined)
                } else {
                    joined
                }
            }
            // In the first token the replacement is dropped, every time, unless none was prepended.
            Step::Metaspace { replacement, is_dropped_in_first } => {
                token.replace(*replacement, if place.is_first && *is_dropped_in_first { "" } else { " " })
            }
            Step::Replace { search, content } => search.replaced(token, content)?,
            Step::Strip { content, start, stop } => {
                let (from, to) = stripped(&token, *content, *start, *stop)?;
                token[from..to].to_owned()
            }
            Step::ByteLevel | Step::Ctc { .. } | Step::Fuse | Step::ByteFallback => token,
        })
    }

    fn decode(&self, tokens: Vec<String>) -> Result<Vec<String>> {
        match self {
            Step::ByteLevel => {
                let mut decoded = vec![];
                tokens.iter().for_each(|token| write_byte_level(token, &mut decoded));
                Ok(vec![String::from_utf8_lossy(&decoded).into_owned()])
            }
            Step::Ctc { pad_token, word_delimiter_token, cleanup } => {
                let mut kept = tokens;
                kept.dedup();
                let decoded = kept.into_iter().map(|token| {
                    let text = token.replace(pad_token.as_str(), "");
                    // The word delimiter becomes a space only where `cleanup` is on.
                    if *cleanup {
                        cleaned_up(text).replace(word_delimiter_token.as_str(), " ")
                    } else {
                        text
                    }
                });
                Ok(decoded.filter(|text| !text.is_empty()).collect())
            }
            Step::Fuse => Ok(vec![tokens.concat()]),
            Step::ByteFallback => Ok(byte_fallback(tokens)),
            _ => {
                let count = tokens.len();
                let place = |i| Place { is_first: i == 0, is_last: i + 1 == count };
                tokens.into_iter().enumerate().map(|(i, token)| self.decode_token(token, place(i))).collect()
            }
        }
    }
}

impl Search {
    fn replaced(&self, token: String, content: &str) -> Result<String> {
        match self {
            // No pattern matches in an empty token, not even one that matches nothing.
            _ if token.is_empty() => Ok(token),
            Search::Text(text) => Ok(token.replace(text.as_str(), content)),
            Search::Pattern(pattern) => {
                let mut replaced = String::new();
                pattern.replace(&token, content, &mut replaced)?;
                Ok(replaced)
            }
        }
    }
}

/// Clean up a text that has no space, or one at its beginning; None: it is another one.
///
/// What all clean-ups look for begins with a space, and of those with a single one no two match at one place.
pub fn word_cleaned_up(text: &[u8]) -> Option<&[u8]> {
    let (first, rest) = text.split_first()?;
    if memchr::memchr(b' ', rest).is_some() {
        return None;
    }
    let is_artifact = *first == b' '
        && matches!(
            rest,
            [b'.' | b'?' | b'!' | b',', ..]
                | [b'\'', b'm' | b's', ..]
                | [b'\'', b'v' | b'r', b'e', ..]
                | [b'n', b'\'', b't', ..]
        );
    Some(if is_artifact { rest } else { text })
}

fn cleaned_up(text: String) -> String {
    if let Some(length) = word_cleaned_up(text.as_bytes()).map(<[u8]>::len) {
        // At most a space at the beginning goes.
        return text[text.len() - length..].to_owned();
    }
    CLEAN_UPS.iter().fold(text, |text, (artifact, plain)| text.replace(artifact, plain))
}

/// What is left of a token without up to `start` characters at its beginning and up to `stop` at its end.
///
/// Both ends are looked at in the whole token. Where they would meet, the oracle crashes.
pub fn stripped(token: &str, content: char, start: usize, stop: usize) -> Result<(usize, usize)> {
    let is_content = |character: &char| *character == content;
    let at_start = token.chars().take_while(is_content).count().min(start);
    let at_end = token.chars().rev().take_while(is_content).count();
    let is_whole = at_end * content.len_utf8() == token.len();
    let cut = (at_start + at_end.min(stop)).saturating_mul(content.len_utf8());
    if (is_whole && stop > at_end) || cut > token.len() {
        let (content, token) = (quoted_whole(content.encode_utf8(&mut [0; 4])), quoted_whole(token));
        let message = format!("cannot strip {start} and {stop} times {content} from {token}");
        return Err(Error::new(Class::Decode, message)
            .at("$.decoder")
            .hinted("the oracle crashes here; a Fuse before the Strip often is what was meant"));
    }
    Ok((at_start * content.len_utf8(), token.len() - at_end.min(stop) * content.len_utf8()))
}

/// Write the bytes that a token of the byte alphabet stands for. One with any other character stands for its own UTF-8.
pub fn write_byte_level(token: &str, decoded: &mut Vec<u8>) {
    let first = decoded.len();
    for character in token.chars() {
        match byte_alphabet::byte_of(character) {
            Some(byte) => decoded.push(byte),
            None => {
                decoded.truncate(first);
                decoded.extend_from_slice(token.as_bytes());
                return;
            }
        }
    }
}

/// The byte that a token like `<0x0A>` stands for. The oracle reads a plus sign before a hexadecimal number, too.
pub fn byte_of_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    match *digits {
        [b'+', low] => digit(low),
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    }
}

/// Read runs of byte tokens as UTF-8. In a run that is not UTF-8 every byte becomes a replacement character.
fn byte_fallback(tokens: Vec<String>) -> Vec<String> {
    let mut decoded = vec![];
    let mut run = vec![];
    let end_run = |run: &mut Vec<u8>, decoded: &mut Vec<String>| {
        if !run.is_empty() {
            match std::str::from_utf8(run) {
                Ok(text) => decoded.push(text.to_owned()),
                Err(_) => decoded.extend(run.iter().map(|_| '\u{FFFD}'.to_string())),
            }
            run.clear();
        }
    };
    for token in tokens {
        match byte_of_token(&token) {
            Some(byte) => run.push(byte),
            None => {
                end_run(&mut run, &mut decoded);
                decoded.push(token);
            }
        }
    }
    end_run(&mut run, &mut decoded);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(decoder: spec::Decoder, tokens: &[&str]) -> Result<String> {
        Decoder::build(Some(&decoder)).decode(tokens.iter().map(|token| (*token).to_owned()).collect())
    }

    #[test]
    fn single_decoders() {
        use spec::Decoder::*;
        let text = |decoder, tokens: &[&str]| decode(decoder, tokens).expect("can be decoded");
        assert_eq!(text(BPEDecoder { suffix: "</w>".into() }, &["a</w>", "b</w>"]), "a b");
        let metaspace = |prepend_scheme| Metaspace { replacement: '▁', prepend_scheme, split: true };
        assert_eq!(text(metaspace(PrependScheme::Always), &["▁▁a", "▁b"]), "a b");
        assert_eq!(text(metaspace(PrependScheme::Never), &["▁a"]), " a");
        assert_eq!(text(WordPiece { prefix: "##".into(), cleanup: true }, &["##a", "##b", "c", "."]), "##ab c.");
        let ctc = || CTC { pad_token: "_".into(), word_delimiter_token: "|".into(), cleanup: true };
        assert_eq!(text(ctc(), &["a", "a", "_", "a", "|", "|", "b"]), "aa b");
        let replace = |from: &str| Replace { pattern: Pattern::String(from.into()), content: "-".into() };
        assert_eq!(text(replace(""), &["ab", ""]), "-a-b-");
        assert_eq!(
            text(ByteFallback {}, &["a", "<0xC3>", "<0xa9>", "<0x+A>", "<0xC3>", "b"]),
            "aé\n".replace("é\n", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}") + "b"
        );
        assert_eq!(text(ByteFallback {}, &["<0xC3>", "<0xA9>"]), "é");
        let byte_level = ByteLevel { add_prefix_space: true, trim_offsets: true, use_regex: true };
        assert_eq!(text(byte_level, &["Ã", "©", "Ġa b", "Ġ"]), "éĠa b ");
    }

    #[test]
    fn words_are_cleaned_up_as_texts_are() {
        let all = |text: &str| {
            CLEAN_UPS.iter().fold(text.to_owned(), |text, (artifact, plain)| text.replace(artifact, plain))
        };
        for word in
            [".", "..", "?a", "!", ",", "'", "'m", "'mx", "'s", "'ve", "'v", "'re", "'r", "n't", "n'", "do", "é", ""]
        {
            for text in [word.to_owned(), format!(" {word}")] {
                let bytes = text.as_bytes();
                assert_eq!(word_cleaned_up(bytes).unwrap_or(bytes), all(&text).as_bytes(), "{text:?}");
                assert_eq!(cleaned_up(format!("a{text} b")), all(&format!("a{text} b")));
            }
        }
        assert_eq!(word_cleaned_up(b"a ."), None);
    }

    #[test]
    fn strip_fails_where_the_ends_meet() {
        let strip = |start, stop| spec::Decoder::Strip { content: ' ', start, stop };
        assert_eq!(decode(strip(1, 0), &["  a "]).expect("long enough"), " a ");
        assert_eq!(decode(strip(9, 1), &["  a  "]).expect("long enough"), "a ");
        assert!(decode(strip(0, 1), &[""]).is_err());
        let error = decode(strip(1, 1), &[" "]).expect_err("the ends meet");
        assert_eq!(error.message, "cannot strip 1 and 1 times ' ' from ' '");
    }
}
