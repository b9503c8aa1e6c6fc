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

fn utf8(bytes: &[u8]) -> Result<&str> {
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
            '\0'..='\u{1F}' | '\u{7F}'..='\u{A0}' | '\u{AD}' => quoted.push_str(&format!("\\x{:02x}", character as u32)),
            _ => quoted.push(character),
        }
    }
    quoted.push(quote);
    quoted
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
        assert_eq!(quoted(&"é".repeat(50)), format!("'{}'", "é".repeat(40)));
    }
}
