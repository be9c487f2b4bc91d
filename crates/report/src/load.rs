//! Many pairs, senders or receivers, and given rates: how figures change with the load, as tables, sentences and figures.

use model::{BenchRecord, CaseRecord, DataLevel, Load, Role, Tasks, Workload};
use stats::choice::counts_server_only;
use stats::tail::Tail;
use stats::{figure, load};

use crate::case_figure::{estimated, figure_text};
use crate::figure::{Axis, Chart, Figure, Lines, Point, Scale, Series, SeriesStyle, Unit};
use crate::lists::{distinct, grouped, joined_if_any};
use crate::reason::reason;
use crate::table::{ABSENT, Column, Fit, Table};
use crate::verdict::cpu_per_block_ns;
use crate::view::Axes;
use crate::{numbers, tail, words};

/// The cases with a given load.
pub(crate) fn loaded(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(|case| case.role == Role::Ranked && case.load().is_requested())
}

/// What the rows of one table have in common: the axes, the block size, and which of pairs, senders, receivers and rate are given.
fn common(case: &CaseRecord) -> (Axes, u64, [bool; 4]) {
    let Load { pairs, senders, receivers, rate_per_s } = case.load();
    let asked = [pairs, senders, receivers, rate_per_s].map(|part| part.is_some());
    (Axes::from_case(case), case.block_bytes, asked)
}

/// The cases of each table, by mechanism and then by load.
fn groups(record: &BenchRecord) -> Vec<Vec<&CaseRecord>> {
    let mut groups = Vec::new();
    for (_, cases) in grouped(loaded(record).map(|case| (common(case), case))) {
        let mut by_spec = grouped(cases.into_iter().map(|case| (&case.spec, case)));
        by_spec.iter_mut().for_each(|(_, cases)| model::sort_by_key(cases, |case| case.load()));
        groups.push(by_spec.into_iter().flat_map(|(_, cases)| cases).collect());
    }
    groups
}

/// A table for each workload, block and placement.
pub(crate) fn tables(record: &BenchRecord) -> Vec<Table> {
    let table = |cases: Vec<&CaseRecord>| {
        let mut table = table(&cases, record.settings.interrupted);
        table.title = title(&cases);
        table.notes = ceiling(record, &cases).into_iter().collect();
        table
    };
    groups(record).into_iter().map(table).collect()
}

fn title(cases: &[&CaseRecord]) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let block = numbers::size(first.block_bytes);
    let blocks = match first.workload {
        Workload::Stream => format!("{block} blocks"),
        Workload::PingPong => format!("round trips of {block}"),
    };
    let mut cpus: Vec<u32> = cases.iter().flat_map(|case| case.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let tasks = first.tasks.word();
    let ends = match (first.load(), cpus.as_slice()) {
        (load, []) if load.shares_an_end() => format!("{tasks}, placed by the scheduler"),
        (load, cpus) if load.shares_an_end() => format!("{tasks} on {}", words::cpus(cpus)),
        // The CPUs of all pairs do not show on which one the other end of a pair is.
        (Load { pairs: Some(_), .. }, [_, ..]) => {
            format!("pairs of ends in {tasks}, each placed `{}`, on {}", first.placement, words::cpus(&cpus))
        }
        _ => words::ends(first.tasks, first.placement, &cpus),
    };
    let data = match first.load().shares_an_end() {
        true if first.data == DataLevel::Verify => "every block checked",
        _ => words::data(first.data, first.check),
    };
    [blocks, ends, data.to_owned()].join(" · ")
}

fn table(cases: &[&CaseRecord], interrupted: bool) -> Table {
    let mut table = Table::default();
    let mut add = |column: Column, cell: &dyn Fn(&CaseRecord) -> Option<String>| {
        table.add(column, cases.iter().map(|case| cell(case)));
    };
    let right = |title: &str| Column::right(title);
    let median = |case: &CaseRecord, of: fn(&model::Sample) -> Option<f64>, text: fn(f64) -> String| {
        figure::median_of(case, of).map(text)
    };
    add(Column::left("mechanism").fit(Fit::Spec), &|case| Some(case.spec.to_string()));
    add(right("pairs").drop(1), &|case| Some(case.pairs?.to_string()));
    add(right("senders").drop(1), &|case| Some(case.senders?.to_string()));
    add(right("receivers").drop(1), &|case| Some(case.receivers?.to_string()));
    add(right("asked for").drop(1), &|case| load::offered_per_s(case).map(per_s));
    add(right("throughput").drop(1), &|case| figure_text(case).filter(|_| case.throughput.is_some()));
    add(right("each").drop(4), &|case| {
        case.throughput.as_ref()?;
        median(case, load::share_bytes_per_s, numbers::throughput)
    });
    add(right("reached").drop(2), &|case| {
        case.latency_ns.as_ref().map(drop).or(case.rate_per_s.map(drop))?;
        load::reached_per_s(case).map(per_s)
    });
    add(right("× one").drop(3), &|case| times_one(case, cases).map(numbers::ratio));
    add(right("fairness").drop(5), &|case| median(case, load::fairness, |index| numbers::fixed(index, 2)));
    add(right("torn blocks").short("torn").drop(2), &|case| torn_percent(case));
    add(right("p50").drop(1), &|case| figure_text(case).filter(|_| case.latency_ns.is_some()));
    add(right("p99").drop(2), &|case| tail::cell(case.latency_ns.as_ref(), Tail::P99));
    add(right("p99.9").drop(6), &|case| tail::cell(case.latency_ns.as_ref(), Tail::P999));
    add(right("since sent, p50").short("sent, p50").drop(8), &|case| service(case).map(|[p50, _]| p50));
    add(right("since sent, p99").short("sent, p99").drop(7), &|case| service(case).map(|[_, p99]| p99));
    // The client of paced round trips is a generator of load.
    let cpu = match cases.first() {
        Some(first) if counts_server_only(first) => {
            right("server's CPU per trip").short("server CPU").drop(3)
        }
        _ => right("CPU per message").short("CPU/msg").drop(9),
    };
    add(cpu, &|case| cpu_per_block_ns(case).map(numbers::time));
    for (row, case) in table.rows.iter_mut().zip(cases) {
        row.reasons = reason(case, interrupted).into_iter().collect();
    }
    table.explain(
        "server's CPU per trip",
        "server's CPU per trip: without the client, which only makes the load.",
    );
    table.explain("each", "each: the throughput of the median one while all of them ran.");
    table.explain("fairness", "fairness: Jain's index of their progress, 1 if all are equal.");
    table
}

/// The share of blocks that did not arrive in one piece; one that is not 0 does not read as 0.
pub(crate) fn torn_percent(case: &CaseRecord) -> Option<String> {
    let share = load::torn_share(case)?;
    Some(if share > 0.0 && share < 0.0005 { "<0.1 %".to_owned() } else { numbers::percent(share) })
}

fn per_s(rate: f64) -> String {
    format!("{}/s", numbers::grouped(rate, 0))
}

/// Median and 99th percentile of the round trip since the request was sent, which may be later than it was due; `None` for a damaged
/// histogram.
fn service(case: &CaseRecord) -> Option<[String; 2]> {
    let [p50, p99] = load::service_ns(case, [0.5, 0.99]).ok()??.map(|ns| numbers::time(ns as f64));
    let has_tail = case.latency_ns.as_ref().is_some_and(|all| Tail::P99.ns(all).is_some());
    Some([p50, if has_tail { p99 } else { ABSENT.to_owned() }])
}

/// The figure that grows with the load: bytes per second, or round trips per second if no rate is given.
fn headline(case: &CaseRecord) -> Option<f64> {
    match case.workload {
        Workload::Stream => Some(case.throughput.as_ref()?.median_bytes_per_s),
        Workload::PingPong if case.rate_per_s.is_none() => load::reached_per_s(case),
        Workload::PingPong => None,
    }
}

/// The figure divided by that of one pair, one sender or one receiver of the same mechanism.
fn times_one(case: &CaseRecord, cases: &[&CaseRecord]) -> Option<f64> {
    let load = case.load();
    let [pairs, senders, receivers] = [load.pairs, load.senders, load.receivers].map(|part| part.map(|_| 1));
    let one = Load { pairs, senders, receivers, ..load };
    let one = cases.iter().find(|other| other.spec == case.spec && other.load() == one)?;
    Some(headline(case)? / headline(one)?).filter(|times| times.is_finite())
}

/// The ceiling of streams of this block size.
fn ceiling(record: &BenchRecord, cases: &[&CaseRecord]) -> Option<String> {
    let block_bytes = cases.first().filter(|case| case.workload == Workload::Stream)?.block_bytes;
    let of_block = |case: &&CaseRecord| case.role == Role::Ceiling && case.block_bytes == block_bytes;
    let ceiling = record.cases.iter().find(of_block)?;
    let speed = numbers::throughput(ceiling.throughput.as_ref()?.median_bytes_per_s);
    Some(format!("ceiling  {} {speed} (one task, data {})", ceiling.spec, ceiling.data))
}

/// Remarks on rates that were not reached, divided blocks, and tasks without a CPU of their own.
pub(crate) fn remarks(record: &BenchRecord) -> Vec<String> {
    let mut lines: Vec<String> = loaded(record).filter_map(not_kept_up).collect();
    lines.extend(torn(record, |load| load.senders.is_some()).map(|on| {
        format!(
            "Blocks of several senders were mixed on {on}: they need a length and a lock, or a mechanism that keeps boundaries. No byte \
             was lost."
        )
    }));
    lines.extend(torn(record, |load| load.receivers.is_some()).map(|on| {
        format!(
            "Blocks were divided among receivers on {on}: a receiver got the beginning of one and another the rest. Take a lock around \
             all reads of a block, smaller blocks, or a mechanism that keeps boundaries. No byte was lost."
        )
    }));
    lines.extend(crowded(record));
    lines.extend(tail::remark(loaded(record)));
    lines.extend(tail::intervals(loaded(record)));
    lines
}

fn not_kept_up(case: &CaseRecord) -> Option<String> {
    let (offered, reached) = (load::offered_per_s(case)?, load::reached_per_s(case)?);
    let effect = match case.workload {
        Workload::PingPong => "Its requests pile up, and its times grow with the length of a trial.",
        Workload::Stream => "Its sender is always late, and sends at full speed.",
    };
    (!load::keeps_up(reached, offered)).then(|| {
        format!(
            "{} does not keep up with {}: it reached {}. {effect}",
            case.spec,
            per_s(offered),
            per_s(reached)
        )
    })
}

/// The mechanisms and block sizes with blocks that did not arrive in one piece, among the cases for whose load `has_load` is true.
fn torn(record: &BenchRecord, has_load: fn(Load) -> bool) -> Option<String> {
    let torn = loaded(record).filter(|case| has_load(case.load()));
    let torn = torn.filter(|case| load::torn_share(case).is_some_and(|share| share > 0.0));
    let named = grouped(torn.map(|case| (case.spec.to_string(), numbers::size(case.block_bytes))));
    // A size has a row for each number of senders or receivers.
    let with_sizes = |(spec, blocks)| format!("{spec} ({})", distinct(blocks).join(", "));
    joined_if_any(named.into_iter().map(with_sizes), "; ")
}

fn crowded(record: &BenchRecord) -> Option<String> {
    let cpus = record.head.host.cpus.len();
    let ends = |case: &CaseRecord| {
        if case.tasks == Tasks::Single { 1 } else { case.load().ends() + case.relays }
    };
    let measured = loaded(record).filter(|case| !case.samples.is_empty());
    let tasks = measured.map(|case| case.load().pairs() * ends(case)).max()? as usize;
    (cpus > 0 && tasks > cpus).then(|| {
        format!(
            "Up to {tasks} tasks share {}: they take turns, and the figures are the scheduler's as well as the mechanism's.",
            words::count(cpus, "CPU")
        )
    })
}

/// How the figures change with the load, for each table in which a mechanism has two points. `number` makes their ids unique among
/// records.
pub(crate) fn figures(record: &BenchRecord, number: usize) -> Vec<Figure> {
    let figures = groups(record).into_iter().enumerate();
    figures.filter_map(|(at, cases)| figure(&cases, number * 10 + at)).collect()
}

fn figure(cases: &[&CaseRecord], number: usize) -> Option<Figure> {
    let first = cases.first()?;
    let asked = first.load();
    let (x, label): (fn(&CaseRecord) -> Option<f64>, _) = match asked {
        Load { rate_per_s: Some(_), .. } if first.workload == Workload::Stream => {
            (load::offered_per_s, "messages asked for in a second")
        }
        Load { rate_per_s: Some(_), .. } => (load::offered_per_s, "round trips asked for in a second"),
        Load { senders: Some(_), .. } => (|case| case.senders.map(f64::from), "senders"),
        Load { receivers: Some(_), .. } => (|case| case.receivers.map(f64::from), "receivers"),
        _ => (|case| case.pairs.map(f64::from), "pairs at once"),
    };
    let (what, unit) = match (first.workload, asked.rate_per_s) {
        (Workload::Stream, Some(_)) => ("CPU time per message", Unit::Ns),
        (Workload::Stream, None) => ("throughput of all together", Unit::BytesPerS),
        (_, Some(_)) => ("99th percentile of the response time", Unit::Ns),
        (_, None) => ("median round trip", Unit::Ns),
    };
    let point = |case: &&CaseRecord| {
        let (y, low, high) = match (&case.latency_ns, asked.rate_per_s) {
            (Some(found), Some(_)) => (Tail::P99.ns(found)? as f64, None, None),
            (None, Some(_)) => (cpu_per_block_ns(case)?, None, None),
            _ => estimated(case).map(|[median, low, high]| (median, Some(low), Some(high)))?,
        };
        let n = u32::try_from(case.samples.len()).ok();
        Some((case.spec.to_string(), Point { x: x(case)?, y, low, high, n }))
    };
    let line = |(name, points)| Series { name, style: SeriesStyle::Measured, points, model: Vec::new() };
    let series: Vec<Series> = grouped(cases.iter().filter_map(point)).into_iter().map(line).collect();
    if series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let axis = |label, unit| Axis::new(label, unit, Scale::Log);
    Some(Figure {
        id: format!("load-{number}"),
        title: format!("Under load: {what}"),
        caption: format!("{}. Both axes are logarithmic.", title(cases)),
        chart: Chart::Lines(Lines { x_axis: axis(label, Unit::Count), y_axis: axis(what, unit), series }),
    })
}
