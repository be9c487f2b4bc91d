//! `bradford`: shows the sweeps as lines, the peaks beside the published ones, and the test of the named pipe.

use model::{CaseRecord, StudyPart, StudyRecord, Tasks};
use report::chart::{Point, Series, SeriesStyle};
use report::document::{Block, Section};
use report::estimate_value;
use report::interval::is_range;
use report::numbers::{fixed, ratio, size, throughput};
use stats::figure::throughput_bytes_per_s;

use super::equivalence::{Equivalence, Likeness, equivalence};
use super::{Bradford, PublishedSystem, STUDY};
use crate::parameters::StudyToml;
use crate::view::{
    PartView, Texts, absent, case_texts, cases, chart, fastest, line, median, remarks, texts, throughputs,
};

/// Smallest block that counts as "very large", a term that the study does not define: many times the size of a pipe.
const VERY_LARGE_BYTES: u64 = 4 << 20;

pub(super) fn show(view: &PartView<'_>) -> Vec<Block> {
    match view.part.name.as_str() {
        "single" => vec![view.lines(run_lines(&sweep_of(&view.part.cases, "pipe", Tasks::Single)))],
        "threads" => {
            let study: Bradford = STUDY.parameters();
            vec![view.table(peaks(&study, view.record, view.part)), view.lines(lines(&study, view.part))]
        }
        "named" => named(view),
        _ => {
            let why = |case: &CaseRecord| Some(format!("{}: {}.", case.tasks, case.error.as_ref()?.message));
            let whys = remarks(view.part.cases.iter().filter_map(why).collect());
            view.shown().into_iter().chain(whys).collect()
        }
    }
}

/// The cases of one spec and one kind of tasks, by block size.
fn sweep_of<'a>(cases: &'a [CaseRecord], spec: &str, tasks: Tasks) -> Vec<&'a CaseRecord> {
    cases.iter().filter(|case| case.spec.to_string() == spec && case.tasks == tasks).collect()
}

/// The throughput of very large blocks: the median of their medians.
fn steady(cases: &[&CaseRecord]) -> Option<f64> {
    let large = cases.iter().filter(|case| case.block_bytes >= VERY_LARGE_BYTES);
    stats::estimate::median(&large.filter_map(|case| median(case)).collect::<Vec<f64>>())
}

/// The texts of a sweep. For one thread the study has only the peak.
fn sweep_texts(system: String, cases: &[&CaseRecord]) -> Texts {
    let peak = |case: &CaseRecord| Some(format!("{} at {}", estimate_value(case)?, size(case.block_bytes)));
    let peak_text = fastest(cases.iter().copied()).and_then(peak);
    let (system, peak) = (("system", Some(system)), peak_text.or(absent()));
    if cases.first().is_some_and(|case| case.tasks == Tasks::Single) {
        return texts([system, ("single", peak)]);
    }
    texts([system, ("peak", peak), ("steady", steady(cases).map(throughput).or(absent()))])
}

fn peaks(study: &Bradford, record: &StudyRecord, threads: &StudyPart) -> Vec<Texts> {
    let single = sweep_of(cases(record, "single"), "pipe", Tasks::Single);
    let here = sweeps(threads).into_iter().map(|sweep| match sweep[0].spec.to_string().as_str() {
        "pipe" => {
            let here = format!("here: {}", record.head.host.kernel);
            sweep_texts(String::new(), &single).into_iter().chain(sweep_texts(here, &sweep)).collect()
        }
        spec => sweep_texts(format!("here: {spec}"), &sweep),
    });
    let published = study.published.iter().map(|one| one.texts.clone());
    published.chain(here).chain(others(record).flat_map(rows_of)).collect()
}

/// One line for each run, as in the study's charts.
fn run_lines(cases: &[&CaseRecord]) -> Vec<Series> {
    let rounds = cases.iter().flat_map(|case| &case.samples).map(|sample| sample.round + 1).max();
    let line = |round: u32| {
        let of_round = |case: &&CaseRecord| {
            let sample = case.samples.iter().find(|sample| sample.round == round)?;
            let y = throughput_bytes_per_s(sample)?;
            Some(Point::new(case.block_bytes as f64, y, Some(1)))
        };
        let points = cases.iter().filter_map(of_round).collect();
        Series::new(format!("pipe, run {}", round + 1), SeriesStyle::Measured, points)
    };
    (0..rounds.unwrap_or(0)).map(line).collect()
}

fn lines(study: &Bradford, threads: &StudyPart) -> Vec<Series> {
    let mut lines = run_lines(&sweep_of(&threads.cases, "pipe", Tasks::Threads));
    lines.extend(
        ["unix-stream", "tcp"].map(|spec| line(spec, sweep_of(&threads.cases, spec, Tasks::Threads))),
    );
    let ends = [1, threads.cases.iter().map(|case| case.block_bytes).max().unwrap_or(1)];
    let peak = |one: &PublishedSystem| {
        let name = one.texts["system"].split(' ').take(2).collect::<Vec<_>>().join(" ");
        let y = one.peak_mb_per_s * 1e6;
        let points = ends.map(|x| Point::new(x as f64, y, None));
        Series::new(format!("{name}, peak"), SeriesStyle::Published, points.to_vec())
    };
    lines.extend(study.published.iter().map(peak));
    lines
}

/// The records from other machines.
fn others(record: &StudyRecord) -> impl Iterator<Item = &StudyPart> {
    record.parts.iter().filter(|part| part.host.is_some())
}

fn kernel_of(other: &StudyPart) -> &str {
    other.host.as_ref().map(|host| host.kernel.as_str()).unwrap_or_default()
}

/// The cases of a part in groups of one spec and one kind of tasks, in their order.
fn sweeps(part: &StudyPart) -> Vec<Vec<&CaseRecord>> {
    let mut sweeps: Vec<Vec<&CaseRecord>> = Vec::new();
    for case in &part.cases {
        let same = |other: &&CaseRecord| other.spec == case.spec && other.tasks == case.tasks;
        match sweeps.iter_mut().find(|sweep| sweep.first().is_some_and(same)) {
            Some(sweep) => sweep.push(case),
            None => sweeps.push(vec![case]),
        }
    }
    sweeps
}

fn rows_of(other: &StudyPart) -> impl Iterator<Item = Texts> {
    let name = |sweep: &[&CaseRecord]| format!("{}: {}", kernel_of(other), sweep[0].spec);
    sweeps(other).into_iter().map(move |sweep| sweep_texts(name(&sweep), &sweep))
}

pub(super) fn elsewhere(record: &StudyRecord, file: &StudyToml) -> Option<Section> {
    others(record).next()?;
    let line_of = |other: &StudyPart, sweep: Vec<&CaseRecord>| {
        line(&format!("{}: {}, {}", kernel_of(other), sweep[0].spec, sweep[0].tasks), sweep)
    };
    let series =
        others(record).flat_map(|other| sweeps(other).into_iter().map(move |sweep| line_of(other, sweep)));
    let rows = others(record).flat_map(rows_of).collect();
    let chart = chart(
        "bradford-elsewhere",
        "Measured elsewhere",
        "Medians of records made by another program on another machine: not comparable with ours.",
        throughputs(series.collect()),
    );
    // The same columns as the table of the part `threads`.
    let table = file.parts.iter().find(|part| part.name == "threads")?.table.as_ref()?;
    Some(Section {
        id: "elsewhere".to_owned(),
        title: "Measured elsewhere (--windows)".to_owned(),
        lead: others(record).map(|other| format!("{} ({}).", kernel_of(other), other.name)).collect(),
        code: None,
        blocks: vec![table.block("Peaks", rows), chart],
    })
}

fn named(view: &PartView<'_>) -> Vec<Block> {
    let part = view.part;
    let bound = STUDY.parameters::<Bradford>().choice.equivalence_percent / 100.0;
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
    let mut rows: Vec<Texts> = Vec::new();
    for (pipe, fifo) in &pairs {
        let speed = |case| median(case).map(throughput).or(absent());
        let mut row = case_texts(Some(pipe), None);
        row.extend(texts([("pipe", speed(*pipe)), ("fifo", speed(*fifo))]));
        row.extend(found_texts(test(&[(*pipe, *fifo)])));
        rows.push(row);
    }
    let all = texts([("tasks", Some("all together".to_owned()))]);
    rows.push(all.into_iter().chain(found_texts(together)).collect());
    let mut blocks = vec![view.table(rows)];
    if together.is_some_and(|found| found.verdict == Likeness::Different && found.ratio.median < 1.0) {
        blocks.push(Block::Remarks(vec![
            "The FIFO is slower. In 2001 both ran the same code, and nearly do today; but a FIFO is a file, whose times of \
             access and change the kernel sets at each read and write, and Linux no longer does so for pipes that have no \
             name (since 6.15)."
                .to_owned(),
        ]));
    }
    blocks
}

fn found_texts(found: Option<Equivalence>) -> Texts {
    let interval = |found: Equivalence| {
        let range = if is_range(found.pairs) { " (range)" } else { "" };
        format!("{} to {}{range}", fixed(found.ratio.low, 3), fixed(found.ratio.high, 3))
    };
    texts([
        ("ratio", found.map(|found| fixed(found.ratio.median, 3)).or(absent())),
        ("interval", found.map(interval)),
        ("rounds", Some(found.map_or(0, |found| found.pairs).to_string())),
        ("verdict", found.map(|found| found.verdict.to_string())),
    ])
}

pub(super) fn facts_of(record: &StudyRecord) -> Texts {
    let study: Bradford = STUDY.parameters();
    let threads = sweep_of(cases(record, "threads"), "pipe", Tasks::Threads);
    let single = sweep_of(cases(record, "single"), "pipe", Tasks::Single);
    let linux = study.published.first();
    let best = fastest(threads.iter().copied()).and_then(median);
    let large = best.and(steady(&threads)).zip(linux.and_then(|linux| linux.steady_mb_per_s));
    let smallest = single.first().filter(|case| best.is_some() && case.block_bytes == 1);
    texts([
        ("peak then", linux.map(|linux| linux.texts["peak"].clone())),
        ("peak", best.map(throughput)),
        ("times the peak", best.zip(linux).map(|(now, then)| ratio(now / (then.peak_mb_per_s * 1e6)))),
        ("steady then", linux.map(|linux| linux.texts["steady"].clone())),
        ("steady", large.map(|(now, _)| throughput(now))),
        ("times the steady", large.map(|(now, then)| ratio(now / (then * 1e6)))),
        ("ns of a byte", smallest.and_then(|case| median(case)).map(|speed| fixed(1e9 / speed, 0))),
        ("mitigations", Some(record.head.host.mitigations_in_words())),
    ])
}
