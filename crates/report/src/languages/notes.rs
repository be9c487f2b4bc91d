//! Sentences and remarks under the tables of workers.

use std::collections::HashMap;

use model::{BenchRecord, CaseRecord, Role};
use stats::{figure, is_mixed, paired_ratios, ratio_of};

use super::{buffers, ends, peers, places, ranked, title, worker};
use crate::estimate::{estimated, speed};
use crate::groups::References;
use crate::limits::FACTOR_MIN;
use crate::lists::{distinct, joined_if_any};
use crate::{numbers, remarks};

/// Sentences on languages whose idiomatic code is slower than their tuned code, and on slow buffers.
pub(crate) fn sentences(record: &BenchRecord) -> Vec<String> {
    if peers::is_of_peers(record) {
        return Vec::new();
    }
    idiomatic_costs(record).into_iter().chain(buffers::slow(record)).collect()
}

/// A sentence for each placement and each language whose idiomatic code is slower than its tuned code, the slowest first.
fn idiomatic_costs(record: &BenchRecord) -> Vec<String> {
    let places = places(record);
    let of_place = |placed: &Vec<&CaseRecord>| {
        let ends = if places.len() > 1 { format!(" ({})", ends(placed)) } else { String::new() };
        let sentence = |(times, language)| {
            format!("{language} idiomatic{ends} takes {} times as long as tuned.", numbers::ratio(times))
        };
        costs(placed).into_iter().map(sentence).collect::<Vec<String>>()
    };
    places.iter().flat_map(of_place).collect()
}

/// How many times as long idiomatic code takes, with its language.
fn costs<'a>(placed: &[&'a CaseRecord]) -> Vec<(f64, &'a str)> {
    let of_variant = |variant: &'static str| {
        ranked(placed).into_iter().filter_map(move |case| {
            let writer = &worker(case)?.writer;
            (writer.variant == variant).then_some((writer.language.as_str(), case))
        })
    };
    let tuned: HashMap<&str, &CaseRecord> = of_variant("tuned").collect();
    let cost = |(language, idiomatic): (&'a str, &CaseRecord)| {
        let tuned = *tuned.get(language)?;
        let disjoint = tuned.throughput.as_ref()?.low > idiomatic.throughput.as_ref()?.high;
        let ratios = paired_ratios(&tuned.samples, &idiomatic.samples, figure::throughput_bytes_per_s);
        let times = speed(tuned)? / speed(idiomatic)?;
        (disjoint && ratio_of(&ratios)?.low > FACTOR_MIN && times > FACTOR_MIN).then_some((times, language))
    };
    let mut costs: Vec<(f64, &str)> = of_variant("idiomatic").filter_map(cost).collect();
    model::sort_by(&mut costs, |(one, _), (other, _)| other.total_cmp(one));
    costs
}

/// Remarks on what the tables do not show; none if nothing was measured.
pub(crate) fn remarks(record: &BenchRecord) -> Vec<String> {
    if peers::is_of_peers(record) {
        return peers::notes(record);
    }
    let measured = || record.cases.iter().filter(|case| worker(case).is_some() && estimated(case).is_some());
    if measured().next().is_none() {
        return Vec::new();
    }
    let references = References::from_record(record);
    let ceiling = references.of_role(Role::Ceiling).find_map(|case| Some((&case.spec, speed(case)?)));
    let sockets = measured().filter(|case| case.mechanism == "socketpair");
    let socket_titles = joined_if_any(distinct(sockets.filter_map(|case| Some(title(worker(case)?)))), ", ");
    let remarks = [
        ceiling.map(|(spec, speed)| format!("ceiling {spec} {}", numbers::throughput(speed))),
        socket_titles.map(|names| format!("{names}: a pair of sockets joins it to its child, not a pipe.")),
        measured().any(is_mixed).then(|| {
            "The scheduler used one CPU in some trials and two in others, so the median is between two figures; --place same \
             and --place cross measure each."
                .to_owned()
        }),
        remarks::single_trial(record),
        remarks::outliers(record),
        buffers::offsets(record),
    ];
    remarks.into_iter().flatten().collect()
}
