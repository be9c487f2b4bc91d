//! The payloads of a run, each made once.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Case, CaseError, ErrorKind, PayloadKind};
use payload::{Period, Tile};

/// By kind and period.
pub(crate) type Tiles = HashMap<(PayloadKind, Period), Arc<Tile>>;

pub(crate) fn tile(tiles: &mut Tiles, case: &Case, seed: u64) -> Result<Arc<Tile>, CaseError> {
    let (kind, period) = (&case.payload, Period::of_check(case.check));
    let key = (kind.clone(), period);
    if let Some(tile) = tiles.get(&key) {
        return Ok(tile.clone());
    }
    let tile = Tile::make(kind, seed, period).map_err(|error| {
        let remedy =
            "--payload file:PATH of a readable file, or sequence, printable, random, zero".to_owned();
        CaseError::stated(ErrorKind::Open, error.to_string()).with_remedy(remedy)
    })?;
    let tile = Arc::new(tile);
    tiles.insert(key, tile.clone());
    Ok(tile)
}
