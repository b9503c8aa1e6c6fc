//! The syntax tree of a pattern, as `spec/regex_tree.py` has it and `engine/wire.py` sends it, and sets of code points.
//!
//! Also the one rewriting that is done on trees: a pattern confined to a set of characters (`confined`), which is how
//! a Sequence of Splits becomes one pattern (`fuse.rs`).

use serde::Deserialize;

/// A set of Unicode scalar values: (start, end, start, end, ...), ascending, ends exclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct CodePointSet(pub Vec<u32>);

/// All scalar values.
const ALL: [u32; 4] = [0, 0xD800, 0xE000, 0x11_0000];

impl CodePointSet {
    /// Whether it has this code point.
    pub fn contains(&self, code_point: u32) -> bool {
        self.0.partition_point(|&bound| bound <= code_point) % 2 == 1
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is in both.
    pub fn intersection(&self, other: &CodePointSet) -> CodePointSet {
        self.combined(other, |here, there| here && there)
    }

    /// What is in either.
    pub fn union(&self, other: &CodePointSet) -> CodePointSet {
        self.combined(other, |here, there| here || there)
    }

    /// What is not in it.
    pub fn complement(&self) -> CodePointSet {
        CodePointSet(ALL.to_vec()).combined(self, |here, there| here && !there)
    }

    fn combined(&self, other: &CodePointSet, keep: impl Fn(bool, bool) -> bool) -> CodePointSet {
        let mut bounds: Vec<u32> = self.0.iter().chain(&other.0).copied().collect();
        bounds.sort_unstable();
        bounds.dedup();
        let (mut here, mut there, mut inside) = (0, 0, false);
        let mut result = vec![];
        for bound in bounds {
            while here < self.0.len() && self.0[here] <= bound {
                here += 1;
            }
            while there < other.0.len() && other.0[there] <= bound {
                there += 1;
            }
            if keep(here % 2 == 1, there % 2 == 1) != inside {
                inside = !inside;
                result.push(bound);
            }
        }
        CodePointSet(result)
    }
}

/// A node of the tree. See `spec/regex_tree.py` for the meaning; sets are indices into `Tree::sets`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Node {
    /// One character out of a set.
    Set(usize),
    /// One after the other.
    Sequence(Vec<Node>),
    /// The first branch with which the whole matches.
    Alternation(Vec<Node>),
    /// Again and again.
    Repeat {
        /// What is repeated.
        body: Box<Node>,
        /// At least so many times.
        minimum: u32,
        /// At most so many times; none: without end.
        maximum: Option<u32>,
        /// As often as possible, or as rarely.
        greedy: bool,
    },
    /// The first match of the body and no other.
    Atomic(Box<Node>),
    /// A condition on what comes before or after.
    Look {
        /// What has to match, or not.
        body: Box<Node>,
        /// Before, not after.
        behind: bool,
        /// Must not match.
        negated: bool,
    },
    /// A condition on the place.
    Anchor {
        /// Which place, in the words of `regex_tree.py`.
        kind: AnchorKind,
        /// What counts as a word character, for the word boundaries.
        word: Option<usize>,
    },
    /// The match begins here.
    Keep(()),
}

impl Node {
    /// The number of characters that a match has at least.
    pub fn minimum_length(&self) -> u64 {
        match self {
            Node::Set(_) => 1,
            Node::Sequence(parts) => parts.iter().map(Node::minimum_length).fold(0, u64::saturating_add),
            Node::Alternation(branches) => branches.iter().map(Node::minimum_length).min().unwrap_or(0),
            Node::Repeat { body, minimum, .. } => body.minimum_length().saturating_mul(u64::from(*minimum)),
            Node::Atomic(body) => body.minimum_length(),
            Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => 0,
        }
    }

    /// The number of characters that a match has at most; none where there is no limit.
    pub fn maximum_length(&self) -> Option<u64> {
        match self {
            Node::Set(_) => Some(1),
            Node::Sequence(parts) => {
                parts.iter().try_fold(0, |sum: u64, part| Some(sum.saturating_add(part.maximum_length()?)))
            }
            Node::Alternation(branches) => {
                branches.iter().try_fold(0, |most, branch| Some(branch.maximum_length()?.max(most)))
            }
            Node::Repeat { maximum: Some(0), .. } => Some(0),
            Node::Repeat { body, maximum, .. } => match (body.maximum_length(), maximum) {
                (Some(0), _) => Some(0),
                (Some(longest), Some(maximum)) => Some(longest.saturating_mul(u64::from(*maximum))),
                _ => None,
            },
            Node::Atomic(body) => body.maximum_length(),
            Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => Some(0),
        }
    }
}

/// The places that an anchor can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum AnchorKind {
    /// `^`
    #[serde(rename = "line start")]
    LineStart,
    /// `$`
    #[serde(rename = "line end")]
    LineEnd,
    /// `\A`
    #[serde(rename = "text start")]
    TextStart,
    /// `\z`
    #[serde(rename = "text end")]
    TextEnd,
    /// `\Z`
    #[serde(rename = "last line end")]
    LastLineEnd,
    /// `\G`
    #[serde(rename = "search start")]
    SearchStart,
    /// `\b`
    #[serde(rename = "word boundary")]
    WordBoundary,
    /// `\B`
    #[serde(rename = "no word boundary")]
    NoWordBoundary,
}

/// Whether a search may be given up because a backtracking matcher would go back too often (see `machine.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retries {
    /// It never is: what one attempt does is bounded by the length of the text.
    #[default]
    Free,
    /// Not in short texts.
    FreeInShortTexts,
    /// In any text.
    Counted,
}

/// A pattern: its sets and its root.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "SentTree")]
pub struct Tree {
    /// The sets that the nodes name.
    pub sets: Vec<CodePointSet>,
    /// The whole pattern.
    pub root: Node,
    /// When a search in it is given up.
    pub retries: Retries,
    /// Up to how many characters a text is short, for `Retries::FreeInShortTexts`.
    pub short_text: usize,
    /// What a match begins with; none: it can be empty.
    pub first: Option<CodePointSet>,
}

/// A tree as it comes over the wire, before a look at it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentTree {
    sets: Vec<CodePointSet>,
    root: Node,
    retries: Retries,
    short_text: usize,
    first: Option<CodePointSet>,
}

impl TryFrom<SentTree> for Tree {
    type Error = &'static str;

    fn try_from(sent: SentTree) -> Result<Tree, &'static str> {
        let SentTree { sets, root, retries, short_text, first } = sent;
        let tree = Tree { sets, root, retries, short_text, first };
        if tree.is_sound() {
            Ok(tree)
        } else {
            Err("a pattern that names a set which is not there")
        }
    }
}

impl Default for Node {
    /// The empty sequence.
    fn default() -> Node {
        Node::Sequence(vec![])
    }
}

impl Tree {
    /// The index of a set, which is added where it is new.
    pub fn index_of(&mut self, set: CodePointSet) -> usize {
        self.sets.iter().position(|known| *known == set).unwrap_or_else(|| {
            self.sets.push(set);
            self.sets.len() - 1
        })
    }

    /// The set, where the pattern is one character out of a set.
    pub fn single_set(&self) -> Option<&CodePointSet> {
        match &self.root {
            Node::Set(index) => Some(&self.sets[*index]),
            Node::Sequence(parts) if parts.len() == 1 => match &parts[0] {
                Node::Set(index) => Some(&self.sets[*index]),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the sets are sets, and the indices of all nodes are in range. What comes over the wire is checked once.
    pub fn is_sound(&self) -> bool {
        fn sound(node: &Node, count: usize) -> bool {
            match node {
                Node::Set(index) => *index < count,
                Node::Sequence(nodes) | Node::Alternation(nodes) => nodes.iter().all(|node| sound(node, count)),
                Node::Repeat { body, minimum, maximum, .. } => {
                    sound(body, count) && maximum.is_none_or(|maximum| *minimum <= maximum)
                }
                Node::Atomic(body) | Node::Look { body, .. } => sound(body, count),
                Node::Anchor { word, .. } => word.is_none_or(|index| index < count),
                Node::Keep(()) => true,
            }
        }
        let is_set = |set: &CodePointSet| {
            set.0.len() % 2 == 0 && set.0.is_sorted() && set.0.last().is_none_or(|&end| end <= 0x11_0000)
        };
        self.sets.iter().all(is_set) && sound(&self.root, self.sets.len())
    }
}

/// Give the pattern as it is on texts that are cut wherever a character in `set` meets one that is not: each set is
/// confined to `set`, and the end of a piece is where the next character is not in `set`. None where it asks for more
/// than the next character (what lies behind, or where a piece begins).
pub fn confined(tree: &mut Tree, node: &Node, set: &CodePointSet) -> Option<Node> {
    let all = |tree: &mut Tree, nodes: &[Node]| {
        nodes.iter().map(|node| confined(tree, node, set)).collect::<Option<Vec<_>>>()
    };
    Some(match node {
        Node::Set(index) => {
            let inside = tree.sets[*index].intersection(set);
            Node::Set(tree.index_of(inside))
        }
        Node::Sequence(nodes) => Node::Sequence(all(tree, nodes)?),
        Node::Alternation(nodes) => Node::Alternation(all(tree, nodes)?),
        Node::Repeat { body, minimum, maximum, greedy } => Node::Repeat {
            body: Box::new(confined(tree, body, set)?),
            minimum: *minimum,
            maximum: *maximum,
            greedy: *greedy,
        },
        Node::Atomic(body) => Node::Atomic(Box::new(confined(tree, body, set)?)),
        Node::Look { body, behind: false, negated } => {
            Node::Look { body: Box::new(confined(tree, body, set)?), behind: false, negated: *negated }
        }
        Node::Anchor { kind: AnchorKind::LineEnd, .. } => {
            let other = CodePointSet(vec![10, 11]).complement().intersection(set);
            not_before(tree, other)
        }
        Node::Anchor { kind: AnchorKind::TextEnd, .. } => not_before(tree, set.clone()),
        Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => return None,
    })
}

fn not_before(tree: &mut Tree, set: CodePointSet) -> Node {
    let body = Box::new(Node::Set(tree.index_of(set)));
    Node::Look { body, behind: false, negated: true }
}

/// Whether a pattern may match anything: false is a proof that it does not.
pub fn may_match(tree: &Tree, node: &Node) -> bool {
    match node {
        Node::Set(index) => !tree.sets[*index].is_empty(),
        Node::Sequence(nodes) => nodes.iter().all(|node| may_match(tree, node)),
        Node::Alternation(nodes) => nodes.iter().any(|node| may_match(tree, node)),
        Node::Repeat { body, minimum, .. } => *minimum == 0 || may_match(tree, body),
        Node::Atomic(body) | Node::Look { body, negated: false, .. } => may_match(tree, body),
        Node::Look { .. } | Node::Anchor { .. } | Node::Keep(()) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_combine() {
        let letters = CodePointSet(vec![65, 91, 97, 123]);
        let few = CodePointSet(vec![90, 98]);
        assert_eq!(letters.intersection(&few), CodePointSet(vec![90, 91, 97, 98]));
        assert_eq!(letters.union(&few), CodePointSet(vec![65, 123]));
        assert_eq!(letters.complement().complement(), letters);
        assert!(letters.contains(65) && !letters.contains(91) && !letters.complement().contains(0xD800));
    }
}
