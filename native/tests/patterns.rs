//! The transducers are held against the backtracking matcher: the same pieces on random texts, whole or in windows.

mod random;

use random::Random;
use tokbatch_native::compiled_pattern::CompiledPattern;
use tokbatch_native::patterns::backtrack::{Matcher, OutOfWork};
use tokbatch_native::patterns::build_transducer;
use tokbatch_native::patterns::fuse::{fuse, Fused};
use tokbatch_native::patterns::machine::Machine;
use tokbatch_native::patterns::scan::is_possible;
use tokbatch_native::patterns::splitter::{Splitter, Stretch};
use tokbatch_native::patterns::transducer::Transducer;
use tokbatch_native::patterns::tree::{AnchorKind, CodePointSet, Node, Retries, Tree};
use tokbatch_native::spec::Pattern;

const TEXT: [char; 24] = [
    ' ', ' ', ' ', '\n', '\r', '\t', 'a', 'b', 'Z', 's', 't', '\'', '\'', '!', '?', '1', '2', '3', 'é', 'Я', '中', '٣',
    '\u{3000}', '😀',
];

fn set(ranges: &[(char, char)]) -> CodePointSet {
    ranges.iter().fold(CodePointSet::default(), |all, &(first, last)| {
        all.union(&CodePointSet(vec![first as u32, last as u32 + 1]))
    })
}

/// Sets by number: letters, digits, spaces, the rest, newlines, the blank, the apostrophe, "s" or "t", no space.
fn sets() -> Vec<CodePointSet> {
    let letters = set(&[('a', 'z'), ('A', 'Z'), ('À', 'ɏ'), ('Ѐ', 'ӿ'), ('一', '龥')]);
    let digits = set(&[('0', '9'), ('٠', '٩')]);
    let spaces = set(&[('\t', '\r'), (' ', ' '), ('\u{3000}', '\u{3000}')]);
    let rest = letters.union(&digits).union(&spaces).complement();
    let no_space = spaces.complement();
    let newlines = set(&[('\n', '\n'), ('\r', '\r')]);
    let (blank, apostrophe, ending) = (set(&[(' ', ' ')]), set(&[('\'', '\'')]), set(&[('s', 't')]));
    vec![letters, digits, spaces, rest, newlines, blank, apostrophe, ending, no_space]
}

const LETTER: Node = Node::Set(0);
const DIGIT: Node = Node::Set(1);
const SPACE: Node = Node::Set(2);
const REST: Node = Node::Set(3);
const NEWLINE: Node = Node::Set(4);
const BLANK: Node = Node::Set(5);
const APOSTROPHE: Node = Node::Set(6);
const ENDING: Node = Node::Set(7);

fn repeat(body: Node, minimum: u32, maximum: Option<u32>, greedy: bool) -> Node {
    Node::Repeat { body: Box::new(body), minimum, maximum, greedy }
}

fn many(body: Node) -> Node {
    repeat(body, 1, None, true)
}

fn maybe(body: Node) -> Node {
    repeat(body, 0, Some(1), true)
}

fn all_possessive(body: Node, minimum: u32, maximum: Option<u32>) -> Node {
    Node::Atomic(Box::new(repeat(body, minimum, maximum, true)))
}

fn one_of(nodes: Vec<Node>) -> Tree {
    Tree { sets: sets(), root: Node::Alternation(nodes), ..Tree::default() }
}

fn then(nodes: Vec<Node>) -> Node {
    Node::Sequence(nodes)
}

fn unless_no_space_follows() -> Node {
    Node::Look { body: Box::new(Node::Set(8)), behind: false, negated: true }
}

/// GPT-2's pattern, with other sets.
fn gpt2() -> Tree {
    one_of(vec![
        then(vec![APOSTROPHE, ENDING]),
        then(vec![maybe(BLANK), many(LETTER)]),
        then(vec![maybe(BLANK), many(DIGIT)]),
        then(vec![maybe(BLANK), many(REST)]),
        then(vec![many(SPACE), unless_no_space_follows()]),
        many(SPACE),
    ])
}

/// Llama 3's, which looks for a newline behind any number of spaces.
fn llama3() -> Tree {
    one_of(vec![
        then(vec![APOSTROPHE, ENDING]),
        then(vec![maybe(REST), many(LETTER)]),
        repeat(DIGIT, 1, Some(3), true),
        then(vec![maybe(BLANK), many(REST), repeat(NEWLINE, 0, None, true)]),
        then(vec![repeat(SPACE, 0, None, true), many(NEWLINE)]),
        then(vec![many(SPACE), unless_no_space_follows()]),
        many(SPACE),
    ])
}

fn patterns() -> Vec<(&'static str, Tree)> {
    vec![
        ("gpt2", gpt2()),
        ("llama3", llama3()),
        ("gaps", one_of(vec![then(vec![REST, many(LETTER)]), many(NEWLINE)])),
        ("long gaps", one_of(vec![then(vec![LETTER, repeat(SPACE, 0, None, true), DIGIT])])),
        ("lazy", one_of(vec![then(vec![LETTER, repeat(LETTER, 0, None, false), ENDING]), many(LETTER)])),
        ("possessive", one_of(vec![then(vec![all_possessive(LETTER, 0, Some(2)), LETTER, DIGIT]), DIGIT])),
        ("possessive without end", one_of(vec![then(vec![all_possessive(SPACE, 1, None), NEWLINE]), many(SPACE)])),
    ]
}

/// Where pieces begin: the matches and the gaps between them.
fn expected(matcher: &Matcher, text: &str) -> Vec<u32> {
    let (mut starts, mut done) = (vec![], 0);
    for (start, end) in matcher.matches(text, u64::MAX, u64::MAX).unwrap() {
        if done < start {
            starts.push(done as u32);
        }
        starts.push(start as u32);
        done = end;
    }
    if done < text.len() {
        starts.push(done as u32);
    }
    starts
}

fn found(machine: &Transducer, text: &str) -> Vec<u32> {
    let (mut splitter, mut starts) = (Splitter::default(), vec![]);
    let whole = Stretch { start: 0, end: text.len(), row: machine.start, is_last: true };
    splitter.run(machine, text.as_bytes(), &[whole]);
    splitter.starts_into(&mut starts);
    starts
}

fn found_in_windows(machine: &Transducer, text: &str, window: usize) -> Vec<u32> {
    let (mut splitter, mut starts) = (Splitter::default(), vec![]);
    let (mut at, mut row) = (0, machine.start);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let cut = Splitter::cut_point(machine, rest, window);
        let (length, next) = cut.unwrap_or((rest.len(), machine.start));
        splitter.run(machine, &rest[..length], &[Stretch { start: 0, end: length, row, is_last: cut.is_none() }]);
        let mut here = vec![];
        splitter.starts_into(&mut here);
        starts.extend(here.iter().map(|start| start + at as u32));
        (at, row) = (at + length, next);
    }
    starts
}

/// Miri, which runs this too (`make test-native`), takes a thousand times as long.
const SLOWNESS: usize = if cfg!(miri) { 200 } else { 1 };

impl Random {
    /// A text of a few different characters, so that runs are long.
    fn text(&mut self, length: usize) -> String {
        let (first, width) = (self.below(TEXT.len()), 1 + self.below(TEXT.len()));
        (0..length).map(|_| TEXT[(first + self.below(width)) % TEXT.len()]).collect()
    }
}

#[test]
fn a_transducer_cuts_as_the_matcher_does() {
    let mut random = Random(88_172_645_463_325_252);
    for (name, tree) in patterns() {
        let machine = build_transducer(&tree, &[]).unwrap_or_else(|why| panic!("{name}: {why}"));
        let matcher = Matcher::build(&tree);
        for round in 0..2000 / SLOWNESS {
            let length = if round % 100 == 0 { 9000 / SLOWNESS.min(10) } else { random.below(60) };
            let text = random.text(length);
            let expected = expected(&matcher, &text);
            assert_eq!(found(&machine, &text), expected, "{name} on {text:?}");
            let window = 1 + random.below(100);
            assert_eq!(
                found_in_windows(&machine, &text, window),
                expected,
                "{name} in windows of {window} on {text:?}"
            );
        }
    }
}

/// The starts of some stretches of a text, and whether they were found by windows.
fn found_in_stretches(
    splitter: &mut Splitter,
    machine: &Transducer,
    text: &str,
    stretches: &[Stretch],
) -> (Vec<u32>, bool) {
    let mut starts = vec![];
    splitter.run(machine, text.as_bytes(), stretches);
    splitter.starts_into(&mut starts);
    (starts, splitter.was_scanned())
}

#[test]
fn windows_tell_what_the_machine_tells() {
    let mut random = Random(4_711);
    for (name, tree) in patterns() {
        let plain = build_transducer(&tree, &[]).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut machine = build_transducer(&tree, &[]).expect("as before");
        machine.find_windows();
        assert!(machine.windows.is_some(), "{name}");
        // One for all texts: nothing of a text is left for the next one.
        let mut one = Splitter::eager();
        let mut scanned = 0;
        for round in 0..1500 / SLOWNESS {
            let mut text = String::new();
            let length = if round % 50 == 0 { 9000 / SLOWNESS.min(10) } else { 40 + random.below(400) };
            while text.len() < length {
                // Words between what is hard, in some texts hardly any of that.
                for _ in 0..random.below(12) {
                    text.push_str([" word", " a", " isn't", ", yes", " 12", ".\n", "ts"][random.below(7)]);
                }
                if random.below(round % 7 + 1) == 0 {
                    let more = random.below(20);
                    text.push_str(&random.text(more));
                }
            }
            let mut stretches = vec![];
            let mut bounds: Vec<usize> = (0..random.below(4)).map(|_| random.below(text.len())).collect();
            bounds.extend([0, text.len()]);
            bounds.sort_unstable();
            for ends in bounds.windows(2).filter(|ends| ends.iter().all(|&end| text.is_char_boundary(end))) {
                let is_gap = random.below(4) == 0;
                if ends[0] < ends[1] && !is_gap {
                    stretches.push(Stretch { start: ends[0], end: ends[1], row: machine.start, is_last: true });
                }
            }
            let (expected, _) = found_in_stretches(&mut Splitter::default(), &plain, &text, &stretches);
            let (eager, by_windows) = found_in_stretches(&mut one, &machine, &text, &stretches);
            assert_eq!(eager, expected, "{name} on {text:?} in {stretches:?}");
            assert!(by_windows);
            let (found, by_windows) = found_in_stretches(&mut Splitter::default(), &machine, &text, &stretches);
            assert_eq!(found, expected, "{name} on {text:?} in {stretches:?}");
            scanned += usize::from(by_windows);
            let window = 60 + random.below(100);
            assert_eq!(found_in_windows(&machine, &text, window), found_in_windows(&plain, &text, window), "{name}");
        }
        assert!(scanned > 0 || !is_possible(), "{name}: no text was worth it");
    }
}

#[test]
fn a_text_without_a_place_to_begin_is_cut_in_linear_time() {
    let mut machine = build_transducer(&llama3(), &[]).expect("it has a machine");
    machine.find_windows();
    for text in [" ".repeat(20_000), "1".repeat(20_000), "'s".repeat(10_000), "é ".repeat(7_000)] {
        let whole = [Stretch { start: 0, end: text.len(), row: machine.start, is_last: true }];
        let (expected, _) = found_in_stretches(&mut Splitter::default(), &machine, &text, &whole);
        assert_eq!(found_in_stretches(&mut Splitter::eager(), &machine, &text, &whole).0, expected);
    }
}

#[test]
fn fused_splits_cut_as_one_after_the_other() {
    let digits = Tree { sets: sets(), root: repeat(DIGIT, 1, Some(3), true), ..Tree::default() };
    let letters = Tree { sets: sets(), root: many(LETTER), ..Tree::default() };
    let last = one_of(vec![then(vec![REST, many(LETTER)]), then(vec![many(SPACE), unless_no_space_follows()])]);
    let stages = [digits, letters, last.clone()];
    let mut fused = Fused { tree: last, gaps: vec![] };
    for stage in stages[..2].iter().rev() {
        fused = fuse(stage, &fused).expect("these can be fused");
    }
    let machine = build_transducer(&fused.tree, &fused.gaps).expect("it has a machine");
    let matchers: Vec<Matcher> = stages.iter().map(Matcher::build).collect();
    let mut random = Random(1);
    for _ in 0..2000 / SLOWNESS {
        let length = random.below(60);
        let text = random.text(length);
        let mut starts: Vec<u32> = if text.is_empty() { vec![] } else { vec![0] };
        for matcher in &matchers {
            let ends = starts.iter().skip(1).copied().chain([text.len() as u32]);
            let pieces = starts.iter().zip(ends).flat_map(|(&start, end)| {
                expected(matcher, &text[start as usize..end as usize]).into_iter().map(move |place| start + place)
            });
            starts = pieces.collect();
        }
        assert_eq!(found(&machine, &text), starts, "{text:?}");
    }
}

#[test]
fn what_has_no_machine_says_why() {
    let empty = Tree { sets: sets(), root: repeat(LETTER, 0, None, true), ..Tree::default() };
    assert_eq!(build_transducer(&empty, &[]).err(), Some("the pattern can match the empty text"));
    let behind = Node::Look { body: Box::new(LETTER), behind: true, negated: false };
    let tree = Tree { sets: sets(), root: then(vec![behind, LETTER]), ..Tree::default() };
    assert_eq!(build_transducer(&tree, &[]).err(), Some("a condition on what lies behind"));
}

fn again(body: Node) -> Node {
    repeat(body, 0, None, true)
}

fn behind(body: Node, negated: bool) -> Node {
    Node::Look { body: Box::new(body), behind: true, negated }
}

/// Patterns without a transducer, and such as go back often.
fn hard_patterns() -> Vec<Node> {
    let either = |nodes| Node::Alternation(nodes);
    let atomic = |body| Node::Atomic(Box::new(body));
    let any = || either(vec![LETTER, DIGIT, SPACE, REST]);
    let keep = || Node::Keep(());
    let search_start = Node::Anchor { kind: AnchorKind::SearchStart, word: None };
    let boundary = Node::Anchor { kind: AnchorKind::WordBoundary, word: Some(0) };
    vec![
        then(vec![again(either(vec![LETTER, many(LETTER)])), DIGIT]),
        then(vec![again(again(LETTER)), NEWLINE]),
        again(either(vec![then(vec![]), LETTER])),
        again(repeat(either(vec![maybe(LETTER), DIGIT]), 0, Some(3), false)),
        then(vec![behind(then(vec![DIGIT, again(any())]), false), LETTER]),
        then(vec![behind(either(vec![DIGIT, then(vec![LETTER, LETTER])]), true), SPACE]),
        then(vec![many(LETTER), keep(), DIGIT]),
        then(vec![again(then(vec![again(LETTER), keep()])), DIGIT]),
        then(vec![atomic(either(vec![then(vec![LETTER, keep()]), then(vec![LETTER, LETTER])])), again(DIGIT)]),
        then(vec![search_start, any()]),
        then(vec![boundary, again(any()), boundary_at_end()]),
        then(vec![repeat(many(either(vec![LETTER, SPACE])), 2, Some(3), true), REST]),
    ]
}

fn boundary_at_end() -> Node {
    Node::Anchor { kind: AnchorKind::LineEnd, word: None }
}

#[test]
fn the_machine_that_remembers_matches_as_the_matcher_does() {
    let mut random = Random(77);
    for (number, root) in
        hard_patterns().into_iter().chain(patterns().into_iter().map(|(_, tree)| tree.root)).enumerate()
    {
        let tree = Tree { sets: sets(), root, ..Tree::default() };
        let (matcher, machine) = (Matcher::build(&tree), Machine::build(&tree).unwrap());
        let mut answered = 0;
        for _ in 0..1500 / SLOWNESS {
            let length = random.below(40);
            let text = random.text(length);
            if let Ok(expected) = matcher.matches(&text, 200_000, u64::MAX) {
                assert_eq!(machine.matches(&text, true).unwrap(), expected, "pattern {number} on {text:?}");
                answered += 1;
            }
        }
        assert!(answered > 1000 / SLOWNESS, "pattern {number}: the matcher has no answer but for {answered} texts");
    }
}

#[test]
fn a_search_that_goes_back_too_often_is_given_up() {
    let either = Node::Alternation(vec![LETTER, LETTER]);
    let tree =
        Tree { sets: sets(), root: then(vec![again(either), DIGIT]), retries: Retries::Counted, ..Tree::default() };
    let machine = Machine::build(&tree).unwrap();
    // Each letter doubles the number of ways: 2 + 4 + ... from the first place on.
    assert_eq!(machine.matches(&"a".repeat(20), true).unwrap(), []);
    assert_eq!(machine.matches(&"a".repeat(30), true).unwrap_err().code, "pattern-gave-up");
    assert_eq!(machine.matches(&"a".repeat(3000), false).unwrap(), []);
    assert_eq!(Matcher::build(&tree).matches(&"a".repeat(30), 1 << 20, u64::MAX), Err(OutOfWork));

    let pattern = CompiledPattern::new(&Pattern::Regex(tree));
    assert_eq!(pattern.spans(&"a".repeat(20)).unwrap(), []);
    assert_eq!(pattern.spans(&"a".repeat(30)).unwrap_err().code, "pattern-gave-up");
}
