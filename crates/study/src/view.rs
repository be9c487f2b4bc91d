//! How a study is shown: what was published beside what came of it here. Everything is computed anew from the record's
//! raw samples. Here is what the views of all studies share; each study's own lists its sections.

use model::{CaseRecord, NoiseLevel, StudyPart, StudyRecord};
use report::document::{Block, Section};
use report::figure::{
    Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Lines, Point, Scale, Series, SeriesStyle, Unit,
};
use report::study::StudyView;
use report::words::machine;
use report::{ABSENT, noise, numbers};

use crate::{File, Head, Part, Study};

/// What is shown of a part of a record.
pub(crate) type Show = fn(&StudyRecord, &StudyPart) -> Vec<Block>;

const INTERRUPTED: &str = "Interrupted: what stands here is what was finished.";

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
    let Some(study) = Study::named(&record.study) else { return StudyView::unknown(&record) };
    let File { study: head, parts } = study.parameters();
    let of_part = |(name, show): &(&str, Show)| {
        let part = part(&record, name)?;
        Some(section(parts.iter().find(|part| part.name == *name)?, part, show(&record, part)))
    };
    let mut sections: Vec<Section> = study.shows.iter().filter_map(of_part).collect();
    sections.extend(study.elsewhere.and_then(|elsewhere| elsewhere(&record)));
    let now: u32 = record.started.get(..4).and_then(|text| text.parse().ok()).unwrap_or(head.year);
    sections.push(Section {
        id: "what-changed".to_owned(),
        title: "What changed".to_owned(),
        lead: (study.what_changed)(&record, now.saturating_sub(head.year)),
        code: None,
        blocks: Vec::new(),
    });
    StudyView { title: head.title.clone(), lead: lead(&head, &record), sections }
}

fn lead(head: &Head, record: &StudyRecord) -> Vec<String> {
    let scale = match record.scale {
        1.0 => "run at the study's own size".to_owned(),
        scale => format!(
            "run at {scale} of the study's size (--scale {scale}): amounts are that much of the study's, and there are \
             fewer repetitions"
        ),
    };
    let mut lead = vec![
        record.host.kernel.clone(),
        format!("{}, {}. {}", head.authors, head.published, head.question),
        format!("Here: {}; {scale}.", machine(&record.host)),
    ];
    lead.extend(record.interrupted.then(|| INTERRUPTED.to_owned()));
    lead
}

/// A part, where the record has it.
pub(crate) fn part<'a>(record: &'a StudyRecord, name: &str) -> Option<&'a StudyPart> {
    record.parts.iter().find(|part| part.name == name)
}

/// A section of a part: what is to be said of it, what was set, its blocks, and what should be known.
fn section(of: &Part, part: &StudyPart, mut blocks: Vec<Block>) -> Section {
    let mut lead = vec![of.lead.clone()];
    let settings: Vec<String> = part.settings.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    if !settings.is_empty() {
        let runs = if part.series == 1 { "1 run".to_owned() } else { format!("{} runs", part.series) };
        lead.push(format!("{runs} of each case; {}.", settings.join("; ")));
    }
    lead.extend((!part.complete).then(|| INTERRUPTED.to_owned()));
    let measured = part.cases.iter().filter_map(|case| case.noise);
    let compared = part.results.iter().filter_map(|result| noise::level(&result.times_s));
    let levels: Vec<NoiseLevel> = measured.chain(compared).collect();
    let remarks = part.remarks.iter().cloned().chain(noise::legend_of(levels.into_iter()));
    blocks.extend(self::remarks(remarks.collect()));
    let id = part.name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    Section { id, title: of.heading.clone(), lead, code: of.is_command.then(|| of.heading.clone()), blocks }
}

/// Remarks, where there are any.
pub(crate) fn remarks(remarks: Vec<String>) -> Option<Block> {
    (!remarks.is_empty()).then_some(Block::Remarks(remarks))
}

/// A column of a table: its heading, and its cell of each row.
pub(crate) type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

/// A table with a row of each of `rows`.
pub(crate) fn table<R>(caption: &str, rows: impl IntoIterator<Item = R>, columns: &[Column<'_, R>]) -> Block {
    let texts = rows.into_iter().map(|row| columns.iter().map(|(_, cell)| cell(&row)).collect());
    text_table(caption, columns.iter().map(|(heading, _)| *heading), texts.collect())
}

/// A table of texts.
pub(crate) fn text_table<'a>(
    caption: &str,
    columns: impl Iterator<Item = &'a str>,
    rows: Vec<Vec<String>>,
) -> Block {
    Block::Table(report::Table::new(caption, columns, rows))
}

/// Bars in groups.
pub(crate) fn bars(id: &str, title: &str, caption: &str, axis: Axis, groups: Vec<BarGroup>) -> Block {
    figure(id, title, caption, Chart::Bars(Bars { axis, groups, references: Vec::new() }))
}

/// Throughputs over block sizes.
pub(crate) fn lines(id: &str, title: &str, caption: &str, series: Vec<Series>) -> Block {
    let x_axis = Axis { label: "block size".to_owned(), unit: Unit::Bytes, scale: Scale::Log };
    figure(id, title, caption, Chart::Lines(Lines { x_axis, y_axis: speed_axis(Scale::Log), series }))
}

fn figure(id: &str, title: &str, caption: &str, chart: Chart) -> Block {
    let (id, title, caption) = (id.to_owned(), title.to_owned(), caption.to_owned());
    Block::Figure(Figure { id, title, caption, chart })
}

/// An axis of bytes per second.
pub(crate) fn speed_axis(scale: Scale) -> Axis {
    Axis { label: "throughput".to_owned(), unit: Unit::BytesPerS, scale }
}

/// Median throughput of a case, in bytes per second.
pub(crate) fn median(case: &CaseRecord) -> Option<f64> {
    case.throughput.as_ref().map(|throughput| throughput.median_bytes_per_s)
}

/// Median throughput as text, or why there is none.
pub(crate) fn speed(case: Option<&CaseRecord>) -> String {
    let Some(case) = case else { return ABSENT.to_owned() };
    match &case.error {
        Some(error) if median(case).is_none() => error.message.clone(),
        _ => marked_speed(case),
    }
}

/// Median throughput as text, marked where it is noisy.
pub(crate) fn marked_speed(case: &CaseRecord) -> String {
    or_absent(
        median(case).map(|median| format!("{}{}", numbers::throughput(median), noise::mark(case.noise))),
    )
}

/// The half width of a case's interval as text.
pub(crate) fn spread(case: Option<&CaseRecord>) -> String {
    let share = |case: &CaseRecord| {
        let one = case.throughput.as_ref()?;
        let share = stats::estimate::relative_half_width(one.median_bytes_per_s, one.low, one.high)?;
        (case.samples.len() > 1).then(|| half_width(share, case.samples.len()))
    };
    case.and_then(share).unwrap_or_default()
}

/// The half width of an interval of so many trials: with too few it is their range, and called so.
pub(crate) fn half_width(share: f64, trials: usize) -> String {
    let what = if noise::is_range(trials) { " (range)" } else { "" };
    format!("{}{what}", numbers::percent(share))
}

/// A case as a multiple of a throughput.
pub(crate) fn times(case: Option<&CaseRecord>, other_bytes_per_s: Option<f64>) -> String {
    let both = case.and_then(median).zip(other_bytes_per_s);
    both.map(|(one, other)| numbers::ratio(one / other)).unwrap_or_default()
}

/// A line of cases over their block sizes.
pub(crate) fn line<'a>(name: &str, cases: impl IntoIterator<Item = &'a CaseRecord>) -> Series {
    let point = |case: &CaseRecord| {
        let throughput = case.throughput.as_ref()?;
        Some(Point {
            x: case.block_bytes as f64,
            y: throughput.median_bytes_per_s,
            low: Some(throughput.low),
            high: Some(throughput.high),
            n: u32::try_from(case.samples.len()).ok(),
        })
    };
    let points = cases.into_iter().filter_map(point).collect();
    Series { name: name.to_owned(), style: SeriesStyle::Measured, points, model: Vec::new() }
}

/// A bar of what was measured: its median with its interval, and the samples that it was made of.
pub(crate) fn measured_bar(
    name: &str,
    found: Option<[f64; 3]>,
    samples: Vec<f64>,
    error: Option<&str>,
) -> Bar {
    let cell = Cell::new(found, samples.len(), error.unwrap_or_default().to_owned());
    Bar { name: name.to_owned(), style: SeriesStyle::Measured, cell, samples }
}

/// A bar of a case's throughput.
pub(crate) fn bar(name: &str, case: &CaseRecord) -> Bar {
    let found = case.throughput.as_ref().map(|one| [one.median_bytes_per_s, one.low, one.high]);
    let samples = case.samples.iter().filter_map(stats::figure::throughput_bytes_per_s).collect();
    measured_bar(name, found, samples, case.error.as_ref().map(|error| error.message.as_str()))
}

/// A bar of a published figure.
pub(crate) fn published_bar(name: &str, value: Option<f64>, note: &str) -> Bar {
    let cell = Cell { value, note: note.to_owned(), ..Cell::default() };
    Bar { name: name.to_owned(), style: SeriesStyle::Published, cell, samples: Vec::new() }
}

/// A figure that may not be there.
pub(crate) fn or_absent(text: Option<String>) -> String {
    text.unwrap_or_else(|| ABSENT.to_owned())
}
