//! The text around the figures of `bench`: the heading, the floor and the ceiling, and the limits of what the rows show.

use std::collections::{BTreeMap, BTreeSet};

use model::{BenchRecord, CaseRecord, Check, DataLevel, PayloadKind, Role, Tasks, Workload, visible};
use stats::{figure, is_mixed};

use crate::estimate::{estimated, figures_by_cpus, mixture, quantity, speed};
use crate::limits::{DISTURBANCE_FROM, MANY_MAX, PROGRAMS_FROM};
use crate::lists::{distinct, first_if_any, first_lines, first_of, grouped, joined_if_any};
use crate::sweep::size_range;
use crate::view::{RankedRow, Ranking, View, ranked, transports};
use crate::{granted, interval, load, numbers, offsets, tail, unsteady, words};

/// The machine and what all rows have in common, in pieces.
pub(crate) fn heading(view: &View) -> Vec<String> {
    let record = view.record();
    let peer = record.peer.as_ref().map(|peer| format!("peer {}: {}", peer.name, words::machine(&peer.host)));
    let repeated = record.settings.repeated_rounds.filter(|rounds| *rounds > 0);
    let pieces = [
        Some(words::machine(&record.head.host)),
        peer,
        Some(block_range(record)),
        Some(view.common.ends.clone()),
        Some(view.common.data.clone()),
        ranked(record).map(|case| case.relays).max().and_then(words::relays),
        buffers(record),
        unusual_payload(record),
        Some(trials_made(record)),
        repeated.map(|rounds| format!("{} repeated", words::count(rounds as usize, "round"))),
    ];
    pieces.into_iter().flatten().filter(|piece| !piece.is_empty()).collect()
}

/// "9 to 41 trials, interleaved, in 32.0 s"; if the run was stopped, "3 of 9 trials, interleaved, in 1.00 s".
fn trials_made(record: &BenchRecord) -> String {
    let settings = &record.settings;
    // The requested number, which with --precision is the most; if none was requested, the most that a case has.
    let most = words::count(settings.trials as usize, "trial");
    let least = ranked(record).map(|case| case.samples.len()).filter(|made| *made > 0).min();
    let least = least.filter(|least| settings.took_s.is_some() && *least < settings.trials as usize);
    let trials = match least {
        _ if settings.interrupted => trials_of_planned(record),
        Some(least) => format!("{least} to {most}"),
        None => most,
    };
    let interleaved = if settings.trials > 1 { ", interleaved" } else { "" };
    let took =
        settings.took_s.map(|took_s| format!(", in {}", numbers::time(took_s * 1e9))).unwrap_or_default();
    format!("{trials}{interleaved}{took}")
}

/// The numbers of trials of the cases that did not fail: the smallest and the largest.
fn trials_of_cases(record: &BenchRecord) -> (usize, usize) {
    let made = || transports(record).filter(|case| case.error.is_none()).map(|case| case.samples.len());
    (made().min().unwrap_or(0), made().max().unwrap_or(0))
}

/// "3", "3 to 5"
fn trial_range(record: &BenchRecord) -> String {
    match trials_of_cases(record) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// "1 to 3 of 9 trials", where fewer than planned were made; "9 to 10 trials", "1 trial".
fn trials_of_planned(record: &BenchRecord) -> String {
    let (planned, (least, most)) = (record.settings.trials as usize, trials_of_cases(record));
    let range = trial_range(record);
    if most <= planned && least < planned {
        format!("{range} of {}", words::count(planned, "trial"))
    } else if most == 1 {
        format!("{range} trial")
    } else {
        format!("{range} trials")
    }
}

/// A sentence if the run was stopped before its end.
pub(crate) fn interruption(record: &BenchRecord) -> Option<String> {
    let settings = &record.settings;
    let (range, stopped) = (trial_range(record), words::stopped_early(settings.stopped_by));
    settings.interrupted.then(|| match settings.precision_percent {
        Some(percent) => format!(
            "{stopped}, before every case was within {percent} % of its median: {range} trials of each were made."
        ),
        None => {
            let is_one = settings.trials <= 1 && trials_of_cases(record) == (1, 1);
            let were = if is_one { "was" } else { "were" };
            format!("{stopped}: {} {were} made.", trials_of_planned(record))
        }
    })
}

/// What disturbed the machine enough to change the figures.
pub(crate) fn other_load(record: &BenchRecord) -> Option<String> {
    let load = record.head.other_load.as_ref()?;
    let largest = joined_if_any(load.programs.iter().map(|name| visible(name)), ", ");
    let most = largest.map(|names| format!(" (most: {names})")).unwrap_or_default();
    let [others, guests] = [load.programs_share, load.stolen_share].map(numbers::percent);
    let programs = (load.programs_share >= PROGRAMS_FROM).then(|| {
        format!(
            "Other programs took {others} of the CPUs during this run{most}: end them, or read the intervals."
        )
    });
    let stolen = (load.stolen_share >= DISTURBANCE_FROM)
        .then(|| format!("The hypervisor gave {guests} of the CPUs to other guests: read the intervals."));
    let fell = load.frequency_fell.filter(|fell| (DISTURBANCE_FROM..=1.0).contains(fell)).map(|fell| {
        let share = numbers::percent(fell);
        format!("The CPUs became slower during this run: their frequency fell by {share} (heat, or a power limit): read the intervals.")
    });
    joined_if_any([programs, stolen, fell].into_iter().flatten(), " ")
}

/// The ceiling and the floor of a ranking, on one line; `None` if neither was measured.
pub(crate) fn footer(view: &View, ranking: &Ranking) -> Option<String> {
    let mut parts = Vec::new();
    for case in view.references(ranking, Role::Ceiling) {
        let speed = case.throughput.as_ref().map(|t| numbers::throughput(t.median_bytes_per_s));
        parts.extend(
            speed.map(|speed| format!("ceiling  {} {speed}{}", case.spec, other_axes(case, ranking))),
        );
    }
    let mut floors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in view.references(ranking, Role::Floor) {
        let what = if case.workload == Workload::Stream { "block" } else { "round trip" };
        if let Some(cost) = floor_ns(case) {
            let costs = floors.entry(case.spec.to_string()).or_default();
            costs.push(format!("{} per {what}{}", numbers::time(cost), other_cpus(case, ranking)));
        }
    }
    // The harness first: its cost is part of every other figure, also of the other floors.
    let floor_texts = floors.iter().rev().map(|(name, costs)| format!("{name} {}", costs.join(", ")));
    parts.extend(joined_if_any(floor_texts, "; ").map(|texts| format!("floor  {texts}")));
    joined_if_any(parts, "  ·  ")
}

/// The cost of a floor: the median, as in the column above it.
fn floor_ns(case: &CaseRecord) -> Option<f64> {
    match &case.latency_ns {
        Some(latency) => Some(latency.p50 as f64),
        None => figure::median_of(case, figure::elapsed_per_block_ns),
    }
}

/// The CPUs of the two ends of a floor, if the rows above had others.
fn other_cpus(case: &CaseRecord, ranking: &Ranking) -> String {
    let differ = case.tasks != Tasks::Single && case.placement != ranking.axes.placement;
    if differ { format!(" on {}", words::cpus(&case.cpus)) } else { String::new() }
}

/// Cases that measure only one end and are not a transport; `None` if there are none.
pub(crate) fn references(record: &BenchRecord) -> Option<String> {
    let cases = record.cases.iter().filter(|case| case.role == Role::Reference);
    let shown = cases.filter_map(|case| {
        let speed = numbers::throughput(case.throughput.as_ref()?.median_bytes_per_s);
        Some(format!("{} {speed}", case.spec))
    });
    Some(format!("one end only  {}", joined_if_any(shown, ", ")?))
}

/// The limits of what the rows show, the most important first.
pub(crate) fn remarks(view: &View) -> Vec<String> {
    let record = view.record();
    let above = view.rankings.iter().flat_map(|ranking| above_the_ceiling(view, ranking));
    let mut remarks: Vec<String> = empty_sums(record).into_iter().chain(load::remarks(record)).collect();
    remarks.extend(first_lines(distinct(above), MANY_MAX));
    remarks.extend(unsteady::remarks(record));
    remarks.extend(mixtures(view));
    remarks.extend(single_trial(record));
    remarks.extend(changed_requests(record));
    remarks.extend(zero_copy(record));
    remarks.extend(outliers(record));
    remarks.extend(repeated(record));
    remarks.extend(tail::remark(ranked(record)));
    remarks.extend(tail::intervals(ranked(record)));
    remarks
}

/// The offsets in a page of the buffers of both ends, if they are the same for all cases and not the default.
fn buffers(record: &BenchRecord) -> Option<String> {
    let offsets = offsets::offsets(ranked(record));
    let offset = offsets.first().filter(|offset| offsets.len() == 1 && !offset.are_usual())?;
    Some(format!("buffers {} and {} bytes past a page's start", offset.sender, offset.receiver))
}

/// The block sizes of all cases: the smallest and the largest one, or the only one.
fn block_range(record: &BenchRecord) -> String {
    let range = |workload| {
        let blocks = || ranked(record).filter(|case| case.workload == workload).map(|case| case.block_bytes);
        Some(size_range(blocks().min()?, blocks().max()?))
    };
    words::blocks(range(Workload::Stream), range(Workload::PingPong))
}

/// The payload of all cases, if it is one of zeros or a file of the user's.
fn unusual_payload(record: &BenchRecord) -> Option<String> {
    let mut payloads = ranked(record).map(|case| &case.payload);
    let first = payloads.next()?;
    let odd = matches!(first, PayloadKind::Zero | PayloadKind::File(_));
    (odd && payloads.all(|payload| payload == first)).then(|| format!("payload {first}"))
}

/// How a ceiling differs from the rows above it.
fn other_axes(case: &CaseRecord, ranking: &Ranking) -> String {
    let mut notes = Vec::new();
    if Some(case.block_bytes) != ranking.block_bytes(Workload::Stream) {
        notes.push(format!("{} blocks", numbers::size(case.block_bytes)));
    }
    if case.data != ranking.axes.data {
        notes.push(format!("data {}", case.data));
    }
    joined_if_any(notes, ", ").map(|notes| format!(" ({notes})")).unwrap_or_default()
}

/// Why a row is faster than a memory copy (docs/METHOD.md: a page passed by reference is not a byte moved).
fn above_the_ceiling(view: &View, ranking: &Ranking) -> Vec<String> {
    let ceilings = view.references(ranking, Role::Ceiling).into_iter();
    let ceiling = ceilings.filter_map(|case| Some((speed(case)?, case))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((ceiling_speed, ceiling)) = ceiling else { return Vec::new() };
    let why = |case: &CaseRecord| match (&case.zero_copy, ranking.axes.data) {
        (Some(evidence), _) if evidence.proven => "at least some of its bytes are passed by reference",
        (_, DataLevel::None) => "nothing reads its bytes, so pages may be passed by reference",
        _ if ceiling.data != ranking.axes.data => "the ceiling does other work on its bytes",
        _ => "its bytes are read, but perhaps not copied",
    };
    let line = |row: &RankedRow| {
        let case = row.stream().filter(|case| speed(case).is_some_and(|speed| speed > ceiling_speed))?;
        Some(format!("{} is above the ceiling ({}): {}.", row.label, ceiling.spec, why(case)))
    };
    ranking.rows.iter().filter_map(line).collect()
}

/// The evidence that bytes are passed by reference: one sentence for all specs with the same evidence. Specs are separated by
/// semicolons, because a spec may contain commas.
fn zero_copy(record: &BenchRecord) -> Vec<String> {
    let sentence = |case: &CaseRecord| {
        let evidence = case.zero_copy.as_ref().filter(|_| !case.samples.is_empty())?;
        Some(format!("{}: {}.", words::by_reference(evidence), evidence.how.trim_end_matches('.')))
    };
    let sentences = transports(record).filter_map(|case| Some((sentence(case)?, case.spec.to_string())));
    let named = |specs: Vec<String>| first_of(&distinct(specs), MANY_MAX, "; ", String::clone);
    grouped(sentences).into_iter().map(|(sentence, specs)| format!("{}: {sentence}", named(specs))).collect()
}

/// Specs with a checksum (XOR) of 0: a payload of zeros would have passed the check, too.
fn empty_sums(record: &BenchRecord) -> Option<String> {
    let empty = |case: &&CaseRecord| {
        let mut sums = case.samples.iter().filter_map(|sample| sample.checksum.as_deref());
        case.check == Some(Check::Xor) && sums.any(|sum| sum == "00")
    };
    let specs: BTreeSet<String> =
        transports(record).filter(empty).map(|case| case.spec.to_string()).collect();
    let specs = joined_if_any(specs, "; ")?;
    Some(format!(
        "{specs}: the XOR of all bytes is 0, as it would be of zeros, so it proves little: try another --count or --payload, or \
         --check xxh3."
    ))
}

fn changed_requests(record: &BenchRecord) -> Vec<String> {
    let line = |case: &CaseRecord| {
        let asked = granted::requested_size_if_changed(case)?;
        Some(format!("{} asked for {asked}; granted: {}.", case.spec, granted::text(case)))
    };
    first_lines(distinct(transports(record).filter_map(line)), MANY_MAX)
}

/// The meaning of ±, of an interval in parentheses, and of the two figures of a mixture.
pub(crate) fn interval_legend(record: &BenchRecord) -> Option<String> {
    let measured = || transports(record).filter(|case| !case.samples.is_empty());
    let is_mixture = |case: &&CaseRecord| is_mixed(case) && mixture(figures_by_cpus(case)).is_some();
    let mixed = measured().any(|case| is_mixture(&case)).then(|| {
        "a–b is what a mechanism reached where the scheduler used one CPU in some trials and two in others.".to_owned()
    });
    let intervals = interval::legend(measured().map(|case| case.samples.len()));
    let wide = measured().filter(|case| !is_mixture(case));
    let wide_intervals = wide.filter_map(|case| Some((estimated(case)?, case.samples.len())));
    joined_if_any([intervals, interval::wide_legend(wide_intervals), mixed].into_iter().flatten(), " ")
}

/// The two figures of each mixture, and their shares of the trials.
fn mixtures(view: &View) -> Option<String> {
    let rows = view.rankings.iter().flat_map(|ranking| &ranking.rows);
    let named = first_if_any(rows.flat_map(two_figures), MANY_MAX, "; ")?;
    Some(format!("On one CPU and on two: {named}."))
}

/// "`pipe` 4.80 GB/s on one (5 of 9 trials), 1.20 GB/s on two (4)" of streams and of round trips; nothing if there are not two
/// figures, or if they hardly differ.
fn two_figures(row: &RankedRow) -> impl Iterator<Item = String> {
    Workload::ALL.iter().filter_map(|workload| {
        let [one, two] = mixture(row.by_cpus(*workload))?;
        let spec = &row.case(*workload, false)?.spec;
        let [one_text, two_text] =
            [one.median, two.median].map(|median| quantity(*workload).unit.text(median));
        let (ones, twos, all) = (one.trials, two.trials, one.trials + two.trials);
        Some(format!("`{spec}` {one_text} on one ({ones} of {all} trials), {two_text} on two ({twos})"))
    })
}

/// Rounds that were repeated, and where their first attempts are.
fn repeated(record: &BenchRecord) -> Option<String> {
    let rounds = record.settings.repeated_rounds.filter(|rounds| *rounds > 0)? as usize;
    let kept: usize = record.cases.iter().map(|case| case.disturbed.len()).sum();
    Some(format!(
        "Something else used the CPUs: {} repeated. {} of disturbed rounds are in the record, marked, and count in no figure.",
        words::count(rounds, "round"),
        words::count(kept, "sample"),
    ))
}

/// A remark if a case has too few trials for a spread.
pub(crate) fn single_trial(record: &BenchRecord) -> Option<String> {
    let fewest = ranked(record).map(|case| case.samples.len()).filter(|trials| *trials > 0).min()?;
    Some(format!("{}: the figure may be far off.", interval::no_spread(fewest)?))
}

/// The number of outliers, if there are any.
pub(crate) fn outliers(record: &BenchRecord) -> Option<String> {
    let total: usize = transports(record).map(|case| case.outliers as usize).sum();
    let samples: usize = transports(record).map(|case| case.samples.len()).sum();
    (total > 0).then(|| format!("{} in {samples} samples; none was removed.", words::count(total, "outlier")))
}
