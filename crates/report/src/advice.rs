//! Suggestions from the figures, each with a command to try. All figures in a sentence are in the record, and hold for the placement
//! that it names. What is called faster is certainly faster, except in [`fastest_checked`], which goes by the medians. What was not
//! measured is only suggested.

use model::{BenchRecord, CaseRecord, DataLevel, ErrorKind, NoiseLevel, Placement, Tasks, Wait, Workload};
use stats::estimate::ENOUGH_FOR_95_PERCENT;
use stats::{Bound, bound_of, figure, is_mixed, shared_cpu};

use crate::estimate::quantity;
use crate::limits::{GAIN_MIN, SUGGESTIONS_MAX};
use crate::lists::{distinct, first_names};
use crate::verdict::{Findings, times_as_fast, verdict};
use crate::view::{RankedRow, Ranking, View, ranked};
use crate::words::whereabouts;
use crate::{languages, numbers, offsets, words};

/// Most names in one sentence.
const NAMES_MAX: usize = 8;
/// A round trip with at least this many sleeps consists of wake-ups: one for each end.
const SLEEPS_PER_ROUND_TRIP: f64 = 1.0;
/// The suggested half width of intervals, in percent.
const PRECISION_PERCENT: f64 = 5.0;

/// The mechanism to take, then suggestions; empty if the figures recommend nothing.
pub fn advice(record: &BenchRecord) -> Vec<String> {
    let Findings { mut answers, further } = findings(record);
    answers.extend(further);
    answers
}

/// The mechanism to take; further, suggestions, and how to make intervals narrower.
pub(crate) fn findings(record: &BenchRecord) -> Findings {
    if languages::is_of_workers(record) {
        return Findings { answers: Vec::new(), further: languages::sentences(record) };
    }
    let mut findings = Findings::default();
    if offsets::are_swept(record) {
        findings.answers = offsets::sentences(record);
    // Between two directions to another host there is no choice.
    } else if record.peer.is_none() {
        let view = View::from_record(record);
        findings = verdict(&view);
        let rules = [placement, pipe_waits, one_core, limits, sockets, fastest_checked];
        findings.further.extend(rules.iter().filter_map(|rule| rule(&view)).take(SUGGESTIONS_MAX));
    }
    findings.further.extend(wide(record));
    findings
}

/// How many times as fast one case is as another; `None` below [`GAIN_MIN`].
fn gain(better: &CaseRecord, worse: &CaseRecord) -> Option<f64> {
    times_as_fast(better, worse, GAIN_MIN)
}

/// How to make wide intervals narrower; `None` if too few are wide.
fn wide(record: &BenchRecord) -> Option<String> {
    let measured = ranked(record).filter(|case| !case.samples.is_empty()).count();
    // If the scheduler used one CPU in some trials and two in others, more trials do not help.
    let wild = |case: &&CaseRecord| {
        case.noise == Some(NoiseLevel::Wild) && case.samples.len() >= ENOUGH_FOR_95_PERCENT && !is_mixed(case)
    };
    let wild_count = ranked(record).filter(wild).count();
    (wild_count >= 2 || (wild_count == 1 && measured <= 3)).then(|| {
        let more = match record.settings.precision_percent {
            // They were measured until the time or the trials were used up.
            Some(percent) if percent <= PRECISION_PERCENT => {
                "more time and trials make them narrower (--time, --trials)".to_owned()
            }
            _ => format!("hosepipe bench --precision {PRECISION_PERCENT} measures until they are narrower"),
        };
        let are = if wild_count == 1 { "interval is" } else { "intervals are" };
        format!("{wild_count} of {measured} {are} wider than ±15 %: {more}.")
    })
}

/// The gain or loss of the scheduler's choice against pinned ends: for the plain pipe, or else for the first row with a gain or a loss.
fn placement(view: &View) -> Option<String> {
    let rankings = || view.rankings.iter().filter(|ranking| ranking.pinned.is_some());
    let rows = || rankings().flat_map(|ranking| &ranking.rows);
    let sentence = |pipe: bool| {
        let wanted =
            |row: &&RankedRow| row.is_plain_pipe() == pipe && row.cases().all(|case| case.wait != Wait::Spin);
        rows().filter(wanted).find_map(placement_of)
    };
    sentence(true).or_else(|| sentence(false))
}

fn placement_of(row: &RankedRow) -> Option<String> {
    let pair = |workload: &Workload| Some((row.case(*workload, false)?, row.case(*workload, true)?));
    let pairs: Vec<(&CaseRecord, &CaseRecord)> = Workload::ALL.iter().filter_map(pair).collect();
    let (first, first_pinned) = pairs.first()?;
    let (label, cpus) = (&row.label, words::cpus(&first_pinned.cpus));
    let command = format!("hosepipe bench {} --place all", first.spec);
    let faster = |case: &CaseRecord, times| quantity(case.workload).faster(times);
    let of_free = pairs.iter().filter_map(|(free, pinned)| Some(faster(free, gain(free, pinned)?)));
    let of_pinned = pairs.iter().filter_map(|(free, pinned)| Some(faster(free, gain(pinned, free)?)));
    let free_gains = of_free.collect::<Vec<String>>().join(" and ");
    let pinned_gains = of_pinned.collect::<Vec<String>>().join(" and ");
    match (free_gains.is_empty(), pinned_gains.is_empty()) {
        (false, true) => Some(format!(
            "In the median round, `{label}` placed by the scheduler {free_gains} as on {cpus}: do not pin its ends ({command})."
        )),
        (true, false) => Some(format!(
            "In the median round, `{label}` on {cpus} {pinned_gains} as placed by the scheduler: pin its ends with taskset(1) ({command})."
        )),
        _ => None,
    }
}

/// Suggests a larger pipe if the plain one is bound by wake-ups.
fn pipe_waits(view: &View) -> Option<String> {
    let both = |ranking| [false, true].map(|pinned| (ranking, pinned));
    view.rankings.iter().flat_map(both).find_map(|(ranking, pinned)| {
        let streams = ranking.rows.iter().filter_map(|row| row.case(Workload::Stream, pinned));
        pipe_waits_in(&streams.filter(|case| case.throughput.is_some()).collect::<Vec<_>>())
    })
}

fn pipe_waits_in(cases: &[&CaseRecord]) -> Option<String> {
    let pipe = cases.iter().find(|case| waits_to_be_woken(case))?;
    let larger: Vec<_> = cases.iter().filter(|case| is_larger_pipe(case)).collect();
    let waits = format!("A pipe {} waits for wake-ups, not for copies", whereabouts(pipe));
    let place = pipe.placement;
    if larger.is_empty() {
        return Some(format!(
            "{waits}: try a larger one (hosepipe bench pipe pipe:size=1MiB --place {place})."
        ));
    }
    let (case, times) = larger.into_iter().find_map(|case| Some((case, gain(case, pipe)?)))?;
    let (spec, faster) = (&case.spec, quantity(Workload::Stream).faster(times));
    Some(format!("{waits}: `{spec}` {faster} (hosepipe bench pipe {spec} --place {place})."))
}

/// A plain pipe whose ends are on two CPUs and wait for each other.
fn waits_to_be_woken(case: &CaseRecord) -> bool {
    case.spec == model::Spec::plain("pipe")
        && shared_cpu(case) == Some(false)
        && bound_of(case) == Some(Bound::WakeUps)
}

/// A pipe with a size and no other option.
fn is_larger_pipe(case: &CaseRecord) -> bool {
    let spec = &case.spec;
    spec.mechanism == "pipe" && spec.options.len() == 1 && spec.options.contains_key("size")
}

/// Suggests both ends on one core for round trips that consist of waking the other CPU.
fn one_core(view: &View) -> Option<String> {
    // With the scheduler's choice beside it, `placement` answers this.
    if view.rankings.iter().any(|ranking| ranking.pinned.is_some()) {
        return None;
    }
    let trips = || {
        ranked(view.record()).filter(|case| case.workload == Workload::PingPong && case.latency_ns.is_some())
    };
    let wakes_another_cpu = |case: &&CaseRecord| {
        let sleeps = figure::median_of(case, figure::voluntary_switches_per_block);
        let is_on_two = case.tasks != Tasks::Single && shared_cpu(case) == Some(false);
        is_on_two && sleeps.is_some_and(|sleeps| sleeps >= SLEEPS_PER_ROUND_TRIP)
    };
    let far = trips().filter(wakes_another_cpu).min_by_key(|case| case.spec.mechanism != "pipe")?;
    let is_counterpart = |case: &&CaseRecord| {
        case.placement == Placement::Same
            && (&case.spec, case.tasks, case.data, case.block_bytes, case.wait)
                == (&far.spec, far.tasks, far.data, far.block_bytes, far.wait)
    };
    let (spec, command) =
        (&far.spec, format!("hosepipe bench {} --workload pingpong --place same", far.spec));
    Some(match trips().find(is_counterpart) {
        None => format!(
            "A round trip over `{spec}` {} wakes a sleeping CPU each way: try both ends on one core ({command}).",
            whereabouts(far)
        ),
        Some(near) => format!(
            "With both ends on one core a round trip over `{spec}` is {} times as fast as on two ({command}).",
            numbers::ratio(gain(near, far)?)
        ),
    })
}

/// The mechanisms that failed because of a limit of this machine.
fn limits(view: &View) -> Option<String> {
    let limited = ranked(view.record())
        .filter(|case| case.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit))
        .map(|case| format!("`{}`", case.spec));
    let names = distinct(limited);
    let meet = if names.len() == 1 { "meets a limit" } else { "meet limits" };
    let sentence =
        || format!("{} {meet} of this machine: see `hosepipe doctor`.", first_names(&names, NAMES_MAX));
    (!names.is_empty()).then(sentence)
}

/// A socket that is faster than the pipe, if the pipe is not bound by wake-ups.
fn sockets(view: &View) -> Option<String> {
    let ranking = view.rankings.iter().find(|ranking| ranking.rows.iter().any(RankedRow::is_plain_pipe))?;
    let pipe = ranking.rows.iter().find(|row| row.is_plain_pipe())?.stream();
    let pipe = pipe.filter(|case| !waits_to_be_woken(case))?;
    let mut streams = ranking.rows.iter().filter_map(RankedRow::stream);
    let socket = streams.find(|case| case.spec.mechanism == "unix-stream")?;
    let (spec, faster) = (&socket.spec, quantity(Workload::Stream).faster(gain(socket, pipe)?));
    Some(format!(
        "`{spec}` {} {faster} as the pipe (hosepipe bench pipe {spec} --place {}).",
        whereabouts(pipe),
        pipe.placement,
    ))
}

/// The fastest checked row, if untouched or unchecked figures are beside checked ones.
fn fastest_checked(view: &View) -> Option<String> {
    let is_checked = |ranking: &&Ranking| ranking.axes.data == DataLevel::Verify;
    let ranking = view.rankings.iter().find(is_checked)?;
    view.rankings.iter().find(|ranking| !is_checked(ranking))?;
    let best = ranking.rows.first()?;
    Some(format!(
        "With every byte checked, the fastest by the medians is `{}`, {} (hosepipe bench {} --data verify).",
        best.label,
        numbers::throughput(best.throughput()?.median_bytes_per_s),
        best.stream()?.spec
    ))
}
