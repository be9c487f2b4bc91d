//! Many pairs, senders or receivers, and given rates: how figures change with the load, as tables, sentences and charts.

use model::{BenchRecord, CaseRecord, DataLevel, Load, Role, Tasks, Workload};
use stats::choice::counts_server_only;
use stats::load;
use stats::tail::Tail;

use crate::chart::{Chart, ChartAxis, ChartData, Lines, Point, Scale, Series, SeriesStyle};
use crate::estimate::{estimate_value, estimated, median_value};
use crate::groups::{Key, OF_ONE_BLOCK, References, key};
use crate::lists::{distinct, grouped, joined_if_any};
use crate::reason::reason;
use crate::sheet::{Sheet, col};
use crate::table::{Column, Fit, Table};
use crate::unit::Unit;
use crate::value::Value;
use crate::verdict::{cpu_per_block, cpu_per_block_ns};
use crate::{numbers, tail, words};

/// The cases with a given load.
pub(crate) fn loaded(record: &BenchRecord) -> impl Iterator<Item = &CaseRecord> {
    record.cases.iter().filter(|case| case.role == Role::Ranked && case.load().is_requested())
}

/// What the rows of one table have in common: the axes, the block size, and which of pairs, senders, receivers and rate are given.
fn common(case: &CaseRecord) -> (Key, [bool; 4]) {
    let Load { pairs, senders, receivers, rate_per_s } = case.load();
    let asked = [pairs, senders, receivers, rate_per_s].map(|part| part.is_some());
    (key(case, OF_ONE_BLOCK), asked)
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
        _ => words::describe_tasks_and_cpus(first.tasks, first.placement, &cpus),
    };
    let data = match first.load().shares_an_end() {
        true if first.data == DataLevel::Verify => "every block checked",
        _ => words::payload_remark(first.data, first.check),
    };
    [blocks, ends, data.to_owned()].join(" · ")
}

fn table(cases: &[&CaseRecord], interrupted: bool) -> Table {
    let mut sheet = Sheet::new(cases);
    columns(&mut sheet, |case| Some(*case), cases);
    let mut table = sheet.table();
    for (row, case) in table.rows.iter_mut().zip(cases) {
        row.reasons = reason(case, interrupted).into_iter().collect();
    }
    table
}

/// The columns of cases under a load; those with a name in CSV are there for every record with such cases.
pub(crate) fn columns<R>(
    sheet: &mut Sheet<R>,
    case_of: impl Fn(&R) -> Option<&CaseRecord>,
    cases: &[&CaseRecord],
) {
    let mut add = |column: Column, cell: &dyn Fn(&CaseRecord) -> Option<Value>| {
        sheet.add(column, |row| cell(case_of(row)?));
    };
    let count = |number: Option<u32>| Some(Value::count(number?.into()));
    add(col("mechanism").fit(Fit::Spec), &|case| Some(case.spec.to_string().into()));
    add(col("pairs").drop(1), &|case| count(case.pairs));
    add(col("senders").drop(1), &|case| count(case.senders));
    add(col("receivers").drop(1), &|case| count(case.receivers));
    add(col("asked for").drop(1), &|case| load::offered_per_s(case).map(|rate| Unit::PerS.of(rate)));
    add(col("throughput").drop(1), &|case| estimate_value(case).filter(|_| case.throughput.is_some()));
    add(col("reached").csv("reached_per_s").drop(2), &|case| {
        case.latency_ns.as_ref().map(drop).or(case.rate_per_s.map(drop))?;
        load::reached_per_s(case).map(|rate| Unit::PerS.of(rate))
    });
    let each = "each: the throughput of the median one while all of them ran.";
    let each_of = |case: &CaseRecord| median_value(case, load::share_bytes_per_s, Unit::BytesPerS);
    add(col("each").drop(4).legend(each), &|case| case.throughput.as_ref().and_then(|_| each_of(case)));
    add(Column::default().csv("each_bytes_per_s"), &each_of);
    add(col("× one").drop(3), &|case| times_one(case, cases).map(|times| Unit::Times.of(times)));
    let fairness = "fairness: Jain's index of their progress, 1 if all are equal.";
    add(col("fairness").csv("fairness").drop(5).legend(fairness), &|case| {
        median_value(case, load::fairness, Unit::Decimals(2))
    });
    add(col("torn blocks").short("torn").csv("torn_share").drop(2), &torn);
    add(col("p50").drop(1), &|case| estimate_value(case).filter(|_| case.latency_ns.is_some()));
    add(col("p99").drop(2), &|case| tail::cell(case.latency_ns.as_ref(), Tail::P99));
    add(col("p99.9").drop(6), &|case| tail::cell(case.latency_ns.as_ref(), Tail::P999));
    let sent_p50 = col("since sent, p50").short("sent, p50").csv("service_p50_ns").drop(8);
    add(sent_p50, &|case| Some(service(case)?.p50));
    let sent_p99 = col("since sent, p99").short("sent, p99").csv("service_p99_ns").drop(7);
    add(sent_p99, &|case| Some(service(case)?.p99));
    // The client of paced round trips is a generator of load.
    let cpu = match cases.first() {
        Some(first) if counts_server_only(first) => col("server's CPU per trip")
            .short("server CPU")
            .drop(3)
            .legend("server's CPU per trip: without the client, which only makes the load."),
        _ => col("CPU per message").short("CPU/msg").drop(9),
    };
    add(cpu, &cpu_per_block);
}

/// The share of blocks that did not arrive in one piece.
pub(crate) fn torn(case: &CaseRecord) -> Option<Value> {
    Some(Unit::ShareOrLess.of(load::torn_share(case)?))
}

fn per_s(rate: f64) -> String {
    Unit::PerS.text(rate)
}

/// The round trip since the request was sent, which may be later than it was due.
struct ServiceTime {
    p50: Value,
    p99: Value,
}

/// `None` for a damaged histogram.
fn service(case: &CaseRecord) -> Option<ServiceTime> {
    let [p50, p99] = load::service_ns(case, [0.5, 0.99]).ok()??.map(|ns| Unit::WholeNs.of(ns as f64));
    let has_tail = case.latency_ns.as_ref().is_some_and(|all| Tail::P99.ns(all).is_some());
    Some(ServiceTime { p50, p99: if has_tail { p99 } else { Value::Absent } })
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
    let case_of_one = cases.iter().find(|other| other.spec == case.spec && other.load() == one)?;
    Some(headline(case)? / headline(case_of_one)?).filter(|times| times.is_finite())
}

/// The ceiling of streams of this block size.
fn ceiling(record: &BenchRecord, cases: &[&CaseRecord]) -> Option<String> {
    let block_bytes = cases.first().filter(|case| case.workload == Workload::Stream)?.block_bytes;
    let references = References::from_record(record);
    let ceiling = references.of_role(Role::Ceiling).find(|case| case.block_bytes == block_bytes)?;
    let speed = numbers::throughput(ceiling.throughput.as_ref()?.median_bytes_per_s);
    Some(format!("ceiling  {} {speed} (one task, data {})", ceiling.spec, ceiling.data))
}

/// Remarks on rates that were not reached, divided blocks, and tasks without a CPU of their own.
pub(crate) fn remarks(record: &BenchRecord) -> Vec<String> {
    let mut lines: Vec<String> = loaded(record).filter_map(not_kept_up).collect();
    lines.extend(with_torn_blocks(record, |load| load.senders.is_some()).map(|on| {
        format!(
            "Blocks of several senders were mixed on {on}: they need a length and a lock, or a mechanism that keeps boundaries. No byte \
             was lost."
        )
    }));
    lines.extend(with_torn_blocks(record, |load| load.receivers.is_some()).map(|on| {
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
fn with_torn_blocks(record: &BenchRecord, has_load: fn(Load) -> bool) -> Option<String> {
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
pub(crate) fn charts(record: &BenchRecord, number: usize) -> Vec<Chart> {
    let tables = groups(record).into_iter().enumerate();
    tables.filter_map(|(at, cases)| chart(&cases, number * 10 + at)).collect()
}

fn chart(cases: &[&CaseRecord], number: usize) -> Option<Chart> {
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
        let (x, samples) = (x(case)?, case.samples.len());
        let without_interval = |y| Point::new(x, y, u32::try_from(samples).ok());
        let point = match (&case.latency_ns, asked.rate_per_s) {
            (Some(found), Some(_)) => without_interval(Tail::P99.ns(found)? as f64),
            (None, Some(_)) => without_interval(cpu_per_block_ns(case)?),
            _ => Point::estimated(x, estimated(case)?, samples),
        };
        Some((case.spec.to_string(), point))
    };
    let series = Series::by_name(cases.iter().filter_map(point), SeriesStyle::Measured);
    if series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let axis = |label, unit| ChartAxis::new(label, unit, Scale::Log);
    Some(Chart {
        id: format!("load-{number}"),
        title: format!("Under load: {what}"),
        caption: format!("{}. Both axes are logarithmic.", title(cases)),
        data: ChartData::Lines(Lines { x_axis: axis(label, Unit::Count), y_axis: axis(what, unit), series }),
    })
}
