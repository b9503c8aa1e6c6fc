//! The five behaviors of a Split: see `engine/reference/split_behaviors.py`.

use crate::spec::Behavior;

/// Give the pieces of a text of `length` bytes, the empty ones left out. Empty matches count as matches here, and can
/// keep two neighbours from being merged. With `invert` matches count as what lies between, and the other way round.
pub fn behavior_spans(
    matches: &[(usize, usize)],
    length: usize,
    behavior: Behavior,
    invert: bool,
) -> Vec<(usize, usize)> {
    let mut parts: Vec<(usize, usize, bool)> = vec![];
    let mut done = 0;
    for &(start, end) in matches {
        if done != start {
            parts.push((done, start, invert));
        }
        parts.push((start, end, !invert));
        done = end;
    }
    if done != length {
        parts.push((done, length, invert));
    }
    let mut pieces = merged(&parts, behavior);
    pieces.retain(|(start, end)| start < end);
    pieces
}

fn merged(parts: &[(usize, usize, bool)], behavior: Behavior) -> Vec<(usize, usize)> {
    let mut pieces: Vec<(usize, usize)> = vec![];
    let mut was_match = false;
    match behavior {
        Behavior::Removed => return parts.iter().filter(|part| !part.2).map(|part| (part.0, part.1)).collect(),
        Behavior::Isolated => return parts.iter().map(|part| (part.0, part.1)).collect(),
        Behavior::MergedWithNext => {
            for &(start, end, is_match) in parts.iter().rev() {
                match pieces.last_mut() {
                    Some(piece) if is_match && !was_match => piece.0 = start,
                    _ => pieces.push((start, end)),
                }
                was_match = is_match;
            }
            pieces.reverse();
        }
        Behavior::MergedWithPrevious | Behavior::Contiguous => {
            for &(start, end, is_match) in parts {
                let merges = match behavior {
                    Behavior::Contiguous => is_match == was_match,
                    _ => is_match && !was_match,
                };
                match pieces.last_mut() {
                    Some(piece) if merges => piece.1 = end,
                    _ => pieces.push((start, end)),
                }
                was_match = is_match;
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five() {
        let text = "ab-cd--e";
        let matches = [(2, 3), (5, 6), (6, 7)];
        let pieces = |behavior| {
            let spans = behavior_spans(&matches, text.len(), behavior, false);
            spans.iter().map(|&(start, end)| &text[start..end]).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(pieces(Behavior::Removed), "ab cd e");
        assert_eq!(pieces(Behavior::Isolated), "ab - cd - - e");
        assert_eq!(pieces(Behavior::MergedWithPrevious), "ab- cd- - e");
        assert_eq!(pieces(Behavior::MergedWithNext), "ab -cd - -e");
        assert_eq!(pieces(Behavior::Contiguous), "ab - cd -- e");
    }
}
