//! Comparisons of pipelines, with each other or over several links: wall time with its interval, and whether the output was the same.

use model::{CompareRecord, CompareResult};

use super::section::{Block, Section};
use crate::comparison::whereby;
use crate::figure::{Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Scale, SeriesStyle, Unit};
use crate::lists::grouped;
use crate::{noise, numbers, versus, words};

/// A section for one comparison: a figure for each pipeline over several links, and for each link of several pipelines.
pub(super) fn section(record: &CompareRecord, label: &str, number: usize) -> Section {
    let rankings = versus::rankings(record);
    let what = if rankings.is_empty() { "Links compared" } else { "Pipelines compared" };
    let title = if label.is_empty() { what.to_owned() } else { format!("{what} · {label}") };
    let mut lead = vec![format!(
        "{} of each, in turns within a round; {} before them.",
        words::count(record.trials as usize, "trial"),
        words::count(record.warmup as usize, "untimed run"),
    )];
    if record.interrupted {
        lead.push("Interrupted: what stands here is what was finished.".to_owned());
    }
    lead.extend(rankings.iter().flat_map(|(_, results)| versus::sentences(record, results)));
    lead.extend(versus::remarks(record));
    let results = record.results.iter().map(|result| (result.pipeline.as_str(), result));
    let mut of_links = grouped(results);
    of_links.retain(|_| rankings.len() != 1);
    let of_links = of_links.into_iter().map(|(pipeline, results)| {
        let bars = results.iter().map(|result| bar(&result.via, result));
        (pipeline.to_owned(), bars.collect::<Vec<Bar>>())
    });
    let of_pipelines = rankings.into_iter().map(|(via, results)| {
        let bars = results.iter().map(|result| bar(&result.pipeline, result));
        (whereby(via), bars.collect::<Vec<Bar>>())
    });
    let figures = of_links.chain(of_pipelines).enumerate();
    let blocks = figures.map(|(at, (title, bars))| Block::Figure(figure(title, bars, number * 100 + at)));
    Section { id: format!("compare-{number}"), title, lead, code: None, blocks: blocks.collect() }
}

fn figure(title: String, bars: Vec<Bar>, number: usize) -> Figure {
    Figure {
        id: format!("links-{number}"),
        title,
        caption: format!(
            "Wall time, shorter is better. The mark across is {}; each speck below is one trial.",
            noise::interval_words(bars.iter().map(|bar| bar.samples.len()))
        ),
        chart: Chart::Bars(Bars {
            axis: Axis { label: "median wall time".to_owned(), unit: Unit::Seconds, scale: Scale::Linear },
            groups: vec![BarGroup { name: String::new(), bars }],
            references: Vec::new(),
        }),
    }
}

fn bar(name: &str, result: &CompareResult) -> Bar {
    let n = u32::try_from(result.times_s.len()).ok().filter(|n| *n > 0);
    let (value, note) = (result.median_s, note(result));
    let cell = Cell { value, low: result.low_s, high: result.high_s, n, note, ..Cell::default() };
    Bar { name: name.to_owned(), style: SeriesStyle::Measured, cell, samples: result.times_s.clone() }
}

/// What else came of it: the error first, as it may be all there is.
fn note(result: &CompareResult) -> String {
    let mean = result
        .mean_s
        .zip(result.stddev_s)
        .map(|(mean, sd)| format!("mean {} ± {} s", numbers::fixed(mean, 4), numbers::fixed(sd, 4)));
    let times = |what: &str, ratio: Option<model::Ratio>| {
        ratio.map(|ratio| format!("{} × {what}", numbers::ratio(ratio.median)))
    };
    let output = result.equal.map(|equal| match equal {
        true => "output the same".to_owned(),
        false => "OUTPUT DIFFERS".to_owned(),
    });
    let parts = [
        result.error.clone(),
        output,
        (result.same_output == Some(false)).then(|| "not the output of the first".to_owned()),
        mean,
        times("the fastest", result.times_fastest),
        times("the first link", result.times_first),
        times("the shell alone", result.times_shell),
        result.stored_bytes.map(|bytes| format!("stored {}", numbers::decimal_size(bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}
