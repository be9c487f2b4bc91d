//! `stover`: shows the published table with this machine as a third host, and a table of mechanisms in place of the study's essay.

use model::{Measure, MechanismFacts, StudyPart, StudyRecord};
use report::chart::{Bar, BarGroup, ChartAxis, Scale, Unit};
use report::document::Block;
use report::numbers::{fixed, ratio};
use report::sheet::col;
use report::{ABSENT, Table};
use stats::estimate::median;

use super::{STUDY, Stover};
use crate::start::{is_work, short_texts};
use crate::view::{PartView, Texts, absent, measure, measured_bar, part, published_bar, texts};

pub(super) fn columns(view: &PartView<'_>) -> Vec<Block> {
    let study: Stover = STUDY.parameters();
    vec![seconds(&study, view.record, view.part), chart(&study, view)]
}

fn seconds(study: &Stover, record: &StudyRecord, part: &StudyPart) -> Block {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |name: &str, cells: &mut dyn Iterator<Item = Option<String>>| {
        let cells = cells.map(|cell| cell.unwrap_or_else(|| ABSENT.to_owned()));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    for host in &study.hosts {
        for test in &host.tests {
            add(&host.name, &mut test.iter().map(|seconds| Some(seconds.to_string())));
        }
    }
    add("sum, published", &mut study.printed.sums.iter().map(|sum| Some(sum.to_string())));
    add("relative, published", &mut study.printed.relative.iter().cloned().map(Some));

    let here: Vec<Option<&Measure>> = study.ways.iter().map(|way| measure(part, &way.name)).collect();
    let tests = here.iter().flatten().map(|measure| measure.samples.len()).max().unwrap_or(0);
    let kernel = format!("here, {}", record.head.host.kernel);
    for test in 0..tests {
        let seconds = |one: &Option<&Measure>| Some(fixed(*one.as_ref()?.samples.get(test)?, 3));
        add(&kernel, &mut here.iter().map(seconds));
    }
    // The sum of a column in which a test is missing would be too small.
    let sum = |one: &Option<&Measure>| {
        let samples = &one.as_ref()?.samples;
        (tests > 0 && samples.len() == tests).then(|| samples.iter().sum::<f64>())
    };
    let sums: Vec<Option<f64>> = here.iter().map(sum).collect();
    let slowest = sums.iter().flatten().copied().fold(0.0, f64::max);
    add("sum, here", &mut sums.iter().map(|sum| sum.map(|sum| fixed(sum, 3))));
    let truncated = |sum: f64| fixed((slowest / sum * 100.0).floor() / 100.0, 2);
    add("relative, truncated", &mut sums.iter().map(|sum| sum.map(truncated)));
    add("relative, rounded", &mut sums.iter().map(|sum| sum.map(|sum| fixed(slowest / sum, 2))));
    let errors: Vec<Option<&String>> = here.iter().map(|one| one.as_ref()?.error.as_ref()).collect();
    if errors.iter().any(Option::is_some) {
        add("why not", &mut errors.iter().map(|error| Some(error.cloned().unwrap_or_default())));
    }
    let headings = std::iter::once(col("host")).chain(study.ways.iter().map(|way| col(&way.name).right()));
    let caption = "Seconds, published and here; relative: the slowest sum divided by the column's sum";
    Block::Table(Table::new(caption, headings, rows))
}

/// Times as multiples of each host's pipe, because seconds of 2002 and of today do not fit on one axis.
fn chart(study: &Stover, view: &PartView<'_>) -> Block {
    let pipe = study.column("pipe");
    let group = |(index, name): (usize, &String)| {
        let published = study
            .hosts
            .iter()
            .map(|host| published_bar(&host.name, Some(host.mean(index) / host.mean(pipe)), &host.machine));
        let bars = published.chain(here_bar(view.part, name)).collect();
        BarGroup { name: name.clone(), bars }
    };
    view.bars(
        ChartAxis { label: "time, × pipe".to_owned(), unit: Unit::Ratio, scale: Scale::Linear },
        study.ways.iter().map(|way| &way.name).enumerate().map(group).collect(),
    )
}

fn here_bar(part: &StudyPart, name: &str) -> Option<Bar> {
    let pipe = median(&measure(part, "pipe")?.samples)?;
    let samples: Vec<f64> = measure(part, name)?.samples.iter().map(|seconds| seconds / pipe).collect();
    (!samples.is_empty()).then(|| measured_bar("here", samples, None))
}

pub(super) fn mechanisms(view: &PartView<'_>) -> Vec<Block> {
    let yes = |is: bool| is.then(|| "yes".to_owned());
    let row = |one: &MechanismFacts| {
        let largest = match (one.keeps_boundaries, one.largest_message.as_str()) {
            (false, _) => Some("a stream".to_owned()),
            (true, "") => absent(),
            (true, limit) => Some(limit.to_owned()),
        };
        texts([
            ("mechanism", Some(one.name.clone())),
            ("filters", yes(one.filters)),
            ("messages", yes(one.keeps_boundaries)),
            ("stores", yes(one.stores_data)),
            ("hosts", yes(one.crosses_hosts)),
            ("cleanup", yes(one.needs_cleanup)),
            ("largest", largest),
            ("lines", Some(one.lines.to_string())),
            ("shared", Some(one.lines_with_borrowed.to_string())),
        ])
    };
    vec![view.table(view.part.mechanisms.iter().map(row).collect())]
}

pub(super) fn facts_of(record: &StudyRecord) -> Texts {
    let study: Stover = STUDY.parameters();
    let palsy = &study.hosts[0];
    let Some(columns) = part(record, "columns") else { return Texts::new() };
    let median_s = |name: &str| median(&measure(columns, name)?.samples);
    let work_s = |name: &str| median_s(name).filter(|time_s| is_work(record, columns, name, *time_s));
    let pipe_s = work_s("pipe");
    let faster = pipe_s.map(|pipe_s| ratio(record.scale * palsy.mean(study.column("pipe")) / pipe_s));
    let others = ["msgq", "tmp file", "unix socket"].into_iter().filter_map(|name| {
        Some(format!(" {name} takes {} times the pipe's time", ratio(work_s(name)? / pipe_s?)))
    });
    let others: Vec<String> = others.collect();
    let short = median_s("pipe").filter(|_| pipe_s.is_none());
    let short_facts = short.map(|time_s| short_texts(columns, "pipe", time_s)).unwrap_or_default();
    let known = texts([
        ("host", median_s("pipe").map(|_| palsy.name.clone())),
        ("times as fast", faster),
        ("others", (!others.is_empty()).then(|| others.join(","))),
    ]);
    known.into_iter().chain(short_facts).collect()
}
