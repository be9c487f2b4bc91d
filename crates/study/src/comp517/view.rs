//! `comp517`: shows each pipeline's published and new figures as a table and as bars.

use model::{CompareResult, Spec, StudyPart, StudyRecord};
use report::chart::{BarGroup, ChartAxis, Scale, Unit};
use report::document::Block;
use report::interval;
use report::numbers::{decimal_size, ratio};
use stats::Estimate;

use super::{Comp517, Link, PublishedTime, STUDY};
use crate::start::{is_work, short_texts};
use crate::view::{PartView, Texts, absent, measured_bar, part, published_bar, remarks, texts};

/// Smallest multiple of another link's time from which conclusions are drawn.
const CLEARLY_SLOWER: f64 = 1.2;
/// The links of the conclusions, beside the true pipe.
const SEQUENTIAL: &str = "file:order=sequential";
const PARALLEL: &str = "file";
const SYNC: &str = "file:sync,order=sequential";

pub(super) fn pipeline(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let study: Comp517 = STUDY.parameters();
    // Published figures are in the order of the parts.
    let index = view.file.parts.iter().position(|of| of.name == part.name).unwrap_or_default();
    let mut notes = Vec::new();
    if varies(part) {
        notes.push(
            "The output differs between runs even over the true pipe (it shows process numbers, and `grep` finds \
             itself), so outputs cannot be compared."
                .to_owned(),
        );
    } else if sees_a_file(part) {
        notes.push(
            "Over the sequential files the last program reads from a file: `wc` then makes its columns as wide as the \
             file's size needs. The numbers are the same, but the spaces before them differ, so the outputs are not equal \
             byte by byte."
                .to_owned(),
        );
    }
    let shown = [table_of(&study, index, view), chart(&study, index, view)];
    remarks(notes).into_iter().chain(shown).collect()
}

/// Time as a multiple of the true pipe's: the quotient of the means, as the published one.
fn times_pipe(study: &Comp517, part: &StudyPart, via: &str) -> Option<f64> {
    let mean_s = |via: &str| result(part, via)?.mean_s;
    Some(mean_s(via)? / mean_s(&study.links.first()?.via)?)
}

/// The same for the published means.
fn published_times_pipe(study: &Comp517, index: usize, via: &str) -> Option<f64> {
    let mean_s = |link: &Link| Some(link.published.get(index)?.mean_s);
    Some(mean_s(study.links.iter().find(|link| link.via == via)?)? / mean_s(study.links.first()?)?)
}

/// Whether the output over the reference link differed between trials.
fn varies(part: &StudyPart) -> bool {
    part.results.first().is_some_and(differs)
}

/// Whether outputs differ over links that are files for the reader, and over no other links.
fn sees_a_file(part: &StudyPart) -> bool {
    let (files, others): (Vec<_>, Vec<_>) =
        part.results.iter().partition(|result| Spec::has_option(&result.via, "order", "sequential"));
    files.into_iter().any(differs) && !others.into_iter().any(differs)
}

fn differs(result: &CompareResult) -> bool {
    result.equal == Some(false)
}

fn result<'a>(part: &'a StudyPart, via: &str) -> Option<&'a CompareResult> {
    part.results.iter().find(|result| result.via == via)
}

fn table_of(study: &Comp517, index: usize, view: &PartView<'_>) -> Block {
    let part = view.part;
    let row = |link: &Link| {
        let (published, here) = (link.published.get(index), result(part, &link.via));
        let output = |result: &CompareResult| {
            let is_equal = result.equal?;
            let words = if is_equal { "same" } else { "DIFFERS" };
            Some(if varies(part) { "varies by itself" } else { words }.to_owned())
        };
        texts([
            ("link", Some(link.name.clone())),
            ("via", Some(link.via.clone())),
            ("published", published.map(|one| format!("{} ± {} s", one.mean_s, one.sd_s)).or(absent())),
            ("published ratio", published_times_pipe(study, index, &link.via).map(ratio).or(absent())),
            ("published stored", published.map(|one| format!("{} MB", one.stored_mb)).or(absent())),
            ("here", here.and_then(mean)),
            ("ratio", times_pipe(study, part, &link.via).map(ratio).or(absent())),
            ("stored", here.and_then(|one| one.stored_bytes).map(decimal_size).or(absent())),
            ("output", here.and_then(output)),
        ])
    };
    view.table(study.links.iter().map(row).collect())
}

fn mean(result: &CompareResult) -> Option<String> {
    let has_spread = result.times_s.len() >= interval::SPREAD_FROM;
    let spread = result.stddev_s.filter(|_| has_spread).map(|sd| format!(" ± {sd:.4}"));
    let mean = result.mean_s.map(|mean| format!("{mean:.4}{} s", spread.unwrap_or_default()));
    mean.or_else(|| result.error.clone()).or(absent())
}

fn chart(study: &Comp517, index: usize, view: &PartView<'_>) -> Block {
    let part = view.part;
    let group = |link: &Link| {
        let published = link.published.get(index).map(|PublishedTime { mean_s, sd_s, .. }| {
            let mut bar = published_bar("published", Some(*mean_s), "mean and standard deviation");
            (bar.cell.low, bar.cell.high) = (Some((mean_s - sd_s).max(0.0)), Some(mean_s + sd_s));
            bar
        });
        let here = result(part, &link.via)
            .map(|result| measured_bar("here", result.times_s.clone(), result.error.as_deref()));
        BarGroup { name: link.name.clone(), bars: published.into_iter().chain(here).collect() }
    };
    view.bars(
        ChartAxis { label: "wall time".to_owned(), unit: Unit::Seconds, scale: Scale::Log },
        study.links.iter().map(group).collect(),
    )
}

pub(super) fn facts_of(record: &StudyRecord) -> Texts {
    let study: Comp517 = STUDY.parameters();
    let Some(sort) = part(record, "sort") else { return Texts::new() };
    let mean_s = |via: &str| result(sort, via)?.mean_s;
    let mut vias = ["pipe", SEQUENTIAL, PARALLEL, SYNC].into_iter();
    let is_short = |via: &&str| mean_s(via).is_some_and(|mean_s| !is_work(record, sort, via, mean_s));
    if let Some((via, mean_s)) = vias.find(is_short).and_then(|via| Some((via, mean_s(via)?))) {
        let mut facts = short_texts(sort, via, mean_s);
        facts.insert("link".to_owned(), via.to_owned());
        return facts;
    }
    let time = |via: &str| times_pipe(&study, sort, via);
    let files = time(SEQUENTIAL).zip(time(PARALLEL));
    let sync = published_times_pipe(&study, 1, SYNC).zip(time(SYNC));
    texts([
        ("sequential", files.map(|(sequential, _)| ratio(sequential))),
        ("parallel", files.map(|(_, parallel)| ratio(parallel))),
        ("waiting shows", is_clearly_slower(sort, SEQUENTIAL, PARALLEL).then(String::new)),
        ("storing shows", is_clearly_slower(sort, PARALLEL, "pipe").then(String::new)),
        ("sync then", sync.map(|(then, _)| ratio(then))),
        ("sync", sync.map(|(_, now)| ratio(now))),
    ])
}

/// Whether a link takes clearly longer than another one: by the median of the rounds, and in more of them than by chance.
fn is_clearly_slower(part: &StudyPart, via: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (result(part, via), result(part, other)) else { return false };
    let rounds = one.times_s.iter().zip(&other.times_s).map(|(one_s, other_s)| one_s / other_s);
    let found = Estimate::of(&rounds.collect::<Vec<f64>>());
    found.is_some_and(|found| found.median > CLEARLY_SLOWER && found.low > 1.0)
}
