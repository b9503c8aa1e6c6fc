//! A pretoken as the model's vocabulary writes it, whatever the form in which it comes (`Input`).
//!
//! The models of this folder that are off the byte road use it: they see a pretoken once, and then the cache has it.

use super::bpe::Input;
use crate::byte_alphabet;
use crate::error::{Error, Result};

/// Give the text of a pretoken; `room` is used where it has to be written anew.
pub fn written<'a>(input: Input, pretoken: &'a [u8], room: &'a mut String) -> Result<&'a str> {
    room.clear();
    match input {
        Input::Text => utf8(pretoken),
        Input::ByteAlphabet => {
            byte_alphabet::write_into(pretoken, room);
            Ok(room)
        }
        Input::Spaces(mark) => {
            let text = utf8(pretoken)?;
            if !text.contains(' ') {
                return Ok(text);
            }
            room.extend(text.chars().map(|character| if character == ' ' { mark } else { character }));
            Ok(room)
        }
    }
}

/// The text of bytes; an error says where they are none.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| Error::encode(format!("byte {} is not UTF-8", error.valid_up_to())))
}

/// The first 40 characters of a text in quotes.
pub fn quoted(text: &str) -> String {
    quoted_whole(&text.chars().take(40).collect::<String>())
}

/// A text in quotes, as Python's `repr` writes it in the reference engine's messages.
pub fn quoted_whole(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\\' => quoted.push_str("\\\\"),
            _ if character == quote => quoted.extend(['\\', quote]),
            _ if !is_shown(character) => quoted.push_str(&match character as u32 {
                code @ ..=0xFF => format!("\\x{code:02x}"),
                code @ ..=0xFFFF => format!("\\u{code:04x}"),
                code => format!("\\U{code:08x}"),
            }),
            _ => quoted.push(character),
        }
    }
    quoted.push(quote);
    quoted
}

/// Whether `repr` shows a character as it is: not what is separator, control, format or private. (What is unassigned it
/// does not show either, but that is another set in every version of Python.)
fn is_shown(character: char) -> bool {
    !matches!(character,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{A0}' | '\u{AD}' | '\u{600}'..='\u{605}' | '\u{61C}' | '\u{6DD}' | '\u{70F}'
        | '\u{890}' | '\u{891}' | '\u{8E2}' | '\u{1680}' | '\u{180E}' | '\u{2000}'..='\u{200F}'
        | '\u{2028}'..='\u{202F}' | '\u{205F}'..='\u{206F}' | '\u{3000}' | '\u{E000}'..='\u{F8FF}' | '\u{FEFF}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{110BD}' | '\u{110CD}' | '\u{13430}'..='\u{1343F}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E007F}' | '\u{F0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let mut room = String::new();
        assert_eq!(written(Input::Spaces('▁'), " a▁b".as_bytes(), &mut room).expect("is text"), "▁a▁b");
        assert_eq!(written(Input::ByteAlphabet, b" a", &mut room).expect("is text"), "Ġa");
        assert!(written(Input::Text, b"\xFF", &mut room).is_err());
    }

    #[test]
    fn quotes_as_python() {
        assert_eq!(quoted("it's\n"), r#""it's\n""#);
        assert_eq!(quoted("'\"\\"), r#"'\'"\\'"#);
        assert_eq!(quoted("\u{a0}\u{3000}\u{e0001}é中"), r"'\xa0\u3000\U000e0001é中'");
        assert_eq!(quoted(&"é".repeat(50)), format!("'{}'", "é".repeat(40)));
    }
}
