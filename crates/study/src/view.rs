//! Shows the record of a study: the published figures beside the new ones, which are computed again from the raw samples. Captions,
//! columns and sentences are in `study.toml`. They refer by name to texts: [`case_texts`] and [`measure_texts`] make those of
//! measured figures; `study.toml` and the study's own view add others.

use std::collections::BTreeMap;

use model::{CaseRecord, DataLevel, Measure, Sample, StudyPart, StudyRecord};
use report::chart::{
    Bar, BarGroup, Bars, Chart, ChartAxis, ChartCell, ChartData, Lines, Point, Scale, Series, SeriesStyle,
    Unit,
};
use report::document::{Block, Section};
use report::sheet::col;
use report::study::StudyView;
use report::words::machine;
use report::{ABSENT, Table, estimate_value, interval, numbers, words};
use stats::Estimate;

use crate::Study;
use crate::parameters::{
    Alignment, FigureText, PartText, RowText, Sentence, StudyHead, StudyToml, TableText,
};
use crate::start::is_start;

/// Makes the blocks that show a part of a record.
pub(crate) type ShowPart = fn(&PartView<'_>) -> Vec<Block>;

/// Texts by the names that sentences and columns of `study.toml` have for them; unknown ones are missing.
pub(crate) type Texts = BTreeMap<String, String>;

/// A part of a record, and its entry in `study.toml`.
pub(crate) struct PartView<'a> {
    pub(crate) record: &'a StudyRecord,
    pub(crate) part: &'a StudyPart,
    pub(crate) file: &'a StudyToml,
    pub(crate) entry: &'a PartText,
}

fn interruption() -> String {
    words::only_finished(words::INTERRUPTED, "measurements")
}

/// Computes every summary of a record again from its raw samples.
pub fn summarise(record: &mut StudyRecord) {
    for part in &mut record.parts {
        for case in &mut part.cases {
            // A damaged histogram leaves its case without a summary; streams have none.
            let _ = stats::summarise(case, stats::Analyses::Once);
        }
        stats::summarise_times(&mut part.results, 1, stats::Analyses::Once);
    }
}

/// The view of a record; if its study is unknown, only the lead.
pub fn view(record: &StudyRecord) -> StudyView {
    let mut record = record.clone();
    summarise(&mut record);
    let Some(study) = Study::named(&record.study) else { return StudyView::unknown(&record) };
    let file: StudyToml = study.parameters();
    let head = &file.study;
    let section_of = |name: &String| {
        let (part, entry) = (part(&record, name)?, file.parts.iter().find(|entry| entry.name == *name)?);
        Some(section(entry, part, (study.show)(&PartView { record: &record, part, file: &file, entry })))
    };
    let in_order: Vec<String> = file.parts.iter().map(|part| part.name.clone()).collect();
    let shown = if head.shown.is_empty() { &in_order } else { &head.shown };
    let mut sections: Vec<Section> = shown.iter().filter_map(section_of).collect();
    sections.extend(study.elsewhere.and_then(|elsewhere| elsewhere(&record, &file)));
    let now: u32 = record.head.started.get(..4).and_then(|text| text.parse().ok()).unwrap_or(head.year);
    let mut facts = (study.facts)(&record);
    facts.insert("years".to_owned(), now.saturating_sub(head.year).to_string());
    let paragraphs = file.paragraphs.iter().map(|one| {
        let known = one.sentences.iter().filter_map(|sentence| sentence.with(&facts));
        known.collect::<String>().trim_start().to_owned()
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

fn lead(head: &StudyHead, record: &StudyRecord) -> Vec<String> {
    let scale = match record.scale {
        1.0 => "run at the study's own size".to_owned(),
        scale if scale > 1.0 => {
            format!(
                "run at {scale} times the study's size (--scale {scale}), with as many repetitions as in the study"
            )
        }
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
    lead.extend(record.interrupted.then(interruption));
    lead
}

/// The part of this name, if the record has it.
pub(crate) fn part<'a>(record: &'a StudyRecord, name: &str) -> Option<&'a StudyPart> {
    record.parts.iter().find(|part| part.name == name)
}

/// The cases of the part of this name; none if the record lacks it.
pub(crate) fn cases<'a>(record: &'a StudyRecord, name: &str) -> &'a [CaseRecord] {
    part(record, name).map_or(&[], |part| part.cases.as_slice())
}

/// The measure of this name.
pub(crate) fn measure<'a>(part: &'a StudyPart, name: &str) -> Option<&'a Measure> {
    part.measures.iter().find(|measure| measure.name == name)
}

/// The fastest case.
pub(crate) fn fastest<'a>(cases: impl IntoIterator<Item = &'a CaseRecord>) -> Option<&'a CaseRecord> {
    let known = cases.into_iter().filter_map(|case| Some((median(case)?, case)));
    known.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, case)| case)
}

/// The section of a part: its lead, its settings, its blocks, and its remarks.
fn section(entry: &PartText, part: &StudyPart, mut blocks: Vec<Block>) -> Section {
    let mut lead = vec![entry.lead.clone()];
    let settings: Vec<String> = part.settings.iter().map(|(name, text)| format!("{name}: {text}")).collect();
    if !settings.is_empty() {
        let runs = if part.series == 1 { "1 run".to_owned() } else { format!("{} runs", part.series) };
        lead.push(format!("{runs} of each case; {}.", settings.join("; ")));
    }
    lead.extend((!part.complete).then(interruption));
    let cases = part.cases.iter().map(|case| case.samples.len());
    let shown = part.measures.iter().filter(|one| !is_start(one));
    let measures = shown.map(|one| one.samples.len());
    let remarks = part.remarks.iter().cloned().chain(interval::legend(cases.chain(measures)));
    blocks.extend(self::remarks(remarks.collect()));
    let id = part.name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let code = entry.is_command.then(|| entry.heading.clone());
    Section { id, title: entry.heading.clone(), lead, code, blocks }
}

/// A block of remarks; `None` if there are none.
pub(crate) fn remarks(remarks: Vec<String>) -> Option<Block> {
    (!remarks.is_empty()).then_some(Block::Remarks(remarks))
}

impl Sentence {
    /// Its text with the facts in it; `None` if one of them is unknown.
    fn with(&self, facts: &Texts) -> Option<String> {
        let is_known = |name: &String| facts.contains_key(name.as_str());
        self.needs
            .iter()
            .all(is_known)
            .then(|| model::filled_completely(&self.text, |name| facts.get(name).cloned()))?
    }
}

/// Those of the texts that are known.
pub(crate) fn texts<const N: usize>(found: [(&str, Option<String>); N]) -> Texts {
    found.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}

/// The texts of a case, if there is one. `ratio` is its throughput as a multiple of `base`.
pub(crate) fn case_texts(case: Option<&CaseRecord>, base: Option<f64>) -> Texts {
    let throughput = case.and_then(median);
    let shown = case.filter(|_| throughput.is_some()).and_then(estimate_value).map(|found| found.to_string());
    let error = case.and_then(|case| case.error.as_ref()).map(|error| error.message.clone());
    texts([
        ("tasks", case.map(|case| case.tasks.to_string())),
        ("block", case.map(|case| numbers::size(case.block_bytes))),
        ("spec", case.map(|case| case.spec.to_string())),
        ("throughput or error", shown.clone().or_else(|| error.clone()).or(absent())),
        ("throughput", shown.or(absent())),
        ("error", error),
        ("ratio", throughput.zip(base).map(|(one, base)| numbers::ratio(one / base))),
        ("by reference", case.and_then(|case| case.zero_copy.as_ref()).map(words::by_reference)),
    ])
}

/// System calls of the sending end for `bytes`, computed from the median of the samples.
fn calls_of_the_writer(case: &CaseRecord, bytes: u64) -> Option<f64> {
    let per_byte = |sample: &Sample| Some(sample.ends.first()?.syscalls? as f64 / sample.bytes as f64);
    stats::figure::median_of(case, per_byte).map(|calls| (calls * bytes as f64).round())
}

/// The texts of a measure, whose samples are times in seconds, or of a size that was found: then the sample is a number of bytes.
fn measure_texts(one: &Measure) -> Texts {
    let estimate = Estimate::of(&one.samples);
    let time = |found: Estimate| {
        let spread = interval::plus_minus([found.median, found.low, found.high], found.count, numbers::time);
        numbers::time(found.median) + &spread
    };
    texts([
        ("measure", Some(one.name.clone())),
        ("time", estimate.map(time).or(absent())),
        ("bytes", one.samples.first().map(|bytes| numbers::size(*bytes as u64)).or(absent())),
    ])
}

/// The cell of a figure that is missing.
pub(crate) fn absent() -> Option<String> {
    Some(ABSENT.to_owned())
}

impl PartView<'_> {
    /// The part's table and figure, if `study.toml` has them.
    pub(crate) fn shown(&self) -> Vec<Block> {
        let table = self.entry.table.iter().map(|text| text.block(&text.caption, self.rows()));
        let bars = |text: &FigureText| {
            let scale = if text.is_logarithmic { Scale::Log } else { Scale::Linear };
            self.bars(speed_axis(scale), self.groups(text))
        };
        table.chain(self.entry.figure.iter().map(bars)).collect()
    }

    /// The rows of `study.toml` with their cases, or else a row for each case; then a row for each measure.
    fn rows(&self) -> Vec<Texts> {
        let (of_measures, of_cases): (Vec<&RowText>, Vec<&RowText>) =
            self.entry.rows.iter().partition(|row| row.measure.is_some());
        let mut rows: Vec<Texts> = of_cases.iter().map(|row| self.row(row)).collect();
        if rows.is_empty() {
            rows.extend(self.part.cases.iter().map(|case| case_texts(Some(case), None)));
        }
        for one in &self.part.measures {
            let mut texts = measure_texts(one);
            let row = of_measures.iter().find(|row| row.measure.as_ref() == Some(&one.name));
            texts.extend(row.map(|row| row.texts.clone()).unwrap_or_default());
            rows.push(texts);
        }
        rows
    }

    /// The texts of a row and of its case; with a prefix such as `none: `, the texts of its case at that data level.
    fn row(&self, row: &RowText) -> Texts {
        let base_row = self.entry.table.as_ref().and_then(|table| self.entry.rows.get(table.base_row));
        let texts_at = |data: Option<DataLevel>| {
            let base = base_row.and_then(|base| self.case(base, data)).and_then(median);
            case_texts(self.case(row, data), base)
        };
        let mut all = texts_at(None);
        for data in DataLevel::ALL {
            let prefixed = |(name, text)| (format!("{data}: {name}"), text);
            all.extend(texts_at(Some(*data)).into_iter().map(prefixed));
        }
        let calls = self.case(row, None).zip(self.file.workload.as_ref());
        let writer_calls = calls.and_then(|(case, workload)| calls_of_the_writer(case, workload.bytes.value));
        all.extend(texts([
            ("calls", writer_calls.map(|calls| numbers::grouped(calls, 0)).or(absent())),
            ("spec", row.spec.clone()),
            ("block", row.block.map(|block| numbers::size(block.value))),
        ]));
        all.extend(row.texts.clone());
        all
    }

    /// The case that a row selects, at this data level if there is one.
    fn case(&self, row: &RowText, data: Option<DataLevel>) -> Option<&CaseRecord> {
        let spec = row.spec.as_ref().and_then(|spec| spec.parse().ok());
        self.part.cases.iter().find(|case| {
            spec.as_ref().is_none_or(|spec| case.spec == *spec)
                && row.block.is_none_or(|block| case.block_bytes == block.value)
                && data.or(row.data).is_none_or(|data| case.data == data)
        })
    }

    /// Bars of the rows' cases, named by the table's first column.
    fn groups(&self, text: &FigureText) -> Vec<BarGroup> {
        let first = self.entry.table.as_ref().and_then(|table| table.columns.first());
        let group = |name: &str, data: Option<DataLevel>| {
            let bar_of = |row: &RowText| {
                let name = first.and_then(|column| self.row(row).remove(&column.text)).unwrap_or_default();
                Some(bar(&name, self.case(row, data)?))
            };
            BarGroup { name: name.to_owned(), bars: self.entry.rows.iter().filter_map(bar_of).collect() }
        };
        if text.groups.is_empty() {
            return vec![group("", None)];
        }
        text.groups.iter().map(|(name, data)| group(name, Some(*data))).collect()
    }

    /// The part's table, with these rows.
    pub(crate) fn table(&self, rows: Vec<Texts>) -> Block {
        let text = self.entry.table.as_ref().or(self.file.table.as_ref());
        let table_text =
            text.unwrap_or_else(|| panic!("{} of {} has no table", self.entry.name, self.record.study));
        table_text.block(&table_text.caption, rows)
    }

    /// The part's figure, of bars in groups.
    pub(crate) fn bars(&self, axis: ChartAxis, groups: Vec<BarGroup>) -> Block {
        self.chart(ChartData::Bars(Bars { axis, groups, references: Vec::new() }))
    }

    /// The part's figure, of throughputs over block sizes.
    pub(crate) fn lines(&self, series: Vec<Series>) -> Block {
        self.chart(throughputs(series))
    }

    fn chart(&self, data: ChartData) -> Block {
        let text = self.entry.figure.as_ref().or(self.file.figure.as_ref());
        let FigureText { title, caption, .. } =
            text.unwrap_or_else(|| panic!("{} of {} has no figure", self.entry.name, self.record.study));
        let title = title.as_ref().unwrap_or(&self.entry.heading);
        chart(&format!("{}-{}", self.record.study, self.part.name), title, caption, data)
    }
}

impl TableText {
    /// The table with these rows; if a row lacks a text, its cell is empty.
    pub(crate) fn block(&self, caption: &str, rows: Vec<Texts>) -> Block {
        let headings = self.columns.iter().map(|column| match column.alignment {
            Some(Alignment::Right) => col(&column.heading).right(),
            None => col(&column.heading).left(),
        });
        let cells = |row: Texts| -> Vec<String> {
            self.columns.iter().map(|column| row.get(&column.text).cloned().unwrap_or_default()).collect()
        };
        Block::Table(Table::new(caption, headings, rows.into_iter().map(cells)))
    }
}

/// Throughputs over block sizes.
pub(crate) fn throughputs(series: Vec<Series>) -> ChartData {
    let x_axis = ChartAxis { label: "block size".to_owned(), unit: Unit::Bytes, scale: Scale::Log };
    ChartData::Lines(Lines { x_axis, y_axis: speed_axis(Scale::Log), series })
}

pub(crate) fn chart(id: &str, title: &str, caption: &str, data: ChartData) -> Block {
    let (id, title, caption) = (id.to_owned(), title.to_owned(), caption.to_owned());
    Block::Chart(Chart { id, title, caption, data })
}

/// An axis of bytes per second.
pub(crate) fn speed_axis(scale: Scale) -> ChartAxis {
    ChartAxis { label: "throughput".to_owned(), unit: Unit::BytesPerS, scale }
}

/// Median throughput of a case, in bytes per second.
pub(crate) fn median(case: &CaseRecord) -> Option<f64> {
    case.throughput.as_ref().map(|throughput| throughput.median_bytes_per_s)
}

/// A line of cases over their block sizes.
pub(crate) fn line<'a>(name: &str, cases: impl IntoIterator<Item = &'a CaseRecord>) -> Series {
    let point = |case: &CaseRecord| {
        let found = case.throughput.as_ref()?;
        let ends = [found.median_bytes_per_s, found.low, found.high];
        Some(Point::estimated(case.block_bytes as f64, ends, case.samples.len()))
    };
    Series::new(name, SeriesStyle::Measured, cases.into_iter().filter_map(point).collect())
}

/// A bar of a measured figure: the median, its interval, and the samples.
pub(crate) fn measured_bar(name: &str, samples: Vec<f64>, error: Option<&str>) -> Bar {
    let found = Estimate::of(&samples).map(|one| [one.median, one.low, one.high]);
    let cell = ChartCell::new(found, samples.len(), error.unwrap_or_default().to_owned());
    Bar { name: name.to_owned(), style: SeriesStyle::Measured, cell, samples }
}

/// A bar of a case's throughput.
pub(crate) fn bar(name: &str, case: &CaseRecord) -> Bar {
    let samples = case.samples.iter().filter_map(stats::figure::throughput_bytes_per_s).collect();
    measured_bar(name, samples, case.error.as_ref().map(|error| error.message.as_str()))
}

/// A bar of a published figure.
pub(crate) fn published_bar(name: &str, value: Option<f64>, note: &str) -> Bar {
    let cell = ChartCell { value, note: note.to_owned(), ..ChartCell::default() };
    Bar { name: name.to_owned(), style: SeriesStyle::Published, cell, samples: Vec::new() }
}
