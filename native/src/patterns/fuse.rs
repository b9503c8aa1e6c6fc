//! Several Splits, one after the other, as one pattern.
//!
//! A Split with `S+` or `S{1,n}` that keeps its matches cuts the text wherever a character of S meets another one (and,
//! with a maximum, every n characters of S). What follows then sees pieces that are all in S or all outside of it, so it
//! may as well be two patterns, one confined to S and one to the rest. DeepSeek's three Splits become one that way.

use super::tree::{confined, may_match, CodePointSet, Node, Tree};

/// A pattern, and the kinds of gaps that it leaves (see `program.rs`).
pub struct Fused {
    /// The pattern.
    pub tree: Tree,
    /// Sets that part all characters; empty: one kind of gap.
    pub gaps: Vec<CodePointSet>,
}

/// Put `first` before `rest`. None where `first` is not of that form, or `rest` asks for too much.
pub fn fuse(first: &Tree, rest: &Fused) -> Option<Fused> {
    let (set, maximum) = run_of_set(first)?;
    let other = set.complement();
    let mut tree = Tree { sets: rest.tree.sets.clone(), ..Tree::default() };
    let inside = confined(&mut tree, &rest.tree.root, &set)?;
    let outside = confined(&mut tree, &rest.tree.root, &other)?;
    let inside = match maximum {
        None => inside,
        Some(maximum) => {
            // The pieces of at most n characters are not cut further only where nothing matches in them.
            if may_match(&tree, &inside) {
                return None;
            }
            let body = Box::new(Node::Set(tree.index_of(set.clone())));
            Node::Repeat { body, minimum: 1, maximum: Some(maximum), greedy: true }
        }
    };
    tree.root = Node::Alternation(vec![inside, outside]);
    let parts = if rest.gaps.is_empty() { vec![CodePointSet::default().complement()] } else { rest.gaps.clone() };
    let gaps = parts.iter().flat_map(|part| [part.intersection(&set), part.intersection(&other)]);
    Some(Fused { tree, gaps: gaps.filter(|part| !part.is_empty()).collect() })
}

fn run_of_set(tree: &Tree) -> Option<(CodePointSet, Option<u32>)> {
    let node = match &tree.root {
        Node::Sequence(nodes) if nodes.len() == 1 => &nodes[0],
        node => node,
    };
    match node {
        Node::Repeat { body, minimum: 1, maximum, greedy: true } => match **body {
            Node::Set(index) => Some((tree.sets[index].clone(), *maximum)),
            _ => None,
        },
        _ => None,
    }
}
