//! What the table of languages says in words: what each idiom costs, and the system calls that explain it.

use model::{BenchRecord, CaseRecord, SystemCalls, WorkerStart};
use stats::{Ratio, figure, paired_ratio};

use super::{cases, per_mib, ranked, worker};
use crate::numbers;

/// An idiom that costs less than this is none worth a sentence.
const COST_MIN: f64 = 1.05;
/// System calls named at the most.
const CALLS_NAMED: usize = 3;

/// A sentence for each language whose idiom costs something, the dearest first; none where there is nothing to say.
pub(super) fn all(record: &BenchRecord) -> Vec<String> {
    let mut costs: Vec<(f64, String)> = ranked(record)
        .into_iter()
        .filter(|case| worker(case).is_some_and(|worker| worker.writer.variant == "idiomatic"))
        .filter_map(|idiomatic| {
            let tuned = tuned_beside(record, idiomatic)?;
            let ratio = paired_ratio(&tuned.samples, &idiomatic.samples, figure::throughput_bytes_per_s)?;
            (ratio.low > COST_MIN).then(|| (ratio.median, cost(idiomatic, tuned, ratio)))
        })
        .collect();
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let lines: Vec<String> = costs.into_iter().map(|(_, sentence)| sentence).collect();
    if lines.is_empty() { lines } else { vec![format!("What the idiom costs. {}", lines.join(" "))] }
}

fn tuned_beside<'a>(record: &'a BenchRecord, idiomatic: &CaseRecord) -> Option<&'a CaseRecord> {
    let language = &worker(idiomatic)?.writer.language;
    cases(record, WorkerStart::Pair).find(|case| {
        worker(case)
            .is_some_and(|worker| worker.writer.language == *language && worker.writer.variant == "tuned")
    })
}

fn cost(idiomatic: &CaseRecord, tuned: &CaseRecord, ratio: Ratio) -> String {
    let language = worker(idiomatic).map_or("", |worker| worker.writer.language.as_str());
    let times = numbers::ratio(ratio.median);
    let calls = |case: &CaseRecord| worker(case).and_then(|worker| worker.system_calls.clone());
    match (calls(idiomatic), calls(tuned)) {
        (Some(many), Some(few)) => format!(
            "{language}: {times} times; {} system calls per MiB ({}) against {} ({}).",
            per_mib(&many),
            named(&many),
            per_mib(&few),
            named(&few)
        ),
        _ => format!("{language}: {times} times."),
    }
}

/// The calls made most: "read 16.0, write 16.0".
fn named(calls: &SystemCalls) -> String {
    let mut sorted: Vec<(&String, &f64)> = calls.by_name.iter().collect();
    sorted.sort_by(|one, other| other.1.total_cmp(one.1));
    let named: Vec<String> =
        sorted.into_iter().take(CALLS_NAMED).map(|(name, count)| format!("{name} {count:.1}")).collect();
    named.join(", ")
}
