//! `comp517`: four pipelines over pipes made of files and sockets, and what they run on.

mod material;
mod run;
mod view;

use serde::Deserialize;

pub(crate) use material::quoted;
pub use material::{Material, Preset, presets};

use crate::Study;

/// The entry in the list of studies.
pub(crate) const STUDY: Study = Study {
    name: "comp517",
    run: run::pipeline,
    show: view::pipeline,
    elsewhere: None,
    facts: view::facts_of,
    toml: include_str!("study.toml"),
};

#[derive(Deserialize)]
struct Comp517 {
    material: Material,
    #[serde(rename = "link")]
    links: Vec<Link>,
}

/// What stood between the stages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    /// The study's name for it; ours where the study did not have it.
    name: String,
    /// The link of ours that is it.
    via: String,
    /// Mean and standard deviation in seconds, and stored 10^6 bytes, part by part; empty where the study did
    /// not have it.
    #[serde(default)]
    published: Vec<[f64; 3]>,
}
