//! Comparisons of pipelines over several links: wall time with its interval, and whether the output was the same.

use model::{CompareRecord, CompareResult};

use super::section::{Block, Section};
use crate::figure::{Axis, Bar, BarGroup, Bars, Chart, Figure, Scale, SeriesStyle, Unit};
use crate::{numbers, words};

/// A section for one comparison: a figure for each pipeline.
pub(super) fn section(record: &CompareRecord, label: &str, number: usize) -> Section {
    let title =
        if label.is_empty() { "Links compared".to_owned() } else { format!("Links compared · {label}") };
    let mut lead = vec![format!(
        "{} of each, in turns within a round; {} before them.",
        words::count(record.trials as usize, "trial"),
        words::count(record.warmup as usize, "untimed run"),
    )];
    if record.interrupted {
        lead.push("Interrupted: what stands here is what was finished.".to_owned());
    }
    let blocks = pipelines(record)
        .into_iter()
        .enumerate()
        .map(|(at, pipeline)| Block::Figure(figure(record, pipeline, number * 100 + at)));
    Section { id: format!("compare-{number}"), title, lead, code: None, blocks: blocks.collect() }
}

fn pipelines(record: &CompareRecord) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    for result in &record.results {
        if !texts.contains(&result.pipeline.as_str()) {
            texts.push(&result.pipeline);
        }
    }
    texts
}

fn figure(record: &CompareRecord, pipeline: &str, number: usize) -> Figure {
    let results = record.results.iter().filter(|result| result.pipeline == pipeline);
    let bars: Vec<Bar> = results.map(bar).collect();
    Figure {
        id: format!("links-{number}"),
        title: pipeline.to_owned(),
        caption: "Wall time, shorter is better. The mark across is the 95 % interval of the median; each speck below is \
                  one trial."
            .to_owned(),
        chart: Chart::Bars(Bars {
            axis: Axis { label: "median wall time".to_owned(), unit: Unit::Seconds, scale: Scale::Linear },
            groups: vec![BarGroup { name: String::new(), bars }],
            references: Vec::new(),
        }),
    }
}

fn bar(result: &CompareResult) -> Bar {
    Bar {
        name: result.via.clone(),
        style: SeriesStyle::Measured,
        value: result.median_s,
        low: result.low_s,
        high: result.high_s,
        n: u32::try_from(result.times_s.len()).ok().filter(|n| *n > 0),
        samples: result.times_s.clone(),
        note: note(result),
    }
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
        mean,
        times("the first link", result.times_first),
        times("bash", result.times_bash),
        result.stored_bytes.map(|bytes| format!("stored {}", numbers::decimal_size(bytes))),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}
