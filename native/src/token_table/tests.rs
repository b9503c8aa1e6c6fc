//! The table against the steps, decoder by decoder.

use super::*;
use crate::spec::{Decoder as Spec, Pattern, PrependScheme};

struct Strings(Vec<(u32, &'static str)>);

impl TokenStrings for Strings {
    fn string(&self, id: u32) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, token)| *token)
    }
    fn ids(&self) -> Vec<u32> {
        self.0.iter().map(|(id, _)| *id).collect()
    }
}

fn strings() -> Strings {
    let tokens = ["▁a", "b</w>", "<0xC3>", "<0xA9>", "ĠÃ", "©", "##c", " d", "", "a long token of thirty bytes…", "."];
    let mut strings: Vec<(u32, &str)> = (0..).zip(tokens).collect();
    strings.push((2_000_000_000, "▁far"));
    Strings(strings)
}

/// All lists of up to three ids of these and one that nobody has.
fn lists() -> Vec<Vec<u32>> {
    let ids = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 99, 2_000_000_000];
    let all = |count: usize| (0..count).map(|n| (n % 13, n / 13 % 13, n / 169));
    let mut lists = vec![vec![]];
    lists.extend(ids.map(|id| vec![id]));
    lists.extend(all(169).map(|(a, b, _)| vec![ids[a], ids[b]]));
    // Of the lists of three, every fifth: 5 and 13 have no factor in common.
    lists.extend(all(2197).step_by(5).map(|(a, b, c)| vec![ids[a], ids[b], ids[c]]));
    lists
}

#[test]
fn the_table_gives_what_the_steps_give() {
    let replace = || Spec::Replace { pattern: Pattern::String("▁".into()), content: " ".into() };
    let strip = |start, stop| Spec::Strip { content: ' ', start, stop };
    let byte_level = || Spec::ByteLevel { add_prefix_space: true, trim_offsets: true, use_regex: true };
    let metaspace = || Spec::Metaspace { replacement: '▁', prepend_scheme: PrependScheme::Always, split: true };
    let sequence = |decoders| Some(Spec::Sequence { decoders });
    enum Told {
        Always,
        /// Where the first token is a text.
        ByFirst,
        Never,
    }
    use Told::{Always, ByFirst, Never};
    // Whether there is a table, and whether it can tell agreement without putting the text together.
    let specs = [
        (None, true, Always),
        (Some(byte_level()), true, Always),
        (Some(metaspace()), true, Always),
        (Some(Spec::WordPiece { prefix: "##".into(), cleanup: true }), true, Always),
        (Some(Spec::BPEDecoder { suffix: "</w>".into() }), true, Always),
        (sequence(vec![replace(), Spec::ByteFallback {}, Spec::Fuse {}, strip(1, 0)]), true, ByFirst),
        (sequence(vec![replace(), Spec::Fuse {}, strip(2, 0)]), true, Never),
        (sequence(vec![byte_level(), strip(1, 0)]), true, ByFirst),
        (sequence(vec![replace(), Spec::ByteFallback {}, Spec::Fuse {}]), true, Always),
        (sequence(vec![Spec::ByteFallback {}, metaspace()]), false, Never),
        (
            sequence(vec![metaspace(), Spec::BPEDecoder { suffix: "</w>".into() }, byte_level(), strip(0, 1)]),
            true,
            Never,
        ),
        (sequence(vec![]), true, Always),
        (sequence(vec![Spec::Fuse {}, metaspace(), replace()]), true, Never),
        (sequence(vec![strip(0, 1)]), false, Never),
    ];
    for (spec, has_table, is_told) in specs {
        let (tokens, mut room) = (strings(), vec![]);
        let column = ColumnDecoder::build(Decoder::build(spec.as_ref()), &tokens);
        assert_eq!(column.table.is_some(), has_table, "{spec:?}");
        for ids in lists() {
            let expected = column.decode_slowly(&ids, &tokens);
            let mut text = b"before".to_vec();
            let outcome = column.decode_into(&ids, &tokens, &mut text);
            assert_eq!(outcome.is_ok(), expected.is_ok(), "{spec:?} {ids:?}");
            let Ok(expected) = expected else { continue };
            let is_told = match is_told {
                Always => true,
                ByFirst => ids.first().is_none_or(|id| ![2, 3, 8, 99].contains(id)),
                Never => false,
            };
            assert_eq!(String::from_utf8_lossy(&text[6..]), expected, "{spec:?} {ids:?}");
            // Agreement is sure; disagreement may be doubt.
            for padding in [0, 20] {
                let data = [b"xy".as_slice(), expected.as_bytes(), &vec![b'.'; padding]].concat();
                let end = 2 + expected.len();
                let agrees = column.agrees(&ids, &tokens, (&data, 2, end), &mut room);
                // Bytes of a broken run are no text, and agree with none.
                let is_told = is_told && !expected.contains('\u{FFFD}');
                assert!(agrees || !is_told, "{spec:?} {ids:?}");
                assert!(agrees || !column.tells_all_of(&expected, &ids), "{spec:?} {ids:?}");
                let mut other = data.clone();
                other[end - 1] ^= 1;
                assert!(!column.agrees(&ids, &tokens, (&other, 2, end), &mut room) || end == 2);
                assert!(!column.agrees(&ids, &tokens, (&data, 2, end + padding.min(1)), &mut room) || padding == 0);
            }
        }
    }
}
