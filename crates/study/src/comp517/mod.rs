//! `comp517`: four pipelines over pipes made of files and sockets, and what they run on.

mod material;
mod run;
mod view;

use serde::Deserialize;

pub(crate) use material::quoted;
pub use material::{Material, Preset, presets};

use crate::{Needs, Study};

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "comp517",
    elsewhere: None,
    needs: |scale| {
        let (disk_bytes, inodes) = Comp517::read().material.scaled(scale).room();
        Needs { disk_bytes, inodes, ..Needs::default() }
    },
    parts: &[
        ("ps", |run| run::pipeline(run, 0), |part| view::pipeline(part, 0)),
        ("sort", |run| run::pipeline(run, 1), |part| view::pipeline(part, 1)),
        ("ls-h", |run| run::pipeline(run, 2), |part| view::pipeline(part, 2)),
        ("ls-l", |run| run::pipeline(run, 3), |part| view::pipeline(part, 3)),
    ],
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Comp517 {
    material: Material,
    trials: Trials,
    #[serde(rename = "pipeline")]
    pipelines: Vec<Pipeline>,
    #[serde(rename = "link")]
    links: Vec<Link>,
    choice: Choice,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trials {
    count: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    warmup: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pipeline {
    /// `{file}` and `{folder}` stand for what it runs on.
    text: String,
}

/// What stood between the stages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    /// The study's name for it; ours where the study did not have it.
    name: String,
    /// The link of ours that is it.
    via: String,
    /// Mean and standard deviation in seconds, and stored 10^6 bytes, pipeline by pipeline; empty where the study did
    /// not have it.
    #[serde(default)]
    published: Vec<[f64; 3]>,
}

impl Comp517 {
    fn read() -> Self {
        STUDY.parameters()
    }

    /// The pipelines with what they run on.
    fn presets(&self) -> impl Iterator<Item = Preset> {
        self.pipelines.iter().map(|pipeline| Preset { text: pipeline.text.clone(), material: self.material })
    }
}
