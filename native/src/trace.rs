//! One text, stage by stage, for people and for comparisons of engines.

use crate::added_tokens::{parts, AddedMatch};
use crate::aligned::TextRoad;
use crate::encoding::Encoding;
use crate::error::Result;

/// See `Stage` in `engine/protocol.py`.
pub struct Stage {
    /// "added tokens", "normalized", "pretokens", "model" or "post-processed".
    pub name: &'static str,
    /// The texts.
    pub pieces: Vec<String>,
    /// The ids of those pieces that already have one.
    pub ids: Vec<Option<u32>>,
}

impl Stage {
    fn new(name: &'static str, pieces: impl Iterator<Item = (Option<AddedMatch>, String)>) -> Stage {
        let (ids, pieces) = pieces.map(|(found, text)| (found.map(|found| found.token_id), text)).unzip();
        Stage { name, pieces, ids }
    }

    fn of_encoding(name: &'static str, encoding: &Encoding) -> Stage {
        let ids = encoding.ids.iter().copied().map(Some).collect();
        Stage { name, pieces: encoding.tokens.clone(), ids }
    }
}

/// Give all stages of a text. `post_processed` makes the final encoding of the model's.
pub fn stages(
    road: &dyn TextRoad,
    text: &str,
    post_processed: impl FnOnce(Encoding) -> Result<Encoding>,
) -> Result<Vec<Stage>> {
    let stations = road.stations();
    let raw = parts(&stations.added.raw_pass_matches(text)?, text.len());
    let raw = raw.into_iter().map(|part| (part.found, text.get(part.start..part.end).unwrap_or("").to_owned()));
    let plain = |pieces: Vec<crate::stations::Piece>| pieces.into_iter().map(|(found, piece)| (found, piece.text));
    let model = road.model_encoding(text, 0)?;
    let mut stages = vec![
        Stage::new("added tokens", raw),
        Stage::new("normalized", plain(stations.pieces(text, true)?)),
        Stage::new("pretokens", plain(stations.pretokens(text, true)?)),
        Stage::of_encoding("model", &model),
    ];
    stages.push(Stage::of_encoding("post-processed", &post_processed(model)?));
    Ok(stages)
}
