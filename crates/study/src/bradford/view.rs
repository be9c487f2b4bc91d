//! `bradford`: the sweeps as lines, peaks beside the published ones, the named pipe put to the test.

use super::{Bradford, bradford};
use model::{CaseRecord, Sample, StudyPart, StudyRecord, Tasks};
use stats::figure::throughput_bytes_per_s;

use super::equivalence::{Equivalence, Verdict, equivalence};
use crate::view::{
    block_axis, case_of, closing, median, or_absent, part, point, section, speed, speed_axis, spread, table,
    years_since,
};
use report::figure::{Chart, Figure, Lines, Point, Scale, Series, SeriesStyle};
use report::noise::{self, is_range};
use report::numbers::{fixed, ratio, size, throughput};
use report::page::{Block, Section};
use report::table::Table;

/// From this size on, blocks are "very large": far beyond what a pipe holds.
const VERY_LARGE_BYTES: u64 = 4 << 20;

pub(crate) fn sections(record: &StudyRecord) -> Vec<Section> {
    let study = bradford();
    let mut sections = Vec::new();
    let (single, threads) = (part(record, "single"), part(record, "threads"));
    if let Some(threads) = threads {
        let lead = vec![
            "One thread writes, another reads; the clock stops when the reader has everything. Blocks of any size work, \
             and every transfer pays for context switches."
                .to_owned(),
        ];
        let blocks =
            vec![Block::Table(peaks(&study, record, threads)), Block::Figure(lines_of(&study, threads))];
        sections.push(section(threads, "Two threads, and sockets", lead, blocks));
    }
    if let Some(single) = single {
        let lead = vec![
            "One thread writes a block and reads it back: the code path alone, with no context switch. It ends at 4 KiB, \
             as in the study, whose pipes held no more."
                .to_owned(),
        ];
        let figure =
            series_figure("bradford-single", "One thread, run by run", single, "pipe", Tasks::Single);
        sections.push(section(single, "One thread", lead, vec![Block::Figure(figure)]));
    }
    sections.extend(part(record, "named").map(|named| named_section(&study, named)));
    sections.extend(part(record, "huge").map(huge_section));
    sections.extend(elsewhere(record));
    sections.push(closing(what_changed(&study, record)));
    sections
}

fn pipes(part: &StudyPart, spec: &str, tasks: Tasks) -> Vec<CaseRecord> {
    let is = |case: &&CaseRecord| case.spec.to_string() == spec && case.tasks == tasks;
    part.cases.iter().filter(is).cloned().collect()
}

/// The best block of a sweep.
fn peak(cases: &[CaseRecord]) -> Option<&CaseRecord> {
    cases
        .iter()
        .filter(|case| median(case).is_some())
        .max_by(|a, b| median(a).unwrap_or(0.0).total_cmp(&median(b).unwrap_or(0.0)))
}

/// What very large blocks settle at: the median over their medians.
fn steady(cases: &[CaseRecord]) -> Option<f64> {
    let large = cases.iter().filter(|case| case.block_bytes >= VERY_LARGE_BYTES);
    stats::estimate::median(&large.filter_map(median).collect::<Vec<f64>>())
}

fn at_block(case: Option<&CaseRecord>) -> String {
    let text = |case: &CaseRecord| {
        let at = format!("{} at {}", throughput(median(case)?), size(case.block_bytes));
        Some(format!("{at}{}", noise::mark(case.noise)))
    };
    or_absent(case.and_then(text))
}

fn peaks(study: &Bradford, record: &StudyRecord, threads: &StudyPart) -> Table {
    let mut rows: Vec<Vec<String>> = study
        .published
        .iter()
        .map(|system| {
            let steady = or_absent(system.steady.clone());
            vec![system.system.clone(), system.peak.clone(), steady, system.one_thread.clone()]
        })
        .collect();
    let one_thread =
        part(record, "single").map(|part| pipes(part, "pipe", Tasks::Single)).unwrap_or_default();
    let cases = pipes(threads, "pipe", Tasks::Threads);
    rows.push(vec![
        format!("here: {}", record.host.kernel),
        at_block(peak(&cases)),
        or_absent(steady(&cases).map(throughput)),
        at_block(peak(&one_thread)),
    ]);
    for spec in ["unix-stream", "tcp"] {
        let cases = pipes(threads, spec, Tasks::Threads);
        let steady = or_absent(steady(&cases).map(throughput));
        rows.push(vec![format!("here: {spec}"), at_block(peak(&cases)), steady, String::new()]);
    }
    for other in record.parts.iter().filter(|part| part.host.is_some()) {
        rows.extend(rows_of_elsewhere(other));
    }
    let columns = ["system", "two threads, peak", "very large blocks", "one thread"];
    table("Published, and here", &columns, rows)
}

fn rows_of_elsewhere(other: &StudyPart) -> Vec<Vec<String>> {
    let row = |(spec, tasks): (String, Tasks)| {
        let cases = pipes(other, &spec, tasks);
        let name = format!("{}: {spec}", kernel_of(other));
        match tasks {
            Tasks::Single => vec![name, String::new(), String::new(), at_block(peak(&cases))],
            _ => vec![name, at_block(peak(&cases)), or_absent(steady(&cases).map(throughput)), String::new()],
        }
    };
    specs_of(other).into_iter().map(row).collect()
}

/// Each run as a line of its own, as the study's charts have it.
fn run_lines(cases: &[CaseRecord]) -> Vec<Series> {
    let rounds = cases.iter().flat_map(|case| &case.samples).map(|sample| sample.round).max();
    let line = |round: u32| {
        let of_round = |case: &CaseRecord| {
            let sample: &Sample = case.samples.iter().find(|sample| sample.round == round)?;
            let y = throughput_bytes_per_s(sample)?;
            Some(Point { x: case.block_bytes as f64, y, low: None, high: None, n: Some(1) })
        };
        Series {
            name: format!("pipe, run {}", round + 1),
            style: SeriesStyle::Measured,
            points: cases.iter().filter_map(of_round).collect(),
        }
    };
    rounds.map(|last| (0..=last).map(line).collect()).unwrap_or_default()
}

fn series_figure(name: &str, title: &str, part: &StudyPart, spec: &str, tasks: Tasks) -> Figure {
    Figure {
        id: name.to_owned(),
        title: title.to_owned(),
        caption: "Each run is a line of its own, as in the study's charts.".to_owned(),
        chart: Chart::Lines(Lines {
            x_axis: block_axis(),
            y_axis: speed_axis(Scale::Log),
            series: run_lines(&pipes(part, spec, tasks)),
        }),
    }
}

fn lines_of(study: &Bradford, threads: &StudyPart) -> Figure {
    let mut series = run_lines(&pipes(threads, "pipe", Tasks::Threads));
    for spec in ["unix-stream", "tcp"] {
        let cases = pipes(threads, spec, Tasks::Threads);
        let points = cases.iter().filter_map(point).collect();
        series.push(Series { name: spec.to_owned(), style: SeriesStyle::Measured, points });
    }
    let ends = study.threads_blocks();
    let (first, last) = (ends.first().copied().unwrap_or(1), ends.last().copied().unwrap_or(1));
    for system in &study.published {
        let level =
            |x: u64| Point { x: x as f64, y: system.peak_mb_per_s * 1e6, low: None, high: None, n: None };
        series.push(Series {
            name: format!("{}, peak", system.system.split(' ').take(2).collect::<Vec<_>>().join(" ")),
            style: SeriesStyle::Published,
            points: vec![level(first), level(last)],
        });
    }
    Figure {
        id: "bradford-threads".to_owned(),
        title: "Two threads: a pipe in every run, and the sockets that the study announced".to_owned(),
        caption: "Sockets are shown by their median. Of the published charts only pictures are left: their peaks, as \
                  the text gives them, are drawn across."
            .to_owned(),
        chart: Chart::Lines(Lines { x_axis: block_axis(), y_axis: speed_axis(Scale::Log), series }),
    }
}

/// Records made elsewhere, as lines of their own.
fn elsewhere(record: &StudyRecord) -> Option<Section> {
    let others: Vec<&StudyPart> = record.parts.iter().filter(|part| part.host.is_some()).collect();
    let mut series = Vec::new();
    for other in &others {
        let kernel = kernel_of(other);
        for (spec, tasks) in specs_of(other) {
            let points = pipes(other, &spec, tasks).iter().filter_map(point).collect();
            let name = format!("{kernel}: {spec}, {tasks}");
            series.push(Series { name, style: SeriesStyle::Measured, points });
        }
    }
    let figure = Figure {
        id: "bradford-elsewhere".to_owned(),
        title: "Measured elsewhere".to_owned(),
        caption:
            "Medians of records made by another program on another machine: not to be set in proportion to \
                  ours."
                .to_owned(),
        chart: Chart::Lines(Lines { x_axis: block_axis(), y_axis: speed_axis(Scale::Log), series }),
    };
    let lead = others.iter().map(|other| format!("{} ({}).", kernel_of(other), other.name)).collect();
    let rows = others.iter().flat_map(|other| rows_of_elsewhere(other)).collect();
    let columns = ["system", "two threads, peak", "very large blocks", "one thread"];
    (!others.is_empty()).then(|| Section {
        id: "elsewhere".to_owned(),
        title: "Measured elsewhere (--windows)".to_owned(),
        lead,
        code: None,
        blocks: vec![Block::Table(table("Peaks", &columns, rows)), Block::Figure(figure)],
    })
}

fn kernel_of(other: &StudyPart) -> &str {
    other.host.as_ref().map(|host| host.kernel.as_str()).unwrap_or_default()
}

/// What a part measured, each once.
fn specs_of(other: &StudyPart) -> Vec<(String, Tasks)> {
    let mut known: Vec<(String, Tasks)> = Vec::new();
    for case in &other.cases {
        let one = (case.spec.to_string(), case.tasks);
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

fn named_section(study: &Bradford, named: &StudyPart) -> Section {
    let how = study.named();
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for pipe in named.cases.iter().filter(|case| case.mechanism == "pipe") {
        let fifo = case_of(named, |case| {
            case.mechanism == "fifo" && case.block_bytes == pipe.block_bytes && case.tasks == pipe.tasks
        });
        let Some(fifo) = fifo else { continue };
        let tested = equivalence(&[(&fifo.samples, &pipe.samples)], how.equivalence);
        rows.push(named_row(
            &pipe.tasks.to_string(),
            &size(pipe.block_bytes),
            [Some(pipe), Some(fifo)],
            tested,
        ));
        all.push((fifo.samples.as_slice(), pipe.samples.as_slice()));
    }
    let together = equivalence(&all, how.equivalence);
    rows.push(named_row("all together", "", [None, None], together));
    let columns = ["tasks", "block", "pipe", "FIFO", "FIFO / pipe", "95 % interval", "rounds", "verdict"];
    let lead = vec![format!(
        "The study found a FIFO \"indistinguishable\" from an anonymous pipe on Linux. Here both take turns, ratios are \
         made round by round, and the word is granted where the whole 95 % interval of the ratio lies within ±{:.0} %; \
         that bound was set before anything was measured.",
        how.equivalence * 100.0
    )];
    let mut blocks = vec![Block::Table(table("A named pipe beside an unnamed one", &columns, rows))];
    if together.is_some_and(|found| found.verdict == Verdict::Different && found.ratio < 1.0) {
        blocks.push(Block::Remarks(vec![
            "The FIFO is slower. In 2001 both ran the same code, and nearly do today; but a FIFO is a file, whose times of \
             access and change the kernel sets at each read and write, and Linux no longer does so for pipes that have no \
             name (since 6.15)."
                .to_owned(),
        ]));
    }
    section(named, "Named against unnamed", lead, blocks)
}

fn named_row(
    tasks: &str,
    block: &str,
    cases: [Option<&CaseRecord>; 2],
    tested: Option<Equivalence>,
) -> Vec<String> {
    let [pipe, fifo] = cases.map(|case| case.map(|case| speed(Some(case))).unwrap_or_default());
    let figures = match tested {
        Some(found) => [
            fixed(found.ratio, 3),
            format!(
                "{} to {}{}",
                fixed(found.low, 3),
                fixed(found.high, 3),
                if is_range(found.pairs) { " (range)" } else { "" }
            ),
            found.pairs.to_string(),
            found.verdict.words().to_owned(),
        ],
        None => [or_absent(None), String::new(), "0".to_owned(), String::new()],
    };
    [vec![tasks.to_owned(), block.to_owned(), pipe, fifo], figures.to_vec()].concat()
}

fn huge_section(huge: &StudyPart) -> Section {
    let figure = |case: &CaseRecord| {
        or_absent(median(case).map(|median| format!("{}{}", throughput(median), noise::mark(case.noise))))
    };
    let row =
        |case: &CaseRecord| vec![case.tasks.to_string(), case.spec.to_string(), figure(case), spread(case)];
    let table = table(
        "Blocks of a size that no pipe holds",
        &["tasks", "pipe", "throughput", "±95 %"],
        huge.cases.iter().map(row).collect(),
    );
    let why = |case: &CaseRecord| Some(format!("{}: {}.", case.tasks, case.error.as_ref()?.message));
    let reasons: Vec<String> = huge.cases.iter().filter_map(why).collect();
    let lead = vec![
        "On Windows a block of 256 MB in one thread made the system swell the pipe's buffer and crawl. A pipe of Linux \
         never swells: it holds what F_SETPIPE_SZ says, and a write of more than there is room for waits for a reader. \
         One thread alone would wait for itself, so that there is a reason in place of a figure; with two threads \
         the block flows through in pieces."
            .to_owned(),
    ];
    section(huge, "A block that no pipe holds", lead, vec![Block::Table(table), Block::Remarks(reasons)])
}

fn what_changed(study: &Bradford, record: &StudyRecord) -> Vec<String> {
    let Some(threads) = part(record, "threads") else { return Vec::new() };
    let cases = pipes(threads, "pipe", Tasks::Threads);
    let (Some(best), Some(linux)) = (peak(&cases), study.published.first()) else { return Vec::new() };
    let best_speed = median(best).unwrap_or(0.0);
    let years = years_since(study.study.year, record);
    let mut text = format!(
        "In {years} years the peak of two threads went from {} to {}, {} times as much",
        linux.peak,
        throughput(best_speed),
        ratio(best_speed / (linux.peak_mb_per_s * 1e6)),
    );
    if let (Some(now), Some(then)) = (steady(&cases), linux.steady_mb_per_s) {
        text.push_str(&format!(
            ", and very large blocks from {} to {}, {} times as much",
            linux.steady.clone().unwrap_or_default(),
            throughput(now),
            ratio(now / (then * 1e6))
        ));
    }
    text.push_str(
        ". Two causes are known. A pipe of Linux 2.4 held one page of 4 KiB, so that every 4 KiB cost a wake-up; since \
         Linux 2.6.11 it holds sixteen. And a block that does not fit a cache is fetched from main memory for each of \
         a pipe's two copies: the caches of 2001 held 256 KiB, and main memory moved a few hundred MB/s.",
    );
    let one = part(record, "single").map(|part| pipes(part, "pipe", Tasks::Single)).unwrap_or_default();
    let smallest = one.first().filter(|case| case.block_bytes == 1).and_then(median);
    if let Some(bytes_per_s) = smallest {
        text.push_str(&format!(
            " What stands against it is the system call: writing one byte and reading it back takes {} ns here \
             ({}).",
            fixed(1e9 / bytes_per_s, 0),
            record.host.mitigations_in_words()
        ));
    }
    vec![text]
}
