//! `stover`: his table with a third host in it, and the table of mechanisms in place of his essay.

use super::{PublishedHost, Stover, stover};
use model::{Measure, MechanismFacts, StudyPart, StudyRecord};

use crate::view::{closing, or_absent, part, published_bar, section, table, years_since};
use report::figure::{Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Scale, SeriesStyle, Unit};
use report::numbers::{fixed, ratio};
use report::page::{Block, Section};
use report::table::Table;

/// Below this scale a trial is so short that starting two programs is what it measures.
const STARTS_SHOW: f64 = 0.05;

pub(crate) fn sections(record: &StudyRecord) -> Vec<Section> {
    let study = stover();
    let mut sections = Vec::new();
    sections.extend(part(record, "columns").map(|columns| columns_section(&study, record, columns)));
    sections.extend(part(record, "mechanisms").map(|facts| mechanisms_section(&study, facts)));
    sections.push(closing(what_changed(&study, record)));
    sections
}

fn columns_section(study: &Stover, record: &StudyRecord, part: &StudyPart) -> Section {
    let lead = vec![
        "Seconds, test by test, as in his table. Message queue and Unix socket are programs of their own; the other \
         columns are `hosepipe gen` and `hosepipe sink`, which know nothing but standard input and output. Into a pipe \
         our generator hands pages over by reference, where his wrote them."
            .to_owned(),
    ];
    let blocks = vec![Block::Table(columns_table(study, record, part)), Block::Figure(figure(study, part))];
    section(part, "Six ways", lead, blocks)
}

fn measure<'a>(part: &'a StudyPart, name: &str) -> Option<&'a Measure> {
    part.measures.iter().find(|measure| measure.name == name)
}

fn columns_table(study: &Stover, record: &StudyRecord, part: &StudyPart) -> Table {
    let mut rows = Vec::new();
    for host in &study.hosts {
        let row = |test: &Vec<f64>| cells(&host.name, test.iter().map(|seconds| Some(format!("{seconds}"))));
        rows.extend(host.tests.iter().map(row));
    }
    rows.push(cells("sum, published", study.printed.sums.iter().map(|sum| Some(format!("{sum}")))));
    rows.push(cells("relative, published", study.printed.relative.iter().cloned().map(Some)));
    let here: Vec<Option<&Measure>> =
        study.columns.iter().map(|column| measure(part, &column.name)).collect();
    let tests = here.iter().flatten().map(|measure| measure.samples.len()).max().unwrap_or(0);
    let kernel = format!("here, {}", record.host.kernel);
    for test in 0..tests {
        let second = |measure: &Option<&Measure>| Some(fixed(*measure.as_ref()?.samples.get(test)?, 3));
        rows.push(cells(&kernel, here.iter().map(second)));
    }
    let sums: Vec<Option<f64>> = here.iter().map(|measure| sum(*measure, tests)).collect();
    let slowest = sums.iter().flatten().copied().fold(0.0, f64::max);
    rows.push(cells("sum, here", sums.iter().map(|sum| sum.map(|sum| fixed(sum, 3)))));
    let truncated = |sum: &Option<f64>| sum.map(|sum| fixed((slowest / sum * 100.0).floor() / 100.0, 2));
    rows.push(cells("relative, truncated as his", sums.iter().map(truncated)));
    rows.push(cells("relative, rounded", sums.iter().map(|sum| sum.map(|sum| fixed(slowest / sum, 2)))));
    let rounded = |measure: &Option<&Measure>| measure.as_ref().and_then(|one| one.error.clone());
    if here.iter().any(|measure| rounded(measure).is_some()) {
        rows.push(cells("why not", here.iter().map(|measure| Some(rounded(measure).unwrap_or_default()))));
    }
    let columns = [vec!["host"], study.columns.iter().map(|column| column.name.as_str()).collect()].concat();
    table("Seconds, published and here; relative: the slowest sum by the sum", &columns, rows)
}

/// The sum of a column in which no test is missing: others would be too small.
fn sum(measure: Option<&Measure>, tests: usize) -> Option<f64> {
    let samples = &measure?.samples;
    (tests > 0 && samples.len() == tests).then(|| samples.iter().sum())
}

fn cells(first: &str, others: impl Iterator<Item = Option<String>>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(others.map(or_absent)).collect()
}

/// Times as multiples of each host's own pipe: seconds of 2002 and of today do not fit one axis.
fn figure(study: &Stover, part: &StudyPart) -> Figure {
    let pipe = study.columns.iter().position(|column| column.name == "pipe").unwrap_or(0);
    let mean = |host: &PublishedHost, column: usize| {
        host.tests.iter().map(|test| test[column]).sum::<f64>() / host.tests.len() as f64
    };
    let group = |(index, name): (usize, &str)| {
        let mut bars: Vec<Bar> = study
            .hosts
            .iter()
            .map(|host| published_bar(&host.name, Some(mean(host, index) / mean(host, pipe)), &host.machine))
            .collect();
        bars.extend(here_bar(part, name));
        BarGroup { name: name.to_owned(), bars }
    };
    let names = study.columns.iter().map(|column| column.name.as_str()).enumerate();
    Figure {
        id: "stover-columns".to_owned(),
        title: "Six ways, as multiples of the pipe".to_owned(),
        caption: "Time of each host by that of its own pipe; shorter is better.".to_owned(),
        chart: Chart::Bars(Bars {
            axis: Axis { label: "time, × pipe".to_owned(), unit: Unit::Ratio, scale: Scale::Linear },
            groups: names.map(group).collect(),
            references: Vec::new(),
        }),
    }
}

fn here_bar(part: &StudyPart, name: &str) -> Option<Bar> {
    let pipe = stats::estimate::median(&measure(part, "pipe")?.samples)?;
    let samples: Vec<f64> = measure(part, name)?.samples.iter().map(|seconds| seconds / pipe).collect();
    let estimate = stats::Estimate::of(&samples)?;
    let found = Some([estimate.median, estimate.low, estimate.high]);
    let cell = Cell::of(found, estimate.count, String::new());
    Some(Bar { name: "here".to_owned(), style: SeriesStyle::Measured, cell, samples })
}

fn mechanisms_section(study: &Stover, part: &StudyPart) -> Section {
    let yes = |is: bool| if is { "yes" } else { "" }.to_owned();
    let message = |facts: &MechanismFacts| match (facts.keeps_boundaries, facts.largest_message.as_str()) {
        (false, _) => "a stream".to_owned(),
        (true, "") => or_absent(None),
        (true, limit) => limit.to_owned(),
    };
    let row = |facts: &MechanismFacts| {
        vec![
            facts.name.clone(),
            yes(facts.filters),
            yes(facts.keeps_boundaries),
            yes(facts.stores_data),
            yes(facts.crosses_hosts),
            yes(facts.needs_cleanup),
            message(facts),
            facts.lines.to_string(),
            facts.lines_with_borrowed.to_string(),
        ]
    };
    let columns = [
        "mechanism",
        "filters",
        "keeps messages",
        "stores",
        "crosses hosts",
        "clean-up",
        "largest message",
        "lines",
        "with shared",
    ];
    let table = table("What each mechanism is good for", &columns, part.mechanisms.iter().map(row).collect());
    let hours: Vec<String> =
        study.printed.development.iter().map(|(what, time)| format!("{what} {time}")).collect();
    let lead = vec![format!(
        "He counted hours of development ({}) and levels of reuse. Hours cannot be repeated; this can: whether programs \
         that know only standard input and output can use a mechanism unmodified, what it does with messages, what it \
         leaves behind, and how many lines of code our own implementation takes, counted by the build: without blank \
         lines, comments and tests, alone and with the files of the registry that it shares with others.",
        hours.join(", ")
    )];
    section(part, "What each mechanism is good for", lead, vec![Block::Table(table)])
}

fn what_changed(study: &Stover, record: &StudyRecord) -> Vec<String> {
    let Some(part) = part(record, "columns") else { return Vec::new() };
    let median = |name: &str| stats::estimate::median(&measure(part, name)?.samples);
    let Some(pipe) = median("pipe") else { return Vec::new() };
    let palsy = &study.hosts[0];
    let column = study.columns.iter().position(|column| column.name == "pipe").unwrap_or(0);
    let then = palsy.tests.iter().map(|test| test[column]).sum::<f64>() / palsy.tests.len() as f64;
    let years = years_since(study.study.year, record);
    let mut text = format!(
        "{years} years ago, on {}, a pipe between two programs took little more time than writing to /dev/null: the \
         generator took nearly all of it. Only the file stood out, because its 512 MB had to go to a disk.",
        palsy.name
    );
    let (speed_then, speed_now) = (study.bytes() as f64 / then, record.scale * study.bytes() as f64 / pipe);
    if record.scale < STARTS_SHOW {
        text.push_str(" At this scale the starts of the programs are most of the time, and nothing follows from the rest.");
        return vec![text];
    }
    text.push_str(&format!(
        " The same pipe moves {} times as much per second here: processors are faster, and the generator no longer \
         computes its characters one by one. So the ways now show:",
        ratio(speed_now / speed_then)
    ));
    let others: Vec<String> = ["msgq", "tmp file", "unix socket"]
        .into_iter()
        .filter_map(|name| {
            Some(format!(" {name} takes {} times the pipe's time", ratio(median(name)? / pipe)))
        })
        .collect();
    text.push_str(&others.join(","));
    text.push_str(
        ". The file's handicap is no longer a disk's: it is written into memory, and gone before a disk sees it. His \
         argument stands: one pair of filters serves four of the six columns, and everything else that a shell can \
         put between them.",
    );
    vec![text]
}
