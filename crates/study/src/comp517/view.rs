//! `comp517`: each pipeline's table and bars, published beside here.

use super::{Comp517, Link, comp517};
use model::{CompareResult, StudyPart, StudyRecord};

use crate::view::{closing, or_absent, part, published_bar, section, table};
use report::figure::{Axis, Bar, BarGroup, Bars, Cell, Chart, Figure, Scale, SeriesStyle, Unit};
use report::noise::{is_range, level, mark};
use report::numbers::{decimal_size, ratio};
use report::page::{Block, Section};
use report::table::Table;

/// The parts, in the order of the study's pipelines.
const PARTS: [&str; 4] = ["ps", "sort", "ls-h", "ls-l"];

/// From this multiple of the pipe's time on, a link shows.
const SHOWS: f64 = 1.2;

pub(crate) fn sections(record: &StudyRecord) -> Vec<Section> {
    let study = comp517();
    let mut sections: Vec<Section> = PARTS
        .into_iter()
        .enumerate()
        .filter_map(|(index, name)| Some(pipeline_section(&study, index, part(record, name)?)))
        .collect();
    sections.push(closing(what_changed(&study, record)));
    sections
}

fn pipeline_section(study: &Comp517, index: usize, part: &StudyPart) -> Section {
    let text = study.pipelines[index].shown();
    let table = pipeline_table(study, index, part);
    let mut lead = vec![
        "The study's file pipes run one side after the other; those marked parallel are ours, whose reader follows the \
         writer."
            .to_owned(),
    ];
    if varies(part) {
        lead.push(
            "The output differs from run to run even over the true pipe (it shows process numbers, and `grep` finds \
             itself): here nothing can be compared."
                .to_owned(),
        );
    }
    if !varies(part) && sees_a_file(part) {
        lead.push(
            "Over the sequential files the last program reads from a file and sees that it is one: `wc` makes its columns \
             as wide as the file's size asks for. The numbers are the same, the blanks before them are not, and a \
             comparison byte by byte says so."
                .to_owned(),
        );
    }
    let figure = Block::Figure(figure(study, index, part, &text));
    Section { code: Some(text.clone()), ..section(part, &text, lead, vec![Block::Table(table), figure]) }
}

/// Time as a multiple of the true pipe's: the quotient of the means shown, as the published one is.
fn times_pipe(study: &Comp517, part: &StudyPart, result: &CompareResult) -> Option<f64> {
    let pipe = result_of(part, study.links.first()?)?;
    Some(result.mean_s? / pipe.mean_s?)
}

/// Whether the reference's own output changed from trial to trial.
fn varies(part: &StudyPart) -> bool {
    part.results.first().is_some_and(differs)
}

/// Whether outputs differ where the reader has a file for its input, and nowhere else.
fn sees_a_file(part: &StudyPart) -> bool {
    let (files, others): (Vec<_>, Vec<_>) =
        part.results.iter().partition(|result| result.via.contains("order=sequential"));
    files.into_iter().any(differs) && !others.into_iter().any(differs)
}

fn differs(result: &CompareResult) -> bool {
    result.equal == Some(false)
}

fn result_of<'a>(part: &'a StudyPart, link: &Link) -> Option<&'a CompareResult> {
    part.results.iter().find(|result| result.via == link.via)
}

fn pipeline_table(study: &Comp517, index: usize, part: &StudyPart) -> Table {
    let row = |link: &Link| {
        let published = link.published.get(index);
        let pipe = study.links.first().and_then(|pipe| pipe.published.get(index));
        let times_then = published.zip(pipe).map(|(link, pipe)| ratio(link[0] / pipe[0]));
        let here = result_of(part, link);
        let times_now = here.and_then(|result| times_pipe(study, part, result)).map(ratio);
        vec![
            link.name.clone(),
            link.via.clone(),
            or_absent(published.map(|[mean, sd, _]| format!("{mean} ± {sd} s"))),
            or_absent(times_then),
            or_absent(published.map(|[.., stored]| format!("{stored} MB"))),
            here.map(mean).unwrap_or_default(),
            or_absent(times_now),
            or_absent(here.and_then(|result| result.stored_bytes).map(decimal_size)),
            here.map(|result| output(result, varies(part))).unwrap_or_default(),
        ]
    };
    let columns = [
        "link",
        "here as",
        "published mean ± sd",
        "× pipe",
        "stored",
        "here mean ± sd",
        "× pipe",
        "stored",
        "output",
    ];
    table("Published, and here", &columns, study.links.iter().map(row).collect())
}

fn mean(result: &CompareResult) -> String {
    match (result.mean_s, result.stddev_s, &result.error) {
        (Some(mean), Some(sd), _) => format!("{mean:.4} ± {sd:.4} s{}", mark(level(&result.times_s))),
        (_, _, Some(error)) => error.clone(),
        _ => or_absent(None),
    }
}

fn output(result: &CompareResult, varies: bool) -> String {
    match result.equal {
        None => String::new(),
        Some(_) if varies => "varies by itself".to_owned(),
        Some(true) => "same".to_owned(),
        Some(false) => "DIFFERS".to_owned(),
    }
}

fn figure(study: &Comp517, index: usize, part: &StudyPart, title: &str) -> Figure {
    let group = |link: &Link| {
        let mut bars = Vec::new();
        if let Some([mean, sd, _]) = link.published.get(index) {
            let mut bar = published_bar("published", Some(*mean), "mean and standard deviation");
            (bar.cell.low, bar.cell.high) = (Some((mean - sd).max(0.0)), Some(mean + sd));
            bars.push(bar);
        }
        bars.extend(result_of(part, link).map(here_bar));
        BarGroup { name: link.name.clone(), bars }
    };
    Figure {
        id: format!("comp517-{}", part.name),
        title: title.to_owned(),
        caption: format!(
            "Wall time, shorter is better. Here: the median with its {}, and each trial as a speck.",
            if part.results.iter().any(|result| is_range(result.times_s.len())) {
                "range"
            } else {
                "95 % interval"
            }
        ),
        chart: Chart::Bars(Bars {
            axis: Axis { label: "wall time".to_owned(), unit: Unit::Seconds, scale: Scale::Log },
            groups: study.links.iter().map(group).collect(),
            references: Vec::new(),
        }),
    }
}

fn here_bar(result: &CompareResult) -> Bar {
    let n = u32::try_from(result.times_s.len()).ok().filter(|n| *n > 0);
    let note = result.error.clone().unwrap_or_default();
    let cell = Cell { value: result.median_s, low: result.low_s, high: result.high_s, n, note };
    let samples = result.times_s.clone();
    Bar { name: "here".to_owned(), style: SeriesStyle::Measured, cell, samples }
}

fn what_changed(study: &Comp517, record: &StudyRecord) -> Vec<String> {
    let time = |name: &str, via: &str| {
        let part = part(record, name)?;
        times_pipe(study, part, part.results.iter().find(|result| result.via == via)?)
    };
    let mut text = "In the study it hardly showed what the links were made of: the starts of the programs and the work of \
                    `sort` and `ls` took the time. Only O_SYNC did, which makes every write wait for the storage."
        .to_owned();
    if let (Some(sequential), Some(parallel)) = (time("sort", "file:order=sequential"), time("sort", "file"))
    {
        text.push_str(&format!(
            " Here a file pipe takes {} times the true pipe's time for the sorted file when one side waits for the other, \
             and {} times with both sides running, which the study could not do.",
            ratio(sequential),
            ratio(parallel)
        ));
        if sequential > SHOWS {
            text.push_str(
                " So it shows more than it did that two programs cannot work at once, and that every byte is stored on \
                 its way.",
            );
        }
    }
    if let (Some(then), Some(now)) = (published_sync(study, 1), time("sort", "file:sync,order=sequential")) {
        text.push_str(&format!(
            " O_SYNC cost {} times the pipe's time then, and {} times here: that ratio is the storage's, which on a \
             virtual machine may answer before anything is on a disk, and not the kernel's.",
            ratio(then),
            ratio(now)
        ));
    }
    vec![text]
}

/// What O_SYNC cost, as a multiple of the pipe.
fn published_sync(study: &Comp517, index: usize) -> Option<f64> {
    let of = |via: &str| study.links.iter().find(|link| link.via == via)?.published.get(index);
    Some(of("file:sync,order=sequential")?[0] / of("pipe")?[0])
}
