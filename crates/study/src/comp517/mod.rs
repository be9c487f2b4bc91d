//! `comp517`: four pipelines over pipes made of files and sockets, and their input.

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

/// A link between the stages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    /// The study's name for it, or our name for a link that the study did not have.
    name: String,
    /// The spec of the same link in hosepipe.
    via: String,
    /// For each part. Empty for a link that the study did not have.
    #[serde(default)]
    published: Vec<PublishedTime>,
}

/// In `study.toml` a list: mean, standard deviation, stored.
#[derive(Deserialize)]
struct PublishedTime {
    mean_s: f64,
    sd_s: f64,
    /// In 10^6 bytes.
    stored_mb: f64,
}
