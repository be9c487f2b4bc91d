//! What came of a comparison: the table of `hosepipe compare`, its CSV and its Markdown.

use model::{CompareRecord, CompareResult, Ratio};

use crate::columns::{ABSENT, Align};
use crate::format::FormatError;
use crate::grid::{Heading, lay_out};
use crate::layout::{Line, Tone, bar, print, wrap};
use crate::numbers::{decimal_size, percent, ratio, time};
use crate::table::Style;
use crate::words::machine;

/// A column: its heading, and its text in a row.
struct Column {
    heading: Heading,
    cell: fn(&CompareResult) -> String,
}

/// Width of the longest bar, and where bars stand: behind the median.
const BAR_COLUMNS: usize = 10;
const BAR_AT: usize = 3;

const COLUMNS: &[Column] = &[
    Column { heading: Heading::left("link"), cell: |result| result.via.clone() },
    Column { heading: Heading::right("mean ± sd"), cell: mean },
    Column { heading: Heading::right("median"), cell: |result| seconds(result.median_s) },
    Column { heading: Heading::right("±95 %"), cell: spread },
    Column { heading: Heading::right("× first"), cell: |result| times(result.times_first) },
    Column { heading: Heading::right("× bash"), cell: |result| times(result.times_bash) },
    Column { heading: Heading::right("stored"), cell: |result| amount(result.stored_bytes) },
    Column { heading: Heading::right("output"), cell: |result| output(result) },
    Column { heading: Heading::left(""), cell: |result| result.error.clone().unwrap_or_default() },
];

/// Renders the table, a section for each pipeline.
pub fn render(record: &CompareRecord, style: &Style) -> String {
    let mut lines = Vec::new();
    let heading = format!("{} · {} trials each, in turns", machine(&record.host), record.trials);
    lines.extend(wrap(&heading, style.width).into_iter().map(|line| Line::new(Tone::Dim, line)));
    for (pipeline, results) in sections(record) {
        lines.push(Line::default());
        lines.push(Line::new(Tone::Bold, pipeline.to_owned()));
        let with_bars = grid(&results, true);
        let fits = with_bars.iter().all(|line| line.width() <= style.width);
        lines.extend(if fits { with_bars } else { grid(&results, false) });
    }
    if record.interrupted {
        lines.push(Line::new(Tone::Plain, "Interrupted: what stands here is what was finished.".to_owned()));
    }
    print(&lines, style.color, style.unicode)
}

/// The rows of one pipeline, with a bar beside the median where that is asked for and compares something.
fn grid(results: &[&CompareResult], bars: bool) -> Vec<Line> {
    let medians = || results.iter().filter_map(|result| result.median_s);
    let (fastest, slowest) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    let bars = bars && medians().count() > 1;
    let picture = |result: &CompareResult| match result.median_s {
        Some(median_s) if bars => bar(median_s / slowest, BAR_COLUMNS),
        _ => String::new(),
    };
    let heading = |column: &Column| Heading { title: column.heading.title, align: column.heading.align };
    let mut headings: Vec<Heading> = COLUMNS.iter().map(heading).collect();
    headings.insert(BAR_AT, Heading::left(""));
    let row = |result: &&CompareResult| {
        let tone = if result.median_s == Some(fastest) { Tone::Bold } else { Tone::Plain };
        let mut cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(result)).collect();
        cells.insert(BAR_AT, picture(result));
        (tone, cells)
    };
    lay_out(&headings, &results.iter().map(row).collect::<Vec<_>>())
}

/// One row for each pipeline and link, times in seconds.
///
/// # Errors
/// The writer refused a row.
pub fn csv(record: &CompareRecord) -> Result<String, FormatError> {
    let refused = |error: csv::Error| FormatError::Csv(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record([
            "pipeline",
            "via",
            "trials",
            "mean_s",
            "stddev_s",
            "median_s",
            "low_s",
            "high_s",
            "times_first",
            "times_bash",
            "stored_bytes",
            "output_bytes",
            "output_hash",
            "status",
            "equal",
            "error",
        ])
        .map_err(refused)?;
    for result in &record.results {
        let figure = |value: Option<f64>| value.map(|value| format!("{value:.6}")).unwrap_or_default();
        let middle = |ratio: Option<Ratio>| figure(ratio.map(|ratio| ratio.median));
        let row = [
            result.pipeline.clone(),
            result.via.clone(),
            result.times_s.len().to_string(),
            figure(result.mean_s),
            figure(result.stddev_s),
            figure(result.median_s),
            figure(result.low_s),
            figure(result.high_s),
            middle(result.times_first),
            middle(result.times_bash),
            result.stored_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            result.output_bytes.to_string(),
            result.output_hash.clone().unwrap_or_default(),
            result.status.map(|status| status.to_string()).unwrap_or_default(),
            result.equal.map(|equal| equal.to_string()).unwrap_or_default(),
            result.error.clone().unwrap_or_default(),
        ];
        writer.write_record(row).map_err(refused)?;
    }
    let bytes = writer.into_inner().map_err(|error| FormatError::Csv(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| FormatError::Csv(error.to_string()))
}

/// The table for an issue or a README.
pub fn markdown(record: &CompareRecord) -> String {
    let mut text = format!("{} · {} trials each, in turns\n", machine(&record.host), record.trials);
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    for (pipeline, results) in sections(record) {
        text.push_str(&format!("\n### `{}`\n\n", pipeline.replace('\n', " ")));
        text.push_str(&line(COLUMNS.iter().map(|column| column.heading.title.to_owned()).collect()));
        let rule = |column: &Column| if column.heading.align == Align::Right { "---:" } else { "---" };
        text.push_str(&line(COLUMNS.iter().map(|column| rule(column).to_owned()).collect()));
        for result in results {
            text.push_str(&line(
                COLUMNS.iter().map(|column| (column.cell)(result).replace('|', "\\|")).collect(),
            ));
        }
    }
    text
}

/// The results pipeline by pipeline, in the order asked for.
fn sections(record: &CompareRecord) -> Vec<(&str, Vec<&CompareResult>)> {
    let mut sections: Vec<(&str, Vec<&CompareResult>)> = Vec::new();
    for result in &record.results {
        match sections.last_mut() {
            Some((pipeline, results)) if *pipeline == result.pipeline => results.push(result),
            _ => sections.push((&result.pipeline, vec![result])),
        }
    }
    sections
}

fn seconds(value: Option<f64>) -> String {
    value.map(|seconds| time(seconds * 1e9)).unwrap_or_else(|| ABSENT.to_owned())
}

fn mean(result: &CompareResult) -> String {
    match (result.mean_s, result.stddev_s) {
        (Some(mean), Some(stddev)) => format!("{mean:.3} ± {stddev:.3} s"),
        _ => ABSENT.to_owned(),
    }
}

fn spread(result: &CompareResult) -> String {
    let share = match (result.median_s, result.low_s, result.high_s) {
        (Some(median), Some(low), Some(high)) => stats::estimate::relative_half_width(median, low, high),
        _ => None,
    };
    share.filter(|_| result.times_s.len() > 1).map(percent).unwrap_or_default()
}

fn times(value: Option<Ratio>) -> String {
    value.map(|value| ratio(value.median)).unwrap_or_default()
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map(decimal_size).unwrap_or_default()
}

fn output(result: &CompareResult) -> String {
    match result.equal {
        None => ABSENT.to_owned(),
        Some(true) => "same".to_owned(),
        Some(false) => "DIFFERS".to_owned(),
    }
}
