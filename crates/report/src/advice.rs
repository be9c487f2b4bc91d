//! What the figures say to do next, with the command to try.
//! Every figure named here is in the record, every order is sure, and holds for the placement that the sentence names; what the record does
//! not show is at most suggested.

use model::{BenchRecord, CaseRecord, DataLevel, ErrorKind, NoiseLevel, Placement, Tasks, Workload};
use stats::{Bound, bound_of, figure, is_mixed, shared_cpu};

use crate::lists::{distinct, first_of};
use crate::verdict::{faster, spins, times_as_fast, verdict};
use crate::view::{RankedRow, Ranking, View, ranked};
use crate::words::whereabouts;
use crate::{languages, numbers, offsets, words};

/// More sentences than this are not read.
const SENTENCES_MAX: usize = 3;
/// Names in one sentence.
const NAMES_MAX: usize = 8;
/// A round trip with this many sleeps is made of wake-ups: one for each end.
const SLEEPS_PER_ROUND_TRIP: f64 = 1.0;
/// What is to be gained must be more than this, in the lower end of the interval.
const WORTH_A_SENTENCE: f64 = 1.1;
/// The half width in percent at which figures have settled: they are quiet then.
const PRECISION_PERCENT: f64 = 5.0;

/// What a record of mechanisms says to do.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Which mechanism to take.
    pub(crate) answers: Vec<String>,
    /// What else to know, what to try next and how to make intervals narrower, the most important first.
    pub(crate) further: Vec<String>,
}

/// Which mechanism to take, and what to try next; empty where the figures suggest nothing.
pub fn advice(record: &BenchRecord) -> Vec<String> {
    let Findings { mut answers, further } = findings(record);
    answers.extend(further);
    answers
}

pub(crate) fn findings(record: &BenchRecord) -> Findings {
    // The table of languages says it itself.
    if languages::is_of_workers(record) {
        return Findings::default();
    }
    let view = View::of(record);
    if record.peer.is_some() || offsets::are_swept(record) {
        // There is nothing to choose between one way, or one place of buffers, and another.
        return Findings { further: wide(&view).into_iter().collect(), ..Findings::default() };
    }
    let rules = [placement, pipe_waits, one_core, limits, sockets, fastest_checked];
    let next = rules.iter().filter_map(|rule| rule(&view)).take(SENTENCES_MAX);
    let verdict = verdict(&view);
    let further = verdict.further.into_iter().chain(next).chain(wide(&view)).collect();
    Findings { answers: verdict.answers, further }
}

/// How many times as fast one case is as another, round by round. `None` unless this surely is worth a sentence.
fn gain(better: &CaseRecord, worse: &CaseRecord) -> Option<f64> {
    let times = times_as_fast(better, worse)?;
    (times.low > WORTH_A_SENTENCE).then_some(times.median)
}

/// How to make wide intervals narrower.
fn wide(view: &View) -> Option<String> {
    let measured = ranked(view.record).filter(|case| !case.samples.is_empty()).count();
    // Where the scheduler chose now one CPU and now two, more trials make nothing steadier.
    let wild = |case: &&CaseRecord| case.noise == Some(NoiseLevel::Wild) && !is_mixed(case);
    let wild = ranked(view.record).filter(wild).count();
    (wild >= 2 || (wild == 1 && measured <= 3)).then(|| {
        let more = match view.record.settings.precision_percent {
            // They were measured until time or trials were spent.
            Some(percent) if percent <= PRECISION_PERCENT => {
                "more time and trials make them narrower (--time, --trials)".to_owned()
            }
            _ => format!("hosepipe bench --precision {PRECISION_PERCENT} measures until they are narrower"),
        };
        let are = if wild == 1 { "interval is" } else { "intervals are" };
        format!("{wild} of {measured} {are} wider than ±15 %: {more}.")
    })
}

/// What the scheduler's choice gains or loses against pinned ends, for the plain pipe or else the first row that shows it.
fn placement(view: &View) -> Option<String> {
    let rankings = || view.rankings.iter().filter(|ranking| ranking.pinned.is_some());
    let rows = || rankings().flat_map(|ranking| &ranking.rows);
    let sentence = |pipe: bool| {
        let wanted = |row: &&RankedRow| (row.label == "pipe") == pipe && row.cases().all(|case| !spins(case));
        rows().filter(wanted).find_map(placement_of)
    };
    sentence(true).or_else(|| sentence(false))
}

fn placement_of(row: &RankedRow) -> Option<String> {
    let cases = [(row.stream, row.pinned_stream), (row.round_trip, row.pinned_round_trip)];
    let pairs: Vec<(&CaseRecord, &CaseRecord)> =
        cases.into_iter().filter_map(|(free, pinned)| Some((free?, pinned?))).collect();
    let cpus = words::cpus(&pairs.first()?.1.cpus);
    let command = format!("hosepipe bench {} --place all", pairs.first()?.0.spec);
    let gains = |better: &dyn Fn(&(&CaseRecord, &CaseRecord)) -> Option<f64>| -> Vec<String> {
        pairs.iter().filter_map(|pair| Some(faster(pair.0.workload, better(pair)?))).collect()
    };
    let free = gains(&|(free, pinned)| gain(free, pinned));
    let pinned = gains(&|(free, pinned)| gain(pinned, free));
    match (free.is_empty(), pinned.is_empty()) {
        (false, true) => Some(format!(
            "Placed by the scheduler, `{}` {}, compared with {cpus}: do not pin its ends ({command}).",
            row.label,
            free.join(" and "),
        )),
        (true, false) => Some(format!(
            "On {cpus}, `{}` {}, compared with the scheduler's choice: pin its ends with taskset(1) ({command}).",
            row.label,
            pinned.join(" and "),
        )),
        _ => None,
    }
}

/// A pipe bound by wake-ups wants to be larger.
fn pipe_waits(view: &View) -> Option<String> {
    let rankings = view.rankings.iter();
    rankings.flat_map(|ranking| [false, true].map(|pinned| pipe_waits_in(ranking, pinned))).flatten().next()
}

fn pipe_waits_in(ranking: &Ranking, pinned: bool) -> Option<String> {
    let streams = || ranking.rows.iter().filter_map(|row| row.case(Workload::Stream, pinned));
    let cases = || streams().filter(|case| case.throughput.is_some());
    let pipe = cases().find(|case| waits_to_be_woken(case))?;
    let larger = || cases().filter(|case| is_larger_pipe(case));
    let place = pipe.placement;
    let whereabouts = whereabouts(pipe);
    Some(match larger().find_map(|case| Some((case, gain(case, pipe)?))) {
        Some((case, ratio)) => format!(
            "A pipe {whereabouts} waits for wake-ups, not for copies: `{}` {} (hosepipe bench pipe {} --place {place}).",
            case.spec,
            faster(Workload::Stream, ratio),
            case.spec,
        ),
        // A larger pipe that was measured and did not help is no advice.
        None if larger().next().is_some() => return None,
        None => format!(
            "A pipe {whereabouts} waits for wake-ups, not for copies: try a larger one (hosepipe bench pipe \
             pipe:size=1MiB --place {place})."
        ),
    })
}

/// A plain pipe whose ends sit on two CPUs and wait for each other.
fn waits_to_be_woken(case: &CaseRecord) -> bool {
    case.spec == model::Spec::plain("pipe")
        && shared_cpu(case) == Some(false)
        && bound_of(case) == Some(Bound::WakeUps)
}

/// A pipe that was given a size and has no other option.
fn is_larger_pipe(case: &CaseRecord) -> bool {
    let spec = &case.spec;
    spec.mechanism == "pipe" && spec.options.len() == 1 && spec.options.contains_key("size")
}

/// Round trips that consist of waking the other CPU.
fn one_core(view: &View) -> Option<String> {
    let trips = || {
        ranked(view.record).filter(|case| case.workload == Workload::PingPong && case.latency_ns.is_some())
    };
    // Where the scheduler's choice is beside it, that is the answer.
    if view.rankings.iter().any(|ranking| ranking.pinned.is_some()) {
        return None;
    }
    let woken = |case: &&CaseRecord| {
        figure::median_of(case, figure::voluntary_switches_per_block)
            .is_some_and(|n| n >= SLEEPS_PER_ROUND_TRIP)
    };
    let apart = |case: &&CaseRecord| case.tasks != Tasks::Single && shared_cpu(case) == Some(false);
    let far = trips().filter(apart).filter(woken);
    let far = far.min_by_key(|case| case.spec.mechanism != "pipe")?;
    let alike = |case: &&CaseRecord| {
        case.placement == Placement::Same
            && (&case.spec, case.tasks, case.data, case.block_bytes, case.wait)
                == (&far.spec, far.tasks, far.data, far.block_bytes, far.wait)
    };
    let command = format!("hosepipe bench {} --workload pingpong --place same", far.spec);
    let Some(near) = trips().find(alike) else {
        return Some(format!(
            "A round trip over `{}` {} wakes a sleeping CPU each way: try both ends on one core ({command}).",
            far.spec,
            whereabouts(far)
        ));
    };
    let ratio = gain(near, far)?;
    Some(format!(
        "With both ends on one core a round trip over `{}` is {} times as fast as on two ({command}).",
        far.spec,
        numbers::ratio(ratio),
    ))
}

/// What a setting of this machine keeps out.
fn limits(view: &View) -> Option<String> {
    let limited = ranked(view.record)
        .filter(|case| case.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Limit))
        .map(|case| format!("`{}`", case.spec));
    let names = distinct(limited);
    let meet = if names.len() == 1 { "meets a limit" } else { "meet limits" };
    (!names.is_empty()).then(|| {
        format!(
            "{} {meet} of this machine: see `hosepipe doctor`.",
            first_of(&names, NAMES_MAX, ", ", String::clone)
        )
    })
}

/// A socket that outruns the pipe, where no pipe was found to be waiting.
fn sockets(view: &View) -> Option<String> {
    let plain = |row: &&RankedRow| row.label == "pipe";
    let ranking = view.rankings.iter().find(|ranking| ranking.rows.iter().any(|row| plain(&row)))?;
    let pipe = ranking.rows.iter().find(plain)?.stream.filter(|case| !waits_to_be_woken(case))?;
    let mut sockets = ranking.rows.iter().filter(|row| row.label.starts_with("unix-stream"));
    let socket = sockets.find_map(|row| row.stream)?;
    let ratio = gain(socket, pipe)?;
    Some(format!(
        "`{}` {} {} as the pipe (hosepipe bench pipe {} --place {}).",
        socket.spec,
        whereabouts(pipe),
        faster(Workload::Stream, ratio),
        socket.spec,
        pipe.placement,
    ))
}

/// Where untouched or unchecked figures stand beside checked ones, the fastest that was checked.
fn fastest_checked(view: &View) -> Option<String> {
    if view.common(|ranking| ranking.axes.data).is_some() {
        return None;
    }
    let ranking = view.rankings.iter().find(|ranking| ranking.axes.data == DataLevel::Verify)?;
    let best = ranking.rows.first()?;
    Some(format!(
        "With every byte checked the fastest in the median: `{}`, {} (hosepipe bench {} --data verify).",
        best.label,
        numbers::throughput(best.throughput()?.median_bytes_per_s),
        best.stream?.spec
    ))
}
