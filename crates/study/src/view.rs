//! How a study is shown: what was published beside what came of it here. Everything is computed anew from the record's
//! raw samples. Captions, columns and sentences come from `study.toml`; each study's own view has the cells and figures.

use std::collections::BTreeMap;

use model::{CaseRecord, NoiseLevel, StudyPart, StudyRecord};
use report::document::{Block, Section};
use report::figure::{
    Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Lines, Point, Scale, Series, SeriesStyle, Unit,
};
use report::study::StudyView;
use report::words::machine;
use report::{ABSENT, noise, numbers};

use crate::{FigureText, File, Head, Part, Sentence, Study, TableText};

/// What is shown of a part of a record.
pub(crate) type Show = fn(&PartView<'_>) -> Vec<Block>;

/// Figures by the names that sentences of `study.toml` have for them; only those that are known.
pub(crate) type Facts = BTreeMap<&'static str, String>;

/// A part of a record, with what its study says of it.
pub(crate) struct PartView<'a> {
    pub(crate) record: &'a StudyRecord,
    pub(crate) part: &'a StudyPart,
    pub(crate) file: &'a File,
    of: &'a Part,
}

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
    let file: File = study.parameters();
    let head = &file.study;
    let of_part = |name: &String| {
        let (part, of) = (part(&record, name)?, file.parts.iter().find(|of| of.name == *name)?);
        let (.., show) = study.parts.iter().find(|(known, ..)| known == name)?;
        Some(section(of, part, show(&PartView { record: &record, part, file: &file, of })))
    };
    let in_order: Vec<String> = file.parts.iter().map(|part| part.name.clone()).collect();
    let shown = if head.shown.is_empty() { &in_order } else { &head.shown };
    let mut sections: Vec<Section> = shown.iter().filter_map(of_part).collect();
    sections.extend(study.elsewhere.and_then(|elsewhere| elsewhere(&record, &file)));
    let now: u32 = record.head.started.get(..4).and_then(|text| text.parse().ok()).unwrap_or(head.year);
    let mut facts = (study.facts)(&record);
    facts.insert("years", now.saturating_sub(head.year).to_string());
    let paragraphs = file.paragraphs.iter().map(|one| {
        one.sentences.iter().filter_map(|sentence| sentence.with(&facts)).collect::<Vec<String>>().concat()
    });
    sections.push(Section {
        id: "what-changed".to_owned(),
        title: "What changed".to_owned(),
        lead: paragraphs.filter(|text| !text.is_empty()).collect(),
        code: None,
        blocks: Vec::new(),
    });
    StudyView { title: head.title.clone(), lead: lead(head, &record), sections }
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
        record.head.host.kernel.clone(),
        format!("{}, {}. {}", head.authors, head.published, head.question),
        format!("Here: {}; {scale}.", machine(&record.head.host)),
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

impl Sentence {
    /// Its text with the facts in it; `None` where one of them is not known.
    fn with(&self, facts: &Facts) -> Option<String> {
        let is_known = |name: &String| facts.contains_key(name.as_str());
        self.needs.iter().all(is_known).then(|| fill(&self.text, facts))?
    }
}

/// A text with facts in the place of `{fact}`; `None` where one is not known.
fn fill(text: &str, facts: &Facts) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        filled.push_str(before);
        filled.push_str(facts.get(name)?);
        rest = behind;
    }
    Some(filled + rest)
}

/// Facts of those figures that are known.
pub(crate) fn facts<const N: usize>(found: [(&'static str, Option<String>); N]) -> Facts {
    found.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// A cell of a table's rows, by the word that its column has for it in `study.toml`.
pub(crate) type NamedCell<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

impl PartView<'_> {
    fn table_text(&self) -> &TableText {
        let text = self.of.table.as_ref().or(self.file.table.as_ref());
        text.unwrap_or_else(|| panic!("{} of {} has no table", self.of.name, self.record.study))
    }

    /// The part's table, with a row of each of `rows`.
    pub(crate) fn table<R>(&self, rows: impl IntoIterator<Item = R>, cells: &[NamedCell<'_, R>]) -> Block {
        let text = self.table_text();
        let cell = |row: &R, name: &str| {
            let found = cells.iter().find(|(known, _)| *known == name);
            found.unwrap_or_else(|| panic!("{} has no cell `{name}`", self.of.name)).1(row)
        };
        let texts =
            rows.into_iter().map(|row| text.columns.iter().map(|[_, name]| cell(&row, name)).collect());
        self.text_table(texts.collect())
    }

    /// The part's table, of texts.
    pub(crate) fn text_table(&self, rows: Vec<Vec<String>>) -> Block {
        let text = self.table_text();
        text_table(&text.caption, text.headings(), rows)
    }

    /// The part's figure, of bars in groups.
    pub(crate) fn bars(&self, axis: Axis, groups: Vec<BarGroup>, facts: &Facts) -> Block {
        self.figure(Chart::Bars(Bars { axis, groups, references: Vec::new() }), facts)
    }

    /// The part's figure, of throughputs over block sizes.
    pub(crate) fn lines(&self, series: Vec<Series>) -> Block {
        self.figure(throughputs(series), &Facts::new())
    }

    fn figure(&self, chart: Chart, facts: &Facts) -> Block {
        let text = self.of.figure.as_ref().or(self.file.figure.as_ref());
        let FigureText { title, caption } =
            text.unwrap_or_else(|| panic!("{} of {} has no figure", self.of.name, self.record.study));
        let title = title.as_ref().unwrap_or(&self.of.heading);
        let id = format!("{}-{}", self.record.study, self.part.name);
        figure(&id, title, &fill(caption, facts).unwrap_or_default(), chart)
    }
}

impl TableText {
    pub(crate) fn headings(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|[heading, _]| heading.as_str())
    }
}

/// A table of texts.
pub(crate) fn text_table<'a>(
    caption: &str,
    columns: impl Iterator<Item = &'a str>,
    rows: Vec<Vec<String>>,
) -> Block {
    Block::Table(report::Table::new(caption, columns, rows))
}

/// Throughputs over block sizes.
pub(crate) fn throughputs(series: Vec<Series>) -> Chart {
    let x_axis = Axis { label: "block size".to_owned(), unit: Unit::Bytes, scale: Scale::Log };
    Chart::Lines(Lines { x_axis, y_axis: speed_axis(Scale::Log), series })
}

pub(crate) fn figure(id: &str, title: &str, caption: &str, chart: Chart) -> Block {
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

/// The half width of an interval of `trials` trials: with too few it is their range, and called so.
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
