//! The strings of ids and the ids of strings: the model's vocabulary, and the added tokens over it.

use crate::hash::FastMap;
use crate::models::vocabulary::Vocabulary;
use crate::models::ModelFacts;
use crate::spec::{AddedToken, AddedTokens};
use crate::token_table::TokenStrings;

/// The added tokens by id and by content: see `AddedVocabulary` in `engine/reference/added_tokens.py`.
#[derive(Default)]
pub struct AddedStrings {
    by_id: FastMap<u32, Named>,
    ids: FastMap<String, u32>,
    special_contents: FastMap<String, ()>,
    /// The ids of those with `lstrip` or `rstrip`.
    stripping_ids: Vec<u32>,
    /// Where none of those found in raw text has another form for the decoder.
    pub are_plain: bool,
}

/// An added token.
struct Named {
    content: String,
    /// Its normalized form, where it is matched in normalized text: what a decoder sees.
    form: Option<String>,
    is_special: bool,
}

impl AddedStrings {
    /// Build from the added tokens, and the forms that decoders see of some.
    pub fn build(tokens: &AddedTokens, forms: &FastMap<u32, String>) -> AddedStrings {
        let has_form = |token: &AddedToken| !token.normalized && forms.contains_key(&token.id);
        let are_plain = !tokens.in_force.iter().any(has_form);
        let mut built = AddedStrings { are_plain, ..AddedStrings::default() };
        for token in &tokens.in_force {
            let form = forms.get(&token.id).cloned();
            let named = Named { content: token.content.clone(), form, is_special: token.special };
            built.by_id.insert(token.id, named);
            if token.lstrip || token.rstrip {
                built.stripping_ids.push(token.id);
            }
        }
        built.ids.extend(tokens.ids.iter().cloned());
        built.special_contents.extend(tokens.special_contents.iter().map(|content| (content.clone(), ())));
        built
    }

    /// The content of an added token.
    pub fn content(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|named| named.content.as_str())
    }

    /// The string that a decoder sees for an added token.
    fn form(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|named| named.form.as_ref().unwrap_or(&named.content).as_str())
    }

    /// The ids of all of them.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_id.keys().copied()
    }

    /// The ids of those that are special.
    pub fn special_ids(&self) -> Vec<u32> {
        self.by_id.iter().filter(|(_, named)| named.is_special).map(|(&id, _)| id).collect()
    }

    /// The ids of those that absorb whitespace.
    pub fn stripping_ids(&self) -> &[u32] {
        &self.stripping_ids
    }
}

/// All tokens, with or without the special ones.
#[derive(Clone, Copy)]
pub struct AllStrings<'a> {
    model: &'a dyn ModelFacts,
    added: &'a AddedStrings,
    skips_special: bool,
}

impl<'a> AllStrings<'a> {
    /// The tokens of a model and the added ones.
    pub fn new(model: &'a dyn ModelFacts, added: &'a AddedStrings, skips_special: bool) -> AllStrings<'a> {
        AllStrings { model, added, skips_special }
    }

    /// The id of a token.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.added.ids.get(token).copied().or_else(|| self.model.token_to_id(token.as_bytes()))
    }

    /// The model's vocabulary.
    pub fn vocabulary(&self) -> &'a Vocabulary {
        self.model.vocabulary()
    }

    /// The ids of the added tokens.
    pub fn added_ids(&self) -> impl Iterator<Item = u32> + 'a {
        self.added.ids()
    }

    /// Number of distinct tokens.
    pub fn count(&self) -> usize {
        let is_new = |content: &&String| self.model.token_to_id(content.as_bytes()).is_none();
        self.model.vocabulary().len() + self.added.ids.keys().filter(is_new).count()
    }
}

impl TokenStrings for AllStrings<'_> {
    fn string(&self, id: u32) -> Option<&str> {
        let in_vocabulary = || self.model.vocabulary().token(id).and_then(|token| std::str::from_utf8(token).ok());
        let string = self.added.form(id).or_else(in_vocabulary)?;
        let is_skipped = self.skips_special && self.added.special_contents.contains_key(string);
        (!is_skipped).then_some(string)
    }

    fn ids(&self) -> Vec<u32> {
        self.model.vocabulary().iter().map(|(_, id)| id).chain(self.added.ids()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::bpe::Input;
    use crate::models::wordlevel::WordLevel;

    #[test]
    fn added_tokens_lie_over_the_vocabulary() {
        let model = WordLevel::build(&[("a", 0), ("b", 1)], "a", Input::Text);
        let token = |id, content: &str, normalized, special| AddedToken {
            id,
            place: 0,
            content: content.into(),
            single_word: false,
            lstrip: special,
            rstrip: false,
            normalized,
            special,
        };
        let tokens = AddedTokens {
            in_force: vec![token(1, "B", true, false), token(5, "<s>", false, true)],
            ids: vec![("B".into(), 1), ("<s>".into(), 5)],
            special_contents: vec!["<s>".into()],
            normalized_contents: vec![(1, "B".into())],
        };
        let added = AddedStrings::build(&tokens, &[(1, "b!".to_owned())].into_iter().collect());
        let all = AllStrings::new(&model, &added, false);
        assert_eq!([0, 1, 5, 7].map(|id| all.string(id)), [Some("a"), Some("b!"), Some("<s>"), None]);
        assert_eq!(["a", "b", "B", "b!", "<s>"].map(|token| all.id(token)), [Some(0), Some(1), Some(1), None, Some(5)]);
        assert_eq!((all.count(), added.stripping_ids()), (4, &[5][..]));
        assert_eq!(AllStrings::new(&model, &added, true).string(5), None);
    }
}
