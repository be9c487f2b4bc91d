//! A sentence or two after the table: what the figures say to do next, with the command to try.
//! Every figure named here is in the record; what the record does not show is at most suggested.

use model::{BenchRecord, CaseRecord, DataLevel, ErrorKind, NoiseLevel, Placement, Tasks, Workload};
use stats::{Bound, bound_of, figure, paired_ratio};

use crate::view::{Row, Section, View, ranked};
use crate::{languages, numbers};

/// More sentences than this are not read.
const SENTENCES_MAX: usize = 3;
/// A round trip with this many sleeps is made of wake-ups: one for each end.
const SLEEPS_PER_ROUND_TRIP: f64 = 1.0;

/// What to do next, the most useful first; empty where the figures suggest nothing.
pub fn advice(record: &BenchRecord) -> Vec<String> {
    // The table of languages says it itself.
    if languages::is_of_workers(record) {
        return Vec::new();
    }
    let view = View::of(record);
    let rules = [noise, pipe_waits, one_core, limits, sockets, fastest_checked];
    rules.iter().filter_map(|rule| rule(&view)).take(SENTENCES_MAX).collect()
}

/// Figures that jump about are the first thing to know.
fn noise(view: &View) -> Option<String> {
    let measured = ranked(view.record).filter(|case| !case.samples.is_empty()).count();
    let wild = ranked(view.record).filter(|case| case.noise == Some(NoiseLevel::Wild)).count();
    (wild >= 2 || (wild == 1 && measured <= 3)).then(|| {
        format!(
            "{wild} of {measured} cases are too noisy to believe: quieten the machine, or measure until they settle \
             (hosepipe bench --precision 5)."
        )
    })
}

/// A pipe bound by wake-ups wants to be larger.
fn pipe_waits(view: &View) -> Option<String> {
    let (section, pipe) = view.sections.iter().find_map(|section| Some((section, waiting_pipe(section)?)))?;
    let case = pipe.stream?;
    let larger = section.rows.iter().filter(|row| is_larger_pipe(row)).find_map(|row| {
        let ratio = paired_ratio(&row.stream?.samples, &case.samples, figure::throughput_bytes_per_s)?;
        (ratio.low > 1.1).then_some((row, ratio))
    });
    Some(match larger {
        Some((row, ratio)) => format!(
            "Your pipes wait for wake-ups, not for copies: `{}` moves {} times as much through the same programs \
             (hosepipe bench pipe {}).",
            row.label,
            numbers::ratio(ratio.median),
            row.label,
        ),
        // A larger pipe that was measured and did not help is no advice.
        None if section.rows.iter().any(is_larger_pipe) => return None,
        None => "Your pipes wait for wake-ups, not for copies: try a larger one (hosepipe bench pipe pipe:size=1MiB)."
            .to_owned(),
    })
}

fn waiting_pipe<'v, 'a>(section: &'v Section<'a>) -> Option<&'v Row<'a>> {
    let mut rows = section.rows.iter();
    rows.find(|row| row.label == "pipe" && row.stream.and_then(bound_of) == Some(Bound::WakeUps))
}

/// A pipe that was given a size and has no other option.
fn is_larger_pipe(row: &Row) -> bool {
    let spec = row.stream.map(|case| &case.spec);
    row.throughput().is_some()
        && spec.is_some_and(|spec| {
            spec.mechanism == "pipe" && spec.options.len() == 1 && spec.options.contains_key("size")
        })
}

/// Round trips that consist of waking the other CPU.
fn one_core(view: &View) -> Option<String> {
    let trips = || {
        ranked(view.record).filter(|case| case.workload == Workload::PingPong && case.latency_ns.is_some())
    };
    let woken = |case: &&CaseRecord| {
        figure::median_of(case, figure::voluntary_switches_per_block)
            .is_some_and(|n| n >= SLEEPS_PER_ROUND_TRIP)
    };
    let apart = |case: &&CaseRecord| {
        case.tasks != Tasks::Single
            && matches!(case.cpus.as_slice(), [sender, receiver] if sender != receiver)
    };
    let far = trips().filter(apart).filter(woken).min_by_key(|case| case.spec.mechanism != "pipe")?;
    let alike = |case: &&CaseRecord| {
        case.placement == Placement::Same
            && (&case.spec, case.tasks, case.data, case.block_bytes, case.wait)
                == (&far.spec, far.tasks, far.data, far.block_bytes, far.wait)
    };
    let command = format!("hosepipe bench {} --workload pingpong --place same", far.spec);
    let Some(near) = trips().find(alike) else {
        return Some(format!(
            "A round trip over `{}` wakes a sleeping CPU each way: try both ends on one core ({command}).",
            far.spec
        ));
    };
    let ratio = paired_ratio(&far.samples, &near.samples, figure::round_trip_p50_ns)?;
    (ratio.low > 1.1).then(|| {
        format!(
            "Both ends on one core answer {} times as soon over `{}` ({command}).",
            numbers::ratio(ratio.median),
            far.spec
        )
    })
}

/// What a setting of this machine keeps out.
fn limits(view: &View) -> Option<String> {
    let limited = ranked(view.record)
        .filter(|case| case.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit))
        .map(|case| format!("`{}`", case.spec));
    let mut names: Vec<String> = Vec::new();
    for name in limited {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let meet = if names.len() == 1 { "meets a limit" } else { "meet limits" };
    (!names.is_empty()).then(|| {
        format!(
            "{} {meet} of this machine: `hosepipe doctor` says which and how to raise them.",
            names.join(", ")
        )
    })
}

/// A socket that outruns the pipe, where no pipe was found to be waiting.
fn sockets(view: &View) -> Option<String> {
    let section = view.sections.iter().find(|section| section.rows.iter().any(|row| row.label == "pipe"))?;
    let pipe = section.rows.iter().find(|row| row.label == "pipe")?.throughput()?;
    if waiting_pipe(section).is_some() {
        return None;
    }
    let socket =
        section.rows.iter().find(|row| row.label.starts_with("unix-stream") && row.throughput().is_some())?;
    let ratio = socket.times_pipe.filter(|ratio| ratio.low > 1.1)?;
    Some(format!(
        "`{}` moves {} times as much as the pipe ({} against {}): hosepipe bench pipe {}.",
        socket.label,
        numbers::ratio(ratio.median),
        numbers::throughput(socket.throughput()?.median_bytes_per_s),
        numbers::throughput(pipe.median_bytes_per_s),
        socket.label
    ))
}

/// Where untouched or unchecked figures stand beside checked ones, the fastest that was checked.
fn fastest_checked(view: &View) -> Option<String> {
    if view.common(|section| section.axes.data).is_some() {
        return None;
    }
    let section = view.sections.iter().find(|section| section.axes.data == DataLevel::Verify)?;
    let best = section.rows.first()?;
    Some(format!(
        "Of what was checked byte for byte `{}` is the fastest, with {}: hosepipe bench {} --data verify.",
        best.label,
        numbers::throughput(best.throughput()?.median_bytes_per_s),
        best.stream?.spec
    ))
}
