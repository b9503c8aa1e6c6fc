//! The spec of a tokenizer as `engine/wire.py` sends it: one type a class of `spec/*.py`, fields named as there.
//!
//! Python has read and checked the file. Here nothing is interpreted, and what does not fit is an error. The model's long
//! tables come in a message of their own (entries), which is not there where an engine comes from a file of tables; so do
//! the options, on which no table depends.
//! Strings borrow from the messages.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

use crate::error::{Class, Error, Result};
use crate::patterns::tree::{CodePointSet, Tree};
use crate::pipeline::CACHED_PRETOKENS;

/// What both sides must agree on; raised with every change of the message.
pub const WIRE_VERSION: u32 = 5;

/// `TokenizerSpec`, with the facts that only one place may decide.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerSpec<'a> {
    /// `WIRE_VERSION` of the sender.
    pub wire_version: u32,
    /// The model.
    #[serde(borrow)]
    pub model: Model<'a>,
    /// The added tokens with the ids that they really have (`spec/added_token_ids.py`).
    pub added_tokens: AddedTokens,
    /// The normalizer.
    pub normalizer: Option<Normalizer>,
    /// The pre-tokenizer.
    pub pre_tokenizer: Option<PreTokenizer>,
    /// The post-processor.
    pub post_processor: Option<PostProcessor>,
    /// The decoder.
    pub decoder: Option<Decoder>,
    /// What does not come with the file, or can be changed.
    #[serde(skip)]
    pub options: Options,
}

/// The part of a spec that another engine may have otherwise, while all tables stay what they are.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Truncation.
    pub truncation: Option<Truncation>,
    /// Padding.
    pub padding: Option<Padding>,
    /// Special tokens in a text are ordinary text.
    pub encode_special_tokens: bool,
    /// Short pretokens that a thread remembers.
    #[serde(default = "cached_pretokens")]
    pub cached_pretokens: usize,
}

fn cached_pretokens() -> usize {
    CACHED_PRETOKENS
}

/// `AddedTokenTable`: the entries in force, by id, and what is remembered of those that are not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct AddedTokens {
    pub in_force: Vec<AddedToken>,
    pub ids: Vec<(String, u32)>,
    pub special_contents: Vec<String>,
    pub normalized_contents: Vec<(u32, String)>,
}

/// An added token with the id that it has, and its place in the file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct AddedToken {
    pub id: u32,
    pub place: usize,
    pub content: String,
    pub single_word: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub normalized: bool,
    pub special: bool,
}

/// See `spec/models.py`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Model<'a> {
    #[serde(borrow)]
    BPE(Bpe<'a>),
    WordPiece {
        #[serde(skip)]
        vocab: Vocab<'a>,
        unk_token: &'a str,
        continuing_subword_prefix: &'a str,
        max_input_chars_per_word: u64,
    },
    WordLevel {
        #[serde(skip)]
        vocab: Vocab<'a>,
        unk_token: &'a str,
    },
    Unigram {
        #[serde(skip)]
        vocab: Vec<(&'a str, f64)>,
        unk_id: Option<u64>,
        byte_fallback: bool,
    },
}

/// `spec.models.BPE`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Bpe<'a> {
    #[serde(skip)]
    pub vocab: Vocab<'a>,
    #[serde(skip)]
    pub merges: Vec<(&'a str, &'a str)>,
    pub dropout: Option<f64>,
    pub unk_token: Option<&'a str>,
    pub continuing_subword_prefix: Option<&'a str>,
    pub end_of_word_suffix: Option<&'a str>,
    pub fuse_unk: bool,
    pub byte_fallback: bool,
    pub ignore_merges: bool,
}

/// The entries of a vocabulary, in the order of the file.
#[derive(Debug, Default)]
pub struct Vocab<'a>(pub Vec<(&'a str, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Entries<'a> {
            type Value = Vocab<'a>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a map from tokens to ids")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Vocab<'a>, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0).min(1 << 22));
                while let Some(entry) = map.next_entry::<&'de str, u32>()? {
                    entries.push(entry);
                }
                Ok(Vocab(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// See `spec/pattern.py`: a literal, or the tree of a regular expression (`spec/regex_syntax.py`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// A literal text.
    String(String),
    /// A regular expression.
    Regex(Tree),
}

impl Pattern {
    /// The pattern as a tree.
    pub fn tree(&self) -> Tree {
        match self {
            Pattern::Regex(tree) => tree.clone(),
            Pattern::String(text) => {
                let mut tree = Tree::default();
                let one = |c: char| CodePointSet(vec![c as u32, c as u32 + 1]);
                let nodes = text.chars().map(|c| crate::patterns::tree::Node::Set(tree.index_of(one(c)))).collect();
                tree.root = crate::patterns::tree::Node::Sequence(nodes);
                tree
            }
        }
    }
}

/// What becomes of the matches of a Split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// When Metaspace puts its replacement in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum PrependScheme {
    First,
    Never,
    Always,
}

/// See `spec/pre_tokenizers.py`. A ByteLevel that splits carries its pattern.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum PreTokenizer {
    BertPreTokenizer {},
    ByteLevel { add_prefix_space: bool, trim_offsets: bool, use_regex: bool, pattern: Option<Pattern> },
    CharDelimiterSplit { delimiter: char },
    Metaspace { replacement: char, prepend_scheme: PrependScheme, split: bool },
    Whitespace {},
    WhitespaceSplit {},
    Split { pattern: Pattern, behavior: Behavior, invert: bool },
    Punctuation { behavior: Behavior },
    Digits { individual_digits: bool },
    UnicodeScripts {},
    FixedLength { length: u64 },
    Sequence { pretokenizers: Vec<PreTokenizer> },
}

/// See `spec/normalizers.py`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Normalizer {
    BertNormalizer {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    StripAccents {},
    NFC {},
    NFD {},
    NFKC {},
    NFKD {},
    Lowercase {},
    Nmt {},
    Precompiled {
        #[serde(with = "bytes")]
        precompiled_charsmap: Vec<u8>,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Prepend {
        prepend: String,
    },
    ByteLevel {},
    Sequence {
        normalizers: Vec<Normalizer>,
    },
}

mod bytes {
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, value: &[u8]) -> Result<Vec<u8>, E> {
                Ok(value.to_vec())
            }
            fn visit_byte_buf<E>(self, value: Vec<u8>) -> Result<Vec<u8>, E> {
                Ok(value)
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// See `spec/post_processors.py`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum PostProcessor {
    BertProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    RobertaProcessing {
        sep: (String, u32),
        cls: (String, u32),
        trim_offsets: bool,
        add_prefix_space: bool,
    },
    ByteLevel {
        add_prefix_space: bool,
        trim_offsets: bool,
        use_regex: bool,
    },
    TemplateProcessing {
        single: Vec<TemplatePiece>,
        pair: Vec<TemplatePiece>,
        special_tokens: Vec<(String, TemplateToken)>,
    },
    Sequence {
        processors: Vec<PostProcessor>,
    },
}

/// A place in a template.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum TemplatePiece {
    Sequence { id: String, type_id: u32 },
    SpecialToken { id: String, type_id: u32 },
}

/// What a special token of a template stands for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TemplateToken {
    pub id: String,
    pub ids: Vec<u32>,
    pub tokens: Vec<String>,
}

/// See `spec/decoders.py`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Decoder {
    BPEDecoder { suffix: String },
    ByteLevel { add_prefix_space: bool, trim_offsets: bool, use_regex: bool },
    WordPiece { prefix: String, cleanup: bool },
    Metaspace { replacement: char, prepend_scheme: PrependScheme, split: bool },
    CTC { pad_token: String, word_delimiter_token: String, cleanup: bool },
    Replace { pattern: Pattern, content: String },
    Fuse {},
    Strip { content: char, start: u64, stop: u64 },
    ByteFallback {},
    Sequence { decoders: Vec<Decoder> },
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub enum Direction {
    Left,
    Right,
}

/// Which text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub enum Strategy {
    LongestFirst,
    OnlyFirst,
    OnlySecond,
}

/// `spec.Truncation`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Truncation {
    pub max_length: u64,
    pub stride: u64,
    pub strategy: Strategy,
    pub direction: Direction,
}

/// `spec.Padding`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Padding {
    pub fixed_length: Option<u64>,
    pub direction: Direction,
    pub pad_to_multiple_of: Option<u64>,
    pub pad_id: u32,
    pub pad_type_id: u32,
    pub pad_token: String,
}

/// Read the messages of `engine/wire.py`: components, options, and where there are any the entries of the model.
pub fn read<'a>(components: &'a [u8], options: &[u8], entries: Option<&'a [u8]>) -> Result<TokenizerSpec<'a>> {
    let mut spec: TokenizerSpec = from_slice(components)?;
    spec.options = from_slice(options)?;
    if spec.wire_version != WIRE_VERSION {
        let message =
            format!("the extension module speaks version {WIRE_VERSION} of the spec, not {}", spec.wire_version);
        return Err(Error::new(Class::Other, message).hinted("install tokbatch anew"));
    }
    if let Some(entries) = entries {
        match &mut spec.model {
            Model::BPE(model) => (model.vocab, model.merges) = from_slice(entries)?,
            Model::WordPiece { vocab, .. } | Model::WordLevel { vocab, .. } => (*vocab,) = from_slice(entries)?,
            Model::Unigram { vocab, .. } => (*vocab,) = from_slice(entries)?,
        }
    }
    Ok(spec)
}

fn from_slice<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T> {
    rmp_serde::from_slice(message)
        .map_err(|error| Error::new(Class::Other, format!("the spec did not cross to the native engine: {error}")))
}
