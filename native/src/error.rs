//! Errors as they cross to Python: the class in `errors.py`, its code, the fact, the place, and what can be done.
//!
//! Nothing else leaves the crate: a panic is caught at the boundary (`python.rs`) and becomes one of these too.

use std::fmt;

/// The classes of `errors.py` that this crate raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A broken tokenizer.json.
    Spec,
    /// A tokenizer.json that asks for what is not reproduced.
    Unsupported,
    /// A document that cannot be encoded.
    Encode,
    /// Ids that cannot be decoded.
    Decode,
    /// Anything else, a fault of this crate included.
    Other,
}

impl Class {
    /// The name of the class in `errors.py`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Spec => "SpecError",
            Class::Unsupported => "UnsupportedError",
            Class::Encode => "EncodeError",
            Class::Decode => "DecodeError",
            Class::Other => "TokbatchError",
        }
    }
}

/// An error, as `TokbatchError.to_dict` has it.
#[derive(Clone, Debug)]
pub struct Error {
    /// The class.
    pub class: Class,
    /// The stable code; empty: the code of the class.
    pub code: &'static str,
    /// The fact.
    pub message: String,
    /// The JSON path or the row; empty: none.
    pub place: String,
    /// What can be done; empty: nothing.
    pub hint: String,
    /// The row of the batch, where there is one.
    pub row: Option<usize>,
}

/// A result with our error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of a class, without code, place and hint.
    pub fn new(class: Class, message: impl Into<String>) -> Error {
        Error { class, code: "", message: message.into(), place: String::new(), hint: String::new(), row: None }
    }

    /// What this engine does not do (the reference engine does).
    pub fn unsupported(message: impl Into<String>, place: impl Into<String>) -> Error {
        Error { code: "native-unsupported", ..Error::new(Class::Unsupported, message).at(place) }
    }

    /// A document that cannot be encoded.
    pub fn encode(message: impl Into<String>) -> Error {
        Error::new(Class::Encode, message)
    }

    /// The same error with its place.
    pub fn at(mut self, place: impl Into<String>) -> Error {
        self.place = place.into();
        self
    }

    /// The same error with its code.
    pub fn coded(mut self, code: &'static str) -> Error {
        self.code = code;
        self
    }

    /// The same error with a hint.
    pub fn hinted(mut self, hint: impl Into<String>) -> Error {
        self.hint = hint.into();
        self
    }

    /// The same error for a row of a batch, as the reference engine writes its place.
    pub fn in_row(mut self, row: usize) -> Error {
        self.row = Some(row);
        self.place = match self.place.as_str() {
            "" => format!("row {row}"),
            place if place == format!("row {row}") => place.to_owned(),
            place => format!("row {row}, {place}"),
        };
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.place, self.message)
        }
    }
}

impl std::error::Error for Error {}
