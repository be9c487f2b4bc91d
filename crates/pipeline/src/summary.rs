//! What the server of a shell tells the process that waited for it.

use std::io::{self, Read};

use model::{Bottleneck, LinkRecord, StageRecord};
use serde::{Deserialize, Serialize};

/// What the stages and links of a text did.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Every stage that has ended, pipeline by pipeline.
    pub stages: Vec<StageRecord>,
    /// Every link, pipeline by pipeline.
    pub links: Vec<LinkRecord>,
    /// What held the longest pipeline up, where somebody looked.
    pub bottleneck: Option<Bottleneck>,
    /// Some reader saw an end that was none.
    pub cut_short: bool,
}

impl Summary {
    /// As it is sent.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Its parts are numbers and texts: nothing of it can fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads it from whoever sent it, to the end.
    ///
    /// # Errors
    /// The sender was killed.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}
