//! How a study is shown: what was published beside what came of it here. Everything is computed anew from the record's
//! raw samples. Captions, columns and sentences come from `study.toml`, and name what is put into them by words: [`case_words`] and
//! [`measure_words`] have those of what was measured, `study.toml` and each study's own view add others.

use std::collections::BTreeMap;

use model::{CaseRecord, DataLevel, Measure, Sample, StudyPart, StudyRecord};
use report::document::{Block, Section};
use report::figure::{
    Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Lines, Point, Scale, Series, SeriesStyle, Unit,
};
use report::study::StudyView;
use report::words::machine;
use report::{ABSENT, Table, figure_text, interval, numbers, words};
use stats::Estimate;

use crate::{FigureText, File, Head, Part, RowText, Sentence, Study, TableText};

/// What is shown of a part of a record.
pub(crate) type Show = fn(&PartView<'_>) -> Vec<Block>;

/// Texts by the words that sentences and columns of `study.toml` have for them; only those that are known.
pub(crate) type Words = BTreeMap<String, String>;

/// A part of a record, with what its study says of it.
pub(crate) struct PartView<'a> {
    pub(crate) record: &'a StudyRecord,
    pub(crate) part: &'a StudyPart,
    pub(crate) file: &'a File,
    pub(crate) of: &'a Part,
}

const INTERRUPTED: &str = "Interrupted: what stands here is what was finished.";

/// Computes every summary of a record anew from its raw samples.
pub fn summarise(record: &mut StudyRecord) {
    for part in &mut record.parts {
        for case in &mut part.cases {
            // A damaged histogram leaves its case without a summary; streams have none.
            let _ = stats::summarise(case, stats::Looks::Once);
        }
        stats::summarise_times(&mut part.results, 1);
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
        Some(section(of, part, (study.show)(&PartView { record: &record, part, file: &file, of })))
    };
    let in_order: Vec<String> = file.parts.iter().map(|part| part.name.clone()).collect();
    let shown = if head.shown.is_empty() { &in_order } else { &head.shown };
    let mut sections: Vec<Section> = shown.iter().filter_map(of_part).collect();
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
    let cases = part.cases.iter().map(|case| case.samples.len());
    let measures = part.measures.iter().map(|one| one.samples.len());
    let remarks = part.remarks.iter().cloned().chain(interval::legend(cases.chain(measures)));
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
    fn with(&self, facts: &Words) -> Option<String> {
        let is_known = |name: &String| facts.contains_key(name.as_str());
        self.needs.iter().all(is_known).then(|| fill(&self.text, &|name| facts.get(name).cloned()))?
    }
}

/// A text with facts in the place of `{fact}`; `None` where one is not known.
pub(crate) fn fill(text: &str, fact: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&fact(name)?);
        rest = behind;
    }
    Some(filled + rest)
}

/// The words of those figures that are known.
pub(crate) fn words<const N: usize>(found: [(&str, Option<String>); N]) -> Words {
    found.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}

/// What is shown of a case, if there is one: `base` is the throughput of which `ratio` is a multiple.
pub(crate) fn case_words(case: Option<&CaseRecord>, base: Option<f64>) -> Words {
    let throughput = case.and_then(median);
    let shown = case.filter(|_| throughput.is_some()).and_then(figure_text);
    let error = case.and_then(|case| case.error.as_ref()).map(|error| error.message.clone());
    let time = |case: &CaseRecord| {
        let times: Vec<f64> = case.samples.iter().map(|sample| sample.elapsed_ns as f64).collect();
        Some(numbers::time(Estimate::of(&times)?.mean))
    };
    words([
        ("tasks", case.map(|case| case.tasks.to_string())),
        ("block", case.map(|case| numbers::size(case.block_bytes))),
        ("spec", case.map(|case| case.spec.to_string())),
        ("throughput or error", shown.clone().or_else(|| error.clone()).or(absent())),
        ("throughput", shown.or(absent())),
        ("error", error),
        ("mean time", case.and_then(time).or(absent())),
        ("ratio", throughput.zip(base).map(|(one, base)| numbers::ratio(one / base))),
        ("by reference", case.and_then(|case| case.zero_copy.as_ref()).map(words::by_reference)),
    ])
}

/// Calls of the sending end for `bytes`, from the median of the samples.
fn calls_of_the_writer(case: &CaseRecord, bytes: u64) -> Option<f64> {
    let per_byte = |sample: &Sample| Some(sample.ends.first()?.syscalls? as f64 / sample.bytes as f64);
    stats::figure::median_of(case, per_byte).map(|calls| (calls * bytes as f64).round())
}

/// What is shown of a measure.
fn measure_words(one: &Measure) -> Words {
    let estimate = Estimate::of(&one.samples);
    let time = |found: Estimate| {
        let spread = interval::plus_minus([found.median, found.low, found.high], found.count);
        numbers::time(found.median) + &spread
    };
    words([
        ("measure", Some(one.name.clone())),
        ("time", estimate.map(time).or(absent())),
        ("bytes", one.samples.first().map(|bytes| numbers::size(*bytes as u64)).or(absent())),
    ])
}

/// A cell for what may not be there.
pub(crate) fn absent() -> Option<String> {
    Some(ABSENT.to_owned())
}

impl PartView<'_> {
    /// The part's table and bars, as far as `study.toml` has them.
    pub(crate) fn shown(&self) -> Vec<Block> {
        let table = self.of.table.iter().map(|text| text.block(&text.caption, self.rows()));
        table
            .chain(self.of.figure.iter().map(|text| self.bars(speed_axis(text.scale()), self.groups(text))))
            .collect()
    }

    /// The rows that `study.toml` names, with what was measured; else one of each case and of each measure.
    fn rows(&self) -> Vec<Words> {
        let own: Vec<&RowText> = self.of.rows.iter().filter(|row| row.measure.is_none()).collect();
        let cases = self.part.cases.iter().filter(|_| own.is_empty());
        let measures = self.part.measures.iter().map(|one| {
            let row = self.of.rows.iter().find(|row| row.measure.as_ref() == Some(&one.name));
            measure_words(one)
                .into_iter()
                .chain(row.map(|row| row.words.clone()).unwrap_or_default())
                .collect()
        });
        let own = own.iter().map(|row| self.row(row));
        own.chain(cases.map(|case| case_words(Some(case), None))).chain(measures).collect()
    }

    /// A row's own words and its case's; behind `none: ` and the like those of its case with such data.
    fn row(&self, row: &RowText) -> Words {
        let base_row = self.of.table.as_ref().and_then(|table| self.of.rows.get(table.base_row));
        let of_data = |data: Option<DataLevel>| {
            let base = base_row.and_then(|base| self.case(base, data)).and_then(median);
            case_words(self.case(row, data), base)
        };
        let mut words = of_data(None);
        for data in DataLevel::ALL {
            let named =
                of_data(Some(*data)).into_iter().map(|(name, text)| (format!("{data}: {name}"), text));
            words.extend(named);
        }
        let calls = self.case(row, None).zip(self.file.workload.as_ref());
        let calls = calls.and_then(|(case, workload)| calls_of_the_writer(case, workload.bytes.value));
        words.extend([(
            "calls".to_owned(),
            calls.map_or(ABSENT.to_owned(), |calls| numbers::grouped(calls, 0)),
        )]);
        words.extend(row.spec.iter().map(|spec| ("spec".to_owned(), spec.clone())));
        words.extend(row.block.map(|block| ("block".to_owned(), numbers::size(block.value))));
        words.extend(row.words.clone());
        words
    }

    /// The case of a row.
    fn case(&self, row: &RowText, data: Option<DataLevel>) -> Option<&CaseRecord> {
        let spec = row.spec.as_ref().and_then(|spec| spec.parse().ok());
        self.part.cases.iter().find(|case| {
            spec.as_ref().is_none_or(|spec| case.spec == *spec)
                && row.block.is_none_or(|block| case.block_bytes == block.value)
                && data.or(row.data).is_none_or(|data| case.data == data)
        })
    }

    /// Bars of the rows' cases, named as the first column has it.
    fn groups(&self, text: &FigureText) -> Vec<BarGroup> {
        let first = self.of.table.as_ref().and_then(|table| table.columns.first());
        let group = |name: &str, data: Option<DataLevel>| {
            let bar_of = |row: &RowText| {
                let name = first.and_then(|[_, word]| self.row(row).remove(word)).unwrap_or_default();
                Some(bar(&name, self.case(row, data)?))
            };
            BarGroup { name: name.to_owned(), bars: self.of.rows.iter().filter_map(bar_of).collect() }
        };
        if text.groups.is_empty() {
            return vec![group("", None)];
        }
        text.groups.iter().map(|(name, data)| group(name, Some(*data))).collect()
    }

    /// The part's table, with these rows.
    pub(crate) fn table(&self, rows: Vec<Words>) -> Block {
        let text = self.of.table.as_ref().or(self.file.table.as_ref());
        let text = text.unwrap_or_else(|| panic!("{} of {} has no table", self.of.name, self.record.study));
        text.block(&text.caption, rows)
    }

    /// The part's figure, of bars in groups.
    pub(crate) fn bars(&self, axis: Axis, groups: Vec<BarGroup>) -> Block {
        self.figure(Chart::Bars(Bars { axis, groups, references: Vec::new() }))
    }

    /// The part's figure, of throughputs over block sizes.
    pub(crate) fn lines(&self, series: Vec<Series>) -> Block {
        self.figure(throughputs(series))
    }

    fn figure(&self, chart: Chart) -> Block {
        let text = self.of.figure.as_ref().or(self.file.figure.as_ref());
        let FigureText { title, caption, .. } =
            text.unwrap_or_else(|| panic!("{} of {} has no figure", self.of.name, self.record.study));
        let title = title.as_ref().unwrap_or(&self.of.heading);
        figure(&format!("{}-{}", self.record.study, self.part.name), title, caption, chart)
    }
}

impl TableText {
    /// The table with these rows; a cell whose word a row does not have is empty.
    pub(crate) fn block(&self, caption: &str, rows: Vec<Words>) -> Block {
        let headings = self.columns.iter().map(|[heading, _]| heading.as_str());
        let cells = |row: Words| {
            self.columns
                .iter()
                .map(|[_, word]| row.get(word).cloned().unwrap_or_default())
                .collect::<Vec<String>>()
        };
        Block::Table(Table::new(caption, headings, rows.into_iter().map(cells)))
    }
}

impl FigureText {
    fn scale(&self) -> Scale {
        if self.is_logarithmic { Scale::Log } else { Scale::Linear }
    }
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
    series(name.to_owned(), SeriesStyle::Measured, cases.into_iter().filter_map(point).collect())
}

pub(crate) fn series(name: String, style: SeriesStyle, points: Vec<Point>) -> Series {
    Series { name, style, points, model: Vec::new() }
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
