//! Verdicts of documents that were encoded before, without a second encoding: they are those of a second encoding.

use serde_json::{json, Value};
use tokbatch_native::byte_alphabet::character_of;
use tokbatch_native::columns::{GivenIds, TextColumn};
use tokbatch_native::engine::Engine;
use tokbatch_native::round_trip::{Verdict, Verification};
use tokbatch_native::spec::WIRE_VERSION;

/// An engine of a model without its entries, and these.
fn engine(model: Value, entries: Value, decoder: Value) -> Engine {
    let no_tokens = json!({"in_force": [], "ids": [], "special_contents": [], "normalized_contents": []});
    engine_of(model, entries, json!({"type": "BertPreTokenizer"}), no_tokens, decoder)
}

fn engine_of(model: Value, entries: Value, pre_tokenizer: Value, added_tokens: Value, decoder: Value) -> Engine {
    let components = json!({
        "wire_version": WIRE_VERSION,
        "model": model,
        "added_tokens": added_tokens,
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": decoder,
    });
    let options = json!({"truncation": null, "padding": null, "encode_special_tokens": false});
    let [components, options, entries] =
        [components, options, entries].map(|part| rmp_serde::to_vec_named(&part).expect("can be written"));
    Engine::build(&components, &options, &entries).expect("a whole spec")
}

fn column(texts: &[&str]) -> (String, Vec<i64>) {
    let mut ends = vec![0];
    texts.iter().for_each(|text| ends.push(ends[ends.len() - 1] + text.len() as i64));
    (texts.concat(), ends)
}

/// Encode, change the ids, and verify them.
fn verified(engine: &Engine, texts: &[&str], change: impl Fn(&mut Vec<u32>)) -> Verification {
    let (data, offsets) = column(texts);
    let texts = TextColumn::new(data.as_bytes(), &offsets[..]).expect("in order");
    let mut ids = engine.encode_batch(texts, true, true).expect("all can be encoded");
    assert!(ids.failures.is_empty() && ids.ids.iter().all(|&id| id < 1 << 28), "no marks are left on ids");
    change(&mut ids.ids);
    let given = GivenIds::new(&ids.ids, &ids.list_offsets[..]).expect("in order");
    engine.verify_batch(texts, given, true).expect("has an answer")
}

fn check(engine: &Engine, documents: &[(&str, Verdict)]) {
    let texts: Vec<&str> = documents.iter().map(|document| document.0).collect();
    let expected: Vec<i8> = documents.iter().map(|document| document.1 as i8).collect();
    let first = verified(engine, &texts, |_| ());
    assert_eq!(first.verdicts, expected);
    assert!(first.bytes_encoded_again > 0, "nothing is known yet");
    let second = verified(engine, &texts, |_| ());
    assert_eq!(second.verdicts, expected);
    assert_eq!(second.bytes_encoded_again, 0, "all is on record");
    let other = verified(engine, &texts, |ids| ids.iter_mut().for_each(|id| *id ^= 1));
    assert!(other.bytes_encoded_again > 0, "these ids are nobody's");
    assert!(other.verdicts.iter().all(|&verdict| verdict == Verdict::Lossy as i8));
}

#[test]
fn of_words_and_their_pieces() {
    let entries = json!([{"[UNK]": 0, "ab": 1, "##c": 2, ".": 3, "b": 4}]);
    let model = json!({"WordPiece": {
        "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    }});
    let engine = engine(model, entries, json!({"type": "WordPiece", "prefix": "##", "cleanup": true}));
    check(
        &engine,
        &[
            ("ABC.", Verdict::Normalized),
            ("abc  ab . b", Verdict::Normalized),
            ("B abcx b", Verdict::Lossy),
            ("x", Verdict::Lossy),
        ],
    );
}

#[test]
fn of_words_with_an_ending_that_their_pretokens_lack() {
    let entries = json!([{"a</w>": 0, "b": 1, "c</w>": 2, "bc</w>": 3}, [["b", "c</w>"]]]);
    let model = json!({"BPE": {
        "dropout": null, "unk_token": null,
        "continuing_subword_prefix": null, "end_of_word_suffix": "</w>", "fuse_unk": false, "byte_fallback": false,
        "ignore_merges": false,
    }});
    let engine = engine(model, entries, json!({"type": "BPEDecoder", "suffix": "</w>"}));
    check(&engine, &[("A a  bc", Verdict::Lossy), ("BC a c", Verdict::Lossy)]);
}

/// Byte-level BPE with the bytes but one, the other entries, and one added token.
fn byte_level(left_out: Option<u8>, entries: &[(&str, u32)], added: Option<(&str, u32)>, suffix: &str) -> Engine {
    let bytes = (0..=u8::MAX).filter(|&byte| Some(byte) != left_out);
    let mut vocabulary: serde_json::Map<String, Value> =
        bytes.map(|byte| (character_of(byte).to_string(), json!(u32::from(byte)))).collect();
    vocabulary.extend(entries.iter().map(|(token, id)| ((*token).to_owned(), json!(id))));
    let model = json!({"BPE": {
        "dropout": null, "unk_token": null,
        "continuing_subword_prefix": "", "end_of_word_suffix": suffix, "fuse_unk": false, "byte_fallback": false,
        "ignore_merges": false,
    }});
    let token = |(content, id): (&str, u32)| {
        json!({"id": id, "place": 0, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": false})
    };
    let added_tokens = json!({
        "in_force": added.map(token).into_iter().collect::<Vec<Value>>(),
        "ids": added.into_iter().collect::<Vec<_>>(),
        "special_contents": [], "normalized_contents": [],
    });
    let pre_tokenizer = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false, "pattern": null});
    let decoder = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    engine_of(model, json!([vocabulary, [["b", "c"]]]), pre_tokenizer, added_tokens, decoder)
}

#[test]
fn of_bytes_that_are_given_back() {
    let engine = byte_level(None, &[("bc", 300)], Some(("<X>", 400)), "");
    check(&engine, &[("BC a", Verdict::Normalized), ("É<X>É", Verdict::Normalized), ("BCBCBC", Verdict::Normalized)]);
    assert_eq!(verified(&engine, &["bc a", "é<X>é", ""], |_| ()).verdicts, [Verdict::Exact as i8; 3]);
    // Its own text in other ids.
    let split = |ids: &mut Vec<u32>| *ids = vec![u32::from(b'b'), u32::from(b'c')];
    let (data, offsets) = column(&["BC"]);
    let texts = TextColumn::new(data.as_bytes(), &offsets[..]).expect("in order");
    let mut ids = engine.encode_batch(texts, true, true).expect("it can be encoded").ids;
    assert_eq!(ids, [300]);
    split(&mut ids);
    let given = GivenIds::new(&ids, &[0, 2][..]).expect("in order");
    assert_eq!(engine.verify_batch(texts, given, true).expect("has an answer").verdicts, [Verdict::Lossy as i8]);
}

#[test]
fn of_bytes_that_are_not_given_back() {
    let a = u32::from(b'a');
    for engine in [
        byte_level(Some(b'a'), &[("bc", 300)], None, ""),
        byte_level(None, &[("bc", 300)], Some(("<X>", a)), ""),
        byte_level(Some(b'a'), &[("bc", 300), ("A", a), ("a", a)], None, ""),
        byte_level(None, &[("bc", 300), ("a</w>", 301)], None, "</w>"),
    ] {
        for _ in 0..2 {
            assert_eq!(verified(&engine, &["É A"], |_| ()).verdicts, [Verdict::Lossy as i8]);
        }
    }
}

#[test]
fn of_a_column_that_was_encoded_before_anybody_watched() {
    let entries = json!([{"[UNK]": 0, "ab": 1, "##c": 2, ".": 3, "b": 4}]);
    let model = json!({"WordPiece": {
        "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    }});
    let decoder = json!({"type": "WordPiece", "prefix": "##", "cleanup": true});
    let words = ["ABC", "ab", "B.", "abc.", "b"];
    let text_of = |row: usize| -> String {
        (0..10 + row % 30).map(|word| [words[(row + word * word) % 5], "  "].concat()).collect()
    };
    let texts: Vec<String> = (0..16_000).map(text_of).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &text[..]).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    assert!(bytes > 3 << 19, "some blocks of a megabyte, and of some thousand rows");
    let one_of_nine = |ids: &mut Vec<u32>| ids.iter_mut().step_by(9 * 25).for_each(|id| *id ^= 1);

    let found = verified(&engine(model.clone(), entries.clone(), decoder.clone()), &texts, one_of_nine);

    assert!((64 << 10..bytes / 2).contains(&found.bytes_encoded_again), "{} of {bytes}", found.bytes_encoded_again);
    let counts = [Verdict::Normalized, Verdict::Lossy]
        .map(|verdict| found.verdicts.iter().filter(|&&v| v == verdict as i8).count());
    assert!(counts.iter().all(|&count| count > 500) && counts.iter().sum::<usize>() == texts.len(), "{counts:?}");
    // The same as of each row alone, of which no engine has known anything before.
    let (data, offsets) = column(&texts);
    let all = TextColumn::new(data.as_bytes(), &offsets[..]).expect("in order");
    let engine = engine(model, entries, decoder);
    let mut ids = engine.encode_batch(all, true, true).expect("all can be encoded");
    one_of_nine(&mut ids.ids);
    for row in (0..texts.len()).step_by(97) {
        let bounds = [0, ids.list_offsets[row + 1] - ids.list_offsets[row]];
        let row_ids = &ids.ids[ids.list_offsets[row] as usize..ids.list_offsets[row + 1] as usize];
        let given = GivenIds::new(row_ids, &bounds[..]).expect("in order");
        assert_eq!(
            engine.verify_batch(all.row(row), given, true).expect("has an answer").verdicts,
            [found.verdicts[row]]
        );
    }
}
