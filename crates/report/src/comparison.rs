//! What came of a comparison: the table of `hosepipe compare`, its CSV and its Markdown.

use model::{CompareRecord, CompareResult, Ratio, visible};
use stats::estimate::ENOUGH_FOR_95_PERCENT;

use crate::columns::{ABSENT, Align};
use crate::format::FormatError;
use crate::grid::{Heading, lay_out};
use crate::layout::{Line, Tone, bar, print, wrap};
use crate::noise;
use crate::numbers::{decimal_size, fixed, percent, ratio, time};
use crate::table::Style;
use crate::words::machine;

/// A column: its heading, and its text in a row, given all rows of the pipeline.
struct Column {
    heading: Heading,
    cell: fn(&CompareResult, &[&CompareResult]) -> String,
}

/// Width of the longest bar, and where bars stand: behind the median.
const BAR_COLUMNS: usize = 10;
const BAR_AT: usize = 3;

const COLUMNS: &[Column] = &[
    Column { heading: Heading::left("link"), cell: |result, _| result.via.clone() },
    Column { heading: Heading::right("mean ± sd"), cell: |result, _| mean(result) },
    Column { heading: Heading::right("median"), cell: |result, _| median(result) },
    Column { heading: Heading::right("±95 %"), cell: |result, _| spread(result, false) },
    Column { heading: Heading::right("± range"), cell: |result, _| spread(result, true) },
    Column { heading: Heading::right("× first"), cell: |result, all| times(result, all.first().copied()) },
    Column {
        heading: Heading::right("× bash"),
        cell: |result, all| times(result, all.iter().copied().find(|other| other.via == BASH)),
    },
    Column { heading: Heading::right("stored"), cell: |result, _| amount(result.stored_bytes) },
    Column { heading: Heading::right("output"), cell: |result, _| output(result) },
    Column { heading: Heading::left(""), cell: |result, _| result.error.clone().unwrap_or_default() },
];

/// What stands for bash itself among the links.
const BASH: &str = "bash";

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
    for remark in remarks(record) {
        lines.extend(wrap(&remark, style.width).into_iter().map(|line| Line::new(Tone::Dim, line)));
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
        let mut cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(result, results)).collect();
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
        let figure = |value: Option<f64>| {
            value.filter(|value| value.is_finite()).map(|value| format!("{value:.6}")).unwrap_or_default()
        };
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
        let cell =
            |column: &Column, result: &CompareResult| (column.cell)(result, &results).replace('|', "\\|");
        let speaks = |column: &&Column| results.iter().any(|result| !cell(column, result).is_empty());
        let columns: Vec<&Column> = COLUMNS.iter().filter(speaks).collect();
        text.push_str(&format!("\n### `{}`\n\n", pipeline.replace('\n', " ")));
        text.push_str(&line(columns.iter().map(|column| column.heading.title.to_owned()).collect()));
        let rule = |column: &&Column| if column.heading.align == Align::Right { "---:" } else { "---" };
        text.push_str(&line(columns.iter().map(|column| rule(column).to_owned()).collect()));
        for result in &results {
            text.push_str(&line(columns.iter().map(|column| cell(column, result)).collect()));
        }
    }
    for remark in remarks(record) {
        text.push_str(&format!("\n{remark}\n"));
    }
    visible(&text)
}

/// What should be known of the figures.
fn remarks(record: &CompareRecord) -> Vec<String> {
    let trials = || record.results.iter().map(|result| result.times_s.len());
    let levels = record.results.iter().filter_map(|result| noise::level(&result.times_s));
    let few = if trials().any(noise::is_range) {
        Some(format!(
            "Fewer than {ENOUGH_FOR_95_PERCENT} trials have no 95 % interval: ± is their whole range."
        ))
    } else {
        trials().any(|count| count == 1).then(|| "A single trial shows no spread.".to_owned())
    };
    let interrupted = "Interrupted: what stands here is what was finished.".to_owned();
    let interrupted = record.interrupted.then_some(interrupted);
    [noise::legend_of(levels), few, interrupted].into_iter().flatten().collect()
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

fn median(result: &CompareResult) -> String {
    let text =
        |median_s: f64| format!("{}{}", time(median_s * 1e9), noise::mark(noise::level(&result.times_s)));
    result.median_s.map_or_else(|| ABSENT.to_owned(), text)
}

fn mean(result: &CompareResult) -> String {
    match (result.mean_s, result.stddev_s) {
        (Some(mean), Some(stddev)) => format!("{} ± {} s", fixed(mean, 3), fixed(stddev, 3)),
        _ => ABSENT.to_owned(),
    }
}

/// The interval of the median, or where there are too few trials for one the range: each has its own column.
fn spread(result: &CompareResult, range: bool) -> String {
    let share = match (result.median_s, result.low_s, result.high_s) {
        (Some(median), Some(low), Some(high)) => stats::estimate::relative_half_width(median, low, high),
        _ => None,
    };
    let trials = result.times_s.len();
    share.filter(|_| trials > 1 && noise::is_range(trials) == range).map(percent).unwrap_or_default()
}

/// The quotient of the medians that the table shows.
fn times(result: &CompareResult, reference: Option<&CompareResult>) -> String {
    let medians = result.median_s.zip(reference.and_then(|reference| reference.median_s));
    medians.map(|(one, other)| ratio(one / other)).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn record(trials: &[(&str, &[f64])]) -> CompareRecord {
        let result = |(via, times_s): &(&str, &[f64])| CompareResult {
            times_s: times_s.to_vec(),
            ..CompareResult::new("a | b", via)
        };
        let mut results: Vec<CompareResult> = trials.iter().map(result).collect();
        stats::summarise_times(&mut results);
        CompareRecord {
            schema: model::SCHEMA.to_owned(),
            tool: model::Tool { version: "0".to_owned(), revision: None },
            host: model::Host::default(),
            arguments: Vec::new(),
            started: String::new(),
            seed: 1,
            trials: 8,
            warmup: 0,
            interrupted: false,
            results,
        }
    }

    fn table(trials: &[(&str, &[f64])]) -> String {
        render(&record(trials), &Style { width: 120, color: false, unicode: true })
    }

    /// Expected: a reader who divides the medians of the table has its ratio.
    /// Happened: the ratio was the median of those within rounds, and was 0.8 where the medians say 1.25.
    #[test]
    fn ratios_are_those_of_the_medians_shown() {
        let pipe = [2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0];
        let bash = [2.5, 2.5, 2.5, 1.6, 1.6, 1.6, 1.0];
        let text = table(&[("pipe", &pipe), ("bash", &bash)]);
        let row = |via: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(via)).unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
        };
        assert!(
            row("pipe").contains(&"2.00".to_owned()) && row("bash").contains(&"1.60".to_owned()),
            "{text}"
        );
        assert!(
            row("pipe").contains(&"1.2".to_owned()) && row("bash").contains(&"0.80".to_owned()),
            "{text}"
        );
    }

    #[test]
    fn few_trials_have_a_range_and_noise_has_a_mark() {
        let five = table(&[("pipe", &[1.0, 1.0, 1.0, 1.0, 1.1])]);
        assert!(five.contains("± range") && !five.contains("±95 %"), "{five}");
        assert!(five.contains("1.00 s ~") && five.contains("~ noisy"), "{five}");
        assert!(five.contains("Fewer than 6 trials have no 95 % interval"), "{five}");
        let seven = table(&[("pipe", &[1.0, 1.0, 1.0, 1.0, 1.0, 1.01, 1.01])]);
        assert!(seven.contains("±95 %") && !seven.contains("range") && !seven.contains('~'), "{seven}");
        let wild = markdown(&record(&[("pipe", &[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0])]));
        assert!(wild.contains("1.00 s !") && wild.contains("! wild"), "{wild}");
        assert!(wild.contains("±95 %") && !wild.contains("± range"), "empty columns are left out: {wild}");
    }

    /// Expected: no time of a record, however false, breaks the table.
    /// Happened: `inf` beside figures of 300 digits.
    #[test]
    fn times_out_of_range_have_no_figure() {
        let hostile: &[(&str, &[f64])] =
            &[("pipe", &[1e308, 1e308, -1e308]), ("bash", &[1e-308, -1e308, 1e308])];
        let record = record(hostile);
        for text in [table(hostile), markdown(&record), csv(&record).expect("text")] {
            assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        }
        assert!(table(hostile).lines().all(|line| line.chars().count() <= 120), "{}", table(hostile));
    }
}
