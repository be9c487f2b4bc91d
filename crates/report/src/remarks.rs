//! The words around the figures: the heading, the floor and the ceiling, and what a reader must know
//! before believing a row.

use std::collections::{BTreeMap, BTreeSet};

use model::{BenchRecord, CaseRecord, Check, DataLevel, PayloadKind, Role, Tasks, Workload, visible};
use stats::{TrialGroup, figure, is_mixed};

use crate::case_figure::{mixture, seats_of, unit_of};
use crate::lists::{distinct, first_of, grouped};
use crate::view::{RankedRow, Ranking, View, ranked, transports};
use crate::{granted, interval, load, numbers, offsets, words};

/// Smallest shares of the CPUs that are named: a quiet virtual machine has a few percent of either.
const PROGRAMS_FROM: f64 = 0.15;
const STOLEN_FROM: f64 = 0.10;
/// Smallest fall of the frequency that is named.
const FELL_FROM: f64 = 0.10;
/// Lines of one kind; with more, none is read.
const LINES_MAX: usize = 24;
/// Specs named in one sentence.
const NAMES_MAX: usize = 24;

/// The machine and what all rows have in common, in pieces.
pub(crate) fn heading(view: &View) -> Vec<String> {
    let mut pieces = vec![words::machine(&view.record.head.host)];
    let peer = view.record.peer.as_ref();
    pieces.extend(peer.map(|peer| format!("peer {}: {}", peer.name, words::machine(&peer.host))));
    pieces.push(match view.common(Ranking::blocks) {
        Some((stream, round_trip)) => words::blocks(stream, round_trip),
        None => range_of_blocks(view),
    });
    pieces.extend(view.common(Ranking::ends));
    pieces.extend(view.common(Ranking::data).map(str::to_owned));
    pieces.extend(chain(view));
    pieces.extend(buffers(view));
    pieces.extend(odd_payload(view));
    pieces.push(trials_made(view));
    let repeated = view.record.settings.repeated_rounds.filter(|rounds| *rounds > 0);
    pieces.extend(repeated.map(|rounds| format!("{} repeated", words::count(rounds as usize, "round"))));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// "9 to 41 trials, interleaved, in 32 s".
fn trials_made(view: &View) -> String {
    let settings = &view.record.settings;
    let made = ranked(view.record).map(|case| case.samples.len()).filter(|trials| *trials > 0);
    let least = made.min().filter(|least| *least < settings.trials as usize && !settings.interrupted);
    let least =
        least.filter(|_| settings.took_s.is_some()).map(|least| format!("{least} to ")).unwrap_or_default();
    let interleaved = if settings.trials > 1 { ", interleaved" } else { "" };
    let took =
        settings.took_s.map(|took_s| format!(", in {}", numbers::time(took_s * 1e9))).unwrap_or_default();
    format!("{least}{}{interleaved}{took}", words::count(settings.trials as usize, "trial"))
}

/// A sentence where the run did not come to its end.
pub(crate) fn interruption(view: &View) -> Option<String> {
    let settings = &view.record.settings;
    let made = || transports(view.record).filter(|case| case.error.is_none()).map(|case| case.samples.len());
    let (least, most) = (made().min().unwrap_or(0), made().max().unwrap_or(0));
    let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
    settings.interrupted.then(|| match settings.precision_percent {
        Some(percent) => {
            format!("Stopped before every case was within {percent} % of its median: {range} trials of each were made.")
        }
        None => format!("Stopped early, by --time or Ctrl-C: {range} of {} trials were made.", settings.trials),
    })
}

/// What disturbed the machine, where it was enough to move the figures.
pub(crate) fn other_load(record: &BenchRecord) -> Option<String> {
    let load = record.head.other_load.as_ref()?;
    let largest = if load.programs.is_empty() {
        String::new()
    } else {
        format!(
            " (most: {})",
            load.programs.iter().map(|name| visible(name)).collect::<Vec<String>>().join(", ")
        )
    };
    let programs = (load.programs_share >= PROGRAMS_FROM).then(|| {
        let share = numbers::percent(load.programs_share);
        format!("Other programs took {share} of the CPUs during this run{largest}: end them, or read the intervals.")
    });
    let stolen = (load.stolen_share >= STOLEN_FROM).then(|| {
        let share = numbers::percent(load.stolen_share);
        format!("The hypervisor gave {share} of the CPUs to other guests: read the intervals.")
    });
    let fell = load.frequency_fell.filter(|fell| (FELL_FROM..=1.0).contains(fell)).map(|fell| {
        let share = numbers::percent(fell);
        format!("The CPUs became slower during this run: their frequency fell by {share} (heat, or a power limit): read the intervals.")
    });
    let named: Vec<String> = programs.into_iter().chain(stolen).chain(fell).collect();
    (!named.is_empty()).then(|| named.join(" "))
}

/// The ceiling and the floor of a ranking, on one line; `None` where neither was measured.
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
            costs.push(format!("{} per {what}{}", numbers::time(cost), where_else(case, ranking)));
        }
    }
    if !floors.is_empty() {
        // The harness first: it is in every other figure, the other floors too.
        let floors: Vec<String> =
            floors.iter().rev().map(|(name, costs)| format!("{name} {}", costs.join(", "))).collect();
        parts.push(format!("floor  {}", floors.join("; ")));
    }
    (!parts.is_empty()).then(|| parts.join("  ·  "))
}

/// What a floor costs, by the same statistic as the column above it.
fn floor_ns(case: &CaseRecord) -> Option<f64> {
    match &case.latency_ns {
        Some(latency) => Some(latency.p50 as f64),
        None => figure::median_of(case, figure::elapsed_per_block_ns),
    }
}

/// Where the two ends of a floor sat, where the rows above sat elsewhere.
fn where_else(case: &CaseRecord, ranking: &Ranking) -> String {
    let elsewhere = case.tasks != Tasks::Single && case.placement != ranking.axes.placement;
    if elsewhere { format!(" on {}", words::cpus(&case.cpus)) } else { String::new() }
}

/// Rows that are a check of one end and no transport; `None` where there are none.
pub(crate) fn references(view: &View) -> Option<String> {
    let cases = view.record.cases.iter().filter(|case| case.role == Role::Reference);
    let shown = cases.filter_map(|case| {
        let speed = numbers::throughput(case.throughput.as_ref()?.median_bytes_per_s);
        Some(format!("{} {speed}", case.spec))
    });
    let shown: Vec<String> = shown.collect();
    (!shown.is_empty()).then(|| format!("one end only  {}", shown.join(", ")))
}

/// What a reader must know before believing a row, the most important first.
pub(crate) fn remarks(view: &View) -> Vec<String> {
    let above = view.rankings.iter().flat_map(|ranking| above_the_ceiling(view, ranking));
    let mut remarks: Vec<String> = empty_sums(view).into_iter().chain(load::remarks(view.record)).collect();
    remarks.extend(first_lines(distinct(above)));
    remarks.extend(mixtures(view));
    remarks.extend(single_trial(view.record));
    remarks.extend(granted_otherwise(view));
    remarks.extend(zero_copy(view));
    remarks.extend(outliers(view.record));
    remarks.extend(repeated(view.record));
    remarks
}

/// Where the buffers of both ends begin, where all cases have them at one place that is not the usual one.
fn buffers(view: &View) -> Option<String> {
    let places = offsets::places(ranked(view.record));
    let place = places.first().filter(|place| places.len() == 1 && !place.are_usual())?;
    Some(format!("buffers {} and {} bytes past a page's start", place.sender, place.receiver))
}

/// The relays between the ends, where there are any.
fn chain(view: &View) -> Option<String> {
    let relays = ranked(view.record).map(|case| case.relays).max().filter(|relays| *relays > 0)?;
    Some(format!("through {}", words::count(relays as usize, "relay")))
}

fn range_of_blocks(view: &View) -> String {
    let blocks = |workload| {
        ranked(view.record).filter(move |case| case.workload == workload).map(|case| case.block_bytes)
    };
    let range = |workload| {
        let (least, most) = (blocks(workload).min()?, blocks(workload).max()?);
        let most_text = numbers::size(most);
        Some(if least == most { most_text } else { format!("{} to {most_text}", numbers::size(least)) })
    };
    match (range(Workload::Stream), range(Workload::PingPong)) {
        (Some(stream), Some(trips)) if stream == trips => format!("blocks and round trips of {stream}"),
        (Some(stream), Some(trips)) => format!("{stream} blocks, round trips of {trips}"),
        (Some(stream), None) => format!("{stream} blocks"),
        (None, Some(trips)) => format!("round trips of {trips}"),
        (None, None) => String::new(),
    }
}

/// A payload that measures something else than bytes of one's own, or is one's own.
fn odd_payload(view: &View) -> Option<String> {
    let mut payloads = ranked(view.record).map(|case| &case.payload);
    let first = payloads.next()?;
    let odd = matches!(first, PayloadKind::Zero | PayloadKind::File(_));
    (odd && payloads.all(|payload| payload == first)).then(|| format!("payload {first}"))
}

/// How a ceiling differs from the rows above it.
fn other_axes(case: &CaseRecord, ranking: &Ranking) -> String {
    let mut notes = Vec::new();
    if Some(case.block_bytes) != ranking.axes.stream_bytes {
        notes.push(format!("{} blocks", numbers::size(case.block_bytes)));
    }
    if case.data != ranking.axes.data {
        notes.push(format!("data {}", case.data));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}

/// Why a row is faster than a memory copy (method 3: a page passed by reference is not a byte moved).
fn above_the_ceiling(view: &View, ranking: &Ranking) -> Vec<String> {
    let speed =
        |case: &CaseRecord| case.throughput.as_ref().map_or(0.0, |throughput| throughput.median_bytes_per_s);
    let ceilings = view.references(ranking, Role::Ceiling).into_iter();
    let Some(ceiling) = ceilings.max_by(|a, b| speed(a).total_cmp(&speed(b))) else { return Vec::new() };
    let above = ranking.rows.iter().filter(|row| row.stream.is_some_and(|case| speed(case) > speed(ceiling)));
    let why = |case: &CaseRecord| match (&case.zero_copy, ranking.axes.data) {
        (Some(evidence), _) if evidence.proven => "at least some of its bytes are passed by reference",
        (_, DataLevel::None) => "nothing reads its bytes, so pages may be passed by reference",
        _ if ceiling.data != ranking.axes.data => "the ceiling does other work on its bytes",
        _ => "its bytes are read, but perhaps not copied",
    };
    let line = |row: &RankedRow| {
        Some(format!("{} is above the ceiling ({}): {}.", row.label, ceiling.spec, why(row.stream?)))
    };
    above.filter_map(line).collect()
}

/// What shows that rows pass bytes by reference: one sentence for all the specs of which it is true. They are
/// divided by semicolons, as a spec may have commas of its own.
fn zero_copy(view: &View) -> Vec<String> {
    let sentence = |case: &CaseRecord| {
        let evidence = case.zero_copy.as_ref().filter(|_| !case.samples.is_empty())?;
        Some(format!("{}: {}.", words::by_reference(evidence), evidence.how.trim_end_matches('.')))
    };
    let said = transports(view.record).filter_map(|case| Some((sentence(case)?, case.spec.to_string())));
    let whose = |specs: Vec<String>| first_of(&distinct(specs), NAMES_MAX, "; ", String::clone);
    grouped(said).into_iter().map(|(sentence, specs)| format!("{}: {sentence}", whose(specs))).collect()
}

/// Rows whose XOR came to 0: the check would have let zeros pass.
fn empty_sums(view: &View) -> Option<String> {
    let empty = |case: &&CaseRecord| {
        let sums = || case.samples.iter().filter_map(|sample| sample.checksum.as_deref());
        case.check == Some(Check::Xor) && sums().any(|sum| sum == "00")
    };
    let specs: BTreeSet<String> =
        transports(view.record).filter(empty).map(|case| case.spec.to_string()).collect();
    let specs: Vec<String> = specs.into_iter().collect();
    (!specs.is_empty()).then(|| {
        format!(
            "{}: the XOR of all bytes is 0, as it would be of zeros, so it proves little: try another --count or --payload, or \
             --check xxh3.",
            specs.join("; ")
        )
    })
}

fn granted_otherwise(view: &View) -> Vec<String> {
    let line = |case: &CaseRecord| {
        let asked = granted::asked_otherwise(case)?;
        Some(format!("{} asked for {asked}; granted: {}.", case.spec, granted::text(case)))
    };
    first_lines(distinct(transports(view.record).filter_map(line)))
}

/// As many lines of one kind as are read, and how many more there are.
fn first_lines(mut lines: Vec<String>) -> Vec<String> {
    let rest = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    lines.extend((rest > 0).then(|| format!("The same of {rest} more: see the record (--json).")));
    lines
}

/// What stands beside the figures: ± and, where the scheduler's choice makes it two, the range of the two.
pub(crate) fn interval_legend(record: &BenchRecord) -> Option<String> {
    let measured = || transports(record).filter(|case| !case.samples.is_empty());
    let mixed = measured().any(|case| is_mixed(case) && mixture(seats_of(case)).is_some());
    let mixed = mixed.then(|| {
        "a–b is what a mechanism reached where the scheduler used one CPU in some trials and two in others.".to_owned()
    });
    let intervals = interval::legend(measured().map(|case| case.samples.len()));
    let parts: Vec<String> = intervals.into_iter().chain(mixed).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// What each part of a mixture is, and its share of the trials; with more lines none is read.
fn mixtures(view: &View) -> Option<String> {
    let rows = view.rankings.iter().flat_map(|ranking| &ranking.rows);
    let mixed: Vec<String> = rows.flat_map(two_figures).collect();
    let named = first_of(&mixed, LINES_MAX, "; ", String::clone);
    (!mixed.is_empty()).then(|| format!("On one CPU and on two: {named}."))
}

/// "`pipe` 4.80 GB/s on one (5 of 9 trials), 1.20 GB/s on two (4)", of the streams and of the round trips; nothing where there are no two
/// figures, or they hardly differ.
fn two_figures(row: &RankedRow) -> impl Iterator<Item = String> {
    [Workload::Stream, Workload::PingPong].into_iter().filter_map(|workload| {
        let [one, two] = mixture(row.seats(workload))?;
        let text = |group: &TrialGroup| unit_of(workload).text(group.median);
        let spec = &row.case(workload, false)?.spec;
        let all = one.trials + two.trials;
        Some(format!(
            "`{spec}` {} on one ({} of {all} trials), {} on two ({})",
            text(&one),
            one.trials,
            text(&two),
            two.trials
        ))
    })
}

/// Rounds that were repeated, and what became of their first attempts.
fn repeated(record: &BenchRecord) -> Option<String> {
    let rounds = record.settings.repeated_rounds.filter(|rounds| *rounds > 0)? as usize;
    let kept: usize = record.cases.iter().map(|case| case.disturbed.len()).sum();
    Some(format!(
        "Something else used the CPUs: {} repeated. {} of disturbed rounds are in the record, marked, and count in no figure.",
        words::count(rounds, "round"),
        words::count(kept, "sample"),
    ))
}

/// What one trial does not say.
pub(crate) fn single_trial(record: &BenchRecord) -> Option<String> {
    let single = ranked(record).any(|case| case.samples.len() == 1);
    single.then(|| "A single trial shows no spread: the figure may be far off.".to_owned())
}

/// How many samples lie far from the others.
pub(crate) fn outliers(record: &BenchRecord) -> Option<String> {
    let of = |case: &CaseRecord| case.outliers as usize;
    let total: usize = transports(record).map(of).sum();
    let samples: usize = transports(record).map(|case| case.samples.len()).sum();
    (total > 0).then(|| format!("{} in {samples} samples; none was removed.", words::count(total, "outlier")))
}
