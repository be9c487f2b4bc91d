//! `kernel-pipe`: languages beside the published ones; the study's beliefs about pipes follow in `beliefs`.

use super::{KernelPipe, PublishedLanguage, kernel_pipe};
use model::{CaseRecord, StudyPart, StudyRecord};

use super::beliefs;
use crate::view::{bar, closing, median, or_absent, part, published_bar, section, speed_axis, table};
use report::figure::{BarGroup, Bars, Chart, Figure, Scale};
use report::numbers::{ratio, throughput, time};
use report::page::{Block, Section};
use report::table::Table;

pub(crate) fn sections(record: &StudyRecord) -> Vec<Section> {
    let study = kernel_pipe();
    let mut sections = Vec::new();
    sections.extend(part(record, "languages").map(|languages| languages_section(&study, languages)));
    sections.extend(beliefs::sections(&study, record));
    sections.push(closing(what_changed(&study, record)));
    sections
}

/// A language's name in a record.
fn language(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.language.as_str())
}

fn variant(case: &CaseRecord) -> &str {
    case.worker.as_ref().map_or("", |worker| worker.writer.variant.as_str())
}

fn languages_section(study: &KernelPipe, languages: &StudyPart) -> Section {
    let lead = vec![
        "A parent sends the bytes 0 to 255, over and over, through one pipe to the child that it started; the child's XOR \
         of all bytes must be the parent's. The study moved 10 GB and tells a mean time; where the scale is not 1, only \
         the bandwidth can be compared. Its own figures do not quite fit each other: its 163,840 calls of 64 KB are \
         10 GiB, its bandwidth is that of 10^10 bytes."
            .to_owned(),
    ];
    let blocks =
        vec![Block::Table(languages_table(study, languages)), Block::Figure(figure(study, languages))];
    section(languages, "The workload, language by language", lead, blocks)
}

fn languages_table(study: &KernelPipe, languages: &StudyPart) -> Table {
    let c = languages.cases.iter().find(|case| language(case) == "C").and_then(median);
    let mut rows = Vec::new();
    for published in &study.published {
        let here: Vec<&CaseRecord> =
            languages.cases.iter().filter(|case| language(case) == published.language).collect();
        if here.is_empty() {
            rows.push(row(Some(published), None, c));
        }
        for (index, case) in here.into_iter().enumerate() {
            rows.push(row(Some(published).filter(|_| index == 0), Some(case), c));
        }
    }
    let known = |case: &&CaseRecord| study.published.iter().any(|one| one.language == language(case));
    rows.extend(languages.cases.iter().filter(|case| !known(case)).map(|case| row(None, Some(case), c)));
    let columns =
        ["language", "published mean", "published", "way here", "here mean", "here", "× C", "or why not"];
    table("Published, and here", &columns, rows)
}

fn row(published: Option<&PublishedLanguage>, here: Option<&CaseRecord>, c: Option<f64>) -> Vec<String> {
    let name = here.map(language).or(published.map(|one| one.language.as_str())).unwrap_or_default();
    let mean_ms = published.and_then(|one| one.mean_ms).map(|ms| format!("{ms} ms"));
    let bandwidth = published.and_then(|one| one.gb_per_s).map(|gb| format!("{gb:.2} GB/s"));
    let then = |text: Option<String>| match published {
        Some(_) => text.unwrap_or_else(|| "n/a".to_owned()),
        None => String::new(),
    };
    let mean_here = here.and_then(|case| {
        let times: Vec<f64> = case.samples.iter().map(|sample| sample.elapsed_ns as f64).collect();
        Some(stats::Estimate::of(&times)?.mean)
    });
    let now = here.and_then(median);
    let error = here.and_then(|case| case.error.as_ref()).map(|error| error.message.clone());
    vec![
        name.to_owned(),
        then(mean_ms),
        then(bandwidth),
        here.map(variant).unwrap_or_default().to_owned(),
        or_absent(mean_here.map(time)),
        or_absent(now.map(throughput)),
        now.zip(c).map(|(now, c)| ratio(now / c)).unwrap_or_default(),
        error.unwrap_or_default(),
    ]
}

fn figure(study: &KernelPipe, languages: &StudyPart) -> Figure {
    let mut groups: Vec<BarGroup> = study
        .published
        .iter()
        .map(|one| BarGroup {
            name: one.language.clone(),
            bars: vec![published_bar("published", one.gb_per_s.map(|gb| gb * 1e9), &one.how)],
        })
        .collect();
    for case in &languages.cases {
        let bar = bar(&format!("here, {}", variant(case)), case);
        match groups.iter_mut().find(|group| group.name == language(case)) {
            Some(group) => group.bars.push(bar),
            None => groups.push(BarGroup { name: language(case).to_owned(), bars: vec![bar] }),
        }
    }
    Figure {
        id: "kernel-pipe-languages".to_owned(),
        title: "One pipe, language by language".to_owned(),
        caption: "The median of the bandwidth with its interval; published: one mean.".to_owned(),
        chart: Chart::Bars(Bars { axis: speed_axis(Scale::Linear), groups, references: Vec::new() }),
    }
}

fn what_changed(study: &KernelPipe, record: &StudyRecord) -> Vec<String> {
    let mut text =
        "The study is of our own days, and nothing about a pipe has changed since; what differs is the \
                    machine."
            .to_owned();
    let best = part(record, "languages").map(|part| part.cases.as_slice()).unwrap_or_default();
    let speeds = |way: &'static str| {
        best.iter()
            .filter(move |case| variant(case) == way)
            .filter_map(|case| Some((median(case)?, language(case))))
    };
    let fastest = speeds("idiomatic").max_by(|a, b| a.0.total_cmp(&b.0));
    let slowest = speeds("idiomatic").min_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((high, fast)), Some((low, slow))) = (fastest, slowest) {
        let then: Vec<f64> = study.published.iter().filter_map(|one| one.gb_per_s).collect();
        let spread =
            then.iter().copied().fold(0.0, f64::max) / then.iter().copied().fold(f64::INFINITY, f64::min);
        text.push_str(&format!(
            " Written as their documentation teaches, {fast} moves {} and {slow} {}, a factor of {}; the study's languages \
             were a factor of {} apart.",
            throughput(high),
            throughput(low),
            ratio(high / low),
            ratio(spread)
        ));
    }
    text.push_str(
        " A language does not move bytes, the kernel does: what differs between languages is how many calls they make \
         of a block, how often they copy it on the way to the call, and how fast their loop over the bytes is, which \
         the XOR puts into every figure.",
    );
    vec![text, beliefs::summary(study, record)]
}
