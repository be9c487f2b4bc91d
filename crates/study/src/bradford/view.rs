//! `bradford`: the sweeps as lines, peaks beside the published ones, the named pipe put to the test.

use model::{CaseRecord, StudyPart, StudyRecord, Tasks};
use report::document::{Block, Section};
use report::figure::{Point, Series, SeriesStyle};
use report::noise::{is_range, mark};
use report::numbers::{fixed, ratio, size, throughput};
use stats::figure::throughput_bytes_per_s;

use super::Bradford;
use super::equivalence::{Equivalence, Verdict, equivalence};
use crate::File;
use crate::view::{
    Facts, PartView, facts, figure, line, marked_speed, median, or_absent, part, remarks, speed, spread,
    text_table, throughputs,
};

/// From this size on, blocks are "very large": far beyond what a pipe holds.
const VERY_LARGE_BYTES: u64 = 4 << 20;

pub(super) fn threads(view: &PartView<'_>) -> Vec<Block> {
    let study = Bradford::read();
    vec![view.text_table(peaks(&study, view.record, view.part)), view.lines(sweep(&study, view.part))]
}

pub(super) fn single(view: &PartView<'_>) -> Vec<Block> {
    vec![view.lines(run_lines(&sweep_of(view.part, "pipe", Tasks::Single)))]
}

/// The cases of a mechanism and tasks, block size by block size.
fn sweep_of<'a>(part: &'a StudyPart, spec: &str, tasks: Tasks) -> Vec<&'a CaseRecord> {
    part.cases.iter().filter(|case| case.spec.to_string() == spec && case.tasks == tasks).collect()
}

/// The best block of a sweep.
fn peak<'a>(cases: &[&'a CaseRecord]) -> Option<&'a CaseRecord> {
    let known = cases.iter().copied().filter_map(|case| Some((median(case)?, case)));
    known.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, case)| case)
}

/// What very large blocks settle at: the median over their medians.
fn steady(cases: &[&CaseRecord]) -> Option<f64> {
    let large = cases.iter().filter(|case| case.block_bytes >= VERY_LARGE_BYTES);
    stats::estimate::median(&large.filter_map(|case| median(case)).collect::<Vec<f64>>())
}

/// The peak of a sweep as text.
fn peak_text(cases: &[&CaseRecord]) -> String {
    or_absent(peak(cases).and_then(|case| {
        let at = format!("{} at {}", throughput(median(case)?), size(case.block_bytes));
        Some(format!("{at}{}", mark(case.noise)))
    }))
}

fn steady_text(cases: &[&CaseRecord]) -> String {
    or_absent(steady(cases).map(throughput))
}

fn peaks(study: &Bradford, record: &StudyRecord, threads: &StudyPart) -> Vec<Vec<String>> {
    let published = study.published.iter().map(|one| {
        vec![one.system.clone(), one.peak.clone(), or_absent(one.steady.clone()), one.one_thread.clone()]
    });
    let mut rows: Vec<Vec<String>> = published.collect();
    let one_thread = part(record, "single").map(|part| sweep_of(part, "pipe", Tasks::Single));
    for (spec, name, single) in [
        ("pipe", record.head.host.kernel.as_str(), peak_text(&one_thread.unwrap_or_default())),
        ("unix-stream", "unix-stream", String::new()),
        ("tcp", "tcp", String::new()),
    ] {
        let cases = sweep_of(threads, spec, Tasks::Threads);
        rows.push(vec![format!("here: {name}"), peak_text(&cases), steady_text(&cases), single]);
    }
    rows.extend(others(record).flat_map(rows_of));
    rows
}

/// Each run as a line of its own, as the study's charts have it.
fn run_lines(cases: &[&CaseRecord]) -> Vec<Series> {
    let rounds = cases.iter().flat_map(|case| &case.samples).map(|sample| sample.round + 1).max();
    let line = |round: u32| {
        let of_round = |case: &&CaseRecord| {
            let sample = case.samples.iter().find(|sample| sample.round == round)?;
            let y = throughput_bytes_per_s(sample)?;
            Some(Point { x: case.block_bytes as f64, y, low: None, high: None, n: Some(1) })
        };
        Series {
            name: format!("pipe, run {}", round + 1),
            style: SeriesStyle::Measured,
            points: cases.iter().filter_map(of_round).collect(),
            model: Vec::new(),
        }
    };
    (0..rounds.unwrap_or(0)).map(line).collect()
}

fn sweep(study: &Bradford, threads: &StudyPart) -> Vec<Series> {
    let mut series = run_lines(&sweep_of(threads, "pipe", Tasks::Threads));
    series.extend(["unix-stream", "tcp"].map(|spec| line(spec, sweep_of(threads, spec, Tasks::Threads))));
    let ends = [1, study.choice.threads_block_max.value];
    for one in &study.published {
        let y = one.peak_mb_per_s * 1e6;
        series.push(Series {
            name: format!("{}, peak", one.system.split(' ').take(2).collect::<Vec<_>>().join(" ")),
            style: SeriesStyle::Published,
            points: ends.map(|x| Point { x: x as f64, y, low: None, high: None, n: None }).to_vec(),
            model: Vec::new(),
        });
    }
    series
}

/// Records made elsewhere.
fn others(record: &StudyRecord) -> impl Iterator<Item = &StudyPart> {
    record.parts.iter().filter(|part| part.host.is_some())
}

fn kernel_of(other: &StudyPart) -> &str {
    other.host.as_ref().map(|host| host.kernel.as_str()).unwrap_or_default()
}

/// The sweeps of a part, each once.
fn sweeps(other: &StudyPart) -> Vec<(String, Tasks)> {
    let mut known: Vec<(String, Tasks)> = Vec::new();
    for case in &other.cases {
        let one = (case.spec.to_string(), case.tasks);
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

fn rows_of(other: &StudyPart) -> Vec<Vec<String>> {
    let row = |(spec, tasks): (String, Tasks)| {
        let cases = sweep_of(other, &spec, tasks);
        let name = format!("{}: {spec}", kernel_of(other));
        match tasks {
            Tasks::Single => vec![name, String::new(), String::new(), peak_text(&cases)],
            _ => vec![name, peak_text(&cases), steady_text(&cases), String::new()],
        }
    };
    sweeps(other).into_iter().map(row).collect()
}

pub(super) fn elsewhere(record: &StudyRecord, file: &File) -> Option<Section> {
    others(record).next()?;
    let line_of = |other, (spec, tasks): (String, Tasks)| {
        line(&format!("{}: {spec}, {tasks}", kernel_of(other)), sweep_of(other, &spec, tasks))
    };
    let series =
        others(record).flat_map(|other| sweeps(other).into_iter().map(move |one| line_of(other, one)));
    let rows = others(record).flat_map(rows_of).collect();
    let figure = figure(
        "bradford-elsewhere",
        "Measured elsewhere",
        "Medians of records made by another program on another machine: not comparable with ours.",
        throughputs(series.collect()),
    );
    // As the published peaks and ours.
    let columns = file.parts.iter().find(|part| part.name == "threads")?.table.as_ref()?;
    Some(Section {
        id: "elsewhere".to_owned(),
        title: "Measured elsewhere (--windows)".to_owned(),
        lead: others(record).map(|other| format!("{} ({}).", kernel_of(other), other.name)).collect(),
        code: None,
        blocks: vec![text_table("Peaks", columns.headings(), rows), figure],
    })
}

/// A pipe and a FIFO that took turns, or all of them together, and what follows.
type Compared<'a> = (Option<(&'a CaseRecord, &'a CaseRecord)>, Option<Equivalence>);

pub(super) fn named(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let bound = Bradford::read().choice.equivalence_percent / 100.0;
    let test = |pairs: &[(&CaseRecord, &CaseRecord)]| {
        let samples: Vec<_> =
            pairs.iter().map(|(pipe, fifo)| (&fifo.samples[..], &pipe.samples[..])).collect();
        equivalence(&samples, bound)
    };
    let pipes = part.cases.iter().filter(|case| case.mechanism == "pipe");
    let pairs = pipes.filter_map(|pipe| {
        let is_pair = |case: &&CaseRecord| {
            case.mechanism == "fifo" && case.block_bytes == pipe.block_bytes && case.tasks == pipe.tasks
        };
        Some((pipe, part.cases.iter().find(is_pair)?))
    });
    let pairs: Vec<_> = pairs.collect();
    let together = test(&pairs);
    let rows = pairs.iter().map(|pair| (Some(*pair), test(&[*pair]))).chain([(None, together)]);
    let of_pair = |row: &Compared<'_>, text: &dyn Fn(&CaseRecord, &CaseRecord) -> String| {
        row.0.map(|(pipe, fifo)| text(pipe, fifo)).unwrap_or_default()
    };
    let found =
        |row: &Compared<'_>, text: &dyn Fn(Equivalence) -> String| row.1.map(text).unwrap_or_default();
    let mut blocks = vec![view.table(
        rows,
        &[
            ("tasks", &|row| match row.0 {
                Some((pipe, _)) => pipe.tasks.to_string(),
                None => "all together".to_owned(),
            }),
            ("block", &|row| of_pair(row, &|pipe, _| size(pipe.block_bytes))),
            ("pipe", &|row| of_pair(row, &|pipe, _| speed(Some(pipe)))),
            ("fifo", &|row| of_pair(row, &|_, fifo| speed(Some(fifo)))),
            ("ratio", &|row| or_absent(row.1.map(|found| fixed(found.ratio, 3)))),
            ("interval", &|row| {
                found(row, &|found| {
                    let range = if is_range(found.pairs) { " (range)" } else { "" };
                    format!("{} to {}{range}", fixed(found.low, 3), fixed(found.high, 3))
                })
            }),
            ("rounds", &|row| row.1.map_or(0, |found| found.pairs).to_string()),
            ("verdict", &|row| found(row, &|found| found.verdict.words().to_owned())),
        ],
    )];
    if together.is_some_and(|found| found.verdict == Verdict::Different && found.ratio < 1.0) {
        blocks.push(Block::Remarks(vec![
            "The FIFO is slower. In 2001 both ran the same code, and nearly do today; but a FIFO is a file, whose times of \
             access and change the kernel sets at each read and write, and Linux no longer does so for pipes that have no \
             name (since 6.15)."
                .to_owned(),
        ]));
    }
    blocks
}

pub(super) fn huge(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let mut blocks = vec![view.table(
        &part.cases,
        &[
            ("tasks", &|case| case.tasks.to_string()),
            ("pipe", &|case| case.spec.to_string()),
            ("throughput", &|case| marked_speed(case)),
            ("spread", &|case| spread(Some(case))),
        ],
    )];
    let why = |case: &CaseRecord| Some(format!("{}: {}.", case.tasks, case.error.as_ref()?.message));
    blocks.extend(remarks(part.cases.iter().filter_map(why).collect()));
    blocks
}

pub(super) fn facts_of(record: &StudyRecord) -> Facts {
    let study = Bradford::read();
    let threads =
        part(record, "threads").map(|part| sweep_of(part, "pipe", Tasks::Threads)).unwrap_or_default();
    let single = part(record, "single").map(|part| sweep_of(part, "pipe", Tasks::Single)).unwrap_or_default();
    let linux = study.published.first();
    let best = peak(&threads).and_then(median);
    let large = best.and(steady(&threads)).zip(linux.and_then(|linux| linux.steady_mb_per_s));
    let smallest = single.first().filter(|case| best.is_some() && case.block_bytes == 1);
    facts([
        ("peak then", linux.map(|linux| linux.peak.clone())),
        ("peak", best.map(throughput)),
        ("times the peak", best.zip(linux).map(|(now, then)| ratio(now / (then.peak_mb_per_s * 1e6)))),
        ("steady then", linux.and_then(|linux| linux.steady.clone())),
        ("steady", large.map(|(now, _)| throughput(now))),
        ("times the steady", large.map(|(now, then)| ratio(now / (then * 1e6)))),
        ("ns of a byte", smallest.and_then(|case| median(case)).map(|speed| fixed(1e9 / speed, 0))),
        ("mitigations", Some(record.head.host.mitigations_in_words())),
    ])
}
