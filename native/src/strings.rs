//! Many short strings in one piece of memory.

/// Strings laid end to end.
#[derive(Default)]
pub struct Strings {
    text: String,
    ends: Vec<usize>,
}

impl Strings {
    /// None, with room for so many of so many bytes together.
    pub fn with_capacity(count: usize, bytes: usize) -> Strings {
        Strings { text: String::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// Add one.
    pub fn push(&mut self, string: &str) {
        self.push_with(|text| text.push_str(string));
    }

    /// Add one by appending it to the text.
    pub fn push_with(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push(self.text.len());
    }

    /// Add two as one.
    pub fn push_both(&mut self, first: &str, second: &str) {
        self.text.push_str(first);
        self.push(second);
    }

    /// Make it empty and keep its memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.ends.iter().enumerate().map(|(i, &end)| &self.text[if i == 0 { 0 } else { self.ends[i - 1] }..end])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Keep the first ones.
    pub fn truncate(&mut self, length: usize) {
        self.ends.truncate(length);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
