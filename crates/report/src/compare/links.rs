//! One pipeline over several links: its table, its chart, and the remark on each bar.

use model::CompareResult;

use super::pipelines::{named_times, seconds, with_errors};
use crate::chart::{Bar, BarGroup, Bars, Chart, ChartAxis, ChartCell, ChartData, Scale, SeriesStyle};
use crate::interval;
use crate::layout::Tone;
use crate::numbers::{decimal_size, ratio};
use crate::sheet::{Sheet, col};
use crate::table::Table;
use crate::unit::Unit;

/// The links with their times, the fastest in bold.
pub(super) fn table(results: &[&CompareResult]) -> Table {
    let first = results.first().and_then(|first| first.median_s);
    let shell = results.iter().find(|result| result.is_shell_alone());
    let times_shell = format!("× {}", shell.map_or("shell", |shell| shell.via.as_str()));
    let shell_s = shell.and_then(|shell| shell.median_s);
    let mut sheet = Sheet::new(results);
    named_times(&mut sheet, col("link"), results, |result| &result.via);
    // The quotients of the medians that the table shows.
    let times = |result: &CompareResult, other: Option<f64>| Some(Unit::Times.of(result.median_s? / other?));
    sheet.add(col("× first").drop(1), |result| times(result, first));
    sheet.add(col(times_shell).drop(2), |result| times(result, shell_s));
    sheet.add(col("stored").drop(5), |result| Some(Unit::Amount.of(result.stored_bytes? as f64)));
    sheet.add(col("output").right(), |result| Some(if result.equal? { "same" } else { "DIFFERS" }.into()));
    let mut table = with_errors(sheet, results);
    let fastest = results.iter().filter_map(|result| result.median_s).fold(f64::INFINITY, f64::min);
    for (row, result) in table.rows.iter_mut().zip(results) {
        row.tone = if result.median_s == Some(fastest) { Tone::Bold } else { Tone::Plain };
    }
    table
}

pub(super) fn chart(title: String, bars: Vec<Bar>, number: usize, what: &str) -> Chart {
    Chart {
        id: format!("links-{number}"),
        title,
        caption: format!(
            "{what}, shorter is better. The mark across is {}; each dot below is one trial.",
            interval::interval_words(bars.iter().map(|bar| bar.samples.len()))
        ),
        data: ChartData::Bars(Bars {
            axis: ChartAxis::new(format!("median {}", what.to_lowercase()), Unit::Seconds, Scale::Linear),
            groups: vec![BarGroup { name: String::new(), bars }],
            references: Vec::new(),
        }),
    }
}

pub(super) fn bar(name: &str, result: &CompareResult) -> Bar {
    let n = u32::try_from(result.times_s.len()).ok().filter(|n| *n > 0);
    let (value, note) = (result.median_s, note(result));
    let cell = ChartCell { value, low: result.low_s, high: result.high_s, n, note };
    Bar { name: name.to_owned(), style: SeriesStyle::Measured, cell, samples: result.times_s.clone() }
}

/// The error, the output, and further figures.
fn note(result: &CompareResult) -> String {
    let mean = result.mean_s.zip(result.stddev_s);
    let times = |what: &str, found: Option<model::Ratio>| {
        found.map(|found| format!("{} × {what}", ratio(found.median)))
    };
    let output = |equal| if equal { "output the same" } else { "OUTPUT DIFFERS" }.to_owned();
    let parts = [
        result.error.clone(),
        result.equal.map(output),
        (result.same_output == Some(false)).then(|| "not the output of the first".to_owned()),
        mean.map(|(mean, sd)| format!("mean {} ± {}", seconds(mean), seconds(sd))),
        times("the fastest", result.times_fastest),
        times("the first link", result.times_first),
        times("the shell alone", result.times_shell),
        result.stored_bytes.map(|bytes| format!("stored {}", decimal_size(bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}
