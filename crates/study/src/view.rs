//! A published study beside what came of it here. Everything shown is computed anew from the record's raw samples.
//! Here is what the views of all studies share: parts by name, figures of cases, tables in the making.

use model::{CaseRecord, NoiseLevel, StudyPart, StudyRecord};

use report::ABSENT;
use report::figure::{Axis, Bar, Cell, Point, Scale, SeriesStyle, Unit};
use report::noise;
use report::numbers;
use report::page::{Block, Section};
use report::study::StudyView;
use report::table::Table;
use report::words::machine;

use crate::registry::{Head, Name, head};
use crate::{bradford, comp517, kernel_pipe, stover};

/// A part, where the record has it.
pub(crate) fn part<'a>(record: &'a StudyRecord, name: &str) -> Option<&'a StudyPart> {
    record.parts.iter().find(|part| part.name == name)
}

/// A section of a part: what was set, what should be known, and its blocks.
pub(crate) fn section(part: &StudyPart, title: &str, lead: Vec<String>, blocks: Vec<Block>) -> Section {
    let mut lead = lead;
    let settings: Vec<String> = part.settings.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    if !settings.is_empty() {
        lead.push(format!("{} of each case; {}.", times(part.series), settings.join("; ")));
    }
    if !part.complete {
        lead.push("Interrupted: what stands here is what was finished.".to_owned());
    }
    let mut blocks = blocks;
    let measured = part.cases.iter().filter_map(|case| case.noise);
    let compared = part.results.iter().filter_map(|result| noise::level(&result.times_s));
    let levels: Vec<NoiseLevel> = measured.chain(compared).collect();
    let remarks = part.remarks.iter().cloned().chain(noise::legend_of(levels.into_iter()));
    let remarks: Vec<String> = remarks.collect();
    if !remarks.is_empty() {
        blocks.push(Block::Remarks(remarks));
    }
    Section { id: id(&part.name), title: title.to_owned(), lead, code: None, blocks }
}

fn times(series: u32) -> String {
    if series == 1 { "1 run".to_owned() } else { format!("{series} runs") }
}

/// The closing section.
pub(crate) fn closing(paragraphs: Vec<String>) -> Section {
    Section {
        id: "what-changed".to_owned(),
        title: "What changed".to_owned(),
        lead: paragraphs,
        code: None,
        blocks: Vec::new(),
    }
}

/// A text as part of a link.
pub(crate) fn id(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    letters.collect()
}

/// Years from the study to the run.
pub(crate) fn years_since(year: u32, record: &StudyRecord) -> u32 {
    let now: u32 = record.started.get(..4).and_then(|text| text.parse().ok()).unwrap_or(year);
    now.saturating_sub(year)
}

/// Median throughput of a case.
pub(crate) fn median(case: &CaseRecord) -> Option<f64> {
    case.throughput.as_ref().map(|throughput| throughput.median_bytes_per_s)
}

/// The case of this spec, tasks apart.
pub(crate) fn case_of<'a>(
    part: &'a StudyPart,
    is: impl Fn(&CaseRecord) -> bool + 'a,
) -> Option<&'a CaseRecord> {
    part.cases.iter().find(move |case| is(case))
}

/// Throughput as text, or why there is none.
pub(crate) fn speed(case: Option<&CaseRecord>) -> String {
    let Some(case) = case else { return ABSENT.to_owned() };
    match (median(case), &case.error) {
        (Some(median), _) => format!("{}{}", numbers::throughput(median), noise::mark(case.noise)),
        (None, Some(error)) => error.message.clone(),
        (None, None) => ABSENT.to_owned(),
    }
}

/// The half width of a case's interval as text.
pub(crate) fn spread(case: &CaseRecord) -> String {
    let throughput = case.throughput.as_ref();
    let share = throughput
        .and_then(|one| stats::estimate::relative_half_width(one.median_bytes_per_s, one.low, one.high));
    share
        .filter(|_| case.samples.len() > 1)
        .map(|share| half_width(share, case.samples.len()))
        .unwrap_or_default()
}

/// The half width of an interval of so many trials: with too few it is their range, and called so.
pub(crate) fn half_width(share: f64, trials: usize) -> String {
    let what = if noise::is_range(trials) { " (range)" } else { "" };
    format!("{}{what}", numbers::percent(share))
}

/// A point of a line: a case over its block size.
pub(crate) fn point(case: &CaseRecord) -> Option<Point> {
    let throughput = case.throughput.as_ref()?;
    Some(Point {
        x: case.block_bytes as f64,
        y: throughput.median_bytes_per_s,
        low: Some(throughput.low),
        high: Some(throughput.high),
        n: u32::try_from(case.samples.len()).ok(),
    })
}

/// A bar of a case's throughput.
pub(crate) fn bar(name: &str, case: &CaseRecord) -> Bar {
    let found = case.throughput.as_ref().map(|one| [one.median_bytes_per_s, one.low, one.high]);
    let note = case.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    let samples = case.samples.iter().filter_map(stats::figure::throughput_bytes_per_s).collect();
    let cell = Cell::of(found, case.samples.len(), note);
    Bar { name: name.to_owned(), style: SeriesStyle::Measured, cell, samples }
}

/// A bar of a published figure.
pub(crate) fn published_bar(name: &str, value: Option<f64>, note: &str) -> Bar {
    let cell = Cell { value, note: note.to_owned(), ..Cell::default() };
    Bar { name: name.to_owned(), style: SeriesStyle::Published, cell, samples: Vec::new() }
}

/// An axis of bytes per second.
pub(crate) fn speed_axis(scale: Scale) -> Axis {
    Axis { label: "throughput".to_owned(), unit: Unit::BytesPerS, scale }
}

/// An axis of block sizes.
pub(crate) fn block_axis() -> Axis {
    Axis { label: "block size".to_owned(), unit: Unit::Bytes, scale: Scale::Log }
}

/// A table with these headings.
pub(crate) fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table::new(caption, columns.iter().copied(), rows)
}

/// A figure that may not be there.
pub(crate) fn or_absent(text: Option<String>) -> String {
    text.unwrap_or_else(|| ABSENT.to_owned())
}

/// Computes every summary of a record anew from its raw samples.
pub fn summarise(record: &mut StudyRecord) {
    for part in &mut record.parts {
        for case in &mut part.cases {
            // A damaged histogram leaves its case without a summary; streams have none.
            let _ = stats::summarise(case, stats::Looks::Once);
        }
        stats::summarise_times(&mut part.results);
    }
}

/// What is to be shown of a record; nothing but the lead where its study is unknown.
pub fn view(record: &StudyRecord) -> StudyView {
    let mut record = record.clone();
    summarise(&mut record);
    let Ok(name) = record.study.parse::<Name>() else { return StudyView::unknown(&record) };
    let sections = match name {
        Name::Bradford => bradford::view::sections(&record),
        Name::Comp517 => comp517::view::sections(&record),
        Name::KernelPipe => kernel_pipe::view::sections(&record),
        Name::Stover => stover::view::sections(&record),
    };
    let study = head(name);
    StudyView { title: study.title.clone(), lead: lead(&study, &record), sections }
}

fn lead(study: &Head, record: &StudyRecord) -> Vec<String> {
    let mut lead = vec![
        record.host.kernel.clone(),
        format!("{}, {}. {}", study.authors, study.published, study.question),
        format!("Here: {}; {}.", machine(&record.host), scale(record.scale)),
    ];
    if record.interrupted {
        lead.push("Interrupted: what stands here is what was finished.".to_owned());
    }
    lead
}

/// How much of the study was run, in words.
fn scale(scale: f64) -> String {
    if scale == 1.0 {
        "run at the study's own size".to_owned()
    } else {
        format!(
            "run at {scale} of the study's size (--scale {scale}): amounts are that much of the study's, and there are \
             fewer repetitions"
        )
    }
}
